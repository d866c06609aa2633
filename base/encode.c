/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodings of bytes as strings, and digests. Decoders are strict: what they accept they accept in
 * one spelling, except where Go's standard decoder, which clients rely on, is laxer. */
#include <sublet/encode.h>

#include <assert.h>
#include <string.h>
#include <openssl/evp.h>

#include <sublet/buf.h>

#include "utf8.h"

static const char BASE64_STANDARD[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char BASE64_URL[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static struct str encode64(struct arena *a, struct str s, const char *alphabet, bool pad)
{
    const unsigned char *in = (const unsigned char *)s.p;
    char *out = arena_alloc(a, (s.n + 2) / 3 * 4 + 1), *p = out;
    uint32_t bits = 0;
    unsigned have = 0;

    for (size_t i = 0; i < s.n; i++) {
        bits = bits << 8 | in[i];
        for (have += 8; have >= 6; have -= 6)
            *p++ = alphabet[bits >> (have - 6) & 63];
    }
    if (have > 0)
        *p++ = alphabet[bits << (6 - have) & 63];
    while (pad && (p - out) % 4 != 0)
        *p++ = '=';
    return (struct str){out, (size_t)(p - out)};
}

struct str base64_encode(struct arena *a, struct str s)
{
    return encode64(a, s, BASE64_STANDARD, true);
}

struct str base64url_encode(struct arena *a, struct str s)
{
    return encode64(a, s, BASE64_URL, false);
}

static int value64(char c, const char *alphabet)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == alphabet[62])
        return 62;
    return c == alphabet[63] ? 63 : -1;
}

/* Base64 with every rule that differs between the two alphabets made explicit. Like Go's, the
 * standard one takes line breaks anywhere and ignores bits left over in the last character. */
struct decoder {
    const char *alphabet;
    bool padded, breaks, spare_bits;
};

static bool decode64(struct arena *a, struct str s, const struct decoder *d, struct str *ret)
{
    char *out = arena_alloc(a, s.n / 4 * 3 + 4), *p = out;
    uint32_t bits = 0;
    size_t letters = 0, padding = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (d->breaks && (c == '\n' || c == '\r'))
            continue;
        if (d->padded && c == '=') {
            padding++;
            continue;
        }
        int value = value64(c, d->alphabet);
        if (value < 0 || padding > 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (++letters % 4 != 1)
            *p++ = (char)(bits >> (6 - (letters + 3) % 4 * 2) & 255);
    }

    static const unsigned char wanted_padding[] = {0, 9, 2, 1}; /* 9: no such length */
    unsigned wanted = wanted_padding[letters % 4];
    if (wanted == 9 || (d->padded && padding != wanted))
        return false;
    if (!d->spare_bits && wanted > 0 && (bits & ((1U << (2 * wanted)) - 1)) != 0)
        return false;
    *ret = (struct str){out, (size_t)(p - out)};
    return true;
}

bool base64_decode(struct arena *a, struct str s, struct str *ret)
{
    static const struct decoder standard = {
        .alphabet = BASE64_STANDARD, .padded = true, .breaks = true, .spare_bits = true};

    return decode64(a, s, &standard, ret);
}

bool base64url_decode(struct arena *a, struct str s, struct str *ret)
{
    static const struct decoder url = {.alphabet = BASE64_URL};

    return decode64(a, s, &url, ret);
}

static const char HEX_LOWER[] = "0123456789abcdef";
static const char HEX_UPPER[] = "0123456789ABCDEF";

struct str hex_encode(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.n * 2 + 1);

    for (size_t i = 0; i < s.n; i++) {
        unsigned char byte = (unsigned char)s.p[i];
        out[2 * i] = HEX_LOWER[byte >> 4];
        out[2 * i + 1] = HEX_LOWER[byte & 15];
    }
    return (struct str){out, s.n * 2};
}

