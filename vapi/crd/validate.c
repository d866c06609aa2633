/* SPDX-License-Identifier: Apache-2.0 */
/* Validates a custom resource against its schema, with upstream's messages and order (kube-openapi
 * pkg/validation). Unchanged values are not validated again (ratcheting). Time is bounded: every
 * visited node is a step, as is each name and value that a schema lists for it; steps, patterns
 * and messages have a budget. */
#include "judge.h"
#include "rules.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <sublet/encode.h>

static void judge(struct judge *j, uint32_t node, const cJSON *value, const cJSON *old,
                  const struct field_path *path);
static void out_of_steps(struct judge *j, const struct field_path *path);

/* False: there are not so many steps left, and none is. */
static bool spend(struct judge *j, size_t steps, const struct field_path *path)
{
    if (steps <= j->work->steps) {
        j->work->steps -= steps;
        return true;
    }
    j->work->steps = 0;
    out_of_steps(j, path);
    return false;
}

/* Further errors are counted without a message. */
#define MAX_MESSAGES      200
#define MAX_MESSAGE_BYTES ((size_t)4 << 20) /* of arena: each may have a value, or an enum */

/* Whether the caller shall add an error; one is counted here where not. */
static bool speak(struct judge *j)
{
    if (!j->errors->first)
        j->work->used = arena_used(j->errors->arena);
    if (!j->silent && j->errors->n < MAX_MESSAGES &&
        arena_used(j->errors->arena) - j->work->used < MAX_MESSAGE_BYTES)
        return true;
    j->errors->n++;
    return false;
}

/* "spec.replicas in body should be ..." */
static const char *message(struct judge *j, const struct field_path *path, const char *text)
{
    return arena_printf(j->arena, "%.*s in body %s", STR_F(field_path_text(j->arena, path)), text)
        .p;
}

static void invalid(struct judge *j, const struct field_path *path, const cJSON *value,
                    const char *text)
{
    if (speak(j))
        field_invalid(j->errors, path, value, message(j, path, text));
}

/* Upstream's composite errors have no path: the message contains it. */
static void pathless(struct judge *j, const struct field_path *path, const char *format)
{
    if (!speak(j))
        return;
    struct str at = field_path_text(j->arena, path);
    struct str text = arena_printf(j->arena, "\"%.*s\" %s", STR_F(at), format);
    field_invalid_str(j->errors, FIELD(NULL, "<nil>"), STR(""), text.p);
}

/* --- types --- */

/* Values that Go decodes as an int64, or a float without fraction that JSON holds exactly. */
static bool is_integer(const cJSON *value)
{
    int64_t i;

    return json_i64(value, &i) ||
           (json_is_number(value) && floor(value->valuedouble) == value->valuedouble &&
            fabs(value->valuedouble) < 9007199254740992.0);
}

static bool type_holds(const struct schema_node *n, const struct schema_rules *r,
                       const cJSON *value)
{
    if (!(r->flags & RULE_TYPED))
        return true;
    if (json_is_null(value))
        return r->flags & RULE_NULLABLE;
    switch ((enum schema_kind)n->kind) {
    case SCHEMA_INT_OR_STRING:
        return json_is_string(value) || is_integer(value);
    case SCHEMA_STRING:
        return json_is_string(value);
    case SCHEMA_BOOL:
        return json_is_bool(value);
    case SCHEMA_INT64:
        return is_integer(value);
    case SCHEMA_DOUBLE:
        return json_is_number(value);
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        return json_is_object(value);
    case SCHEMA_LIST:
        return json_is_array(value);
    default:
        return true;
    }
}

static const char *type_name(const struct schema_node *n)
{
    static const char *const names[] = {
        [SCHEMA_STRING] = "string", [SCHEMA_BOOL] = "boolean",
        [SCHEMA_INT64] = "integer", [SCHEMA_DOUBLE] = "number",
        [SCHEMA_OBJECT] = "object", [SCHEMA_MAP] = "object",
        [SCHEMA_LIST] = "array",    [SCHEMA_INT_OR_STRING] = "integer,string",
    };

    return n->kind < COUNT(names) && names[n->kind] ? names[n->kind] : "any";
}

