/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities that objects consume. Must count exactly as upstream's evaluators do
 * (pkg/quota/v1/evaluator/core), and as the scheduler does for pods: any difference makes a quota
 * unfair or ineffective. */
#include "usage.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/object.h>

/* resource.k8s.io AllocationResultsMaxSize */
#define MAX_DEVICES 32

struct quantity usage_one(void)
{
    return quantity_from_i64(1, QUANTITY_DECIMAL_SI);
}

static struct usage_item *find(const struct usage *m, struct str name)
{
    for (size_t i = 0; i < m->n; i++) {
        if (str_eq(m->items[i].name, name))
            return &m->items[i];
    }
    return NULL;
}

static struct usage_item *find_or_add(struct usage *m, struct str name, struct quantity like)
{
    struct usage_item *a = find(m, name);

    if (a)
        return a;
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 16;
        struct usage_item *grown = arena_alloc(m->arena, cap * sizeof(*grown));

        if (m->n)
            memcpy(grown, m->items, m->n * sizeof(*grown));
        m->items = grown;
        m->cap = cap;
    }
    a = &m->items[m->n++];
    *a = (struct usage_item){.name = arena_str(m->arena, name), .q = {0, like.format}};
    return a;
}

void usage_add(struct usage *m, struct str name, struct quantity q)
{
    struct usage_item *a = find_or_add(m, name, q);

    a->q = quantity_add(a->q, q);
}

void usage_max(struct usage *m, struct str name, struct quantity q)
{
    struct usage_item *a = find_or_add(m, name, q);

    if (quantity_cmp(a->q, q) < 0)
        a->q = q;
}

const struct quantity *usage_get(const struct usage *m, struct str name)
{
    const struct usage_item *a = find(m, name);

    return a ? &a->q : NULL;
}

/* --- pods --- */

static void add_map(struct usage *m, const cJSON *map)
{
    struct quantity q;

    json_each(item, map)
    {
        if (quantity_parse(json_str(item), &q))
            usage_add(m, str_c(item->string), q);
    }
}

/* Resources of containers as reported in the pod's status, by name: during a resize more than the
 * request may be in use. Source: k8s.io/component-helpers/resource. */
struct in_use {
    struct given {
        struct str name;
        const cJSON *status;
    } *items;
    size_t n;
    bool infeasible; /* the requested size will not be granted */
};

static int given_order(const void *a, const void *b)
{
    return str_cmp(((const struct given *)a)->name, ((const struct given *)b)->name);
}

static struct in_use in_use_of(struct arena *a, const cJSON *status)
{
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
    struct in_use u = {.n = 0};
    size_t most = json_count(json_get(status, lists[0])) + json_count(json_get(status, lists[1]));

    if (!most)
        return u;
    u.items = arena_alloc(a, most * sizeof(*u.items));
    for (size_t i = 0; i < 2; i++) {
        json_each(c, json_get(status, lists[i]))
        {
            if (json_is_object(json_get(c, "resources")))
                u.items[u.n++] = (struct given){json_str_at(c, "name"), c};
        }
    }
    qsort(u.items, u.n, sizeof(*u.items), given_order);
    json_each(c, json_get(status, "conditions"))
    {
        if (!str_eqc(json_str_at(c, "type"), "PodResizePending"))
            continue;
        u.infeasible = str_eqc(json_str_at(c, "reason"), "Infeasible");
        break;
    }
    return u;
}

static void max_map(struct usage *m, const cJSON *map)
{
    struct quantity q;

    json_each(item, map)
    {
        if (quantity_parse(json_str(item), &q))
            usage_max(m, str_c(item->string), q);
    }
}

static void add_all(struct usage *m, const struct usage *from)
{
    for (size_t i = 0; i < from->n; i++)
        usage_add(m, from->items[i].name, from->items[i].q);
}

static void add_container(struct usage *m, const cJSON *container, const struct in_use *u,
                          const char *which)
{
    const cJSON *requested = json_get(json_get(container, "resources"), which);
    struct given key = {.name = json_str_at(container, "name")}, *has = NULL;
    struct usage most = {.arena = m->arena};

    if (u->n)
        has = bsearch(&key, u->items, u->n, sizeof(key), given_order);
    if (!has) {
        add_map(m, requested);
        return;
    }
    if (!u->infeasible)
        max_map(&most, requested);
    max_map(&most, json_get(json_get(has->status, "resources"), which));
    if (!strcmp(which, "requests"))
        max_map(&most, json_get(has->status, "allocatedResources"));
    add_all(m, &most);
}

