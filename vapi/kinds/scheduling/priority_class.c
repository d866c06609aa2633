/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClasses. Source: pkg/apis/scheduling/validation. */
#include "../rules/kind.h"

static void priority_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {
        SET_TEXT("preemptionPolicy", "PreemptLowerPriority")};

    defaults_apply(a, class, rules, COUNT(rules));
}

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
            return arena_printf(a, "value of %.*s PriorityClass must be %lld", STR_F(name),
                                (long long)SYSTEM_CLASSES[i].value)
                .p;
        if (json_true(json_get(class, "globalDefault")))
            return arena_printf(a, "globalDefault of %.*s PriorityClass must be false", STR_F(name))
                .p;
        return NULL;
    }
    return arena_printf(a, "%.*s is not a known system priority class", STR_F(name)).p;
}

static void check_priority(struct field_errors *e, const cJSON *class)
{
    const char *why;

    if (!str_has_prefix(json_str_at(class, "metadata.name"), STR("system-"))) {
        if (json_i64_at(class, "value", 0) > 1000000000)
            field_forbidden(e, FIELD(NULL, "value"),
                            "maximum allowed value of a user defined priority is 1000000000");
        return;
    }
    why = system_class_problem(e->arena, class);
    if (why)
        field_forbidden(e, FIELD(FIELD(NULL, "metadata"), "name"),
                        arena_printf(e->arena,
                                     "priority class names with 'system-' prefix are reserved for "
                                     "system use only. error: %s",
                                     why)
                            .p);
}

static void priority_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"PreemptLowerPriority", "Never", NULL};
    const cJSON *policy = given(object, "preemptionPolicy");
    AT(p, NULL, "preemptionPolicy");

    if (!old) {
        check_priority(e, object);
        if (policy)
            check_enum(e, p, json_str(policy), policies);
        return;
    }
    if (json_i64_at(object, "value", 0) != json_i64_at(old, "value", 0))
        field_forbidden(e, FIELD(NULL, "value"), "may not be changed in an update.");
    check_immutable(e, p, policy, json_get(old, "preemptionPolicy"));
}

static ROW_CELLS(cells_priority_class)
{
    struct row r = {a, object, now, cells};

    cell_number_at(&r, "value");
    cell_bool(&r, json_true(json_get(object, "globalDefault")));
    cell_age(&r);
    cell_text_at(&r, "preemptionPolicy");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Value", "integer", "", "", 0}, {"Global-Default", "boolean", "", "", 0},
    {"Age", "string", "", "", 0},    {"PreemptionPolicy", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_PRIORITY_CLASS = {
    .resource =
        {
            RESOURCE("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses",
                     "priorityclass"),
            .short_names = NAMES("pc"),
            .verbs = VERBS_ALL,
            .columns = COLUMNS,
        },
    .defaults = priority_defaults,
    .prepare_create = priority_prepare_create,
    .validate = priority_validate,
    .cells = cells_priority_class,
};
