/* SPDX-License-Identifier: Apache-2.0 */
/* Grants on a host of a few objects: what is written in which order, and that a process which is
 * ended between any two writes leaves nothing that its successor promises twice. */
#include "grant_world.h"

static void the_quota_is_raised_before_the_grant(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':8}");
    check_step(&h, "POST " QUOTA(0) HARD(12) "PUT " BINDING(0) " 0\n" POOL);
    check_step(&h, "PUT " BINDING(0) " 12\n");
    check_step(&h, POOL);
    check_step(&h, ""); /* at rest nothing is written */
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    assert_str(condition_text(&h, h.bindings[0], "Borrowing"), "True BeyondGuarantee ");
    assert_str(status_text(&h, 0, "status.pool"),
               "{\"name\":\"a100\",\"nodeSelector\":{\"sublet.dev/pool\":\"a100\"}}");
    assert_str(json_str_at(h.pool, "status.capacity"), "16");
    assert_str(json_str_at(h.pool, "status.guaranteed"), "4");
    assert_str(json_str_at(h.pool, "status.granted"), "12");
    assert_str(json_str_at(h.pool, "status.free"), "4");
    arena_free(h.a);
}

static void a_guarantee_is_taken_back_with_notice(void **state)
{
    struct host_of h;
    struct buf unused = BUF_INIT(0);

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    while (step(&h, &unused))
        ;
    buf_fini(&unused);
    h.holds[0] = 16;
    charge(&h, 0);
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    check_step(&h, "POST " QUOTA(1) HARD(0) "PUT " BINDING(0) " 8\nPUT " BINDING(1) " 0\n" POOL);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "8");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 60)));
    assert_str(condition_text(&h, h.bindings[0], "Reclaiming"),
               "True BeyondGrant pods are ended after reclaim.notBefore");
    h.now_s += 30;
    check_step(&h, POOL); /* until the pods end */
    check_step(&h, "");
    h.holds[0] = 10;
    check_step(&h, "PUT " BINDING(0) " 8\n");
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "2");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 60)));
    h.holds[0] = 8; /* its pods ended; what admission has charged is of before */
    check_step(&h, "PUT " BINDING(0) " 8\n");
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    charge(&h, 0);
    check_step(&h, "PUT " QUOTA(0) HARD(8));
    check_step(&h, "PUT " QUOTA(1) HARD(8));
    check_step(&h, "PUT " BINDING(1) " 8\n");
    check_step(&h, POOL);
    check_step(&h, "");
    arena_free(h.a);
}

/* The one pod that does not end keeps what it has, not what others gave back. */
static void what_is_given_back_is_granted_before_the_last_pod_ends(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    run_on(&h, 0, 16, NULL);
    bind_team(&h, 1, "{'pool':'a100','guarantee':'12'}");
    settle(&h);
    run_on(&h, 0, 6, NULL);
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 6);
    assert_int_equal(grant_of(&h, 1), 10);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "2");
    arena_free(h.a);
}

static void want(struct host_of *h, int tenant, const char *gpus)
{
    h->demands[tenant] = json_object(
        h->a,
        JSON("metadata",
             json_object(h->a, JSON("namespace", arena_printf(h->a, "team-%d", tenant)))),
        JSON("data", json_object(h->a, JSON("a100", gpus))));
}

static void check_lending(struct host_of *h, int64_t grant, const char *lent, const char *most,
                          int64_t until_s)
{
    assert_int_equal(grant_of(h, 0), grant);
    assert_str(status_text(h, 0, "status.lent"), lent);
    assert_str(status_text(h, 0, "status.lendPause.lend"), most);
    assert_str(status_text(h, 0, "status.lendPause.until"),
               until_s ? arena_cstr(h->a, time_format_s(h->a, until_s)) : "-");
}

/* What a lender takes back stays its own for a time, across processes; what it still lends is
 * lent. At rest nothing is written, however time passes. */
