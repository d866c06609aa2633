/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pod may run: affinity, spread, tolerations. Whether a node fits is the scheduler's.
 * Source: validateAffinity, validateTopologySpreadConstraints, ValidateTolerations in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#define WHEN_REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define WHEN_PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

/* ---- selectors of nodes ---- */

static void check_node_values(struct field_errors *e, const struct field_path *p, struct str op,
                              const cJSON *values)
{
    size_t n = json_count(values);

    if (str_eqc(op, "In") || str_eqc(op, "NotIn")) {
        if (!n)
            field_required(e, FIELD(p, "values"),
                           "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist")) {
        if (n)
            field_forbidden(e, FIELD(p, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (str_eqc(op, "Gt") || str_eqc(op, "Lt")) {
        if (n != 1)
            field_required(e, FIELD(p, "values"),
                           "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        field_invalid_str(e, FIELD(p, "operator"), op, "not a valid selector operator");
    }
}

static void check_expression(struct field_errors *e, const struct field_path *p,
                             const cJSON *expression, bool strict)
{
    const cJSON *values = json_get(expression, "values");
    const struct field_path *list = FIELD(p, "values");
    size_t i = 0;

    check_node_values(e, p, json_str(json_get(expression, "operator")), values);
    check_rule(e, FIELD(p, "key"), NAME_QUALIFIED, json_str(json_get(expression, "key")));
    if (!strict)
        return;
    json_each(value, values)
        check_rule(e, FIELD_INDEX(list, i++), NAME_LABEL_VALUE, json_str(value));
}

static void check_field(struct field_errors *e, const struct field_path *p, const cJSON *field)
{
    const cJSON *values = json_get(field, "values");
    struct str op = json_str(json_get(field, "operator")), key = json_str(json_get(field, "key"));
    const struct field_path *list = FIELD(p, "values");
    size_t i = 0;

    if (!str_eqc(op, "In") && !str_eqc(op, "NotIn"))
        field_invalid_str(e, FIELD(p, "operator"), op, "not a valid selector operator");
    else if (json_count(values) != 1)
        field_required(
            e, list,
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    if (!str_eqc(key, "metadata.name")) {
        field_invalid_str(e, FIELD(p, "key"), key, "not a valid field selector key");
        return;
    }
    json_each(value, values)
        check_rule(e, FIELD_INDEX(list, i++), NAME_DNS1123_SUBDOMAIN, json_str(value));
}

static void check_term(struct field_errors *e, const struct field_path *p, const cJSON *term,
                       bool strict)
{
    const struct field_path *expressions = FIELD(p, "matchExpressions");
    const struct field_path *fields = FIELD(p, "matchFields");
    size_t i = 0;

    json_each(expression, json_get(term, "matchExpressions"))
        check_expression(e, FIELD_INDEX(expressions, i++), expression, strict);
    i = 0;
    json_each(field, json_get(term, "matchFields")) check_field(e, FIELD_INDEX(fields, i++), field);
}

void validate_node_selector(struct field_errors *e, const struct field_path *p,
                            const cJSON *selector)
{
    const struct field_path *list = FIELD(p, "nodeSelectorTerms");
    const cJSON *terms = json_get(selector, "nodeSelectorTerms");
    size_t i = 0;

    if (!json_count(terms))
        field_required(e, list, "must have at least one node selector term");
    json_each(term, terms) check_term(e, FIELD_INDEX(list, i++), term, true);
}

static void check_weight(struct field_errors *e, const struct field_path *p, const cJSON *weight)
{
    int64_t n = 0;

    json_i64(weight, &n);
    if (n < 1 || n > 100)
        field_invalid(e, p, weight ? weight : json_new_i64(e->arena, 0),
                      "must be in the range 1-100");
}

static void check_node_affinity(struct field_errors *e, const struct field_path *p,
                                const cJSON *affinity)
{
    const struct field_path *list = FIELD(p, WHEN_PREFERRED);
    size_t i = 0;

    if (json_get(affinity, WHEN_REQUIRED))
        validate_node_selector(e, FIELD(p, WHEN_REQUIRED), json_get(affinity, WHEN_REQUIRED));
    json_each(term, json_get(affinity, WHEN_PREFERRED))
    {
        const struct field_path *at = FIELD_INDEX(list, i++);

        check_weight(e, FIELD(at, "weight"), json_get(term, "weight"));
        check_term(e, FIELD(at, "preference"), json_get(term, "preference"), false);
    }
}

/* ---- label keys beside a selector ---- */

static void check_keys(struct field_errors *e, const struct field_path *p, const cJSON *keys,
                       const cJSON *selector)
{
    size_t i = 0;

    if (!json_count(keys))
        return;
    if (!selector) {
        field_forbidden(e, p, "must not be specified when labelSelector is not set");
        return;
    }
    json_each(key, keys) check_rule(e, FIELD_INDEX(p, i++), NAME_QUALIFIED, json_str(key));
}

/* A key the selector has twice came from here once too often. */
static void check_merged(struct field_errors *e, const struct field_path *p, const cJSON *keys,
                         const cJSON *selector)
{
    struct names seen = {.arena = e->arena}, wanted = seen;
    size_t i = 0;

    names_add_texts(&wanted, keys);
    names_add_keys(&seen, json_get(selector, "matchLabels"));
    json_each(expression, json_get(selector, "matchExpressions"))
    {
        struct str key = json_str(json_get(expression, "key"));
        const cJSON *from = names_get(&wanted, key);

        if (names_add(&seen, key, expression) || !from)
            continue;
        i = 0;
        json_each(k, keys)
        {
            if (k == from)
                break;
            i++;
        }
        field_invalid_str(e, FIELD_INDEX(p, i), key,
                          "exists in both matchLabelKeys and labelSelector");
    }
}

static void check_label_keys(struct field_errors *e, const struct field_path *p, const cJSON *term)
{
    const cJSON *selector = json_get(term, "labelSelector");
    const cJSON *match = json_get(term, "matchLabelKeys");
    const cJSON *mismatch = json_get(term, "mismatchLabelKeys");
    const struct field_path *list = FIELD(p, "matchLabelKeys");
    struct names other = {.arena = e->arena};
    size_t i = 0;

    check_keys(e, list, match, selector);
    check_keys(e, FIELD(p, "mismatchLabelKeys"), mismatch, selector);
    if (selector && json_count(match))
        check_merged(e, p, match, selector);
    names_add_texts(&other, mismatch);
    json_each(key, match)
    {
        if (names_has(&other, json_str(key)))
            field_invalid_str(e, FIELD_INDEX(list, i), json_str(key),
                              "exists in both matchLabelKeys and mismatchLabelKeys");
        i++;
    }
}

/* ---- affinity to pods ---- */

static void check_pod_term(struct field_errors *e, const struct field_path *p, const cJSON *term)
{
    struct str key = json_str(json_get(term, "topologyKey"));

    validate_label_selector(e, FIELD(p, "labelSelector"), json_get(term, "labelSelector"));
    validate_label_selector(e, FIELD(p, "namespaceSelector"), json_get(term, "namespaceSelector"));
    json_each(ns, json_get(term, "namespaces"))
        check_rule(e, FIELD(p, "namespace"), NAME_DNS1123_LABEL, json_str(ns));
    check_label_keys(e, p, term);
    if (!key.n)
        field_required(e, FIELD(p, "topologyKey"), "can not be empty");
    check_rule(e, FIELD(p, "topologyKey"), NAME_QUALIFIED, key);
}

static void check_pod_affinity(struct field_errors *e, const struct field_path *p,
                               const cJSON *affinity)
{
    const struct field_path *required = FIELD(p, WHEN_REQUIRED),
                            *preferred = FIELD(p, WHEN_PREFERRED);
    size_t i = 0;

    json_each(term, json_get(affinity, WHEN_REQUIRED))
        check_pod_term(e, FIELD_INDEX(required, i++), term);
    i = 0;
    json_each(term, json_get(affinity, WHEN_PREFERRED))
    {
        const struct field_path *at = FIELD_INDEX(preferred, i++);

        check_weight(e, FIELD(at, "weight"), json_get(term, "weight"));
        check_pod_term(e, FIELD(at, "podAffinityTerm"), json_get(term, "podAffinityTerm"));
    }
}

void validate_affinity(struct field_errors *e, const struct field_path *p, const cJSON *affinity)
{
    check_node_affinity(e, FIELD(p, "nodeAffinity"), json_get(affinity, "nodeAffinity"));
    check_pod_affinity(e, FIELD(p, "podAffinity"), json_get(affinity, "podAffinity"));
    check_pod_affinity(e, FIELD(p, "podAntiAffinity"), json_get(affinity, "podAntiAffinity"));
}

/* ---- spread ---- */

static void check_min_domains(struct field_errors *e, const struct field_path *p,
                              const cJSON *domains, struct str action)
{
    if (!domains)
        return;
    check_positive(e, p, domains);
    if (!str_eqc(action, "DoNotSchedule"))
        field_invalid(e, p, domains,
                      arena_printf(e->arena,
                                   "can only use minDomains if "
                                   "whenUnsatisfiable=DoNotSchedule, not %.*s",
                                   STR_F(action))
                          .p);
}

static void check_constraint(struct field_errors *e, const struct field_path *p,
                             const cJSON *constraint, bool repeated)
{
    struct str action = json_str(json_get(constraint, "whenUnsatisfiable"));
    struct str key = json_str(json_get(constraint, "topologyKey"));

    check_positive(e, FIELD(p, "maxSkew"), json_get(constraint, "maxSkew"));
    if (!key.n)
        field_required(e, FIELD(p, "topologyKey"), "can not be empty");
    if (!one_of(action, ENUM_UNSATISFIABLE_CONSTRAINT_ACTION))
        field_not_supported(e, FIELD(p, "whenUnsatisfiable"), action,
                            ENUM_UNSATISFIABLE_CONSTRAINT_ACTION);
    if (repeated)
        field_duplicate(e, FIELD(p, "{topologyKey, whenUnsatisfiable}"),
                        json_new_string(e->arena, arena_printf(e->arena, "{%.*s, %.*s}", STR_F(key),
                                                               STR_F(action))));
    check_min_domains(e, FIELD(p, "minDomains"), json_get(constraint, "minDomains"), action);
    check_enum_if(e, FIELD(p, "nodeAffinityPolicy"), json_get(constraint, "nodeAffinityPolicy"),
                  ENUM_NODE_INCLUSION_POLICY);
    check_enum_if(e, FIELD(p, "nodeTaintsPolicy"), json_get(constraint, "nodeTaintsPolicy"),
                  ENUM_NODE_INCLUSION_POLICY);
    check_label_keys(e, p, constraint);
    validate_label_selector(e, FIELD(p, "labelSelector"), json_get(constraint, "labelSelector"));
}

static struct str constraint_key(struct arena *a, const cJSON *constraint)
{
    return arena_printf(a, "%.*s\n%.*s", STR_F(json_str(json_get(constraint, "whenUnsatisfiable"))),
                        STR_F(json_str(json_get(constraint, "topologyKey"))));
}

/* All but the last of those with the same key are told. */
void validate_spread(struct field_errors *e, const struct field_path *p, const cJSON *constraints)
{
    struct names last = {.arena = e->arena};
    const cJSON *first = json_first(constraints);
    size_t i = 0;

    for (const cJSON *c = first ? first->prev : NULL; c; c = c == first ? NULL : c->prev)
        names_add(&last, constraint_key(e->arena, c), c);
    json_each(c, constraints)
    {
        bool repeated = names_get(&last, constraint_key(e->arena, c)) != c;

        check_constraint(e, FIELD_INDEX(p, i++), c, repeated);
    }
}

/* ---- tolerations ---- */

static const char *const EFFECTS[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};

void validate_taint_effect(struct field_errors *e, const struct field_path *p, struct str effect)
{
    check_enum(e, p, effect, EFFECTS);
}

static void check_operator(struct field_errors *e, const struct field_path *p, struct str op,
                           struct str value)
{
    static const char *const supported[] = {"Equal", "Exists", NULL};
    static const char *const known[] = {"Equal", "Exists", "Lt", "Gt", NULL};
    const char *why;

    if (!op.n || str_eqc(op, "Equal")) {
        why = name_check_label_value(value);
        if (why)
            field_invalid_str(e, p, value, why);
    } else if (str_eqc(op, "Exists")) {
        if (value.n)
            field_invalid_str(e, p, value, "value must be empty when `operator` is 'Exists'");
    } else {
        field_not_supported(e, p, op, one_of(op, known) ? known : supported);
    }
}

void validate_tolerations(struct field_errors *e, const struct field_path *p,
                          const cJSON *tolerations)
{
    size_t i = 0;

    json_each(t, tolerations)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str key = json_str(json_get(t, "key")), op = json_str(json_get(t, "operator"));
        struct str effect = json_str(json_get(t, "effect"));

        if (key.n)
            check_rule(e, FIELD(at, "key"), NAME_QUALIFIED, key);
        else if (!str_eqc(op, "Exists"))
            field_invalid_str(e, FIELD(at, "operator"), op,
                              "operator must be Exists when `key` is empty, which means \"match "
                              "all values and all keys\"");
        if (json_get(t, "tolerationSeconds") && !str_eqc(effect, "NoExecute"))
            field_invalid_str(e, FIELD(at, "effect"), effect,
                              "effect must be 'NoExecute' when `tolerationSeconds` is set");
        check_operator(e, FIELD(at, "operator"), op, json_str(json_get(t, "value")));
        if (effect.n)
            validate_taint_effect(e, FIELD(at, "effect"), effect);
    }
}
