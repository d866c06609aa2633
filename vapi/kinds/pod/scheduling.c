/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pod may run: affinity, spread, tolerations. Whether a node fits is the scheduler's.
 * Source: validateAffinity, validateTopologySpreadConstraints, ValidateTolerations in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#define WHEN_REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define WHEN_PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

/* ---- selectors of nodes ---- */

static void check_node_values(const struct check *c)
{
    struct str op = json_str(json_get(c->value, "operator"));
    const cJSON *values = json_get(c->value, "values");

    if (!str_eqc(op, "Gt") && !str_eqc(op, "Lt"))
        check_selector_values(c->e, c->at, op, values);
    else if (json_count(values) != 1)
        field_required(c->e, FIELD(c->at, "values"),
                       "must be specified single value when `operator` is 'Lt' or 'Gt'");
}

static void check_field(const struct check *c)
{
    struct str op = json_str(json_get(c->value, "operator"));
    struct str key = json_str(json_get(c->value, "key"));

    if (!str_eqc(op, "In") && !str_eqc(op, "NotIn"))
        field_invalid_str(c->e, FIELD(c->at, "operator"), op, "not a valid selector operator");
    else if (json_count(json_get(c->value, "values")) != 1)
        field_required(c->e, FIELD(c->at, "values"),
                       "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                       "selector");
    if (!str_eqc(key, "metadata.name"))
        field_invalid_str(c->e, FIELD(c->at, "key"), key, "not a valid field selector key");
}

static const struct rule TERM[] = {
    EACH("matchExpressions", CALL(NULL, check_node_values), NAME_ALWAYS("key", QUALIFIED),
         EACH_NAME("values", LABEL_VALUE)),
    EACH("matchFields", CALL(NULL, check_field),
         WHEN(NULL, "key", "metadata.name", EACH_NAME("values", DNS1123_SUBDOMAIN))),
};
/* Values of preferences are not checked. */
static const struct rule PREFERENCE[] = {
    EACH("matchExpressions", CALL(NULL, check_node_values), NAME_ALWAYS("key", QUALIFIED)),
    EACH("matchFields", CALL(NULL, check_field),
         WHEN(NULL, "key", "metadata.name", EACH_NAME("values", DNS1123_SUBDOMAIN))),
};
static const struct rule NODE_SELECTOR[] = {
    SOME("nodeSelectorTerms", "must have at least one node selector term"),
    EACH("nodeSelectorTerms", ALL(TERM)),
};

void validate_node_selector(struct field_errors *e, const struct field_path *p,
                            const cJSON *selector)
{
    rules_check_value(e, p, selector, NULL, NODE_SELECTOR, COUNT(NODE_SELECTOR));
}

/* ---- label keys beside a selector ---- */

static void check_keys(struct field_errors *e, const struct field_path *p, const cJSON *keys,
                       const cJSON *selector)
{
    if (json_count(keys) && !selector)
        field_forbidden(e, p, "must not be specified when labelSelector is not set");
    else
        field_each(key, at, p, keys) check_rule(e, at, NAME_QUALIFIED, json_str(key));
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

static void check_namespaces(const struct check *c)
{
    json_each(ns, json_get(c->value, "namespaces"))
        check_rule(c->e, FIELD(c->at, "namespace"), NAME_DNS1123_LABEL, json_str(ns));
}

#define WEIGHT RANGE_ELSE("weight", 1, 100, "must be in the range 1-100")

static const struct rule POD_TERM[] = {
    LABEL_SELECTOR("labelSelector"),
    LABEL_SELECTOR("namespaceSelector"),
    CALL(NULL, check_namespaces),
    CHECK_ALWAYS(NULL, check_label_keys),
    GIVEN_ELSE("topologyKey", "can not be empty"),
    NAME_ALWAYS("topologyKey", QUALIFIED),
};

static const struct rule POD_AFFINITY[] = {
    EACH(WHEN_REQUIRED, ALL(POD_TERM)),
    EACH(WHEN_PREFERRED, WEIGHT, INSIDE("podAffinityTerm", ALL(POD_TERM))),
};

static const struct rule AFFINITY[] = {
    CHECK("nodeAffinity." WHEN_REQUIRED, validate_node_selector),
    EACH("nodeAffinity." WHEN_PREFERRED, WEIGHT, INSIDE("preference", ALL(PREFERENCE))),
    INSIDE("podAffinity", ALL(POD_AFFINITY)),
    INSIDE("podAntiAffinity", ALL(POD_AFFINITY)),
};

void validate_affinity(struct field_errors *e, const struct field_path *p, const cJSON *affinity)
{
    rules_check_value(e, p, affinity, NULL, AFFINITY, COUNT(AFFINITY));
}

/* ---- spread ---- */

static void check_min_domains(const struct check *c)
{
    struct str action = json_str(json_get(c->value, "whenUnsatisfiable"));
    const cJSON *domains = json_get(c->value, "minDomains");
    AT(at, c->at, "minDomains");

    if (!domains)
        return;
    check_positive(c->e, at, domains);
    if (!str_eqc(action, "DoNotSchedule"))
        field_invalid_printf(c->e, at, domains,
                             "can only use minDomains if "
                             "whenUnsatisfiable=DoNotSchedule, not %.*s",
                             STR_F(action));
}

/* context: the last constraint of the same key. */
static void check_repeated(const struct check *c)
{
    struct str key = json_str(json_get(c->value, "topologyKey"));
    struct str action = json_str(json_get(c->value, "whenUnsatisfiable"));

    if (c->context != c->value)
        field_duplicate(c->e, FIELD(c->at, "{topologyKey, whenUnsatisfiable}"),
                        json_new_string(c->e->arena, arena_printf(c->e->arena, "{%.*s, %.*s}",
                                                                  STR_F(key), STR_F(action))));
}

static const struct rule CONSTRAINT[] = {
    POSITIVE("maxSkew"),
    GIVEN_ELSE("topologyKey", "can not be empty"),
    ENUM_ALWAYS("whenUnsatisfiable", ENUM_UNSATISFIABLE_CONSTRAINT_ACTION),
    CALL(NULL, check_repeated),
    CALL(NULL, check_min_domains),
    ENUM_IF_GIVEN("nodeAffinityPolicy", ENUM_NODE_INCLUSION_POLICY),
    ENUM_IF_GIVEN("nodeTaintsPolicy", ENUM_NODE_INCLUSION_POLICY),
    CHECK_ALWAYS(NULL, check_label_keys),
    LABEL_SELECTOR("labelSelector"),
};

static struct str constraint_key(struct arena *a, const cJSON *constraint)
{
    return arena_printf(a, "%.*s\n%.*s", STR_F(json_str(json_get(constraint, "whenUnsatisfiable"))),
                        STR_F(json_str(json_get(constraint, "topologyKey"))));
}

/* All but the last of those with the same key are reported. */
void validate_spread(struct field_errors *e, const struct field_path *p, const cJSON *constraints)
{
    struct names last = {.arena = e->arena};
    const cJSON *first = json_first(constraints);

    for (const cJSON *c = first ? first->prev : NULL; c; c = c == first ? NULL : c->prev)
        names_add(&last, constraint_key(e->arena, c), c);
    field_each(c, at, p, constraints)
    {
        rules_check_value(e, at, c, names_get(&last, constraint_key(e->arena, c)), CONSTRAINT,
                          COUNT(CONSTRAINT));
    }
}

/* ---- tolerations ---- */

static const char *const SUPPORTED[] = {"Equal", "Exists", NULL};
static const char *const KNOWN[] = {"Equal", "Exists", "Lt", "Gt", NULL};

static void check_operator(const struct check *c)
{
    struct str op = json_str(json_get(c->value, "operator"));
    struct str value = json_str(json_get(c->value, "value"));
    AT(p, c->at, "operator");
    const char *why = name_check_label_value(value);

    if (!op.n || str_eqc(op, "Equal")) {
        if (why)
            field_invalid_str(c->e, p, value, why);
    } else if (str_eqc(op, "Exists")) {
        if (value.n)
            field_invalid_str(c->e, p, value, "value must be empty when `operator` is 'Exists'");
    } else {
        field_not_supported(c->e, p, op, kinds_one_of(op, KNOWN) ? KNOWN : SUPPORTED);
    }
}

const struct rule RULES_TOLERATIONS[1] = {
    EACH(NULL, NAME_IF_SET("key", QUALIFIED),
         WHEN_EMPTY(NULL, "key",
                    MUST_BE("operator", "Exists",
                            "operator must be Exists when `key` is empty, which means \"match "
                            "all values and all keys\"")),
         WHEN_GIVEN(NULL, "tolerationSeconds",
                    MUST_BE("effect", "NoExecute",
                            "effect must be 'NoExecute' when `tolerationSeconds` is set")),
         CALL(NULL, check_operator), ENUM_IF_SET("effect", ENUM_TAINT_EFFECT_DECLARED)),
};
