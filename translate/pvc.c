/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent volume claims. Why: a claim can name, select or copy storage, and storage of the host
 * belongs to all tenants. Must never bind to a volume that is not the tenant's, nor create a claim
 * with neither a class nor a volume: it would bind to any classless volume that an administrator
 * made by hand. */

#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/quantity.h>

#include "shape.h"

static int refuse(struct err *err, const cJSON *claim, const char *field, const char *why)
{
    return err_forbidden(err, STR_NULL, STR("persistentvolumeclaims"),
                         json_str_at(claim, "metadata.name"), "%s: %s", field, why);
}

/* A copy of another claim of the same namespace is the only source that cannot be foreign. */
static int check_source(const cJSON *claim, const cJSON *spec, const char *key, struct err *err)
{
    const cJSON *source = json_get(spec, key);
    struct str group = json_str(json_get(source, "apiGroup"));

    if (!source || json_is_null(source))
        return 0;
    if (!str_eqc(json_str(json_get(source, "kind")), "PersistentVolumeClaim") || group.n)
        return refuse(err, claim, key, "only a PersistentVolumeClaim may be a source");
    if (json_str(json_get(source, "namespace")).n)
        return refuse(err, claim, key, "a source in another namespace is not allowed");
    return 0;
}

/* ---- classes ---- */

struct str translate_default_class(const struct translate_tenant *t)
{
    const struct str_list listed = t->config->storage_classes;

    return listed.n ? listed.items[0] : t->host_class;
}

bool translate_class_listed(const struct translate_tenant *t, struct str class)
{
    const struct str_list listed = t->config->storage_classes;

    return class.n && (listed.n ? str_list_has(listed, class) : str_eq(class, t->host_class));
}

bool translate_class_offered(const struct translate_tenant *t, struct str class)
{
    return translate_class_listed(t, class) || translate_shows(t, FROM_STORAGE_CLASSES, class);
}

/* Is it a class of the tenant's own that goes down? */
static bool class_goes_down(const struct translate_tenant *t, struct str class)
{
    return class.n && t->class_down && !translate_class_offered(t, class) &&
           t->class_down(t->down_ctx, class);
}

/* The name on the host. */
static struct str class_down(struct arena *a, const struct translate_tenant *t, struct str class)
{
    char name[64];

    if (!class_goes_down(t, class))
        return class.n ? class : translate_default_class(t);
    translate_name(t, STR(""), class, name);
    return arena_str(a, str_c(name));
}

/* The annotation is older than the field and takes precedence (storage helpers,
 * GetPersistentVolumeClaimClass). */
static const cJSON *class_node(const cJSON *claim)
{
    const cJSON *old = json_get(json_path(claim, "metadata.annotations"),
                                "volume.beta.kubernetes.io/storage-class");

    return old ? old : json_path(claim, "spec.storageClassName");
}

static int refuse_unknown(const struct translate_tenant *t, const cJSON *claim, struct err *err)
{
    if (!t->config->storage_classes.n && !t->host_class_known)
        return err_set(err, &ERR_UNAVAILABLE,
                       "the storage class of the host cluster is not known yet");
    return refuse(err, claim, "spec.storageClassName",
                  "no storage class is offered to this virtual cluster");
}

struct str translate_pvc_class(const cJSON *claim)
{
    return json_str(class_node(claim));
}

/* ---- volumes ---- */

bool translate_pvc_names_volume(const struct translate_tenant *t, const cJSON *claim)
{
    struct str volume = json_str_at(claim, "spec.volumeName");

    return volume.n && t->volume_down && t->volume_down(t->down_ctx, volume);
}

bool translate_pvc_has_volume(const struct translate_tenant *t, const cJSON *host, const cJSON *v)
{
    struct str volume = json_str_at(v, "spec.volumeName");
    char name[64];

    translate_name(t, STR(""), volume, name);
    return volume.n && str_eqc(json_str_at(host, "spec.volumeName"), name);
}

static int refuse_volume(const struct translate_tenant *t, const cJSON *claim, struct err *err)
{
    return refuse(err, claim, "spec.volumeName",
                  t->volume_down ? "names no PersistentVolume of this virtual cluster that is for "
                                   "the host"
                                 : "picking a volume is not allowed");
}

