/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance and conversion of a pool on a host of a few objects. */
#include "grant_world.h"

static void convert(struct host_of *h, bool to_mig)
{
    cJSON *spec = json_get(h->pool, "spec");

    json_remove(spec, "mode");
    json_remove(spec, "profiles");
    if (to_mig) {
        json_set_str(h->a, spec, "mode", STR("mig"));
        json_set(h->a, spec, "profiles", object(h, "{'1g.10gb':{'gpuEq':'1/7'}}"));
    }
    stamp(h, h->pool);
}

static void advertise(struct host_of *h, int node, bool mig)
{
    cJSON *status = json_get(h->nodes[node], "status");

    json_set(h->a, status, "capacity",
             object(h, mig ? "{'" SLICES "':'56'}" : "{'nvidia.com/gpu':'8'}"));
    json_set(h->a, status, "allocatable", json_copy(h->a, json_get(status, "capacity")));
}

/* All may have more; what runs stays, and what ends is not granted again. */
static void a_cordoned_pool_grants_nothing_new(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'8'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    run_on(&h, 0, 6, "n0");
    maintain(&h, "{'state':'cordon','reason':'driver upgrade','until':'2026-12-01T08:00:00Z'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 6);
    assert_int_equal(grant_of(&h, 1), 0);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 6);
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    assert_str(status_text(&h, 1, "status.maintenance"),
               "{\"state\":\"cordon\",\"reason\":\"driver upgrade\",\"until\":"
               "\"2026-12-01T08:00:00Z\"}");
    assert_str(condition_text(&h, h.bindings[1], "Ready"), "True PoolUnavailable driver upgrade");
    assert_str(condition_text(&h, h.pool, "Maintenance"),
               "True Cordoned driver upgrade; until 2026-12-01T08:00:00Z");
    run_on(&h, 0, 2, "n0");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 2);
    h.now_s = object_time_s(h.pool, "spec.maintenance.until");
    settle(&h);
    assert_true(str_has_prefix(condition_text(&h, h.pool, "Maintenance"), STR("True Overdue ")));
    maintain(&h, "{'state':'none'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 12);
    assert_int_equal(grant_of(&h, 1), 4);
    assert_str(status_text(&h, 0, "status.maintenance"), "-");
    assert_str(condition_text(&h, h.pool, "Maintenance"), "False Open ");
    arena_free(h.a);
}

/* Also of a guarantee, and with no one who claims it. The end is that of the first notice, whatever
 * the tenant holds meanwhile. */
static void a_drained_pool_takes_all_back(void **state)
{
    struct host_of h;
    struct str end;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    settle(&h);
    run_on(&h, 0, 4, "n0");
    maintain(&h, "{'state':'drain','grace':'5m'}");
    check_step(&h, "PUT " BINDING(0) " 0\n" POOL);
    end = arena_str(h.a, time_format_s(h.a, NOW + 300));
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "4");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"), arena_cstr(h.a, end));
    assert_str(status_text(&h, 0, "status.maintenance"),
               "{\"state\":\"drain\",\"reason\":\"maintenance\",\"grace\":\"300s\"}");
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 4);
    assert_str(condition_text(&h, h.pool, "Maintenance"),
               "True Draining ; 4 GPUs of 1 bindings are held");
    for (int i = 0; i < 4; i++) { /* pod by pod, also after the end */
        h.now_s += 100;
        run_on(&h, 0, 4 - i, "n0");
        settle(&h);
        assert_int_equal(grant_of(&h, 0), 0);
        assert_str(status_text(&h, 0, "status.reclaim.notBefore"), arena_cstr(h.a, end));
    }
    run_on(&h, 0, 0, NULL);
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 0);
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    assert_str(condition_text(&h, h.pool, "Maintenance"), "True Drained ");
    maintain(&h, "{'state':'none'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    arena_free(h.a);
}

/* An edit that makes no sense gets the notice as well; of a binding that was deleted nothing is
 * left to give one to, so a condition says who holds what. */
