/* SPDX-License-Identifier: Apache-2.0 */
/* `pools:` and `bindings:` of the configuration. Why: a pool is the fence around GPUs, so one that
 * is misspelt, contradictory or uses a sharing mode this version cannot enforce must stop the
 * start. Must never guess a quantity: shares are the exact rationals that the administrator wrote.
 */

#include <string.h>

#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "impl.h"

/* What is read of one pool before it is put together. */
struct draft {
    struct config_pool pool;
    const cJSON *resources, *profiles, *rename; /* checked as JSON; built at the end */
};

/* ---- readers of a pool's keys ---- */

static int read_name(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    const char *why;

    if (place_string(at, value, &d->pool.name))
        return -1;
    why = name_check_dns1123_label(d->pool.name);
    return why ? place_error(at, "\"%.*s\": %s", STR_F(d->pool.name), why) : 0;
}

static int read_kind(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    int word;

    if (place_word(at, value, "shared|dedicated", &word))
        return -1;
    d->pool.dedicated = word == 1;
    return 0;
}

static int read_trust(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    int word;

    if (place_word(at, value, "cooperative|adversarial", &word))
        return -1;
    d->pool.adversarial = word == 1;
    return 0;
}

static int read_mode(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    int word;

    if (place_word(at, value, CONFIG_MODES, &word))
        return -1;
    d->pool.mode = (enum pool_mode)word;
    return 0;
}

static int read_node_selector(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;

    if (place_map(at, value, &d->pool.node_selector))
        return -1;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        const char *why = name_check_qualified(json_key(member));

        why = why ? why : name_check_label_value(json_str(member));
        if (why)
            return place_error(&inner, "%s", why);
    }
    return 0;
}

static int toleration_text(const struct place *at, const cJSON *value, void *into)
{
    struct str unused;

    (void)into;
    return place_string(at, value, &unused);
}

static int toleration_operator(const struct place *at, const cJSON *value, void *into)
{
    int unused;

    (void)into;
    return place_word(at, value, "Equal|Exists", &unused);
}

static int toleration_effect(const struct place *at, const cJSON *value, void *into)
{
    int unused;

    (void)into;
    return place_word(at, value, "NoSchedule|PreferNoSchedule|NoExecute", &unused);
}

static int toleration_seconds(const struct place *at, const cJSON *value, void *into)
{
    int64_t unused;

    (void)into;
    return place_count(at, value, &unused);
}

static const struct place_key TOLERATION_KEYS[] = {
    {"key", toleration_text},
    {"operator", toleration_operator},
    {"value", toleration_text},
    {"effect", toleration_effect},
    {"tolerationSeconds", toleration_seconds},
    {0},
};

/* The one value of a taint that is tolerated; empty with Exists. */
static struct str toleration_value(const cJSON *toleration)
{
    return str_eqc(json_str(json_get(toleration, "operator")), "Exists")
               ? STR("")
               : json_str(json_get(toleration, "value"));
}

static int read_tolerations(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    size_t i = 0;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    json_each(item, value)
    {
        struct place inner = place_item(at, i++);

        if (place_object(&inner, item, TOLERATION_KEYS, NULL))
            return -1;
        if (!json_str(json_get(item, "key")).n)
            return place_error(&inner, "key is needed: a pool must not tolerate every taint");
        if (str_has_prefix(json_str(json_get(item, "key")), STR("sublet.dev/")) &&
            !toleration_value(item).n)
            return place_error(&inner, "operator Equal with a value is needed: it is the taint of "
                                       "one pool");
    }
    d->pool.tolerations = json_copy(at->arena, value);
    return 0;
}

static int read_products(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;
    struct str_list list;

    if (config_read_list(at->arena, at->path, value, &list, at->err))
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        struct place inner = place_item(at, i);

        if (!list.items[i].n || !str_eq(config_product_base(list.items[i]), list.items[i]))
            return place_error(&inner, "want a product without -MIG-* and -SHARED");
    }
    d->pool.products = list;
    return 0;
}

