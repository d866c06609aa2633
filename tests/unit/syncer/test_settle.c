/* SPDX-License-Identifier: Apache-2.0 */
/* The decision on the two sides of a key, row by row; and over all combinations, that nothing is
 * deleted without proof. */
#include "core/settle.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sublet/mem.h>

#define THERE   .exists = true, .readable = true
#define ON_HOST .on_host = true

static void each_row(void **state)
{
    static const struct {
        struct sync_sides sides;
        enum sync_settlement settlement;
    } rows[] = {
        {{THERE}, SETTLE_NOTHING},
        {{THERE, .was_on_host = true}, SETTLE_CREATE},
        {{THERE, .was_on_host = true, .terminating = true}, SETTLE_NOTHING},
        {{THERE, .was_on_host = true, .finished = true}, SETTLE_NOTHING},
        {{.exists = true, .was_on_host = true}, SETTLE_NOTHING},
        {{THERE, ON_HOST, .own = true}, SETTLE_KEEP},
        {{THERE, ON_HOST, .own = true, .host_terminating = true, .stale = true}, SETTLE_AWAIT},
        {{ON_HOST}, SETTLE_QUARANTINE},
        {{ON_HOST, .known = true}, SETTLE_QUARANTINE}, /* a claim on record of another life */
        {{ON_HOST, .known = true, .proven = true}, SETTLE_DELETE},
        {{ON_HOST, .exists = true}, SETTLE_QUARANTINE},
        {{ON_HOST, .exists = true, .known = true, .proven = true}, SETTLE_SPARE},
        {{THERE, ON_HOST}, SETTLE_QUARANTINE},
        {{THERE, ON_HOST, .fits = true}, SETTLE_TAKE_OVER},
        {{THERE, ON_HOST, .host_terminating = true}, SETTLE_AWAIT},
        {{THERE, ON_HOST, .known = true, .proven = true}, SETTLE_DELETE},
        {{THERE, ON_HOST, .known = true, .proven = true, .damaged = true, .fits = true},
         SETTLE_TAKE_OVER},
        {{THERE, ON_HOST, .terminating = true, .fits = true}, SETTLE_QUARANTINE},
        {{THERE, ON_HOST, .terminating = true, .known = true}, SETTLE_SPARE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (sync_settle(&rows[i].sides) != rows[i].settlement)
            fail_msg("row %zu: %d", i, sync_settle(&rows[i].sides));
}

static void nothing_is_deleted_without_proof(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 1u << 14; bits++) {
        struct sync_sides x = {bits & 1,       bits >> 1 & 1, bits >> 2 & 1,  bits >> 3 & 1,
                               bits >> 4 & 1,  bits >> 5 & 1, bits >> 6 & 1,  bits >> 7 & 1,
                               bits >> 8 & 1,  bits >> 9 & 1, bits >> 10 & 1, bits >> 11 & 1,
                               bits >> 12 & 1, bits >> 13 & 1};
        enum sync_settlement settlement = sync_settle(&x);

        if (settlement == SETTLE_DELETE)
            assert_true(x.on_host && x.proven && (!x.exists || x.readable));
        if (settlement == SETTLE_TAKE_OVER)
            assert_true(x.on_host && x.readable && x.fits);
        if (settlement == SETTLE_CREATE)
            assert_true(!x.on_host && x.readable && !x.terminating);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row),
        cmocka_unit_test(nothing_is_deleted_without_proof),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