int translate_check_pvc_class(const struct translate_tenant *t, const cJSON *claim, struct err *err)
{
    const cJSON *node = class_node(claim);
    struct str class = json_str(node);

    if (translate_pvc_names_volume(t, claim))
        return 0;
    if (json_is_string(node) && !class.n)
        return refuse(err, claim, "spec.storageClassName",
                      "volumes without a class are bound by hand, which is not allowed");
    if (translate_class_offered(t, class) || class_goes_down(t, class))
        return 0;
    if (!translate_default_class(t).n)
        return refuse_unknown(t, claim, err);
    if (!class.n)
        return 0;
    return err_forbidden(
        err, STR_NULL, STR("persistentvolumeclaims"), json_str_at(claim, "metadata.name"),
        "spec.storageClassName: \"%.*s\" is not offered to this virtual cluster", STR_F(class));
}

int translate_check_pvc(struct arena *a, const struct translate_tenant *t, const cJSON *pvc,
                        struct err *err)
{
    const cJSON *spec = json_get(pvc, "spec"), *selector = json_get(spec, "selector");

    (void)a;
    /* A stored claim carries the name of the volume the host bound it to. */
    if (json_str(json_get(spec, "volumeName")).n &&
        !json_str_at(pvc, "metadata.resourceVersion").n && !translate_pvc_names_volume(t, pvc))
        return refuse_volume(t, pvc, err);
    if (selector && !json_is_null(selector))
        return refuse(err, pvc, "spec.selector",
                      "selecting volumes is not allowed: they could be another tenant's");
    if (json_str(json_get(spec, "volumeAttributesClassName")).n)
        return refuse(err, pvc, "spec.volumeAttributesClassName",
                      "is not supported by this version");
    return check_source(pvc, spec, "dataSource", err) ||
                   check_source(pvc, spec, "dataSourceRef", err)
               ? -1
               : 0;
}

/* ---- down ---- */

static const struct field SOURCE_FIELDS[] = {
    {"kind", FIELD_SCALAR},
    {"name", FIELD_NAME},
    {0},
};

static const struct field RESOURCE_FIELDS[] = {
    {"requests", FIELD_MAP},
    {"limits", FIELD_MAP},
    {0},
};

static const struct field SPEC_FIELDS[] = {
    {"accessModes", FIELD_SCALARS},
    {"volumeMode", FIELD_SCALAR},
    {"resources", FIELD_OBJECT, .fields = RESOURCE_FIELDS},
    {"dataSource", FIELD_OBJECT, .fields = SOURCE_FIELDS},
    {"dataSourceRef", FIELD_OBJECT, .fields = SOURCE_FIELDS},
    {0},
};

/* Where the host finds its storage: a class by name, or a volume whose claimRef names this claim.
 * The class of such a volume is the tenant's own affair, and empty there. */
static void place(struct arena *a, const struct translate_tenant *t, const cJSON *v, cJSON *spec)
{
    bool named = translate_pvc_names_volume(t, v);
    char volume[64];

    add_str(a, spec, "storageClassName",
            named ? STR("") : class_down(a, t, json_str(class_node(v))));
    if (!named)
        return;
    translate_name(t, STR(""), json_str_at(v, "spec.volumeName"), volume);
    add_str(a, spec, "volumeName", str_c(volume));
}

