/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Encodings and digests, over OpenSSL where it has them. */
#pragma once

#include <sublet/mem.h>

struct str base64_encode(struct arena *a, struct str s);    /* standard, padded */
struct str base64url_encode(struct arena *a, struct str s); /* URL alphabet, no padding */
/* Strict: alphabet, length and padding must be right. base64_decode accepts line breaks. */
bool base64_decode(struct arena *a, struct str s, struct str *ret);
bool base64url_decode(struct arena *a, struct str s, struct str *ret);
struct str hex_encode(struct arena *a, struct str s);
void sha256(struct str s, unsigned char out[32]);
/* sha256 over each part preceded by its length (8 bytes, big endian): no two lists collide by
 * joining. */
void sha256_parts(size_t n, const struct str *parts, unsigned char out[32]);
/* n characters of lower base32 (RFC 4648 alphabet a-z2-7, no padding) of bytes. */
void base32_lower(const unsigned char *bytes, size_t n_bytes, char *out, size_t n_chars);
/* %XX and (in query values) '+'. False on a bad escape. */
bool url_decode(struct arena *a, struct str s, bool plus_is_space, struct str *ret);
struct str url_encode(struct arena *a, struct str s); /* everything but unreserved */
/* In double quotes as Go's %q prints it: what upstream's messages put around a bad value. */
struct str go_quote(struct arena *a, struct str s);
