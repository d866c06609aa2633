/* SPDX-License-Identifier: Apache-2.0 */
/* An APIService for every group version that is served: tools read the available APIs from them.
 * Those of the tenant's CRDs are created and deleted with the CRDs. Must not touch APIServices
 * without the label: those are the tenant's. Source: kube-aggregator pkg/controllers/autoregister,
 * pkg/apiserver/apiserver.go of kube-apiserver. */
#include "util.h"

#include <sublet/json_build.h>

#define KEY      "/local"
#define MANAGED  "kube-aggregator.kubernetes.io/automanaged"
#define CALM_MS  300 /* the registry follows a CRD a moment later */
#define MAX_NAME 512 /* of a version, a dot and a group */

/* The wanted APIServices: a member per group version, by name. */
struct wanted {
    struct arena *arena;
    cJSON *services;
};

static bool on_resource(void *ctx, const struct resource *r)
{
    struct wanted *w = ctx;
    struct arena *a = w->arena;
    struct str name = arena_concat(a, 3, (struct str[]){r->version, STR("."), r->group});
    cJSON *labels, *metadata, *spec;

    if (name.n >= MAX_NAME || json_get_str(w->services, name))
        return true;
    labels = json_object(a, JSON(MANAGED, r->crd ? "true" : "onstart"));
    metadata = json_object(a, JSON("name", name), JSON("labels", labels));
    spec = json_object(a, JSON_NONEMPTY("group", r->group), JSON("version", r->version),
                       JSON_I64("groupPriorityMinimum", resource_group_priority(r)),
                       JSON_I64("versionPriority", resource_version_priority(r)));
    json_set(a, w->services, arena_cstr(a, name),
             json_object(a, JSON("metadata", metadata), JSON("spec", spec)));
    return true;
}

static void services_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "apiregistration.k8s.io", "apiservices");
    struct wanted w = {reconcile_arena(r), json_new_object(reconcile_arena(r))};

    registry_each(vapi_registry(reconcile_api(r)), on_resource, &w);
    json_each(there, reconcile_list(r, res, STR_NULL, NULL))
    {
        struct str managed = json_str(json_get(json_path(there, "metadata.labels"), MANAGED));

        if (json_get_str(w.services, meta_name(there)))
            json_remove(w.services, arena_cstr(w.arena, meta_name(there)));
        else if (str_eqc(managed, "true") && !object_is_terminating(there))
            reconcile_delete_exact(r, res, there, NULL);
    }
    json_each(missing, w.services) reconcile_create(r, res, STR(""), missing);
}

static void map_any(struct controller *c, const struct store_event *e)
{
    (void)e;
    controller_add_after(c, STR(KEY), CALM_MS);
}

static void *start(struct controller *c)
{
    controller_add(c, STR(KEY));
    return NULL;
}

static const struct controller_source SOURCES[] = {
    {"apiextensions.k8s.io", "customresourcedefinitions", map_any},
    {"apiregistration.k8s.io", "apiservices", map_any},
    {NULL, NULL, NULL},
};

const struct controller_def API_SERVICE_CONTROLLER = {
    .name = "kube-apiserver-autoregister",
    .sources = SOURCES,
    .reconcile = services_reconcile,
    .workers = 1,
    .start = start,
};
