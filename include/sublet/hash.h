/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * uthash with our memory and our hash. Everybody who needs a hash map includes this, not
 * <uthash.h>. */
#pragma once

#include <sublet/mem.h>

#define uthash_malloc(size)    mem_alloc(size)
#define uthash_free(ptr, size) ((void)(size), mem_free(ptr))
#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
    ((hashv) = (unsigned)str_hash((struct str){(const char *)(keyptr), (keylen)}, 0x5b1e7))
#include <uthash.h>
