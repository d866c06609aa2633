/* SPDX-License-Identifier: Apache-2.0 */
/* Small plug-ins that set cluster-wide defaults: priority, toleration seconds, the classes of
 * claims and ingresses. */
#include "plugins.h"

#include <string.h>

#include <sublet/json_build.h>

#define DEFAULT_STORAGE    "storageclass.kubernetes.io/is-default-class"
#define DEFAULT_INGRESS    "ingressclass.kubernetes.io/is-default-class"
#define TOLERATION_SECONDS 300

/* --- Priority --- */

struct global {
    struct arena *arena;
    cJSON *found;
};

static bool on_class(void *ctx, const struct store_object *o)
{
    struct global *g = ctx;

    if (!str_contains(o->bytes, STR("\"globalDefault\":true")))
        return true;
    cJSON *tree = vapi_tree(g->arena, o);
    int64_t best = json_i64_at(g->found, "value", INT64_MAX);
    if (json_true(json_get(tree, "globalDefault")) && json_i64_at(tree, "value", 0) < best)
        g->found = tree;
    return true;
}

/* A pod's own priority must equal that of its class. */
static int set_priority(const struct admission_call *c, cJSON *spec, const cJSON *class,
                        struct err *err)
{
    struct str given = json_str_at(class, "preemptionPolicy"), own_policy;
    struct str policy = given.n ? given : STR("PreemptLowerPriority");
    int64_t value = json_i64_at(class, "value", 0);
    int64_t own = json_i64_at(spec, "priority", value);

    if (own != value)
        return err_forbidden(err, STR(""), STR("pods"), plugin_shown_name(c->name),
                             "the integer value of priority (%lld) must not be provided in pod "
                             "spec; priority admission controller computed %lld from the given "
                             "PriorityClass name",
                             (long long)own, (long long)value);
    own_policy = json_str_at(spec, "preemptionPolicy");
    if (json_is_string(json_get(spec, "preemptionPolicy")) && !str_eq(own_policy, policy))
        return err_forbidden(err, STR(""), STR("pods"), plugin_shown_name(c->name),
                             "the string value of PreemptionPolicy (%.*s) must not be provided in "
                             "pod spec; priority admission controller computed %.*s from the given "
                             "PriorityClass name",
                             STR_F(own_policy), STR_F(policy));
    json_set_i64(c->arena, spec, "priority", value);
    json_set_str(c->arena, spec, "preemptionPolicy", policy);
    return 0;
}

/* The priority is decided at creation; an update that omits it keeps it. */
static void keep_priority(const struct admission_call *c, cJSON *spec, const cJSON *old)
{
    static const char *const fields[] = {"priority", "preemptionPolicy"};

    for (size_t i = 0; i < COUNT(fields); i++) {
        const cJSON *before = json_get(json_get(old, "spec"), fields[i]);

        if (before && !json_get(spec, fields[i]))
            json_set(c->arena, spec, fields[i], json_copy(c->arena, before));
    }
}

int priority_admit(const struct admission_call *c, cJSON *object, const cJSON *old, struct err *err)
{
    cJSON *spec = json_get(object, "spec");
    struct str name = json_str_at(spec, "priorityClassName");
    struct global g = {.arena = c->arena};
    const struct store_object *o;

    if (c->subresource.n || !plugin_admits(c, "", "pods") || !spec)
        return 0;
    if (!plugin_is_create(c)) {
        keep_priority(c, spec, old);
        return 0;
    }
    if (!name.n) {
        plugin_each_stored(c, "scheduling.k8s.io", "priorityclasses", STR_NULL, on_class, &g);
        if (g.found)
            json_set_str(c->arena, spec, "priorityClassName",
                         json_str_at(g.found, "metadata.name"));
        return set_priority(c, spec, g.found, err);
    }
    o = plugin_stored(c, "scheduling.k8s.io", "priorityclasses", STR(""), name);
    if (!o)
        return err_forbidden(err, STR(""), STR("pods"), plugin_shown_name(c->name),
                             "no PriorityClass with name %.*s was found", STR_F(name));
    return set_priority(c, spec, vapi_tree(c->arena, o), err);
}

/* The control plane's own pods use these classes. */
static int keep_system_class(const struct admission_call *c, const cJSON *class, struct err *err)
{
    static const char *const names[] = {"system-node-critical", "system-cluster-critical"};
    struct str name = json_str_at(class, "metadata.name");

    for (size_t i = 0; i < COUNT(names); i++) {
        if (str_eqc(name, names[i]))
            return err_forbidden(err, c->resource->group, c->resource->plural, name,
                                 "this is a system priority class and cannot be deleted");
    }
    return 0;
}

