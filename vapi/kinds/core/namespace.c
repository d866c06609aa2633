/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces. Must never delete what a namespace holds: the controller does. Source:
 * pkg/registry/core/namespace/strategy.go. */
#include "../rules/kind.h"

#include <sublet/object.h>

static void set_name_label(struct arena *a, cJSON *ns)
{
    struct str name = json_str_at(ns, "metadata.name");

    if (name.n)
        json_set_str(a, json_ensure_path(a, ns, "metadata.labels"), "kubernetes.io/metadata.name",
                     name);
}

static void namespace_defaults(struct arena *a, cJSON *ns)
{
    static const struct default_rule rules[] = {SET_TEXT_Z("status+.phase", "Active")};

    set_name_label(a, ns);
    defaults_apply(a, ns, rules, COUNT(rules));
}

static void namespace_prepare_create(struct arena *a, cJSON *ns)
{
    cJSON *spec = json_ensure_object(a, ns, "spec"), *list = json_get(spec, "finalizers");

    set_status(a, ns, "{\"phase\":\"Active\"}");
    set_name_label(a, ns); /* the name may be made up only now */
    if (!json_is_array(list))
        list = json_set(a, spec, "finalizers", json_new_array(a));
    if (!json_list_has(list, STR("kubernetes")))
        json_append(list, json_new_string(a, STR("kubernetes")));
}

static void namespace_prepare_update(struct arena *a, cJSON *ns, const cJSON *old)
{
    const cJSON *finalizers = json_path(old, "spec.finalizers");
    cJSON *spec = json_ensure_object(a, ns, "spec");

    set_name_label(a, ns);
    if (finalizers)
        json_set(a, spec, "finalizers", json_copy(a, finalizers));
    else
        json_remove(spec, "finalizers");
}

static void namespace_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion", NULL};
    const struct field_path *list = FIELD(FIELD(NULL, "spec"), "finalizers");
    size_t i = 0;

    json_each(finalizer, json_path(object, "spec.finalizers"))
    {
        /* Upstream says which one only where they are finalized. */
        const struct field_path *p = old ? FIELD_INDEX(list, i) : list;
        struct str name = json_str(finalizer);

        i++;

        check_rule(e, p, NAME_QUALIFIED, name);
        if (str_find(name, '/') == name.n && !one_of(name, standard))
            field_invalid_str(
                e, p, name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

static void namespace_validate_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    bool deleted = object_is_terminating(object);
    struct str phase = json_str_at(object, "status.phase");

    (void)old;
    if (!str_eqc(phase, deleted ? "Terminating" : "Active"))
        field_invalid_str(e, FIELD(FIELD(NULL, "status"), "Phase"), phase,
                          deleted ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                  : "may only be 'Active' if `deletionTimestamp` is empty");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Status", "string", .cell = show_text, .path = "status.phase"},
    {"Age", "string", .cell = show_age},
    {NULL},
};

static const struct selectable_field FIELDS[] = {
    {"status.phase", "status.phase", ""},
    {NULL, NULL, NULL},
};

const struct kind KIND_NAMESPACE = {
    .resource =
        {
            RESOURCE("", "v1", "Namespace", "namespaces", "namespace"),
            .short_names = NAMES("ns"),
            .verbs = VERB_GET | VERB_LIST | VERB_WATCH | VERB_CREATE | VERB_UPDATE | VERB_PATCH |
                     VERB_DELETE,
            .flags = RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
            .fields = FIELDS,
            SUBRESOURCES({"finalize", SUB_FINALIZE, VERB_UPDATE, "", "", "Namespace", NULL},
                         STATUS_OF("Namespace")),
        },
    .defaults = namespace_defaults,
    .validate = namespace_validate,
    .validate_status = namespace_validate_status,
    .check_name = name_check_dns1123_label,
    .prepare_create = namespace_prepare_create,
    .prepare_update = namespace_prepare_update,
};
