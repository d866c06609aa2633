/* SPDX-License-Identifier: Apache-2.0 */
/* What ResourceSlices and ResourceClaims say: which devices count on which node, and what a claim
 * takes by its class. */
#include "test.h"

#include <sublet/buf.h>
#include <sublet/json_build.h>

#include "core/grant_claims.h"
#include "core/grant_devices.h"
#include "../../quoted.h"

struct seen {
    struct arena *a;
    struct grant_devices *d;
    struct config_pool pool;
    struct pool_device_class classes[2];
};

static void begin(struct seen *s)
{
    *s = (struct seen){.a = arena_new(0), .d = grant_devices_new()};
    s->classes[0] =
        (struct pool_device_class){.name = STR("slice"),
                                   .gpu_eq = {1, 7},
                                   .driver = STR("gpu.x.io"),
                                   .attributes = quoted_json(s->a, STR("{'type':'mig'}"))};
    s->classes[1] =
        (struct pool_device_class){.name = STR("whole"),
                                   .gpu_eq = {1, 1},
                                   .driver = STR("gpu.x.io"),
                                   .attributes = quoted_json(s->a, STR("{'gpu.x.io/type':'gpu'}"))};
    s->pool = (struct config_pool){.name = STR("p"),
                                   .mode = POOL_DRA,
                                   .device_classes = s->classes,
                                   .n_device_classes = COUNT(s->classes)};
}

static void end(struct seen *s)
{
    assert_null(grant_devices_free(s->d));
    arena_free(s->a);
}

/* more: members of spec, each before a comma; the last of a name counts. */
static void slice(struct seen *s, const char *name, int generation, int count, const char *more,
                  const char *devices)
{
    struct str text = arena_printf(
        s->a,
        "{'metadata':{'name':'%s'},'spec':{'driver':'gpu.x.io','nodeName':'n0',"
        "'pool':{'name':'n0','generation':%d,'resourceSliceCount':%d},%s'devices':[%s]}}",
        name, generation, count, more, devices);
    cJSON *tree = quoted_json(s->a, text);

    grant_devices_reduce(s->a, tree);
    grant_devices_slice(s->d, str_c(name), tree);
}

#define GPU(name)  "{'name':'" name "','attributes':{'type':{'string':'gpu'}}}"
#define MANY(name) GPU(name "a") "," GPU(name "b") "," GPU(name "c") "," GPU(name "d")

static void check_node(struct seen *s, const char *node, const char *total, const char *healthy)
{
    struct rational t, h;

    grant_devices_count(s->d, str_c(node), &s->pool, &t, &h);
    assert_str(rational_format(s->a, t), total);
    assert_str(rational_format(s->a, h), healthy);
}

static void check(struct seen *s, const char *total, const char *healthy)
{
    check_node(s, "n0", total, healthy);
}

static void devices_of_a_class_count_on_their_node(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    check(&s, "0", "0");
    slice(&s, "a", 1, 1, "",
          GPU("g0") "," GPU("g1") ",{'name':'nic','attributes':{'type':{'string':'nic'}}},"
                                  "{'name':'bare'},{'name':'other','attributes':{"
                                  "'y.io/type':{'string':'gpu'}}},{'name':'number','attributes':{"
                                  "'type':{'int':1}}}");
    check(&s, "2", "2");
    check_node(&s, "n1", "0", "0");
    grant_devices_count(NULL, STR("n0"), &s.pool, &s.classes[0].gpu_eq, &s.classes[1].gpu_eq);
    assert_int_equal(s.classes[1].gpu_eq.num, 0);
    grant_devices_slice(s.d, STR("a"), NULL);
    grant_devices_slice(s.d, STR("a"), NULL);
    s.classes[1].gpu_eq = (struct rational){1, 1};
    check(&s, "0", "0");
    end(&s);
}

