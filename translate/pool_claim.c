/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims and their templates: which pool grants the classes of their devices, how many GPUs
 * that is, and what their authors may not request. Why: the host's scheduler gives whatever a claim
 * there names, so what is not granted must never go down, and what goes down must be counted at
 * its worst case. Must never look at anything but the claim, its namespace's labels and the
 * configuration. Source of the fields: resource.k8s.io/v1. */

#include <stdarg.h>

#include "pool.h"

static const char FORGED[] = "resource.kubernetes.io/extended-resource-claim";

enum { CEL_BYTES = 2048, CEL_TOTAL_BYTES = 8192 };

struct claim {
    struct arena *arena;
    const struct config *config;
    const char *plural;
    struct str name;
    const cJSON *metadata, *devices;
    const struct config_pool *pool; /* once it is found */
    struct err *err;
    size_t cel_bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct claim *c, const char *format,
                                                        ...)
{
    struct str message;
    va_list args;

    va_start(args, format);
    message = str_clip(arena_vprintf(c->arena, format, args), REFUSAL_BYTES);
    va_end(args);
    return err_forbidden(c->err, STR("resource.k8s.io"), str_c(c->plural), c->name, "%.*s",
                         STR_F(message));
}

/* ---- requests: "exactly" one, or alternatives ---- */

typedef int (*device_cb)(struct claim *c, struct str request, const cJSON *one, void *ctx);

static int each_of(struct claim *c, const cJSON *request, device_cb each, void *ctx)
{
    struct str name = json_str(json_get(request, "name"));
    const cJSON *exactly = json_get(request, "exactly");

    if (json_is_object(exactly) && each(c, name, exactly, ctx))
        return -1;
    json_each(one, json_get(request, "firstAvailable"))
    {
        struct str sub = arena_printf(c->arena, "%.*s/%.*s", STR_F(name),
                                      STR_F(json_str(json_get(one, "name"))));

        if (each(c, sub, one, ctx))
            return -1;
    }
    return 0;
}

static int each_device(struct claim *c, device_cb each, void *ctx)
{
    json_each(request, json_get(c->devices, "requests"))
    {
        if (each_of(c, request, each, ctx))
            return -1;
    }
    return 0;
}

static struct str class_of(const cJSON *one)
{
    return json_str(json_get(one, "deviceClassName"));
}

/* ---- what no pool grants ---- */

static int check_selectors(struct claim *c, struct str request, const cJSON *one)
{
    json_each(selector, json_get(one, "selectors"))
    {
        size_t n = json_str(json_get(json_get(selector, "cel"), "expression")).n;

        c->cel_bytes += n;
        if (n > CEL_BYTES || c->cel_bytes > CEL_TOTAL_BYTES)
            return refuse(c,
                          "request \"%.*s\": selectors: a CEL expression may have %d bytes, those "
                          "of a claim %d",
                          STR_F(request), CEL_BYTES, CEL_TOTAL_BYTES);
    }
    return 0;
}

static int check_one(struct claim *c, struct str request, const cJSON *one, void *ctx)
{
    struct str mode = json_str(json_get(one, "allocationMode"));

    (void)ctx;
    if (json_true(json_get(one, "adminAccess")))
        return refuse(c,
                      "request \"%.*s\": adminAccess: devices that other claims hold are not a "
                      "tenant's to access",
                      STR_F(request));
    if (mode.n && !str_eqc(mode, "ExactCount"))
        return refuse(c,
                      "request \"%.*s\": allocationMode \"%.*s\": how many devices that takes is "
                      "not known; use ExactCount",
                      STR_F(request), STR_F(mode));
    if (json_i64_at(one, "count", 1) < 1)
        return refuse(c, "request \"%.*s\": count must be greater than zero", STR_F(request));
    if (json_count(json_get(one, "tolerations")))
        return refuse(c,
                      "request \"%.*s\": tolerations: taints of devices are not a tenant's to "
                      "tolerate",
                      STR_F(request));
    return check_selectors(c, request, one);
}

static int check_claim(struct claim *c)
{
    if (!json_count(json_get(c->devices, "requests")))
        return refuse(c, "spec.devices.requests: a claim requests at least one device");
    if (json_get_str(json_get(c->metadata, "annotations"), str_c(FORGED)))
        return refuse(c, "annotation %s is the scheduler's to set", FORGED);
    return each_device(c, check_one, NULL);
}

/* ---- the pool ---- */

static int find_class(struct claim *c, struct str request, const cJSON *one, void *ctx)
{
    const struct config_pool *pool = ctx;

    (void)c;
    (void)request;
    return config_pool_device_class(pool, class_of(one)) ? 0 : -1;
}

static struct str granted_by(struct claim *c, const struct config_pool *pool, struct str so_far)
{
    for (size_t i = 0; i < pool->n_device_classes; i++)
        so_far = pool_joined(c->arena, so_far, pool->device_classes[i].name);
    return so_far;
}