static const char *found_name(const cJSON *value)
{
    if (is_integer(value))
        return "integer";
    return json_is_number(value) ? "number" : json_type_name(value);
}

static void wrong_type(struct judge *j, const struct schema_node *n, const cJSON *value,
                       const struct field_path *path)
{
    struct str found = str_c(json_is_bool(value) ? "boolean" : found_name(value));

    if (!speak(j))
        return;
    struct str text =
        arena_printf(j->arena, "must be of type %s: \"%.*s\"", type_name(n), STR_F(found));
    field_type_invalid(j->errors, path, found, message(j, path, text.p));
}

/* --- numbers --- */

static void number_range(struct judge *j, const struct schema_node *n, const struct schema_rules *r,
                         const cJSON *value, const struct field_path *path)
{
    double x = value->valuedouble;
    bool fits = true;

    if (!(r->flags & RULE_TYPED))
        return;
    if (n->kind == SCHEMA_INT64)
        fits =
            is_integer(value) && (r->format != FORMAT_INT32 || (x >= INT32_MIN && x <= INT32_MAX));
    else if (n->kind == SCHEMA_DOUBLE && r->format == FORMAT_FLOAT)
        fits = fabs(x) <= (double)FLT_MAX;
    if (fits || !speak(j))
        return;
    struct str at = field_path_text(j->arena, path);
    struct str text =
        r->format
            ? arena_printf(j->arena, "Checked value must be of type %s with format %s in %.*s",
                           type_name(n), r->format_text, STR_F(at))
            : arena_printf(j->arena, "Checked value must be of type %s (default format) in %.*s",
                           type_name(n), STR_F(at));
    field_invalid_str(j->errors, FIELD(NULL, "<nil>"), STR(""), text.p);
}

static void number_bound(struct judge *j, const char *format, const char *or_equal, double bound,
                         const cJSON *value, const struct field_path *path)
{
    if (!speak(j))
        return;
    struct str text = json_text(j->arena, json_new_double(j->arena, bound));
    invalid(j, path, value, arena_printf(j->arena, "%s%s%.*s", format, or_equal, STR_F(text)).p);
}

static void judge_number(struct judge *j, const struct schema_node *n, const struct schema_rules *r,
                         const cJSON *value, const struct field_path *path)
{
    double x = value->valuedouble;

    number_range(j, n, r, value, path);
    if (r->flags & RULE_MULTIPLE && r->multiple > 0) {
        double q = x / r->multiple;

        if (fabs(q - round(q)) > 1e-9)
            number_bound(j, "should be a multiple of ", "", r->multiple, value, path);
    }
    if (r->flags & RULE_MAX && (r->flags & RULE_MAX_EXCLUSIVE ? x >= r->max : x > r->max))
        number_bound(j, "should be less than ", r->flags & RULE_MAX_EXCLUSIVE ? "" : "or equal to ",
                     r->max, value, path);
    if (r->flags & RULE_MIN && (r->flags & RULE_MIN_EXCLUSIVE ? x <= r->min : x < r->min))
        number_bound(j, "should be greater than ",
                     r->flags & RULE_MIN_EXCLUSIVE ? "" : "or equal to ", r->min, value, path);
}

/* --- strings --- */

static void too_short(struct judge *j, const cJSON *value, int64_t min,
                      const struct field_path *path)
{
    if (speak(j))
        invalid(j, path, value,
                arena_printf(j->arena, "should be at least %lld chars long", (long long)min).p);
}

static void too_few(struct judge *j, int64_t count, int64_t min, const char *what,
                    const struct field_path *path)
{
    if (speak(j))
        invalid(j, path, json_new_i64(j->arena, count),
                arena_printf(j->arena, "should have at least %lld %s", (long long)min, what).p);
}

