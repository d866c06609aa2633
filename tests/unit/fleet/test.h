/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of the fleet begins with: cmocka, a directory of its own, small numbers that
 * follow from a seed. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sublet/fleet_ledger.h>

#define SECOND INT64_C(1000000)
#define HOUR   (3600 * SECOND)

static inline void check_str(struct str got, const char *want, const char *file, int line)
{
    if (str_eqc(got, want))
        return;
    print_error("got  \"%.*s\"\nwant \"%s\"\n", STR_F(got), want);
    _fail(file, line);
}
#define assert_str(s, text) check_str((s), (text), __FILE__, __LINE__)
/* The call succeeds; its error is printed otherwise. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        err_clear(&err);                                                                           \
        if (call) {                                                                                \
            print_error("%.*s\n", STR_F(err.message));                                             \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
#define BELOW(state, n) ((int64_t)(next_random(state) % (uint64_t)(n)))

static inline void remove_directory(const char *path)
{
    static const char *const files[] = {"ledger.db", "ledger.db-wal", "ledger.db-shm", "lock",
                                        "counters"};
    char name[256];

    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, files[i]);
        unlink(name);
    }
    rmdir(path);
}

/* A server notices a little later that the process before is gone. */
static inline int open_ledger(struct str location, int64_t now_us, struct ledger **ret,
                              struct err *err)
{
    for (int i = 0; ledger_open(location, now_us, 1, ret, err); i++) {
        if (err->kind != &ERR_CONFLICT || i == 500)
            return -1;
        err_clear(err);
        usleep(10000);
    }
    return 0;
}
