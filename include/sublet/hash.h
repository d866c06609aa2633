/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * The hash map: uthash with our memory and our hash, keyed with a secret of the process. Include
 * this, not <uthash.h>. A walk over a map is in the order of insertion, whatever the secret. */
#pragma once

#include <sublet/mem.h>

uint64_t hash_seed(void); /* the same during the life of a process, random in each */

#define uthash_malloc(size)    mem_alloc(size)
#define uthash_free(ptr, size) ((void)(size), mem_free(ptr))
#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
    ((hashv) = (unsigned)str_hash((struct str){(const char *)(keyptr), (keylen)}, hash_seed()))
#include <uthash.h>
