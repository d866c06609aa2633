/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a pod goes to, what it takes there, and what its author may not request. Why: the pool
 * is the fence, so what a tenant wrote may only narrow it, and a contradiction must be reported
 * when the pod is applied and not show as a pod that is pending for ever. Must never look at
 * anything but the pod, its namespace's labels and the configuration. */

#include <string.h>

#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "pool.h"

static const char PRODUCT_LABEL[] = "nvidia.com/gpu.product";

/* ---- pools ---- */

static bool offers(const struct config_pool *pool, struct str name)
{
    return config_pool_resource(pool, name) || (vgpu_system(pool->mode) && vgpu_is_request(name));
}

static bool offers_all(const struct config_pool *pool, const struct device_counts *counts)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (!offers(pool, counts->items[i].name))
            return false;
    }
    return true;
}

/* named: the pod names its pool, which may be one whose binding has ended. */
static bool any_offers(const struct config *config, struct str name, bool named)
{
    for (size_t i = 0; i < config->n_bindings; i++) {
        const struct config_binding *b = &config->bindings[i];

        if ((named || !b->ended) && offers(b->pool, name))
            return true;
    }
    return false;
}

/* A resource as a message lists it: MIG profiles without their common prefix. */
static struct str offer_text(const struct config_pool *pool, struct str name)
{
    struct str mig = STR("nvidia.com/mig-");

    return pool->mode == POOL_MIG && str_has_prefix(name, mig) ? str_from(name, mig.n) : name;
}

static int not_offered_by(const struct resolve *r, const struct config_pool *pool, struct str name)
{
    struct str text = STR("");

    for (size_t i = 0; i < pool->n_resources; i++)
        text = pool_joined(r->arena, text, offer_text(pool, pool->resources[i].name));
    if (vgpu_system(pool->mode))
        text = pool_joined(r->arena, text, STR(VGPU_HAMI_NUMBER));
    return pool_refuse(r, "%.*s is not offered by pool \"%.*s\": offered %.*s", STR_F(name),
                       STR_F(pool->name), STR_F(text));
}

static int not_offered(const struct resolve *r, struct str name)
{
    struct str_list seen = {0};
    struct str *names = arena_alloc(r->arena, 64 * sizeof *names), text = STR("");

    seen.items = names;
    for (size_t i = 0; i < r->config->n_bindings; i++) {
        const struct config_pool *pool = r->config->bindings[i].pool;

        if (r->config->bindings[i].ended)
            continue;
        for (size_t k = 0; k < pool->n_resources && seen.n < 64; k++) {
            if (str_list_has(seen, pool->resources[k].name))
                continue;
            names[seen.n++] = pool->resources[k].name;
            text = pool_joined(r->arena, text, pool->resources[k].name);
        }
    }
    return pool_refuse(r, "%.*s is not offered by any pool of this virtual cluster: offered %.*s",
                       STR_F(name), STR_F(text.n ? text : STR("nothing")));
}

/* ---- resolution ---- */

static int resolve_named(const struct resolve *r, struct str wanted,
                         const struct config_binding **ret)
{
    struct str bound = STR("");

    for (size_t i = 0; i < r->config->n_bindings; i++) {
        const struct config_binding *b = &r->config->bindings[i];

        bound = pool_joined(r->arena, bound, b->pool->name);
        if (!str_eq(b->pool->name, wanted))
            continue;
        for (size_t k = 0; k < r->counts.n; k++) {
            if (!offers(b->pool, r->counts.items[k].name))
                return not_offered_by(r, b->pool, r->counts.items[k].name);
        }
        *ret = b;
        return 0;
    }
    return pool_refuse(r, "pool \"%.*s\" is not bound to this virtual cluster: bound %.*s",
                       STR_F(wanted), STR_F(bound.n ? bound : STR("none")));
}

/* The bindings that serve what is requested: how many, one of them, and the default if among them.
 */
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

        if (b->ended || !offers_all(b->pool, &r->counts) ||
            (product.n && !config_pool_has_product(b->pool, product)))
            continue;
        c.n++;
        c.one = b;
        c.names = pool_joined(r->arena, c.names, b->pool->name);
        if (b->is_default)
            c.fallback = b;
    }
    return c;
}

