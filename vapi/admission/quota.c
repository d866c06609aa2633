/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuota, exactly: usage is summed over `latest`, in the same turn of the loop in which the
 * write is passed to the store, so that any number of racing creates stops at the limit. */
#include "counted.h"
#include "plugins.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES ".deviceclass.resource.k8s.io/devices"

/* --- which quota applies to which object --- */

/* A scope without an expression selects any class. */
static bool selects_class(const cJSON *expression, struct str class)
{
    struct str op = json_str_at(expression, "operator");
    bool listed = json_list_has(json_get(expression, "values"), class);

    if (!op.n || str_eqc(op, "Exists"))
        return class.n > 0;
    if (str_eqc(op, "DoesNotExist"))
        return class.n == 0;
    return str_eqc(op, "NotIn") ? !listed : listed;
}

static bool scope_holds(struct str scope, const cJSON *expression, const struct counted *pod)
{
    if (str_eqc(scope, "Terminating"))
        return pod->deadline;
    if (str_eqc(scope, "NotTerminating"))
        return !pod->deadline;
    if (str_eqc(scope, "BestEffort"))
        return pod->best_effort;
    if (str_eqc(scope, "NotBestEffort"))
        return !pod->best_effort;
    if (str_eqc(scope, "CrossNamespacePodAffinity"))
        return pod->crosses_namespaces;
    if (str_eqc(scope, "PriorityClass"))
        return selects_class(expression, pod->priority_class);
    return false;
}

static bool is_pod(struct str group, struct str plural)
{
    return !group.n && str_eqc(plural, "pods");
}

static bool is_claim(const struct resource *r)
{
    return !r->group.n && str_eqc(r->plural, "persistentvolumeclaims");
}

static bool is_device_claim(const struct resource *r)
{
    return str_eqc(r->group_resource, "resourceclaims.resource.k8s.io");
}

/* A claim has several classes while it changes from one to another: it counts under each. */
static bool claim_scope_holds(struct str scope, const cJSON *expression,
                              const struct counted *claim)
{
    size_t n = 0;

    if (!str_eqc(scope, "VolumeAttributesClass"))
        return false;
    for (size_t i = 0; i < COUNT(claim->classes); i++) {
        n += claim->classes[i].n > 0;
        if (claim->classes[i].n && selects_class(expression, claim->classes[i]))
            return true;
    }
    return !n && selects_class(expression, STR(""));
}

/* A quota with scopes counts pods that match all of them; for VolumeAttributesClass, claims. */
static bool quota_concerns(const cJSON *quota, const struct resource *r, const struct counted *c)
{
    static const cJSON exists = {.valuestring = NULL};
    const cJSON *scopes = json_path(quota, "spec.scopes");
    const cJSON *expressions = json_path(quota, "spec.scopeSelector.matchExpressions");
    bool (*holds)(struct str, const cJSON *, const struct counted *) =
        is_claim(r) ? claim_scope_holds : scope_holds;

    if (!json_count(scopes) && !json_count(expressions))
        return true;
    if (!is_claim(r) && !is_pod(r->group, r->plural))
        return false;
    json_each(scope, scopes)
    {
        if (!holds(json_str(scope), &exists, c))
            return false;
    }
    json_each(e, expressions)
    {
        if (!holds(json_str_at(e, "scopeName"), e, c))
            return false;
    }
    return true;
}

/* --- usage --- */

struct sum {
    struct vapi *api;
    struct str ns;
    const cJSON *quota;
    const struct resource *resource;
    struct usage *total;
};

static bool on_counted(void *ctx, const struct store_object *o)
{
    struct sum *s = ctx;
    const struct counted *c = counted_of(vapi_admission_memo(s->api), s->resource, o);

    if (!quota_concerns(s->quota, s->resource, c))
        return true;
    for (size_t i = 0; i < c->usage.n; i++)
        usage_add(s->total, c->usage.items[i].name, c->usage.items[i].q);
    if (is_device_claim(s->resource))
        extended_add(s->api, s->ns, c, s->total);
    return true;
}

/* Whether the quota limits anything that objects of this resource consume. */
static bool names_resource(const cJSON *hard, const struct resource *r)
{
    struct arena *a = arena_new(0);
    bool names = false, pods = is_pod(r->group, r->plural);
    struct str count = r->group.n ? arena_printf(a, "count/%.*s", STR_F(r->group_resource))
                                  : arena_printf(a, "count/%.*s", STR_F(r->plural));

    json_each(item, hard)
    {
        struct str name = str_c(item->string);
        bool storage = str_contains(name, STR("storage"));

        if (str_eq(name, count) || (!r->group.n && str_has_prefix(name, r->plural)))
            names = true;
        if (pods && (str_has_prefix(name, STR("limits.")) || str_eqc(name, "cpu") ||
                     str_eqc(name, "memory") || str_eqc(name, "ephemeral-storage") ||
                     str_has_prefix(name, STR("hugepages-"))))
            names = true;
        if (str_has_prefix(name, STR("requests.")))
            names = names || pods || storage;
        if (is_claim(r) && storage)
            names = true;
        if (is_device_claim(r) &&
            (str_has_suffix(name, STR(DEVICES)) ||
             (str_has_prefix(name, STR("requests.")) && str_find(name, '/') < name.n)))
            names = true;
    }
    arena_free(a);
    return names;
}

