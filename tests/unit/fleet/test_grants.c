/* SPDX-License-Identifier: Apache-2.0 */
/* Grants on a host of a few objects: what is written in which order, and that a process which is
 * ended between any two writes leaves nothing that its successor promises twice. Over 1000 lines:
 * maintenance and conversion are tried on the same host, by the same helpers. */
#include "test.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

#include "grant_state.h"

#define TENANTS 4
#define GPUS    16 /* of two nodes */
#define NOW     INT64_C(1790000000)

struct host_of {
    struct arena *a;
    uint64_t random;
    cJSON *pool, *second; /* second NULL: there is one */
    cJSON *nodes[2], *bindings[TENANTS], *quotas[TENANTS], *demands[TENANTS];
    int64_t holds[TENANTS], version, now_s;
    const char *on[TENANTS]; /* the node of its pod; NULL: it waits for one */
    bool evicted[TENANTS];   /* ... and is deleted there */
};

static cJSON *parse(struct host_of *h, struct str text)
{
    cJSON *tree = NULL;
    struct err err;

    err_init(&err, h->a);
    if (json_parse(h->a, text, &tree, &err))
        fail_msg("%.*s: %.*s", STR_F(text), STR_F(err.message));
    return tree;
}

/* JSON with ' for ". */
static cJSON *object(struct host_of *h, const char *text)
{
    char *copy = arena_cstr(h->a, str_c(text));

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return parse(h, str_c(copy));
}

static void stamp(struct host_of *h, cJSON *tree)
{
    cJSON *metadata = json_ensure_object(h->a, tree, "metadata");

    json_set_str(h->a, metadata, "resourceVersion",
                 arena_printf(h->a, "%lld", (long long)++h->version));
}

static void begin_unrecorded(struct host_of *h, uint64_t seed)
{
    *h =
        (struct host_of){.a = arena_new(0), .random = seed * 0x9e3779b97f4a7c15u + 1, .now_s = NOW};
    h->pool = object(h, "{'metadata':{'name':'a100','generation':1},'spec':{'nodeSelector':"
                        "{'sublet.dev/pool':'a100'}}}");
    stamp(h, h->pool);
    for (int i = 0; i < 2; i++) {
        h->nodes[i] = object(
            h, "{'metadata':{'labels':{'sublet.dev/pool':'a100'}},'status':{'capacity':{"
               "'nvidia.com/gpu':'8'},'allocatable':{'nvidia.com/gpu':'8'},'conditions':[{'type':"
               "'Ready','status':'True'}]}}");
        json_set_str(h->a, json_get(h->nodes[i], "metadata"), "name", arena_printf(h->a, "n%d", i));
    }
}

static void record_pool(struct host_of *h);

static void begin(struct host_of *h, uint64_t seed)
{
    begin_unrecorded(h, seed);
    record_pool(h);
}

static void bind(struct host_of *h, int tenant, const char *spec)
{
    cJSON *b = json_object(
        h->a,
        JSON("metadata",
             json_object(h->a, JSON("name", "a100"),
                         JSON("namespace", arena_printf(h->a, "team-%d", tenant)),
                         JSON("creationTimestamp", time_format_s(h->a, NOW - 100 + tenant)),
                         JSON_I64("generation", 1))),
        JSON("spec", object(h, spec)));

    stamp(h, b);
    h->bindings[tenant] = b;
}

static cJSON *pod_of(struct host_of *h, int tenant)
{
    cJSON *pod = object(h, "{'metadata':{},'spec':{'nodeSelector':{'sublet.dev/pool':'a100'},"
                           "'containers':[{'resources':{'limits':{}}}]},'status':{}}");

    json_set_str(h->a, json_get(pod, "metadata"), "namespace",
                 arena_printf(h->a, "team-%d", tenant));
    json_set_i64(h->a, json_path(json_at(json_path(pod, "spec.containers"), 0), "resources.limits"),
                 "nvidia.com/gpu", h->holds[tenant]);
    if (h->on[tenant])
        json_set_str(h->a, json_get(pod, "spec"), "nodeName", str_c(h->on[tenant]));
    if (h->evicted[tenant])
        json_set_str(h->a, json_get(pod, "metadata"), "deletionTimestamp",
                     time_format_s(h->a, NOW));
    return pod;
}

static void look_at_node(struct host_of *h, struct grant_state *s, const cJSON *tree)
{
    struct grant_node *node = ARENA_NEW(h->a, struct grant_node);

    grant_node_of(h->a, tree, node);
    grant_state_node(s, node);
}

