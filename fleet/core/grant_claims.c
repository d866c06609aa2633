/* SPDX-License-Identifier: Apache-2.0 */
/* Claims as admission charges them, so that what the process takes for held is what the bound has
 * charged. Must never take a request that it cannot read for less than a ResourceQuota does. */
#include "grant_claims.h"

#include <assert.h>

#include <sublet/hash.h>
#include <sublet/object.h>

#define CLAIMS_MAGIC    0x67636c6du
#define ALL_DEVICES     32 /* allocationMode All: the most that one claim is allocated */
#define MOST_IN_A_CLAIM 1024

struct kept {
    struct map_entry by_name;
    struct str name;
    struct arena *a;
    struct grant_claim claim;
};
struct grant_claims {
    unsigned magic;
    struct map kept;
};

/* --- of a tree --- */

static struct str key_of(struct arena *a, const cJSON *one)
{
    return arena_printf(a, "%.*s" GRANT_CLASS_KEY,
                        STR_F(json_str(json_get(one, "deviceClassName"))));
}

static int64_t count_of(const cJSON *one)
{
    int64_t count = json_i64_at(one, "count", 1);

    if (str_eqc(json_str(json_get(one, "allocationMode")), "All"))
        return ALL_DEVICES;
    return count > 0 ? count : 0;
}

struct units_list {
    struct fact_units *items;
    size_t n, cap;
};

static struct fact_units *units_named(struct arena *a, struct units_list *list, struct str key)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->items[i].resource, key))
            return &list->items[i];
    ARENA_GROW(a, list->items, list->n, list->cap);
    list->items[list->n] = (struct fact_units){key, 0};
    return &list->items[list->n++];
}

static void add(struct arena *a, struct units_list *list, struct str key, int64_t more)
{
    struct fact_units *units = units_named(a, list, key);

    if (units->units != FACT_NO_NUMBER && __builtin_add_overflow(units->units, more, &units->units))
        units->units = FACT_NO_NUMBER;
}

/* Of alternatives, of each class the one that takes most. */
static void add_request(struct arena *a, struct units_list *list, const cJSON *request)
{
    const cJSON *exactly = json_get(request, "exactly");
    struct units_list most = {0};

    json_each(one, json_get(request, "firstAvailable"))
    {
        struct fact_units *units = units_named(a, &most, key_of(a, one));

        units->units = count_of(one) > units->units ? count_of(one) : units->units;
    }
    for (size_t i = 0; i < most.n; i++)
        add(a, list, most.items[i].resource, most.items[i].units);
    if (exactly)
        add(a, list, key_of(a, exactly), count_of(exactly));
}

/* The class of a result: of request "name", or of its alternative "name/sub". */
static struct str key_of_result(struct arena *a, const cJSON *requests, struct str name)
{
    size_t slash = str_find(name, '/');

    json_each(request, requests)
    {
        if (!str_eq(json_str(json_get(request, "name")), str_sub(name, 0, slash)))
            continue;
        if (slash == name.n)
            return json_get(request, "exactly") ? key_of(a, json_get(request, "exactly")) : STR("");
        json_each(one, json_get(request, "firstAvailable"))
        {
            if (str_eq(json_str(json_get(one, "name")), str_from(name, slash + 1)))
                return key_of(a, one);
        }
    }
    return STR("");
}

static void read_results(struct arena *a, const cJSON *tree, struct grant_claim *ret)
{
    const cJSON *results = json_path(tree, "status.allocation.devices.results");
    size_t n = json_count(results);
    struct grant_claimed *list;

    n = n < MOST_IN_A_CLAIM ? n : MOST_IN_A_CLAIM;
    ret->devices = list = arena_alloc(a, (n + 1) * sizeof(*list));
    json_each(one, results)
    {
        if (ret->n_devices == n)
            break;
        if (json_true(json_get(one, "adminAccess")))
            continue;
        list[ret->n_devices++] = (struct grant_claimed){
            .name = {arena_str(a, json_str(json_get(one, "driver"))),
                     arena_str(a, json_str(json_get(one, "pool"))),
                     arena_str(a, json_str(json_get(one, "device")))},
            .key = key_of_result(a, json_path(tree, "spec.devices.requests"),
                                 json_str(json_get(one, "request"))),
        };
    }
}