int translate_pvc(struct arena *a, const struct translate_tenant *t, const cJSON *v,
                  const cJSON *host_now, cJSON **ret, struct err *err)
{
    struct down d = {.arena = a, .tenant = t, .object = v};
    cJSON *claim, *spec, *metadata, *requests;
    char name[64];

    d.spec = json_get(v, "spec");
    d.ns = json_str_at(v, "metadata.namespace");
    d.name = json_str_at(v, "metadata.name");
    if (translate_check_pvc(a, t, v, err) || (!host_now && translate_check_pvc_class(t, v, err)))
        return -1;
    claim = json_new_object(a);
    add_str(a, claim, "apiVersion", STR("v1"));
    add_str(a, claim, "kind", STR("PersistentVolumeClaim"));
    translate_name(t, d.ns, d.name, name);
    metadata = object_add(a, claim, STR("metadata"), translate_metadata(a, t, v, str_c(name)));
    spec = object_add(a, claim, STR("spec"), shape_copy(&d, SPEC_FIELDS, d.spec));
    requests = json_path(spec, "resources.requests");
    add_str(a, json_get(metadata, "annotations"), ANNOTATION_SENT_RESOURCES,
            requests ? json_text(a, requests) : STR("{}"));
    if (!host_now)
        place(a, t, v, spec);
    translate_host_patch(a, &t->config->to_host->claim_patches, claim);
    *ret = claim;
    return 0;
}

/* ---- updates ---- */

static int compare(const cJSON *x, const cJSON *y)
{
    struct quantity a, b;

    if (!quantity_parse(json_str(x), &a) || !quantity_parse(json_str(y), &b))
        return 1;
    return quantity_cmp(a, b);
}

/* A size that is less than the host has goes down only where the tenant lowered it: else the host
 * has grown the claim. */
static bool is_size_to_send(struct arena *a, const cJSON *now, const cJSON *sent,
                            const cJSON *wanted)
{
    if (quantity_equal(a, now, wanted))
        return false;
    return !now || compare(wanted, now) > 0 || (sent && compare(sent, wanted) > 0);
}

/* Of a claim's spec only the size may change, and the host decides whether it may. */
cJSON *translate_pvc_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted)
{
    const cJSON *now = json_path(host_now, "spec.resources.requests");
    const cJSON *wanted = json_path(host_wanted, "spec.resources.requests");
    const cJSON *sent = translate_sent_read(a, host_now, ANNOTATION_SENT_RESOURCES);
    cJSON *spec = NULL, *requests = NULL;

    json_each(member, json_is_object(wanted) ? wanted : NULL)
    {
        if (!is_size_to_send(a, json_get(now, member->string), json_get(sent, member->string),
                             member))
            continue;
        requests = requests ? requests : json_new_object(a);
        object_add(a, requests, json_key(member), json_copy(a, member));
    }
    if (requests) {
        spec = json_new_object(a);
        json_set(a, json_ensure_object(a, spec, "resources"), "requests", requests);
    }
    return translate_service_update_patch(a, host_now, host_wanted, spec);
}

/* ---- up ---- */

cJSON *translate_pvc_status_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                               const cJSON *v)
{
    static const char *const keys[] = {
        "phase",      "accessModes",        "capacity",
        "conditions", "allocatedResources", "allocatedResourceStatuses",
        NULL};
    cJSON *status = json_get(host, "status");

    status = status ? json_copy(a, status) : NULL;
    json_each(condition, json_get(status, "conditions"))
    {
        struct str text = json_str(json_get(condition, "message"));

        if (text.n)
            json_set_str(a, condition, "message",
                         translate_text_up(a, t, text, json_str_at(host, "metadata.name"),
                                           json_str_at(v, "metadata.namespace"),
                                           json_str_at(v, "metadata.name")));
    }
    return translate_pod_status_copy(a, keys, status, json_get(v, "status"));
}

cJSON *translate_pvc_spec_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                             const cJSON *v)
{
    static const char *const given[] = {"volumeName", "storageClassName", "volumeMode", NULL};
    const cJSON *from = json_get(host, "spec"), *to = json_get(v, "spec");
    struct str class = translate_pvc_class(v);
    cJSON *ret;

    /* What such a claim is bound to is in the virtual cluster, under other names. */
    if (!json_is_object(from) || !json_is_object(to) || translate_pvc_has_volume(t, host, v))
        return NULL;
    ret = json_copy(a, to);
    for (size_t i = 0; given[i]; i++) {
        const cJSON *value = json_get(from, given[i]);

        if (value)
            json_set(a, ret, given[i], json_copy(a, value));
    }
    if (class.n) /* the host may have it under another name */
        json_set_str(a, ret, "storageClassName", class);
    return json_equal(ret, to) ? NULL : ret;
}