static void judge_string(struct judge *j, const struct schema_rules *r, const cJSON *value,
                         const struct field_path *path)
{
    struct str s = json_str(value);
    bool counts = r->max_length >= 0 || r->min_length >= 0;
    int64_t n = counts ? (int64_t)str_characters(s) : 0;

    if (r->max_length >= 0 && n > r->max_length) {
        if (speak(j))
            field_too_long(j->errors, path, (size_t)r->max_length);
    } else if (r->min_length >= 0 && n < r->min_length) {
        too_short(j, value, r->min_length, path);
    } else if (r->pattern && !pattern_holds(r->pattern, s, &j->work->pattern)) {
        if (speak(j))
            invalid(j, path, value,
                    arena_printf(j->arena, "should match '%s'", pattern_text(r->pattern)).p);
    }
    if (r->format && !crd_format_holds(r->format, s) && speak(j)) {
        struct str text = arena_printf(j->arena, "must be of type %s: %.*s", r->format_text,
                                       STR_F(go_quote(j->arena, s)));

        field_type_invalid(j->errors, path, s, message(j, path, text.p));
    }
}

/* --- lists --- */

static void judge_items(struct judge *j, const struct schema_node *n, const struct schema_rules *r,
                        const cJSON *list, const cJSON *old, const struct field_path *path)
{
    int64_t count = (int64_t)json_count(list);
    const cJSON *hint = json_is_array(old) ? json_first(old) : NULL;
    size_t i = 0;

    if (n->elem) {
        json_each(item, list)
        {
            const cJSON *was = crd_old_item(&j->v->schema, n, item, old, hint, &j->work->steps);

            hint = was ? was->next : hint;
            judge(j, n->elem, item, was, FIELD_INDEX(path, i++));
        }
    }
    if (r->min_items >= 0 && count < r->min_items)
        too_few(j, count, r->min_items, "items", path);
    if (r->max_items >= 0 && count > r->max_items && speak(j))
        field_too_many(j->errors, path, (size_t)count, (size_t)r->max_items);
}

/* --- objects --- */

static const cJSON *look_up(struct judge *j, struct lookup *l, struct str key,
                            const struct field_path *path)
{
    size_t steps = crd_lookup_steps(l, key);

    return !steps || spend(j, steps, path) ? crd_look_up(l, key) : NULL;
}

static void judge_required(struct judge *j, const struct schema_rules *r, const cJSON *object,
                           const struct field_path *path)
{
    struct lookup l = crd_lookup(object);

    if (!r->n_required || !spend(j, r->n_required, path))
        return;
    for (size_t i = 0; i < r->n_required; i++) {
        if (!look_up(j, &l, r->required[i], path) && speak(j))
            field_required(j->errors, FIELD(path, r->required[i].p), "");
    }
    crd_lookup_end(&l);
}

static void not_allowed(struct judge *j, const char *key, const struct field_path *path)
{
    if (!speak(j))
        return;
    struct str text = arena_printf(j->arena, "%.*s.%s in body is a forbidden property",
                                   STR_F(field_path_text(j->arena, path)), key);
    field_invalid_str(j->errors, path, str_c(key), text.p);
}

static void judge_members(struct judge *j, uint32_t node, const cJSON *object, const cJSON *old,
                          const struct field_path *path)
{
    const struct schema_node *n = schema_node(&j->v->schema, node);
    const struct schema_rules *r = crd_version_rules(j->v, node);
    int64_t count = (int64_t)json_count(object);
    struct lookup before = crd_lookup(old);

    if (r->min_properties >= 0 && count < r->min_properties)
        too_few(j, count, r->min_properties, "properties", path);
    if (r->max_properties >= 0 && count > r->max_properties && speak(j))
        field_too_many(j->errors, path, (size_t)count, (size_t)r->max_properties);
    json_each(member, object)
    {
        const struct schema_field *f = schema_field(&j->v->schema, node, str_c(member->string));
        uint32_t child = f ? f->node : n->elem;

        if (child)
            judge(j, child, member, look_up(j, &before, json_key(member), path),
                  FIELD(path, member->string));
        else if (!f && r->flags & RULE_CLOSED)
            not_allowed(j, member->string, path);
    }
    crd_lookup_end(&before);
    judge_required(j, r, object, path);
}

