/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes: of claims, where their class allows it, and of running pods, within their node. Source:
 * plugin/pkg/admission/storage/persistentvolume/resize, plugin/pkg/admission/podresize. */
#include "usage.h"
#include "plugins.h"

/* --- PersistentVolumeClaimResize --- */

static struct quantity size_of(const cJSON *claim)
{
    struct quantity size;

    if (!quantity_parse(json_str_at(claim, "spec.resources.requests.storage"), &size))
        size = quantity_from_i64(0, QUANTITY_DECIMAL_SI);
    return size;
}

static struct str class_of(const cJSON *claim)
{
    struct str annotated = json_str(json_get(json_path(claim, "metadata.annotations"),
                                             "volume.beta.kubernetes.io/storage-class"));

    return annotated.p ? annotated : json_str_at(claim, "spec.storageClassName");
}

static bool class_grows(const struct admission_call *c, const cJSON *claim, const cJSON *old)
{
    struct str class = class_of(claim);
    const struct store_object *o;

    if (!class.n || !str_eq(class, class_of(old)))
        return false;
    o = plugin_stored(c, "storage.k8s.io", "storageclasses", STR(""), class);
    return o && json_true(json_get(vapi_tree(c->arena, o), "allowVolumeExpansion"));
}

int claim_resize_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    if (!object || !old || c->subresource.n || !plugin_admits(c, "", "persistentvolumeclaims") ||
        quantity_cmp(size_of(object), size_of(old)) <= 0)
        return 0;
    if (!str_eqc(json_str_at(old, "status.phase"), "Bound"))
        return err_forbidden(err, STR(""), c->resource->plural, c->name,
                             "Only bound persistent volume claims can be expanded");
    if (!class_grows(c, object, old))
        return err_forbidden(err, STR(""), c->resource->plural, c->name,
                             "only dynamically provisioned pvc can be resized and the storageclass "
                             "that provisions the pvc must support resize");
    return 0;
}

/* --- PodResizeValidator --- */

static int refuse(const struct admission_call *c, const char *cause, struct str why,
                  struct err *err)
{
    err_forbidden(err, STR(""), c->resource->plural, c->name, "%.*s", STR_F(why));
    if (cause)
        err_cause(err, str_c(cause), STR(""), STR(""));
    return -1;
}

/* Describes the excess over the node's capacity, in its unit; nothing when it fits. */
static void compare(struct buf *text, const struct usage *requests, const cJSON *allocatable,
                    const char *name, bool in_milli)
{
    const struct quantity *wanted = usage_get(requests, str_c(name));
    struct quantity have = quantity_from_i64(0, QUANTITY_DECIMAL_SI);

    if (!quantity_parse(json_str(json_get(allocatable, name)), &have))
        have = quantity_from_i64(0, QUANTITY_DECIMAL_SI);
    if (!wanted || quantity_cmp(*wanted, have) <= 0)
        return;
    buf_printf(text, "%s%s, requested: %lld, allocatable: %lld", text->n ? "; " : "", name,
               (long long)(in_milli ? quantity_milli(*wanted) : quantity_units(*wanted)),
               (long long)(in_milli ? quantity_milli(have) : quantity_units(have)));
}

static int check_node(const struct admission_call *c, const cJSON *pod, const cJSON *node,
                      struct err *err)
{
    struct str os = json_str(json_get(json_path(node, "metadata.labels"), "kubernetes.io/os"));
    struct str name = json_str_at(node, "metadata.name"), why;
    const cJSON *allocatable = json_path(node, "status.allocatable");
    struct usage requests = {.arena = c->arena};
    struct buf text = BUF_INIT(4096);

    if (os.p && !str_eqc(os, "linux"))
        return refuse(
            c, "UnsupportedPlatform",
            arena_printf(c->arena,
                         "pod resize is only supported on linux nodes, node \"%.*s\" is \"%.*s\"",
                         STR_F(name), STR_F(os)),
            err);
    usage_of_pod(&requests, json_get(pod, "spec"), "requests");
    compare(&text, &requests, allocatable, "cpu", true);
    compare(&text, &requests, allocatable, "memory", false);
    why = arena_printf(c->arena, "node didn't have enough allocatable resources: %.*s",
                       STR_F(buf_str(&text)));
    int failed = text.n ? refuse(c, "NodeCapacity", why, err) : 0;
    buf_fini(&text);
    return failed;
}

int pod_resize_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    struct str node = json_str_at(object, "spec.nodeName");
    const struct store_object *o;

    if (!object || !old || !plugin_admits(c, "", "pods") || !str_eqc(c->subresource, "resize") ||
        !node.n)
        return 0;
    if (json_equal(json_get(object, "spec"), json_get(old, "spec")))
        return 0;
    o = plugin_stored(c, "", "nodes", STR(""), node);
    if (!o)
        return refuse(c, NULL, arena_printf(c->arena, "node \"%.*s\" not found", STR_F(node)), err);
    return check_node(c, object, vapi_tree(c->arena, o), err);
}