/* {gpuEq: "1/7"}: the value of `resources` and `profiles`. */
static int read_gpu_eq(const struct place *at, const cJSON *value, void *into)
{
    return place_rational(at, value, &((struct pool_resource *)into)->gpu_eq);
}

static int read_resource_cap(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct pool_resource *)into)->per_pod);
}

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.n > 0;
}

static int read_variables(const struct place *at, const cJSON *value, void *into)
{
    struct str_list list;

    if (config_read_list(at->arena, at->path, value, &list, at->err))
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        struct place inner = place_item(at, i);

        if (!is_variable(list.items[i]))
            return place_error(&inner,
                               "want the name of a variable such as EXAMPLE_VISIBLE_DEVICES");
    }
    ((struct pool_resource *)into)->variables = list;
    return 0;
}

static const struct place_key SHARE_KEYS[] = {
    {"gpuEq", read_gpu_eq},
    {"perPod", read_resource_cap},
    {"variables", read_variables},
    {0},
};

static int read_share(const struct place *at, const cJSON *value, struct pool_resource *ret)
{
    *ret = (struct pool_resource){.gpu_eq = {-1, 1}};
    if (place_object(at, value, SHARE_KEYS, ret))
        return -1;
    if (ret->gpu_eq.num < 0)
        return place_error(at, "gpuEq is needed");
    if (ret->gpu_eq.num == 0 && !ret->per_pod)
        return place_error(at, "perPod is needed with gpuEq 0: what no quota counts has a cap");
    return 0;
}

static int check_shares(const struct place *at, const cJSON *value, const cJSON **ret)
{
    if (json_is_array(value) && json_count(value) == 0)
        return 0;
    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct pool_resource unused;

        if (read_share(&inner, member, &unused))
            return -1;
    }
    *ret = value;
    return 0;
}

static int read_resources(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;

    if (check_shares(at, value, &d->resources))
        return -1;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);

        if (!name_has_domain(json_key(member)) || name_check_qualified(json_key(member)))
            return place_error(&inner,
                               "want the name of an extended resource such as nvidia.com/gpu");
        if (str_eqc(json_key(member), FRACTION_RESOURCE))
            return place_error(&inner, "is of pools of modes kai-fraction, hami and volcano-vgpu, "
                                       "which need no resources");
    }
    return 0;
}

static int read_profiles(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;

    return check_shares(at, value, &d->profiles);
}

static int read_rename(const struct place *at, const cJSON *value, void *into)
{
    struct draft *d = into;

    if (place_map(at, value, &d->rename))
        return -1;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);

        if (!name_has_domain(json_str(member)) || name_check_qualified(json_str(member)) ||
            str_eqc(json_str(member), FRACTION_RESOURCE))
            return place_error(&inner, "want the name of an extended resource");
    }
    return 0;
}

static int read_gpu_memory(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct draft *)into)->pool.gpu_memory_mib);
}

static int read_per_pod(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct draft *)into)->pool.per_pod);
}

static int read_per_container(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct draft *)into)->pool.per_container);
}

static int read_per_minute(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct draft *)into)->pool.pods_per_minute);
}

static int read_max_lifetime(const struct place *at, const cJSON *value, void *into)
{
    return place_seconds(at, value, &((struct draft *)into)->pool.max_lifetime_s);
}

static const struct place_key CAP_KEYS[] = {
    {"perPodGPU", read_per_pod},
    {"perContainerGPU", read_per_container},
    {"gpuPodsPerMinute", read_per_minute},
    {"maxLifetime", read_max_lifetime},
    {0},
};

static int read_caps(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, CAP_KEYS, into);
}

static int read_node_loss(const struct place *at, const cJSON *value, void *into)
{
    int64_t *ret = &((struct draft *)into)->pool.node_loss_s;

    if (place_seconds(at, value, ret))
        return -1;
    return *ret ? 0 : place_error(at, "want a duration of at least 1s, such as 10m");
}