static void look_at_pod(struct host_of *h, struct grant_state *s, const cJSON *tree)
{
    struct grant_pod *pod = ARENA_NEW(h->a, struct grant_pod);

    if (grant_pod_of(h->a, tree, pod))
        grant_state_pod(s, pod);
}

static void look(struct host_of *h, struct grant_state *s)
{
    struct grant_times times = {.now_s = h->now_s, .grace_s = 60, .pause_s = 300};

    grant_state_begin(s, h->a, &times);
    grant_state_pool(s, h->pool);
    if (h->second)
        grant_state_pool(s, h->second);
    for (int i = 0; i < TENANTS; i++)
        if (h->bindings[i])
            grant_state_binding(s, h->bindings[i]);
    for (int i = 0; i < TENANTS; i++) {
        if (h->quotas[i])
            grant_state_quota(s, h->quotas[i]);
        if (h->demands[i])
            grant_state_demand(s, h->demands[i]);
    }
    for (int i = 0; i < 2; i++)
        if (h->nodes[i])
            look_at_node(h, s, h->nodes[i]);
    for (int i = 0; i < TENANTS; i++)
        look_at_pod(h, s, pod_of(h, i));
    grant_state_settle(s);
    assert_true(!s->n_configs || !s->shares[0].overflow);
}

#define SLICES "nvidia.com/mig-1g.10gb"

/* --- what the host makes of a write --- */

static int64_t units_at(const cJSON *tree, const char *path)
{
    const cJSON *map = json_path(tree, path);
    int64_t n = 0;

    (void)str_to_i64(json_str(json_get(map, "requests.nvidia.com/gpu")), &n);
    return n;
}

/* Its controller and its admission plug-in. */
static void charge(struct host_of *h, int tenant)
{
    cJSON *q = h->quotas[tenant];

    json_set(
        h->a, q, "status",
        json_object(h->a, JSON("used", json_object(h->a,
                                                   JSON("requests.nvidia.com/gpu",
                                                        arena_printf(h->a, "%lld",
                                                                     (long long)h->holds[tenant])),
                                                   JSON("requests." SLICES, "0")))));
    stamp(h, q);
}

static bool is_stale(const cJSON *tree, const struct grant_write *w)
{
    return !str_eq(json_str_at(tree, "metadata.resourceVersion"), w->version);
}

static void put(struct host_of *h, cJSON **at, const struct grant_write *w)
{
    if (is_stale(*at, w))
        return;
    *at = json_copy(h->a, w->body);
    stamp(h, *at);
}

static void apply(struct host_of *h, const struct grant_write *w)
{
    if (str_has_prefix(w->path, STR(GRANT_GROUP "/gpupools/"))) {
        put(h, str_contains(w->path, STR("/a100/")) ? &h->pool : &h->second, w);
        return;
    }
    for (int i = 0; i < TENANTS; i++) {
        struct str ns = arena_printf(h->a, "/namespaces/team-%d/", i);
        bool quota = str_contains(w->path, STR("/resourcequotas/"));

        if (!str_contains(w->path, ns))
            continue;
        put(h, quota ? &h->quotas[i] : &h->bindings[i], w);
        if (quota)
            charge(h, i);
    }
}

static int64_t grant_of(const struct host_of *h, int i)
{
    int64_t n = 0;

    (void)str_to_i64(json_str_at(h->bindings[i], "status.grant"), &n);
    return n;
}

static int64_t slices_at(const struct host_of *h, int tenant)
{
    int64_t n = 0;

    (void)str_to_i64(
        json_str(json_get(json_path(h->quotas[tenant], "spec.hard"), "requests." SLICES)), &n);
    return n;
}

static void check_host(const struct host_of *h)
{
    int64_t hard = 0, held = 0;

    for (int i = 0; i < TENANTS; i++) {
        if (slices_at(h, i))
            continue;
        hard += units_at(h->quotas[i], "spec.hard");
        held += h->holds[i];
        assert_true(grant_of(h, i) <= units_at(h->quotas[i], "spec.hard"));
        assert_true(h->holds[i] <= units_at(h->quotas[i], "spec.hard"));
    }
    assert_true(hard <= GPUS && held <= GPUS);
}

/* The writes of a moment as lines; each is applied. Returns how many there were. */
static size_t step(struct host_of *h, struct buf *out)
{
    struct grant_state s;
    struct grant_write w;
    size_t at = 0, n = 0;

    look(h, &s);
    for (; grant_next_write(&s, &at, &w); n++) {
        const cJSON *hard = json_path(w.body, "spec.hard");

        buf_printf(out, "%s %.*s %.*s\n", w.method, STR_F(w.path),
                   STR_F(hard ? json_text(h->a, hard) : json_str_at(w.body, "status.grant")));
        apply(h, &w);
        check_host(h);
    }
    grant_state_end(&s);
    return n;
}

