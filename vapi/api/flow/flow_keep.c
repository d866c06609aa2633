/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The FlowSchemas and priority levels every cluster has, and the Dangling condition of a schema
 * without its level. Why: users read them, and tools that write their own expect these. `exempt`
 * and `catch-all` cannot be removed; the others are restored and updated unless their annotation
 * has_condition that the tenant maintains them. Nothing polls: it acts on changes, a moment later.
 * It must never overwrite an object a tenant took over. Source: k8s.io/apiserver
 * pkg/apis/flowcontrol/bootstrap default.go, pkg/registry/flowcontrol/ensurer. */
#include "flow.h"

#include <assert.h>

#include <sublet/json_build.h>
#include <sublet/object.h>

#define KEEP_MAGIC 0x666c6b70u
#define CALM_MS    200 /* after a change, before the check */
#define AUTOUPDATE "apf.kubernetes.io/autoupdate-spec"

#define ALL_RULES                                                                                  \
    "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"           \
    "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"                                              \
    "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]"
#define GROUP(name) "{\"kind\":\"Group\",\"group\":{\"name\":\"" name "\"}}"
#define USER(name)  "{\"kind\":\"User\",\"user\":{\"name\":\"" name "\"}}"
#define EVERYBODY   GROUP("system:unauthenticated") "," GROUP("system:authenticated")
#define KUBE_SYSTEM                                                                                \
    "{\"kind\":\"ServiceAccount\",\"serviceAccount\":{\"name\":\"*\",\"namespace\":\"kube-"        \
    "system\"}}"
#define BY(type)     "\"distinguisherMethod\":{\"type\":\"" type "\"},"
#define BY_USER      BY("ByUser")
#define BY_NAMESPACE BY("ByNamespace")
#define SCHEMA(precedence, level, by, subjects, rules)                                             \
    "{" by "\"matchingPrecedence\":" precedence                                                    \
    ",\"priorityLevelConfiguration\":{\"name\":\"" level "\"},\"rules\":[{\"subjects\":[" subjects \
    "]," rules "}]}"
#define LEVEL(shares, lendable, queues, hand)                                                      \
    "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":" shares                      \
    ",\"lendablePercent\":" lendable                                                               \
    ",\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":" queues ",\"handSize\":" hand \
    ",\"queueLengthLimit\":50}}}}"

#define LEVELS  "prioritylevelconfigurations"
#define SCHEMAS "flowschemas"

static const struct seed {
    const char *resource, *name;
    bool mandatory;
    const char *spec;
} SEEDS[] = {
    {LEVELS, "exempt", true,
     "{\"type\":\"Exempt\",\"exempt\":{\"nominalConcurrencyShares\":0,\"lendablePercent\":0}}"},
    {LEVELS, "catch-all", true,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,\"lendablePercent\":0,"
     "\"limitResponse\":{\"type\":\"Reject\"}}}"},
    {LEVELS, "system", false, LEVEL("30", "33", "64", "6")},
    {LEVELS, "node-high", false, LEVEL("40", "25", "64", "6")},
    {LEVELS, "leader-election", false, LEVEL("10", "0", "16", "4")},
    {LEVELS, "workload-high", false, LEVEL("40", "50", "128", "6")},
    {LEVELS, "workload-low", false, LEVEL("100", "90", "128", "6")},
    {LEVELS, "global-default", false, LEVEL("20", "50", "128", "6")},
    {SCHEMAS, "exempt", true, SCHEMA("1", "exempt", "", GROUP("system:masters"), ALL_RULES)},
    {SCHEMAS, "catch-all", true, SCHEMA("10000", "catch-all", BY_USER, EVERYBODY, ALL_RULES)},
    {SCHEMAS, "probes", false,
     SCHEMA("2", "exempt", "", EVERYBODY,
            "\"nonResourceRules\":[{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/healthz\","
            "\"/readyz\",\"/livez\"]}]")},
    {SCHEMAS, "system-leader-election", false,
     SCHEMA(
         "100", "leader-election", BY_USER,
         USER("system:kube-controller-manager") "," USER("system:kube-scheduler") "," KUBE_SYSTEM,
         "\"resourceRules\":[{\"verbs\":[\"get\",\"create\",\"update\"],\"apiGroups\":["
         "\"coordination.k8s.io\"],\"resources\":[\"leases\"],\"namespaces\":[\"*\"]}]")},
    {SCHEMAS, "system-node-high", false,
     SCHEMA("400", "node-high", BY_USER, GROUP("system:nodes"),
            "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"\"],\"resources\":[\"nodes\","
            "\"nodes/status\"],\"clusterScope\":true,\"namespaces\":[\"*\"]},{\"verbs\":[\"*\"],"
            "\"apiGroups\":[\"coordination.k8s.io\"],\"resources\":[\"leases\"],\"namespaces\":["
            "\"*\"]}]")},
    {SCHEMAS, "system-nodes", false,
     SCHEMA("500", "system", BY_USER, GROUP("system:nodes"), ALL_RULES)},
    {SCHEMAS, "kube-controller-manager", false,
     SCHEMA("800", "workload-high", BY_NAMESPACE, USER("system:kube-controller-manager"),
            ALL_RULES)},
    {SCHEMAS, "kube-scheduler", false,
     SCHEMA("800", "workload-high", BY_NAMESPACE, USER("system:kube-scheduler"), ALL_RULES)},
    {SCHEMAS, "kube-system-service-accounts", false,
     SCHEMA("900", "workload-high", BY_NAMESPACE, KUBE_SYSTEM, ALL_RULES)},
    {SCHEMAS, "service-accounts", false,
     SCHEMA("9000", "workload-low", BY_USER, GROUP("system:serviceaccounts"), ALL_RULES)},
    {SCHEMAS, "global-default", false,
     SCHEMA("9900", "global-default", BY_USER, EVERYBODY, ALL_RULES)},
};
#define N_SEEDS COUNT(SEEDS)