static const struct place_key RELEASE_KEYS[] = {
    {"onNodeLossAfter", read_node_loss},
    {0},
};

static int read_release(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, RELEASE_KEYS, into);
}

static int read_scheduler_name(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct draft *)into)->pool.scheduler);
}

static int read_scheduler_kind(const struct place *at, const cJSON *value, void *into)
{
    int word;

    if (place_word(at, value, "none|kueue|kai|volcano|hami|native", &word))
        return -1;
    ((struct draft *)into)->pool.scheduler_kind = (enum pool_scheduler)word;
    return 0;
}

static int read_queue_template(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct draft *)into)->pool.queue);
}

static int read_gang(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct draft *)into)->pool.gang);
}

static const struct place_key SCHEDULER_KEYS[] = {
    {"name", read_scheduler_name},
    {"kind", read_scheduler_kind},
    {"gang", read_gang},
    {"queueTemplate", read_queue_template},
    {0},
};

static int read_scheduler(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, SCHEDULER_KEYS, into);
}

static int read_runtime_class(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct draft *)into)->pool.runtime_class);
}

static int read_priority_tiers(const struct place *at, const cJSON *value, void *into)
{
    return place_map(at, value, &((struct draft *)into)->pool.priority_tiers);
}

static int read_default_tier(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct draft *)into)->pool.default_tier);
}

static int read_device_classes(const struct place *at, const cJSON *value, void *into)
{
    return config_read_device_classes(at, value, &((struct draft *)into)->pool);
}

/* Prices stay strings, so that a report prints what the administrator wrote; here they are only
 * checked. */
static int read_rational(const struct place *at, const cJSON *value, struct str *ret)
{
    struct rational r;

    if (place_rational(at, value, &r))
        return -1;
    *ret =
        arena_str(at->arena, json_is_number(value) ? json_text(at->arena, value) : json_str(value));
    return 0;
}

static int read_price(const struct place *at, const cJSON *value, void *into)
{
    return read_rational(at, value, &((struct draft *)into)->pool.price);
}

static int read_borrow_factor(const struct place *at, const cJSON *value, void *into)
{
    return read_rational(at, value, &((struct draft *)into)->pool.borrow_factor);
}

static int read_currency(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct draft *)into)->pool.currency);
}

static int read_per(const struct place *at, const cJSON *value, void *into)
{
    int unused;

    (void)into;
    return place_word(at, value, "GPUHour", &unused);
}

static const struct place_key METERING_KEYS[] = {
    {"price", read_price},
    {"currency", read_currency},
    {"per", read_per},
    {"borrowFactor", read_borrow_factor},
    {0},
};

static int read_metering(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, METERING_KEYS, into);
}

static int read_maintenance(const struct place *at, const cJSON *value, void *into)
{
    return config_read_maintenance(at, value, &((struct draft *)into)->pool.maintenance);
}

static const struct place_key POOL_KEYS[] = {
    {"name", read_name},
    {"kind", read_kind},
    {"trust", read_trust},
    {"nodeSelector", read_node_selector},
    {"tolerations", read_tolerations},
    {"products", read_products},
    {"mode", read_mode},
    {"resources", read_resources},
    {"profiles", read_profiles},
    {"rename", read_rename},
    {"deviceClasses", read_device_classes},
    {"gpuMemoryMiB", read_gpu_memory},
    {"caps", read_caps},
    {"release", read_release},
    {"scheduler", read_scheduler},
    {"runtimeClass", read_runtime_class},
    {"priorityTiers", read_priority_tiers},
    {"defaultTier", read_default_tier},
    {"metering", read_metering},
    {"maintenance", read_maintenance},
    {0},
};

/* ---- putting a pool together ---- */

static struct str profile_resource(struct arena *a, struct str profile)
{
    char *text = arena_cstr(a, profile);