void base32_lower(const unsigned char *bytes, size_t n_bytes, char *out, size_t n_chars)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint32_t bits = 0;
    unsigned have = 0;
    size_t at = 0;

    assert(n_chars <= (n_bytes * 8 + 4) / 5);
    for (size_t i = 0; i < n_chars; i++) {
        if (have < 5) {
            bits = bits << 8 | (at < n_bytes ? bytes[at] : 0);
            at++;
            have += 8;
        }
        have -= 5;
        out[i] = alphabet[bits >> have & 31];
    }
}

/* ---- digests ---- */

static void sha256_more(EVP_MD_CTX *ctx, const void *p, size_t n)
{
    int ok = EVP_DigestUpdate(ctx, p, n);
    assert(ok);
}

void sha256(struct str s, unsigned char out[32])
{
    int ok = EVP_Digest(s.p, s.n, out, NULL, EVP_sha256(), NULL);

    assert(ok);
}

void sha256_parts(size_t n, const struct str *parts, unsigned char out[32])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);

    assert(ok);
    for (size_t i = 0; i < n; i++) {
        unsigned char length[8];
        for (unsigned b = 0; b < 8; b++)
            length[b] = (unsigned char)((uint64_t)parts[i].n >> (56 - 8 * b));
        sha256_more(ctx, length, sizeof(length));
        sha256_more(ctx, parts[i].p, parts[i].n);
    }
    ok = EVP_DigestFinal_ex(ctx, out, NULL);
    assert(ok);
    EVP_MD_CTX_free(ctx);
}

/* ---- percent encoding (RFC 3986) ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool url_decode(struct arena *a, struct str s, bool plus_is_space, struct str *ret)
{
    char *out = arena_alloc(a, s.n + 1), *p = out;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            int high = s.n - i > 2 ? hex_value(s.p[i + 1]) : -1;
            int low = s.n - i > 2 ? hex_value(s.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *p++ = c;
    }
    *ret = (struct str){out, (size_t)(p - out)};
    return true;
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

struct str url_encode(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.n * 3 + 1), *p = out;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (is_unreserved(c)) {
            *p++ = (char)c;
            continue;
        }
        *p++ = '%';
        *p++ = HEX_UPPER[c >> 4];
        *p++ = HEX_UPPER[c & 15];
    }
    return (struct str){out, (size_t)(p - out)};
}

/* ---- Go's %q ---- */

/* Code points from U+0080 up that Go does not count as printable: controls, blanks, format
 * characters and private use. Unassigned ones are left as they are. */
static bool is_printable(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x80, 0xa0},       {0xad, 0xad},        {0x600, 0x605},   {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x1680, 0x1680}, {0x180e, 0x180e},
        {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f}, {0x3000, 0x3000},
        {0xe000, 0xf8ff},   {0xfeff, 0xfeff},    {0xfff0, 0xfffb}, {0xfffe, 0xffff},
        {0xe0000, 0xe00ff}, {0xf0000, 0x10ffff},
    };

    for (size_t i = 0; i < COUNT(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return false;
    return true;
}

static void quote_ascii(struct buf *b, unsigned char c)
{
    static const char named[] = "abtnvfr"; /* 7 to 13 */

    if (c == '"' || c == '\\') {
        buf_char(b, '\\');
        buf_char(b, (char)c);
    } else if (c >= 7 && c <= 13) {
        buf_char(b, '\\');
        buf_char(b, named[c - 7]);
    } else if (c < 0x20 || c == 0x7f) {
        buf_printf(b, "\\x%02x", c);
    } else {
        buf_char(b, (char)c);
    }
}

struct str go_quote(struct arena *a, struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p ? p + s.n : p;
    struct buf b = BUF_INIT(0);

    buf_char(&b, '"');
    while (p < end) {
        size_t n = utf8_step(p, end);
        if (n == 1) {
            quote_ascii(&b, *p);
        } else if (n == 0) {
            buf_printf(&b, "\\x%02x", *p);
            n = 1;
        } else {
            uint32_t code = p[0] & (0xffU >> (n + 1));

            for (size_t i = 1; i < n; i++)
                code = code << 6 | (p[i] & 0x3fU);
            if (is_printable(code))
                buf_add(&b, (struct str){(const char *)p, n});
            else
                buf_printf(&b, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
        }
        p += n;
    }
    buf_char(&b, '"');
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}