static void a_drain_takes_from_bindings_that_do_not_count(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    run_on(&h, 0, 4, "n0");
    run_on(&h, 1, 3, "n1");
    maintain(&h, "{'state':'drain','grace':'5m'}");
    settle(&h);
    json_set_str(h.a, json_get(h.bindings[0], "spec"), "lend", STR("5"));
    json_set_i64(h.a, json_get(h.bindings[0], "metadata"), "generation", 2);
    h.bindings[1] = NULL;
    h.now_s += 30;
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "Ready"),
               "False Invalid lend must not exceed guarantee");
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "4");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 300)));
    assert_str(condition_text(&h, h.pool, "Maintenance"),
               "True Draining ; 7 GPUs of 2 bindings are held, 3 by namespace \"team-1\", whose "
               "GPUBinding was deleted: end its pods, or bind it again");
    run_on(&h, 0, 0, NULL);
    convert(&h, true);
    settle(&h);
    assert_true(str_contains(condition_text(&h, h.pool, "Converting"),
                             STR("3 GPUs of 1 bindings are held, 3 by namespace \"team-1\"")));
    run_on(&h, 1, 0, NULL);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Maintenance"), "True Drained ");
    assert_str(json_str_at(h.pool, "status.mode"), "mig");
    arena_free(h.a);
}

/* It takes all with its own grace: a notice of before it was for less, and is none of it. */
static void a_drain_ends_nothing_before_its_grace(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    run_on(&h, 0, 8, "n0");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'12'}");
    settle(&h);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "4");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 60)));
    h.now_s += 50;
    maintain(&h, "{'state':'drain','grace':'1h'}");
    settle(&h);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "8");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 3650)));
    h.now_s += 3000;
    settle(&h);
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 3650)));
    arena_free(h.a);
}

/* Its schema lets more pass than can be counted. */
static void a_capacity_that_makes_no_sense_moves_no_drain(void **state)
{
    struct host_of h;
    struct str end;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    run_on(&h, 0, 4, "n0");
    maintain(&h, "{'state':'drain','grace':'5m'}");
    settle(&h);
    end = arena_str(h.a, time_format_s(h.a, NOW + 300));
    h.now_s += 100;
    json_set_str(h.a, json_get(h.pool, "spec"), "capacity", STR("0.00001"));
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Ready"), "True Served ");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "False Refused the spec is none, and what was before it stays in force: capacity is "
               "a number of GPUs, of at most 10000 parts");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"), arena_cstr(h.a, end));
    json_remove(json_get(h.pool, "spec"), "capacity");
    h.now_s += 100;
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"), arena_cstr(h.a, end));
    assert_int_equal(object_time_s(h.pool, "status.drainSince"), NOW);
    arena_free(h.a);
}

static void a_planned_maintenance_begins_by_itself(void **state)
{
    struct host_of h;
    struct grant_state s;
    int64_t start = NOW + 1000;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    maintain(&h, "{'state':'drain'}");
    json_set_str(h.a, json_path(h.pool, "spec.maintenance"), "start", time_format_s(h.a, start));
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_true(str_has_prefix(condition_text(&h, h.pool, "Maintenance"), STR("False Planned ")));
    look(&h, &s);
    assert_int_equal(s.next_s, start);
    grant_state_end(&s);
    h.now_s = start;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    arena_free(h.a);
}

/* A schema may be older than the reader. */
static void a_maintenance_that_makes_no_sense_is_said(void **state)
{
    static const char *const none[][2] = {
        {"{'state':'drain','start':'2026-12-02T08:00:00Z','until':'2026-12-01T08:00:00Z'}",
         "maintenance: until must be after start"},
        {"{'state':'drain','grace':'25h'}",
         "maintenance.grace: want a duration of 1s to 24h, such as 10m"},
        {"{'state':'drain','until':'2026-13-01T08:00:00Z'}",
         "maintenance.until: want a time such as 2026-01-31T12:00:00Z"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(none); i++) {
        struct host_of h;

        begin(&h, 1);
        bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
        settle(&h);
        assert_str(condition_text(&h, h.pool, "Accepted"), "True Accepted ");
        maintain(&h, none[i][0]);
        settle(&h);
        assert_str(condition_text(&h, h.pool, "Accepted"),
                   arena_cstr(h.a, arena_printf(h.a,
                                                "False InvalidMaintenance spec.maintenance "
                                                "counts as none: %s",
                                                none[i][1])));
        assert_str(condition_text(&h, h.pool, "Maintenance"), "False Open ");
        assert_int_equal(grant_of(&h, 0), 8);
        maintain(&h, "{'state':'drain'}");
        settle(&h);
        assert_str(condition_text(&h, h.pool, "Accepted"), "True Accepted ");
        assert_int_equal(grant_of(&h, 0), 0);
        arena_free(h.a);
    }
}

/* The devices of before are in force until nothing of them is held; those of the spec count as
 * nodes have them, one by one; and back. */
static void a_pool_is_converted_after_it_is_drained(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    run_on(&h, 0, 3, "n0");
    convert(&h, true);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True Draining from exclusive to mig: what was before it is in force until it is "
               "drained; 3 GPUs of 1 bindings are held");
    assert_int_equal(grant_of(&h, 0), 0);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "3");
    assert_false(json_get(json_path(h.bindings[0], "status.pool"), "mode"));
    advertise(&h, 0, true); /* too early: the pod is in the way still */
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    assert_int_equal(slices_at(&h, 0), 0);
    run_on(&h, 0, 0, NULL);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "mig");
    assert_str(json_str_at(json_path(h.bindings[0], "status.pool"), "mode"), "mig");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True WaitingForNodes 1 of 2 nodes do not have its devices yet");
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 0);
    assert_int_equal(slices_at(&h, 0), 56);
    assert_int_equal(grant_of(&h, 0), 8);
    advertise(&h, 1, true);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    assert_int_equal(slices_at(&h, 0), 112);
    assert_str(status_text(&h, 0, "status.maintenance"), "-");
    convert(&h, false);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    assert_int_equal(slices_at(&h, 0), 0);
    assert_int_equal(grant_of(&h, 0), 0);
    for (int i = 0; i < 2; i++)
        advertise(&h, i, false);
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 16);
    assert_int_equal(slices_at(&h, 0), 0);
    arena_free(h.a);
}