/* There is at most one default, and the system classes cannot be deleted. */
int priority_class_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                            struct err *err)
{
    struct global g = {.arena = c->arena};
    struct str other;

    if (c->subresource.n || !plugin_admits(c, "scheduling.k8s.io", "priorityclasses"))
        return 0;
    if (!object)
        return keep_system_class(c, old, err);
    if (!json_true(json_get(object, "globalDefault")))
        return 0;
    plugin_each_stored(c, "scheduling.k8s.io", "priorityclasses", STR_NULL, on_class, &g);
    other = json_str_at(g.found, "metadata.name");
    if (!g.found || (!plugin_is_create(c) && str_eq(other, json_str_at(object, "metadata.name"))))
        return 0;
    return err_forbidden(
        err, c->resource->group, c->resource->plural, plugin_shown_name(c->name),
        "PriorityClass %.*s is already marked as default. Only one default can exist",
        STR_F(other));
}

/* --- DefaultTolerationSeconds --- */

static bool tolerates(const cJSON *tolerations, const char *key)
{
    json_each(t, tolerations)
    {
        struct str own = json_str_at(t, "key"), effect = json_str_at(t, "effect");

        if ((!own.n || str_eqc(own, key)) && (!effect.n || str_eqc(effect, "NoExecute")))
            return true;
    }
    return false;
}

int toleration_seconds_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                             struct err *err)
{
    static const char *const keys[] = {"node.kubernetes.io/not-ready",
                                       "node.kubernetes.io/unreachable"};
    cJSON *spec = json_get(object, "spec"), *list = json_get(spec, "tolerations");

    (void)old;
    (void)err;
    /* Updates, too: an apply of a list without them must not remove them. */
    if (c->subresource.n || !plugin_admits(c, "", "pods") || !spec)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        if (tolerates(list, keys[i]))
            continue;
        if (!json_is_array(list))
            list = json_set(c->arena, spec, "tolerations", json_new_array(c->arena));
        json_append(list, json_object(c->arena, JSON("key", keys[i]), JSON("operator", "Exists"),
                                      JSON("effect", "NoExecute"),
                                      JSON_I64("tolerationSeconds", TOLERATION_SECONDS)));
    }
    return 0;
}

/* --- DefaultStorageClass, DefaultIngressClass --- */

struct newest {
    struct arena *arena;
    const char *mark; /* the annotation that marks a default */
    struct str name, created;
};

/* The newest default wins, then the lesser name. */
static bool on_default(void *ctx, const struct store_object *o)
{
    struct newest *best = ctx;

    if (!str_contains(o->bytes, str_c(best->mark)))
        return true;
    cJSON *tree = vapi_tree(best->arena, o);
    const cJSON *mark = json_get(json_path(tree, "metadata.annotations"), best->mark);
    struct str created = json_str_at(tree, "metadata.creationTimestamp");
    int order = best->name.n ? str_cmp(created, best->created) : 1;
    if (str_eqc(json_str(mark), "true") &&
        (order > 0 || (order == 0 && str_cmp(o->name, best->name) < 0))) {
        best->name = arena_str(best->arena, o->name);
        best->created = created;
    }
    return true;
}

int storage_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    struct newest best = {.arena = c->arena, .mark = DEFAULT_STORAGE};
    cJSON *spec = json_get(object, "spec");

    (void)old;
    (void)err;
    if (!plugin_is_create(c) || c->subresource.n ||
        !plugin_admits(c, "", "persistentvolumeclaims") || json_get(spec, "storageClassName"))
        return 0;
    if (json_get(json_path(object, "metadata.annotations"),
                 "volume.beta.kubernetes.io/storage-class"))
        return 0;
    plugin_each_stored(c, "storage.k8s.io", "storageclasses", STR_NULL, on_default, &best);
    if (best.name.n && spec)
        json_set_str(c->arena, spec, "storageClassName", best.name);
    return 0;
}

int ingress_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    struct newest best = {.arena = c->arena, .mark = DEFAULT_INGRESS};

    (void)old;
    (void)err;
    if (!plugin_is_create(c) || c->subresource.n ||
        !plugin_admits(c, "networking.k8s.io", "ingresses") ||
        json_path(object, "spec.ingressClassName") ||
        json_get(json_path(object, "metadata.annotations"), "kubernetes.io/ingress.class"))
        return 0;
    plugin_each_stored(c, "networking.k8s.io", "ingressclasses", STR_NULL, on_default, &best);
    if (best.name.n)
        json_set_str(c->arena, json_ensure_object(c->arena, object, "spec"), "ingressClassName",
                     best.name);
    return 0;
}
