/* SPDX-License-Identifier: Apache-2.0 */
/* GPUUsage and ClusterGPUUsage of sublet.dev/v1: what a tenant reads of its own GPUs, one object
 * for each pool that is bound to it, computed when it is read. They are described as a
 * CustomResourceDefinition is, for discovery, `kubectl explain` and the columns of `kubectl get`,
 * but there is none. Must never be writable. */
#include "control_plane.h"

#include "../api/watch/usage.h"
#include "../crd/version_new.h"

#include <sublet/json_build.h>
#include <sublet/registry.h>

static const struct shape {
    const char *kind, *list, *plural, *singular, *scope, *description;
    bool cluster;
} SHAPES[] = {
    {"GPUUsage", "GPUUsageList", "gpuusages", "gpuusage", "Namespaced",
     "GPUs of one pool, named like the pool, that pods of the namespace hold and wait for. "
     "Read-only: it is computed when it is read.",
     false},
    {"ClusterGPUUsage", "ClusterGPUUsageList", "clustergpuusages", "clustergpuusage", "Cluster",
     "GPUs of one pool, named like the pool, that the virtual cluster holds and waits for. "
     "Read-only: it is computed when it is read.",
     true},
};

/* Quantities of GPUs are strings. */
static const struct member {
    const char *name, *type, *description;
    const char *column; /* NULL: it has none */
    bool cluster;       /* of a ClusterGPUUsage alone */
} STATUS[] = {
    {"used", "string", "GPUs that are charged, until the host released them: 3, 0.25 or 3/7.",
     "Used", false},
    {"limit", "string", "What the whole virtual cluster may hold now.", "Limit", false},
    {"guarantee", "string", "What is guaranteed to the whole virtual cluster.", "Guarantee", false},
    {"borrowed", "string", "What is used beyond the guarantee.", "Borrowed", true},
    {"gpuHours", "string",
     "GPU hours that were charged since the month began, in UTC: to the namespace, or to the whole "
     "virtual cluster. It is no bill, which counts from the moment a pod has a node.",
     NULL, false},
    {"otherGPUHours", "string",
     "What of gpuHours is of none of namespaces: of those with less, and of what was charged "
     "before "
     "namespaces were counted.",
     NULL, true},
    {"mode", "string", "How its GPUs are shared: exclusive, mig, time-slicing, mps or dra.", "Mode",
     true},
    {"isolation", "string", "How well that keeps pods apart.", NULL, true},
    {"trust", "string",
     "Who may share a machine with the pods: adversarial has GPUs only that the hardware keeps "
     "apart.",
     NULL, true},
    {"pods", "integer", "Pods and claims that are charged.", "Pods", false},
    {"waiting", "string", "GPUs that pods wait for.", "Waiting", false},
    {"waitingPods", "integer", "Pods that wait.", "Waiting-Pods", false},
    {"unavailable", "string", "Why the pool takes no new pods, or not as many as usual.",
     "Unavailable", false},
    {"queueNotShown", "integer", "Pods that wait and are not in queue.", NULL, false},
};
static const struct member NAMESPACES[] = {
    {"namespace", "string", "Of the pods and claims; it may be deleted by now.", NULL, false},
    {"gpuHours", "string", "What was charged to them since the month began.", NULL, false},
};
static const struct member BUDGET[] = {
    {"month", "string", "Of UTC, such as 2026-11.", NULL, false},
    {"amount", "string", "What may be spent in the month.", NULL, false},
    {"currency", "string", "Of amount and spent.", NULL, false},
    {"spent", "string", "What pods cost since the month began; written with each percent.", NULL,
     false},
    {"percent", "integer", "What of the amount is spent.", NULL, false},
    {"forecast", "string",
     "What the whole month costs if pods go on as in the last 24 hours; written when it changes by "
     "a "
     "hundredth.",
     NULL, false},
    {"enforcement", "string",
     "What follows once all of it is spent: Warn is nothing, Queue is nothing beyond the "
     "guarantee, "
     "Stop is no new pods.",
     NULL, false},
    {"otherCurrency", "string", "In which pods cost something this month as well, not counted.",
     NULL, false},
};
static const struct member QUEUED[] = {
    {"namespace", "string", "Of the pod.", NULL, false},
    {"name", "string", "Of the pod.", NULL, false},
    {"gpus", "string", "What the pod requests.", NULL, false},
    {"position", "integer", "In the line of the pool, which all namespaces share; 1 is the first.",
     NULL, false},
    {"ahead", "string", "What those before it request.", NULL, false},
    {"since", "string", "When the pod was created.", NULL, false},
};

static cJSON *properties(struct arena *a, const struct shape *shape, const struct member *members,
                         size_t n)
{
    cJSON *ret = json_new_object(a);

    for (size_t i = 0; i < n; i++) {
        if (!members[i].cluster || shape->cluster)
            json_set(a, ret, members[i].name,
                     json_object(a, JSON("type", members[i].type),
                                 JSON("description", members[i].description)));
    }
    return ret;
}

