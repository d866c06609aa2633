/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod refers to and is not there: its containers wait, with the words of a kubelet. Must
 * look at what is committed only; whoever makes the missing object wakes the pod. Source:
 * k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, pkg/volume. */
#include "pod_status.h"

struct lookup {
    struct reconcile *run;
    const cJSON *pod;
    struct blockage *blockage;
};

static bool has_key(const cJSON *object, struct str key)
{
    return json_get_str(json_get(object, "data"), key) ||
           json_get_str(json_get(object, "binaryData"), key);
}

static cJSON *find(const struct lookup *l, const char *plural, struct str name)
{
    return reconcile_get(l->run, reconcile_resource(l->run, "", plural), meta_ns(l->pod), name);
}

/* --- environment --- */

static void block_env(struct lookup *l, struct str message)
{
    struct arena *a = reconcile_arena(l->run);

    *l->blockage = (struct blockage){"CreateContainerConfigError", message, "Failed",
                                     arena_printf(a, "Error: %.*s", STR_F(message))};
}

static void check_source(struct lookup *l, const cJSON *ref, const char *plural, const char *kind,
                         const char *word, bool needs_key)
{
    struct arena *a = reconcile_arena(l->run);
    struct str name = json_str_at(ref, "name"), key = json_str_at(ref, "key");
    const cJSON *object;

    if (!ref || l->blockage->reason || json_true(json_get(ref, "optional")))
        return;
    object = find(l, plural, name);
    if (!object)
        block_env(l, arena_printf(a, "%s \"%.*s\" not found", word, STR_F(name)));
    else if (needs_key && !has_key(object, key))
        block_env(l, arena_printf(a, "couldn't find key %.*s in %s %.*s/%.*s", STR_F(key), kind,
                                  STR_F(meta_ns(l->pod)), STR_F(name)));
}

static void check_env(struct lookup *l, const cJSON *containers)
{
    json_each(c, containers)
    {
        json_each(e, json_get(c, "envFrom"))
        {
            check_source(l, json_get(e, "configMapRef"), "configmaps", "ConfigMap", "configmap",
                         false);
            check_source(l, json_get(e, "secretRef"), "secrets", "Secret", "secret", false);
        }
        json_each(e, json_get(c, "env"))
        {
            check_source(l, json_path(e, "valueFrom.configMapKeyRef"), "configmaps", "ConfigMap",
                         "configmap", true);
            check_source(l, json_path(e, "valueFrom.secretKeyRef"), "secrets", "Secret", "secret",
                         true);
        }
    }
}

/* --- volumes --- */

static void block_mount(struct lookup *l, struct str volume, struct str why)
{
    *l->blockage = (struct blockage){
        "ContainerCreating", STR_NULL, "FailedMount",
        arena_printf(reconcile_arena(l->run), "MountVolume.SetUp failed for volume \"%.*s\" : %.*s",
                     STR_F(volume), STR_F(why))};
}

static void check_mount(struct lookup *l, struct str volume, const cJSON *source,
                        const char *name_key, const char *plural, const char *word)
{
    struct arena *a = reconcile_arena(l->run);
    struct str name = json_str_at(source, name_key);

    if (!source || l->blockage->reason || json_true(json_get(source, "optional")))
        return;
    const cJSON *object = find(l, plural, name);
    if (!object) {
        block_mount(l, volume, arena_printf(a, "%s \"%.*s\" not found", word, STR_F(name)));
        return;
    }
    json_each(item, json_get(source, "items"))
    {
        if (!has_key(object, json_str_at(item, "key")))
            block_mount(l, volume,
                        arena_printf(a, "references non-existent %s key: %.*s",
                                     str_eqc(str_c(word), "secret") ? "secret" : "config",
                                     STR_F(json_str_at(item, "key"))));
    }
}

static void check_claim(struct lookup *l, const cJSON *volume)
{
    struct str name = json_str_at(volume, "persistentVolumeClaim.claimName");
    const cJSON *claim;

    if (json_get(volume, "ephemeral"))
        name = arena_printf(reconcile_arena(l->run), "%.*s-%.*s", STR_F(meta_name(l->pod)),
                            STR_F(json_str_at(volume, "name")));
    if (!name.n || l->blockage->reason)
        return;
    claim = find(l, "persistentvolumeclaims", name);
    if (!claim)
        block_mount(l, json_str_at(volume, "name"),
                    arena_printf(reconcile_arena(l->run),
                                 "persistentvolumeclaim \"%.*s\" not found", STR_F(name)));
    else if (!str_eqc(json_str_at(claim, "status.phase"), "Bound"))
        block_mount(l, json_str_at(volume, "name"), STR("PVC is not bound"));
}

static void check_volume(struct lookup *l, const cJSON *volume)
{
    struct str name = json_str_at(volume, "name");

    check_mount(l, name, json_get(volume, "configMap"), "name", "configmaps", "configmap");
    check_mount(l, name, json_get(volume, "secret"), "secretName", "secrets", "secret");
    json_each(s, json_path(volume, "projected.sources"))
    {
        check_mount(l, name, json_get(s, "configMap"), "name", "configmaps", "configmap");
        check_mount(l, name, json_get(s, "secret"), "name", "secrets", "secret");
    }
    check_claim(l, volume);
}

void embedded_pod_refs_check(struct reconcile *r, const cJSON *pod, struct blockage *ret)
{
    struct lookup l = {r, pod, ret};

    *ret = (struct blockage){.reason = NULL};
    json_each(v, json_path(pod, "spec.volumes"))
    {
        if (!ret->reason)
            check_volume(&l, v);
    }
    check_env(&l, json_path(pod, "spec.initContainers"));
    check_env(&l, json_path(pod, "spec.containers"));
}