/* A single pool serves, or with an unknown product, the pool that will report it; else the default.
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
        return pool_refuse(
            r, "%.*s and %.*s are not offered together by any pool of this virtual cluster",
            STR_F(r->counts.items[0].name), STR_F(r->counts.items[r->counts.n - 1].name));
    if (no_product)
        return pool_refuse(r, "gpu product \"%.*s\" is not offered by any of the pools %.*s",
                           STR_F(product), STR_F(c.names));
    return pool_refuse(r, "several pools offer %.*s: set label " LABEL_GPU_POOL " to one of %.*s",
                       STR_F(r->counts.items[0].name), STR_F(c.names));
}

static int find_pool(const struct resolve *r, const cJSON *namespace_labels,
                     const struct config_binding **ret)
{
    const cJSON *labels = json_path(r->pod, "metadata.labels");
    struct str wanted = json_str(json_get(labels, LABEL_GPU_POOL));

    if (!wanted.n)
        wanted = json_str(json_get(namespace_labels, LABEL_GPU_POOL));
    for (size_t i = 0; i < r->counts.n; i++) {
        if (!any_offers(r->config, r->counts.items[i].name, wanted.n > 0))
            return not_offered(r, r->counts.items[i].name);
    }
    return wanted.n ? resolve_named(r, wanted, ret) : resolve_served(r, ret);
}

/* ---- the answer ---- */

static int count_gpu_eq(const struct resolve *r, struct rational *ret)
{
    struct rational total = RATIONAL_ZERO, part;

    for (size_t i = 0; i < r->counts.n; i++) {
        const struct device_count *count = &r->counts.items[i];
        const struct pool_resource *resource = config_pool_resource(r->pool, count->name);
        struct rational units = {count->units, 1};

        if (!rational_mul(units, resource->gpu_eq, &part) || !rational_add(total, part, &total))
            return pool_refuse(r, "%.*s is out of range", STR_F(count->name));
    }
    *ret = total;
    return 0;
}

static int check_claims(const struct resolve *r, const struct pool_claims *claims)
{
    struct str pool = claims->binding->pool->name;
    struct str wanted = json_str(json_get(json_path(r->pod, "metadata.labels"), LABEL_GPU_POOL));
    int64_t most = claims->binding->pool->per_pod;

    if (r->counts.n)
        return pool_refuse(r, "%.*s and resource claims of pool \"%.*s\" in one pod",
                           STR_F(r->counts.items[0].name), STR_F(pool));
    if (wanted.n && !str_eq(wanted, pool))
        return pool_refuse(r,
                           "label " LABEL_GPU_POOL " is \"%.*s\", its resource claims are of "
                           "pool \"%.*s\"",
                           STR_F(wanted), STR_F(pool));
    if (most && claims->devices > most)
        return pool_refuse(r,
                           "guardrail max-gpus-per-pod: claims of %lld devices, pool \"%.*s\" "
                           "allows %lld",
                           (long long)claims->devices, STR_F(pool), (long long)most);
    return 0;
}

static struct str requested_text(const struct resolve *r)
{
    struct str text = STR("");

    for (size_t i = 0; i < r->counts.n; i++)
        text = pool_joined(r->arena, text,
                           arena_printf(r->arena, "%.*s=%lld", STR_F(r->counts.items[i].name),
                                        (long long)r->counts.items[i].units));
    return text;
}

int pool_resolve(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                 const cJSON *namespace_labels, struct pool_choice *ret, struct err *err)
{
    return pool_resolve_with(a, config, ns, pod, namespace_labels, NULL, ret, err);
}

int pool_resolve_with(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                      const cJSON *namespace_labels, const struct pool_claims *claims,
                      struct pool_choice *ret, struct err *err)
{
    struct resolve r = {.arena = a, .config = config, .pod = pod, .err = err};
    struct pool_choice choice = {.gpu_eq = RATIONAL_ZERO, .limit = RATIONAL_ZERO};
    struct str name = json_str_at(pod, "metadata.name");

    (void)ns; /* one model for all namespaces; their labels distinguish them */
    r.spec = json_get(pod, "spec");
    r.name = name.n ? name : json_str_at(pod, "metadata.generateName");
    if (gpu_count_pod(a, pod, &r.counts, err))
        return pool_refuse(&r, "%.*s", STR_F(arena_str(a, err->message)));
    if (pool_guard_side_doors(&r))
        return -1;
    if (claims && check_claims(&r, claims))
        return -1;
    if (r.counts.n || claims) {
        choice.by_claims = claims;
        choice.binding = claims ? claims->binding : NULL;
        if (!claims && find_pool(&r, namespace_labels, &choice.binding))
            return -1;
        r.pool = choice.binding->pool;
        choice.requested = requested_text(&r);
        choice.limit = choice.binding->limit;
        if (gpu_vgpu_count(&r) || pool_guard_pool(&r) || count_gpu_eq(&r, &choice.gpu_eq))
            return -1;
    }
    if (pool_guard_pod(&r))
        return -1;
    *ret = choice;
    return 0;
}

static bool part_of_host_pod(const cJSON *host_pod, struct rational *ret)
{
    struct rational hundredths = {fraction_of_pod(host_pod), 1};

    return rational_mul(hundredths, (struct rational){1, FRACTION_WHOLE}, ret) && ret->num > 0;
}

