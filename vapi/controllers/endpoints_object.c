/* SPDX-License-Identifier: Apache-2.0 */
/* The Endpoints object of a service: addresses by their ports, ready or not. Must never write an
 * unchanged object: every node watches these. */
#include "endpoints.h"

#include <stdlib.h>

#include "slices.h"

#include <sublet/json_build.h>

#define MANAGED_BY    "endpoints.kubernetes.io/managed-by"
#define OVER_CAPACITY "endpoints.kubernetes.io/over-capacity"
#define CAPACITY      1000

struct subset {
    cJSON *ports, *ready, *unready;
};

struct subsets {
    struct service_run *run;
    struct subset *list;
    size_t n;
};

/* --- addresses --- */

static const char *family_of(const struct service_run *s, const cJSON *pod)
{
    struct str family = json_str(json_at(json_path(s->service, "spec.ipFamilies"), 0));
    const char *type = slices_address_type(json_str_at(s->service, "spec.clusterIP"));

    if (family.n)
        return str_eqc(family, "IPv6") ? "IPv6" : "IPv4";
    if (!type)
        type = slices_address_type(json_str_at(pod, "status.podIP"));
    return type ? type : "IPv4";
}

static struct str address_of(const struct service_run *s, const cJSON *pod)
{
    const char *wanted = family_of(s, pod);

    json_each(item, json_path(pod, "status.podIPs"))
    {
        struct str ip = json_str_at(item, "ip");
        const char *type = slices_address_type(ip);

        if (type && str_eqc(str_c(type), wanted))
            return ip;
    }
    return STR_NULL;
}

static struct subset *subset_get(struct subsets *x, cJSON *ports)
{
    for (size_t i = 0; i < x->n; i++) {
        if (json_equal(x->list[i].ports, ports))
            return &x->list[i];
    }
    x->list[x->n] =
        (struct subset){ports, json_new_array(x->run->arena), json_new_array(x->run->arena)};
    return &x->list[x->n++];
}

static void add_pod(struct subsets *x, const cJSON *pod)
{
    struct service_run *s = x->run;
    struct str ip = address_of(s, pod);
    cJSON *ports = endpoints_ports_of(s, pod, false);
    bool without_ports = s->headless && !json_count(json_path(s->service, "spec.ports"));
    struct str hostname;

    if (!ip.n || object_is_terminating(pod) || (!json_count(ports) && !without_ports))
        return;
    struct subset *to = subset_get(x, ports);
    hostname = endpoints_service_names_host(s, pod) ? json_str_at(pod, "spec.hostname") : STR("");
    json_append(s->publish_unready || pod_is_ready(pod) ? to->ready : to->unready,
                json_object(s->arena, JSON("ip", ip), JSON_NONEMPTY("hostname", hostname),
                            JSON_NONEMPTY("nodeName", json_str_at(pod, "spec.nodeName")),
                            JSON("targetRef", endpoints_pod_reference(s->arena, pod))));
}

/* --- order and limit --- */

static int by_address(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;
    int order = str_cmp(json_str_at(a, "ip"), json_str_at(b, "ip"));

    return order ? order
                 : str_cmp(json_str_at(a, "targetRef.uid"), json_str_at(b, "targetRef.uid"));
}

/* The first `most` items of a sorted list. */
static cJSON *cut(struct arena *a, const cJSON *list, size_t *most)
{
    size_t n;
    cJSON **items = controller_items(a, list, &n);
    cJSON *out = json_new_array(a);

    qsort(items, n, sizeof(*items), by_address);
    for (size_t i = 0; i < n && *most; i++, (*most)--)
        json_append(out, json_copy(a, items[i]));
    return out;
}

static int by_ports(const void *pa, const void *pb)
{
    const struct subset *a = pa, *b = pb;
    int64_t pa1 = json_i64_at(json_at(a->ports, 0), "port", 0);
    int64_t pb1 = json_i64_at(json_at(b->ports, 0), "port", 0);

    if (pa1 != pb1)
        return pa1 < pb1 ? -1 : 1;
    return str_cmp(json_str_at(json_at(a->ports, 0), "name"),
                   json_str_at(json_at(b->ports, 0), "name"));
}

/* Ready addresses first, in the order of their subsets, up to the limit of one object. */
static cJSON *as_json(struct subsets *x, bool *ret_truncated)
{
    struct arena *a = x->run->arena;
    cJSON *out = json_new_array(a);
    size_t room = CAPACITY, all = 0;

    qsort(x->list, x->n, sizeof(*x->list), by_ports);
    for (size_t i = 0; i < x->n; i++) {
        all += json_count(x->list[i].ready) + json_count(x->list[i].unready);
        x->list[i].ready = cut(a, x->list[i].ready, &room);
    }
    for (size_t i = 0; i < x->n; i++) {
        struct subset *s = &x->list[i];
        cJSON *made = json_new_object(a);

        s->unready = cut(a, s->unready, &room);
        if (json_count(s->ready))
            json_set(a, made, "addresses", s->ready);
        if (json_count(s->unready))
            json_set(a, made, "notReadyAddresses", s->unready);
        if (json_count(s->ports))
            json_set(a, made, "ports", s->ports);
        if (json_count(s->ready) || json_count(s->unready))
            json_append(out, made);
    }
    *ret_truncated = all > CAPACITY;
    return out;
}

/* --- writing --- */

void endpoints_write(struct service_run *s)
{
    const struct resource *res = reconcile_resource(s->run, "", "endpoints");
    struct subsets x = {.run = s};
    bool truncated;
    const cJSON *as_read = reconcile_get(s->run, res, meta_ns(s->service), meta_name(s->service));
    cJSON *endpoints = as_read ? json_copy(s->arena, as_read) : json_new_object(s->arena), *list;
    cJSON *meta, *labels;

    x.list = arena_alloc(s->arena, (s->n_pods + 1) * sizeof(*x.list));
    for (size_t i = 0; i < s->n_pods; i++)
        add_pod(&x, s->pods[i]);
    list = as_json(&x, &truncated);

    meta = json_ensure_object(s->arena, endpoints, "metadata");
    labels = endpoints_service_labels(s);
    json_set_str(s->arena, labels, MANAGED_BY, STR("endpoint-controller"));
    json_put(s->arena, meta, JSON("name", meta_name(s->service)),
             JSON("namespace", meta_ns(s->service)), JSON("labels", labels));
    if (truncated)
        json_set_str(s->arena, json_ensure_object(s->arena, meta, "annotations"), OVER_CAPACITY,
                     STR("truncated"));
    else if (json_get(meta, "annotations"))
        json_remove(json_get(meta, "annotations"), OVER_CAPACITY);

    if (json_count(list))
        json_set(s->arena, endpoints, "subsets", list);
    else
        json_remove(endpoints, "subsets");
    if (!as_read && !object_is_terminating(s->service))
        reconcile_create(s->run, res, meta_ns(s->service), endpoints);
    else if (as_read && !json_equal(endpoints, as_read))
        reconcile_update(s->run, res, endpoints);
}
