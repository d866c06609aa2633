/* SPDX-License-Identifier: Apache-2.0 */
/* What pods cost an hour is exact, whatever its size, and says of no part that it is borrowed which
 * may not be. */

#include "test.h"

#define POOL "nodeSelector: {sublet.dev/pool: a100}, mode: time-slicing, "

struct priced {
    struct config_pool pool;
    struct config_binding binding;
    struct pool_choice choice;
};

static struct rational of(const char *text)
{
    struct rational r;

    assert_true(rational_parse(str_c(text), &r));
    return r;
}

/* A pod of so many GPUs, in a pool with this metering of which 4 are guaranteed by a GPUBinding. */
static void make(struct fixture *f, struct priced *p, const char *metering, const char *gpus)
{
    const char *yaml =
        arena_cstr(f->a, arena_printf(f->a,
                                      "pools: [{name: a100, " POOL
                                      "resources: {nvidia.com/gpu: {gpuEq: '1/4'}}%s%s}]\n"
                                      "bindings: [{pool: a100, guarantee: 4, burst: 8}]\n",
                                      metering[0] ? ", metering: " : "", metering));

    use_config(f, yaml);
    p->pool = f->config.pools[0];
    p->binding = f->config.bindings[0];
    p->binding.pool = &p->pool;
    p->binding.object = STR("a100");
    p->choice = (struct pool_choice){.binding = &p->binding, .gpu_eq = of(gpus)};
}

#define PLAIN  "{price: '2.50', currency: USD, per: GPUHour}"
#define FACTOR "{price: '2.50', currency: USD, per: GPUHour, borrowFactor: '0.8'}"

static void a_pod(void **state)
{
    static const struct {
        const char *metering, *gpus, *used; /* used NULL: not known */
        const char *text;
    } cases[] = {
        {PLAIN, "2", "0", "pool \"a100\": 2 GPU cost 5.00 USD per hour"},
        {PLAIN, "1", "3", "pool \"a100\": 1 GPU costs 2.50 USD per hour"},
        {PLAIN, "1/7", "0", "pool \"a100\": 1/7 GPU costs 0.357143 USD per hour"},
        {PLAIN, "1/4", NULL, "pool \"a100\": 0.25 GPU costs 0.625 USD per hour"},
        {"{price: 3, currency: EUR}", "2", "0", "pool \"a100\": 2 GPU cost 6.00 EUR per hour"},
        {"{price: '1/3'}", "3", "0", "pool \"a100\": 3 GPU cost 1.00 per hour"},
        {"{price: 0, currency: USD}", "3", "0", "pool \"a100\": 3 GPU cost 0.00 USD per hour"},
        /* of the guarantee, on its edge, beyond it in part and wholly */
        {FACTOR, "2", "2", "pool \"a100\": 2 GPU cost 5.00 USD per hour"},
        {FACTOR, "2", "3",
         "pool \"a100\": 2 GPU cost 4.50 USD per hour (1 GPU beyond the guarantee, each 2.00)"},
        {FACTOR, "2", "7",
         "pool \"a100\": 2 GPU cost 4.00 USD per hour (2 GPU beyond the guarantee, each 2.00)"},
        {PLAIN, "2", "3",
         "pool \"a100\": 2 GPU cost 5.00 USD per hour (1 GPU beyond the guarantee)"},
        {FACTOR, "2", NULL,
         "pool \"a100\": 2 GPU cost 5.00 USD per hour (a GPU beyond the guarantee: 2.00)"},
        {"{currency: USD}", "2", "0", ""},
        {"", "2", "0", ""},
        {PLAIN, "0", "0", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rational used = of(cases[i].used ? cases[i].used : "0");
        const struct pool_price_facts facts = {.used = cases[i].used ? &used : NULL};
        struct priced p;

        make(f, &p, cases[i].metering, cases[i].gpus);
        assert_str(pool_price(f->a, &p.choice, &facts), cases[i].text);
    }
}

static void a_workload(void **state)
{
    static const struct {
        const char *metering, *kind;
        int64_t copies;
        const char *gpus, *text;
    } cases[] = {
        {PLAIN, "Deployment", 3, "2",
         "pool \"a100\": 2 GPU cost 5.00 USD per hour (3 replicas: 15.00)"},
        {PLAIN, "Job", 3, "2", "pool \"a100\": 2 GPU cost 5.00 USD per hour (3 pods: 15.00)"},
        {PLAIN, "CronJob", 2, "1", "pool \"a100\": 1 GPU costs 2.50 USD per hour (2 pods: 5.00)"},
        {PLAIN, "StatefulSet", 1, "2", "pool \"a100\": 2 GPU cost 5.00 USD per hour"},
        {PLAIN, "DaemonSet", 0, "2", "pool \"a100\": 2 GPU per pod cost 5.00 USD per hour"},
        {PLAIN, "Deployment", -7, "2", "pool \"a100\": 2 GPU per pod cost 5.00 USD per hour"},
        {FACTOR, "Deployment", 3, "2",
         "pool \"a100\": 2 GPU cost 5.00 USD per hour (3 replicas: 15.00; a GPU beyond the "
         "guarantee: 2.00)"},
        {PLAIN, "Deployment", 7, "1/7",
         "pool \"a100\": 1/7 GPU costs 0.357143 USD per hour (7 replicas: 2.50)"},
        {PLAIN, "Deployment", INT32_MAX, "2",
         "pool \"a100\": 2 GPU cost 5.00 USD per hour (2147483647 replicas: 10737418235.00)"},
        {"{price: '9223372036854775807', currency: USD}", "Deployment", INT64_MAX,
         "9223372036854775807/9223372036854775806",
         "pool \"a100\": 9223372036854775807/9223372036854775806 GPU cost 9223372036854775808.00 "
         "USD per hour (9223372036854775807 replicas: "
         "85070591730234615856620279821087277057.00)"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rational used = {3, 1}; /* whose it is, is not known */
        const struct pool_price_facts facts = {str_c(cases[i].kind), cases[i].copies, &used};
        struct priced p;

        make(f, &p, cases[i].metering, cases[i].gpus);
        assert_str(pool_price(f->a, &p.choice, &facts), cases[i].text);
    }
}

/* Of a binding of the file the fleet has no guarantee: it bills nothing as borrowed. Claims are
 * billed themselves, and a pod without a pool is not. */
static void what_is_not_known_is_not_said(void **state)
{
    struct fixture *f = *state;
    struct rational used = {7, 1};
    const struct pool_price_facts facts = {.used = &used};
    struct priced p;

    make(f, &p, FACTOR, "2");
    p.binding.object = STR("");
    assert_str(pool_price(f->a, &p.choice, &facts), "pool \"a100\": 2 GPU cost 5.00 USD per hour");
    p.choice.by_claims = true;
    assert_str(pool_price(f->a, &p.choice, &facts), "");
    p.choice = (struct pool_choice){.gpu_eq = RATIONAL_ZERO};
    assert_str(pool_price(f->a, &p.choice, &facts), "");
    make(f, &p, FACTOR, "2"); /* a sum that does not fit */
    used = of("1/9223372036854775807");
    p.choice.gpu_eq = of("1/9223372036854775806");
    assert_str(pool_price(f->a, &p.choice, &facts),
               "pool \"a100\": 1/9223372036854775806 GPU costs 0.00 USD per hour (a GPU beyond the "
               "guarantee: 2.00)");
}

static int setup(void **state)
{
    *state = fixture_new("");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod),
        cmocka_unit_test(a_workload),
        cmocka_unit_test(what_is_not_known_is_not_said),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