static int check_granted(struct claim *c, struct str request, const cJSON *one, void *ctx)
{
    const struct config_pool *only = ctx; /* NULL: any that is bound */
    struct str granted = STR("");

    for (size_t i = 0; i < c->config->n_bindings; i++) {
        const struct config_pool *pool = c->config->bindings[i].pool;

        if (only && pool != only)
            continue;
        if (config_pool_device_class(pool, class_of(one)))
            return 0;
        granted = granted_by(c, pool, granted);
    }
    return refuse(c,
                  "request \"%.*s\": device class \"%.*s\" is not granted by %s%.*s%s: granted "
                  "%.*s",
                  STR_F(request), STR_F(class_of(one)), only ? "pool \"" : "any pool",
                  STR_F(only ? only->name : STR(" of this virtual cluster")), only ? "\"" : "",
                  STR_F(granted.n ? granted : STR("none")));
}

static int find_named(struct claim *c, struct str wanted, const struct config_binding **ret)
{
    struct str bound = STR("");

    for (size_t i = 0; i < c->config->n_bindings; i++) {
        const struct config_binding *b = &c->config->bindings[i];

        bound = pool_joined(c->arena, bound, b->pool->name);
        if (!str_eq(b->pool->name, wanted))
            continue;
        *ret = b;
        return each_device(c, check_granted, (void *)(uintptr_t)b->pool);
    }
    return refuse(c, "pool \"%.*s\" is not bound to this virtual cluster: bound %.*s",
                  STR_F(wanted), STR_F(bound.n ? bound : STR("none")));
}

static int find_serving(struct claim *c, const struct config_binding **ret)
{
    const struct config_binding *one = NULL, *fallback = NULL;
    struct str names = STR("");
    size_t n = 0;

    if (each_device(c, check_granted, NULL))
        return -1;
    for (size_t i = 0; i < c->config->n_bindings; i++) {
        const struct config_binding *b = &c->config->bindings[i];

        if (b->ended || each_device(c, find_class, (void *)(uintptr_t)b->pool))
            continue;
        n++;
        one = b;
        names = pool_joined(c->arena, names, b->pool->name);
        fallback = b->is_default ? b : fallback;
    }
    *ret = n == 1 ? one : fallback;
    if (*ret)
        return 0;
    if (!n)
        return refuse(c, "no pool of this virtual cluster grants all its device classes");
    return refuse(
        c, "several pools grant its device classes: set label " LABEL_GPU_POOL " to one of %.*s",
        STR_F(names));
}

static int find_pool(struct claim *c, const cJSON *namespace_labels,
                     const struct config_binding **ret)
{
    struct str wanted = json_str(json_get(json_get(c->metadata, "labels"), LABEL_GPU_POOL));

    if (!wanted.n)
        wanted = json_str(json_get(namespace_labels, LABEL_GPU_POOL));
    return wanted.n ? find_named(c, wanted, ret) : find_serving(c, ret);
}

/* ---- how many ---- */

struct sum {
    struct rational gpu_eq; /* of one request: of its dearest alternative */
    int64_t devices;        /* that have a weight */
    struct str class;       /* of these devices alone: `all` */
    int64_t all;
};

static struct rational weight(const struct claim *c, const cJSON *one)
{
    const struct pool_device_class *class = config_pool_device_class(c->pool, class_of(one));

    return class ? class->gpu_eq : (struct rational){1, 1}; /* unknown is not free */
}

static int add_up(struct claim *c, struct str request, const cJSON *one, void *ctx)
{
    struct sum *sum = ctx;
    int64_t count = json_i64_at(one, "count", 1);
    struct rational each = weight(c, one), part;

    (void)request;
    if (count < 1 || !rational_mul((struct rational){count, 1}, each, &part))
        return -1;
    if (rational_cmp(part, sum->gpu_eq) > 0)
        sum->gpu_eq = part;
    if (each.num && count > sum->devices)
        sum->devices = count;
    if (str_eq(class_of(one), sum->class) && count > sum->all)
        sum->all = count;
    return 0;
}

/* Of all requests; class: whose devices ret->all counts. */
static int sum_up(struct claim *c, struct str class, struct sum *ret)
{
    *ret = (struct sum){.gpu_eq = RATIONAL_ZERO, .class = class};
    json_each(request, json_get(c->devices, "requests"))
    {
        struct sum one = {.gpu_eq = RATIONAL_ZERO, .class = class};

        if (each_of(c, request, add_up, &one) ||
            !rational_add(ret->gpu_eq, one.gpu_eq, &ret->gpu_eq) ||
            __builtin_add_overflow(ret->devices, one.devices, &ret->devices) ||
            __builtin_add_overflow(ret->all, one.all, &ret->all))
            return -1;
    }
    return 0;
}