/* A resource that the pool no longer offers counts as one each: unknown is not free. */
/* By its name on the host, after `rename`. */
static const struct pool_resource *host_resource(const struct config_pool *pool, struct str name)
{
    for (size_t i = 0; i < pool->n_resources; i++)
        if (str_eq(pool->resources[i].host_name, name))
            return &pool->resources[i];
    return NULL;
}

bool pool_of_host_pod(struct arena *a, const struct config *config, const cJSON *host_pod,
                      struct pool_choice *ret)
{
    struct str label = json_str(json_get(json_path(host_pod, "metadata.labels"), LABEL_POOL));
    struct rational part;
    struct device_counts counts = {0};
    struct err err;

    *ret = (struct pool_choice){.gpu_eq = RATIONAL_ZERO, .limit = RATIONAL_ZERO};
    ret->binding = config_binding_of(config, label);
    err_init(&err, a);
    if (!ret->binding || gpu_count_pod(a, host_pod, &counts, &err))
        return false;
    if (ret->binding->pool->mode == POOL_KAI)
        return part_of_host_pod(host_pod, &ret->gpu_eq);
    if (vgpu_system(ret->binding->pool->mode))
        return gpu_vgpu_of_host(ret->binding->pool, &counts, &ret->gpu_eq);
    for (size_t i = 0; i < counts.n; i++) {
        const struct pool_resource *resource =
            host_resource(ret->binding->pool, counts.items[i].name);

        if (!rational_mul((struct rational){counts.items[i].units, 1},
                          resource ? resource->gpu_eq : (struct rational){1, 1}, &part) ||
            !rational_add(ret->gpu_eq, part, &ret->gpu_eq))
            ret->gpu_eq = (struct rational){INT64_MAX, 1};
    }
    return counts.n > 0;
}

int pool_exceeded(struct arena *a, const struct pool_choice *choice, struct rational used,
                  struct str name, struct err *err)
{
    struct str requested = rational_format(a, choice->gpu_eq),
               limit = rational_format(a, choice->limit);
    struct str pool = choice->binding->pool->name;

    if (choice->gang.n && choice->gang_size > 1)
        return err_forbidden(
            err, STR_NULL, STR("pods"), name,
            "exceeded quota: gpu/%.*s, requested: gpu=%.*s%.*s by each of a gang of %lld pods, "
            "used: gpu=%.*s, limited: gpu=%.*s",
            STR_F(pool), STR_F(requested), STR_F(pool_requested(a, choice)),
            (long long)choice->gang_size, STR_F(rational_format(a, used)), STR_F(limit));
    return err_forbidden(err, choice->of_claim ? STR("resource.k8s.io") : STR_NULL,
                         choice->of_claim ? STR("resourceclaims") : STR("pods"), name,
                         "exceeded quota: gpu/%.*s, requested: gpu=%.*s%.*s, used: gpu=%.*s, "
                         "limited: gpu=%.*s",
                         STR_F(pool), STR_F(requested), STR_F(pool_requested(a, choice)),
                         STR_F(rational_format(a, used)), STR_F(limit));
}

struct str pool_requested(struct arena *a, const struct pool_choice *choice)
{
    struct str same = arena_printf(a, "=%.*s", STR_F(rational_format(a, choice->gpu_eq)));
    bool single = str_find(choice->requested, ',') == choice->requested.n;

    if (!choice->requested.n || (single && str_has_suffix(choice->requested, same)))
        return STR("");
    return arena_printf(a, " (%.*s)", STR_F(choice->requested));
}

bool pool_exceeded_by(struct arena *a, const struct pool_choice *choice, int64_t pods,
                      bool together, struct str *ret_text)
{
    struct rational total, fit;

    if (!choice->binding || choice->by_claims || choice->gpu_eq.num <= 0 ||
        (rational_mul(choice->gpu_eq, (struct rational){pods, 1}, &total) &&
         rational_cmp(total, choice->limit) <= 0) ||
        !rational_mul(choice->limit, (struct rational){choice->gpu_eq.den, choice->gpu_eq.num},
                      &fit))
        return false;
    if (together) {
        *ret_text = arena_printf(
            a,
            "%lld pods that request %.*s each exceed the limit of pool \"%.*s\", %.*s GPU, and "
            "are a gang: none of them starts",
            (long long)pods, STR_F(choice->requested), STR_F(choice->binding->pool->name),
            STR_F(rational_format(a, choice->limit)));
        return true;
    }
    *ret_text =
        arena_printf(a,
                     "%lld pods that request %.*s each exceed the limit of pool \"%.*s\", "
                     "%.*s GPU: no more than %lld of them run at once",
                     (long long)pods, STR_F(choice->requested), STR_F(choice->binding->pool->name),
                     STR_F(rational_format(a, choice->limit)), (long long)(fit.num / fit.den));
    return true;
}
