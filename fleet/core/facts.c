/* SPDX-License-Identifier: Apache-2.0 */
/* What the host says about nodes and pods. Only facts of the host's own components count:
 * namespace, node, devices, conditions and times of the kubelet. Labels and annotations that a
 * tenant's process wrote name things in a report; they never decide how much is billed, or to which
 * tenant. */
#include "facts.h"

#include <string.h>

#include <sublet/hash.h>
#include <sublet/clock.h>
#include <sublet/fraction.h>
#include <sublet/object.h>
#include <sublet/quantity.h>
#include <sublet/vgpu.h>

#define LABEL_PRODUCT    "nvidia.com/gpu.product"
#define LABEL_CLUSTER    "sublet.dev/cluster"
#define ANNOTATION_NAME  "sublet.dev/name"
#define ANNOTATION_NS    "sublet.dev/namespace"
#define ANNOTATION_OWNER "sublet.dev/owner"
#define ANNOTATION_ENDED "sublet.dev/ended" /* of one that is deleted */
#define ENDED_RECLAIMED  "ReclaimedByFleet"
#define NAME_LONGEST     253
/* Where KAI has the pods that take a whole GPU for those that share it. */
#define KAI_RESERVATIONS "kai-resource-reservation"

static int64_t time_at(const cJSON *object, const char *path)
{
    int64_t us;

    return time_parse(json_str_at(object, path), &us) ? us : 0;
}

static int64_t units_in(const cJSON *value)
{
    struct quantity q;
    int64_t units;

    if (json_i64(value, &units))
        return units > 0 ? units : 0;
    if (!quantity_parse(json_str(value), &q) || q.nano < 0)
        return 0;
    return quantity_units(q);
}

static int64_t units_of(const cJSON *map, struct str resource)
{
    return units_in(json_get_str(map, resource));
}

/* --- nodes --- */

static bool selects(const struct config_pool *pool, const cJSON *labels)
{
    json_each(member, pool->node_selector)
    {
        const cJSON *label = json_get_str(labels, json_key(member));

        if (!json_is_string(label) || !str_eq(json_str(label), json_str(member)))
            return false;
    }
    return true;
}

bool fact_node_is_down(const cJSON *node)
{
    return !str_eqc(json_str(json_get(condition_of(node, "Ready"), "status")), "True");
}

/* Parts are of the whole GPUs that the node shows. */
static int64_t units_on_node(const cJSON *map, struct str resource)
{
    return str_eqc(resource, FRACTION_RESOURCE) ? fraction_of_node(map) : units_of(map, resource);
}

static struct rational sum_of(const struct config_pool *pool, const cJSON *map)
{
    struct rational sum = RATIONAL_ZERO, share;

    for (size_t i = 0; i < pool->n_resources; i++) {
        const struct pool_resource *r = &pool->resources[i];
        struct rational units = {units_on_node(map, r->host_name), 1};

        if (rational_mul(units, r->gpu_eq, &share))
            (void)rational_add(sum, share, &sum); /* what does not fit, no machine has */
    }
    return sum;
}

void fact_node(const cJSON *node, const struct config_pool *pools, size_t n_pools,
               struct fact_node *ret)
{
    const cJSON *labels = json_path(node, "metadata.labels"), *ready = condition_of(node, "Ready");
    struct rational usable;

    *ret = (struct fact_node){.name = json_str_at(node, "metadata.name"),
                              .total = RATIONAL_ZERO,
                              .unhealthy = RATIONAL_ZERO,
                              .created_us = time_at(node, "metadata.creationTimestamp"),
                              .ready_us = time_at(ready, "lastTransitionTime"),
                              .down = fact_node_is_down(node)};
    for (size_t i = 0; i < n_pools && !ret->pool; i++)
        if (selects(&pools[i], labels))
            ret->pool = &pools[i];
    if (!ret->pool)
        return;
    ret->product = config_product_base(json_str(json_get(labels, LABEL_PRODUCT)));
    ret->total = sum_of(ret->pool, json_path(node, "status.capacity"));
    usable = sum_of(ret->pool, json_path(node, "status.allocatable"));
    if (rational_cmp(usable, ret->total) < 0)
        (void)rational_sub(ret->total, usable, &ret->unhealthy);
}