struct flow_keep {
    unsigned magic;
    struct vapi *api;
    const struct resource *levels, *schemas;
    struct store_watch *watches[2];
    uv_timer_t timer;
    bool changed;
};

/* ---- seeds ---- */

static cJSON *seed_object(struct arena *a, const struct seed *s)
{
    cJSON *spec = NULL, *meta;
    int failed = json_parse(a, str_c(s->spec), &spec, NULL);

    assert(!failed);
    meta = json_object(a, JSON("name", s->name),
                       JSON("annotations", json_object(a, JSON(AUTOUPDATE, "true"))));
    return json_object(a, JSON("metadata", meta), JSON("spec", spec));
}

void flow_keep_seeds(void (*each)(void *ctx, const char *resource, cJSON *object), void *ctx)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < N_SEEDS; i++) {
        each(ctx, SEEDS[i].resource, seed_object(a, &SEEDS[i]));
        arena_reset(a);
    }
    arena_free(a);
}

/* ---- maintenance ---- */

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx; /* a failed write is retried with the next change */
    (void)err;
    (void)object;
}

static bool is_ours(const struct seed *s, const cJSON *tree)
{
    return s->mandatory ||
           str_eqc(json_str(json_get(json_path(tree, "metadata.annotations"), AUTOUPDATE)), "true");
}

static void keep_seed(struct flow_keep *k, struct arena *a, const struct seed *s)
{
    const struct resource *r = str_eqc(str_c(s->resource), LEVELS) ? k->levels : k->schemas;
    const struct store_object *o =
        store_latest(k->api->o.store, r->storage, STR(""), str_c(s->name));
    cJSON *wanted = seed_object(a, s), *tree;

    if (!o) {
        vapi_create(k->api, r, STR(""), wanted, on_written, k);
        return;
    }
    tree = vapi_tree(a, o);
    if (object_is_terminating(tree) || !is_ours(s, tree) ||
        json_equal(json_get(tree, "spec"), json_get(wanted, "spec")))
        return;
    json_set(a, tree, "spec", json_copy(a, json_get(wanted, "spec")));
    vapi_update(k->api, r, STR_NULL, tree, on_written, k);
}

/* ---- Dangling ---- */

static bool has_condition(const cJSON *tree, bool found, struct str level)
{
    json_each(c, json_path(tree, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), "Dangling"))
            return str_eqc(json_str(json_get(c, "status")), found ? "False" : "True") &&
                   str_contains(json_str(json_get(c, "message")), level);
    }
    return false;
}

