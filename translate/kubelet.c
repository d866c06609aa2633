/* SPDX-License-Identifier: Apache-2.0 */
/* What a kubelet says of the pods of its node, as JSON: its pods, what runs, the summary of its
 * statistics. Why: dashboards and autoscalers read it of nodes, and a node is shared. Must never
 * show a pod that is not proved to be the tenant's, a container or a volume that the virtual pod
 * does not name, or a value of the node itself unless the admin allows it. Source: k8s.io/kubelet
 * pkg/apis/stats/v1alpha1. */

#include <string.h>

#include <sublet/json_build.h>
#include <sublet/translate.h>
#include <sublet/translate_kubelet.h>

#include "shape.h"

#define DEPTH_MAX 4

/* ---- pods ---- */

/* The virtual pod of an item by its name, namespace and uid. */
static const cJSON *own_pod(const struct kubelet_view *v, const cJSON *reference)
{
    struct str uid = json_str(json_get(reference, "uid"));

    if (!uid.n || !str_eq(json_str(json_get(reference, "namespace")), v->tenant->host_namespace))
        return NULL;
    return v->own(v->ctx, KUBELET_POD, json_str(json_get(reference, "name")), uid);
}

static cJSON *new_list(struct arena *a, cJSON *items)
{
    return json_object(a, JSON("kind", "PodList"), JSON("apiVersion", "v1"),
                       JSON("metadata", json_new_object(a)), JSON("items", items));
}

/* A pod is shown once, however often a kubelet names it: what is shown may be longer. */
static bool is_shown(const cJSON *list, const char *reference, const cJSON *pod)
{
    json_each(one, list)
    {
        if (str_eq(json_str(json_get(json_get(one, reference), "uid")),
                   json_str_at(pod, "metadata.uid")))
            return true;
    }
    return false;
}

cJSON *translate_kubelet_pods(struct arena *a, const struct kubelet_view *v, const cJSON *list)
{
    const cJSON *items = json_get(list, "items"), *own;
    cJSON *ret = json_new_array(a);

    if (!json_is_object(list) || (items && !json_is_array(items) && !json_is_null(items)))
        return NULL;
    json_each(item, items)
    {
        own = own_pod(v, json_get(item, "metadata"));
        if (own && !is_shown(ret, "metadata", own))
            json_append(ret, json_copy(a, own));
    }
    return new_list(a, ret);
}

static bool names(const cJSON *pod, const char *path, struct str name)
{
    json_each(one, json_path(pod, path))
    {
        if (str_eq(json_str(json_get(one, "name")), name))
            return true;
    }
    return false;
}

bool translate_kubelet_has_container(const cJSON *pod, struct str name)
{
    return names(pod, "spec.containers", name) || names(pod, "spec.initContainers", name) ||
           names(pod, "spec.ephemeralContainers", name);
}

static cJSON *running_containers(struct arena *a, const cJSON *pod, const cJSON *list)
{
    cJSON *ret = json_new_array(a);

    json_each(one, list)
    {
        struct str name = json_str(json_get(one, "name"));

        if (translate_kubelet_has_container(pod, name))
            json_append(ret, json_object(a, JSON("name", name),
                                         JSON("image", json_str(json_get(one, "image"))),
                                         JSON("resources", json_new_object(a))));
    }
    return ret;
}

static cJSON *reference_of(struct arena *a, const cJSON *pod)
{
    return json_object(a, JSON("name", json_str_at(pod, "metadata.name")),
                       JSON("namespace", json_str_at(pod, "metadata.namespace")),
                       JSON("uid", json_str_at(pod, "metadata.uid")));
}

cJSON *translate_kubelet_running(struct arena *a, const struct kubelet_view *v, const cJSON *list)
{
    const cJSON *items = json_get(list, "items"), *own;
    cJSON *ret = json_new_array(a), *containers;

    if (!json_is_object(list) || (items && !json_is_array(items) && !json_is_null(items)))
        return NULL;
    json_each(item, items)
    {
        own = own_pod(v, json_get(item, "metadata"));
        if (!own || is_shown(ret, "metadata", own))
            continue;
        containers = running_containers(a, own, json_path(item, "spec.containers"));
        json_append(ret, json_object(a, JSON("metadata", reference_of(a, own)),
                                     JSON("spec", json_object(a, JSON("containers", containers))),
                                     JSON("status", json_new_object(a))));
    }
    return new_list(a, ret);
}

/* ---- the summary ---- */

/* Sizes of a disk that all pods of the node share. */
static bool is_of_the_disk(const char *key)
{
    static const char *const keys[] = {"availableBytes", "capacityBytes", "inodesFree", "inodes"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!strcmp(key, keys[i]))
            return true;
    }
    return false;
}

enum stats { STATS_OWN, STATS_ON_SHARED_DISK };