/* --- pods --- */

/* A name as another process wrote it: bounded, and on one line. */
static struct str plain(struct arena *a, struct str name)
{
    struct str kept = arena_str(a, str_clip(name, NAME_LONGEST));
    char *p = arena_cstr(a, kept);

    for (size_t i = 0; i < kept.n; i++)
        if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
            p[i] = '?';
    return (struct str){p, kept.n};
}

static struct str note(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.annotations"), key));
}

/* The controller of a pod that is no tenant's. */
static struct str host_owner(struct arena *a, const cJSON *pod)
{
    json_each(owner, json_path(pod, "metadata.ownerReferences"))
    {
        if (json_true(json_get(owner, "controller")))
            return arena_printf(a, "%.*s/%.*s", STR_F(json_str(json_get(owner, "kind"))),
                                STR_F(json_str(json_get(owner, "name"))));
    }
    return STR("");
}

static int64_t begin_of(const cJSON *pod)
{
    const cJSON *scheduled = condition_of(pod, "PodScheduled");
    int64_t at = str_eqc(json_str(json_get(scheduled, "status")), "True")
                     ? time_at(scheduled, "lastTransitionTime")
                     : 0;

    at = at ? at : time_at(pod, "status.startTime");
    return at ? at : time_at(pod, "metadata.creationTimestamp");
}

static int64_t last_finished(const cJSON *statuses)
{
    int64_t last = 0;

    json_each(status, statuses)
    {
        int64_t at = time_at(status, "state.terminated.finishedAt");

        last = at > last ? at : last;
    }
    return last;
}

/* Only its process writes this of a virtual cluster's pod; any other value of it says nothing. */
static bool is_reclaimed(const cJSON *pod)
{
    return object_is_terminating(pod) &&
           json_get(json_path(pod, "metadata.labels"), LABEL_CLUSTER) &&
           str_eqc(note(pod, ANNOTATION_ENDED), ENDED_RECLAIMED);
}

/* "PreemptionByScheduler", "EvictionByEvictionAPI", ...: why the host ended it, or is about to. */
static struct str disruption_of(const cJSON *pod)
{
    const cJSON *target = condition_of(pod, "DisruptionTarget");

    if (str_eqc(json_str(json_get(target, "status")), "True"))
        return json_str(json_get(target, "reason"));
    return is_reclaimed(pod) ? STR(ENDED_RECLAIMED) : STR("");
}

static void read_end(const cJSON *pod, struct fact_pod *ret)
{
    struct str phase = json_str_at(pod, "status.phase"), reason = json_str_at(pod, "status.reason");
    int64_t app = last_finished(json_path(pod, "status.containerStatuses"));
    int64_t init = last_finished(json_path(pod, "status.initContainerStatuses"));

    ret->ended = str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed");
    ret->end_us = app > init ? app : init;
    ret->disrupted = disruption_of(pod);
    if (ret->disrupted.n && !str_eqc(phase, "Succeeded"))
        ret->reason = ret->disrupted;
    else
        ret->reason = reason.n ? reason : phase;
}

void fact_pod(struct arena *a, const cJSON *pod, struct fact_pod *ret)
{
    struct str ns = json_str_at(pod, "metadata.namespace");
    struct str cluster = json_str(json_get(json_path(pod, "metadata.labels"), LABEL_CLUSTER));
    bool is_tenants = cluster.n > 0;

    *ret = (struct fact_pod){0};
    ret->hold = (struct fleet_hold){
        .pod_uid = json_str_at(pod, "metadata.uid"),
        .tenant = ns,
        .cluster = cluster,
        .ns = is_tenants ? plain(a, note(pod, ANNOTATION_NS)) : STR(""),
        .name =
            is_tenants ? plain(a, note(pod, ANNOTATION_NAME)) : json_str_at(pod, "metadata.name"),
        .owner = is_tenants ? plain(a, note(pod, ANNOTATION_OWNER)) : plain(a, host_owner(a, pod)),
        .node = json_str_at(pod, "spec.nodeName"),
        .begin_us = begin_of(pod),
        .end_us = FLEET_OPEN,
    };
    ret->on_node = ret->hold.node.n > 0 && ret->hold.pod_uid.n > 0;
    read_end(pod, ret);
    ret->reason = plain(a, ret->reason);
    ret->disrupted = plain(a, ret->disrupted);
}