    for (char *p = strchr(text, '+'); p; p = strchr(p, '+'))
        *p = '.';
    return arena_printf(a, "nvidia.com/mig-%s", text);
}

/* share was checked when it was read; NULL: the default of a pool. */
static int add_resource(const struct place *at, struct draft *d, struct pool_resource *list,
                        struct str name, const cJSON *share)
{
    struct pool_resource *r = &list[d->pool.n_resources++];
    struct str renamed = json_str(json_get_str(d->rename, name));

    *r = (struct pool_resource){.gpu_eq = {1, 1}};
    if (share && read_share(at, share, r))
        return -1;
    r->name = arena_str(at->arena, name);
    r->host_name = renamed.n ? renamed : r->name;
    return 0;
}

static int build_resources(const struct place *at, struct draft *d)
{
    size_t n = json_count(d->resources) + json_count(d->profiles);
    struct pool_resource *list = arena_alloc(at->arena, (n + 1) * sizeof *list);

    d->pool.resources = list;
    json_each(member, d->resources)
    {
        if (add_resource(at, d, list, json_key(member), member))
            return -1;
    }
    json_each(member, d->profiles)
    {
        struct str name = profile_resource(at->arena, json_key(member));

        if (config_pool_resource(&d->pool, name) || name_check_qualified(name))
            return place_error(at, "profiles.%s: not a profile such as 1g.10gb, or given twice",
                               member->string);
        if (add_resource(at, d, list, name, member))
            return -1;
    }
    if (n == 0 && d->pool.mode == POOL_EXCLUSIVE &&
        add_resource(at, d, list, STR("nvidia.com/gpu"), NULL))
        return -1;
    if (d->pool.mode == POOL_KAI || vgpu_system(d->pool.mode)) {
        const struct vgpu_system *system = vgpu_system(d->pool.mode);

        list[d->pool.n_resources++] =
            (struct pool_resource){STR(FRACTION_RESOURCE),
                                   str_c(system ? system->cores : FRACTION_RESOURCE),
                                   {1, FRACTION_WHOLE},
                                   0,
                                   {0}};
        return 0;
    }
    if (d->pool.n_resources == 0 && d->pool.mode != POOL_DRA)
        return place_error(at, d->pool.mode == POOL_MIG
                                   ? "profiles or resources are needed for mode mig"
                                   : "resources are needed for a shared mode: gpuEq is 1/replicas");
    json_each(member, d->rename)
    {
        if (!config_pool_resource(&d->pool, json_key(member)))
            return place_error(at, "rename.%s: not a resource of this pool", member->string);
    }
    return 0;
}

/* Why the mode of the pool is not what the name of a resource says of it; NULL if it is. Device
 * plugins call a device that several pods have at once `.shared`; a MIG slice that pods share keeps
 * them apart no more than a whole GPU would, and MPS shares none. */
static const char *name_of_another_mode(const struct config_pool *p, struct str host_name)
{
    bool shared = str_has_suffix(host_name, STR(".shared"));
    bool slice = str_has_prefix(host_name, STR("nvidia.com/mig-"));

    if (shared && p->adversarial)
        return "a shared device, and trust adversarial allows none";
    if (shared && (p->mode == POOL_EXCLUSIVE || p->mode == POOL_MIG))
        return "a shared device: mode time-slicing or mps is needed";
    if (slice && p->mode == POOL_MPS)
        return "a MIG slice, and MPS shares whole GPUs only";
    if (slice && p->mode == POOL_TIME_SLICING && !p->dedicated)
        return "a MIG slice that pods share, which those of one tenant may: kind dedicated is "
               "needed";
    return NULL;
}

static int check_shared_names(const struct place *at, const struct config_pool *p)
{
    for (size_t i = 0; i < p->n_resources; i++) {
        struct str name = p->resources[i].host_name;
        const char *why = name_of_another_mode(p, name);

        if (why)
            return place_error(at, "resources: \"%.*s\" is %s", STR_F(name), why);
    }
    return 0;
}

