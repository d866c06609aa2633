/* SPDX-License-Identifier: Apache-2.0 */
/* The table of synced kinds: fixed rows keep their place, added ones follow, and records of
 * kinds with the same plural are distinct. */
#include "core/core.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static const struct sync_handlers HANDLERS[N_SYNC_FIXED];

static void fixed_rows_are_in_the_order_of_the_enum(void **state)
{
    struct syncer s = {.arena = arena_new(0)};

    (void)state;
    sync_kinds_init(&s, HANDLERS);
    assert_int_equal(s.n_kinds, N_SYNC_FIXED);
    assert_string_equal(s.kinds[SYNC_PODS].plural, "pods");
    assert_string_equal(s.kinds[SYNC_CLAIMS].record, "persistentvolumeclaims");
    assert_string_equal(s.kinds[SYNC_EVENTS].plural, "events");
    for (size_t id = 0; id < s.n_kinds; id++) {
        assert_int_equal(sync_kind_of_record(&s, str_c(s.kinds[id].record)), id);
        assert_ptr_equal(s.kinds[id].handlers, &HANDLERS[id]);
    }
    assert_int_equal(sync_kind_of_record(&s, STR("ingresses.networking.k8s.io")), SYNC_NONE);
    arena_free(s.arena);
}

static void added_rows_follow_and_have_records_of_their_own(void **state)
{
    struct sync_handlers of_added = {0};
    struct syncer s = {.arena = arena_new(0)};
    enum sync_id last = SYNC_NONE;

    (void)state;
    sync_kinds_init(&s, HANDLERS);
    for (int i = 0; i < 40; i++) {
        struct str record = arena_printf(s.arena, "services.group%d.example", i);
        struct sync_kind kind = {.plural = "services", .record = record.p, .handlers = &of_added};

        last = sync_kind_add(&s, &kind);
        assert_int_equal(last, N_SYNC_FIXED + i);
    }
    assert_int_equal(s.n_kinds, N_SYNC_FIXED + 40);
    assert_int_equal(sync_kind_of_record(&s, STR("services")), SYNC_SERVICES);
    assert_int_equal(sync_kind_of_record(&s, STR("services.group39.example")), last);
    assert_string_equal(s.kinds[SYNC_NODES].plural, "nodes");
    arena_free(s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_rows_are_in_the_order_of_the_enum),
        cmocka_unit_test(added_rows_follow_and_have_records_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
