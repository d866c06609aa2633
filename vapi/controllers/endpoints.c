/* SPDX-License-Identifier: Apache-2.0 */
/* Services with a selector: one run writes their pods to Endpoints and EndpointSlices. Must never
 * list a pod that is not ready as ready, unless the service publishes unready addresses. Source of
 * the rules: pkg/controller/endpoint, k8s.io/endpointslice of Kubernetes 1.36. The annotation with
 * the time of the last change, which only measures latency, is not set. */
#include "endpoints.h"

#include "selector_index.h"
#include "slices.h"

#include <sublet/json_build.h>

/* --- a pod of a service --- */

static int64_t named_port(const cJSON *containers, struct str name, struct str protocol,
                          bool only_sidecars)
{
    json_each(container, containers)
    {
        if (only_sidecars && !str_eqc(json_str_at(container, "restartPolicy"), "Always"))
            continue;
        json_each(port, json_get(container, "ports"))
        {
            struct str its = json_str_at(port, "protocol");

            if (str_eq(json_str_at(port, "name"), name) &&
                str_eq(its.n ? its : STR("TCP"), protocol))
                return json_i64_at(port, "containerPort", 0);
        }
    }
    return 0;
}

int64_t endpoints_port_in(const cJSON *pod, const cJSON *service_port)
{
    const cJSON *target = json_get(service_port, "targetPort");
    struct str protocol = json_str_at(service_port, "protocol"), name = json_str(target);
    int64_t n;

    if (json_i64(target, &n))
        return n;
    if (!name.n)
        return json_i64_at(service_port, "port", 0);
    protocol = protocol.n ? protocol : STR("TCP");
    n = named_port(json_path(pod, "spec.containers"), name, protocol, false);
    return n ? n : named_port(json_path(pod, "spec.initContainers"), name, protocol, true);
}

cJSON *endpoints_ports_of(struct service_run *s, const cJSON *pod, bool with_empty_names)
{
    cJSON *ports = json_new_array(s->arena);

    json_each(port, json_path(s->service, "spec.ports"))
    {
        int64_t n = endpoints_port_in(pod, port);
        struct str name = json_str_at(port, "name"), protocol = json_str_at(port, "protocol");
        struct str app = json_str_at(port, "appProtocol");

        if (!n)
            continue;
        cJSON *shown = name.n || with_empty_names ? json_new_string(s->arena, name) : NULL;
        json_append(ports, json_object(s->arena, JSON("name", shown), JSON_I64("port", n),
                                       JSON("protocol", protocol.n ? protocol : STR("TCP")),
                                       JSON_NONEMPTY("appProtocol", app)));
    }
    return ports;
}

bool endpoints_service_names_host(const struct service_run *s, const cJSON *pod)
{
    return json_str_at(pod, "spec.hostname").n &&
           str_eq(json_str_at(pod, "spec.subdomain"), meta_name(s->service));
}

cJSON *endpoints_pod_reference(struct arena *a, const cJSON *pod)
{
    return json_object(a, JSON("kind", "Pod"), JSON("namespace", meta_ns(pod)),
                       JSON("name", meta_name(pod)), JSON("uid", meta_uid(pod)));
}

cJSON *endpoints_service_labels(struct service_run *s)
{
    static const char *const reserved[] = {"service.kubernetes.io/headless",
                                           "endpoints.kubernetes.io/managed-by", SLICE_SERVICE,
                                           SLICE_MANAGED_BY};
    const cJSON *from = json_path(s->service, "metadata.labels");
    cJSON *labels = from ? json_copy(s->arena, from) : json_new_object(s->arena);

    for (size_t i = 0; i < COUNT(reserved); i++)
        json_remove(labels, reserved[i]);
    if (s->headless)
        json_set_str(s->arena, labels, "service.kubernetes.io/headless", STR(""));
    return labels;
}

/* --- reconcile --- */

static bool has_address(const cJSON *pod)
{
    return json_str_at(pod, "status.podIP").n || json_count(json_path(pod, "status.podIPs"));
}