/* A device that a container only limits is requested as well. */
static int64_t units_of_container(const cJSON *container, struct str resource)
{
    int64_t limit = units_of(json_path(container, "resources.limits"), resource);
    int64_t request = units_of(json_path(container, "resources.requests"), resource);

    if (vgpu_by_cores(resource))
        return vgpu_of_container(vgpu_by_cores(resource), container);
    return limit > request ? limit : request;
}

/* max(sum of containers and sidecars, the greatest init container beside the sidecars before
 * it). */
static bool units_of_containers(const cJSON *pod, struct str resource, int64_t *ret)
{
    int64_t sidecars = 0, peak = 0, sum;
    bool fits = true;

    json_each(c, json_path(pod, "spec.initContainers"))
    {
        fits &= !__builtin_add_overflow(sidecars, units_of_container(c, resource), &sum);
        peak = sum > peak ? sum : peak;
        sidecars = container_is_sidecar(c) ? sum : sidecars;
    }
    sum = sidecars;
    json_each(c, json_path(pod, "spec.containers")) fits &=
        !__builtin_add_overflow(sum, units_of_container(c, resource), &sum);
    *ret = sum > peak ? sum : peak;
    return fits;
}

/* Of a pool of parts: parts by KAI's annotations, and whole GPUs, but for those that KAI itself
 * takes for the pods that share them. A namespace is what no tenant's process chooses. */
static bool units_of_pod(const cJSON *pod, struct str resource, int64_t *ret)
{
    int64_t whole;

    if (!str_eqc(resource, FRACTION_RESOURCE))
        return units_of_containers(pod, resource, ret);
    *ret = 0;
    if (str_eqc(json_str_at(pod, "metadata.namespace"), KAI_RESERVATIONS))
        return true;
    return units_of_containers(pod, STR("nvidia.com/gpu"), &whole) &&
           !__builtin_mul_overflow(whole, FRACTION_WHOLE, &whole) &&
           !__builtin_add_overflow(whole, fraction_of_pod(pod), ret);
}

int64_t fact_pod_parts(const cJSON *pod)
{
    int64_t parts;

    return units_of_pod(pod, STR(FRACTION_RESOURCE), &parts) ? parts : FACT_NO_NUMBER;
}

bool fact_pod_devices(struct arena *a, const cJSON *pod, const struct config_pool *pool,
                      struct rational *ret_gpu_eq, struct str *ret_resources)
{
    struct rational sum = RATIONAL_ZERO, share;
    struct buf names = BUF_INIT(0);
    int64_t units;
    bool fits = true;

    for (size_t i = 0; i < pool->n_resources && fits; i++) {
        const struct pool_resource *r = &pool->resources[i];

        fits = units_of_pod(pod, r->host_name, &units) &&
               rational_mul((struct rational){units, 1}, r->gpu_eq, &share) &&
               rational_add(sum, share, &sum);
        if (fits && units)
            buf_printf(&names, "%s%.*s=%lld", names.n ? "," : "", STR_F(r->host_name),
                       (long long)units);
    }
    *ret_resources = arena_str(a, buf_str(&names));
    *ret_gpu_eq = sum;
    buf_fini(&names);
    return fits && sum.num > 0;
}

/* --- quantities without a pool --- */

static bool is_extended(struct str resource)
{
    return str_find(resource, '/') < resource.n;
}

struct units_list {
    struct fact_units *items;
    size_t n, cap;
};

static void add_units(struct arena *a, struct units_list *list, struct str resource, int64_t units)
{
    if (!units)
        return;
    ARENA_GROW(a, list->items, list->n, list->cap);
    list->items[list->n++] = (struct fact_units){resource, units};
}

