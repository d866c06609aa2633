/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and bindings out of GPUBindings: read as strictly as the file's, beside those of the file,
 * and bounded by what is granted. */
#include <sublet/config_bound.h>
#include <sublet/yaml.h>

#include "test.h"

#define FILE_POOL                                                                                  \
    "{pools: [{name: f, nodeSelector: {p: f}}], bindings: [{pool: f, guarantee: 2, default: "      \
    "true}]}"
#define OBJECT(name, pool, spec, grant)                                                            \
    "{metadata: {name: " name "}, spec: {pool: " pool ", " spec "}, status: {" grant               \
    "pool: {name: " pool ", nodeSelector: {p: " pool "}}}}"

struct fixture {
    struct config_fixture *base;
    struct config_bound *set;
    struct config live;
    struct err err;
    bool default_lost;
};

static struct fixture begin(void **state, const char *yaml)
{
    struct config_fixture *base = *state;
    struct fixture f = {.base = base};

    if (load_config(base, yaml))
        fail_msg("%.*s", STR_F(base->err.message));
    f.set = config_bound_new(&base->config);
    f.live = base->config;
    err_init(&f.err, base->a);
    return f;
}

static void finish(struct fixture *f)
{
    f->set = config_bound_free(f->set);
}

static int add(struct fixture *f, const char *yaml, bool ended)
{
    cJSON *tree = NULL;

    if (yaml_parse(f->base->a, str_c(yaml), NULL, NULL, &tree, &f->err))
        fail_msg("%s: %.*s", yaml, STR_F(f->err.message));
    return config_bound_add(f->set, tree, ended, &f->default_lost, &f->err);
}

static const struct config_binding *bound(struct fixture *f, const char *pool)
{
    config_bound_install(f->set, &f->live);
    return config_binding_of(&f->live, str_c(pool));
}

static void assert_rational(struct rational got, int64_t num, int64_t den)
{
    assert_int_equal(got.num, num);
    assert_int_equal(got.den, den);
}

/* The limit is the least of guarantee + burst and what is granted; nothing granted is nothing. */
static void a_grant_bounds_the_limit(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;
    const struct config_binding *b;

    assert_ok(add(f, OBJECT("a", "a", "guarantee: 2, burst: 2", "grant: '3', "), false));
    assert_ok(add(f, OBJECT("b", "b", "guarantee: 2, burst: 2", "grant: '9', "), false));
    assert_ok(add(f, OBJECT("c", "c", "guarantee: 2", ""), false));
    assert_ok(add(f, OBJECT("d", "d", "guarantee: 1/7", "grant: 1/14, "), false));
    b = bound(f, "a");
    assert_rational(b->limit, 3, 1);
    assert_rational(b->most, 4, 1);
    assert_rational(bound(f, "b")->limit, 4, 1);
    assert_rational(bound(f, "c")->limit, 0, 1);
    assert_rational(bound(f, "d")->limit, 1, 14);
    assert_int_equal(f->live.n_pools, 5);
    assert_int_equal(f->live.n_bindings, 5);
    for (size_t i = 0; i < f->live.n_bindings; i++)
        assert_true(f->live.bindings[i].pool >= f->live.pools &&
                    f->live.bindings[i].pool < f->live.pools + f->live.n_pools);
    assert_rational(bound(f, "f")->limit, 2, 1);
    finish(f);
}

/* What the file may not have, with its place; the set is as before. */
/* Its Queue has a name of its own by then. */
static void one_may_have_parts_of_gpus(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;
    const struct config_binding *b;

    assert_ok(add(f,
                  "{metadata: {name: x}, spec: {pool: a, guarantee: 1, burst: 2}, status: {grant: "
                  "'1.96', pool: {name: a, mode: kai-fraction, nodeSelector: {p: a}, scheduler: "
                  "{kind: kai, queueTemplate: team-a-parts}}}}",
                  false));
    b = bound(f, "a");
    assert_int_equal(b->pool->mode, POOL_KAI);
    assert_str(b->pool->queue, "team-a-parts");
    assert_str(b->pool->resources[0].name, "sublet.dev/gpu-percent");
    assert_rational(b->limit, 49, 25);
    assert_error(add(f,
                     "{metadata: {name: z}, spec: {pool: b, guarantee: 1}, status: {grant: '1', "
                     "pool: {name: b, mode: kai-fraction, nodeSelector: {p: b}}}}",
                     false),
                 "GPUBinding \"z\": status.pool: scheduler.kind kai is needed for mode "
                 "kai-fraction");
    finish(f);
}

