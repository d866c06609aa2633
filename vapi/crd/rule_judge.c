/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the rules of a schema on a custom resource, under upstream's budgets. Rules about a
 * change run only where there is a previous value; an error of a value that did not change is a
 * warning. Must never evaluate past the budget, and judges nothing without saying so. Source:
 * apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, k8s.io/apiserver
 * pkg/cel/common/equality.go. */
#include "judge.h"
#include "rules.h"

#include <assert.h>
#include <string.h>

#define SCRATCH           ((size_t)32 << 20) /* of one expression */
#define SCRATCH_KEPT      ((size_t)8 << 20)
#define MAX_MESSAGES      200 /* further errors are counted */
#define MAX_MESSAGE_BYTES ((size_t)4 << 20)

#define OUT_OF_BUDGET                                                                              \
    "validation failed due to running out of cost budget, no further validation rules will be run"

struct judging {
    const struct schema *schema;
    const struct cel_shapes *shapes;
    struct field_errors *e, *kept;
    struct arena *scratch;
    int64_t left;
    size_t steps; /* for finding the previous items of lists */
    size_t used;  /* of the errors' arena, before the first message */
};

/* A value and its previous one, of the same place. */
struct pair {
    uint32_t node;
    const cJSON *value, *old;
    int same; /* -1: not compared yet */
};
/* current: of the value that is judged, or NULL; nearest: of the closest one above it. */
struct ratchet {
    struct pair *current, *nearest;
};

struct place {
    const struct crd_rule_node *n;
    const struct field_path *path;
    const cJSON *value, *old; /* old: NULL, or not null */
    struct ratchet ratchet;
    struct cel_variable plain[2], optional[2]; /* what rules may name */
    size_t n_plain, n_optional;
    struct cel_value before; /* in an optional */
};

/* ---- what did not change ---- */

/* Upstream compares along the schema: members that it does not know count as changed. */
static bool same_value(struct judging *j, uint32_t node, const cJSON *value, const cJSON *old)
{
    const struct schema_node *n = schema_node(j->schema, node);
    struct lookup l;
    bool same = true;
    const cJSON *hint, *was;

    if (json_is_array(value) && json_is_array(old) && n->list_type == LIST_MAP && n->keys) {
        hint = json_first(old);
        json_each(item, value)
        {
            was = crd_old_item(j->schema, n, item, old, hint, &j->steps);
            if (!was || !same_value(j, n->elem, item, was))
                return false;
            hint = was->next;
        }
        return json_count(value) == json_count(old);
    }
    if (!json_is_object(value) || !json_is_object(old))
        return json_equal(value, old);
    if (json_count(value) != json_count(old))
        return false;
    l = crd_lookup(old);
    json_each(member, value)
    {
        uint32_t child = schema_child(j->schema, node, json_key(member));

        was = crd_look_up(&l, json_key(member));
        same = child && was && same_value(j, child, member, was);
        if (!same)
            break;
    }
    crd_lookup_end(&l);
    return same;
}

static bool is_same(struct judging *j, struct pair *p)
{
    if (p->same < 0)
        p->same = same_value(j, p->node, p->value, p->old);
    return p->same;
}

static bool is_unchanged(struct judging *j, struct ratchet r)
{
    return r.current ? is_same(j, r.current) : r.nearest && is_same(j, r.nearest);
}

/* own: memory for the pair of a member or item, which has a previous value or NULL. */
static struct ratchet below(struct ratchet up, struct pair *own, uint32_t node, const cJSON *value,
                            const cJSON *old)
{
    if (!up.current)
        return up;
    *own = (struct pair){node, value, old, -1};
    return (struct ratchet){old && node ? own : NULL, up.current};
}

/* ---- errors ---- */

static const struct field_path *shown_path(const struct field_path *p)
{
    static const struct field_path none = {.name = "<nil>"};

    return p ? p : &none;
}

static bool speak(struct judging *j, struct field_errors *e)
{
    if (e->n < MAX_MESSAGES && arena_used(j->e->arena) - j->used < MAX_MESSAGE_BYTES)
        return true;
    e->n++;
    return false;
}