static void other_drivers_and_devices_without_a_node_do_not_count(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "foreign", 1, 1, "'driver':'gpu.y.io',", GPU("g0"));
    check(&s, "0", "0");
    slice(&s, "all", 1, 1, "'nodeName':'','allNodes':true,", GPU("g0"));
    slice(&s, "by-device", 1, 1, "'perDeviceNodeSelection':true,", GPU("g1"));
    check(&s, "0", "0");
    slice(&s, "foreign", 1, 1, "'nodeName':'n1',", GPU("g0"));
    check_node(&s, "n1", "1", "1");
    end(&s);
}

static void attributes_have_types_and_domains(void **state)
{
    static const struct {
        const char *want, *total;
    } cases[] = {
        {"{'fast':'true'}", "1"},
        {"{'fast':'false'}", "0"},
        {"{'gen':'9'}", "1"},
        {"{'gen':'09'}", "0"},
        {"{'v':'1.2.3'}", "1"},
        {"{'z.io/k':'x'}", "1"},
        {"{'k':'x'}", "0"},
        {"{'gpu.x.io/gen':'9'}", "1"},
        {"{'none':''}", "0"},
        {"{'fast':'true','gen':'9'}", "1"},
        {"{'fast':'true','gen':'8'}", "0"},
        {"{}", "1"},
    };
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 1, "",
          "{'name':'g','attributes':{'fast':{'bool':true},'gen':{'int':9},'v':{'version':'1.2.3'},"
          "'z.io/k':{'string':'x'}}}");
    s.pool.n_device_classes = 1;
    s.classes[0].gpu_eq = (struct rational){1, 1};
    for (size_t i = 0; i < COUNT(cases); i++) {
        s.classes[0].attributes = quoted_json(s.a, str_c(cases[i].want));
        check(&s, cases[i].total, cases[i].total);
    }
    end(&s);
}

static void tainted_devices_are_unhealthy(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 1, "",
          GPU("g0") ",{'name':'g1','attributes':{'type':{'string':'gpu'}},'taints':[{'key':'x',"
                    "'effect':'NoSchedule'}]},{'name':'g2','attributes':{'type':{'string':'gpu'}},"
                    "'taints':[{'key':'x','effect':'NoExecute'}]},{'name':'g3','attributes':{"
                    "'type':{'string':'gpu'}},'taints':[{'key':'x','effect':'None'}]}");
    check(&s, "4", "2");
    end(&s);
}

static bool rule(struct seen *s, const char *name, const char *spec)
{
    return grant_devices_rule(s->d, str_c(name),
                              quoted_json(s->a, arena_printf(s->a, "{'spec':{%s}}", spec)));
}
#define TAINT(effect) "'taint':{'key':'x','effect':'" effect "'}"

static void a_rule_taints_what_it_selects(void **state)
{
    static const struct {
        const char *spec, *healthy;
    } cases[] = {
        {"'deviceSelector':{'device':'g1'}," TAINT("NoSchedule"), "3"},
        {"'deviceSelector':{'device':'g1','driver':'gpu.x.io','pool':'n0'}," TAINT("NoExecute"),
         "3"},
        {"'deviceSelector':{'device':'g1','driver':'gpu.y.io'}," TAINT("NoExecute"), "4"},
        {"'deviceSelector':{'device':'g1','pool':'n1'}," TAINT("NoExecute"), "4"},
        {"'deviceSelector':{'device':'g9'}," TAINT("NoExecute"), "4"},
        {"'deviceSelector':{'device':'g1'}," TAINT("None"), "4"},
        {"'deviceSelector':{'pool':'n0'}," TAINT("NoSchedule"), "0"},
        {"'deviceSelector':{}," TAINT("NoSchedule"), "0"},
        {TAINT("NoSchedule"), "4"}, /* without a selector: none */
        {"'deviceSelector':'x','taint':'y'", "4"},
    };
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 1, "", GPU("g0") "," GPU("g1") "," GPU("g2") "," GPU("g3"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        (void)rule(&s, "r", cases[i].spec);
        check(&s, "4", cases[i].healthy);
    }
    end(&s);
}