static void init_peak(struct usage *peak, const cJSON *spec, const struct in_use *u,
                      const char *which)
{
    struct usage sidecars = {.arena = peak->arena};

    json_each(container, json_get(spec, "initContainers"))
    {
        if (container_is_sidecar(container)) {
            add_container(&sidecars, container, u, which);
            continue;
        }
        struct usage now = {.arena = peak->arena};
        add_all(&now, &sidecars);
        add_map(&now, json_get(json_get(container, "resources"), which));
        for (size_t i = 0; i < now.n; i++)
            usage_max(peak, now.items[i].name, now.items[i].q);
    }
}

/* Adds overhead to every request, but only to limits that are set. */
static void add_overhead(struct usage *sum, const cJSON *overhead, const char *which)
{
    struct quantity q;

    json_each(item, overhead)
    {
        if (quantity_parse(json_str(item), &q) &&
            (!strcmp(which, "requests") || usage_get(sum, str_c(item->string))))
            usage_add(sum, str_c(item->string), q);
    }
}

static void sum_pod(struct usage *m, const cJSON *spec, const struct in_use *u, const char *which)
{
    struct usage peak = {.arena = m->arena}, sum = {.arena = m->arena};

    json_each(container, json_get(spec, "containers")) add_container(&sum, container, u, which);
    json_each(container, json_get(spec, "initContainers"))
    {
        if (container_is_sidecar(container))
            add_container(&sum, container, u, which);
    }
    init_peak(&peak, spec, u, which);
    for (size_t i = 0; i < peak.n; i++)
        usage_max(&sum, peak.items[i].name, peak.items[i].q);
    /* Pod-level resources replace the sum of the containers' where given. */
    json_each(item, json_get(json_get(spec, "resources"), which))
    {
        struct quantity q;
        struct usage_item *a;

        if (quantity_parse(json_str(item), &q)) {
            a = find_or_add(&sum, str_c(item->string), q);
            a->q = q;
        }
    }
    add_overhead(&sum, json_get(spec, "overhead"), which);
    add_all(m, &sum);
}

void usage_of_pod(struct usage *m, const cJSON *spec, const char *which)
{
    sum_pod(m, spec, &(const struct in_use){.n = 0}, which);
}

static struct str join(struct arena *a, const char *prefix, struct str name)
{
    return arena_concat(a, 2, (struct str[]){str_c(prefix), name});
}

static bool is_plain_compute(struct str name)
{
    return str_eqc(name, "cpu") || str_eqc(name, "memory") || str_eqc(name, "ephemeral-storage");
}

static bool is_extended(struct str name)
{
    return str_find(name, '/') != name.n && !str_contains(name, STR("kubernetes.io/"));
}

static void of_pod(struct usage *m, const cJSON *pod)
{
    struct usage requests = {.arena = m->arena}, limits = {.arena = m->arena};
    const cJSON *spec = json_get(pod, "spec");
    struct in_use u;

    usage_add(m, STR("count/pods"), usage_one());
    if (pod_is_finished(pod))
        return;
    usage_add(m, STR("pods"), usage_one());
    u = in_use_of(m->arena, json_get(pod, "status"));
    sum_pod(&requests, spec, &u, "requests");
    sum_pod(&limits, spec, &u, "limits");
    for (size_t i = 0; i < requests.n; i++) {
        struct str name = requests.items[i].name;

        usage_add(m, join(m->arena, "requests.", name), requests.items[i].q);
        if (is_plain_compute(name) || str_has_prefix(name, STR("hugepages-")))
            usage_add(m, name, requests.items[i].q);
    }
    /* limits.<extended resource> is accepted in a quota and never counts, as upstream. */
    for (size_t i = 0; i < limits.n; i++) {
        if (!is_extended(limits.items[i].name))
            usage_add(m, join(m->arena, "limits.", limits.items[i].name), limits.items[i].q);
    }
}

/* --- services, volume claims, other objects --- */

/* When allocateLoadBalancerNodePorts is false, only explicitly numbered ports count. */
static size_t node_ports(const cJSON *service, bool numbered_only)
{
    const cJSON *ports = json_path(service, "spec.ports");
    size_t n = 0;

    if (!numbered_only)
        return json_count(ports);
    json_each(port, ports)
    {
        n += json_i64_at(port, "nodePort", 0) != 0;
    }
    return n;
}