/* Of the rule itself, not of what it says of the value. */
static void broken_in(struct judging *j, const struct place *p, struct field_errors *e,
                      const char *detail)
{
    if (speak(j, e))
        field_invalid_str(e, shown_path(p->path), json_str(json_get(p->n->schema, "type")), detail);
}

static void broken(struct judging *j, const struct place *p, const char *detail)
{
    broken_in(j, p, j->e, detail);
}

/* By a schema that was stored with a rule we cannot compile: what an update does not change stays,
 * so that labels and finalizers can be written. Upstream refuses all. */
static void broken_rule(struct judging *j, struct place *p, struct str problem)
{
    bool unchanged = is_unchanged(j, p->ratchet);

    broken_in(j, p, unchanged && j->kept ? j->kept : j->e,
              arena_printf(j->scratch, "rule compile error: %.*s", STR_F(problem)).p);
}

static struct str rule_name(const struct crd_rule *rule)
{
    struct str message = json_str(json_get(rule->source, "message"));

    return str_trim(message.n ? message : json_str(json_get(rule->source, "rule")));
}

static void refuse(struct judging *j, const struct place *p, const struct crd_rule *rule,
                   struct field_errors *e, const char *detail)
{
    const struct field_path *path =
        rule->field_path.n ? FIELD(p->path, rule->field_path.p) : shown_path(p->path);
    struct str reason = json_str(json_get(rule->source, "reason")),
               type = json_str(json_get(p->n->schema, "type"));
    bool bare = str_eqc(type, "object") || str_eqc(type, "array");

    if (!speak(j, e))
        return;
    if (str_eqc(reason, "FieldValueForbidden"))
        field_forbidden(e, path, detail);
    else if (str_eqc(reason, "FieldValueRequired"))
        field_required(e, path, detail);
    else if (str_eqc(reason, "FieldValueDuplicate") && bare)
        field_duplicate_bare(e, path);
    else if (str_eqc(reason, "FieldValueDuplicate"))
        field_duplicate(e, path, p->value);
    else if (bare)
        field_invalid_bare(e, path, detail);
    else
        field_invalid(e, path, p->value, detail);
}

/* ---- expressions ---- */

enum outcome { WENT_ON, OVER_LIMIT, OVER_BUDGET };

static enum outcome evaluate(struct judging *j, const struct cel_program *program,
                             const struct cel_variable *names, size_t n, struct cel_value *ret)
{
    const struct cel_activation a = {.variables = names, .n = n, .shapes = j->shapes};
    int64_t cost = 0, limit = j->left < CEL_CALL_LIMIT ? j->left + 1 : CEL_CALL_LIMIT;

    assert(j->left >= 0);
    *ret = cel_evaluate(j->scratch, program, &a, limit, &cost);
    cost = cost ? cost : 1; /* a literal is free upstream, where the number of items is estimated */
    if (cost > j->left)
        return OVER_BUDGET;
    j->left -= cost;
    return ret->kind == CEL_ERROR &&
                   str_has_prefix(ret->s, STR("operation cancelled: actual cost limit exceeded"))
               ? OVER_LIMIT
               : WENT_ON;
}

/* False: no further rule is evaluated. */
static bool stop(struct judging *j)
{
    j->left = -1;
    return false;
}

/* False as of stop(). */
static bool within_budget(struct judging *j, const struct place *p)
{
    if (j->left > 0)
        return true;
    broken(j, p, OUT_OF_BUDGET);
    return stop(j);
}

static void begin_place(struct judging *j, struct place *p)
{
    struct cel_value self = cel_from_shape(j->scratch, j->shapes, p->n->shape, p->value);

    p->plain[0] = p->optional[0] = (struct cel_variable){"self", self};
    p->n_plain = p->n_optional = 1;
    if (!p->n->uses_old)
        return;
    p->optional[1] = (struct cel_variable){"oldSelf", {.kind = CEL_OPTIONAL}};
    p->n_optional = 2;
    if (!p->old)
        return;
    p->before = cel_from_shape(j->scratch, j->shapes, p->n->shape, p->old);
    p->plain[1] = (struct cel_variable){"oldSelf", p->before};
    p->optional[1].value.inner = &p->before;
    p->n_plain = 2;
}