/* As units_of_pod() counts, of all resources in one pass: a pod of the host may name thousands. */
struct counted {
    struct map_entry by_name;
    struct str name;
    int64_t here, sidecars, peak, sum; /* here: of the container that is read */
    bool overflow;
};
struct counting {
    struct arena *a;
    struct map by_name;
    struct units_list list;
};

static struct counted *counted_of(struct counting *c, struct str name)
{
    struct map_entry *e = map_get(&c->by_name, name);
    struct counted *n;

    if (e)
        return CONTAINER(e, struct counted, by_name);
    n = arena_alloc(c->a, sizeof(*n));
    *n = (struct counted){.name = name};
    map_put(&c->by_name, &n->by_name, n->name);
    return n;
}

static void read_quantities(struct counting *c, const cJSON *map)
{
    json_each(one, map)
    {
        int64_t units = is_extended(json_key(one)) ? units_in(one) : 0;
        struct counted *n = units ? counted_of(c, json_key(one)) : NULL;

        if (n && units > n->here)
            n->here = units;
    }
}

/* What both maps have is added once. */
static void add_quantities(struct counting *c, const cJSON *map, bool init, bool sidecar)
{
    json_each(one, map)
    {
        struct map_entry *e = map_get(&c->by_name, json_key(one));
        struct counted *n = e ? CONTAINER(e, struct counted, by_name) : NULL;
        int64_t sum;

        if (!n || !n->here)
            continue;
        n->overflow |= __builtin_add_overflow(init ? n->sidecars : n->sum, n->here, &sum);
        n->here = 0;
        if (init)
            n->peak = sum > n->peak ? sum : n->peak;
        if (sidecar)
            n->sidecars = sum;
        if (sidecar || !init)
            n->sum = sum;
    }
}

/* Of GPUs that HAMi or Volcano shares: what each number of GPUs is times its compute. */
static const cJSON *shares_of(struct arena *a, const cJSON *container)
{
    static const enum pool_mode modes[] = {POOL_HAMI, POOL_VOLCANO};
    cJSON *ret = NULL;

    for (size_t i = 0; i < COUNT(modes); i++) {
        const struct vgpu_system *system = vgpu_system(modes[i]);
        int64_t share = vgpu_of_container(system, container);

        if (!share)
            continue;
        ret = ret ? ret : json_new_object(a);
        json_set_i64(a, ret, system->cores, share);
    }
    return ret;
}

static void count_container(struct counting *c, const cJSON *container, bool init)
{
    const cJSON *const maps[] = {json_path(container, "resources.limits"),
                                 json_path(container, "resources.requests"),
                                 shares_of(c->a, container)};
    bool sidecar = init && container_is_sidecar(container);

    for (size_t i = 0; i < COUNT(maps); i++)
        read_quantities(c, maps[i]);
    for (size_t i = 0; i < COUNT(maps); i++)
        add_quantities(c, maps[i], init, sidecar);
}

static void list_counted(void *ctx, struct map_entry *e)
{
    struct counting *c = ctx;
    const struct counted *n = CONTAINER(e, struct counted, by_name);

    add_units(c->a, &c->list, n->name,
              n->overflow        ? FACT_NO_NUMBER
              : n->sum > n->peak ? n->sum
                                 : n->peak);
}

static size_t pod_units(struct arena *a, const cJSON *pod, bool running, struct fact_units **ret)
{
    struct counting c = {.a = a};

    json_each(one, json_path(pod, "spec.initContainers"))
    {
        if (!running || container_is_sidecar(one))
            count_container(&c, one, true);
    }
    json_each(one, json_path(pod, "spec.containers")) count_container(&c, one, false);
    map_each(&c.by_name, list_counted, &c);
    map_clear(&c.by_name);
    *ret = c.list.items;
    return c.list.n;
}

size_t fact_pod_units(struct arena *a, const cJSON *pod, struct fact_units **ret)
{
    return pod_units(a, pod, false, ret);
}