static void what_is_taken_back_is_not_lent_for_a_time(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8','lend':'6'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8','burst':'8'}");
    settle(&h);
    check_lending(&h, 8, "-", "-", 0);
    want(&h, 0, "1");
    settle(&h);
    check_lending(&h, 2, "6", "-", 0);
    h.now_s += 10;
    want(&h, 0, "5");
    settle(&h);
    check_lending(&h, 5, "3", "3", NOW + 310);
    want(&h, 0, "0");
    h.now_s += 100;
    check_step(&h, "");
    check_lending(&h, 5, "3", "3", NOW + 310);
    want(&h, 0, "7"); /* more: from then on */
    settle(&h);
    check_lending(&h, 7, "1", "1", NOW + 410);
    h.now_s += 100;
    want(&h, 0, "6"); /* it has as much */
    check_step(&h, "");
    h.now_s = NOW + 409;
    check_step(&h, "");
    h.now_s++;
    want(&h, 0, "1");
    settle(&h);
    check_lending(&h, 2, "6", "-", 0);
    want(&h, 1, "0"); /* no one wants it: that is no change of the lender's mind */
    settle(&h);
    check_lending(&h, 8, "-", "-", 0);
    want(&h, 0, "8");
    check_step(&h, "");
    want(&h, 1, "16");
    want(&h, 0, "1");
    settle(&h);
    check_lending(&h, 2, "6", "-", 0);
    h.demands[0] = NULL; /* without a report it wants all of it */
    settle(&h);
    check_lending(&h, 8, "-", "0", h.now_s + 300);
    h.now_s -= 1000; /* a clock that was set back pauses no longer than it may */
    settle(&h);
    check_lending(&h, 8, "-", "0", h.now_s + 300);
    arena_free(h.a);
}

static void a_node_that_is_down_takes_no_guarantee(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    settle(&h);
    run_on(&h, 0, 8, "n0");
    run_on(&h, 1, 8, "n1");
    set_ready(&h, 0, "Unknown");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(status_text(&h, 1, "status.reclaim"), "-");
    assert_str(condition_text(&h, h.bindings[1], "Ready"), "True Granted ");
    assert_str(condition_text(&h, h.pool, "Overcommitted"),
               "True Unhealthy healthy GPUs are fewer than the guarantees");
    arena_free(h.a);
}

/* What is borrowed is taken back for a claim, not because a node is down. */
static void a_node_that_is_down_takes_what_is_borrowed_for_a_claim(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind_team(&h, 1, "{'pool':'a100','burst':'8'}");
    settle(&h);
    run_on(&h, 0, 8, "n0");
    run_on(&h, 1, 8, "n1");
    set_ready(&h, 0, "Unknown");
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(status_text(&h, 1, "status.reclaim"), "-");
    h.evicted[0] = true; /* the node cannot confirm it */
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_str(status_text(&h, 1, "status.reclaim.gpus"), "8");
    h.evicted[0] = false; /* its successor has no place: that is a claim, no hold */
    run_on(&h, 0, 8, NULL);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_str(status_text(&h, 1, "status.reclaim.gpus"), "8");
    set_ready(&h, 0, "True");
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(status_text(&h, 1, "status.reclaim"), "-");
    arena_free(h.a);
}

/* No node answers: that is the network, and what runs goes on. */
static void a_partition_takes_nothing(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind_team(&h, 1, "{'pool':'a100','burst':'8'}");
    settle(&h);
    run_on(&h, 1, 8, "n0");
    set_ready(&h, 0, "Unknown");
    set_ready(&h, 1, "Unknown");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(status_text(&h, 1, "status.reclaim"), "-");
    arena_free(h.a);
}

static void a_node_that_leaves_refuses_no_binding_that_counts(void **state)
{
    struct host_of h;
    cJSON *both;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    settle(&h);
    run_on(&h, 1, 8, "n1");
    both = h.nodes[0];
    h.nodes[0] = NULL;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(condition_text(&h, h.bindings[0], "Ready"),
               "True Unhealthy GPUs of the pool that are healthy are fewer than its guarantees");
    assert_str(condition_text(&h, h.bindings[1], "Ready"), "True Granted ");
    h.nodes[0] = both;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    arena_free(h.a);
}