static void select_pods(struct service_run *s)
{
    struct selector selector;
    size_t n;

    selector_from_map(s->arena, json_path(s->service, "spec.selector"), &selector);
    cJSON **pods = controller_items(s->arena,
                                    reconcile_list(s->run, reconcile_resource(s->run, "", "pods"),
                                                   meta_ns(s->service), &selector),
                                    &n);
    s->pods = pods;
    for (size_t i = 0; i < n; i++) {
        if (!pod_is_finished(pods[i]) && has_address(pods[i]))
            s->pods[s->n_pods++] = pods[i];
    }
}

static void service_reconcile(struct reconcile *r)
{
    struct service_run *s = ARENA_NEW(reconcile_arena(r), struct service_run);
    struct str ns, name, ip;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    *s = (struct service_run){.run = r, .arena = reconcile_arena(r)};
    s->res = reconcile_resource(r, "", "services");
    s->service = reconcile_get(r, s->res, ns, name);
    if (!s->service) {
        /* The service was deleted: deletes its Endpoints by name. */
        const struct resource *res = reconcile_resource(r, "", "endpoints");
        const cJSON *endpoints = reconcile_get(r, res, ns, name);

        slices_remove(r, ns, name, ENDPOINT_SLICE_MANAGER);
        if (endpoints && !object_is_terminating(endpoints))
            reconcile_delete(r, res, ns, name, meta_uid(endpoints), NULL);
        return;
    }
    if (!json_count(json_path(s->service, "spec.selector")) ||
        str_eqc(json_str_at(s->service, "spec.type"), "ExternalName")) {
        slices_remove(r, ns, name, ENDPOINT_SLICE_MANAGER);
        return;
    }
    ip = json_str_at(s->service, "spec.clusterIP");
    s->headless = !ip.n || str_eqc(ip, "None");
    s->publish_unready = json_true(json_path(s->service, "spec.publishNotReadyAddresses"));
    select_pods(s);
    endpoints_write(s);
    endpoint_slices_write(s);
}

/* --- events --- */

static void map_service(struct controller *c, const struct store_event *e)
{
    selector_index_apply(controller_state(c), e);
    controller_map_self(c, e);
}

static void on_selecting(void *ctx, struct str ns, struct str name)
{
    controller_add_name(ctx, ns, name);
}

static bool same_text(const cJSON *a, const cJSON *b, const char *path)
{
    return str_eq(json_str_at(a, path), json_str_at(b, path));
}

/* Most changes of a pod do not affect its endpoints. */
static bool pod_matters(const struct store_event *e)
{
    struct arena *a;
    const cJSON *now, *was;
    bool same;

    if (!e->previous || !str_eq(e->previous->labels, e->object->labels))
        return true;
    a = arena_new(0);
    now = vapi_tree(a, e->object);
    was = vapi_tree(a, e->previous);
    same = same_text(now, was, "metadata.deletionTimestamp") &&
           same_text(now, was, "status.phase") && same_text(now, was, "spec.nodeName") &&
           same_text(now, was, "status.podIP") && same_text(now, was, "spec.hostname") &&
           json_equal(json_path(now, "status.podIPs"), json_path(was, "status.podIPs")) &&
           pod_is_ready(now) == pod_is_ready(was);
    arena_free(a);
    return !same;
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    const struct selector_index *x = controller_state(c);

    if (e->type != STORE_DELETED && !pod_matters(e))
        return;
    selector_index_event(x, e, on_selecting, c);
}

/* Recreates them when they were deleted; those without a service are not managed here. */
static void map_endpoints(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *services =
        registry_find_group_resource(vapi_registry(api), STR(""), STR("services"));

    if (e->type == STORE_DELETED &&
        store_get(vapi_store(api), services->storage, e->object->ns, e->object->name))
        controller_map_self(c, e);
}

static void map_slice(struct controller *c, const struct store_event *e)
{
    slices_map(c, e, ENDPOINT_SLICE_MANAGER);
}

static void *start(struct controller *c)
{
    (void)c;
    return selector_index_new(SELECTOR_MAP);
}

static const struct controller_source SOURCES[] = {
    {"", "services", map_service},
    {"", "pods", map_pod},
    {"", "endpoints", map_endpoints},
    {"discovery.k8s.io", "endpointslices", map_slice},
    {NULL, NULL, NULL},
};

const struct controller_def ENDPOINTS_CONTROLLER = {
    .name = "endpoint-controller",
    .sources = SOURCES,
    .reconcile = service_reconcile,
    .start = start,
    .stop = selector_index_stop,
};
