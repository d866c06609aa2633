/* SPDX-License-Identifier: Apache-2.0 */
/* The default objects of every namespace: the service account `default`, and the ConfigMap
 * `kube-root-ca.crt` with the CA of the API server. Both are recreated when deleted; the CA in the
 * ConfigMap is kept correct. */
#include "util.h"

#include <sublet/json_build.h>
#include <sublet/object.h>

#define CA_NAME STR("kube-root-ca.crt")

static bool namespace_is_active(struct reconcile *r, struct str name)
{
    const cJSON *ns = reconcile_get(r, reconcile_resource(r, "", "namespaces"), STR(""), name);

    return ns && !object_is_terminating(ns);
}

static cJSON *object_named(struct arena *a, const char *kind, struct str ns, struct str name)
{
    return json_object(a, JSON("kind", kind), JSON("apiVersion", "v1"),
                       JSON("metadata", json_object(a, JSON("name", name), JSON("namespace", ns))));
}

/* Keys are namespaces: "/name". Events of the objects themselves are mapped to their namespace. */
static void map_to_namespace(struct controller *c, const struct store_event *e, struct str name)
{
    if (e->type == STORE_ADDED || !str_eq(e->object->name, name))
        return;
    controller_add_name(c, STR(""), e->object->ns);
}

static void map_account(struct controller *c, const struct store_event *e)
{
    map_to_namespace(c, e, STR("default"));
}

static void map_ca(struct controller *c, const struct store_event *e)
{
    map_to_namespace(c, e, CA_NAME);
}

static void account_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "serviceaccounts");
    struct str ignored, ns;

    if (!key_split(reconcile_key(r), &ignored, &ns) || !namespace_is_active(r, ns) ||
        reconcile_get(r, res, ns, STR("default")))
        return;
    reconcile_create(r, res, ns,
                     object_named(reconcile_arena(r), "ServiceAccount", ns, STR("default")));
}

static void ca_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "", "configmaps");
    struct str pem = pki_ca_pem(vapi_pki(reconcile_api(r))), ignored, ns;

    if (!key_split(reconcile_key(r), &ignored, &ns) || !namespace_is_active(r, ns))
        return;
    cJSON *map = reconcile_get(r, res, ns, CA_NAME), *data = json_get(map, "data");
    bool there = map != NULL;
    if (str_eq(json_str(json_get(data, "ca.crt")), pem) && json_count(data) == 1)
        return;
    if (!there)
        map = object_named(a, "ConfigMap", ns, CA_NAME);
    json_set_str(a, json_ensure_path(a, map, "metadata.annotations"), "kubernetes.io/description",
                 STR("The CA bundle by which pods verify this cluster's API server."));
    data = json_set(a, map, "data", json_new_object(a));
    json_set_str(a, data, "ca.crt", pem);
    if (there)
        reconcile_update(r, res, map);
    else
        reconcile_create(r, res, ns, map);
}

static const struct controller_source ACCOUNT_SOURCES[] = {
    {"", "namespaces", controller_map_self},
    {"", "serviceaccounts", map_account},
    {NULL, NULL, NULL},
};
static const struct controller_source CA_SOURCES[] = {
    {"", "namespaces", controller_map_self},
    {"", "configmaps", map_ca},
    {NULL, NULL, NULL},
};

const struct controller_def SERVICE_ACCOUNT_CONTROLLER = {
    .name = "service-account-controller",
    .sources = ACCOUNT_SOURCES,
    .reconcile = account_reconcile,
};
const struct controller_def ROOT_CA_CONTROLLER = {
    .name = "root-ca-certificate-publisher",
    .sources = CA_SOURCES,
    .reconcile = ca_reconcile,
};