/* A dedicated pool is not another's when a node of its first leaves. */
static void a_dedicated_pool_stays_with_its_first(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    json_set_str(h.a, json_get(h.pool, "spec"), "kind", STR("dedicated"));
    bind_team(&h, 0, "{'pool':'a100','guarantee':'20'}");
    bind_team(&h, 1, "{'pool':'a100','burst':'16'}");
    settle(&h);
    assert_true(str_contains(condition_text(&h, h.bindings[0], "Ready"), STR("Overcommitted")));
    assert_true(str_contains(condition_text(&h, h.bindings[1], "Ready"), STR("PoolDedicated")));
    assert_int_equal(grant_of(&h, 1), 0);
    arena_free(h.a);
}

/* An autoscaler makes nodes for pods, which a grant lets through. */
static void a_declared_capacity_is_granted_without_nodes(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    h.nodes[0] = h.nodes[1] = NULL;
    json_set_str(h.a, json_get(h.pool, "spec"), "capacity", STR("16"));
    bind_team(&h, 0, "{'pool':'a100','guarantee':'8','burst':'4'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 12);
    assert_str(status_text(&h, 0, "status.pool"),
               "{\"name\":\"a100\",\"nodeSelector\":{\"sublet.dev/pool\":\"a100\"}}");
    json_set_str(h.a, json_get(h.pool, "spec"), "capacity", STR("many"));
    settle(&h);
    assert_true(str_has_prefix(condition_text(&h, h.pool, "Ready"), STR("False NoNodes ")));
    assert_true(str_contains(condition_text(&h, h.pool, "Converting"),
                             STR("capacity is a number of GPUs, of at most 10000 parts")));
    json_remove(json_get(h.pool, "status"), "inForce");
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Ready"),
               "False Invalid capacity is a number of GPUs, of at most 10000 parts");
    arena_free(h.a);
}

/* A pool that shares a resource with another says so. */
static void two_pools_of_one_resource_are_marked(void **state)
{
    struct host_of h;
    struct grant_times times = {.now_s = NOW, .grace_s = 60};
    struct grant_state s;
    struct grant_write w;
    cJSON *other;
    size_t at = 0, marked = 0;

    (void)state;
    begin(&h, 1);
    other = json_copy(h.a, h.pool);
    json_set_str(h.a, json_get(other, "metadata"), "name", STR("l4"));
    json_set_str(h.a, json_path(other, "spec.nodeSelector"), "sublet.dev/pool", STR("l4"));
    grant_state_begin(&s, h.a, &times);
    grant_state_pool(&s, h.pool);
    grant_state_pool(&s, other);
    grant_state_settle(&s);
    while (grant_next_write(&s, &at, &w)) {
        assert_str(condition_text(&h, w.body, "Fenced"),
                   marked++ ? "False SharedResource GPUPool \"a100\" has a resource of this one: a "
                              "ResourceQuota bounds what a namespace has of both together"
                            : "False SharedResource GPUPool \"l4\" has a resource of this one: a "
                              "ResourceQuota bounds what a namespace has of both together");
    }
    assert_int_equal(marked, 2);
    grant_state_end(&s);
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Fenced"), "True OwnResources ");
    arena_free(h.a);
}

