/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of a later epoch branched off, by the turns on record of both: what is known to be
 * in common never exceeds what is. */
#include "core/turns.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sublet/mem.h>

#define TURN(name, at)                                                                             \
    {                                                                                              \
        {name, sizeof(name) - 1}, at                                                               \
    }
#define EIGHT                                                                                      \
    TURN("a", 1), TURN("b", 2), TURN("c", 3), TURN("d", 4), TURN("e", 5), TURN("f", 6),            \
        TURN("g", 7), TURN("h", 8)

static void what_is_in_common(void **state)
{
    static const struct {
        struct turns ours;
        const char *branch;
        bool is_known;
        int64_t known, possible;
    } rows[] = {
        /* the original went on in our last turn, and in the one before */
        {{.list = {TURN("a", 10), TURN("b", 20)}, .n = 2, .end = 30},
         "50/-/a@10,b@20",
         true,
         30,
         50},
        {{.list = {TURN("a", 10), TURN("b", 20)}, .n = 2, .end = 30}, "50/-/a@10", true, 20, 20},
        /* the backup is older than our end */
        {{.list = {TURN("a", 10)}, .n = 1, .end = 30}, "15/-/a@10", true, 15, 15},
        /* it has a turn that we lack */
        {{.list = {TURN("a", 10)}, .n = 1, .end = 30}, "50/-/a@10,b@25", true, 25, 25},
        /* its copy was written without a turn */
        {{.list = {TURN("a", 10)}, .n = 1, .end = 30}, "50/12/a@10", true, 12, 50},
        /* neither, or one of them, has led when they branched off */
        {{.n = 0, .end = 10}, "50/-/a@10", true, 10, 50},
        {{.n = 0, .end = 10}, "50/10/", true, 10, 50},
        {{.list = {TURN("a", 10)}, .n = 1, .end = 30}, "50/10/", true, 10, 50},
        {{.list = {TURN("a", 10)}, .n = 1, .end = 30}, "50/-/b@10", true, 10, 50},
        /* no record of our epoch came with the backup */
        {{.n = 0, .end = 10}, "50", true, 10, 50},
        /* first turns that are off the record */
        {{.list = {EIGHT}, .n = 8, .end = 9}, "50/-/x@4", false, 0, 0},
        {{.n = 0, .end = 1}, "50/-/a@1,b@2,c@3,d@4,e@5,f@6,g@7,h@8", false, 0, 0},
        {{.list = {TURN("*", 0)}, .n = 1, .end = 9}, "50/-/a@1", false, 0, 0},
        {{.n = 0, .end = 1}, "none/-/a@1", false, 0, 0},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t known = 0, possible = 0;
        bool is_known =
            sync_turns_common(&rows[i].ours, a, str_c(rows[i].branch), &known, &possible);

        if (is_known != rows[i].is_known || known != rows[i].known || possible != rows[i].possible)
            fail_msg("row %zu: %d %lld %lld", i, is_known, (long long)known, (long long)possible);
    }
    arena_free(a);
}

/* Two restores: what both have is what both backups had. */
static void where_two_parted(void **state)
{
    static const struct {
        const char *ours, *theirs;
        bool is_known;
        int64_t known, possible;
    } rows[] = {
        /* of one backup */
        {"50/-/a@10,b@20", "50/-/a@10,b@20", true, 50, 50},
        /* of an earlier and of a later one */
        {"30/-/a@10", "50/-/a@10,b@40", true, 30, 30},
        {"50/-/a@10,b@40", "30/-/a@10", true, 30, 30},
        {"50/-/a@10,b@20", "60/-/a@10,c@30", true, 20, 20},
        /* of copies that were written without a turn */
        {"50/12/a@10", "50/-/a@10", true, 12, 50},
        {"50/-/a@10", "50/12/a@10", true, 12, 50},
        /* no record came with them */
        {"50", "40", true, 40, 40},
        {"50/-/*@0", "50/-/a@10", false, 0, 0},
        {"none", "50", false, 0, 0},
        {"50", "none", false, 0, 0},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t known = 0, possible = 0;
        bool is_known =
            sync_turns_parted(a, str_c(rows[i].ours), str_c(rows[i].theirs), &known, &possible);

        if (is_known != rows[i].is_known || known != rows[i].known || possible != rows[i].possible)
            fail_msg("row %zu: %d %lld %lld", i, is_known, (long long)known, (long long)possible);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_common),
        cmocka_unit_test(where_two_parted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
