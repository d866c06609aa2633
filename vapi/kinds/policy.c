/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets, PriorityClasses, RuntimeClasses, Leases: small kinds others obey. */
#include "validate.h"

/* ---- PodDisruptionBudget ---- */

static void budget_prepare_create(struct arena *a, cJSON *budget)
{
    set_status(a, budget,
               "{\"currentHealthy\":0,\"desiredHealthy\":0,\"disruptionsAllowed\":0,"
               "\"expectedPods\":0}");
}

static void budget_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL};
    static const char *const amounts[] = {"minAvailable", "maxUnavailable"};
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    (void)old;
    if (given(spec, "minAvailable") && given(spec, "maxUnavailable"))
        field_invalid(e, p, spec, "minAvailable and maxUnavailable cannot be both set");
    for (size_t i = 0; i < COUNT(amounts); i++) {
        const cJSON *amount = given(spec, amounts[i]);

        if (!amount)
            continue;
        check_int_or_percent(e, FIELD(p, amounts[i]), amount);
        check_not_over_100(e, FIELD(p, amounts[i]), amount);
    }
    validate_label_selector(e, FIELD(p, "selector"), given(spec, "selector"));
    check_enum_if(e, FIELD(p, "unhealthyPodEvictionPolicy"),
                  given(spec, "unhealthyPodEvictionPolicy"), policies);
}

static void budget_validate_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const counts[] = {"disruptionsAllowed", "currentHealthy", "desiredHealthy",
                                         "expectedPods", NULL};
    const cJSON *status = json_get(object, "status");
    AT(p, NULL, "status");

    (void)old;
    validate_conditions(e, FIELD(p, "conditions"), json_get(status, "conditions"));
    check_all_nonnegative(e, p, status, counts);
}

const struct kind_ops POD_DISRUPTION_BUDGET_OPS = {
    .prepare_create = budget_prepare_create,
    .validate = budget_validate,
    .validate_status = budget_validate_status,
    .cells = cells_budget,
};

/* ---- PriorityClass ---- */

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

const struct kind_ops PRIORITY_CLASS_OPS = {
    .defaults = priority_defaults,
    .prepare_create = priority_prepare_create,
    .validate = priority_validate,
    .cells = cells_priority_class,
};

/* ---- RuntimeClass, Lease ---- */

static void check_scheduling(struct field_errors *e, const struct field_path *p,
                             const cJSON *scheduling)
{
    static const char *const parts[] = {"key", "operator", "value", "effect"};
    const cJSON *tolerations = json_get(scheduling, "tolerations");
    struct names seen = {.arena = e->arena};
    AT(list, p, "tolerations");
    size_t i = 0;

    validate_labels(e, FIELD(p, "nodeSelector"), json_get(scheduling, "nodeSelector"));
    validate_tolerations(e, list, tolerations);
    json_each(toleration, tolerations)
    {
        const struct field_path *at = FIELD_INDEX(list, i++);
        cJSON *key = json_new_array(e->arena);

        for (size_t k = 0; k < COUNT(parts); k++)
            json_append(key, json_new_string(e->arena, json_str(json_get(toleration, parts[k]))));
        if (!names_add(&seen, json_text(e->arena, key), toleration))
            field_duplicate(e, at, toleration);
    }
}

static void runtime_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    struct str handler = json_str(json_get(object, "handler"));
    const cJSON *overhead = given(object, "overhead");
    AT(p, NULL, "handler");

    if (old)
        check_immutable(e, p, json_get(object, "handler"), json_get(old, "handler"));
    if (check_given(e, p, handler))
        check_rule(e, p, NAME_DNS1123_LABEL, handler);
    if (overhead) {
        cJSON *requirements = json_new_object(e->arena);

        if (json_get(overhead, "podFixed"))
            json_set(e->arena, requirements, "limits",
                     json_copy(e->arena, json_get(overhead, "podFixed")));
        validate_requirements(e, FIELD(NULL, "overhead"), requirements, NULL, false);
    }
    if (given(object, "scheduling"))
        check_scheduling(e, FIELD(NULL, "scheduling"), given(object, "scheduling"));
}

const struct kind_ops RUNTIME_CLASS_OPS = {
    .validate = runtime_validate,
    .cells = cells_runtime_class,
};

/* strategy and preferredHolder belong to a feature that is off upstream too. */
static void lease_drop(cJSON *lease, const cJSON *old)
{
    static const char *const fields[] = {"strategy", "preferredHolder"};
    cJSON *spec = json_get(lease, "spec");

    for (size_t i = 0; spec && i < COUNT(fields); i++) {
        if (!json_get(json_get(old, "spec"), fields[i]))
            json_remove(spec, fields[i]);
    }
}

static void lease_prepare_create(struct arena *a, cJSON *lease)
{
    (void)a;
    lease_drop(lease, NULL);
}

static void lease_prepare_update(struct arena *a, cJSON *lease, const cJSON *old)
{
    (void)a;
    lease_drop(lease, old);
}

static void lease_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *seconds = given(spec, "leaseDurationSeconds");
    AT(p, NULL, "spec");

    (void)old;
    if (seconds && json_i64_at(spec, "leaseDurationSeconds", 0) <= 0)
        field_invalid(e, FIELD(p, "leaseDurationSeconds"), seconds, "must be greater than 0");
    if (given(spec, "leaseTransitions"))
        check_nonnegative(e, FIELD(p, "leaseTransitions"), given(spec, "leaseTransitions"));
}

const struct kind_ops LEASE_OPS = {
    .validate = lease_validate,
    .prepare_create = lease_prepare_create,
    .prepare_update = lease_prepare_update,
    .cells = cells_lease,
};