static void refusals_name_pool_and_namespace(void **state)
{
    struct host_of h;
    struct buf unused = BUF_INIT(0);

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'10'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'7'}");
    bind_team(&h, 2, "{'pool':'h100','guarantee':'1'}");
    bind_team(&h, 3, "{'pool':'a100','guarantee':'1','lend':'2'}");
    while (step(&h, &unused))
        ;
    assert_str(condition_text(&h, h.bindings[1], "Ready"),
               "False Overcommitted guarantee 7 of \"team-1\" does not fit into GPUPool \"a100\" "
               "beside the guarantees of older bindings");
    assert_str(condition_text(&h, h.bindings[2], "Ready"),
               "False PoolNotFound no GPUPool is called \"h100\"");
    assert_str(condition_text(&h, h.bindings[3], "Ready"),
               "False Invalid lend must not exceed guarantee");
    assert_str(condition_text(&h, h.pool, "Overcommitted"),
               "True Refused the guarantee of GPUBinding team-1/a100 does not fit beside those of "
               "older bindings");
    json_set_str(h.a, json_get(h.pool, "spec"), "kind", STR("dedicated"));
    while (step(&h, &unused))
        ;
    assert_str(condition_text(&h, h.bindings[1], "Ready"),
               "False PoolDedicated GPUPool \"a100\" is dedicated to another namespace than "
               "\"team-1\"");
    json_set_str(h.a, json_get(h.pool, "spec"), "mode", STR("fast"));
    while (step(&h, &unused))
        ;
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted "); /* what was stays */
    assert_str(condition_text(&h, h.pool, "Ready"), "True Served ");
    assert_true(str_has_prefix(condition_text(&h, h.pool, "Converting"), STR("False Refused the")));
    assert_true(
        str_contains(condition_text(&h, h.pool, "Converting"), STR("unknown value \"fast\"")));
    assert_int_equal(grant_of(&h, 0), 10);
    h.pool = object(&h, "{'metadata':{'name':'a100'},'spec':{'mode':'dra','nodeSelector':{"
                        "'sublet.dev/pool':'a100'},'deviceClasses':{'gpu.example.com':{"
                        "'gpuEq':1}}}}");
    stamp(&h, h.pool);
    while (step(&h, &unused))
        ;
    assert_true(str_contains(condition_text(&h, h.pool, "Ready"),
                             STR("mode dra needs grants.deviceClaims")));
    h.pool = object(&h, "{'metadata':{'name':'a100'},'spec':{'mode':'kai-fraction','nodeSelector':{"
                        "'sublet.dev/pool':'a100'},'scheduler':{'kind':'kai','queueTemplate':"
                        "'q'}}}");
    stamp(&h, h.pool);
    while (step(&h, &unused))
        ;
    assert_true(str_contains(condition_text(&h, h.pool, "Ready"),
                             STR("mode kai-fraction needs grants.kaiQueues")));
    buf_fini(&unused);
    arena_free(h.a);
}

/* An edit that makes no sense takes a grant, not the bound on what runs; nor does it free GPUs. */
static void a_pool_that_is_gone_keeps_its_bounds(void **state)
{
    struct host_of h;
    struct buf unused = BUF_INIT(0);
    cJSON *spec;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'10'}");
    while (step(&h, &unused))
        ;
    spec = json_get(h.pool, "spec");
    json_set_str(h.a, spec, "mode", STR("fast"));
    json_remove(json_get(h.pool, "status"), "inForce"); /* by a process that did not keep it */
    while (step(&h, &unused))
        ;
    buf_fini(&unused);
    assert_int_equal(grant_of(&h, 0), 0);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 10);
    json_set_str(h.a, json_get(h.pool, "spec"), "mode", STR("exclusive"));
    bind_team(&h, 1, "{'pool':'a100','burst':'16'}");
    check_step(&h, "POST " QUOTA(1) HARD(6) "PUT " BINDING(0) " 10\nPUT " BINDING(1) " 0\n" POOL);
    arena_free(h.a);
}