/* The tier of pods without a class: what the admin names, a usual name, or the last one. */
static int settle_default_tier(const struct place *at, struct config_pool *p)
{
    static const char *const usual[] = {"normal", "default", "low"};
    struct place inner = place_member(at, "defaultTier");

    if (p->default_tier.n)
        return json_get_str(p->priority_tiers, p->default_tier)
                   ? 0
                   : place_error(&inner, "\"%.*s\" is not one of priorityTiers",
                                 STR_F(p->default_tier));
    json_each(tier, p->priority_tiers)
    {
        p->default_tier = json_key(tier);
    }
    for (size_t i = COUNT(usual); i-- > 0;) {
        if (json_get(p->priority_tiers, usual[i]))
            p->default_tier = str_c(usual[i]);
    }
    return 0;
}

#define NAMESPACE_WORD "{namespace}"

/* The queue of this virtual cluster: the template with its name and its host namespace. */
static struct str queue_of(struct arena *a, struct str template, const struct config *config)
{
    const struct {
        struct str word, is;
    } words[] = {{STR("{tenant}"), config->name}, {STR(NAMESPACE_WORD), config->host_namespace}};
    struct str ret = STR("");

    while (template.n) {
        struct str next = str_sub(template, 0, 1);
        size_t taken = 1;

        for (size_t i = 0; i < COUNT(words); i++)
            if (words[i].is.n && str_has_prefix(template, words[i].word)) {
                next = words[i].is;
                taken = words[i].word.n;
            }
        ret = arena_printf(a, "%.*s%.*s", STR_F(ret), STR_F(next));
        template = str_from(template, taken);
    }
    return ret;
}

static int name_queue(const struct place *at, const struct config *config, struct config_pool *p)
{
    if (!p->queue.n)
        return place_error(at, "the name of a queue is needed, such as gpu or t-{tenant}");
    if (!config->host_namespace.n && str_contains(p->queue, STR(NAMESPACE_WORD)))
        return place_error(at, "host.namespace is needed for " NAMESPACE_WORD);
    p->queue = queue_of(at->arena, p->queue, config);
    return 0;
}

/* Does the scheduler, which has queues, count what pods of the pool have? Volcano knows no claims;
 * KAI counts these resources alone (pkg/scheduler/api/resource_info). */
static bool counts_all(const struct config_pool *p)
{
    static const char *const counted[] = {"nvidia.com/gpu", "amd.com/gpu"};

    if (p->mode == POOL_DRA)
        return false;
    for (size_t i = 0; p->scheduler_kind == SCHEDULER_KAI && i < p->n_resources; i++) {
        struct str name = p->resources[i].host_name;

        if (!str_eqc(name, FRACTION_RESOURCE) && !str_eqc(name, counted[0]) &&
            !str_eqc(name, counted[1]) && !str_has_prefix(name, STR("nvidia.com/mig-")))
            return false;
    }
    return true;
}

static int check_gang(const struct place *at, const struct config_pool *p)
{
    if (p->scheduler_kind == SCHEDULER_NATIVE && !p->gang)
        return place_error(at, "kind native is of gangs alone: gang: true is needed");
    if (p->gang && p->scheduler_kind != SCHEDULER_NATIVE && !config_queue_system(p->scheduler_kind))
        return place_error(at, "gang: needs a scheduler kind that knows gangs: kueue, kai, "
                               "volcano or native");
    return 0;
}