/* --- alternatives --- */

/* How many alternatives hold; stops after at_most. *closest: the one with most checks that held, to
 * be judged once more for its messages. Silent, since most alternatives fail and are forgotten. */
static size_t try_all(struct judge *j, const uint32_t *nodes, size_t n, const cJSON *value,
                      const struct field_path *path, size_t at_most, uint32_t *closest)
{
    size_t good = 0, most = 0;

    *closest = 0;
    for (size_t i = 0; i < n && good < at_most; i++) {
        struct field_errors errors;

        field_errors_init(&errors, j->arena);
        struct judge trial = {
            .v = j->v, .errors = &errors, .arena = j->arena, .work = j->work, .silent = true};
        judge(&trial, nodes[i], value, NULL, path);
        good += !errors.n;
        if (!*closest || trial.matched > most) {
            *closest = nodes[i];
            most = trial.matched;
        }
    }
    return good;
}

/* Adds the errors of the closest alternative. */
static void judge_closest(struct judge *j, uint32_t closest, const cJSON *value,
                          const struct field_path *path)
{
    size_t matched = j->matched;

    if (!j->silent)
        judge(j, closest, value, NULL, path);
    j->matched = matched;
}

static void judge_any(struct judge *j, const struct schema_rules *r, const cJSON *value,
                      const struct field_path *path)
{
    uint32_t closest;

    if (!r->n_any_of || try_all(j, r->any_of, r->n_any_of, value, path, 1, &closest))
        return;
    pathless(j, path, "must validate at least one schema (anyOf)");
    judge_closest(j, closest, value, path);
}

static void judge_one(struct judge *j, const struct schema_rules *r, const cJSON *value,
                      const struct field_path *path)
{
    uint32_t closest;
    size_t good;

    if (!r->n_one_of)
        return;
    good = try_all(j, r->one_of, r->n_one_of, value, path, SIZE_MAX, &closest);
    if (good > 1 && speak(j))
        pathless(j, path,
                 arena_printf(j->arena,
                              "must validate one and only one schema (oneOf). Found %zu valid "
                              "alternatives",
                              good)
                     .p);
    if (good)
        return;
    pathless(j, path, "must validate one and only one schema (oneOf). Found none valid");
    judge_closest(j, closest, value, path);
}

static void judge_combined(struct judge *j, const struct schema_rules *r, const cJSON *value,
                           const struct field_path *path)
{
    uint32_t closest;
    size_t good = 0;

    judge_any(j, r, value, path);
    judge_one(j, r, value, path);
    for (size_t i = 0; i < r->n_all_of; i++) {
        size_t before = j->errors->n;

        judge(j, r->all_of[i], value, NULL, path);
        good += j->errors->n == before;
    }
    if (good < r->n_all_of)
        pathless(j, path,
                 good ? "must validate all the schemas (allOf)"
                      : "must validate all the schemas (allOf). None validated");
    if (r->not_node && try_all(j, &r->not_node, 1, value, path, 1, &closest))
        pathless(j, path, "must not validate the schema (not)");
}

static void judge_enum(struct judge *j, const struct schema_rules *r, const cJSON *value,
                       const struct field_path *path)
{
    const char **allowed;
    size_t n = 0;

    if (!spend(j, json_count(r->enumeration), path))
        return;
    json_each(item, r->enumeration)
    {
        if (json_equal(item, value))
            return;
        n++;
    }
    if (!speak(j))
        return;
    allowed = arena_alloc(j->arena, (n + 1) * sizeof(*allowed));
    n = 0;
    json_each(item, r->enumeration) allowed[n++] =
        json_is_string(item) ? json_str(item).p : json_text(j->arena, item).p;
    field_not_supported_value(j->errors, path, value, allowed);
}

/* What is not judged to its end is wrong, also as an alternative that shall not hold. */
static void out_of_steps(struct judge *j, const struct field_path *path)
{
    j->work->spent = true;
    if (j->silent || j->work->told) {
        j->errors->n++;
        return;
    }
    field_forbidden(j->errors, path, "validating it against its schema would take too long");
    j->work->told = true;
}