/* Whoever holds GPUs of a pool is in the way of other devices. */
static void a_conversion_waits_for_pods_without_a_binding(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    h.holds[3] = 5;
    h.on[3] = "n0";
    convert(&h, true);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True Draining from exclusive to mig: what was before it is in force until it is "
               "drained; 0 GPUs of 0 bindings are held, and 5 by pods of namespaces without a "
               "GPUBinding, such as \"team-3\"");
    h.holds[3] = 0;
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "mig");
    arena_free(h.a);
}

static void share(struct host_of *h, int node, const char *strategy, int replicas)
{
    struct str text =
        arena_printf(h->a, "{'nvidia.com/gpu':'%d','cpu':'96'}", 8 * (replicas ? replicas : 1));
    cJSON *status = json_get(h->nodes[node], "status");

    json_set(h->a, status, "capacity", object(h, arena_cstr(h->a, text)));
    json_set(h->a, status, "allocatable", json_copy(h->a, json_get(status, "capacity")));
    json_set_str(h->a, json_path(h->nodes[node], "metadata.labels"),
                 "nvidia.com/gpu.sharing-strategy", str_c(strategy));
}

static void set_mode(struct host_of *h, const char *mode)
{
    json_set_str(h->a, json_get(h->pool, "spec"), "mode", str_c(mode));
    stamp(h, h->pool);
}

/* exclusive and time-slicing have one name of the resource: its label distinguishes a node that is
 * not converted, which has 8 whole GPUs and not 8 halves. Only while a pool is converted: of one
 * that never was, nodes count as their resource says. */
static void nodes_of_one_resource_name_are_told_apart(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    for (int i = 0; i < 2; i++)
        share(&h, i, i ? "none" : "time-slicing", 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'4'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    share(&h, 0, "none", 1);
    json_set(h.a, json_get(h.pool, "spec"), "resources",
             object(&h, "{'nvidia.com/gpu':{'gpuEq':'1/2'}}"));
    set_mode(&h, "time-slicing");
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "time-slicing");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True WaitingForNodes 2 of 2 nodes do not have its devices yet");
    assert_int_equal(grant_of(&h, 0), 0);
    set_mode(&h, "fast"); /* a mistake meanwhile forgets nothing */
    settle(&h);
    assert_true(str_has_prefix(condition_text(&h, h.pool, "Converting"), STR("True Refused ")));
    assert_int_equal(grant_of(&h, 0), 0);
    set_mode(&h, "time-slicing");
    share(&h, 0, "time-slicing", 2);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True WaitingForNodes 1 of 2 nodes do not have its devices yet");
    assert_int_equal(grant_of(&h, 0), 8);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 16);
    assert_str(json_str_at(h.pool, "status.capacity"), "8");
    share(&h, 1, "time-slicing", 2);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    assert_str(json_str_at(h.pool, "status.capacity"), "16");
    arena_free(h.a);
}

static void slice(struct host_of *h, const char *mode, const char *gpu_eq)
{
    cJSON *spec = json_get(h->pool, "spec");

    json_remove(spec, "resources");
    if (gpu_eq)
        json_set(h->a, spec, "resources",
                 object(h, arena_cstr(h->a, arena_printf(h->a, "{'nvidia.com/gpu':{'gpuEq':'%s'}}",
                                                         gpu_eq))));
    set_mode(h, mode);
}