static void pods_of_other_namespaces_are_granted_to_none(void **state)
{
    struct host_of h;
    struct grant_times times = {.now_s = NOW, .grace_s = 60};
    struct grant_state s;
    cJSON *pod;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','burst':'16'}");
    h.holds[3] = 5;
    pod = pod_of(&h, 3);
    json_set_str(h.a, json_get(pod, "spec"), "nodeName", STR("n0"));
    grant_state_begin(&s, h.a, &times);
    grant_state_pool(&s, h.pool);
    grant_state_binding(&s, h.bindings[0]);
    look_at_node(&h, &s, h.nodes[0]);
    look_at_node(&h, &s, h.nodes[1]);
    look_at_pod(&h, &s, pod);
    grant_state_settle(&s);
    assert_int_equal(s.bindings[0].target.num, 11);
    assert_int_equal(s.shares[0].healthy.num, 16);
    grant_state_end(&s);
    arena_free(h.a);
}

/* Whatever a tenant's process writes, others have their grants. */
static void numbers_of_a_hostile_tenant_are_bounded(void **state)
{
    static const char *const wishes[] = {"1/9223372036854775807", "9223372036854775807", "-1",
                                         "many", "9223372036854775807/9223372036854775806"};
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'1/7','burst':'3'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4'}");
    bind_team(&h, 2, "{'pool':'a100','guarantee':'1/9223372036854775807'}");
    h.holds[0] = h.holds[3] = INT64_MAX; /* of pods without a node */
    for (size_t i = 0; i < COUNT(wishes); i++) {
        struct grant_state s;

        h.demands[0] =
            json_object(h.a, JSON("metadata", json_object(h.a, JSON("namespace", "team-0"))),
                        JSON("data", json_object(h.a, JSON("a100", wishes[i]))));
        look(&h, &s);
        assert_int_equal(s.bindings[1].target.num, 4);
        assert_int_equal(s.bindings[1].write, SHARE_WRITE_QUOTA);
        assert_int_equal(s.bindings[1].value.num, 4);
        assert_int_equal(s.bindings[2].state, SHARE_INVALID);
        grant_state_end(&s);
    }
    arena_free(h.a);
}

static void what_is_left_of_a_deleted_binding(void **state)
{
    struct host_of h;
    struct buf unused = BUF_INIT(0);

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'16'}");
    while (step(&h, &unused))
        ;
    buf_fini(&unused);
    h.holds[0] = 3;
    charge(&h, 0);
    h.bindings[0] = NULL;
    bind_team(&h, 1, "{'pool':'a100','guarantee':'16'}");
    check_step(&h, "POST " QUOTA(1) HARD(0) "PUT " BINDING(1) " 0\n" POOL); /* its pods still run */
    check_step(&h, "");
    h.holds[0] = 0;
    charge(&h, 0);
    check_step(&h, "PUT " QUOTA(0) HARD(0)); /* bounded it stays */
    check_step(&h, "PUT " QUOTA(1) HARD(16));
    check_step(&h, "PUT " BINDING(1) " 16\n");
    check_step(&h, POOL);
    /* The host may write a number otherwise. */
    json_set_str(h.a, json_path(h.quotas[1], "spec.hard"), "requests.nvidia.com/gpu",
                 STR("16000m"));
    check_step(&h, "");
    /* Another hand changes a bound: it is what was granted again. */
    json_set_str(h.a, json_path(h.quotas[0], "spec.hard"), "requests.nvidia.com/gpu", STR("0"));
    json_set_str(h.a, json_path(h.quotas[1], "spec.hard"), "requests.nvidia.com/gpu", STR("2"));
    check_step(&h, "PUT " QUOTA(1) HARD(16));
    arena_free(h.a);
}

static void add_second_pool(struct host_of *h)
{
    h->second = object(h, "{'metadata':{'name':'h100','generation':1},'spec':{'nodeSelector':"
                          "{'sublet.dev/pool':'h100'},'resources':{'example.com/h100':{'gpuEq':1}}}"
                          "}");
    stamp(h, h->second);
}

#define POOL_2 "PUT " GRANT_GROUP "/gpupools/h100/status \n"
#define HARD_BOTH(n)                                                                               \
    " {\"requests.nvidia.com/gpu\":\"" #n "\",\"requests.example.com/h100\":\"0\"}\n"

