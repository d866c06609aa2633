/* SPDX-License-Identifier: Apache-2.0 */
/* Small plug-ins that fill in what the cluster decides: priority, toleration seconds, storage
 * class. */
#include "plugins.h"

#include <string.h>

#define SYSTEM_PREFIX      "system-"
#define DEFAULT_CLASS      "storageclass.kubernetes.io/is-default-class"
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

static void set_priority(struct arena *a, cJSON *spec, const cJSON *class)
{
    struct str policy = json_str_at(class, "preemptionPolicy");

    json_set_i64(a, spec, "priority", json_i64_at(class, "value", 0));
    if (!json_get(spec, "preemptionPolicy"))
        json_set_str(a, spec, "preemptionPolicy", policy.n ? policy : STR("PreemptLowerPriority"));
}

int priority_admit(const struct admission_call *c, cJSON *object, const cJSON *old, struct err *err)
{
    cJSON *spec = json_get(object, "spec");
    struct str name = json_str_at(spec, "priorityClassName");
    struct str pod = json_str_at(object, "metadata.name");

    (void)old;
    if (!is_new_pod(c) || !spec)
        return 0;
    if (!name.n) {
        struct global g = {.arena = c->arena};

        each_stored(c, "scheduling.k8s.io", "priorityclasses", STR_NULL, on_class, &g);
        if (g.found)
            json_set_str(c->arena, spec, "priorityClassName",
                         json_str_at(g.found, "metadata.name"));
        set_priority(c->arena, spec, g.found);
        return 0;
    }
    if (str_has_prefix(name, STR(SYSTEM_PREFIX)) && !str_eqc(c->ns, "kube-system"))
        return err_forbidden(err, STR(""), STR("pods"), pod,
                             "pods with %.*s priorityClass is not permitted in %.*s namespace",
                             STR_F(name), STR_F(c->ns));
    const struct store_object *o = stored(c, "scheduling.k8s.io", "priorityclasses", STR(""), name);
    if (!o)
        return err_forbidden(err, STR(""), STR("pods"), pod,
                             "no PriorityClass with name %.*s was found", STR_F(name));
    set_priority(c->arena, spec, vapi_tree(c->arena, o));
    return 0;
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
    /* An update, too: an apply of a list without them must not seem to take them off. */
    if (c->subresource.n || !admits(c, "", "pods") || !spec)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        if (tolerates(list, keys[i]))
            continue;
        if (!json_is_array(list))
            list = json_set(c->arena, spec, "tolerations", json_new_array(c->arena));
        cJSON *t = json_append(list, json_new_object(c->arena));
        json_set_str(c->arena, t, "key", str_c(keys[i]));
        json_set_str(c->arena, t, "operator", STR("Exists"));
        json_set_str(c->arena, t, "effect", STR("NoExecute"));
        json_set_i64(c->arena, t, "tolerationSeconds", TOLERATION_SECONDS);
    }
    return 0;
}

/* --- DefaultStorageClass --- */

struct newest {
    struct arena *arena;
    struct str name, created;
};

/* The newest default wins, then the lesser name. */
static bool on_storage_class(void *ctx, const struct store_object *o)
{
    struct newest *best = ctx;

    if (!str_contains(o->bytes, STR(DEFAULT_CLASS)))
        return true;
    cJSON *tree = vapi_tree(best->arena, o);
    const cJSON *mark = json_get(json_path(tree, "metadata.annotations"), DEFAULT_CLASS);
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
    struct newest best = {.arena = c->arena};
    cJSON *spec = json_get(object, "spec");

    (void)old;
    (void)err;
    if (!is_create(c) || c->subresource.n || !admits(c, "", "persistentvolumeclaims") ||
        json_get(spec, "storageClassName"))
        return 0;
    if (json_get(json_path(object, "metadata.annotations"),
                 "volume.beta.kubernetes.io/storage-class"))
        return 0;
    each_stored(c, "storage.k8s.io", "storageclasses", STR_NULL, on_storage_class, &best);
    if (best.name.n && spec)
        json_set_str(c->arena, spec, "storageClassName", best.name);
    return 0;
}
