/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes: capacity, one source, what may change. Must never look at the source's far
 * end. Source: ValidatePersistentVolume in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "volume_cells.h"

#include <string.h>

static const struct default_rule VOLUME[] = {
    SET_TEXT_Z("status+.phase", "Pending"),
    SET_TEXT_Z("spec.persistentVolumeReclaimPolicy", "Retain"),
    SET_TEXT("spec.volumeMode", "Filesystem"),
    SET_BY("spec.capacity", defaults_resource_list),
    SET_BY("spec", defaults_volume_source),
};

static void volume_prepare_create(struct arena *a, cJSON *volume)
{
    defaults_set_status(a, volume, "{\"phase\":\"Pending\"}");
    json_set_str(a, json_get(volume, "status"), "lastPhaseTransitionTime",
                 json_str_at(volume, "metadata.creationTimestamp"));
}

/* A phase that stays has come when it came. */
static void volume_prepare_status(struct arena *a, cJSON *volume, const cJSON *old)
{
    if (str_eq(json_str_at(volume, "status.phase"), json_str_at(old, "status.phase")) &&
        !json_str_at(volume, "status.lastPhaseTransitionTime").n)
        defaults_keep_old(a, volume, old, "status.lastPhaseTransitionTime");
}

static bool is_source(const cJSON *member)
{
    static const char *const others[] = {"accessModes",
                                         "capacity",
                                         "claimRef",
                                         "mountOptions",
                                         "nodeAffinity",
                                         "persistentVolumeReclaimPolicy",
                                         "storageClassName",
                                         "volumeMode",
                                         "volumeAttributesClassName",
                                         NULL};

    return !kinds_one_of(str_c(member->string), others) && !json_is_null(member);
}

static bool same_source(struct arena *a, const cJSON *spec, const cJSON *old)
{
    size_t n = 0;

    json_each(member, spec)
    {
        const cJSON *before = json_get(old, member->string);
        cJSON *now;

        if (!is_source(member))
            continue;
        n++;
        now = json_copy(a, member);
        if (!kinds_given(before, "controllerExpandSecretRef")) /* may be set later */
            json_remove(now, "controllerExpandSecretRef");
        if (!kinds_same_value(now, before))
            return false;
    }
    json_each(member, old) n -= is_source(member);
    return n == 0;
}

/* The labels of nodes that left beta, old name and new. */
static struct str stable_label(struct str label)
{
    static const char *const renamed[][2] = {
        {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
        {"beta.kubernetes.io/os", "kubernetes.io/os"},
        {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
        {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"},
    };

    for (size_t i = 0; i < COUNT(renamed); i++) {
        if (str_eqc(label, renamed[i][0]))
            return str_c(renamed[i][1]);
    }
    return STR("");
}

/* Gives the requirements of a term, pair by pair, the old keys where only such a name is new. A key
 * that is gone is taken for one too, as upstream's look into its table does. */
static void restore_keys(struct arena *a, cJSON *now, const cJSON *before)
{
    const cJSON *old = json_at(before, 0);

    json_each(requirement, now)
    {
        struct str was = json_str_at(old, "key"), is = json_str_at(requirement, "key");

        if (old && !str_eq(is, was) && str_eq(is, stable_label(was)))
            json_set_str(a, requirement, "key", was);
        old = old ? old->next : NULL;
    }
}

static void check_same_source(const struct check *c)
{
    if (!same_source(c->e->arena, c->value, c->old))
        field_forbidden(c->e, FIELD(c->at, "persistentvolumesource"),
                        "spec.persistentvolumesource is immutable after creation\n");
    check_immutable(c->e, FIELD(NULL, "volumeMode"), json_get(c->value, "volumeMode"),
                    json_get(c->old, "volumeMode"));
}

static void check_same_affinity(const struct check *c)
{
    struct arena *a = c->e->arena;
    const cJSON *old = json_at(json_path(c->old, "required.nodeSelectorTerms"), 0);
    cJSON *now;

    if (!c->old)
        return;
    now = json_copy(a, c->value);
    json_each(term, json_path(now, "required.nodeSelectorTerms"))
    {
        restore_keys(a, json_get(term, "matchExpressions"), json_get(old, "matchExpressions"));
        restore_keys(a, json_get(term, "matchFields"), json_get(old, "matchFields"));
        old = old ? old->next : NULL;
    }
    if (!kinds_same_value(now, c->old))
        field_invalid(c->e, FIELD(NULL, "nodeAffinity"), c->value,
                      IMMUTABLE ", except for updating from beta label to GA");
}

static void check_class_kept(const struct check *c)
{
    if (c->old && !c->value)
        field_forbidden(c->e, c->at, "update from non-nil value to nil is forbidden");
}

static const struct rule VOLUME_RULES[] = {
    CALL("spec", validate_persistent_spec),
    ON_UPDATE(CALL("spec", check_same_source), CALL("spec.nodeAffinity", check_same_affinity),
              CALL("spec.volumeAttributesClassName", check_class_kept)),
};

static WARNS(warn_persistent_volume)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");
    WARNER(w);

    if (str_eqc(json_str(json_get(spec, "persistentVolumeReclaimPolicy")), "Recycle"))
        warn_at(
            &w, FIELD(p, "persistentVolumeReclaimPolicy"),
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use "
            "dynamic provisioning.");
    warn_node_terms(&w, FIELD(FIELD(p, "nodeAffinity"), "required"),
                    json_path(spec, "nodeAffinity.required"));
    warn_volume_source(&w, p, spec, false);
}

CELL(cell_claim)
{
    cell_pair(r, json_path(r->object, "spec.claimRef"), "namespace", "name", "");
}

/* ---- the kind ---- */

const struct kind KIND_PERSISTENT_VOLUME = {
    RESOURCE("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume"),
    .resource.short_names = NAMES("pv"),
    .resource.flags = RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Capacity", "string", .cell = show_text, .path = "spec.capacity.storage",
             .otherwise = "0"},
            {"Access Modes", "string", .cell = cell_modes, .path = "spec.accessModes"},
            {"Reclaim Policy", "string", .cell = show_text,
             .path = "spec.persistentVolumeReclaimPolicy"},
            {"Status", "string", .cell = cell_phase}, {"Claim", "string", .cell = cell_claim},
            {"StorageClass", "string", .cell = cell_class},
            {"VolumeAttributesClass", "string", .cell = show_text,
             .path = "spec.volumeAttributesClassName", .otherwise = "<unset>"},
            {"Reason", "string", .cell = show_text, .path = "status.reason"},
            {"Age", "string", .cell = show_age},
            {"VolumeMode", "string", .priority = 1, .cell = show_text, .path = "spec.volumeMode",
             .otherwise = "<unset>"}),
    SUBRESOURCES(STATUS_OF("PersistentVolume")),
    .default_rules = DEFAULTS(VOLUME),
    .prepare_create = volume_prepare_create,
    .prepare_status = volume_prepare_status,
    .rules = RULES(VOLUME_RULES),
    .warnings = warn_persistent_volume,
};