static cJSON *namespaces_of(struct arena *a, const struct shape *shape)
{
    cJSON *item =
        json_object(a, JSON("type", "object"),
                    JSON("properties", properties(a, shape, NAMESPACES, COUNT(NAMESPACES))));

    return json_object(a, JSON("type", "array"), JSON("items", item),
                       JSON("description",
                            "gpuHours by namespace, the most first; at most 50. With otherGPUHours "
                            "they are gpuHours, exactly."));
}

/* As the fleet computes it. */
static cJSON *budget_of(struct arena *a, const struct shape *shape)
{
    cJSON *members = properties(a, shape, BUDGET, COUNT(BUDGET));

    json_set(a, members, "warnAt",
             json_object(a, JSON("type", "array"),
                         JSON("items", json_object(a, JSON("type", "integer"))),
                         JSON("description",
                              "Percent of the amount, of which the administrator is warned.")));
    return json_object(a, JSON("type", "object"), JSON("properties", members),
                       JSON("description",
                            "What the whole virtual cluster may cost in this pool in "
                            "a month, and what it cost so far."));
}

static cJSON *schema_of(struct arena *a, const struct shape *shape)
{
    cJSON *status = properties(a, shape, STATUS, COUNT(STATUS)), *item;

    item = json_object(a, JSON("type", "object"),
                       JSON("properties", properties(a, shape, QUEUED, COUNT(QUEUED))));
    json_set(a, status, "queue",
             json_object(a, JSON("type", "array"), JSON("items", item),
                         JSON("description", "Pods that wait, in order; at most 100 of a pool.")));
    json_set(a, status, "budget", budget_of(a, shape));
    if (shape->cluster)
        json_set(a, status, "namespaces", namespaces_of(a, shape));
    return json_object(
        a, JSON("type", "object"), JSON("description", shape->description),
        JSON("properties",
             json_object(
                 a, JSON("apiVersion", json_object(a, JSON("type", "string"))),
                 JSON("kind", json_object(a, JSON("type", "string"))),
                 JSON("metadata", json_object(a, JSON("type", "object"))),
                 JSON("status", json_object(a, JSON("type", "object"), JSON("properties", status),
                                            JSON("description", "As it is at this moment."))))));
}

static cJSON *columns_of(struct arena *a, const struct shape *shape)
{
    cJSON *ret = json_new_array(a);

    for (size_t i = 0; i < COUNT(STATUS); i++) {
        if (STATUS[i].column && (!STATUS[i].cluster || shape->cluster))
            json_append(
                ret, json_object(a, JSON("name", STATUS[i].column), JSON("type", STATUS[i].type),
                                 JSON("jsonPath", arena_printf(a, ".status.%s", STATUS[i].name))));
    }
    return ret;
}

static cJSON *definition(struct arena *a, const struct shape *shape)
{
    cJSON *versions = json_new_array(a);

    json_append(
        versions,
        json_object(a, JSON("name", "v1"), JSON_BOOL("served", true), JSON_BOOL("storage", true),
                    JSON("schema", json_object(a, JSON("openAPIV3Schema", schema_of(a, shape)))),
                    JSON("additionalPrinterColumns", columns_of(a, shape))));
    return json_object(
        a,
        JSON("metadata",
             json_object(a, JSON("name", arena_printf(a, "%s.sublet.dev", shape->plural)))),
        JSON("spec", json_object(a, JSON("group", "sublet.dev"), JSON("scope", shape->scope),
                                 JSON("names", json_object(a, JSON("kind", shape->kind),
                                                           JSON("listKind", shape->list),
                                                           JSON("plural", shape->plural),
                                                           JSON("singular", shape->singular))),
                                 JSON("versions", versions))));
}

static struct crd_version *serve(struct vapi *api, struct arena *a, const struct shape *shape)
{
    cJSON *crd = definition(a, shape);
    struct crd_version *v = crd_version_new(crd, json_first(json_path(crd, "spec.versions")), NULL);
    struct err err;

    err_init(&err, a);
    v->resource->verbs = VERB_GET | VERB_LIST | VERB_WATCH;
    v->resource->flags |= RES_REVIEW;
    if (!registry_add(api->registry, v->resource, &err))
        return v;
    err_clear(&err);
    mem_free(v->resource);
    crd_version_free(v);
    return NULL;
}

void vapi_gpu_usage_serve(struct vapi *api)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < COUNT(SHAPES); i++)
        api->gpu_usage[i] = serve(api, a, &SHAPES[i]);
    api->usage_watches = watch_usages_new();
    arena_free(a);
}

void vapi_gpu_usage_free(struct vapi *api)
{
    api->usage_watches = watch_usages_free(api->usage_watches);
    for (size_t i = 0; i < COUNT(SHAPES); i++)
        if (api->gpu_usage[i])
            crd_version_free(api->gpu_usage[i]);
}
