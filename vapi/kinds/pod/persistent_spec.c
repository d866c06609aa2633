/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of PersistentVolumes, which VolumeAttachments may hold inline. Source:
 * ValidatePersistentVolumeSpec in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>
#include <string.h>

#define SECRET(path) WITHIN(path, NAME("name", DNS1123_SUBDOMAIN), NAME("namespace", DNS1123_LABEL))

static const struct rule CSI[] = {
    DRIVER_NAME("driver"),
    GIVEN("volumeHandle"),
    SECRET("controllerPublishSecretRef"),
    SECRET("controllerExpandSecretRef"),
    SECRET("nodePublishSecretRef"),
    SECRET("nodeExpandSecretRef"),
};

static void check_csi(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    rules_check_value(e, p, source, NULL, CSI, COUNT(CSI));
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
            validate_legacy_volume(e, p, SOURCES[i].name, source, true, name);
        if (SOURCES[i].check == check_local && !given(spec, "nodeAffinity"))
            field_required(e, FIELD(p, "nodeAffinity"), "Local volume requires node affinity");
    }
    if (!n)
        field_required(e, p, "must specify a volume type");
}

/* ---- specs ---- */

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
    else
        check_rule(e, FIELD(p, "volumeAttributesClassName"), NAME_DNS1123_SUBDOMAIN,
                   json_str(class_));
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

static void check_volume_origin(const struct check *c)
{
    const struct str *name = c->context;

    check_origin(c->e, c->at, c->value, *name);
}

/* context: the name of the volume. */
static const struct rule SPEC_RULES[] = {
    CHECK_ALWAYS(NULL, check_modes),
    CHECK_ALWAYS("capacity", check_capacity),
    ENUM_IF_SET("persistentVolumeReclaimPolicy", ENUM_PERSISTENT_VOLUME_RECLAIM_POLICY),
    WITHIN("nodeAffinity", REQUIRED("required", "must specify required node constraints"),
           CHECK("required", validate_node_selector)),
    CALL(NULL, check_volume_origin),
    NAME_IF_SET("storageClassName", DNS1123_SUBDOMAIN),
    ENUM_IF_GIVEN("volumeMode", ENUM_PERSISTENT_VOLUME_MODE),
    CHECK_ALWAYS(NULL, check_attributes_class),
};

void validate_persistent_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                              struct str name)
{
    rules_check_value(e, p, spec, &name, SPEC_RULES, COUNT(SPEC_RULES));
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
