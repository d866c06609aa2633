/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a pod goes to, what it takes there, and what its author may not ask for. Why: the pool
 * is the fence, so what a tenant wrote may only narrow it, and a contradiction must be told when
 * the pod is applied and not show as a pod that is pending for ever. Must never look at anything
 * but the pod, its namespace's labels and the configuration. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"

const char *const TOLERATED_KEYS[] = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    /* What the DaemonSet controller puts on its pods; accepted and left out on the host. */
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    NULL,
};

static const char PRODUCT_LABEL[] = "nvidia.com/gpu.product";

struct resolve {
    struct arena *arena;
    const struct config *config;
    const cJSON *pod, *spec;
    struct str name;
    struct device_counts counts;
    const struct config_pool *pool; /* NULL: none */
    struct err *err;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct resolve *r, const char *format,
                                                        ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    text_end(text, sizeof text, vsnprintf(text, sizeof text, format, args));
    va_end(args);
    return err_forbidden(r->err, STR_NULL, STR("pods"), r->name, "%s", text);
}

static struct str pod_name(const cJSON *pod)
{
    struct str name = json_str_at(pod, "metadata.name");

    return name.n ? name : json_str_at(pod, "metadata.generateName");
}

/* "a, b" of the names of a list, as far as a message needs them. */
static struct str joined(struct arena *a, struct str so_far, struct str next)
{
    if (so_far.n > 512)
        return so_far;
    return arena_printf(a, "%.*s%s%.*s", STR_F(so_far), so_far.n ? ", " : "", STR_F(next));
}

/* ---- pools ---- */

const struct pool_resource *pool_find_resource(const struct config_pool *pool, struct str name)
{
    for (size_t i = 0; i < pool->n_resources; i++) {
        if (str_eq(pool->resources[i].name, name))
            return &pool->resources[i];
    }
    return NULL;
}

struct str product_base(struct str product)
{
    if (str_has_suffix(product, STR("-SHARED")))
        product.n -= 7;
    for (size_t i = 0; i + 5 <= product.n; i++) {
        if (memcmp(product.p + i, "-MIG-", 5) == 0)
            return str_sub(product, 0, i);
    }
    return product;
}

bool pool_has_product(const struct config_pool *pool, struct str product)
{
    return pool->products.n == 0 || str_list_has(pool->products, product_base(product));
}

static bool offers_all(const struct config_pool *pool, const struct device_counts *counts)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (!pool_find_resource(pool, counts->items[i].name))
            return false;
    }
    return true;
}

static bool anybody_offers(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->n_bindings; i++) {
        if (pool_find_resource(config->bindings[i].pool, name))
            return true;
    }
    return false;
}

/* A resource as the pool's list of offers shows it: MIG profiles without what they share. */
static struct str offer_text(const struct config_pool *pool, struct str name)
{
    struct str mig = STR("nvidia.com/mig-");

    return pool->mode == POOL_MIG && str_has_prefix(name, mig) ? str_from(name, mig.n) : name;
}

static int not_offered_by(const struct resolve *r, const struct config_pool *pool, struct str name)
{
    struct str offers = STR("");

    for (size_t i = 0; i < pool->n_resources; i++)
        offers = joined(r->arena, offers, offer_text(pool, pool->resources[i].name));
    return refuse(r, "%.*s is not offered by pool \"%.*s\": offered %.*s", STR_F(name),
                  STR_F(pool->name), STR_F(offers));
}

static int not_offered(const struct resolve *r, struct str name)
{
    struct str_list seen = {0};
    struct str *names = arena_alloc(r->arena, 64 * sizeof *names), offers = STR("");

    seen.items = names;
    for (size_t i = 0; i < r->config->n_bindings; i++) {
        const struct config_pool *pool = r->config->bindings[i].pool;

        for (size_t k = 0; k < pool->n_resources && seen.n < 64; k++) {
            if (str_list_has(seen, pool->resources[k].name))
                continue;
            names[seen.n++] = pool->resources[k].name;
            offers = joined(r->arena, offers, pool->resources[k].name);
        }
    }
    return refuse(r, "%.*s is not offered by any pool of this virtual cluster: offered %.*s",
                  STR_F(name), STR_F(offers.n ? offers : STR("nothing")));
}

/* ---- resolution ---- */