/* Numbers, with their times and the names of network interfaces. */
static cJSON *stats_up(struct arena *a, const cJSON *from, enum stats what, int depth)
{
    cJSON *ret, *copy;

    if (json_is_array(from) && depth < DEPTH_MAX) {
        ret = json_new_array(a);
        json_each(one, from)
        {
            copy = json_is_object(one) ? stats_up(a, one, what, depth + 1) : NULL;
            if (copy)
                json_append(ret, copy);
        }
        return ret;
    }
    if (!json_is_object(from) || depth >= DEPTH_MAX)
        return NULL;
    ret = json_new_object(a);
    json_each(member, from)
    {
        bool text = !strcmp(member->string, "time") || !strcmp(member->string, "startTime") ||
                    !strcmp(member->string, "name");

        if (what == STATS_ON_SHARED_DISK && is_of_the_disk(member->string))
            continue;
        if (json_is_number(member) || (text && json_is_string(member)))
            copy = json_copy(a, member);
        else
            copy = stats_up(a, member, what, depth + 1);
        if (copy)
            json_set(a, ret, member->string, copy);
    }
    return ret;
}

static const struct stats_field {
    const char *key;
    bool disk; /* of the node's disk */
} CONTAINER_FIELDS[] = {{"cpu", false},  {"memory", false}, {"io", false},
                        {"swap", false}, {"rootfs", true},  {"logs", true}},
  POD_FIELDS[] = {{"cpu", false},
                  {"memory", false},
                  {"io", false},
                  {"swap", false},
                  {"network", false},
                  {"process_stats", false},
                  {"ephemeral-storage", true}},
  NODE_FIELDS[] = {{"cpu", false},     {"memory", false}, {"io", false},
                   {"swap", false},    {"fs", false},     {"runtime", false},
                   {"network", false}, {"rlimit", false}, {"systemContainers", false}};

static void add_stats(struct arena *a, const struct kubelet_view *v, cJSON *to, const cJSON *from,
                      const struct stats_field *fields, size_t n)
{
    struct str start = json_str(json_get(from, "startTime"));

    if (start.n)
        json_set_str(a, to, "startTime", start);
    for (size_t i = 0; i < n; i++) {
        enum stats what = fields[i].disk && !v->whole ? STATS_ON_SHARED_DISK : STATS_OWN;
        cJSON *copy = stats_up(a, json_get(from, fields[i].key), what, 0);

        if (copy)
            json_set(a, to, fields[i].key, copy);
    }
}

static cJSON *containers_stats(struct arena *a, const struct kubelet_view *v, const cJSON *pod,
                               const cJSON *list)
{
    cJSON *ret = json_new_array(a), *to;

    json_each(one, list)
    {
        struct str name = json_str(json_get(one, "name"));

        if (!translate_kubelet_has_container(pod, name))
            continue;
        to = json_append(ret, json_object(a, JSON("name", name)));
        add_stats(a, v, to, one, CONTAINER_FIELDS, COUNT(CONTAINER_FIELDS));
    }
    return ret;
}

static const cJSON *volume_of(const cJSON *pod, struct str name)
{
    json_each(one, json_path(pod, "spec.volumes"))
    {
        if (name.n && str_eq(json_str(json_get(one, "name")), name))
            return one;
    }
    return NULL;
}

/* Only a claim's volume has a size of its own. */
static cJSON *volumes_stats(struct arena *a, const struct kubelet_view *v, const cJSON *pod,
                            const cJSON *list)
{
    cJSON *ret = json_new_array(a), *to;

    json_each(one, list)
    {
        const cJSON *volume = volume_of(pod, json_str(json_get(one, "name")));
        struct str claim = json_str_at(volume, "persistentVolumeClaim.claimName");

        if (!volume)
            continue;
        to =
            stats_up(a, one, claim.n || v->whole ? STATS_OWN : STATS_ON_SHARED_DISK, DEPTH_MAX - 1);
        json_append(ret, to);
        if (claim.n)
            json_set(a, to, "pvcRef",
                     json_object(a, JSON("name", claim),
                                 JSON("namespace", json_str_at(pod, "metadata.namespace"))));
    }
    return ret;
}

static cJSON *pod_stats(struct arena *a, const struct kubelet_view *v, const cJSON *pod,
                        const cJSON *from)
{
    cJSON *ret = json_object(a, JSON("podRef", reference_of(a, pod)));
    const cJSON *volumes = json_get(from, "volume");

    add_stats(a, v, ret, from, POD_FIELDS, COUNT(POD_FIELDS));
    json_set(a, ret, "containers", containers_stats(a, v, pod, json_get(from, "containers")));
    if (volumes)
        json_set(a, ret, "volume", volumes_stats(a, v, pod, volumes));
    return ret;
}

cJSON *translate_kubelet_summary(struct arena *a, const struct kubelet_view *v,
                                 const cJSON *summary)
{
    const cJSON *from = json_get(summary, "node"), *own;
    cJSON *pods = json_new_array(a), *node;

    if (!json_is_object(from))
        return NULL;
    node = json_object(a, JSON("nodeName", json_str(json_get(from, "nodeName"))));
    if (v->whole)
        add_stats(a, v, node, from, NODE_FIELDS, COUNT(NODE_FIELDS));
    json_each(one, json_get(summary, "pods"))
    {
        own = own_pod(v, json_get(one, "podRef"));
        if (own && !is_shown(pods, "podRef", own))
            json_append(pods, pod_stats(a, v, own, one));
    }
    return json_object(a, JSON("node", node), JSON("pods", pods));
}
