/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes of a tenant, of the CSI drivers that the admin listed. A handle leads to the
 * data of whoever owns it, so that only listed ones go down, and only for a claim of the tenant's:
 * without claimRef any claim of the host could bind the volume. Must never name a Secret of others,
 * nor have storage deleted. */

#include <sublet/json_build.h>
#include <sublet/quantity.h>
#include <sublet/translate_volume.h>

#include "kind_impl.h"

#define UNLISTED "is not listed in sync.toHost.persistentVolumes for this driver"

static const struct config_driver *driver_of(const struct translate_tenant *t, const cJSON *volume)
{
    return config_driver_of(t->config->to_host, json_str_at(volume, "spec.csi.driver"));
}

/* What a volume may say: nothing, of a driver that is not listed. */
static struct config_driver may_say(const struct kind_call *c)
{
    const struct config_driver *listed = driver_of(c->tenant, c->object);

    return listed ? *listed : (struct config_driver){0};
}

bool translate_volume_is_listed(const struct translate_tenant *t, const cJSON *volume)
{
    return t->config->to_host->enabled[DOWN_VOLUMES] && driver_of(t, volume);
}

static bool goes_down(const struct kind_call *c)
{
    return driver_of(c->tenant, c->object);
}

/* ---- the source ---- */

static int handle_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct config_driver listed = may_say(c);

    if (!config_choice_allows(&listed.handles, json_str(value)))
        return translate_kind_refuse(c, UNLISTED);
    *ret = json_copy(c->arena, value);
    return 0;
}

/* Nodes run a program that is named by it. */
static int file_system_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    static const char *const known[] = {"", "ext3", "ext4", "xfs", "btrfs"};

    for (size_t i = 0; i < COUNT(known); i++) {
        if (!str_eqc(json_str(value), known[i]))
            continue;
        *ret = json_copy(c->arena, value);
        return 0;
    }
    return translate_kind_refuse(c, "is not one of ext3, ext4, xfs, btrfs");
}

static int check_attribute(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    (void)ret;
    return translate_kind_check_choice(c, value, may_say(c).attributes, UNLISTED);
}

/* One of the tenant's, which goes down because the volume names it. */
static int secret_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str ns = json_str(json_get(value, "namespace"));
    struct str name = json_str(json_get(value, "name"));

    if (!ns.n || !name.n || str_find(name, '/') < name.n)
        return translate_kind_refuse(c, "needs name and namespace of a Secret of this cluster");
    *ret = json_object(c->arena, JSON("name", translate_kind_reference(c, "Secret", ns, name)),
                       JSON("namespace", c->tenant->host_namespace));
    return 0;
}

/* ---- what is beside it ---- */

static int check_option(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    (void)ret;
    return translate_kind_check_listed(c, value, may_say(c).mount_options, UNLISTED);
}

/* What the host did not make for the tenant it does not delete, either. */
static int reclaim_policy_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    if (!str_eqc(json_str(value), "Retain"))
        return translate_kind_refuse(c, "can only be Retain on the host");
    *ret = json_copy(c->arena, value);
    return 0;
}

static int topology_key_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    return translate_kind_topology_key(c, value, may_say(c).topology_keys, ret);
}

static int claim_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str ns = json_str(json_get(value, "namespace"));
    struct str name = json_str(json_get(value, "name"));
    char host_name[64];

    if (!ns.n || !name.n)
        return 0;
    translate_name(c->tenant, ns, name, host_name);
    *ret = json_object(c->arena, JSON("apiVersion", STR("v1")),
                       JSON("kind", STR("PersistentVolumeClaim")),
                       JSON("namespace", c->tenant->host_namespace), JSON("name", host_name));
    return 0;
}

#define TERM "spec.nodeAffinity.required.nodeSelectorTerms[*]"