static int resolve_named(const struct resolve *r, struct str wish,
                         const struct config_binding **ret)
{
    struct str bound = STR("");

    for (size_t i = 0; i < r->config->n_bindings; i++) {
        const struct config_binding *b = &r->config->bindings[i];

        bound = joined(r->arena, bound, b->pool->name);
        if (!str_eq(b->pool->name, wish))
            continue;
        for (size_t k = 0; k < r->counts.n; k++) {
            if (!pool_find_resource(b->pool, r->counts.items[k].name))
                return not_offered_by(r, b->pool, r->counts.items[k].name);
        }
        *ret = b;
        return 0;
    }
    return refuse(r, "pool \"%.*s\" is not bound to this virtual cluster: bound %.*s", STR_F(wish),
                  STR_F(bound.n ? bound : STR("none")));
}

/* The bindings that serve what is asked: how many, one of them, and the default if among them. */
struct candidates {
    size_t n;
    const struct config_binding *one, *fallback;
    struct str names;
};

static struct candidates find_candidates(const struct resolve *r, struct str product)
{
    struct candidates c = {.names = STR("")};

    for (size_t i = 0; i < r->config->n_bindings; i++) {
        const struct config_binding *b = &r->config->bindings[i];

        if (!offers_all(b->pool, &r->counts) || (product.n && !pool_has_product(b->pool, product)))
            continue;
        c.n++;
        c.one = b;
        c.names = joined(r->arena, c.names, b->pool->name);
        if (b->is_default)
            c.fallback = b;
    }
    return c;
}

/* A single pool serves, or with a product nobody has, the pool that will say so; else the default.
 */
static int resolve_served(const struct resolve *r, const struct config_binding **ret)
{
    struct str product = json_str(json_get(json_get(r->spec, "nodeSelector"), PRODUCT_LABEL));
    struct candidates c = find_candidates(r, product);
    bool no_product = c.n == 0 && product.n;

    if (no_product)
        c = find_candidates(r, STR_NULL);
    *ret = c.n == 1 ? c.one : c.fallback;
    if (*ret)
        return 0;
    if (c.n == 0)
        return refuse(r,
                      "%.*s and %.*s are not offered together by any pool of this virtual cluster",
                      STR_F(r->counts.items[0].name), STR_F(r->counts.items[r->counts.n - 1].name));
    if (no_product)
        return refuse(r, "gpu product \"%.*s\" is not offered by any of the pools %.*s",
                      STR_F(product), STR_F(c.names));
    return refuse(r, "several pools offer %.*s: set label " LABEL_GPU_POOL " to one of %.*s",
                  STR_F(r->counts.items[0].name), STR_F(c.names));
}

static int find_pool(const struct resolve *r, const cJSON *namespace_labels,
                     const struct config_binding **ret)
{
    const cJSON *labels = json_path(r->pod, "metadata.labels");
    struct str wish = json_str(json_get(labels, LABEL_GPU_POOL));

    for (size_t i = 0; i < r->counts.n; i++) {
        if (!anybody_offers(r->config, r->counts.items[i].name))
            return not_offered(r, r->counts.items[i].name);
    }
    if (!wish.n)
        wish = json_str(json_get(namespace_labels, LABEL_GPU_POOL));
    return wish.n ? resolve_named(r, wish, ret) : resolve_served(r, ret);
}

/* ---- guardrails: where ---- */

static struct str products_text(const struct resolve *r)
{
    struct str text = STR("");

    for (size_t i = 0; i < r->pool->products.n; i++)
        text = joined(r->arena, text, r->pool->products.items[i]);
    return text;
}

static int check_node_selector(const struct resolve *r)
{
    const cJSON *selector = json_get(r->spec, "nodeSelector");

    json_each(member, selector)
    {
        struct str key = key_of(member), value = json_str(member);
        struct str fixed = json_str(json_get(r->pool->node_selector, member->string));
        struct str allowed = fixed;

        if (str_eqc(key, PRODUCT_LABEL) && !pool_has_product(r->pool, value))
            allowed = products_text(r);
        else if (!fixed.p || str_eq(fixed, value))
            continue;
        return refuse(r, "nodeSelector %.*s=%.*s contradicts pool \"%.*s\": allowed [%.*s]",
                      STR_F(key), STR_F(value), STR_F(r->pool->name), STR_F(allowed));
    }
    return 0;
}

