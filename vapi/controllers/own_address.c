/* SPDX-License-Identifier: Apache-2.0 */
/* default/kubernetes and its endpoints: the address of this API, as higher rooms published it. A
 * real server rewrites them every ten seconds; here a change restores them, and there is no timer.
 * Must never touch fields a user added that clients of the API do not depend on. Source:
 * pkg/controlplane/controller/kubernetesservice and pkg/controlplane/reconcilers of Kubernetes
 * 1.36. */
#include "util.h"

#include <sublet/json_build.h>

#define NAMESPACE STR("default")
#define NAME      STR("kubernetes")
#define KEY       STR("default/kubernetes")
/* A client that changes them repeatedly costs one write a second. */
#define RESTORE_MS 1000

/* --- wanted objects --- */

static cJSON *new_metadata(struct arena *a, cJSON *labels)
{
    return json_object(a, JSON("name", NAME), JSON("namespace", NAMESPACE), JSON("labels", labels));
}

static cJSON *one_port(struct arena *a, unsigned number, cJSON *target)
{
    return json_array(a, json_object(a, JSON("name", "https"), JSON_I64("port", number),
                                     JSON("protocol", "TCP"), JSON("targetPort", target)));
}

static cJSON *want_service(struct arena *a, const struct vapi_address *at)
{
    struct str ip = at->cluster_ip.n ? at->cluster_ip : STR("None");
    cJSON *labels = json_object(a, JSON("component", "apiserver"), JSON("provider", "kubernetes"));
    cJSON *spec = json_object(
        a, JSON("type", "ClusterIP"), JSON("sessionAffinity", "None"), JSON("clusterIP", ip),
        JSON("clusterIPs", json_array(a, json_new_string(a, ip))),
        JSON("ports", one_port(a, at->port, json_new_i64(a, at->target_port))));

    return json_object(a, JSON("metadata", new_metadata(a, labels)), JSON("spec", spec));
}

static cJSON *want_endpoints(struct arena *a, const struct vapi_address *at)
{
    cJSON *labels = json_object(a, JSON("endpointslice.kubernetes.io/skip-mirror", "true")),
          *subset;

    if (!at->endpoint_ip.n)
        return NULL;
    subset = json_object(
        a, JSON("addresses", json_array(a, json_object(a, JSON("ip", at->endpoint_ip)))),
        JSON("ports", one_port(a, at->endpoint_port, NULL)));
    return json_object(a, JSON("metadata", new_metadata(a, labels)),
                       JSON("subsets", json_array(a, subset)));
}

static cJSON *want_slice(struct arena *a, const struct vapi_address *at)
{
    cJSON *labels = json_object(a, JSON("kubernetes.io/service-name", NAME)), *endpoint;
    struct str ip = at->endpoint_ip;

    if (!ip.n)
        return NULL;
    endpoint = json_object(a, JSON("addresses", json_array(a, json_new_string(a, ip))),
                           JSON("conditions", json_object(a, JSON_BOOL("ready", true))));
    return json_object(a, JSON("metadata", new_metadata(a, labels)),
                       JSON("addressType", str_find(ip, ':') < ip.n ? "IPv6" : "IPv4"),
                       JSON("endpoints", json_array(a, endpoint)),
                       JSON("ports", one_port(a, at->endpoint_port, NULL)));
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