static void sum_resource(struct vapi *api, struct str ns, const cJSON *quota,
                         const struct resource *r, struct usage *total)
{
    struct sum s = {.api = api, .ns = ns, .quota = quota, .resource = r, .total = total};

    store_scan_latest(vapi_store(api), r->storage, ns, on_counted, &s);
}

/* Pods and device claims consume extended resources. */
static void sum_other(struct vapi *api, struct str ns, const cJSON *quota, const struct resource *r,
                      struct usage *total)
{
    const struct resource *other = NULL;

    if (is_pod(r->group, r->plural))
        other = registry_find_group_resource(vapi_registry(api), STR("resource.k8s.io"),
                                             STR("resourceclaims"));
    else if (is_device_claim(r))
        other = registry_find_group_resource(vapi_registry(api), STR(""), STR("pods"));
    if (other && names_resource(json_path(quota, "spec.hard"), other))
        sum_resource(api, ns, quota, other, total);
}

struct all {
    struct vapi *api;
    struct str ns;
    const cJSON *quota, *hard;
    struct usage *total;
};

static bool on_resource(void *ctx, const struct resource *r)
{
    struct all *all = ctx;

    if (resource_namespaced(r) && !(r->flags & RES_REVIEW) &&
        str_eq(r->storage_version, r->api_version) && names_resource(all->hard, r))
        sum_resource(all->api, all->ns, all->quota, r, all->total);
    return true;
}

cJSON *admission_quota_used(struct vapi *api, struct arena *a, struct str ns, const cJSON *quota)
{
    struct usage total = {.arena = a};
    const cJSON *hard = json_path(quota, "spec.hard");
    struct all all = {.api = api, .ns = ns, .quota = quota, .hard = hard, .total = &total};
    cJSON *used = json_new_object(a);

    registry_each(vapi_registry(api), on_resource, &all);
    json_each(item, hard)
    {
        const struct quantity *q = usage_get(&total, str_c(item->string));
        struct quantity zero = quantity_from_i64(0, QUANTITY_DECIMAL_SI);

        json_set_str(a, used, item->string, quantity_format(a, q ? *q : zero));
    }
    return used;
}

/* --- the check --- */

struct check {
    const struct admission_call *call;
    const cJSON *object, *old;
    struct counted wanted, had; /* of object and old; computed when the first quota needs them */
    struct err *err;
    bool refused, read;
};

/* Containers must set the compute resources that a quota counts. */
static void missing_for(const struct check *k, const char *which, const char *resource,
                        const char *key, struct buf *missing)
{
    const cJSON *spec = json_get(k->object, "spec");
    size_t most = json_count(json_get(spec, "containers")) +
                  json_count(json_get(spec, "initContainers")),
           n = 0;
    struct str *names = arena_alloc(k->call->arena, (most + 1) * sizeof(*names));

    for (int init = 0; init < 2; init++) {
        each_container(container, spec, init)
        {
            if (!json_get(json_get(json_get(container, "resources"), which), resource))
                names[n++] = json_str_at(container, "name");
        }
    }
    if (!n)
        return;
    qsort(names, n, sizeof(*names), str_order);
    buf_printf(missing, "%s%s for: ", missing->n ? "; " : "", key);
    for (size_t i = 0; i < n; i++)
        buf_printf(missing, "%s%.*s", i ? "," : "", STR_F(names[i]));
}

/* True when the pod sets pod-level resources, which its containers then need not. */
static bool sets_pod_level(const cJSON *pod)
{
    const cJSON *resources = json_path(pod, "spec.resources");

    return json_count(json_get(resources, "requests")) || json_count(json_get(resources, "limits"));
}

static bool must_specify(struct check *k, const cJSON *quota)
{
    static const struct {
        const char *key, *which, *resource;
    } rules[] = {
        {"cpu", "requests", "cpu"},
        {"limits.cpu", "limits", "cpu"},
        {"limits.memory", "limits", "memory"},
        {"memory", "requests", "memory"},
        {"requests.cpu", "requests", "cpu"},
        {"requests.memory", "requests", "memory"},
    };
    const cJSON *hard = json_path(quota, "spec.hard");
    struct buf missing = BUF_INIT(8192);

    for (size_t i = 0; i < COUNT(rules) && !sets_pod_level(k->object); i++) {
        if (json_get(hard, rules[i].key))
            missing_for(k, rules[i].which, rules[i].resource, rules[i].key, &missing);
    }
    bool bad = missing.n > 0;
    if (bad)
        err_forbidden(k->err, STR(""), STR("pods"), json_str_at(k->object, "metadata.name"),
                      "failed quota: %.*s: must specify %.*s",
                      STR_F(json_str_at(quota, "metadata.name")), STR_F(buf_str(&missing)));
    buf_fini(&missing);
    return bad;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct usage_item *)a)->name, ((const struct usage_item *)b)->name);
}

