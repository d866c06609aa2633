/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of nodes, and pods on them that hold no GPUs: of reduced objects, as a fleet sees them. */
#include "test.h"

#include "core/watch.h"
#include "../../quoted.h"

static cJSON *parse(struct arena *a, const char *text)
{
    return quoted_json(a, str_c(text));
}

struct watched {
    struct arena *a;
    struct fleet_watch *w;
    struct fleet_watch_view view;
};

static void node(struct watched *t, const char *name, const char *labels, const char *spec,
                 const char *conditions, int usable)
{
    cJSON *tree = parse(
        t->a,
        arena_cstr(t->a, arena_printf(t->a,
                                      "{'metadata':{'name':'%s','labels':%s},'spec':%s,'status':{"
                                      "'capacity':{'cpu':'64','nvidia.com/gpu':'8'},'allocatable':"
                                      "{'nvidia.com/gpu':'%d'},'conditions':[{'type':'Ready',"
                                      "'status':'True'}%s]}}",
                                      name, labels, spec, usable, conditions)));

    fact_reduce_node(t->a, tree);
    fleet_watch_node(t->w, str_c(name), tree);
}

static cJSON *pod(struct watched *t, const char *ns, const char *on, const char *more,
                  const char *requests)
{
    cJSON *tree = parse(
        t->a, arena_cstr(t->a, arena_printf(t->a,
                                            "{'metadata':{'name':'p','namespace':'%s','uid':'u'%s},"
                                            "'spec':{'nodeName':'%s','containers':[{'resources':{"
                                            "'requests':%s}}]},'status':{'phase':'Running'}}",
                                            ns, more, on, requests)));

    fact_reduce_pod(t->a, tree);
    return tree;
}

static void look(struct watched *t)
{
    static const struct str members[] = {STR("\"pool\":\"a\""), STR("\"pool\":\"b\"")};
    struct fleet_watch_pool *pools = arena_alloc(t->a, 2 * sizeof(*pools));

    pools[0] = (struct fleet_watch_pool){STR("pool-a"), {&members[0], 1}};
    pools[1] = (struct fleet_watch_pool){STR("pool-b"), {&members[1], 1}};
    fleet_watch_look(t->w, t->a, pools, 2, &t->view);
}

