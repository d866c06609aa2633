/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of PersistentVolumes, which VolumeAttachments may hold inline. Source:
 * ValidatePersistentVolumeSpec in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>
#include <string.h>

#define SECRET(path) WITHIN(path, NAME("name", DNS1123_SUBDOMAIN), NAME("namespace", DNS1123_LABEL))

static const struct rule SOURCES[] = {
    CHECK("hostPath", validate_host_path),
    LEGACY("gcePersistentDisk"),
    LEGACY("awsElasticBlockStore"),
    LEGACY("glusterfs"),
    LEGACY("flocker"),
    WITHIN("nfs", ALL(RULES_NFS)),
    LEGACY("rbd"),
    LEGACY("quobyte"),
    LEGACY("cephfs"),
    LEGACY("iscsi"),
    LEGACY("cinder"),
    LEGACY("fc"),
    LEGACY("flexVolume"),
    LEGACY("azureFile"),
    LEGACY("vsphereVolume"),
    LEGACY("photonPersistentDisk"),
    LEGACY("portworxVolume"),
    LEGACY("azureDisk"),
    LEGACY("scaleIO"),
    WITHIN("local", GIVEN_STR("path", check_no_backsteps)),
    LEGACY("storageos"),
    WITHIN("csi", DRIVER_NAME("driver"), GIVEN("volumeHandle"),
           SECRET("controllerPublishSecretRef"), SECRET("controllerExpandSecretRef"),
           SECRET("nodePublishSecretRef"), SECRET("nodeExpandSecretRef")),
};

/* context: the name of the volume. */
static void check_source(const struct check *c)
{
    const struct str *name = c->context;
    size_t n = 0;

    for (const struct rule *r = SOURCES; r < SOURCES + COUNT(SOURCES); r++) {
        const cJSON *source = json_get(c->value, r->path);

        if (!source)
            continue;
        if (n++ && strcmp(r->path, "flexVolume") != 0) { /* upstream forgets that one */
            field_forbidden(c->e, FIELD(c->at, strcmp(r->path, "cephfs") == 0 ? "cephFS" : r->path),
                            "may not specify more than 1 volume type");
            continue;
        }
        if (r->check)
            rules_check(c, r, 1);
        else
            validate_legacy_volume(c->e, c->at, r->path, source, true, *name);
        if (strcmp(r->path, "local") == 0 && !kinds_given(c->value, "nodeAffinity"))
            field_required(c->e, FIELD(c->at, "nodeAffinity"),
                           "Local volume requires node affinity");
    }
    if (!n)
        field_required(c->e, c->at, "must specify a volume type");
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
    return kinds_is_absolute(path);
}

static void check_recycled(const struct check *c)
{
    if (json_get(c->value, "hostPath") && is_root(json_str_at(c->value, "hostPath.path")) &&
        kinds_text_is(c->value, "persistentVolumeReclaimPolicy", "Recycle"))
        field_forbidden(c->e, FIELD(c->at, "persistentVolumeReclaimPolicy"),
                        "may not be 'recycle' for a hostPath mount of '/'");
}

/* context of these and the tables below: the name of the volume. */
#define MODES  SOME("accessModes", ""), CHECK("accessModes", check_access_modes)
#define ORIGIN CALL(NULL, check_source), CALL(NULL, check_recycled)
#define ATTRIBUTES_CLASS                                                                           \
    WITHIN("volumeAttributesClassName",                                                            \
           NAME_SAID(NULL, DNS1123_SUBDOMAIN, "an empty string is disallowed")),                   \
        WHEN_GIVEN(NULL, "volumeAttributesClassName",                                              \
                   REQUIRED("csi", "has to be specified when using volumeAttributesClassName"))

static const struct rule SPEC_RULES[] = {
    MODES,
    CHECK_ALWAYS("capacity", check_capacity),
    ENUM_IF_SET("persistentVolumeReclaimPolicy", ENUM_PERSISTENT_VOLUME_RECLAIM_POLICY),
    WITHIN("nodeAffinity", REQUIRED("required", "must specify required node constraints"),
           CHECK("required", validate_node_selector)),
    ORIGIN,
    NAME_IF_SET("storageClassName", DNS1123_SUBDOMAIN),
    ENUM_IF_GIVEN("volumeMode", ENUM_PERSISTENT_VOLUME_MODE),
    ATTRIBUTES_CLASS,
};

void validate_persistent_spec(const struct check *c)
{
    struct str name = json_str_at(c->object, "metadata.name");

    rules_check_value(c->e, c->at, c->value, &name, SPEC_RULES, COUNT(SPEC_RULES));
}

#define NOT_INLINE "may not be specified in the context of inline volumes"

static const struct rule INLINE[] = {
    FORBIDDEN("claimRef", NOT_INLINE),
    FORBIDDEN("capacity", NOT_INLINE),
    REQUIRED("csi", "has to be specified in the context of inline volumes"),
    MODES,
    UNLESS(NULL, "persistentVolumeReclaimPolicy", "Retain",
           FORBIDDEN("persistentVolumeReclaimPolicy",
                     "may only be Retain in the context of inline volumes")),
    FORBIDDEN("nodeAffinity", NOT_INLINE),
    ORIGIN,
    FORBIDDEN("storageClassName", NOT_INLINE),
    UNLESS(
        NULL, "volumeMode", "Filesystem",
        FORBIDDEN(
            "volumeMode",
            "may not specify volumeMode other than Filesystem in the context of inline volumes")),
    ATTRIBUTES_CLASS,
};

void validate_inline_volume(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct str name = STR("");

    rules_check_value(e, p, spec, &name, INLINE, COUNT(INLINE));
}
