/* SPDX-License-Identifier: Apache-2.0 */
/* default/kubernetes and its endpoints: the address of this API, as higher rooms published it. A
 * real server rewrites them every ten seconds; here a change restores them, and there is no timer.
 * Must never touch fields a user added that clients of the API do not depend on. Source:
 * pkg/controlplane/controller/kubernetesservice and pkg/controlplane/reconcilers of Kubernetes
 * 1.36. */
#include "util.h"

#define NAMESPACE STR("default")
#define NAME      STR("kubernetes")
#define KEY       STR("default/kubernetes")
/* A client that changes them repeatedly costs one write a second. */
#define RESTORE_MS 1000

/* --- wanted objects --- */

static cJSON *new_object(struct arena *a)
{
    cJSON *object = json_new_object(a), *meta = json_ensure_object(a, object, "metadata");

    json_set_str(a, meta, "name", NAME);
    json_set_str(a, meta, "namespace", NAMESPACE);
    return object;
}

static void set_label(struct arena *a, cJSON *object, const char *name, struct str value)
{
    cJSON *meta = json_ensure_object(a, object, "metadata");

    json_set_str(a, json_ensure_object(a, meta, "labels"), name, value);
}

static cJSON *set_port(struct arena *a, cJSON *holder, unsigned number)
{
    cJSON *port = json_append(json_set(a, holder, "ports", json_new_array(a)), json_new_object(a));

    json_set_str(a, port, "name", STR("https"));
    json_set_i64(a, port, "port", number);
    json_set_str(a, port, "protocol", STR("TCP"));
    return port;
}

static cJSON *want_service(struct arena *a, const struct vapi_address *at)
{
    cJSON *service = new_object(a), *spec = json_ensure_object(a, service, "spec");
    struct str ip = at->cluster_ip.n ? at->cluster_ip : STR("None");

    set_label(a, service, "component", STR("apiserver"));
    set_label(a, service, "provider", STR("kubernetes"));
    json_set_str(a, spec, "type", STR("ClusterIP"));
    json_set_str(a, spec, "sessionAffinity", STR("None"));
    json_set_str(a, spec, "clusterIP", ip);
    json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    json_set_i64(a, set_port(a, spec, at->port), "targetPort", at->target_port);
    return service;
}

static cJSON *want_endpoints(struct arena *a, const struct vapi_address *at)
{
    cJSON *object = new_object(a), *subset, *addresses;

    if (!at->endpoint_ip.n)
        return NULL;
    set_label(a, object, "endpointslice.kubernetes.io/skip-mirror", STR("true"));
    subset = json_append(json_set(a, object, "subsets", json_new_array(a)), json_new_object(a));
    addresses = json_set(a, subset, "addresses", json_new_array(a));
    json_set_str(a, json_append(addresses, json_new_object(a)), "ip", at->endpoint_ip);
    set_port(a, subset, at->endpoint_port);
    return object;
}

static cJSON *want_slice(struct arena *a, const struct vapi_address *at)
{
    cJSON *object = new_object(a), *endpoint;
    struct str ip = at->endpoint_ip;

    if (!ip.n)
        return NULL;
    set_label(a, object, "kubernetes.io/service-name", NAME);
    json_set_str(a, object, "addressType", str_c(str_find(ip, ':') < ip.n ? "IPv6" : "IPv4"));
    endpoint = json_append(json_set(a, object, "endpoints", json_new_array(a)), json_new_object(a));
    json_append(json_set(a, endpoint, "addresses", json_new_array(a)), json_new_string(a, ip));
    json_set_bool(a, json_ensure_object(a, endpoint, "conditions"), "ready", true);
    set_port(a, object, at->endpoint_port);
    return object;
}

/* --- present objects --- */

static const struct kept {
    const char *group, *plural;
    cJSON *(*want)(struct arena *a, const struct vapi_address *at); /* NULL: none */
    const char *fixed;                                              /* immutable field */
    const char *parent; /* of own; NULL: the object itself */
    const char *own[3]; /* fields that are restored, or removed again */
    bool labels;
} KEPT[] = {
    {"", "services", want_service, "spec.clusterIP", "spec", {"ports", "type", "selector"}, false},
    {"", "endpoints", want_endpoints, NULL, NULL, {"subsets"}, true},
    {"discovery.k8s.io",
     "endpointslices",
     want_slice,
     "addressType",
     NULL,
     {"endpoints", "ports"},
     true},
};

/* A merge patch of the differences. */
static cJSON *difference(struct arena *a, const struct kept *k, const cJSON *now, const cJSON *want)
{
    cJSON *patch = json_new_object(a);

    for (size_t i = 0; i < COUNT(k->own) && k->own[i]; i++) {
        const cJSON *is = json_get(k->parent ? json_get(now, k->parent) : now, k->own[i]);
        const cJSON *value = json_get(k->parent ? json_get(want, k->parent) : want, k->own[i]);
        cJSON *at = patch;

        if (value ? json_equal(is, value) : !is)
            continue;
        if (k->parent)
            at = json_ensure_object(a, patch, k->parent);
        json_set(a, at, k->own[i], value ? json_copy(a, value) : json_new_null(a));
    }
    if (k->labels &&
        !labels_cover(json_path(want, "metadata.labels"), json_path(now, "metadata.labels")))
        json_set(a, json_ensure_object(a, patch, "metadata"), "labels",
                 json_copy(a, json_path(want, "metadata.labels")));
    return patch;
}

static void keep(struct reconcile *r, const struct kept *k, const struct vapi_address *at)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, k->group, k->plural);
    const cJSON *now = reconcile_get(r, res, NAMESPACE, NAME), *want = k->want(a, at), *patch;

    if (now && object_is_terminating(now))
        return;
    if (!now) {
        if (want)
            reconcile_create(r, res, NAMESPACE, want);
        return;
    }
    if (!want || (k->fixed && !str_eq(json_str_at(now, k->fixed), json_str_at(want, k->fixed)))) {
        reconcile_delete(r, res, NAMESPACE, NAME, meta_uid(now), NULL);
        return;
    }
    patch = difference(a, k, now, want);
    if (json_first(patch))
        reconcile_patch(r, res, STR_NULL, NAMESPACE, NAME, patch);
}

static void address_reconcile(struct reconcile *r)
{
    const struct vapi_address *at = vapi_published_address(reconcile_api(r));

    for (size_t i = 0; at && i < COUNT(KEPT); i++)
        keep(r, &KEPT[i], at);
}

/* --- events --- */

static void map_own(struct controller *c, const struct store_event *e)
{
    if (!str_eq(e->object->name, NAME) || !str_eq(e->object->ns, NAMESPACE))
        return;
    if (e->type == STORE_DELETED)
        controller_add(c, KEY);
    else
        controller_add_after(c, KEY, RESTORE_MS);
}

static void on_address(void *ctx)
{
    controller_add(ctx, KEY);
}

static void *address_start(struct controller *c)
{
    vapi_on_address(controller_api(c), on_address, c);
    return c;
}

static void address_stop(struct controller *c, void *state)
{
    (void)state;
    vapi_on_address(controller_api(c), NULL, NULL);
}

static const struct controller_source SOURCES[] = {
    {"", "services", map_own},
    {"", "endpoints", map_own},
    {"discovery.k8s.io", "endpointslices", map_own},
    {NULL, NULL, NULL},
};

const struct controller_def OWN_ADDRESS_CONTROLLER = {
    .name = "kubernetes-service",
    .sources = SOURCES,
    .reconcile = address_reconcile,
    .start = address_start,
    .stop = address_stop,
};