/* Devices of a node come with a selector of its name. */
static struct str node_of(struct arena *a, const cJSON *tree)
{
    json_each(term, json_path(tree, "status.allocation.nodeSelector.nodeSelectorTerms"))
    {
        json_each(field, json_get(term, "matchFields"))
        {
            if (str_eqc(json_str(json_get(field, "key")), "metadata.name"))
                return arena_str(a, json_str(json_at(json_get(field, "values"), 0)));
        }
    }
    return STR("");
}

void grant_claim_of(struct arena *a, const cJSON *tree, struct grant_claim *ret)
{
    struct units_list list = {0};

    json_each(request, json_path(tree, "spec.devices.requests"))
    {
        if (list.n < MOST_IN_A_CLAIM)
            add_request(a, &list, request);
    }
    *ret = (struct grant_claim){.ns = arena_str(a, meta_ns(tree)),
                                .node = node_of(a, tree),
                                .units = list.items,
                                .n_units = list.n};
    read_results(a, tree, ret);
}

static struct kept *kept_of(struct str name, const cJSON *tree)
{
    struct kept *k = NEW(struct kept);

    *k = (struct kept){.a = arena_new(0)};
    k->name = arena_str(k->a, name);
    grant_claim_of(k->a, tree, &k->claim);
    return k;
}

/* --- what is kept --- */

static void drop(void *ctx, struct map_entry *e)
{
    struct grant_claims *c = ctx;
    struct kept *k = CONTAINER(e, struct kept, by_name);

    map_remove(&c->kept, e);
    arena_free(k->a);
    mem_free(k);
}

void grant_claims_set(struct grant_claims *c, struct str name, const cJSON *tree)
{
    struct map_entry *e = map_get(&c->kept, name);
    struct kept *k;

    assert(c->magic == CLAIMS_MAGIC);
    if (e)
        drop(c, e);
    if (!tree)
        return;
    k = kept_of(name, tree);
    map_put(&c->kept, &k->by_name, k->name);
}

struct visit {
    void (*each)(void *ctx, const struct grant_claim *claim);
    void *ctx;
};

static void visit(void *ctx, struct map_entry *e)
{
    const struct visit *v = ctx;

    v->each(v->ctx, &CONTAINER(e, struct kept, by_name)->claim);
}

void grant_claims_each(struct grant_claims *c,
                       void (*each)(void *ctx, const struct grant_claim *claim), void *ctx)
{
    struct visit v = {each, ctx};

    assert(c->magic == CLAIMS_MAGIC);
    map_each(&c->kept, visit, &v);
}

void grant_claims_reduce(struct arena *a, cJSON *claim)
{
    cJSON *metadata = json_get(claim, "metadata"), *devices = json_path(claim, "spec.devices");

    (void)a;
    json_remove(metadata, "labels");
    json_remove(metadata, "annotations");
    json_remove(metadata, "ownerReferences");
    json_remove(devices, "config");
    json_remove(devices, "constraints");
    json_remove(json_path(claim, "status.allocation.devices"), "config");
    json_remove(json_get(claim, "status"), "reservedFor");
    json_remove(json_get(claim, "status"), "devices");
}

struct grant_claims *grant_claims_new(void)
{
    struct grant_claims *c = NEW(struct grant_claims);

    c->magic = CLAIMS_MAGIC;
    return c;
}

struct grant_claims *grant_claims_free(struct grant_claims *c)
{
    if (!c)
        return NULL;
    assert(c->magic == CLAIMS_MAGIC);
    map_each(&c->kept, drop, c);
    c->magic = 0;
    return mem_free(c);
}