/* A token of its process could take all of it. */
static void of_a_pool_that_is_not_bound_nothing_is_let_through(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    add_second_pool(&h);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'17'}"); /* refused */
    check_step(&h, "POST " QUOTA(0) HARD_BOTH(0) "PUT " BINDING(0) " 0\n" POOL POOL_2);
    check_step(&h, "");
    arena_free(h.a);

    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','burst':'16'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'0'}"); /* nothing is granted */
    check_step(&h, "POST " QUOTA(0) HARD(16) "POST " QUOTA(1)
                       HARD(0) "PUT " BINDING(0) " 0\nPUT " BINDING(1) " 0\n");
    check_step(&h, "PUT " BINDING(0) " 16\n");
    check_step(&h, POOL);
    check_step(&h, "");
    add_second_pool(&h); /* one write of each namespace */
    check_step(&h, "PUT " QUOTA(0) HARD_BOTH(16) "PUT " QUOTA(1) HARD_BOTH(0) POOL_2);
    check_step(&h, "");
    /* Pods that ran before are beyond that bound: another one follows down all the same. */
    json_set_str(h.a, json_path(h.quotas[0], "status.used"), "requests.example.com/h100", STR("3"));
    stamp(&h, h.quotas[0]);
    bind_team(&h, 2, "{'pool':'a100','guarantee':'4'}");
    check_step(&h,
               "POST " QUOTA(2) HARD_BOTH(0) "PUT " BINDING(0) " 12\nPUT " BINDING(2) " 0\n" POOL);
    check_step(&h, "PUT " QUOTA(0) HARD_BOTH(12) POOL);
    check_step(&h, "PUT " QUOTA(2) HARD_BOTH(4));
    arena_free(h.a);
}

/* --- shares of GPUs --- */

#define HARD_SHARES(number, memory, cores)                                                         \
    " {\"requests.nvidia.com/gpucores\":\"" cores "\",\"requests.nvidia.com/gpu\":\"" number       \
    "\",\"requests.nvidia.com/gpumem\":\"" memory "\"}\n"

/* By the compute, by the memory, and by how many there are: each rounded down. */
static void shares_are_bounded_by_what_they_are_of(void **state)
{
    struct host_of h;

    (void)state;
    begin_shares(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'2'}");
    check_step(&h,
               "POST " QUOTA(0) HARD_SHARES("200", "81920", "200") "PUT " BINDING(0) " 0\n" POOL);
    check_step(&h, "PUT " BINDING(0) " 2\n");
    check_step(&h, POOL);
    check_step(&h, "");
    assert_str(json_str_at(h.pool, "status.capacity"), "16");
    assert_str(condition_text(&h, h.pool, "Fenced"), "True OwnResources ");
    assert_str(status_text(&h, 0, "status.pool"),
               "{\"name\":\"a100\",\"mode\":\"hami\",\"gpuMemoryMiB\":40960,\"nodeSelector\":{"
               "\"sublet.dev/pool\":\"a100\"},\"scheduler\":{\"kind\":\"hami\"}}");
    /* Down: the grant first, the quota when no more is charged. */
    run_on(&h, 0, 2, "n0");
    json_set(h.a, h.bindings[0], "spec", object(&h, "{'pool':'a100','guarantee':'1'}"));
    stamp(&h, h.bindings[0]);
    check_step(&h, "PUT " BINDING(0) " 1\n" POOL);
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 2);
    run_on(&h, 0, 1, "n0");
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 1);
    assert_int_equal(grant_of(&h, 0), 1);
    arena_free(h.a);
}