/* Does the expression leave the pool nothing? Only what is certain counts. */
static bool contradicts(const struct resolve *r, const cJSON *expression)
{
    const char *key = arena_cstr(r->arena, json_str(json_get(expression, "key")));
    struct str op = json_str(json_get(expression, "operator"));
    struct str fixed = json_str(json_get(r->pool->node_selector, key));
    bool product = strcmp(key, PRODUCT_LABEL) == 0 && r->pool->products.n, found = false;

    if (!fixed.p && !product)
        return false;
    json_each(value, json_get(expression, "values"))
    {
        found |=
            product ? pool_has_product(r->pool, json_str(value)) : str_eq(json_str(value), fixed);
    }
    if (str_eqc(op, "In"))
        return !found;
    return str_eqc(op, "DoesNotExist") || (str_eqc(op, "NotIn") && found && !product);
}

/* Terms are ORed: only when every one of them contradicts is there no node left. */
static int check_affinity(const struct resolve *r)
{
    const cJSON *terms = json_path(r->spec, "affinity.nodeAffinity."
                                            "requiredDuringSchedulingIgnoredDuringExecution."
                                            "nodeSelectorTerms");
    const cJSON *first = NULL;
    struct str key, value;

    json_each(term, terms)
    {
        const cJSON *bad = NULL;

        json_each(expression, json_get(term, "matchExpressions"))
        {
            if (!bad && contradicts(r, expression))
                bad = expression;
        }
        if (!bad)
            return 0;
        first = first ? first : bad;
    }
    if (!first)
        return 0;
    key = json_str(json_get(first, "key"));
    value = json_str(json_at(json_get(first, "values"), 0));
    if (str_eqc(key, PRODUCT_LABEL))
        return refuse(r, "gpu product \"%.*s\" is not offered by pool \"%.*s\": offered %.*s",
                      STR_F(value), STR_F(r->pool->name), STR_F(products_text(r)));
    return refuse(r, "nodeAffinity %.*s %.*s [%.*s] contradicts pool \"%.*s\"", STR_F(key),
                  STR_F(json_str(json_get(first, "operator"))), STR_F(value), STR_F(r->pool->name));
}

/* ---- guardrails: tolerations ---- */

static bool key_tolerated(const struct resolve *r, struct str key)
{
    for (size_t i = 0; TOLERATED_KEYS[i]; i++) {
        if (str_eqc(key, TOLERATED_KEYS[i]))
            return true;
    }
    if (!r->pool)
        return false;
    for (size_t i = 0; i < r->counts.n; i++) {
        if (str_eq(r->counts.items[i].name, key)) /* what the host adds to such a pod by itself */
            return true;
    }
    json_each(toleration, r->pool->tolerations)
    {
        if (str_eq(json_str(json_get(toleration, "key")), key))
            return true;
    }
    return false;
}

static struct str tolerated_text(const struct resolve *r)
{
    struct str text = STR("");

    for (size_t i = 0; i < TOLERATED_DOWN; i++)
        text = joined(r->arena, text, str_c(TOLERATED_KEYS[i]));
    if (!r->pool)
        return text;
    json_each(toleration, r->pool->tolerations)
    {
        text = joined(r->arena, text, json_str(json_get(toleration, "key")));
    }
    return text;
}

static struct str toleration_text(const struct resolve *r, const cJSON *toleration)
{
    struct str key = json_str(json_get(toleration, "key"));
    struct str value = json_str(json_get(toleration, "value"));
    struct str effect = json_str(json_get(toleration, "effect"));

    if (!key.n)
        return STR("Exists, all keys");
    return arena_printf(r->arena, "%.*s%s%.*s%s%.*s", STR_F(key), value.n ? "=" : "", STR_F(value),
                        effect.n ? ":" : "", STR_F(effect));
}

static int check_tolerations(const struct resolve *r)
{
    json_each(toleration, json_get(r->spec, "tolerations"))
    {
        if (!key_tolerated(r, json_str(json_get(toleration, "key"))))
            return refuse(r, "toleration [%.*s] is not allowed; tenant may tolerate only: %.*s",
                          STR_F(toleration_text(r, toleration)), STR_F(tolerated_text(r)));
    }
    return 0;
}

/* ---- guardrails: how many ---- */