static int settle_queue(const struct place *at, const struct config *config, struct config_pool *p)
{
    struct place scheduler = place_member(at, "scheduler");
    struct place inner = place_member(&scheduler, "queueTemplate");
    const struct queue_system *system = config_queue_system(p->scheduler_kind);
    const char *why;

    for (int kind = SCHEDULER_NONE; kind <= SCHEDULER_HAMI; kind++) {
        const struct queue_system *other = config_queue_system((enum pool_scheduler)kind);

        if (other && other != system && other->scheduler && str_eqc(p->scheduler, other->scheduler))
            return place_error(&scheduler, "\"%s\" has queues of its own: kind is needed",
                               other->scheduler);
    }
    if (check_gang(&scheduler, p))
        return -1;
    if (!system)
        return p->queue.n ? place_error(&inner, "needs a scheduler kind with queues") : 0;
    if (system->scheduler && !counts_all(p))
        return place_error(at, "mode, resources: the queues of scheduler \"%s\" do not count them",
                           system->scheduler);
    if (name_queue(&inner, config, p))
        return -1;
    if (!p->scheduler.n && system->scheduler)
        p->scheduler = str_c(system->scheduler);
    if (p->scheduler_kind == SCHEDULER_KUEUE && str_eqc(p->queue, "default"))
        return place_error(&inner, "Kueue puts every pod of a namespace into a queue of this name");
    why = name_check_dns1123_subdomain(p->queue);
    why = why ? why : name_check_label_value(p->queue);
    return why ? place_error(&inner, "queue \"%.*s\": %s", STR_F(p->queue), why) : 0;
}

/* KAI alone hands out parts, and its queue is the bound around them on the host. */
static int check_parts(const struct place *at, const struct draft *d)
{
    const struct config_pool *p = &d->pool;

    if (p->mode != POOL_KAI)
        return 0;
    if (json_count(d->resources) || json_count(d->profiles) || json_count(d->rename))
        return place_error(at, "resources, profiles and rename are not for mode kai-fraction: pods "
                               "request " FRACTION_RESOURCE);
    if (p->per_pod || p->per_container)
        return place_error(at, "caps.perPodGPU and caps.perContainerGPU are not for mode "
                               "kai-fraction: a pod has less than a GPU");
    if (p->scheduler_kind != SCHEDULER_KAI)
        return place_error(at, "scheduler.kind kai is needed for mode kai-fraction");
    return 0;
}

static int check_pool(const struct place *at, const struct draft *d)
{
    const struct config_pool *p = &d->pool;

    if (!p->name.n)
        return place_error(at, "name is needed");
    if (p->adversarial && p->mode != POOL_EXCLUSIVE && p->mode != POOL_MIG)
        return place_error(at, "mode: trust adversarial allows only exclusive|mig");
    if (check_parts(at, d) ||
        config_check_vgpu(
            at, p, json_count(d->resources) || json_count(d->profiles) || json_count(d->rename)))
        return -1;
    if (d->profiles && p->mode != POOL_MIG)
        return place_error(at, "profiles are for mode mig");
    if (p->n_device_classes && p->mode != POOL_DRA)
        return place_error(at, "deviceClasses are for mode dra");
    if (p->mode == POOL_DRA && !p->n_device_classes)
        return place_error(at, "deviceClasses are needed for mode dra");
    if (p->mode == POOL_DRA && p->per_container)
        return place_error(at, "caps.perContainerGPU is not for mode dra: claims are of pods");
    if (p->mode == POOL_DRA && json_count(d->resources))
        return place_error(at, "resources: pods of mode dra have devices by claims only");
    return 0;
}

/* A taint that one of the pool's labels names is the pool's own: no other value of it is tolerated.
 */
static int check_own_taints(const struct place *at, const struct config_pool *p)
{
    size_t i = 0;

    json_each(toleration, p->tolerations)
    {
        struct place list = place_member(at, "tolerations"), inner = place_item(&list, i++);
        struct str key = json_str(json_get(toleration, "key"));
        struct str label = json_str(json_get_str(p->node_selector, key));

        if (label.n && !str_eq(toleration_value(toleration), label))
            return place_error(&inner,
                               "operator Equal with value \"%.*s\" is needed, as in "
                               "nodeSelector",
                               STR_F(label));
    }
    return 0;
}