/* A pool of two nodes whose 8 GPUs are advertised as 32 each. */
static void begin_sliced(struct host_of *h, const char *strategy)
{
    begin_unrecorded(h, 1);
    h->sliced = true;
    slice(h, "time-slicing", "1/4");
    for (int i = 0; i < 2; i++) {
        share(h, i, strategy, 4);
        if (!*strategy)
            json_remove(json_path(h->nodes[i], "metadata.labels"),
                        "nvidia.com/gpu.sharing-strategy");
    }
    bind_team(h, 0, "{'pool':'a100','burst':'64'}");
    settle(h);
    assert_int_equal(grant_of(h, 0), 16);
    assert_int_equal(units_at(h->quotas[0], "spec.hard"), 64);
}

/* One name, another part of a GPU: of a node only its label says that it was converted, so that 32
 * quarters are never 32 GPUs, whatever becomes of the label or of the spec meanwhile. */
static void nodes_without_a_label_are_not_taken_for_converted(void **state)
{
    struct host_of h;

    (void)state;
    begin_sliced(&h, "");
    slice(&h, "exclusive", NULL);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    assert_str(condition_text(&h, h.pool, "Converting"),
               "True WaitingForNodes 2 of 2 nodes do not have its devices yet; 2 have no label "
               "nvidia.com/gpu.sharing-strategy");
    assert_str(json_str_at(h.pool, "status.convertsFrom"), "time-slicing nvidia.com/gpu=0.25");
    assert_int_equal(grant_of(&h, 0), 0);
    set_mode(&h, "fast");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    slice(&h, "mps", "1/4"); /* what the nodes have could be neither */
    settle(&h);
    assert_true(
        str_contains(condition_text(&h, h.pool, "Converting"), STR("are converted still, from")));
    assert_int_equal(grant_of(&h, 0), 0);
    slice(&h, "exclusive", NULL);
    share(&h, 0, "none", 1);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_str(json_str_at(h.pool, "status.convertsFrom"), "time-slicing nvidia.com/gpu=0.25");
    share(&h, 1, "none", 1);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    assert_str(json_str_at(h.pool, "status.convertsFrom"), "");
    json_remove(json_path(h.nodes[1], "metadata.labels"), "nvidia.com/gpu.sharing-strategy");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 16); /* the label counts no longer */
    arena_free(h.a);
}

static void a_label_that_goes_converts_no_node(void **state)
{
    struct host_of h;

    (void)state;
    begin_sliced(&h, "time-slicing");
    slice(&h, "exclusive", NULL);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "exclusive");
    json_remove(json_path(h.nodes[0], "metadata.labels"), "nvidia.com/gpu.sharing-strategy");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 0);
    share(&h, 0, "time-slicing", 4);
    slice(&h, "time-slicing", "1/4"); /* back to what it was: the nodes have it */
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "time-slicing");
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    assert_int_equal(grant_of(&h, 0), 16);
    arena_free(h.a);
}

/* Neither name nor label distinguishes them: the conversion is not begun. */
static void indistinguishable_devices_are_refused(void **state)
{
    struct host_of h;

    (void)state;
    begin_sliced(&h, "time-slicing");
    slice(&h, "time-slicing", "1/2");
    settle(&h);
    assert_str(
        condition_text(&h, h.pool, "Converting"),
        "False Refused the spec is none, and what was before it stays in force: nothing on "
        "a node distinguishes its nvidia.com/gpu from those of before, which are other parts of a "
        "GPU: give the resource another name, by the device plugin and `rename`");
    assert_int_equal(grant_of(&h, 0), 16);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 64);
    slice(&h, "time-slicing", "1/4");
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    arena_free(h.a);
}

/* What is in force is on record before anything is granted: a change that comes right after the
 * first grant drains, whenever the process ends. */
static void nothing_is_granted_before_what_is_in_force_is_on_record(void **state)
{
    struct host_of h;

    (void)state;
    begin_unrecorded(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    check_step(&h, POOL);
    assert_str(json_str_at(h.pool, "status.inForce.name"), "a100");
    check_step(&h, "POST " QUOTA(0) HARD(4) "PUT " BINDING(0) " 0\n");
    convert(&h, true);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "mig"); /* nothing was held */
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 0);

    arena_free(h.a);
    begin_unrecorded(&h, 1); /* a definition that prunes what is in force */
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    check_step(&h, POOL);
    json_remove(json_get(h.pool, "status"), "inForce");
    stamp(&h, h.pool);
    check_step(&h, "POST " QUOTA(0) HARD(4) "PUT " BINDING(0) " 0\n" POOL);
    arena_free(h.a);
}