/* What messageExpression gives, or empty; false as of stop(). */
static bool evaluated_message(struct judging *j, struct place *p, const struct crd_rule *rule,
                              struct field_errors *e, struct str *ret)
{
    struct cel_value v;
    enum outcome how;

    *ret = STR_NULL;
    if (!rule->message)
        return true;
    how = evaluate(j, rule->message, p->plain, p->n_plain, &v);
    if (how == OVER_LIMIT)
        refuse(j, p, rule, e,
               arena_printf(j->scratch,
                            "no further validation rules will be run due to call cost exceeds "
                            "limit for messageExpression: \"%.*s\"",
                            STR_F(json_str(json_get(rule->source, "messageExpression"))))
                   .p);
    else if (how == OVER_BUDGET)
        refuse(j, p, rule, e,
               "messageExpression evaluation failed due to running out of cost budget, no further "
               "validation rules will be run");
    if (how != WENT_ON)
        return stop(j);
    if (v.kind == CEL_STRING && str_trim(v.s).n <= RULE_MOST_MESSAGE &&
        str_find(str_trim(v.s), '\n') == str_trim(v.s).n)
        *ret = str_trim(v.s);
    return true;
}

static bool failed(struct judging *j, struct place *p, const struct crd_rule *rule)
{
    bool unchanged = !rule->uses_old && is_unchanged(j, p->ratchet);
    struct field_errors *e = unchanged && j->kept ? j->kept : j->e;
    struct str message;

    if (!evaluated_message(j, p, rule, e, &message))
        return false;
    if (!message.n && json_str(json_get(rule->source, "message")).n)
        message = rule_name(rule);
    if (!message.n)
        message = arena_printf(j->scratch, "failed rule: %.*s", STR_F(rule_name(rule)));
    refuse(j, p, rule, e, arena_cstr(j->scratch, message));
    return true;
}

static bool errored(struct judging *j, struct place *p, const struct crd_rule *rule,
                    struct str error, enum outcome how)
{
    const char *format = "%.*s evaluating rule: %.*s";

    if (how == OVER_BUDGET) {
        j->left = 0;
        return within_budget(j, p);
    }
    if (how == OVER_LIMIT)
        format = "'%.*s': no further validation rules will be run due to call cost exceeds limit "
                 "for rule: %.*s";
    else if (str_has_prefix(error, STR("no such overload")))
        format = "'%.*s': call arguments did not match a supported operator, function or macro "
                 "signature for rule: %.*s";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    broken(j, p, arena_printf(j->scratch, format, STR_F(error), STR_F(rule_name(rule))).p);
#pragma GCC diagnostic pop
    return how == OVER_LIMIT ? stop(j) : true;
}

static bool judge_rule(struct judging *j, struct place *p, const struct crd_rule *rule)
{
    struct cel_value v;
    enum outcome how;

    if (rule->problem.n) {
        j->left -= 1 + (int64_t)rule->problem.n / 64;
        if (!within_budget(j, p))
            return false;
        broken_rule(j, p, rule->problem);
        return true;
    }
    if (!rule->program || (rule->uses_old && !p->old && !rule->optional_old))
        return true;
    how = evaluate(j, rule->program, rule->optional_old ? p->optional : p->plain,
                   rule->optional_old ? p->n_optional : p->n_plain, &v);
    if (how != WENT_ON || v.kind == CEL_ERROR)
        return errored(j, p, rule, v.s, how);
    return cel_is_true(v) || failed(j, p, rule);
}