static void count_node(void *ctx, struct str node)
{
    assert_str(node, "n0");
    *(int *)ctx += 1;
}

static void rules_come_and_go(void **state)
{
    static const char g1[] = "'deviceSelector':{'device':'g1'}," TAINT("NoSchedule");
    struct seen s;
    int nodes = 0;

    (void)state;
    begin(&s);
    assert_true(rule(&s, "early", g1)); /* before its device */
    assert_false(rule(&s, "early", g1));
    assert_false(rule(&s, "none", TAINT("NoSchedule")));
    slice(&s, "a", 1, 1, "", GPU("g0") "," GPU("g1"));
    check(&s, "2", "1");
    assert_true(rule(&s, "second", g1));
    assert_true(grant_devices_rule(s.d, STR("early"), NULL));
    assert_false(grant_devices_rule(s.d, STR("early"), NULL));
    check(&s, "2", "1");
    assert_true(rule(&s, "second", "'deviceSelector':{'device':'g1'}," TAINT("None")));
    check(&s, "2", "2");
    grant_devices_each_node(s.d, count_node, &nodes);
    assert_int_equal(nodes, 1);
    end(&s);
}

/* Rather all of them than one too few. */
static void more_rules_than_can_be_kept_taint_everything(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 1, "", GPU("g0"));
    for (int i = 0; i <= GRANT_DEVICE_RULES; i++) {
        check(&s, "1", "1");
        rule(&s, arena_printf(s.a, "r%d", i).p,
             "'deviceSelector':{'device':'g9'}," TAINT("NoSchedule"));
    }
    check(&s, "1", "0");
    assert_true(grant_devices_rule(s.d, STR("r0"), NULL));
    check(&s, "1", "1");
    end(&s);
}

/* A driver that updates two slices does so one by one. */
static void the_newest_complete_generation_counts(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 2, "", MANY("a"));
    check(&s, "0", "0");
    slice(&s, "b", 1, 2, "", MANY("b"));
    check(&s, "8", "8");
    slice(&s, "a", 2, 2, "", MANY("a"));
    check(&s, "8", "0"); /* as before, until the other one is there */
    slice(&s, "b", 2, 2, "", GPU("b0"));
    check(&s, "5", "5");
    slice(&s, "old", 1, 1, "", MANY("o"));
    check(&s, "5", "5");
    slice(&s, "b", 3, 1, "", GPU("b0"));
    check(&s, "1", "1");
    slice(&s, "c", 4, 2, "", GPU("b0")); /* never complete: what is older, and complete */
    check(&s, "1", "0");
    grant_devices_slice(s.d, STR("c"), NULL);
    check(&s, "1", "1");
    grant_devices_slice(s.d, STR("b"), NULL);
    check(&s, "4", "0");
    grant_devices_slice(s.d, STR("a"), NULL);
    check(&s, "4", "4");
    grant_devices_slice(s.d, STR("old"), NULL);
    check(&s, "0", "0");
    end(&s);
}

static void a_pool_with_a_name_twice_is_none(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 2, "", GPU("g0") "," GPU("g1"));
    slice(&s, "b", 1, 2, "", GPU("g1"));
    check(&s, "0", "0");
    slice(&s, "b", 1, 2, "", GPU("g2"));
    check(&s, "3", "3");
    slice(&s, "more", 1, 2, "", GPU("g3")); /* one more than it says */
    check(&s, "3", "0");
    end(&s);
}

/* Of another node's pool of the same name nothing is known here. */
static void a_node_speaks_for_itself(void **state)
{
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "a", 1, 1, "", MANY("a"));
    slice(&s, "b", 99, 1, "'nodeName':'n1',", GPU("x"));
    check(&s, "4", "4");
    check_node(&s, "n1", "1", "1");
    slice(&s, "a", 1, 1, "'nodeName':'n1',", MANY("a")); /* it moves */
    check(&s, "0", "0");
    check_node(&s, "n1", "1", "1");
    end(&s);
}