size_t fact_pod_running_units(struct arena *a, const cJSON *pod, struct fact_units **ret)
{
    return pod_units(a, pod, true, ret);
}

size_t fact_node_units(struct arena *a, const cJSON *map, struct fact_units **ret)
{
    struct units_list list = {0};

    json_each(one, map)
    {
        if (is_extended(json_key(one)))
            add_units(a, &list, json_key(one), units_in(one));
    }
    *ret = list.items;
    return list.n;
}

bool fact_gpus(const struct fact_units *units, size_t n, const struct config_pool *pool,
               struct rational *ret)
{
    struct rational sum = RATIONAL_ZERO, share;
    bool fits = true;

    for (size_t i = 0; i < pool->n_resources; i++)
        for (size_t k = 0; k < n; k++) {
            const struct rational count = {units[k].units, 1};

            if (str_eq(units[k].resource, pool->resources[i].host_name))
                fits &= units[k].units != FACT_NO_NUMBER &&
                        rational_mul(count, pool->resources[i].gpu_eq, &share) &&
                        rational_add(sum, share, &sum);
        }
    *ret = sum;
    return fits && sum.num > 0;
}

/* --- nodeSelectors --- */

struct str_list fact_selector(struct arena *a, const cJSON *node_selector)
{
    struct str *members = arena_alloc(a, (json_count(node_selector) + 1) * sizeof(*members));
    size_t n = 0;

    json_each(one, node_selector)
    {
        struct str key = json_text(a, json_new_string(a, json_key(one)));

        members[n++] = arena_printf(a, "%.*s:%.*s", STR_F(key), STR_F(json_text(a, one)));
    }
    return (struct str_list){members, n};
}

/* Has an object of strings this member? Both are compact JSON, where a quotation mark within a
 * string follows a backslash, and one that begins a key a '{' or a ','. */
static bool has_member(struct str object, struct str member)
{
    for (const char *from = object.p, *end = object.p + object.n, *at;
         (at = memmem(from, (size_t)(end - from), member.p, member.n)); from = at + 1)
        if (at > object.p && (at[-1] == '{' || at[-1] == ','))
            return true;
    return false;
}

bool fact_selected(struct str_list selector, struct str labels)
{
    bool all = labels.n > 0;

    for (size_t i = 0; i < selector.n && all; i++)
        all = has_member(labels, selector.items[i]);
    return all;
}

/* --- what reflectors keep --- */