/* What such a node has is lent to none; what runs there stays, and no guarantee is less. */
static void a_node_set_aside_lends_nothing(void **state)
{
    static const char *const labels[][2] = {
        {"nvidia.com/mig.config.state", "pending"},
        {"nvidia.com/gpu-driver-upgrade-state", "drain-required"}};

    (void)state;
    for (size_t i = 0; i <= COUNT(labels); i++) {
        struct host_of h;

        begin(&h, 1);
        bind_team(&h, 0, "{'pool':'a100','guarantee':'2','burst':'14'}");
        settle(&h);
        run_on(&h, 0, 3, "n0");
        if (i < COUNT(labels))
            json_set_str(h.a, json_path(h.nodes[0], "metadata.labels"), labels[i][0],
                         str_c(labels[i][1]));
        else
            json_set(h.a, h.nodes[0], "spec", object(&h, "{'unschedulable':true}"));
        settle(&h);
        assert_int_equal(grant_of(&h, 0), 11); /* 8 of the other node, 3 that run */
        assert_str(status_text(&h, 0, "status.reclaim"), "-");
        arena_free(h.a);
    }
}

/* Before anything of it was taken away. */
static void a_conversion_may_be_taken_back(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    run_on(&h, 0, 3, "n0");
    convert(&h, true);
    settle(&h);
    convert(&h, false);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    assert_str(condition_text(&h, h.pool, "Converting"), "False AsSpecified ");
    arena_free(h.a);
}

/* No GPU is promised while a slice is, nor the other way round, wherever a process ends. */
static void check_one_mode(const struct host_of *h)
{
    bool gpus = false, slices = false;

    for (int i = 0; i < TENANTS; i++) {
        gpus |= units_at(h->quotas[i], "spec.hard") > 0 || h->holds[i] > 0;
        slices |= slices_at(h, i) > 0;
    }
    assert_false(gpus && slices);
}

static void a_conversion_survives_an_end_between_any_two_writes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct host_of h;
        bool mig = false;

        begin_unrecorded(&h, seed);
        for (int i = 0; i < TENANTS; i++)
            bind_team(&h, i, "{'pool':'a100','guarantee':'2','burst':'8'}");
        for (int k = 0; k < 40; k++) {
            struct grant_write writes[3 * TENANTS + 1];
            struct grant_state s;
            size_t at = 0, n = 0;

            if (BELOW(&h.random, 6) == 0)
                convert(&h, mig = BELOW(&h.random, 2));
            advertise(&h, (int)BELOW(&h.random, 2), mig);
            h.now_s += (int64_t)BELOW(&h.random, 90);
            look(&h, &s);
            while (n < COUNT(writes) && grant_next_write(&s, &at, &writes[n]))
                n++;
            for (size_t m = n ? (size_t)BELOW(&h.random, n + 1) : 0; m-- > 0;) {
                int i = (int)BELOW(&h.random, TENANTS);
                int64_t most = units_at(h.quotas[i], "spec.hard");

                apply(&h, &writes[BELOW(&h.random, n)]);
                check_one_mode(&h);
                if (h.quotas[i])
                    run_on(&h, i, BELOW(&h.random, most + 1), NULL);
            }
            grant_state_end(&s);
        }
        arena_free(h.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cordoned_pool_grants_nothing_new),
        cmocka_unit_test(a_drained_pool_takes_all_back),
        cmocka_unit_test(a_drain_takes_from_bindings_that_do_not_count),
        cmocka_unit_test(a_drain_ends_nothing_before_its_grace),
        cmocka_unit_test(a_capacity_that_makes_no_sense_moves_no_drain),
        cmocka_unit_test(a_planned_maintenance_begins_by_itself),
        cmocka_unit_test(a_maintenance_that_makes_no_sense_is_said),
        cmocka_unit_test(a_conversion_waits_for_pods_without_a_binding),
        cmocka_unit_test(nodes_of_one_resource_name_are_told_apart),
        cmocka_unit_test(nodes_without_a_label_are_not_taken_for_converted),
        cmocka_unit_test(a_label_that_goes_converts_no_node),
        cmocka_unit_test(indistinguishable_devices_are_refused),
        cmocka_unit_test(nothing_is_granted_before_what_is_in_force_is_on_record),
        cmocka_unit_test(a_pool_is_converted_after_it_is_drained),
        cmocka_unit_test(a_node_set_aside_lends_nothing),
        cmocka_unit_test(a_conversion_may_be_taken_back),
        cmocka_unit_test(a_conversion_survives_an_end_between_any_two_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
