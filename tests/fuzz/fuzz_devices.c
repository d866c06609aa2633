/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON as ResourceSlices and ResourceClaims, each twice and again after all are gone: what
 * counts is within the limits, health within the total, and no device is taken twice. */

#include <assert.h>

#include <sublet/json.h>

#include "../../fleet/core/fact_claims.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct fuzzed {
    struct arena *a;
    struct grant_devices *devices;
    struct grant_claims *claims;
    struct rational taken;
};

static void take(void *ctx, const struct grant_claim *c)
{
    struct fuzzed *f = ctx;

    for (size_t i = 0; i < c->n_units; i++)
        assert(c->units[i].units >= 0 || c->units[i].units == FACT_NO_NUMBER);
    for (size_t i = 0; i < c->n_devices; i++)
        rational_add_most(&f->taken, grant_devices_take(f->devices, STR("n"), &c->devices[i].name));
}

static const struct pool_device_class CLASSES[] = {
    {.name = STR("part"), .gpu_eq = {1, 7}, .driver = STR("d")},
    {.name = STR("whole"), .gpu_eq = {1, 1}, .driver = STR("d")}};
static const struct config_pool POOL = {
    .mode = POOL_DRA, .device_classes = CLASSES, .n_device_classes = COUNT(CLASSES)};

/* As the ledger does: no device weighs more than one GPU. */
static void weigh(struct fuzzed *f, cJSON *tree)
{
    struct fact_claim fact;
    struct rational gpus;

    fact_reduce_claim(f->a, tree);
    fact_claim(f->a, tree, &fact);
    if (fact_claim_gpus(&fact, &POOL, f->devices, &gpus))
        assert(rational_cmp(gpus, (struct rational){(int64_t)fact.claim.n_devices, 1}) <= 0);
    (void)fact_claim_user(f->a, tree);
}

static void check(struct fuzzed *f)
{
    struct rational total, healthy;

    grant_devices_count(f->devices, STR("n"), &POOL, &total, &healthy);
    assert(healthy.num >= 0 && rational_cmp(healthy, total) <= 0);
    assert(rational_cmp(total, (struct rational){GRANT_NODE_DEVICES, 1}) <= 0);
    f->taken = RATIONAL_ZERO;
    grant_claims_each(f->claims, take, f);
    assert(rational_cmp(f->taken, total) <= 0);
}

/* The name is the number of the line. */
static void put(struct fuzzed *f, size_t n, struct str line)
{
    struct str name = arena_printf(f->a, "%zu", n % 8);
    cJSON *tree;

    if (json_parse(f->a, line, &tree, NULL))
        return;
    if (json_path(tree, "spec.driver")) {
        grant_devices_reduce(f->a, tree);
        grant_devices_slice(f->devices, name, tree);
    } else {
        grant_claims_reduce(f->a, tree);
        grant_claims_set(f->claims, name, tree);
        if (!json_parse(f->a, line, &tree, NULL))
            weigh(f, tree);
    }
    check(f);
}

static void put_all(struct fuzzed *f, struct str bytes)
{
    for (size_t n = 0; bytes.n; n++) {
        size_t at = str_find(bytes, '\n');

        put(f, n, str_sub(bytes, 0, at));
        bytes = str_from(bytes, at < bytes.n ? at + 1 : at);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct fuzzed f = {.a = arena_new(0),
                       .devices = grant_devices_new(),
                       .claims = grant_claims_new(),
                       .taken = RATIONAL_ZERO};
    struct str bytes = {(const char *)data, size};

    put_all(&f, bytes);
    put_all(&f, bytes);
    for (size_t n = 0; n < 8; n++) {
        grant_devices_slice(f.devices, arena_printf(f.a, "%zu", n), NULL);
        check(&f);
    }
    put_all(&f, bytes);
    grant_devices_free(f.devices);
    grant_claims_free(f.claims);
    arena_free(f.a);
    return 0;
}