static void keep(cJSON *object, const char *const *keys, size_t n)
{
    for (cJSON *member = json_first(object), *next; member; member = next) {
        bool kept = false;

        next = member->next;
        for (size_t i = 0; i < n && !kept; i++)
            kept = str_eqc(json_key(member), keys[i]);
        if (!kept)
            json_detach(object, member);
    }
}
#define KEEP(object, ...)                                                                          \
    keep((object), (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

static void keep_metadata(cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");

    KEEP(metadata, "name", "namespace", "uid", "resourceVersion", "creationTimestamp",
         "deletionTimestamp", "labels", "annotations", "ownerReferences");
    KEEP(json_get(metadata, "annotations"), ANNOTATION_NAME, ANNOTATION_NS, ANNOTATION_OWNER,
         ANNOTATION_ENDED, FRACTION_NOTE, FRACTION_NOTE_MEMORY, FRACTION_NOTE_DEVICES);
}

void fact_reduce_node(struct arena *a, cJSON *node)
{
    vgpu_note_node(a, node);
    keep_metadata(node);
    KEEP(node, "metadata", "spec", "status");
    KEEP(json_get(node, "spec"), "taints", "unschedulable");
    KEEP(json_get(node, "status"), "capacity", "allocatable", "conditions");
}

static bool has_devices(const cJSON *containers)
{
    json_each(c, containers)
    {
        json_each(resource, json_path(c, "resources.limits"))
        {
            if (is_extended(json_key(resource)) && units_in(resource) > 0)
                return true;
        }
    }
    return false;
}

static void keep_containers(cJSON *containers)
{
    json_each(c, containers) KEEP(c, "resources", "restartPolicy");
}

/* --- requests of pods without devices --- */

#define ASKED_CPU    "cpuMilli" /* in place of its containers */
#define ASKED_MEMORY "memory"

static int64_t requested(const cJSON *containers, const char *resource,
                         int64_t (*in)(struct quantity q))
{
    struct quantity q;
    int64_t sum = 0;

    json_each(c, containers)
    {
        const cJSON *value = json_get(json_path(c, "resources.requests"), resource);

        if (quantity_parse(json_str(value), &q) && q.nano > 0)
            sum = i64_add_most(sum, in(q));
    }
    return sum;
}

/* It was put there by its own: a DaemonSet's runs on each node, a static one is its kubelet's. */
static bool is_of_node(const cJSON *metadata)
{
    json_each(owner, json_get(metadata, "ownerReferences"))
    {
        struct str kind = json_str_at(owner, "kind");

        if (str_eqc(kind, "DaemonSet") || str_eqc(kind, "Node"))
            return true;
    }
    return false;
}

/* The spec as fact_asked() reads it; NULL: no node has to run it now. One with claims has devices
 * that its spec does not name. */
static cJSON *asked_of(struct arena *a, const cJSON *pod)
{
    const cJSON *spec = json_get(pod, "spec"), *containers = json_get(spec, "containers");
    struct str node = json_str_at(spec, "nodeName");
    cJSON *asked;

    if (!node.n || pod_is_finished(pod) || is_of_node(json_get(pod, "metadata")) ||
        json_count(json_get(spec, "resourceClaims")))
        return NULL;
    asked = json_new_object(a);
    json_set_str(a, asked, "nodeName", node);
    json_set_i64(a, asked, ASKED_CPU, requested(containers, "cpu", quantity_milli));
    json_set_i64(a, asked, ASKED_MEMORY, requested(containers, "memory", quantity_units));
    return asked;
}

bool fact_asked(const cJSON *pod, struct fact_asked *ret)
{
    const cJSON *spec = json_get(pod, "spec");

    *ret = (struct fact_asked){.node = json_str_at(spec, "nodeName")};
    return ret->node.n && json_i64(json_get(spec, ASKED_CPU), &ret->cpu_milli) &&
           json_i64(json_get(spec, ASKED_MEMORY), &ret->memory);
}

void fact_reduce_pod(struct arena *a, cJSON *pod)
{
    cJSON *spec = json_get(pod, "spec"), *status = json_get(pod, "status"), *metadata;

    bool claims = json_count(json_get(spec, "resourceClaims")) > 0;

    keep_metadata(pod);
    metadata = json_get(pod, "metadata");
    KEEP(json_get(metadata, "labels"), LABEL_CLUSTER);
    if (!has_devices(json_get(spec, "containers")) &&
        !has_devices(json_get(spec, "initContainers")) && !fraction_of_pod(pod)) {
        cJSON *asked = asked_of(a, pod);

        KEEP(pod, "metadata");
        if (!claims)
            KEEP(metadata, "name", "namespace", "uid", "resourceVersion");
        if (asked)
            json_set(a, pod, "spec", asked);
        return;
    }
    KEEP(pod, "metadata", "spec", "status");
    KEEP(spec, "nodeName", "nodeSelector", "containers", "initContainers");
    keep_containers(json_get(spec, "containers"));
    keep_containers(json_get(spec, "initContainers"));
    KEEP(status, "phase", "reason", "startTime", "conditions", "containerStatuses",
         "initContainerStatuses");
}

void fact_reduce_claim(struct arena *a, cJSON *claim)
{
    cJSON *devices = json_path(claim, "spec.devices"), *status = json_get(claim, "status");

    (void)a;
    keep_metadata(claim);
    KEEP(claim, "metadata", "spec", "status");
    KEEP(json_path(claim, "metadata.labels"), LABEL_CLUSTER);
    KEEP(devices, "requests");
    KEEP(status, "allocation", "reservedFor");
    json_remove(json_path(status, "allocation.devices"), "config");
}