static int check_container(const struct resolve *r, const cJSON *container)
{
    struct str name = json_str(json_get(container, "name"));
    struct device_counts own;

    if (container_devices(r->arena, container, &own, r->err))
        return refuse(r, "%.*s", STR_F(arena_str(r->arena, r->err->message)));
    for (size_t i = 0; i < own.n; i++) {
        struct str what = own.items[i].name;
        int64_t units = own.items[i].units;
        const struct pool_resource *resource = pool_find_resource(r->pool, what);

        if (!resource || resource->gpu_eq.num == 0)
            continue;
        if (r->pool->mode >= POOL_TIME_SLICING && units > 1)
            return refuse(r, "a shared GPU request must be 1 per container, got %lld",
                          (long long)units);
        if (r->pool->per_container && units > r->pool->per_container)
            return refuse(r,
                          "guardrail max-gpus-per-container: container \"%.*s\" requested "
                          "%.*s=%lld, pool \"%.*s\" allows %lld",
                          STR_F(name), STR_F(what), (long long)units, STR_F(r->pool->name),
                          (long long)r->pool->per_container);
    }
    return 0;
}

static int check_pod_cap(const struct resolve *r)
{
    struct str text = STR("");
    int64_t sum = 0;

    for (size_t i = 0; i < r->counts.n; i++) {
        const struct device_count *count = &r->counts.items[i];
        const struct pool_resource *resource = pool_find_resource(r->pool, count->name);

        if (!resource || resource->gpu_eq.num == 0)
            continue;
        if (__builtin_add_overflow(sum, count->units, &sum))
            sum = INT64_MAX;
        text = joined(
            r->arena, text,
            arena_printf(r->arena, "%.*s=%lld", STR_F(count->name), (long long)count->units));
    }
    if (!r->pool->per_pod || sum <= r->pool->per_pod)
        return 0;
    return refuse(r, "guardrail max-gpus-per-pod: requested %.*s, pool \"%.*s\" allows %lld",
                  STR_F(text), STR_F(r->pool->name), (long long)r->pool->per_pod);
}

/* Two resources that one host resource stands for cannot be told apart there. */
static int check_renames(const struct resolve *r)
{
    for (size_t i = 0; i < r->counts.n; i++) {
        const struct pool_resource *one = pool_find_resource(r->pool, r->counts.items[i].name);

        for (size_t k = 0; k < i; k++) {
            const struct pool_resource *two = pool_find_resource(r->pool, r->counts.items[k].name);

            if (str_eq(one->host_name, two->host_name))
                return refuse(r, "%.*s and %.*s cannot be asked for in one pod of pool \"%.*s\"",
                              STR_F(two->name), STR_F(one->name), STR_F(r->pool->name));
        }
    }
    return 0;
}

static int check_amounts(const struct resolve *r)
{
    if (check_renames(r))
        return -1;
    for (size_t i = 0; i < 2; i++) {
        json_each(container, json_get(r->spec, CONTAINER_LISTS[i]))
        {
            if (check_container(r, container))
                return -1;
        }
    }
    return check_pod_cap(r);
}

static int count_gpu_eq(const struct resolve *r, struct rational *ret)
{
    struct rational total = RATIONAL_ZERO, part;

    for (size_t i = 0; i < r->counts.n; i++) {
        const struct device_count *count = &r->counts.items[i];
        const struct pool_resource *resource = pool_find_resource(r->pool, count->name);
        struct rational units = {count->units, 1};

        if (!rational_mul(units, resource->gpu_eq, &part) || !rational_add(total, part, &total))
            return refuse(r, "%.*s is out of range", STR_F(count->name));
    }
    *ret = total;
    return 0;
}

/* ---- guardrails: everything else ---- */

static int check_scheduler(const struct resolve *r)
{
    struct str wish = json_str(json_get(r->spec, "schedulerName"));
    struct str uses =
        r->pool && r->pool->scheduler.n ? r->pool->scheduler : STR("default-scheduler");

    if (!wish.n || str_eqc(wish, "default-scheduler") || str_eq(wish, uses))
        return 0;
    return refuse(r, "schedulerName \"%.*s\" is not allowed; %s uses \"%.*s\"", STR_F(wish),
                  r->pool ? "pool" : "this virtual cluster", STR_F(uses));
}

