/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a pool: each combination of facts, and what no fact may move. */
#include "test.h"

#include "grants/grant_phase.h"

#define NOW INT64_C(1790000000)

static struct grant_phase_facts facts(enum maintenance_state state)
{
    return (struct grant_phase_facts){.wants = {.state = state}, .now_s = NOW, .grace_s = 60};
}

static void check_state(const struct grant_phase *p, const char *want)
{
    const char *got = grant_phase_state(p);

    assert_str(got ? str_c(got) : STR("-"), want);
}

static void maintenance_opens_closes_and_drains(void **state)
{
    static const struct {
        enum maintenance_state wants;
        int64_t start_s;
        bool empty;
        enum grant_maintenance is;
        enum share_door door;
        const char *word;
    } rows[] = {
        {MAINTENANCE_NONE, 0, false, GRANT_OPEN, SHARE_OPEN, "-"},
        {MAINTENANCE_NONE, NOW + 1, true, GRANT_OPEN, SHARE_OPEN, "-"},
        {MAINTENANCE_CORDON, 0, false, GRANT_CORDONED, SHARE_CLOSED, "cordoned"},
        {MAINTENANCE_CORDON, 0, true, GRANT_CORDONED, SHARE_CLOSED, "cordoned"},
        {MAINTENANCE_CORDON, NOW, false, GRANT_CORDONED, SHARE_CLOSED, "cordoned"},
        {MAINTENANCE_CORDON, NOW + 1, false, GRANT_PLANNED, SHARE_OPEN, "-"},
        {MAINTENANCE_DRAIN, 0, false, GRANT_DRAINING, SHARE_DRAINED, "draining"},
        {MAINTENANCE_DRAIN, 0, true, GRANT_DRAINED, SHARE_DRAINED, "drained"},
        {MAINTENANCE_DRAIN, NOW + 1, true, GRANT_PLANNED, SHARE_OPEN, "-"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grant_phase_facts f = facts(rows[i].wants);
        struct grant_phase p;

        f.wants.start_s = rows[i].start_s;
        f.empty = rows[i].empty;
        p = grant_phase_of(&f);
        assert_int_equal(p.maintenance, rows[i].is);
        assert_int_equal(p.door, rows[i].door);
        assert_int_equal(p.conversion, GRANT_AS_IT_IS);
        assert_false(p.switches);
        check_state(&p, rows[i].word);
    }
}

static void a_conversion_switches_only_what_is_empty(void **state)
{
    struct grant_phase_facts f = facts(MAINTENANCE_NONE);
    struct grant_phase p;

    (void)state;
    f.differs = true;
    p = grant_phase_of(&f);
    assert_int_equal(p.conversion, GRANT_CONVERTS);
    assert_int_equal(p.door, SHARE_DRAINED);
    assert_false(p.switches);
    check_state(&p, "converting");
    f.empty = true;
    p = grant_phase_of(&f);
    assert_int_equal(p.conversion, GRANT_WAITS_FOR_NODES);
    assert_true(p.switches);
    f.invalid = true; /* what makes no sense is never put in force */
    assert_false(grant_phase_of(&f).switches);
    f = facts(MAINTENANCE_NONE);
    f.invalid = true;
    p = grant_phase_of(&f);
    assert_int_equal(p.conversion, GRANT_REFUSED);
    assert_int_equal(p.door, SHARE_OPEN); /* ... and drains nothing */
    f = facts(MAINTENANCE_NONE);
    f.changing = 1; /* a node is late, of a pool that was not converted */
    assert_int_equal(grant_phase_of(&f).conversion, GRANT_AS_IT_IS);
    f.was_changing = true;
    p = grant_phase_of(&f);
    assert_int_equal(p.conversion, GRANT_WAITS_FOR_NODES);
    assert_int_equal(p.door, SHARE_OPEN); /* of those that are converted */
    check_state(&p, "waiting-for-nodes");
    f.changing = 0;
    assert_int_equal(grant_phase_of(&f).conversion, GRANT_AS_IT_IS);
}

/* From its own beginning; a clock that was set back prolongs it by no more than that. */
static void the_end_of_a_drain_stays(void **state)
{
    struct grant_phase_facts f = facts(MAINTENANCE_DRAIN);
    struct grant_phase p = grant_phase_of(&f);

    (void)state;
    assert_int_equal(p.since_s, NOW);
    assert_int_equal(p.not_before_s, NOW + 60);
    f.since_s = NOW - 50;
    f.empty = true;
    assert_int_equal(grant_phase_of(&f).not_before_s, NOW + 10);
    f.wants.grace_s = 300;
    assert_int_equal(grant_phase_of(&f).not_before_s, NOW + 250);
    f.since_s = NOW + 1000;
    assert_int_equal(grant_phase_of(&f).not_before_s, NOW + 300);
    f.wants.state = MAINTENANCE_CORDON; /* no drain, no end */
    p = grant_phase_of(&f);
    assert_int_equal(p.since_s, 0);
    assert_int_equal(p.not_before_s, 0);
    f = facts(MAINTENANCE_NONE); /* of a conversion: the usual one, whatever is written beside it */
    f.differs = true;
    f.wants.grace_s = 300;
    assert_int_equal(grant_phase_of(&f).not_before_s, NOW + 60);
}

static void what_follows_by_itself_is_announced(void **state)
{
    struct grant_phase_facts f = facts(MAINTENANCE_DRAIN);

    (void)state;
    assert_int_equal(grant_phase_of(&f).next_s, 0);
    f.wants.start_s = NOW + 10;
    f.wants.until_s = NOW + 20;
    assert_int_equal(grant_phase_of(&f).next_s, NOW + 10);
    f.now_s = NOW + 10;
    assert_int_equal(grant_phase_of(&f).next_s, NOW + 20);
    assert_false(grant_phase_of(&f).overdue);
    f.now_s = NOW + 20;
    assert_true(grant_phase_of(&f).overdue);
    assert_int_equal(grant_phase_of(&f).next_s, 0);
    f.wants.state = MAINTENANCE_NONE;
    assert_false(grant_phase_of(&f).overdue);
}

static struct pool_resource resource(const char *name, const char *host, int64_t num, int64_t den)
{
    return (struct pool_resource){
        .name = str_c(name), .host_name = str_c(host), .gpu_eq = {num, den}};
}

static void further_devices_of_the_mode_are_no_conversion(void **state)
{
    struct pool_resource had[] = {resource("gpu", "host/gpu", 1, 1)};
    struct pool_resource more[] = {resource("new", "host/new", 1, 7),
                                   resource("gpu", "host/gpu", 1, 1)};
    struct pool_resource renamed[] = {resource("gpu", "host/other", 1, 1)};
    struct pool_resource weighed[] = {resource("gpu", "host/gpu", 1, 2)};
    struct config_pool now = {.resources = had, .n_resources = 1}, next = now;

    (void)state;
    assert_true(grant_devices_stay(&now, &next));
    next.resources = more;
    next.n_resources = 2;
    assert_true(grant_devices_stay(&now, &next));
    assert_false(grant_devices_stay(&next, &now)); /* what is taken away may be held */
    next.n_resources = 1;
    next.resources = renamed;
    assert_false(grant_devices_stay(&now, &next));
    next.resources = weighed;
    assert_false(grant_devices_stay(&now, &next));
    next = now;
    next.mode = POOL_MIG;
    assert_false(grant_devices_stay(&now, &next));
}

static void a_name_of_other_devices_is_found(void **state)
{
    struct pool_resource gpu = {
        .name = STR("nvidia.com/gpu"), .host_name = STR("nvidia.com/gpu"), .gpu_eq = {1, 1}};
    struct pool_resource part = gpu, renamed = gpu;
    struct config_pool now = {.resources = &gpu, .n_resources = 1};
    struct config_pool next = {.mode = POOL_MPS, .resources = &part, .n_resources = 1};

    (void)state;
    assert_str(grant_devices_mixed(&now, &next), ""); /* each is a GPU in both */
    part.gpu_eq = (struct rational){1, 4};
    assert_str(grant_devices_mixed(&now, &next), "nvidia.com/gpu");
    renamed.host_name = STR("nvidia.com/gpu.shared");
    renamed.gpu_eq = part.gpu_eq;
    next.resources = &renamed;
    assert_str(grant_devices_mixed(&now, &next), "");
    next.resources = &part; /* a slice of MIG is by its name what it is */
    now.mode = next.mode = POOL_MIG;
    assert_str(grant_devices_mixed(&now, &next), "");
    assert_str(grant_strategy(POOL_MIG), "none");
    assert_str(grant_strategy(POOL_MPS), "mps");
    assert_str(grant_strategy(POOL_HAMI), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maintenance_opens_closes_and_drains),
        cmocka_unit_test(a_conversion_switches_only_what_is_empty),
        cmocka_unit_test(the_end_of_a_drain_stays),
        cmocka_unit_test(what_follows_by_itself_is_announced),
        cmocka_unit_test(further_devices_of_the_mode_are_no_conversion),
        cmocka_unit_test(a_name_of_other_devices_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
