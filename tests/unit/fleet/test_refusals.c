/* SPDX-License-Identifier: Apache-2.0 */
/* What the host refuses is tried again after pauses that grow, what differs at once, and it is
 * forgotten once it is taken or not wanted any more. */
#include "test.h"

#include <sublet/buf.h>
#include <sublet/json.h>

#include "grants/refusals.h"
#include "../../quoted.h"

#define QUOTA   STR("/api/v1/namespaces/a/resourcequotas/sublet-gpu")
#define BINDING STR(GRANT_GROUP "/namespaces/a/gpubindings/queues/status")
#define A100    STR("a100")

static bool note(struct refusals *r, struct str part, uint64_t wish, int64_t now_ms)
{
    return fleet_refusals_note(r, QUOTA, part, wish, STR("a policy"), now_ms);
}

static void pauses_grow_to_half_a_minute(void **state)
{
    static const int64_t pauses[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct refusals *r = fleet_refusals_new();
    int64_t now = 5000;

    (void)state;
    assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, now), 0);
    for (size_t i = 0; i < COUNT(pauses); i++) {
        assert_int_equal(note(r, A100, 1, now), i == 0);
        assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, now), pauses[i]);
        assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, now + pauses[i] - 1), 1);
        now += pauses[i];
        assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, now), 0);
    }
    assert_str(fleet_refusals_why(r, QUOTA, A100), "a policy");
    fleet_refusals_taken(r, QUOTA, A100);
    assert_int_equal(fleet_refusals_count(r), 0);
    assert_true(note(r, A100, 1, now)); /* anew */
    assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, now), 1000);
    fleet_refusals_free(r);
}

static void another_wish_is_sent_at_once_and_another_part_is_apart(void **state)
{
    struct refusals *r = fleet_refusals_new();

    (void)state;
    note(r, A100, 1, 0);
    assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 2, 0), 0);
    assert_int_equal(fleet_refusals_wait(r, QUOTA, STR("l4"), 1, 0), 0);
    assert_str(fleet_refusals_why(r, QUOTA, STR("l4")), "");
    note(r, STR("l4"), 7, 0);
    assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 1, 0), 1000); /* as before */
    note(r, A100, 2, 0);
    assert_int_equal(fleet_refusals_wait(r, QUOTA, A100, 2, 0), 2000); /* it grows on */
    fleet_refusals_free(r);
}

static void what_is_not_wanted_is_forgotten(void **state)
{
    struct refusals *r = fleet_refusals_new();

    (void)state;
    note(r, A100, 1, 0);
    assert_false(fleet_refusals_forget(r)); /* of this turn */
    (void)fleet_refusals_wait(r, QUOTA, A100, 1, 0);
    assert_false(fleet_refusals_forget(r));
    assert_int_equal(fleet_refusals_count(r), 1);
    assert_true(fleet_refusals_forget(r));
    assert_int_equal(fleet_refusals_count(r), 0);
    assert_false(fleet_refusals_forget(r));
    fleet_refusals_free(r);
}

static void what_is_a_refusal(void **state)
{
    static const struct err_kind *const are[] = {&ERR_FORBIDDEN, &ERR_INVALID, &ERR_BAD_REQUEST,
                                                 &ERR_TOO_LARGE, &ERR_UNKNOWN, &ERR_INTERNAL},
                                        *const are_not[] = {
                                            &ERR_CONFLICT,          &ERR_NOT_FOUND,
                                            &ERR_ALREADY_EXISTS,    &ERR_UNAVAILABLE,
                                            &ERR_TOO_MANY_REQUESTS, &ERR_TIMEOUT};
    struct err err;

    (void)state;
    err_init(&err, NULL);
    assert_false(fleet_is_refusal(NULL));
    assert_false(fleet_is_refusal(&err));
    for (size_t i = 0; i < COUNT(are); i++) {
        err_set(&err, are[i], "no");
        assert_true(fleet_is_refusal(&err));
    }
    for (size_t i = 0; i < COUNT(are_not); i++) {
        err_set(&err, are_not[i], "no");
        assert_false(fleet_is_refusal(&err));
    }
}

static uint64_t wish_of(struct arena *a, const char *kind, const char *body)
{
    const struct grant_write w = {.kind = kind, .body = quoted_json(a, str_c(body))};

    return fleet_refusals_wish(a, &w);
}

static void a_wish_is_without_its_version(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_true(
        wish_of(a, NULL, "{'metadata':{'resourceVersion':'1'},'spec':{'hard':{'x':'1'}}}") ==
        wish_of(a, NULL, "{'metadata':{'resourceVersion':'2'},'spec':{'hard':{'x':'1'}}}"));
    assert_true(wish_of(a, NULL, "{'spec':{'hard':{'x':'1'}}}") !=
                wish_of(a, NULL, "{'spec':{'hard':{'x':'2'}}}"));
    assert_true(
        wish_of(a, "GPUBinding", "{'spec':{'burst':1},'status':{'grant':'1','lent':'1'}}") ==
        wish_of(a, "GPUBinding", "{'spec':{'burst':2},'status':{'grant':'1','lent':'2'}}"));
    assert_true(wish_of(a, "GPUBinding", "{'status':{'grant':'1'}}") !=
                wish_of(a, "GPUBinding", "{'status':{'grant':'2'}}"));
    arena_free(a);
}

static void are_counted_by_kind(void **state)
{
    struct refusals *r = fleet_refusals_new();
    struct buf out = BUF_INIT(0);

    (void)state;
    note(r, A100, 1, 0);
    note(r, STR("l4"), 1, 0);
    fleet_refusals_note(r, BINDING, STR(""), 1, STR(""), 0); /* whatever its name is */
    assert_str(fleet_refusals_why(r, BINDING, STR("")), "refused");
    fleet_refusals_metrics(r, &out);
    assert_true(str_contains(buf_str(&out), STR("{kind=\"ResourceQuota\"} 2\n")));
    assert_true(str_contains(buf_str(&out), STR("{kind=\"GPUBinding\"} 1\n")));
    assert_true(str_contains(buf_str(&out), STR("{kind=\"GPUPool\"} 0\n")));
    assert_true(str_contains(buf_str(&out), STR("{kind=\"Queue\"} 0\n")));
    buf_fini(&out);
    fleet_refusals_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_to_half_a_minute),
        cmocka_unit_test(another_wish_is_sent_at_once_and_another_part_is_apart),
        cmocka_unit_test(what_is_not_wanted_is_forgotten),
        cmocka_unit_test(what_is_a_refusal),
        cmocka_unit_test(a_wish_is_without_its_version),
        cmocka_unit_test(are_counted_by_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