/* In whole bytes; allocated storage counts while it exceeds the request. */
static bool claimed_storage(const cJSON *claim, struct quantity *ret)
{
    struct quantity allocated;

    if (!quantity_parse(json_str_at(claim, "spec.resources.requests.storage"), ret))
        return false;
    if (quantity_parse(json_str_at(claim, "status.allocatedResources.storage"), &allocated) &&
        quantity_cmp(allocated, *ret) > 0)
        *ret = allocated;
    if (!quantity_is_integer(*ret))
        *ret = quantity_from_i64(quantity_units(*ret), ret->format);
    return true;
}

static void of_claim(struct usage *m, const cJSON *claim)
{
    const cJSON *annotated = json_get(json_path(claim, "metadata.annotations"),
                                      "volume.beta.kubernetes.io/storage-class");
    struct str class =
        annotated ? json_str(annotated) : json_str_at(claim, "spec.storageClassName");
    struct str prefix;
    struct quantity storage;

    usage_add(m, STR("persistentvolumeclaims"), usage_one());
    bool sized = claimed_storage(claim, &storage);
    if (sized)
        usage_add(m, STR("requests.storage"), storage);
    if (!class.n)
        return;
    prefix = arena_printf(m->arena, "%.*s.storageclass.storage.k8s.io/", STR_F(class));
    usage_add(m, join(m->arena, prefix.p, STR("persistentvolumeclaims")), usage_one());
    if (sized)
        usage_add(m, join(m->arena, prefix.p, STR("requests.storage")), storage);
}

/* --- resource claims --- */

static int64_t devices(const cJSON *request)
{
    struct str mode = json_str_at(request, "allocationMode");

    if (str_eqc(mode, "All")) /* the most a claim can get */
        return MAX_DEVICES;
    return str_eqc(mode, "ExactCount") ? json_i64_at(request, "count", 0) : 0;
}

static void add_devices(struct usage *m, const cJSON *request, bool worst)
{
    struct str name = arena_printf(m->arena, "%.*s.deviceclass.resource.k8s.io/devices",
                                   STR_F(json_str_at(request, "deviceClassName")));
    struct quantity n = quantity_from_i64(devices(request), QUANTITY_DECIMAL_SI);

    if (worst)
        usage_max(m, name, n);
    else
        usage_add(m, name, n);
}

/* Of alternatives, each class counts with the most it could allocate. */
static void of_device_claim(struct usage *m, const cJSON *claim)
{
    json_each(request, json_path(claim, "spec.devices.requests"))
    {
        struct usage worst = {.arena = m->arena};

        json_each(alternative, json_get(request, "firstAvailable"))
        {
            add_devices(&worst, alternative, true);
        }
        for (size_t i = 0; i < worst.n; i++)
            usage_add(m, worst.items[i].name, worst.items[i].q);
        if (!worst.n && json_get(request, "exactly"))
            add_devices(m, json_get(request, "exactly"), false);
    }
}

void usage_of_object(struct usage *m, struct str group, struct str plural, const cJSON *object)
{
    static const char *const counted[] = {"configmaps", "secrets", "replicationcontrollers",
                                          "resourcequotas"};

    if (group.n) {
        usage_add(m, arena_printf(m->arena, "count/%.*s.%.*s", STR_F(plural), STR_F(group)),
                  usage_one());
        if (str_eqc(group, "resource.k8s.io") && str_eqc(plural, "resourceclaims"))
            of_device_claim(m, object);
        return;
    }
    if (str_eqc(plural, "pods")) {
        of_pod(m, object);
        return;
    }
    usage_add(m, join(m->arena, "count/", plural), usage_one());
    if (str_eqc(plural, "services")) {
        struct str type = json_str_at(object, "spec.type");
        bool balancer = str_eqc(type, "LoadBalancer");
        const cJSON *allocate = json_path(object, "spec.allocateLoadBalancerNodePorts");
        bool suppressed = balancer && json_is_bool(allocate) && !json_true(allocate);
        size_t ports = node_ports(object, suppressed);

        usage_add(m, STR("services"), usage_one());
        if (balancer)
            usage_add(m, STR("services.loadbalancers"), usage_one());
        if (str_eqc(type, "NodePort") || balancer)
            usage_add(m, STR("services.nodeports"),
                      quantity_from_i64((int64_t)ports, QUANTITY_DECIMAL_SI));
    }
    if (str_eqc(plural, "persistentvolumeclaims"))
        of_claim(m, object);
    for (size_t i = 0; i < COUNT(counted); i++) {
        if (str_eqc(plural, counted[i]))
            usage_add(m, plural, usage_one());
    }
}