static const struct kind_rule DOWN[] = {
    {"spec.csi.driver", KIND_KEEP},
    {"spec.csi.volumeHandle", KIND_CALL, .call = handle_down},
    {"spec.csi.readOnly", KIND_KEEP},
    {"spec.csi.fsType", KIND_CALL, .call = file_system_down},
    {"spec.csi.volumeAttributes.*", KIND_CHECK, .call = check_attribute},
    {"spec.csi.volumeAttributes.*", KIND_KEEP},
    {"spec.csi.controllerPublishSecretRef", KIND_CALL, .call = secret_down},
    {"spec.csi.controllerExpandSecretRef", KIND_CALL, .call = secret_down},
    {"spec.csi.nodeStageSecretRef", KIND_CALL, .call = secret_down},
    {"spec.csi.nodePublishSecretRef", KIND_CALL, .call = secret_down},
    {"spec.csi.nodeExpandSecretRef", KIND_CALL, .call = secret_down},
    {"spec.capacity.storage", KIND_KEEP},
    {"spec.accessModes", KIND_KEEP},
    {"spec.volumeMode", KIND_KEEP},
    {"spec.persistentVolumeReclaimPolicy", KIND_CALL, .call = reclaim_policy_down},
    {"spec.mountOptions[*]", KIND_CHECK, .call = check_option},
    {"spec.mountOptions[*]", KIND_KEEP},
    {TERM ".matchExpressions[*].key", KIND_CALL, .call = topology_key_down},
    {TERM ".matchExpressions[*].operator", KIND_KEEP},
    {TERM ".matchExpressions[*].values", KIND_KEEP},
    {TERM ".matchFields", KIND_REFUSE, "names nodes of the host"},
    {"spec.volumeAttributesClassName", KIND_REFUSE, "is not supported by this version"},
    {"spec.claimRef", KIND_CALL, .call = claim_down},
    {0},
};

/* message: names of the host are written back in it. */
static const struct kind_rule UP[] = {
    {"status.phase", KIND_KEEP},
    {"status.reason", KIND_KEEP},
    {"status.message", KIND_KEEP},
    {"status.lastPhaseTransitionTime", KIND_KEEP},
    {0},
};

const struct kind_rules TRANSLATE_RULES_VOLUME = {.api_version = "v1",
                                                  .kind = "PersistentVolume",
                                                  .group = "",
                                                  .plural = "persistentvolumes",
                                                  .down = DOWN,
                                                  .up = UP,
                                                  .in_cluster = true,
                                                  .needs = "spec.claimRef",
                                                  .annotations = translate_kind_no_annotations,
                                                  .goes_down = goes_down};

/* ---- which are refused when they are created ---- */

/* Members of a spec that are no source. */
static bool is_source(const cJSON *member)
{
    static const char *const others[] = {
        "accessModes",      "capacity",     "claimRef",
        "mountOptions",     "nodeAffinity", "persistentVolumeReclaimPolicy",
        "storageClassName", "volumeMode",   "volumeAttributesClassName"};
    bool other = json_is_null(member);

    for (size_t i = 0; i < COUNT(others); i++)
        other |= str_eqc(json_key(member), others[i]);
    return !other;
}

int translate_check_volume(const struct translate_tenant *t, const cJSON *volume, struct err *err)
{
    struct str name = json_str_at(volume, "metadata.name");

    json_each(member, json_get(volume, "spec"))
    {
        if (is_source(member) && !str_eqc(json_key(member), "csi"))
            return err_forbidden(err, STR_NULL, STR("persistentvolumes"), name,
                                 "spec.%s: only volumes of the CSI drivers in "
                                 "sync.toHost.persistentVolumes are accepted",
                                 member->string);
    }
    if (driver_of(t, volume))
        return 0;
    return err_forbidden(err, STR_NULL, STR("persistentvolumes"), name,
                         "spec.csi.driver: \"%.*s\" is not a driver in "
                         "sync.toHost.persistentVolumes",
                         STR_F(str_sub(json_str_at(volume, "spec.csi.driver"), 0, 253)));
}

/* ---- the claim of a volume ---- */

static bool is_too_small(const cJSON *volume, const cJSON *claim)
{
    struct quantity has, wants;

    return !quantity_parse(json_str_at(volume, "spec.capacity.storage"), &has) ||
           !quantity_parse(json_str_at(claim, "spec.resources.requests.storage"), &wants) ||
           quantity_cmp(has, wants) < 0;
}

static bool has_mode(const cJSON *modes, const cJSON *wanted)
{
    json_each(mode, modes)
    {
        if (json_equal(mode, wanted))
            return true;
    }
    return false;
}

const char *translate_volume_mismatch(const cJSON *volume, const cJSON *claim)
{
    struct str mode = json_str_at(claim, "spec.volumeMode");

    if (is_too_small(volume, claim))
        return "requested PV is too small";
    if (!str_eq(translate_pvc_class(volume), translate_pvc_class(claim)))
        return "storageClassName does not match";
    if (mode.n && !str_eq(json_str_at(volume, "spec.volumeMode"), mode))
        return "incompatible volumeMode";
    json_each(wanted, json_path(claim, "spec.accessModes"))
    {
        if (!has_mode(json_path(volume, "spec.accessModes"), wanted))
            return "incompatible accessMode";
    }
    return NULL;
}