/* A hundred shares would be a hundred GPUs of it. */
static void a_share_is_no_gpu_of_another_pool(void **state)
{
    struct host_of h;

    (void)state;
    begin_shares(&h, 1);
    h.second = object(&h, "{'metadata':{'name':'h100','generation':1},'spec':{'nodeSelector':"
                          "{'sublet.dev/pool':'h100'}}}");
    stamp(&h, h.second);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'2'}");
    check_step(&h, "POST " QUOTA(0) HARD_SHARES("0", "0", "0") "PUT " BINDING(0) " 0\n" POOL_2);
    check_step(&h, "");
    assert_str(
        condition_text(&h, h.bindings[0], "Ready"),
        "False Invalid a share of this pool is one of nvidia.com/gpu to the host, and so is "
        "what GPUPool \"h100\" hands out: a ResourceQuota that lets the shares through would "
        "not bound those. Give its devices another name, by its device plugin and `rename`");
    h.second = NULL;
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    arena_free(h.a);
}

/* --- random histories --- */

static void tenant_acts(struct host_of *h)
{
    int i = (int)BELOW(&h->random, TENANTS);
    int64_t next = BELOW(&h->random, GPUS + 1);

    if (BELOW(&h->random, 3) == 0 && h->bindings[i])
        h->demands[i] = json_object(
            h->a,
            JSON("metadata",
                 json_object(h->a, JSON("namespace", arena_printf(h->a, "team-%d", i)))),
            JSON("data",
                 json_object(h->a, JSON("a100", arena_printf(h->a, "%lld", (long long)next)))));
    if (!h->quotas[i] || (next > h->holds[i] && next > units_at(h->quotas[i], "spec.hard")))
        return;
    h->holds[i] = next;
    if (next || BELOW(&h->random, 2))
        charge(h, i);
}

/* A process plans, sends some of it, and is ended. */
static void process_of(struct host_of *h)
{
    struct grant_write writes[3 * TENANTS + 1];
    struct grant_state s;
    size_t at = 0, n = 0;

    look(h, &s);
    while (n < COUNT(writes) && grant_next_write(&s, &at, &writes[n]))
        n++;
    for (size_t k = n ? (size_t)BELOW(&h->random, n + 1) : 0; k-- > 0;) {
        apply(h, &writes[BELOW(&h->random, n)]);
        check_host(h);
        tenant_acts(h);
        check_host(h);
    }
    grant_state_end(&s);
}

static void an_admin_acts(struct host_of *h)
{
    static const char *const specs[] = {
        "{'pool':'a100','guarantee':'4','burst':'12','lend':'2'}",
        "{'pool':'a100','guarantee':'2','burst':'1'}",
        "{'pool':'a100','burst':'16'}",
        "{'pool':'a100','guarantee':'8','lend':'8'}",
    };
    static const char *const maintenances[] = {"{'state':'none'}", "{'state':'cordon'}",
                                               "{'state':'drain'}"};
    int i = (int)BELOW(&h->random, TENANTS);

    if (BELOW(&h->random, 4) == 0)
        maintain(h, maintenances[BELOW(&h->random, COUNT(maintenances))]);
    else if (!h->bindings[i])
        bind_team(h, i, specs[BELOW(&h->random, COUNT(specs))]);
    else if (BELOW(&h->random, 4) == 0)
        h->bindings[i] = NULL;
}

static void histories(void (*begin_with)(struct host_of *h, uint64_t seed), uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct host_of h;
        struct buf unused = BUF_INIT(0);
        int rounds = 0;

        begin_with(&h, seed);
        for (int k = 0; k < 15; k++) {
            if (BELOW(&h.random, 3) == 0)
                an_admin_acts(&h);
            process_of(&h);
        }
        for (size_t n = 1; n;) { /* tenants obey from now on: it comes to rest */
            assert_true(++rounds < 12);
            n = step(&h, &unused);
            for (int i = 0; i < TENANTS; i++) {
                h.holds[i] = h.holds[i] > grant_of(&h, i) ? grant_of(&h, i) : h.holds[i];
                if (h.quotas[i])
                    charge(&h, i);
            }
        }
        buf_fini(&unused);
        arena_free(h.a);
    }
}

static void a_process_may_end_between_any_two_writes(void **state)
{
    (void)state;
    histories(begin, 400);
}

static void a_process_may_end_between_any_two_writes_of_shares(void **state)
{
    (void)state;
    histories(begin_shares, 200);
}

