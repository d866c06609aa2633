/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * Claims of tokens whose signature was valid. An entry saves only the signature check: every
 * request checks that the bound objects still exist. */
#pragma once

#include <sublet/pki.h>

struct token_cache;

struct token_cache *token_cache_new(size_t limit); /* entries; the least recently used is evicted */
struct token_cache *token_cache_free(struct token_cache *c);
/* The claims of a token that was put and has not expired; copied into a. False: it must be
 * verified. now: wall clock seconds. */
bool token_cache_get(struct token_cache *c, struct arena *a, struct str jwt, int64_t now,
                     struct token_claims *ret);
/* After it was verified at `now`. */
void token_cache_put(struct token_cache *c, struct str jwt, int64_t now,
                     const struct token_claims *claims);