static bool on_schema(void *ctx, const struct store_object *o)
{
    struct flow_keep *k = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = vapi_tree(a, o);
    struct str level = json_str_at(tree, "spec.priorityLevelConfiguration.name");
    bool found = store_latest(k->api->o.store, k->levels->storage, STR(""), level) != NULL;

    if (!has_condition(tree, found, level)) {
        struct str message = arena_printf(
            a, "This FlowSchema references the PriorityLevelConfiguration object named \"%.*s\" %s",
            STR_F(level), found ? "and it exists" : "but there is no such object");
        cJSON *condition =
            condition_new(a, "Dangling", found ? "False" : "True", found ? "Found" : "NotFound",
                          message, time_format_s(a, clock_wall_s(vapi_clock(k->api))));

        json_put(a, json_ensure_object(a, tree, "status"),
                 JSON("conditions", json_array(a, condition)));
        vapi_update(k->api, k->schemas, STR("status"), tree, on_written, k);
    }
    arena_free(a);
    return true;
}

/* ---- lifecycle ---- */

static void on_timer(uv_timer_t *timer)
{
    struct flow_keep *k = timer->data;

    assert(k->magic == KEEP_MAGIC);
    if (k->api->state <= API_SERVING) {
        struct arena *a = arena_new(0);
        struct err err;

        for (size_t i = 0; i < N_SEEDS; i++) {
            keep_seed(k, a, &SEEDS[i]);
            arena_reset(a);
        }
        err_init(&err, a);
        if (store_scan(k->api->o.store, k->schemas->storage, STR_NULL, STR_NULL, STR_NULL, 0,
                       on_schema, k, &err))
            err_clear(&err); /* the latest revision always exists */
        arena_free(a);
    }
}

static void on_wake(void *ctx)
{
    struct flow_keep *k = ctx;
    bool expired = false;

    assert(k->magic == KEEP_MAGIC);
    for (size_t i = 0; i < 2; i++)
        while (store_watch_next(k->watches[i], &expired))
            k->changed = true;
    k->changed |= expired;
    if (k->changed && !uv_is_active((uv_handle_t *)&k->timer))
        uv_timer_start(&k->timer, on_timer, CALM_MS, 0);
}

static bool open_watch(struct flow_keep *k, const struct resource *r, struct store_watch **ret)
{
    struct store *store = k->api->o.store;
    struct err err;

    err_init(&err, NULL);
    return !store_watch_open(store, r->storage, store_revision(store), on_wake, k, ret, &err);
}

struct flow_keep *flow_keep_start(struct vapi *api)
{
    struct str group = STR("flowcontrol.apiserver.k8s.io"), version = STR("v1");
    const struct resource *levels = registry_find(api->registry, group, version, str_c(LEVELS));
    const struct resource *schemas = registry_find(api->registry, group, version, str_c(SCHEMAS));
    struct flow_keep *k;
    bool open;

    if (!levels || !schemas)
        return NULL;
    k = NEW(struct flow_keep);
    *k = (struct flow_keep){.magic = KEEP_MAGIC, .api = api, .levels = levels, .schemas = schemas};
    uv_timer_init(api->o.loop, &k->timer);
    uv_unref((uv_handle_t *)&k->timer);
    k->timer.data = k;
    api->open_handles++;
    open = open_watch(k, levels, &k->watches[0]) && open_watch(k, schemas, &k->watches[1]);
    assert(open); /* the latest revision is never compacted */
    uv_timer_start(&k->timer, on_timer, CALM_MS, 0);
    return k;
}

bool flow_keep_changed(struct flow_keep *k)
{
    bool changed = k->changed;

    assert(k->magic == KEEP_MAGIC);
    k->changed = false;
    return changed;
}

static void on_closed(uv_handle_t *handle)
{
    struct flow_keep *k = handle->data;
    struct vapi *api = k->api;

    k->magic = 0;
    mem_free(k);
    api_handle_closed(api);
}

void flow_keep_close(struct flow_keep *k)
{
    if (!k)
        return;
    assert(k->magic == KEEP_MAGIC);
    for (size_t i = 0; i < 2; i++)
        k->watches[i] = store_watch_close(k->watches[i]);
    uv_close((uv_handle_t *)&k->timer, on_closed);
}