/* Its own guarantee stays reserved; what others have goes on changing. */
static void a_refused_raise_stops_no_other(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    h.refuses = "/team-0/resourcequotas/sublet-gpu";
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4','burst':'4'}");
    settle(&h);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    assert_int_equal(grant_of(&h, 1), 8);
    assert_str(condition_text(&h, h.bindings[0], "Bounded"), "False QuotaRefused not this one");
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    assert_str(condition_text(&h, h.bindings[1], "Bounded"), "  ");
    assert_str(
        condition_text(&h, h.pool, "Fenced"),
        "False WriteRefused ResourceQuota \"sublet-gpu\" of namespace \"team-0\": not this one");
    bind_team(&h, 2, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 2), 4);
    h.refuses = NULL;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    assert_str(condition_text(&h, h.bindings[0], "Bounded"), "  ");
    assert_str(condition_text(&h, h.pool, "Fenced"), "True OwnResources ");
    arena_free(h.a);
}

/* What a quota lets through is promised, though the grant is lower. */
static void what_a_refused_lowering_lets_through_is_not_promised_twice(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 16);
    h.refuses = "/team-0/resourcequotas/sublet-gpu";
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    settle(&h); /* and check_host() after each write */
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_int_equal(grant_of(&h, 1), 0);
    assert_str(condition_text(&h, h.bindings[0], "Bounded"), "False QuotaRefused not this one");
    h.refuses = NULL;
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 8);
    arena_free(h.a);
}

/* One that still reads its former grant may use it: the quota is not lowered before the status. */
static void a_refused_status_is_said_by_the_pool(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    h.refuses = "/team-0/gpubindings/a100/status";
    h.refused_part = "";
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 16);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 16);
    assert_int_equal(grant_of(&h, 1), 0);
    assert_str(condition_text(&h, h.pool, "Fenced"),
               "False WriteRefused status of GPUBinding \"team-0/a100\": not this one");
    h.refuses = NULL;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_int_equal(grant_of(&h, 1), 8);
    arena_free(h.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quota_is_raised_before_the_grant),
        cmocka_unit_test(a_guarantee_is_taken_back_with_notice),
        cmocka_unit_test(what_is_given_back_is_granted_before_the_last_pod_ends),
        cmocka_unit_test(what_is_taken_back_is_not_lent_for_a_time),
        cmocka_unit_test(a_node_that_is_down_takes_no_guarantee),
        cmocka_unit_test(a_node_that_is_down_takes_what_is_borrowed_for_a_claim),
        cmocka_unit_test(a_partition_takes_nothing),
        cmocka_unit_test(a_node_that_leaves_refuses_no_binding_that_counts),
        cmocka_unit_test(a_dedicated_pool_stays_with_its_first),
        cmocka_unit_test(a_declared_capacity_is_granted_without_nodes),
        cmocka_unit_test(two_pools_of_one_resource_are_marked),
        cmocka_unit_test(refusals_name_pool_and_namespace),
        cmocka_unit_test(a_pool_that_is_gone_keeps_its_bounds),
        cmocka_unit_test(pods_of_other_namespaces_are_granted_to_none),
        cmocka_unit_test(numbers_of_a_hostile_tenant_are_bounded),
        cmocka_unit_test(what_is_left_of_a_deleted_binding),
        cmocka_unit_test(of_a_pool_that_is_not_bound_nothing_is_let_through),
        cmocka_unit_test(a_process_may_end_between_any_two_writes),
        cmocka_unit_test(shares_are_bounded_by_what_they_are_of),
        cmocka_unit_test(a_share_is_no_gpu_of_another_pool),
        cmocka_unit_test(a_process_may_end_between_any_two_writes_of_shares),
        cmocka_unit_test(a_refused_raise_stops_no_other),
        cmocka_unit_test(what_a_refused_lowering_lets_through_is_not_promised_twice),
        cmocka_unit_test(a_refused_status_is_said_by_the_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