static void a_bad_one_is_refused_with_its_place(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;

    assert_error(add(f,
                     "{metadata: {name: x}, spec: {pool: a, guarantee: 1}, status: {grant: '1', "
                     "pool: {name: a, mode: fast, nodeSelector: {p: a}}}}",
                     false),
                 "GPUBinding \"x\": status.pool.mode: unknown value \"fast\": want one of "
                 "exclusive|mig|time-slicing|mps|kai-fraction|hami|volcano-vgpu|dra");
    err_clear(&f->err);
    assert_true(add(f, "{metadata: {name: x}, spec: {pool: a}, status: {pool: {name: a}}}", false) <
                0);
    assert_has(f->err.message, "GPUBinding \"x\": status.pool: nodeSelector is needed");
    err_clear(&f->err);
    assert_true(add(f, OBJECT("x", "a", "guarantee: 1, lend: 2", "grant: '1', "), false) < 0);
    assert_has(f->err.message, "GPUBinding \"x\": spec: lend must not exceed guarantee");
    err_clear(&f->err);
    assert_true(add(f, OBJECT("x", "a", "guarantee: 1", "grant: lots, "), false) < 0);
    assert_has(f->err.message, "GPUBinding \"x\": status.grant: ");
    err_clear(&f->err);
    assert_true(add(f,
                    "{metadata: {name: x}, spec: {pool: b, guarantee: 1}, status: {pool: {name: a, "
                    "nodeSelector: {p: a}}}}",
                    false) < 0);
    assert_has(f->err.message, "GPUBinding \"x\": spec.pool: no pool is called \"b\"");
    err_clear(&f->err);
    bound(f, "f");
    assert_int_equal(f->live.n_pools, 1);
    assert_int_equal(f->live.n_bindings, 1);
    finish(f);
}

static void one_pool_has_one_binding(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;

    assert_error(add(f, OBJECT("x", "f", "guarantee: 1", "grant: '1', "), false),
                 "GPUBinding \"x\": status.pool.name: \"f\": the configuration file has a pool of "
                 "this name");
    assert_ok(add(f, OBJECT("a", "a", "guarantee: 1", "grant: '1', "), false));
    assert_error(add(f, OBJECT("b", "a", "guarantee: 5", "grant: '5', "), false),
                 "GPUBinding \"b\": status.pool.name: \"a\": another GPUBinding has it");
    assert_rational(bound(f, "a")->limit, 1, 1);
    assert_true(config_bound_has(f->set, STR("a")) && config_bound_has(f->set, STR("f")));
    assert_false(config_bound_has(f->set, STR("b")));
    finish(f);
}

static void there_is_one_default(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;

    assert_ok(add(f, OBJECT("a", "a", "guarantee: 1, default: true", "grant: '1', "), false));
    assert_true(f->default_lost);
    assert_false(bound(f, "a")->is_default);
    assert_true(bound(f, "f")->is_default);
    finish(f);
}

/* What runs by it is taken back as it says. */
static void an_ended_one_takes_back(void **state)
{
    struct fixture v = begin(state, ""), *f = &v;

    assert_ok(add(f,
                  OBJECT("a", "a", "guarantee: 1",
                         "grant: '0', reclaim: {gpus: '1', notBefore: '2026-01-31T12:00:00Z'}, "),
                  true));
    assert_true(bound(f, "a")->ended && bound(f, "a")->reclaim);
    assert_int_equal(bound(f, "a")->reclaim_not_before_s, 1769860800);
    finish(f);
}

/* One that has ended grants nothing, and is the default of nothing. */
static void an_ended_one_grants_nothing(void **state)
{
    struct fixture v = begin(state, ""), *f = &v;

    assert_ok(add(f, OBJECT("a", "a", "guarantee: 1, default: true", "grant: '1', "), true));
    assert_ok(add(f, OBJECT("b", "b", "guarantee: 1, default: true", "grant: '1', "), false));
    assert_true(bound(f, "a")->ended && !bound(f, "a")->is_default);
    assert_rational(bound(f, "a")->limit, 0, 1);
    assert_rational(bound(f, "a")->most, 0, 1);
    assert_true(bound(f, "b")->is_default && !bound(f, "b")->ended);
    finish(f);
}