static void huge_slices_are_bounded(void **state)
{
    struct buf devices = BUF_INIT(0);
    struct seen s;

    (void)state;
    begin(&s);
    for (int i = 0; i < 3000; i++)
        buf_printf(&devices, "%s{'name':'g%d','attributes':{'type':{'string':'gpu'}}}",
                   i ? "," : "", i);
    slice(&s, "huge", 1, 1, "", arena_cstr(s.a, buf_str(&devices)));
    check(&s, "1024", "1024");
    slice(&s, "more", 1, 1,
          "'driver':'gpu.x.io','pool':{'name':'second','generation':1,"
          "'resourceSliceCount':1},",
          GPU("g"));
    check(&s, "1024", "1024");
    grant_devices_slice(s.d, STR("huge"), NULL);
    for (int i = 0; i < 70; i++)
        slice(&s, arena_printf(s.a, "s%d", i).p, 1, 70, "",
              arena_printf(s.a, "{'name':'g%d','attributes':{'type':{'string':'gpu'}}}", i).p);
    check(&s, "1", "1");
    buf_fini(&devices);
    end(&s);
}

#define SET(n) "{'name':'set-" n "','counters':{'units':{'value':'7'},'memory':{'value':'40Gi'}}}"
#define USES(n, units, memory)                                                                     \
    "'consumesCounters':[{'counterSet':'set-" n "','counters':{'units':{'value':'" units           \
    "'},'memory':{'value':'" memory "'}}}]}"
#define PART(name, n)                                                                              \
    "{'name':'" name "','attributes':{'type':{'string':'mig'}}," USES(n, "1", "5Gi")
#define WHOLE(name, n)                                                                             \
    "{'name':'" name "','attributes':{'type':{'string':'gpu'}}," USES(n, "7", "40Gi")
#define PARTS(n) PART("a" n, n) "," PART("b" n, n) "," PART("c" n, n) "," PART("d" n, n)

/* All that a GPU may be is listed at once; it is one of it at a time. */
static void devices_that_share_counters_count_once(void **state)
{
    struct buf devices = BUF_INIT(0);
    static const struct grant_device_name names[] = {
        {STR("gpu.x.io"), STR("n0"), STR("j")},     {STR("gpu.x.io"), STR("n0"), STR("gpu-0")},
        {STR("gpu.x.io"), STR("n0"), STR("gpu-0")}, {STR("gpu.x.io"), STR("n1"), STR("gpu-0")},
        {STR("gpu.y.io"), STR("n0"), STR("gpu-1")}, {STR("gpu.x.io"), STR("n0"), STR("none")}};
    static const int taken[] = {1, 1, 0, 0, 0, 0};
    struct seen s;

    (void)state;
    begin(&s);
    slice(&s, "counters", 1, 2, "'sharedCounters':[" SET("0") "," SET("1") "],", "");
    buf_addc(&devices, WHOLE("gpu-0", "0") "," PARTS("0") "," PART("e", "0"));
    buf_addc(&devices, "," PART("f", "0") "," PART("g", "0") "," PART("h", "0"));
    buf_addc(&devices, "," WHOLE("gpu-1", "1") "," PART("j", "1") "," PART("lost", "2"));
    slice(&s, "devices", 1, 2, "", arena_cstr(s.a, buf_str(&devices)));
    buf_fini(&devices);
    check(&s, "2", "2");
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(grant_devices_take(s.d, STR("n0"), &names[i]).num, taken[i]);
    s.pool.n_device_classes = 1; /* slices alone: seven by the units, one GPU has eight of 5Gi */
    check(&s, "8/7", "8/7");
    end(&s);
}

/* --- claims --- */

static void note(void *ctx, const struct grant_claim *c)
{
    struct buf *b = ctx;

    buf_printf(b, "%.*s@%.*s", STR_F(c->ns), STR_F(c->node));
    for (size_t i = 0; i < c->n_units; i++)
        buf_printf(b, " %.*s=%lld", STR_F(c->units[i].resource), (long long)c->units[i].units);
    for (size_t i = 0; i < c->n_devices; i++)
        buf_printf(b, " [%.*s %.*s]", STR_F(c->devices[i].name.device), STR_F(c->devices[i].key));
    buf_printf(b, "\n");
}