static void judge_rules(struct judging *j, struct place *p)
{
    if (!p->n->n_rules)
        return;
    if (!p->n->shape) {
        broken(j, p,
               "rule compiler initialization error: failed to convert to declType for CEL "
               "validation rules");
        return;
    }
    j->left -= (int64_t)p->n->n_rules / 16; /* also those that have nothing to compare with */
    if (!within_budget(j, p))
        return;
    if (arena_used(j->scratch) > SCRATCH_KEPT) {
        arena_free(j->scratch);
        j->scratch = arena_new(SCRATCH);
    }
    begin_place(j, p);
    for (size_t i = 0; i < p->n->n_rules; i++) {
        if (!judge_rule(j, p, &p->n->rules[i]))
            return;
    }
}

/* ---- the walk ---- */

static void judge_node(struct judging *j, const struct crd_rule_node *n,
                       const struct field_path *path, const cJSON *value, const cJSON *old,
                       struct ratchet ratchet);

static void judge_items(struct judging *j, const struct crd_rule_node *n,
                        const struct field_path *path, const cJSON *list, const cJSON *old,
                        struct ratchet ratchet)
{
    const struct schema_node *s = schema_node(j->schema, n->node);
    const cJSON *hint = json_is_array(old) ? json_first(old) : NULL;
    struct pair own;
    size_t i = 0;

    json_each(item, list)
    {
        const cJSON *was = crd_old_item(j->schema, s, item, old, hint, &j->steps);

        if (j->left < 0)
            return;
        if (!j->steps) {
            field_forbidden(j->e, shown_path(path),
                            "comparing it with its previous value would take too long");
            stop(j);
            return;
        }
        hint = was ? was->next : hint;
        judge_node(j, n->items, FIELD_INDEX(path, i++), item, was,
                   below(ratchet, &own, s->elem, item, was));
    }
}

static void judge_members(struct judging *j, const struct crd_rule_node *n,
                          const struct field_path *path, const cJSON *object, const cJSON *old,
                          struct ratchet ratchet)
{
    struct lookup before = crd_lookup(old);
    struct pair own;

    json_each(member, object)
    {
        struct str key = json_key(member);
        const struct crd_rule_node *child = n->more ? n->more : crd_rule_field(n, key);
        const cJSON *was = crd_look_up(&before, key);
        /* The type of a resource is not part of what changes. */
        bool hidden = ratchet.current && !ratchet.nearest &&
                      (str_eqc(key, "apiVersion") || str_eqc(key, "kind"));

        if (j->left < 0)
            break;
        if (child)
            judge_node(j, child, n->more ? FIELD_KEY(path, key) : FIELD(path, member->string),
                       member, was,
                       hidden ? (struct ratchet){NULL, NULL}
                              : below(ratchet, &own, child->node, member, was));
    }
    crd_lookup_end(&before);
}

static void judge_node(struct judging *j, const struct crd_rule_node *n,
                       const struct field_path *path, const cJSON *value, const cJSON *old,
                       struct ratchet ratchet)
{
    struct place p = {.n = n, .path = path, .value = value, .old = old, .ratchet = ratchet};

    if (json_is_null(value))
        return;
    if (json_is_null(old))
        p.old = NULL;
    judge_rules(j, &p);
    if (j->left < 0)
        return;
    if (json_is_array(value) && n->items)
        judge_items(j, n, path, value, p.old, ratchet);
    else if (json_is_object(value) && (n->n_fields || n->more))
        judge_members(j, n, path, value, p.old, ratchet);
}

void crd_judge_rules(const struct crd_version *v, const struct crd_rule_node *n,
                     struct field_errors *e, struct field_errors *kept,
                     const struct field_path *path, const cJSON *value, const cJSON *old,
                     int64_t *left)
{
    struct pair whole = {n->node, value, old, -1};
    struct judging j = {.schema = &v->schema,
                        .shapes = &v->rules->shapes,
                        .e = e,
                        .kept = kept,
                        .scratch = arena_new(SCRATCH),
                        .left = *left,
                        .steps = JUDGE_STEPS,
                        .used = arena_used(e->arena)};

    judge_node(&j, n, path, value, old, (struct ratchet){old ? &whole : NULL, NULL});
    *left = j.left;
    arena_free(j.scratch);
}
