/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces. Must never delete what a namespace holds: the controller does. Source:
 * pkg/registry/core/namespace/strategy.go. */
#include "../rules/kind.h"

#include <sublet/object.h>

static const struct default_rule DEFAULT_RULES[] = {SET_TEXT_Z("status+.phase", "Active")};

static void set_name_label(struct arena *a, cJSON *ns)
{
    struct str name = json_str_at(ns, "metadata.name");

    if (name.n)
        json_set_str(a, json_ensure_path(a, ns, "metadata.labels"), "kubernetes.io/metadata.name",
                     name);
}

static void namespace_prepare_create(struct arena *a, cJSON *ns)
{
    cJSON *spec = json_ensure_object(a, ns, "spec"), *list = json_get(spec, "finalizers");

    defaults_set_status(a, ns, "{\"phase\":\"Active\"}");
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

static void check_finalizers(const struct check *c)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion", NULL};
    size_t i = 0;

    json_each(finalizer, c->value)
    {
        /* Upstream says which one only where they are finalized. */
        const struct field_path *p = c->before ? FIELD_INDEX(c->at, i) : c->at;
        struct str name = json_str(finalizer);

        check_rule(c->e, p, NAME_QUALIFIED, name);
        if (str_find(name, '/') == name.n && !kinds_one_of(name, standard))
            field_invalid_str(
                c->e, p, name,
                "name is neither a standard finalizer name nor is it fully qualified");
        i++;
    }
}

static void check_phase(const struct check *c)
{
    bool deleted = object_is_terminating(c->object);
    struct str phase = json_str_at(c->value, "phase");

    if (!str_eqc(phase, deleted ? "Terminating" : "Active"))
        field_invalid_str(c->e, FIELD(c->at, "Phase"), phase,
                          deleted ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                  : "may only be 'Active' if `deletionTimestamp` is empty");
}

static const struct rule NAMESPACE_RULES[] = {CALL("spec.finalizers", check_finalizers)};
static const struct rule STATUS_RULES[] = {CALL("status", check_phase)};

/* ---- the kind ---- */

const struct kind KIND_NAMESPACE = {
    RESOURCE_OF(VERB_GET | VERB_LIST | VERB_WATCH | VERB_CREATE | VERB_UPDATE | VERB_PATCH |
                    VERB_DELETE,
                "", "v1", "Namespace", "namespaces", "namespace"),
    .resource.short_names = NAMES("ns"),
    .resource.flags = RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Status", "string", .cell = show_text, .path = "status.phase"},
            {"Age", "string", .cell = show_age}),
    FIELDS({"status.phase", "status.phase", ""}),
    SUBRESOURCES(
        {"finalize", SUB_FINALIZE, VERB_UPDATE, "", "", "Namespace", NULL, NAMES("status")},
        STATUS_OF("Namespace")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = set_name_label,
    .rules = RULES(NAMESPACE_RULES),
    .status_rules = RULES(STATUS_RULES),
    .check_name = name_check_dns1123_label,
    .prepare_create = namespace_prepare_create,
    .prepare_update = namespace_prepare_update,
};