static int check_container_reach(const struct resolve *r, const cJSON *container)
{
    enum pool_mode mode = r->pool ? r->pool->mode : POOL_EXCLUSIVE;
    struct str name = json_str(json_get(container, "name"));

    json_each(env, json_get(container, "env"))
    {
        if (env_refused(env, mode))
            return refuse(r,
                          "env %.*s of container \"%.*s\" is not allowed: devices are given by the "
                          "scheduler, not by variables",
                          STR_F(json_str(json_get(env, "name"))), STR_F(name));
    }
    json_each(from, json_get(container, "envFrom"))
    {
        struct str prefix = json_str(json_get(from, "prefix"));

        if (env_prefix_refused(prefix, mode))
            return refuse(r,
                          "envFrom prefix \"%.*s\" of container \"%.*s\" is not allowed: it could "
                          "name a variable that gives devices",
                          STR_F(prefix), STR_F(name));
    }
    json_each(mount, json_get(container, "volumeMounts"))
    {
        struct str path = json_str(json_get(mount, "mountPath"));

        if (mount_refused(path))
            return refuse(r,
                          "mountPath %.*s of container \"%.*s\" is not allowed: mounts there give "
                          "devices",
                          STR_F(path), STR_F(name));
    }
    return 0;
}

static int check_reach(const struct resolve *r)
{
    for (size_t i = 0; i < 3; i++) {
        json_each(container, json_get(r->spec, CONTAINER_LISTS[i]))
        {
            if (check_container_reach(r, container))
                return -1;
        }
    }
    return 0;
}

/* Devices where no scheduler counts them: for the pod as a whole, or in a debug container. */
static int check_side_doors(const struct resolve *r)
{
    const cJSON *pod_level = json_get(r->spec, "resources");
    cJSON *wrapped = json_new_object(r->arena);
    struct device_counts counts;
    int rc;

    if (pod_level)
        json_set(r->arena, wrapped, "resources", json_copy(r->arena, pod_level));
    rc = container_devices(r->arena, wrapped, &counts, r->err);
    if (rc == 0 && counts.n == 0) {
        json_each(container, json_get(r->spec, CONTAINER_LISTS[2]))
        {
            rc = rc ? rc : container_devices(r->arena, container, &counts, r->err);
            if (rc || counts.n)
                break;
        }
    }
    if (rc)
        return refuse(r, "%.*s", STR_F(arena_str(r->arena, r->err->message)));
    if (counts.n)
        return refuse(r, "%.*s must be asked for by a container or init container",
                      STR_F(counts.items[0].name));
    return 0;
}

int pool_resolve(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                 const cJSON *namespace_labels, struct pool_choice *ret, struct err *err)
{
    struct resolve r = {.arena = a, .config = config, .pod = pod, .err = err};
    struct pool_choice choice = {NULL, RATIONAL_ZERO, RATIONAL_ZERO};

    (void)ns; /* one model for all namespaces; their labels tell them apart */
    r.spec = json_get(pod, "spec");
    r.name = pod_name(pod);
    if (pod_devices(a, pod, &r.counts, err))
        return refuse(&r, "%.*s", STR_F(arena_str(a, err->message)));
    if (check_side_doors(&r))
        return -1;
    if (r.counts.n) {
        if (find_pool(&r, namespace_labels, &choice.binding))
            return -1;
        r.pool = choice.binding->pool;
        if (!rational_add(choice.binding->guarantee, choice.binding->burst, &choice.limit))
            return refuse(&r, "the limit of pool \"%.*s\" is out of range", STR_F(r.pool->name));
        if (check_node_selector(&r) || check_affinity(&r) || check_amounts(&r) ||
            count_gpu_eq(&r, &choice.gpu_eq))
            return -1;
    }
    if (check_tolerations(&r) || check_scheduler(&r) || check_reach(&r))
        return -1;
    *ret = choice;
    return 0;
}

int pool_exceeded(struct arena *a, const struct pool_choice *choice, struct rational used,
                  struct str name, struct err *err)
{
    struct str requested = rational_format(a, choice->gpu_eq),
               limit = rational_format(a, choice->limit);
    struct str pool = choice->binding->pool->name;

    return err_forbidden(err, STR_NULL, STR("pods"), name,
                         "exceeded quota: gpu/%.*s, requested: gpu=%.*s, used: gpu=%.*s, "
                         "limited: gpu=%.*s",
                         STR_F(pool), STR_F(requested), STR_F(rational_format(a, used)),
                         STR_F(limit));
}
