/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of nodes and pods says the same as all of them read anew, after any changes: each is
 * compared with sums that other functions compute from the trees. */
#include "test.h"

#include <sublet/clock.h>
#include <sublet/object.h>

#include "grants/grant_state.h"
#include "../../quoted.h"

#define NODES   5
#define PODS    12
#define POOLS   3
#define TENANTS 3 /* the last one has no binding */
#define ROUNDS  120

struct world {
    struct arena *a;
    uint64_t seed, random;
    struct grant_facts *facts;
    cJSON *nodes[NODES], *pods[PODS], *pools[POOLS];
};

static const char *one_of(struct world *w, const char *const *list, size_t n)
{
    return list[BELOW(&w->random, n)];
}
#define ONE_OF(w, ...)                                                                             \
    one_of((w), (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

/* A label may hold what looks like another one. */
static const char *labels(struct world *w)
{
    return ONE_OF(w, "{'pool':'a'}", "{'x':'y','pool':'a','zone':'1'}", "{'pool':'b','zone':'1'}",
                  "{'zone':'2'}", "{'x':',\\\"pool\\\":\\\"a\\\"'}", "{'xpool':'a'}",
                  "{'pool':'ab'}", "{'x':'\\\\','pool':'b'}", "{}");
}

static const char *resources(struct world *w)
{
    return ONE_OF(w, "{'nvidia.com/gpu':'1'}", "{'cpu':'4','nvidia.com/gpu':8}",
                  "{'nvidia.com/gpu':'2','nvidia.com/mig-1g.10gb':'3'}", "{'cpu':'1'}",
                  "{'nvidia.com/gpu':'0'}", "{'nvidia.com/gpu':'9223372036854775807'}",
                  "{'nvidia.com/gpu':'-3'}", "{'nvidia.com/mig-1g.10gb':'7'}", "{}");
}

static cJSON *random_node(struct world *w, int i)
{
    return quoted_json(w->a,
                       arena_printf(w->a,
                                    "{'metadata':{'name':'n%d','labels':%s},'status':{'capacity':"
                                    "%s,'allocatable':%s,'conditions':[{'type':'Ready','status':"
                                    "'%s'}]}}",
                                    i, labels(w), resources(w), resources(w),
                                    ONE_OF(w, "True", "True", "False", "Unknown")));
}

static cJSON *random_pod(struct world *w, int i)
{
    const char *node = ONE_OF(w, "", "", "'nodeName':'n0',", "'nodeName':'n1',", "'nodeName':'n2',",
                              "'nodeName':'n3',", "'nodeName':'n4',", "'nodeName':'of-none',");
    struct str selector =
        BELOW(&w->random, 4) ? arena_printf(w->a, "'nodeSelector':%s,", labels(w)) : STR("");

    return quoted_json(
        w->a, arena_printf(w->a,
                           "{'metadata':{'name':'p%d','namespace':'team-%d'%s%s},'spec':{%s%.*s"
                           "'initContainers':[{'resources':{'limits':%s}%s}],'containers':["
                           "{'resources':{'limits':%s}},{'resources':{'requests':%s}}]},'status':"
                           "{'phase':'%s'}}",
                           i, (int)BELOW(&w->random, TENANTS),
                           ONE_OF(w, "", "", ",'deletionTimestamp':'2026-01-01T00:00:00Z'"),
                           ONE_OF(w, "", "", ",'annotations':{'gpu-fraction':'0.25'}",
                                  ",'annotations':{'gpu-fraction':'.5'}",
                                  ",'annotations':{'gpu-memory':'100'}"),
                           node, STR_F(selector), resources(w),
                           ONE_OF(w, "", ",'restartPolicy':'Always'"), resources(w), resources(w),
                           ONE_OF(w, "Running", "Pending", "Failed")));
}

static void random_pools(struct world *w)
{
    for (int i = 0; i < POOLS; i++)
        w->pools[i] = quoted_json(
            w->a,
            arena_printf(w->a, "{'metadata':{'name':'pool-%d'},'spec':{'nodeSelector':%s%s}}", i,
                         ONE_OF(w, "{'pool':'a'}", "{'pool':'b','zone':'1'}", "{'pool':'b'}"),
                         ONE_OF(w, "", ",'resources':{'nvidia.com/gpu':{'gpuEq':'1/4'}}",
                                ",'mode':'mig','profiles':{'1g.10gb':{'gpuEq':'1/7'}}",
                                ",'mode':'kai-fraction','scheduler':{'kind':'kai',"
                                "'queueTemplate':'{namespace}'}")));
}

/* --- the two readings --- */

static void begin(struct world *w, struct grant_state *s)
{
    const struct grant_times times = {.now_s = 1790000000, .grace_s = 60, .pause_s = 300};

    grant_state_begin(s, w->a, &times);
    s->keeps_queues = s->queues_known = true;
    for (int i = 0; i < POOLS; i++)
        grant_state_pool(s, w->pools[i]);
    for (int i = 0; i < TENANTS - 1; i++)
        grant_state_binding(s,
                            quoted_json(w->a, arena_printf(w->a,
                                                           "{'metadata':{'name':'b','namespace':"
                                                           "'team-%d'},'spec':{'pool':'pool-0'}}",
                                                           i)));
}

static void take_node(void *ctx, const struct grant_node *node)
{
    grant_state_node(ctx, node);
}

static void take_pod(void *ctx, const struct grant_pod *pod)
{
    grant_state_pod(ctx, pod);
}

/* Of trees alone: what a pool has, and what a tenant's pods hold and wait for of it. */
struct sums {
    struct rational nodes, down, healthy, stranded, foreign, foreign_up;
    struct rational placed[TENANTS], waiting[TENANTS];
};

static void add(struct rational *sum, struct rational more)
{
    const int64_t most = INT64_C(1000000000);

    if (!rational_add(*sum, more, sum) || sum->num / sum->den >= most)
        *sum = (struct rational){most, 1};
}

static void read_node(const struct grant_state *s, const cJSON *tree, size_t pool, struct sums *ret)
{
    struct fact_node fact;
    struct rational usable;

    fact_node(tree, s->configs, s->n_configs, &fact);
    if (fact.pool != &s->configs[pool])
        return;
    add(&ret->nodes, fact.total);
    assert_true(rational_sub(fact.total, fact.unhealthy, &usable));
    add(fact.down ? &ret->down : &ret->healthy, fact.down ? fact.total : usable);
}

/* The pool of its node, or the one that its nodeSelector names. */
static const struct config_pool *pool_of(const struct world *w, const struct grant_state *s,
                                         const cJSON *pod, struct fact_node *node)
{
    *node = (struct fact_node){0};
    for (int i = 0; i < NODES; i++)
        if (w->nodes[i] && str_eq(meta_name(w->nodes[i]), json_str_at(pod, "spec.nodeName")))
            fact_node(w->nodes[i], s->configs, s->n_configs, node);
    if (node->pool)
        return node->pool;
    for (size_t p = 0; p < s->n_configs && json_path(pod, "spec.nodeSelector"); p++)
        if (labels_cover(s->configs[p].node_selector, json_path(pod, "spec.nodeSelector")))
            return &s->configs[p];
    return NULL;
}

static void read_pod(const struct world *w, const struct grant_state *s, const cJSON *pod,
                     size_t pool, struct sums *ret)
{
    struct fact_node node;
    const struct config_pool *of = pool_of(w, s, pod, &node);
    int tenant = meta_ns(pod).p[5] - '0';
    struct rational gpus;
    struct str names;

    if (of != &s->configs[pool] || pod_is_finished(pod) ||
        !fact_pod_devices(w->a, pod, of, &gpus, &names) ||
        (node.pool && node.down && json_str_at(pod, "metadata.deletionTimestamp").n))
        return;
    if (tenant == TENANTS - 1) {
        if (node.pool)
            add(&ret->foreign, gpus);
        if (node.pool && !node.down)
            add(&ret->foreign_up, gpus);
        return;
    }
    add(node.pool ? &ret->placed[tenant] : &ret->waiting[tenant], gpus);
    if (node.pool && node.down)
        add(&ret->stranded, gpus);
}

#define SAME(x, y)                                                                                 \
    do {                                                                                           \
        if (rational_cmp((x), (y)))                                                                \
            fail_msg("seed %llu: " #x, (unsigned long long)w->seed);                               \
    } while (0)

static void compare(struct world *w)
{
    struct grant_state s;
    const struct grant_facts_visit visit = {take_node, take_pod, &s};

    begin(w, &s);
    grant_facts_each(w->facts, &visit);
    for (size_t p = 0; p < s.n_configs; p++) {
        struct rational zero = RATIONAL_ZERO;
        struct sums want = {.nodes = zero, .down = zero, .healthy = zero, .stranded = zero};

        want.foreign = want.foreign_up = zero;
        for (int i = 0; i < TENANTS; i++)
            want.placed[i] = want.waiting[i] = zero;

        for (int i = 0; i < NODES; i++)
            if (w->nodes[i])
                read_node(&s, w->nodes[i], p, &want);
        for (int i = 0; i < PODS; i++)
            if (w->pods[i])
                read_pod(w, &s, w->pods[i], p, &want);
        SAME(s.sums[p].nodes, want.nodes);
        SAME(s.sums[p].down, want.down);
        SAME(s.shares[p].healthy, want.healthy);
        SAME(s.sums[p].stranded, want.stranded);
        SAME(s.sums[p].foreign, want.foreign);
        SAME(s.sums[p].foreign_up, want.foreign_up);
        for (int i = 0; i < TENANTS - 1; i++) {
            SAME(s.rows[i].tenant->placed[p], want.placed[i]);
            SAME(s.rows[i].tenant->waiting[p], want.waiting[i]);
        }
    }
    grant_state_end(&s);
}

/* --- histories --- */

static void change(struct world *w)
{
    int node = (int)BELOW(&w->random, NODES), pod = (int)BELOW(&w->random, PODS);
    struct str node_name = arena_printf(w->a, "n%d", node),
               pod_name = arena_printf(w->a, "team/p%d", pod);

    switch (BELOW(&w->random, 8)) {
    case 0:
        random_pools(w);
        break;
    case 1:
        assert_int_equal(grant_facts_node(w->facts, node_name, NULL), w->nodes[node] != NULL);
        w->nodes[node] = NULL;
        break;
    case 2:
    case 3:
        w->nodes[node] = random_node(w, node);
        assert_true(grant_facts_node(w->facts, node_name, w->nodes[node]));
        break;
    case 4:
        (void)grant_facts_pod(w->facts, pod_name, NULL);
        assert_false(grant_facts_pod(w->facts, pod_name, NULL));
        w->pods[pod] = NULL;
        break;
    default:
        w->pods[pod] = random_pod(w, pod);
        (void)grant_facts_pod(w->facts, pod_name, w->pods[pod]);
    }
}

static void what_is_kept_is_what_is_read_anew(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w = {
            .a = arena_new(0), .seed = seed, .random = seed * 0x9e3779b97f4a7c15u + 1};

        w.facts = grant_facts_new();
        random_pools(&w);
        for (int round = 0; round < ROUNDS; round++) {
            change(&w);
            compare(&w);
        }
        w.facts = grant_facts_free(w.facts);
        arena_free(w.a);
    }
}

static void a_pod_without_devices_has_no_fact(void **state)
{
    struct arena *a = arena_new(0);
    struct grant_facts *f = grant_facts_new();
    cJSON *plain = quoted_json(
              a, STR("{'metadata':{'namespace':'x'},'spec':{'nodeName':'n1','containers':"
                     "[{'resources':{'limits':{'cpu':'4'}}}]}}")),
          *gpu = quoted_json(
              a, STR("{'metadata':{'namespace':'x'},'spec':{'nodeName':'n1','containers':"
                     "[{'resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}"));

    (void)state;
    assert_false(grant_facts_pod(f, STR("x/p"), plain));
    assert_true(grant_facts_pod(f, STR("x/p"), gpu));
    assert_true(grant_facts_pod(f, STR("x/p"), plain)); /* it is not any more */
    assert_false(grant_facts_pod(f, STR("x/p"), NULL));
    grant_facts_free(f);
    arena_free(a);
}

/* --- what settles --- */

static int64_t wall_us(void *ctx)
{
    return *(const int64_t *)ctx * SECOND;
}

struct seen {
    bool aside;
    int64_t settles_s;
    int n;
};

static void see_node(void *ctx, const struct grant_node *node)
{
    struct seen *seen = ctx;

    *seen = (struct seen){node->aside, node->settles_s, seen->n + 1};
}

static void see_pod(void *ctx, const struct grant_pod *pod)
{
    (void)ctx;
    (void)pod;
}

static struct seen see(struct grant_facts *f, struct arena *a, bool cordoned)
{
    const cJSON *tree = quoted_json(
        a, arena_printf(a, "{'metadata':{'name':'n'},'spec':{'unschedulable':%s},'status':{}}",
                        cordoned ? "true" : "false"));
    struct seen seen = {0};
    const struct grant_facts_visit visit = {see_node, see_pod, &seen};

    assert_true(grant_facts_node(f, STR("n"), tree));
    grant_facts_each(f, &visit);
    assert_int_equal(seen.n, 1);
    return seen;
}

/* What was aside counts so for a minute, from when it last was; a new node, or one that is made
 * anew, does not, and a clock that was set back holds none for longer. */
static void a_node_that_was_aside_settles(void **state)
{
    int64_t now_s = 1790000000, begin_s = now_s;
    const struct clock clock = {.wall_us = wall_us, .ctx = &now_s};
    struct grant_facts *f = grant_facts_new();
    struct arena *a = arena_new(0);

    (void)state;
    see(f, a, true);
    assert_int_equal(see(f, a, false).settles_s, 0); /* without a clock */
    grant_facts_settle(f, &clock);
    assert_int_equal(see(f, a, false).settles_s, 0);
    assert_true(see(f, a, true).aside);
    assert_int_equal(see(f, a, true).settles_s, 0); /* it is aside anyway */
    now_s += 5;
    assert_false(see(f, a, false).aside);
    now_s += 20; /* another change of the node prolongs nothing */
    assert_int_equal(see(f, a, false).settles_s, begin_s + 5 + GRANT_SETTLES_S);
    see(f, a, true);
    now_s += 7; /* it flaps: counted from the last time */
    assert_int_equal(see(f, a, false).settles_s, now_s + GRANT_SETTLES_S);
    now_s += GRANT_SETTLES_S;
    assert_int_equal(see(f, a, false).settles_s, 0);
    see(f, a, true);
    see(f, a, false);
    now_s -= 1000;
    assert_int_equal(see(f, a, false).settles_s, 0);
    see(f, a, true);
    grant_facts_node(f, STR("n"), NULL);
    assert_int_equal(see(f, a, false).settles_s, 0);
    grant_facts_free(f);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_what_is_read_anew),
        cmocka_unit_test(a_pod_without_devices_has_no_fact),
        cmocka_unit_test(a_node_that_was_aside_settles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
