/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes: capacity, one source, what may change. Must never look at the source's far
 * end. Source: ValidatePersistentVolume in pkg/apis/core/validation/validation.go. */
#include "validate.h"

#include <sublet/quantity.h>

#include <string.h>

/* ---- sources only volumes have, or have with more members ---- */

static void check_secret(struct field_errors *e, const struct field_path *p, const cJSON *source,
                         const char *name)
{
    const cJSON *secret = given(source, name);
    struct str secret_name = json_str(json_get(secret, "name"));
    struct str ns = json_str(json_get(secret, "namespace"));
    AT(at, p, name);

    if (!secret)
        return;
    if (check_given(e, FIELD(at, "name"), secret_name))
        check_rule(e, FIELD(at, "name"), NAME_DNS1123_SUBDOMAIN, secret_name);
    if (check_given(e, FIELD(at, "namespace"), ns))
        check_rule(e, FIELD(at, "namespace"), NAME_DNS1123_LABEL, ns);
}

static void check_csi(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    static const char *const secrets[] = {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                          "nodePublishSecretRef", "nodeExpandSecretRef"};

    check_driver_name(e, FIELD(p, "driver"), json_str(json_get(source, "driver")));
    check_given(e, FIELD(p, "volumeHandle"), json_str(json_get(source, "volumeHandle")));
    for (size_t i = 0; i < COUNT(secrets); i++)
        check_secret(e, p, source, secrets[i]);
}

static void check_local(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct str path = json_str(json_get(source, "path"));

    if (check_given(e, FIELD(p, "path"), path))
        check_no_backsteps(e, FIELD(p, "path"), path);
}

static const struct {
    const char *name;
    void (*check)(struct field_errors *e, const struct field_path *p, const cJSON *source);
    const char *shown; /* in paths, when upstream writes it otherwise */
} SOURCES[] = {
    {"hostPath", validate_host_path, NULL},
    {"gcePersistentDisk", NULL, NULL},
    {"awsElasticBlockStore", NULL, NULL},
    {"glusterfs", NULL, NULL},
    {"flocker", NULL, NULL},
    {"nfs", validate_nfs, NULL},
    {"rbd", NULL, NULL},
    {"quobyte", NULL, NULL},
    {"cephfs", NULL, "cephFS"},
    {"iscsi", NULL, NULL},
    {"cinder", NULL, NULL},
    {"fc", NULL, NULL},
    {"flexVolume", NULL, NULL},
    {"azureFile", NULL, NULL},
    {"vsphereVolume", NULL, NULL},
    {"photonPersistentDisk", NULL, NULL},
    {"portworxVolume", NULL, NULL},
    {"azureDisk", NULL, NULL},
    {"scaleIO", NULL, NULL},
    {"local", check_local, NULL},
    {"storageos", NULL, NULL},
    {"csi", check_csi, NULL},
};

static void check_source(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                         struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const cJSON *source = json_get(spec, SOURCES[i].name);

        if (!source)
            continue;
        if (n++ && strcmp(SOURCES[i].name, "flexVolume") != 0) { /* upstream forgets that one */
            field_forbidden(e, FIELD(p, SOURCES[i].shown ? SOURCES[i].shown : SOURCES[i].name),
                            "may not specify more than 1 volume type");
            continue;
        }
        if (SOURCES[i].check)
            SOURCES[i].check(e, FIELD(p, SOURCES[i].name), source);
        else
            validate_old_volume(e, p, SOURCES[i].name, source, true, name);
        if (SOURCES[i].check == check_local && !given(spec, "nodeAffinity"))
            field_required(e, FIELD(p, "nodeAffinity"), "Local volume requires node affinity");
    }
    if (!n)
        field_required(e, p, "must specify a volume type");
}

/* ---- the rest of a spec ---- */

static void check_capacity(struct field_errors *e, const struct field_path *p,
                           const cJSON *capacity)
{
    static const char *const supported[] = {"storage", NULL};

    if (!json_count(capacity))
        field_required(e, p, "");
    if (!json_get(capacity, "storage") || json_count(capacity) > 1)
        field_not_supported_value(e, p, capacity ? capacity : json_new_null(e->arena), supported);
    json_each(amount, capacity)
    {
        const struct field_path *at = FIELD_KEY(p, str_c(amount->string));
        struct quantity q;

        check_claim_amount(e, at, amount);
        if (quantity_parse(json_str(amount), &q) && q.nano <= 0)
            field_invalid(e, at, amount, "must be greater than zero");
    }
}

static bool is_root(struct str path)
{
    for (size_t i = 0; i < path.n; i++) {
        if (path.p[i] != '/' && path.p[i] != '.')
            return false;
    }
    return is_absolute(path);
}

static void check_node_affinity(struct field_errors *e, const struct field_path *p,
                                const cJSON *affinity)
{
    const cJSON *required = given(affinity, "required");

    if (!affinity)
        return;
    if (required)
        validate_node_selector(e, FIELD(p, "required"), required);
    else
        field_required(e, FIELD(p, "required"), "must specify required node constraints");
}

static bool recycles_root(const cJSON *spec)
{
    return json_get(spec, "hostPath") && is_root(json_str_at(spec, "hostPath.path")) &&
           str_eqc(json_str(json_get(spec, "persistentVolumeReclaimPolicy")), "Recycle");
}