/* The first status of the pool, which says what is in force. */
static void record_pool(struct host_of *h)
{
    struct buf unused = BUF_INIT(0);

    assert_int_equal(step(h, &unused), 1);
    buf_fini(&unused);
    assert_true(json_path(h->pool, "status.inForce") != NULL);
}

static void check_step(struct host_of *h, const char *want)
{
    struct buf got = BUF_INIT(0);

    step(h, &got);
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

#define QUOTA(n)   "/api/v1/namespaces/team-" #n "/resourcequotas/sublet-gpu"
#define BINDING(n) GRANT_GROUP "/namespaces/team-" #n "/gpubindings/a100/status"
#define POOL       "PUT " GRANT_GROUP "/gpupools/a100/status \n"
#define HARD(n)    " {\"requests.nvidia.com/gpu\":\"" #n "\"}\n"

static struct str status_text(struct host_of *h, int tenant, const char *path)
{
    cJSON *node = json_path(h->bindings[tenant], path);

    return json_is_string(node) ? json_str(node) : node ? json_text(h->a, node) : STR("-");
}

static struct str condition_text(struct host_of *h, const cJSON *tree, const char *type)
{
    const cJSON *c = condition_of(tree, type);

    return arena_printf(h->a, "%.*s %.*s %.*s", STR_F(json_str_at(c, "status")),
                        STR_F(json_str_at(c, "reason")), STR_F(json_str_at(c, "message")));
}

static void the_quota_is_raised_before_the_grant(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':8}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    while (step(&h, &unused))
        ;
    buf_fini(&unused);
    h.holds[0] = 16;
    charge(&h, 0);
    bind(&h, 1, "{'pool':'a100','guarantee':'8'}");
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

/* Steps until nothing is left to write. */
static void settle(struct host_of *h)
{
    struct buf unused = BUF_INIT(0);
    int rounds = 0;

    while (step(h, &unused))
        assert_true(++rounds < 12);
    buf_fini(&unused);
}

static void set_ready(struct host_of *h, int node, const char *status)
{
    json_set_str(h->a, json_at(json_path(h->nodes[node], "status.conditions"), 0), "status",
                 str_c(status));
}

static void run_on(struct host_of *h, int tenant, int64_t gpus, const char *node)
{
    h->holds[tenant] = gpus;
    h->on[tenant] = node;
    charge(h, tenant);
}

/* The one pod that does not end keeps what it has, not what others gave back. */
static void what_is_given_back_is_granted_before_the_last_pod_ends(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    run_on(&h, 0, 16, NULL);
    bind(&h, 1, "{'pool':'a100','guarantee':'12'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8','lend':'6'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'8','burst':'8'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'8'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind(&h, 1, "{'pool':'a100','burst':'8'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind(&h, 1, "{'pool':'a100','burst':'8'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'8'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'20'}");
    bind(&h, 1, "{'pool':'a100','burst':'16'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8','burst':'4'}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 12);
    assert_str(status_text(&h, 0, "status.pool"),
               "{\"name\":\"a100\",\"nodeSelector\":{\"sublet.dev/pool\":\"a100\"}}");
    json_set_str(h.a, json_get(h.pool, "spec"), "capacity", STR("many"));
    settle(&h);
    assert_str(condition_text(&h, h.pool, "Ready"), "False Invalid capacity is a number of GPUs");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'10'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'7'}");
    bind(&h, 2, "{'pool':'h100','guarantee':'1'}");
    bind(&h, 3, "{'pool':'a100','guarantee':'1','lend':'2'}");
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
    assert_true(str_contains(condition_text(&h, h.pool, "Ready"), STR("mode dra has no")));
    h.pool = object(&h, "{'metadata':{'name':'a100'},'spec':{'mode':'kai-fraction','nodeSelector':{"
                        "'sublet.dev/pool':'a100'},'scheduler':{'kind':'kai','queueTemplate':"
                        "'q'}}}");
    stamp(&h, h.pool);
    while (step(&h, &unused))
        ;
    assert_true(str_contains(condition_text(&h, h.pool, "Ready"), STR("mode kai-fraction has no")));
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
    bind(&h, 0, "{'pool':'a100','guarantee':'10'}");
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
    bind(&h, 1, "{'pool':'a100','burst':'16'}");
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
    bind(&h, 0, "{'pool':'a100','burst':'16'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'1/7','burst':'3'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'4'}");
    bind(&h, 2, "{'pool':'a100','guarantee':'1/9223372036854775807'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'16'}");
    while (step(&h, &unused))
        ;
    buf_fini(&unused);
    h.holds[0] = 3;
    charge(&h, 0);
    h.bindings[0] = NULL;
    bind(&h, 1, "{'pool':'a100','guarantee':'16'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'17'}"); /* refused */
    check_step(&h, "POST " QUOTA(0) HARD_BOTH(0) "PUT " BINDING(0) " 0\n" POOL POOL_2);
    check_step(&h, "");
    arena_free(h.a);

    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','burst':'16'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'0'}"); /* nothing is granted */
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
    bind(&h, 2, "{'pool':'a100','guarantee':'4'}");
    check_step(&h,
               "POST " QUOTA(2) HARD_BOTH(0) "PUT " BINDING(0) " 12\nPUT " BINDING(2) " 0\n" POOL);
    check_step(&h, "PUT " QUOTA(0) HARD_BOTH(12) POOL);
    check_step(&h, "PUT " QUOTA(2) HARD_BOTH(4));
    arena_free(h.a);
}

/* --- maintenance and conversion --- */

static void maintain(struct host_of *h, const char *text)
{
    cJSON *spec = json_get(h->pool, "spec");

    json_remove(spec, "maintenance");
    json_set(h->a, spec, "maintenance", object(h, text));
    stamp(h, h->pool);
}

/* All may have more; what runs stays, and what ends is not granted again. */
static void a_cordoned_pool_grants_nothing_new(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':'8'}");
    bind(&h, 1, "{'pool':'a100','guarantee':'4'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
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

static void a_planned_maintenance_begins_by_itself(void **state)
{
    struct host_of h;
    struct grant_state s;
    int64_t start = NOW + 1000;

    (void)state;
    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
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
        bind(&h, 0, "{'pool':'a100','guarantee':'8'}");
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

/* The devices of before are in force until nothing of them is held; those of the spec count as
 * nodes have them, one by one; and back. */
static void a_pool_is_converted_after_it_is_drained(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'4','burst':'4'}");
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

/* What is in force is on record before anything is granted: a change that comes right after the
 * first grant drains, whenever the process ends. */
static void nothing_is_granted_before_what_is_in_force_is_on_record(void **state)
{
    struct host_of h;

    (void)state;
    begin_unrecorded(&h, 1);
    bind(&h, 0, "{'pool':'a100','guarantee':'4'}");
    check_step(&h, POOL);
    assert_str(json_str_at(h.pool, "status.inForce.name"), "a100");
    check_step(&h, "POST " QUOTA(0) HARD(4) "PUT " BINDING(0) " 0\n");
    convert(&h, true);
    settle(&h);
    assert_str(json_str_at(h.pool, "status.mode"), "mig"); /* nothing was held */
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 0);

    arena_free(h.a);
    begin_unrecorded(&h, 1); /* a definition that prunes what is in force */
    bind(&h, 0, "{'pool':'a100','guarantee':'4'}");
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
        bind(&h, 0, "{'pool':'a100','guarantee':'2','burst':'14'}");
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
    bind(&h, 0, "{'pool':'a100','guarantee':'4'}");
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
        bind(h, i, specs[BELOW(&h->random, COUNT(specs))]);
    else if (BELOW(&h->random, 4) == 0)
        h->bindings[i] = NULL;
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
            bind(&h, i, "{'pool':'a100','guarantee':'2','burst':'8'}");
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

static void a_process_may_end_between_any_two_writes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct host_of h;
        struct buf unused = BUF_INIT(0);
        int rounds = 0;

        begin(&h, seed);
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
        cmocka_unit_test(a_cordoned_pool_grants_nothing_new),
        cmocka_unit_test(a_drained_pool_takes_all_back),
        cmocka_unit_test(a_planned_maintenance_begins_by_itself),
        cmocka_unit_test(a_maintenance_that_makes_no_sense_is_said),
        cmocka_unit_test(nodes_of_one_resource_name_are_told_apart),
        cmocka_unit_test(nothing_is_granted_before_what_is_in_force_is_on_record),
        cmocka_unit_test(a_pool_is_converted_after_it_is_drained),
        cmocka_unit_test(a_node_set_aside_lends_nothing),
        cmocka_unit_test(a_conversion_may_be_taken_back),
        cmocka_unit_test(a_conversion_survives_an_end_between_any_two_writes),
        cmocka_unit_test(a_process_may_end_between_any_two_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