static void there_are_so_many(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;
    char yaml[256];

    for (int i = 0; i <= CONFIG_MOST_BOUND; i++) {
        snprintf(yaml, sizeof(yaml),
                 "{metadata: {name: b%d}, spec: {pool: p%d, guarantee: 1}, status: {grant: '1', "
                 "pool: {name: p%d, nodeSelector: {p: p%d}}}}",
                 i, i, i, i);
        if (i < CONFIG_MOST_BOUND)
            assert_ok(add(f, yaml, false));
    }
    assert_error(add(f, yaml, false), "GPUBinding \"b64\": one virtual cluster has at most 64");
    finish(f);
}

/* What is taken back, and from when on. */
static void a_reclaim_has_a_time(void **state)
{
    struct fixture v = begin(state, ""), *f = &v;
    const struct config_binding *b;

    assert_ok(add(f,
                  OBJECT("a", "a", "guarantee: 2",
                         "grant: '1', reclaim: {gpus: '1', notBefore: '2026-01-31T12:00:00Z'}, "),
                  false));
    b = bound(f, "a");
    assert_true(b->reclaim);
    assert_str(b->object, "a");
    assert_int_equal(b->reclaim_not_before_s, 1769860800);
    assert_ok(add(f, OBJECT("b", "b", "guarantee: 2", "grant: '1', "), false));
    assert_false(bound(f, "b")->reclaim);
    assert_error(
        add(f, OBJECT("c", "c", "guarantee: 2", "reclaim: {gpus: '1', notBefore: soon}, "), false),
        "GPUBinding \"c\": status.reclaim.notBefore: want a time such as "
        "2026-01-31T12:00:00Z");
    finish(f);
}

/* As the file's are refused beside policy.cpuNodes and sync.nodes. */
static void it_agrees_with_the_rest_of_the_file(void **state)
{
    struct fixture v = begin(state, "{policy: {cpuNodes: [p=a]}, sync: {nodes: perPool}}"), *f = &v;

    assert_true(add(f, OBJECT("x", "a", "guarantee: 1", "grant: '1', "), false) < 0);
    assert_has(f->err.message, "status.pool: nodeSelector.p: policy.cpuNodes has the same nodes");
    err_clear(&f->err);
    assert_true(add(f, OBJECT("x", "no-pool", "guarantee: 1", "grant: '1', "), false) < 0);
    assert_has(f->err.message, "status.pool.name: \"no-pool\": with sync.nodes perPool");
    finish(f);
}

/* It is the fleet's to follow, and the tenant's to read; of the configuration file it is none. */
static void a_budget_is_shown(void **state)
{
    struct fixture v = begin(state, FILE_POOL), *f = &v;

    assert_int_equal(add(f,
                         "{metadata: {name: x}, spec: {pool: a, guarantee: 1, budget: {amount: "
                         "'5', enforcement: Stop}}, status: {grant: '1', budget: {month: "
                         "2026-11, spent: '4.50'}, pool: {name: a, nodeSelector: {p: a}}}}",
                         false),
                     0);
    assert_true(str_eqc(json_str_at(bound(f, "a")->budget, "spent"), "4.50"));
    assert_null(bound(f, "f")->budget);
    assert_true(load_config(f->base, "{pools: [{name: f, nodeSelector: {p: f}}], bindings: [{pool: "
                                     "f, guarantee: 2, budget: {amount: '5'}}]}") < 0);
    assert_has(f->base->err.message, "budget");
    finish(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, config_setup, config_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grant_bounds_the_limit),    TEST(a_bad_one_is_refused_with_its_place),
        TEST(one_pool_has_one_binding),    TEST(there_is_one_default),
        TEST(an_ended_one_grants_nothing), TEST(an_ended_one_takes_back),
        TEST(there_are_so_many),           TEST(it_agrees_with_the_rest_of_the_file),
        TEST(a_reclaim_has_a_time),        TEST(a_budget_is_shown),
        TEST(one_may_have_parts_of_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
