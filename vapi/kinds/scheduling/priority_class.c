/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClasses. Source: pkg/apis/scheduling/validation. */
#include "../rules/kind.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT("preemptionPolicy", "PreemptLowerPriority")};

/* It never counts on: what it says cannot change. */
static void priority_prepare_create(struct arena *a, cJSON *class)
{
    json_set_i64(a, json_ensure_object(a, class, "metadata"), "generation", 1);
}

static const struct {
    const char *name;
    int64_t value;
} SYSTEM_CLASSES[] = {
    {"system-node-critical", 2000001000},
    {"system-cluster-critical", 2000000000},
};

static const char *system_class_problem(struct arena *a, const cJSON *class)
{
    struct str name = json_str_at(class, "metadata.name");

    for (size_t i = 0; i < COUNT(SYSTEM_CLASSES); i++) {
        if (!str_eqc(name, SYSTEM_CLASSES[i].name))
            continue;
        if (json_i64_at(class, "value", 0) != SYSTEM_CLASSES[i].value)
            return problem_printf(a, "value of %.*s PriorityClass must be %lld", STR_F(name),
                                  (long long)SYSTEM_CLASSES[i].value);
        if (json_true(json_get(class, "globalDefault")))
            return problem_printf(a, "globalDefault of %.*s PriorityClass must be false",
                                  STR_F(name));
        return NULL;
    }
    return problem_printf(a, "%.*s is not a known system priority class", STR_F(name));
}

static void check_priority(const struct check *c)
{
    struct field_errors *e = c->e;
    const cJSON *class = c->value;
    const char *why;

    if (!str_has_prefix(json_str_at(class, "metadata.name"), STR("system-"))) {
        if (json_i64_at(class, "value", 0) > 1000000000)
            field_forbidden(e, FIELD(NULL, "value"),
                            "maximum allowed value of a user defined priority is 1000000000");
        return;
    }
    why = system_class_problem(e->arena, class);
    if (why)
        field_forbidden_printf(e, FIELD(FIELD(NULL, "metadata"), "name"),
                               "priority class names with 'system-' prefix are reserved for "
                               "system use only. error: %s",
                               why);
}

static const struct rule CLASS_RULES[] = {
    ON_CREATE(CALL(NULL, check_priority),
              WITHIN("preemptionPolicy", ENUM(NULL, ENUM_PREEMPTION_POLICY_DECLARED))),
    FIXED_ELSE_FORBIDDEN("value", "may not be changed in an update."), FIXED("preemptionPolicy")};

/* ---- the kind ---- */

const struct kind KIND_PRIORITY_CLASS = {
    RESOURCE("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass"),
    .resource.short_names = NAMES("pc"),
    COLUMNS({"Value", "integer", .cell = show_number, .path = "value"},
            {"Global-Default", "boolean", .cell = show_bool, .path = "globalDefault"},
            {"Age", "string", .cell = show_age},
            {"PreemptionPolicy", "string", .cell = show_text, .path = "preemptionPolicy"}),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .prepare_create = priority_prepare_create,
    .rules = RULES(CLASS_RULES),
};
