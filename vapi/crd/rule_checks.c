/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a CRD that is written: their members, and whether they compile. Problems of members
 * come first, and below them nothing is compiled. Source: apiextensions-apiserver
 * pkg/apis/apiextensions/validation/validation.go. */
#include "rules.h"

#include <string.h>

struct checking {
    struct field_errors members, expressions;
};

static bool has_lines(struct str s)
{
    return str_find(s, '\n') < s.n;
}

/* ---- members ---- */

static void check_message(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct str rule = str_trim(json_str(json_get(source, "rule"))),
               message = json_str(json_get(source, "message")), trimmed = str_trim(message);

    if (!rule.n)
        field_required(e, FIELD(p, "rule"), "rule is not specified");
    else if (message.n && !trimmed.n)
        field_invalid_str(e, FIELD(p, "message"), message, "must be non-empty if specified");
    else if (has_lines(trimmed))
        field_invalid_str(e, FIELD(p, "message"), message, "must not contain line breaks");
    else if (has_lines(rule) && !trimmed.n)
        field_required(e, FIELD(p, "message"),
                       "message must be specified if rule contains line breaks");
}

static void check_field_path(struct field_errors *e, const struct field_path *p,
                             const struct crd_rule_node *n, struct str path)
{
    struct str ignored;

    if (!path.n)
        return;
    if (!str_trim(path).n)
        field_invalid_str(e, FIELD(p, "fieldPath"), path, "must be non-empty if specified");
    if (has_lines(path))
        field_invalid_str(e, FIELD(p, "fieldPath"), path, "must not contain line breaks");
    if (!crd_rule_path(e->arena, n->schema, path, &ignored))
        field_invalid_str(e, FIELD(p, "fieldPath"), path, "must be a valid path");
}

static void check_members(struct field_errors *e, const struct field_path *p,
                          const struct crd_rule_node *n, const struct crd_rule *rule)
{
    static const char *const reasons[] = {"FieldValueDuplicate", "FieldValueForbidden",
                                          "FieldValueInvalid", "FieldValueRequired", NULL};
    struct str message = json_str(json_get(rule->source, "messageExpression"));
    const cJSON *reason = json_get(rule->source, "reason");
    bool known = !json_is_string(reason);

    check_message(e, p, rule->source);
    if (message.n && !str_trim(message).n)
        field_required(e, FIELD(p, "messageExpression"),
                       "messageExpression must be non-empty if specified");
    for (size_t i = 0; reasons[i]; i++)
        known = known || str_eqc(json_str(reason), reasons[i]);
    if (!known)
        field_not_supported(e, FIELD(p, "reason"), json_str(reason), reasons);
    check_field_path(e, p, n, json_str(json_get(rule->source, "fieldPath")));
}

/* ---- expressions ---- */

/* A rule as upstream's internal type prints. */
static const cJSON *shown(struct arena *a, const cJSON *rule)
{
    static const struct {
        const char *name, *key;
    } members[] = {
        {"Rule", "rule"},
        {"Message", "message"},
        {"MessageExpression", "messageExpression"},
        {"Reason", "reason"},
        {"FieldPath", "fieldPath"},
        {"OptionalOldSelf", "optionalOldSelf"},
    };
    cJSON *object = json_new_object(a);

    for (size_t i = 0; i < COUNT(members); i++) {
        const cJSON *value = json_get(rule, members[i].key);
        bool pointer = i == 3 || i == 5;

        json_set(a, object, members[i].name,
                 value     ? json_copy(a, value)
                 : pointer ? json_new_null(a)
                           : json_new_string(a, STR("")));
    }
    return object;
}

static void check_expressions(struct field_errors *e, const struct field_path *p,
                              const struct crd_rule *rule, const struct field_path *uncorrelated)
{
    const cJSON *optional = json_get(rule->source, "optionalOldSelf");

    if (rule->problem.n)
        field_invalid(e, FIELD(p, "rule"), shown(e->arena, rule->source), rule->problem.p);
    if (rule->message_problem.n)
        field_invalid(e, FIELD(p, "messageExpression"), shown(e->arena, rule->source),
                      rule->message_problem.p);
    if (rule->uses_old && uncorrelated)
        field_invalid_str(
            e, FIELD(p, "rule"), json_str(json_get(rule->source, "rule")),
            arena_printf(e->arena,
                         "oldSelf cannot be used on the uncorrelatable portion of the schema "
                         "within %.*s",
                         STR_F(field_path_text(e->arena, uncorrelated)))
                .p);
    else if (!rule->uses_old && json_is_bool(optional))
        field_invalid(e, FIELD(p, "optionalOldSelf"), optional,
                      "may not be set if oldSelf is not used in rule");
}

static void check_node(struct checking *c, const struct field_path *p,
                       const struct crd_rule_node *n, const struct field_path *uncorrelated);

static void check_below(struct checking *c, const struct field_path *p,
                        const struct crd_rule_node *n, const struct field_path *uncorrelated)
{
    struct str list = json_str(json_get(n->schema, "x-kubernetes-list-type"));

    for (size_t i = 0; i < n->n_fields; i++)
        check_node(c, FIELD_KEY(FIELD(p, "properties"), n->fields[i]->key), n->fields[i],
                   uncorrelated);
    if (n->more)
        check_node(c, FIELD(p, "additionalProperties"), n->more, uncorrelated);
    if (n->items)
        check_node(c, FIELD(p, "items"), n->items,
                   uncorrelated || str_eqc(list, "map") ? uncorrelated : p);
}

static void check_node(struct checking *c, const struct field_path *p,
                       const struct crd_rule_node *n, const struct field_path *uncorrelated)
{
    const struct field_path *list = FIELD(p, "x-kubernetes-validations");
    size_t before = c->members.n;

    check_below(c, p, n, uncorrelated);
    for (size_t i = 0; i < n->n_rules; i++)
        check_members(&c->members, FIELD_INDEX(list, i), n, &n->rules[i]);
    if (!n->n_rules || c->members.n > before)
        return;
    if (!n->shape) {
        field_internal(&c->expressions, list,
                       "internal error: failed to construct type information for "
                       "x-kubernetes-validations rules: unable to convert structural schema to "
                       "CEL declarations");
        return;
    }
    for (size_t i = 0; i < n->n_rules; i++)
        check_expressions(&c->expressions, FIELD_INDEX(list, i), &n->rules[i], uncorrelated);
}

void crd_check_rules(struct field_errors *e, const struct field_path *path,
                     const struct crd_rules *r)
{
    struct checking c;

    if (r->too_large) {
        field_forbidden(e, path, "the rules of one schema are too large in all");
        return;
    }
    field_errors_init(&c.members, e->arena);
    field_errors_init(&c.expressions, e->arena);
    check_node(&c, path, r->root, NULL);
    field_errors_append(e, &c.members);
    field_errors_append(e, &c.expressions);
}
