/* SPDX-License-Identifier: Apache-2.0 */
/* The key of this process's hash maps. Why: a tenant chooses what is hashed, so it must not be able
 * to compute which strings collide. */

#include <sublet/hash.h>

#include <string.h>
#include <sys/auxv.h>

/* The kernel gives every program it executes 16 random bytes, see getauxval(3): a secret without a
 * global. */
uint64_t hash_seed(void)
{
    union {
        unsigned long number;
        const void *bytes;
    } random = {.number = getauxval(AT_RANDOM)};
    uint64_t seed = 0;

    if (random.bytes)
        memcpy(&seed, random.bytes, sizeof seed);
    return seed;
}