static void check_nodes(struct watched *t, const char *want)
{
    struct buf got = BUF_INIT(0);

    look(t);
    for (size_t i = 0; i < t->view.n_nodes; i++) {
        const struct fleet_watch_node *n = &t->view.nodes[i];

        buf_printf(&got, "%.*s(%.*s)", STR_F(n->node), STR_F(n->pool));
        for (size_t s = 0; s < N_FLEET_WATCH_STATES; s++)
            if (n->states & 1u << s)
                buf_printf(&got, " %s", FLEET_WATCH_STATES[s]);
        buf_printf(&got, "%s%.*s\n", n->conditions.n ? ": " : "", STR_F(n->conditions));
    }
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

static void check_misuse(struct watched *t, const char *want)
{
    struct buf got = BUF_INIT(0);

    look(t);
    for (size_t i = 0; i < t->view.n_misuse; i++) {
        const struct fleet_watch_misuse *m = &t->view.misuse[i];

        buf_printf(&got, "%.*s %.*s %zu %lld %lld\n", STR_F(m->pool), STR_F(m->tenant), m->pods,
                   (long long)m->cpu_milli, (long long)m->memory);
    }
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

#define TAINT "{'taints':[{'key':'sublet.dev/pool','effect':'NoSchedule'}]}"

static void faults_of_nodes(void **state)
{
    struct watched t = {.a = arena_new(0), .w = fleet_watch_new()};

    (void)state;
    node(&t, "n1", "{'pool':'a'}", TAINT, "", 8);
    check_nodes(&t, "");
    node(&t, "n2", "{'pool':'a'}", "{}", "", 8);
    node(&t, "n3", "{'pool':'b'}",
         "{'unschedulable':true,'taints':[{'key':'node.kubernetes.io/unschedulable',"
         "'effect':'NoSchedule'}]}",
         "", 8);
    node(&t, "n4", "{}", "{}", "", 8);
    node(&t, "n5", "{'pool':'b'}", TAINT,
         ",{'type':'XIDError','status':'True'},{'type':'GPUHealthy','status':'False'},"
         "{'type':'GpuReady','status':'True'},{'type':'KernelDeadlock','status':'True'},"
         "{'type':'DiskPressure','status':'False'}",
         8);
    node(&t, "n6", "{'pool':'b'}", TAINT, "", 7);
    node(&t, "n7", "{'pool':'a'}", TAINT, ",{'type':'Ready','status':'Unknown'}", 8);
    check_nodes(&t, "n2(pool-a) untainted\n"
                    "n3(pool-b) cordoned untainted\n"
                    "n4() unmatched\n"
                    "n5(pool-b) unhealthy: XIDError, GPUHealthy\n"
                    "n6(pool-b) unhealthy\n");
    assert_int_equal(t.view.sums[0].nodes, 3);
    assert_int_equal(t.view.sums[1].states[FLEET_WATCH_UNHEALTHY], 2);
    assert_str(t.view.sums[1].first[FLEET_WATCH_UNHEALTHY], "n5, n6");
    assert_int_equal(t.view.sums[2].nodes, 1);
    fleet_watch_node(t.w, STR("n2"), NULL);
    node(&t, "n3", "{'pool':'b'}", TAINT, "", 8);
    node(&t, "n4", "{'pool':'a'}", TAINT, "", 8);
    node(&t, "n5", "{'pool':'b'}", TAINT, "", 8);
    fleet_watch_node(
        t.w, STR("n6"),
        parse(t.a, "{'metadata':{'name':'n6','labels':{'pool':'b'}},'spec':" TAINT "}"));
    check_nodes(&t, "n6(pool-b) not-ready\n");
    t.w = fleet_watch_free(t.w);
    arena_free(t.a);
}

static void pods_without_gpus(void **state)
{
    struct watched t = {.a = arena_new(0), .w = fleet_watch_new()};
    cJSON *one, *two, *claims;

    (void)state;
    node(&t, "n1", "{'pool':'a'}", TAINT, "", 8);
    node(&t, "n2", "{'pool':'a'}", TAINT, "", 8);
    node(&t, "n4", "{}", "{}", "", 8);
    one = pod(&t, "team-a", "n1", "", "{'cpu':'250m','memory':'1Mi'}");
    two = pod(&t, "team-a", "n2", "", "{'cpu':'2'}");
    assert_true(fleet_watch_pod(t.w, NULL, one));
    assert_true(fleet_watch_pod(t.w, NULL, two));
    assert_false(fleet_watch_pod(t.w, NULL, pod(&t, "team-a", "n1", "", "{}")));
    assert_true(fleet_watch_pod(t.w, NULL, pod(&t, "team-b", "n4", "", "{}"))); /* in no pool */
    assert_false(fleet_watch_pod(t.w, NULL, pod(&t, "team-b", "gone", "", "{}")));
    fleet_watch_node(t.w, STR("cpu"), parse(t.a, "{'metadata':{'name':'cpu'},'spec':{}}"));
    assert_false(fleet_watch_pod(t.w, NULL, pod(&t, "team-b", "cpu", "", "{}")));
    (void)fleet_watch_pod(
        t.w, NULL,
        pod(&t, "gpu-operator", "n1", ",'ownerReferences':[{'kind':'DaemonSet'}]", "{}"));
    (void)fleet_watch_pod(
        t.w, NULL, pod(&t, "kube-system", "n1", ",'ownerReferences':[{'kind':'Node'}]", "{}"));
    (void)fleet_watch_pod(t.w, NULL, pod(&t, "team-c", "", "", "{'cpu':'4'}")); /* waits */
    claims = parse(t.a, "{'metadata':{'name':'p','namespace':'team-d','uid':'u'},'spec':{"
                        "'nodeName':'n1','resourceClaims':[{'name':'d'}],'containers':[{}]}}");
    fact_reduce_pod(t.a, claims); /* devices that its spec does not name */
    (void)fleet_watch_pod(t.w, NULL, claims);
    check_misuse(&t, "pool-a team-a 3 2250 1048576\n");
    assert_int_equal(t.view.sums[0].misused, 2);
    (void)fleet_watch_pod(t.w, two, NULL);
    check_misuse(&t, "pool-a team-a 2 250 1048576\n");
    (void)fleet_watch_pod(t.w, one,
                          pod(&t, "team-a", "n1", "", "{'memory':'9223372036854775807'}"));
    (void)fleet_watch_pod(t.w, NULL, pod(&t, "team-a", "n1", "", "{'memory':'1'}"));
    look(&t);
    assert_true(t.view.misuse[0].memory > 0 && t.view.misuse[0].cpu_milli == 0);
    (void)fleet_watch_pod(t.w, pod(&t, "team-a", "n1", "", "{'memory':'9223372036854775807'}"),
                          NULL);
    look(&t);
    assert_int_equal(t.view.misuse[0].memory, 1);
    t.w = fleet_watch_free(t.w);
    arena_free(t.a);
}

/* However many namespaces there are, rows are bounded, and what has most stays. */
static void rows_are_bounded(void **state)
{
    struct watched t = {.a = arena_new(0), .w = fleet_watch_new()};

    (void)state;
    for (int i = 0; i < FLEET_WATCH_ROWS + 10; i++) {
        struct str name = arena_printf(t.a, "n%d", i), ns = arena_printf(t.a, "team-%d", i);

        node(&t, name.p, "{'pool':'a'}", "{}", "", 8);
        for (int k = 0; k < (i == 5 ? 3 : 1); k++)
            (void)fleet_watch_pod(t.w, NULL, pod(&t, ns.p, name.p, "", "{}"));
    }
    look(&t);
    assert_int_equal(t.view.n_nodes, FLEET_WATCH_ROWS);
    assert_int_equal(t.view.n_misuse, FLEET_WATCH_ROWS);
    assert_int_equal(t.view.n_not_shown, 20);
    assert_str(t.view.misuse[0].tenant, "team-5");
    assert_int_equal(t.view.sums[0].states[FLEET_WATCH_UNTAINTED], FLEET_WATCH_ROWS + 10);
    t.w = fleet_watch_free(t.w);
    arena_free(t.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_nodes),
        cmocka_unit_test(pods_without_gpus),
        cmocka_unit_test(rows_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
