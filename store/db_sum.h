/* SPDX-License-Identifier: Apache-2.0
 * Checksums of rows: the first 64 bits of SHA-256 over the name of the table and the type and value
 * of every column. A cryptographic hash, because its cost (about 2 us for a row of 1 KB, 2 % of a
 * core at 10,000 writes/s) is not worth the reasoning a shorter one needs: no damage, however it
 * looks, passes more often than once in 10^19. In SQL it is the function row_sum(table, column...).
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>
#include <sublet/str.h>

struct sum;

struct sum *sum_new(void);
struct sum *sum_free(struct sum *s); /* takes NULL, returns NULL */
/* Makes row_sum() known to a connection; s must outlive it. */
int sum_register(struct sum *s, sqlite3 *sql);
/* What stands for the key of an object wherever its name does not: row_sum('key', ...). */
int64_t sum_key(struct sum *s, struct str resource, struct str ns, struct str name);