/* The steps may have ended within the last alternative. */
static void tell_spent(struct judge *j)
{
    if (j->work->spent && !j->work->told)
        out_of_steps(j, FIELD(NULL, "<nil>"));
}

static void judge(struct judge *j, uint32_t node, const cJSON *value, const cJSON *old,
                  const struct field_path *path)
{
    const struct schema_node *n;
    const struct schema_rules *r;

    if (node == 0 || (old && json_equal(old, value)))
        return;
    if (!j->work->steps) {
        out_of_steps(j, path);
        return;
    }
    j->work->steps--;

    /* Runs every check for this kind of value, whatever the declared type: as upstream. */
    n = schema_node(&j->v->schema, node);
    r = crd_version_rules(j->v, node);
    j->matched += 4;
    if (type_holds(n, r, value))
        j->matched++;
    else
        wrong_type(j, n, value, path);
    if (!json_is_null(value))
        judge_combined(j, r, value, path);
    if (json_is_string(value))
        judge_string(j, r, value, path);
    if (json_is_number(value))
        judge_number(j, n, r, value, path);
    if (json_is_array(value))
        judge_items(j, n, r, value, old, path);
    if (r->enumeration)
        judge_enum(j, r, value, path);
    if (json_is_object(value))
        judge_members(j, node, value, old, path);
}

void crd_judge_part(const struct crd_version *v, struct field_errors *e, struct judge_work *work,
                    uint32_t node, const cJSON *value)
{
    struct judge j = {.v = v, .errors = e, .arena = e->arena, .work = work};

    judge(&j, node, value, NULL, NULL);
    tell_spent(&j);
}

/* Lists that were invalid before may stay so: their old duplicates cannot be distinguished from
 * added ones. */
static bool lists_held(struct judge *j, const cJSON *old)
{
    struct field_errors errors;
    struct judge before = {.v = j->v, .errors = &errors, .arena = j->arena, .work = j->work};

    field_errors_init(&errors, j->arena);
    crd_judge_lists(&before, old);
    return !errors.n;
}

/* Rules are for values of the types that they were compiled for. */
static bool blocks_rules(const struct field_errors *e)
{
    static const char blocking[] = "FieldValueNotSupported|FieldValueRequired|FieldValueTooLong|"
                                   "FieldValueTooMany|FieldValueTypeInvalid";

    for (const struct err_cause *c = e->first; c; c = c->next) {
        if (str_word_index(blocking, c->type) >= 0)
            return true;
    }
    return e->n >= MAX_MESSAGES; /* there are errors that are only counted */
}

static void judge_rules(const struct crd_version *v, struct field_errors *e,
                        struct field_errors *kept, const cJSON *object, const cJSON *old)
{
    int64_t left = RULES_BUDGET;

    if (blocks_rules(e))
        field_invalid(e, FIELD(NULL, "<nil>"), NULL,
                      "some validation rules were not checked because the object was invalid; "
                      "correct the existing errors to complete validation");
    else
        crd_judge_rules(v, v->rules->root, e, kept, NULL, object, old, &left);
}

void crd_validate(const struct crd_version *v, struct field_errors *e, struct field_errors *kept,
                  const cJSON *object, const cJSON *old)
{
    struct judge_work work = {.steps = JUDGE_STEPS, .pattern = PATTERN_BUDGET};
    struct judge j = {.v = v, .errors = e, .arena = e->arena, .work = &work};

    if (!v->schema_text) {
        crd_judge_replicas(v, e, object, old);
        return;
    }
    crd_version_ready(v);
    judge(&j, v->root, object, old, NULL);
    tell_spent(&j);
    crd_judge_replicas(v, e, object, old);
    crd_judge_embedded(&j, object);
    if (!old || lists_held(&j, old))
        crd_judge_lists(&j, object);
    if (v->rules)
        judge_rules(v, e, kept, object, old);
}