/* Which label keeps pods off these nodes that are not the pool's. */
static const char *fence_key(const struct config_pool *p)
{
    const cJSON *first = json_first(p->node_selector);

    if (json_get(p->node_selector, LABEL_POOL))
        return LABEL_POOL;
    json_each(toleration, p->tolerations)
    {
        const cJSON *label = json_get_str(p->node_selector, json_str(json_get(toleration, "key")));

        if (label)
            return label->string;
    }
    return json_count(p->node_selector) == 1 ? first->string : NULL;
}

static int check_fence(const struct place *at, struct config_pool *p)
{
    if (!json_count(p->node_selector))
        return place_error(at, "nodeSelector is needed: it is the fence around the pool's nodes");
    if (check_own_taints(at, p))
        return -1;
    p->fence_key = fence_key(p);
    if (!p->fence_key)
        return place_error(at, "nodeSelector: one of its labels must be " LABEL_POOL
                               " or have a toleration of the same key: it keeps other pods off "
                               "the pool's nodes");
    if (!json_str(json_get(p->node_selector, p->fence_key)).n)
        return place_error(at, "nodeSelector.%s: a value is needed", p->fence_key);
    return 0;
}

int config_read_pool(const struct place *at, const cJSON *value, const struct config *config,
                     struct config_pool *ret)
{
    struct draft d = {0};
    const char *key;

    if (place_object(at, value, POOL_KEYS, &d) || check_pool(at, &d) || build_resources(at, &d) ||
        check_shared_names(at, &d.pool) || check_fence(at, &d.pool) ||
        settle_default_tier(at, &d.pool) || settle_queue(at, config, &d.pool))
        return -1;
    if (d.pool.scheduler_kind == SCHEDULER_HAMI && !d.pool.scheduler.n)
        d.pool.scheduler = STR("hami-scheduler");
    key = d.pool.fence_key;
    if (str_eq(config_cpu_node_value(config, str_c(key)),
               json_str(json_get(d.pool.node_selector, key))))
        return place_error(at, "nodeSelector.%s: policy.cpuNodes has the same nodes", key);
    *ret = d.pool;
    return 0;
}

/* ---- the lists ---- */

/* A process that starts again must not give the notice again. */
static int check_file_maintenance(const struct place *at, const struct config_pool *p)
{
    if (p->maintenance.state == MAINTENANCE_DRAIN && !p->maintenance.start_s)
        return place_error(at, "maintenance.start: needed to drain: pods are ended `grace` after "
                               "it");
    return 0;
}

static int load_pools(const struct place *at, const cJSON *list, struct config *config)
{
    struct config_pool *pools = arena_alloc(at->arena, (json_count(list) + 1) * sizeof *pools);
    size_t n = 0;

    config->pools = pools;
    json_each(item, list)
    {
        struct place inner = place_item(at, n);

        if (config_read_pool(&inner, item, config, &pools[n]) ||
            check_file_maintenance(&inner, &pools[n]))
            return -1;
        for (size_t i = 0; i < n; i++) {
            if (str_eq(pools[i].name, pools[n].name))
                return place_error(&inner, "name \"%.*s\" is taken by pools[%zu]",
                                   STR_F(pools[n].name), i);
        }
        config->n_pools = ++n;
    }
    return 0;
}

int config_load_pools(struct arena *a, const cJSON *tree, struct config *config, struct err *err)
{
    struct place pools = {a, STR("config: pools"), err};
    struct place bindings = {a, STR("config: bindings"), err};
    const cJSON *pool_list = json_get(tree, "pools"), *binding_list = json_get(tree, "bindings");

    if (pool_list && !json_is_array(pool_list) && !json_is_null(pool_list))
        return config_wrong_type(err, pools.path, "a list", pool_list);
    if (binding_list && !json_is_array(binding_list) && !json_is_null(binding_list))
        return config_wrong_type(err, bindings.path, "a list", binding_list);
    if (load_pools(&pools, pool_list, config))
        return -1;
    return config_load_bindings(&bindings, binding_list, config);
}