static int count_up(struct claim *c, struct pool_choice *ret)
{
    struct sum sum;

    if (sum_up(c, STR_NULL, &sum))
        return refuse(c, "the number of its devices is out of range");
    ret->gpu_eq = sum.gpu_eq;
    ret->devices = sum.devices;
    if (c->pool->per_pod && sum.devices > c->pool->per_pod)
        return refuse(c,
                      "guardrail max-gpus-per-pod: requested %lld devices, pool \"%.*s\" allows "
                      "%lld",
                      (long long)sum.devices, STR_F(c->pool->name), (long long)c->pool->per_pod);
    for (size_t i = 0; i < c->pool->n_device_classes; i++) {
        const struct pool_device_class *class = &c->pool->device_classes[i];

        if (class->per_claim && (sum_up(c, class->name, &sum) || sum.all > class->per_claim))
            return refuse(c,
                          "guardrail max-devices-per-claim: requested %.*s=%lld, pool \"%.*s\" "
                          "allows %lld",
                          STR_F(class->name), (long long)sum.all, STR_F(c->pool->name),
                          (long long)class->per_claim);
    }
    return 0;
}

/* ---- parameters of drivers ---- */

struct opaque {
    const cJSON *requests, *value;
};

static bool allows(const struct pool_device_class *class, const cJSON *opaque)
{
    json_each(one, class ? class->config : NULL)
    {
        if (str_eq(json_str(json_get(one, "driver")), json_str(json_get(opaque, "driver"))) &&
            json_equal(json_get(one, "parameters"), json_get(opaque, "parameters")))
            return true;
    }
    return false;
}

/* Is it meant by its own name, that of its request, or because none is named? */
static bool is_meant(const cJSON *requests, struct str name)
{
    return !json_count(requests) || json_list_has(requests, name) ||
           json_list_has(requests, str_sub(name, 0, str_find(name, '/')));
}

static int check_opaque(struct claim *c, struct str request, const cJSON *one, void *ctx)
{
    const struct opaque *o = ctx;

    if (!is_meant(o->requests, request) ||
        allows(config_pool_device_class(c->pool, class_of(one)), o->value))
        return 0;
    return refuse(c,
                  "spec.devices.config: these parameters of driver \"%.*s\" are not granted for "
                  "device class \"%.*s\" by pool \"%.*s\"",
                  STR_F(json_str(json_get(o->value, "driver"))), STR_F(class_of(one)),
                  STR_F(c->pool->name));
}

static int check_config(struct claim *c)
{
    json_each(one, json_get(c->devices, "config"))
    {
        struct opaque o = {json_get(one, "requests"), json_get(one, "opaque")};

        if (each_device(c, check_opaque, &o))
            return -1;
    }
    return 0;
}

/* ---- the answer ---- */

static struct claim claim_of(struct arena *a, const struct config *config, const cJSON *object,
                             bool is_template, struct err *err)
{
    struct str name = json_str_at(object, "metadata.name");
    const cJSON *claim = is_template ? json_get(object, "spec") : object;

    return (struct claim){.arena = a,
                          .config = config,
                          .plural = is_template ? "resourceclaimtemplates" : "resourceclaims",
                          .name = name.n ? name : json_str_at(object, "metadata.generateName"),
                          .metadata = json_get(claim, "metadata"),
                          .devices = json_path(claim, "spec.devices"),
                          .err = err};
}

int pool_resolve_claim(struct arena *a, const struct config *config, const cJSON *object,
                       bool is_template, const cJSON *namespace_labels, struct pool_choice *ret,
                       struct err *err)
{
    struct claim c = claim_of(a, config, object, is_template, err);
    struct pool_choice choice = {.gpu_eq = RATIONAL_ZERO, .limit = RATIONAL_ZERO, .of_claim = true};

    if (check_claim(&c) || find_pool(&c, namespace_labels, &choice.binding))
        return -1;
    c.pool = choice.binding->pool;
    choice.limit = choice.binding->limit;
    if (check_config(&c) || count_up(&c, &choice))
        return -1;
    *ret = choice;
    return 0;
}

bool pool_of_host_claim(struct arena *a, const struct config *config, const cJSON *host_claim,
                        struct pool_choice *ret)
{
    struct str label = json_str(json_get(json_path(host_claim, "metadata.labels"), LABEL_POOL));
    struct claim c = claim_of(a, config, host_claim, false, NULL);
    struct sum sum;

    *ret = (struct pool_choice){.gpu_eq = RATIONAL_ZERO, .limit = RATIONAL_ZERO, .of_claim = true};
    ret->binding = config_binding_of(config, label);
    if (!ret->binding)
        return false;
    c.pool = ret->binding->pool;
    ret->gpu_eq = sum_up(&c, STR_NULL, &sum) ? (struct rational){INT64_MAX, 1} : sum.gpu_eq;
    return true;
}