#define KEY ".deviceclass.resource.k8s.io/devices"

static void a_claim_counts_as_a_quota_charges_it(void **state)
{
    static const struct {
        const char *requests, *results, *want;
    } cases[] = {
        {"{'name':'r','exactly':{'deviceClassName':'x'}}", "", "t@ x" KEY "=1\n"},
        {"{'name':'r','exactly':{'deviceClassName':'x','count':3}},{'name':'q','exactly':{"
         "'deviceClassName':'x','count':2}}",
         "", "t@ x" KEY "=5\n"},
        {"{'name':'r','exactly':{'deviceClassName':'x','allocationMode':'All'}}", "",
         "t@ x" KEY "=32\n"},
        {"{'name':'r','exactly':{'deviceClassName':'x','count':9223372036854775807}},{'name':'q',"
         "'exactly':{'deviceClassName':'x'}}",
         "", "t@ x" KEY "=-1\n"},
        {"{'name':'r','firstAvailable':[{'name':'a','deviceClassName':'x','count':2},{'name':'b',"
         "'deviceClassName':'y'},{'name':'c','deviceClassName':'x','count':4}]}",
         "{'request':'r/b','driver':'d','pool':'p','device':'g0'},{'request':'none','driver':'d',"
         "'pool':'p','device':'g1'},{'request':'r/a','driver':'d','pool':'p','device':'g2',"
         "'adminAccess':true}",
         "t@n0 x" KEY "=4 y" KEY "=1 [g0 y" KEY "] [g1 ]\n"},
        {"{'name':'r','exactly':{'deviceClassName':'x'}}",
         "{'request':'r','driver':'d','pool':'p','device':'g0'}",
         "t@n0 x" KEY "=1 [g0 x" KEY "]\n"},
    };
    struct arena *a = arena_new(0);
    struct grant_claims *c = grant_claims_new();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf b = BUF_INIT(0);
        cJSON *tree = quoted_json(
            a, arena_printf(a,
                            "{'metadata':{'name':'c','namespace':'t','labels':{}},'spec':{'devices'"
                            ":{'requests':[%s],'config':[]}},'status':{%s}}",
                            cases[i].requests,
                            *cases[i].results
                                ? arena_printf(a,
                                               "'allocation':{'nodeSelector':{'nodeSelectorTerms':"
                                               "[{'matchFields':[{'key':'metadata.name','operator':"
                                               "'In','values':['n0']}]}]},'devices':{'results':[%s]"
                                               "}}",
                                               cases[i].results)
                                      .p
                                : ""));

        grant_claims_reduce(a, tree);
        grant_claims_set(c, STR("t/c"), tree);
        grant_claims_each(c, note, &b);
        assert_str(buf_str(&b), cases[i].want);
        buf_fini(&b);
    }
    grant_claims_set(c, STR("t/c"), NULL);
    assert_null(grant_claims_free(c));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_a_class_count_on_their_node),
        cmocka_unit_test(other_drivers_and_devices_without_a_node_do_not_count),
        cmocka_unit_test(attributes_have_types_and_domains),
        cmocka_unit_test(tainted_devices_are_unhealthy),
        cmocka_unit_test(a_rule_taints_what_it_selects),
        cmocka_unit_test(rules_come_and_go),
        cmocka_unit_test(more_rules_than_can_be_kept_taint_everything),
        cmocka_unit_test(the_newest_complete_generation_counts),
        cmocka_unit_test(a_pool_with_a_name_twice_is_none),
        cmocka_unit_test(a_node_speaks_for_itself),
        cmocka_unit_test(huge_slices_are_bounded),
        cmocka_unit_test(devices_that_share_counters_count_once),
        cmocka_unit_test(a_claim_counts_as_a_quota_charges_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