static void check_attributes_class(struct field_errors *e, const struct field_path *p,
                                   const cJSON *spec)
{
    const cJSON *class_ = given(spec, "volumeAttributesClassName");

    if (!class_)
        return;
    if (!json_str(class_).n)
        field_required(e, FIELD(p, "volumeAttributesClassName"), "an empty string is disallowed");
    check_class_name(e, FIELD(p, "volumeAttributesClassName"), class_);
    if (!json_get(spec, "csi"))
        field_required(e, FIELD(p, "csi"),
                       "has to be specified when using volumeAttributesClassName");
}

static void check_modes(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    if (!json_count(json_get(spec, "accessModes")))
        field_required(e, FIELD(p, "accessModes"), "");
    check_access_modes(e, FIELD(p, "accessModes"), json_get(spec, "accessModes"));
}

static void check_origin(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                         struct str name)
{
    check_source(e, p, spec, name);
    if (recycles_root(spec))
        field_forbidden(e, FIELD(p, "persistentVolumeReclaimPolicy"),
                        "may not be 'recycle' for a hostPath mount of '/'");
}

static void check_volume_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                              struct str name)
{
    static const char *const policies[] = {"Delete", "Recycle", "Retain", NULL};
    struct str policy = json_str(json_get(spec, "persistentVolumeReclaimPolicy"));

    check_modes(e, p, spec);
    check_capacity(e, FIELD(p, "capacity"), json_get(spec, "capacity"));
    if (policy.n)
        check_enum(e, FIELD(p, "persistentVolumeReclaimPolicy"), policy, policies);
    check_node_affinity(e, FIELD(p, "nodeAffinity"), given(spec, "nodeAffinity"));
    check_origin(e, p, spec, name);
    check_class_name(e, FIELD(p, "storageClassName"), json_get(spec, "storageClassName"));
    check_enum_if(e, FIELD(p, "volumeMode"), given(spec, "volumeMode"), VOLUME_MODES);
    check_attributes_class(e, p, spec);
}

void validate_inline_volume(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char here[] = "may not be specified in the context of inline volumes";
    struct str policy = json_str(json_get(spec, "persistentVolumeReclaimPolicy"));
    const cJSON *mode = given(spec, "volumeMode");

    if (given(spec, "claimRef"))
        field_forbidden(e, FIELD(p, "claimRef"), here);
    if (json_count(json_get(spec, "capacity")))
        field_forbidden(e, FIELD(p, "capacity"), here);
    if (!given(spec, "csi"))
        field_required(e, FIELD(p, "csi"), "has to be specified in the context of inline volumes");
    check_modes(e, p, spec);
    if (policy.n && !str_eqc(policy, "Retain"))
        field_forbidden(e, FIELD(p, "persistentVolumeReclaimPolicy"),
                        "may only be Retain in the context of inline volumes");
    if (given(spec, "nodeAffinity"))
        field_forbidden(e, FIELD(p, "nodeAffinity"), here);
    check_origin(e, p, spec, STR(""));
    if (json_str(json_get(spec, "storageClassName")).n)
        field_forbidden(e, FIELD(p, "storageClassName"), here);
    if (mode && !str_eqc(json_str(mode), "Filesystem"))
        field_forbidden(
            e, FIELD(p, "volumeMode"),
            "may not specify volumeMode other than Filesystem in the context of inline volumes");
    check_attributes_class(e, p, spec);
}

/* ---- changes ---- */

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

    return !one_of(str_c(member->string), others) && !json_is_null(member);
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
        if (!given(before, "controllerExpandSecretRef")) /* may be set later */
            json_remove(now, "controllerExpandSecretRef");
        if (!same_value(now, before))
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

static bool same_affinity(struct arena *a, const cJSON *affinity, const cJSON *before)
{
    cJSON *now = json_copy(a, affinity);
    const cJSON *old = json_at(json_path(before, "required.nodeSelectorTerms"), 0);

    json_each(term, json_path(now, "required.nodeSelectorTerms"))
    {
        restore_keys(a, json_get(term, "matchExpressions"), json_get(old, "matchExpressions"));
        restore_keys(a, json_get(term, "matchFields"), json_get(old, "matchFields"));
        old = old ? old->next : NULL;
    }
    return same_value(now, before);
}

VALIDATES(validate_volume)
{
    const cJSON *spec = json_get(object, "spec"), *before = json_get(old, "spec");
    AT(p, NULL, "spec");

    check_volume_spec(e, p, spec, json_str_at(object, "metadata.name"));
    if (!old)
        return;
    if (!same_source(e->arena, spec, before))
        field_forbidden(e, FIELD(p, "persistentvolumesource"),
                        "spec.persistentvolumesource is immutable after creation\n");
    check_immutable(e, FIELD(NULL, "volumeMode"), json_get(spec, "volumeMode"),
                    json_get(before, "volumeMode"));
    if (given(before, "nodeAffinity") &&
        !same_affinity(e->arena, given(spec, "nodeAffinity"), given(before, "nodeAffinity")))
        field_invalid(e, FIELD(NULL, "nodeAffinity"), given(spec, "nodeAffinity"),
                      IMMUTABLE ", except for updating from beta label to GA");
    if (given(before, "volumeAttributesClassName") && !given(spec, "volumeAttributesClassName"))
        field_forbidden(e, FIELD(p, "volumeAttributesClassName"),
                        "update from non-nil value to nil is forbidden");
}