static void list_usage(struct buf *b, const char *title, const struct usage *m)
{
    struct arena *a = arena_new(0);

    buf_addc(b, title);
    for (size_t i = 0; i < m->n; i++)
        buf_printf(b, "%s%.*s=%.*s", i ? "," : "", STR_F(m->items[i].name),
                   STR_F(quantity_format(a, m->items[i].q)));
    arena_free(a);
}

static void refuse(struct check *k, const cJSON *quota, struct usage *requested, struct usage *used,
                   struct usage *limited)
{
    const struct admission_call *c = k->call;
    struct buf text = BUF_INIT(16 * 1024);
    struct str name = json_str_at(k->object, "metadata.name");

    qsort(requested->items, requested->n, sizeof(*requested->items), by_name);
    qsort(used->items, used->n, sizeof(*used->items), by_name);
    qsort(limited->items, limited->n, sizeof(*limited->items), by_name);
    list_usage(&text, "requested: ", requested);
    list_usage(&text, ", used: ", used);
    list_usage(&text, ", limited: ", limited);
    err_forbidden(k->err, c->resource->group, c->resource->plural, name,
                  "exceeded quota: %.*s, %.*s", STR_F(json_str_at(quota, "metadata.name")),
                  STR_F(buf_str(&text)));
    buf_fini(&text);
}

/* Usage that the write adds to the old object's, of the quota's resources; n == 0: none. */
static struct usage added(struct check *k, const cJSON *quota)
{
    const struct resource *r = k->call->resource;
    struct arena *a = k->call->arena;
    struct usage now = {.arena = a}, before = {.arena = a}, more = {.arena = a};

    if (quota_concerns(quota, r, &k->wanted))
        now = k->wanted.usage;
    if (k->old && quota_concerns(quota, r, &k->had))
        before = k->had.usage;
    json_each(item, json_path(quota, "spec.hard"))
    {
        struct str name = str_c(item->string);
        const struct quantity *to = usage_get(&now, name), *from = usage_get(&before, name);

        if (to && (from ? quantity_cmp(*to, *from) > 0 : to->nano > 0))
            usage_add(&more, name, from ? quantity_sub(*to, *from) : *to);
    }
    return more;
}

static bool on_quota(void *ctx, const struct store_object *o)
{
    struct check *k = ctx;
    struct arena *a = k->call->arena;
    const struct resource *r = k->call->resource;
    const cJSON *quota = vapi_tree(a, o), *hard = json_path(quota, "spec.hard");
    struct usage requested = {.arena = a}, used = {.arena = a}, limited = {.arena = a};

    if (!k->read) {
        k->read = true;
        counted_read(a, r, k->object, &k->wanted);
        if (k->old)
            counted_read(a, r, k->old, &k->had);
        if (is_device_claim(r)) {
            extended_add(k->call->api, k->call->ns, &k->wanted, &k->wanted.usage);
            if (k->old)
                extended_add(k->call->api, k->call->ns, &k->had, &k->had.usage);
        }
    }
    if (!k->old && is_pod(r->group, r->plural) && quota_concerns(quota, r, &k->wanted) &&
        must_specify(k, quota)) {
        k->refused = true;
        return false;
    }
    struct usage more = added(k, quota);
    if (!more.n)
        return true;
    struct usage total = {.arena = a};
    sum_resource(k->call->api, k->call->ns, quota, r, &total);
    sum_other(k->call->api, k->call->ns, quota, r, &total);
    for (size_t i = 0; i < more.n; i++) {
        struct str name = more.items[i].name;
        const struct quantity *now = usage_get(&total, name);
        struct quantity have = now ? *now : (struct quantity){0, more.items[i].q.format}, limit;

        if (!quantity_parse(json_str(json_get_str(hard, name)), &limit) ||
            quantity_cmp(quantity_add(have, more.items[i].q), limit) <= 0)
            continue;
        usage_add(&requested, name, more.items[i].q);
        usage_add(&used, name, have);
        usage_add(&limited, name, limit);
    }
    if (requested.n) {
        refuse(k, quota, &requested, &used, &limited);
        k->refused = true;
    }
    return !k->refused;
}

int admission_quota(const struct admission_call *c, const cJSON *object, const cJSON *old,
                    struct err *err)
{
    struct check k = {.call = c, .object = object, .old = old, .err = err};

    if (!object || !resource_namespaced(c->resource) || c->resource->flags & RES_REVIEW)
        return 0;
    if (c->subresource.n && !str_eqc(c->subresource, "resize"))
        return 0;
    plugin_each_stored(c, "", "resourcequotas", c->ns, on_quota, &k);
    return k.refused ? -1 : 0;
}
