/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent volume claims. Why: a claim can name, select or copy storage, and on the host all
 * storage is everybody's. Must never bind to a volume the tenant picked, nor to one that merely has
 * no class. */

#include <string.h>

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

static int check_class(const struct translate_tenant *t, const cJSON *claim, const cJSON *spec,
                       struct err *err)
{
    const struct str_list allowed = t->config->storage_classes;
    const cJSON *node = json_get(spec, "storageClassName");
    struct str class = json_str(node);

    if (json_is_string(node) && !class.n)
        return refuse(err, claim, "spec.storageClassName",
                      "volumes without a class are bound by hand, which is not allowed");
    if (!class.n || !allowed.n || str_list_has(allowed, class))
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
    if (json_str(json_get(spec, "volumeName")).n && !json_str_at(pvc, "metadata.resourceVersion").n)
        return refuse(err, pvc, "spec.volumeName", "picking a volume is not allowed");
    if (selector && !json_is_null(selector))
        return refuse(err, pvc, "spec.selector",
                      "selecting volumes is not allowed: they could be another tenant's");
    if (json_str(json_get(spec, "volumeAttributesClassName")).n)
        return refuse(err, pvc, "spec.volumeAttributesClassName",
                      "is not supported by this version");
    if (check_source(pvc, spec, "dataSource", err) || check_source(pvc, spec, "dataSourceRef", err))
        return -1;
    return check_class(t, pvc, spec, err);
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
    {"storageClassName", FIELD_SCALAR},
    {"dataSource", FIELD_OBJECT, .fields = SOURCE_FIELDS},
    {"dataSourceRef", FIELD_OBJECT, .fields = SOURCE_FIELDS},
    {0},
};

int translate_pvc(struct arena *a, const struct translate_tenant *t, const cJSON *v, cJSON **ret,
                  struct err *err)
{
    struct down d = {.arena = a, .tenant = t, .object = v};
    cJSON *claim, *spec;
    char name[64];

    d.spec = json_get(v, "spec");
    d.ns = json_str_at(v, "metadata.namespace");
    d.name = json_str_at(v, "metadata.name");
    if (translate_check_pvc(a, t, v, err))
        return -1;
    claim = json_new_object(a);
    add_str(a, claim, "apiVersion", STR("v1"));
    add_str(a, claim, "kind", STR("PersistentVolumeClaim"));
    translate_name(t, d.ns, d.name, name);
    object_add(a, claim, STR("metadata"), translate_metadata(a, t, v, str_c(name)));
    spec = object_add(a, claim, STR("spec"), shape_copy(&d, SPEC_FIELDS, d.spec));
    if (!json_get(spec, "storageClassName") && t->config->storage_classes.n)
        add_str(a, spec, "storageClassName", t->config->storage_classes.items[0]);
    *ret = claim;
    return 0;
}

/* ---- updates ---- */

/* Of a claim's spec only the size may change, and the host decides whether it may. */
cJSON *translate_pvc_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted)
{
    const cJSON *now = json_path(host_now, "spec.resources.requests");
    const cJSON *wanted = json_path(host_wanted, "spec.resources.requests");
    cJSON *spec = NULL, *requests = NULL;

    json_each(member, json_is_object(wanted) ? wanted : NULL)
    {
        if (amount_equal(a, json_get(now, member->string), member))
            continue;
        requests = requests ? requests : json_new_object(a);
        object_add(a, requests, key_of(member), json_copy(a, member));
    }
    if (requests) {
        spec = json_new_object(a);
        json_set(a, json_ensure_object(a, spec, "resources"), "requests", requests);
    }
    return update_patch(a, host_now, host_wanted, spec);
}

/* ---- up ---- */

cJSON *translate_pvc_status_up(struct arena *a, const cJSON *host, const cJSON *v)
{
    static const char *const keys[] = {
        "phase",      "accessModes",        "capacity",
        "conditions", "allocatedResources", "allocatedResourceStatuses",
        NULL};

    return status_copy(a, keys, json_get(host, "status"), json_get(v, "status"));
}

cJSON *translate_pvc_spec_up(struct arena *a, const cJSON *host, const cJSON *v)
{
    static const char *const given[] = {"volumeName", "storageClassName", "volumeMode", NULL};
    const cJSON *from = json_get(host, "spec"), *to = json_get(v, "spec");
    cJSON *ret;

    if (!json_is_object(from) || !json_is_object(to))
        return NULL;
    ret = json_copy(a, to);
    for (size_t i = 0; given[i]; i++) {
        const cJSON *value = json_get(from, given[i]);

        if (value)
            json_set(a, ret, given[i], json_copy(a, value));
    }
    return json_equal(ret, to) ? NULL : ret;
}
