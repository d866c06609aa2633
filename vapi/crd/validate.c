/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a custom resource is what its schema says, in upstream's words (kube-openapi
 * pkg/validation). Time is bounded by the object and the schema: patterns run under match limits,
 * alternatives are not explored beyond the schema's depth. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    const struct crd_version *v;
    struct field_errors *errors;
    struct arena *arena;
    bool silent; /* an alternative is being tried: only count */
    size_t n;
};

static void judge(struct judge *j, uint32_t node, const cJSON *value,
                  const struct field_path *path);

/* "spec.replicas in body should be ..." */
static const char *words(struct judge *j, const struct field_path *path, const char *text)
{
    return arena_printf(j->arena, "%.*s in body %s", STR_F(field_path_text(j->arena, path)), text)
        .p;
}

static bool speak(struct judge *j)
{
    j->n++;
    return !j->silent;
}

static void invalid(struct judge *j, const struct field_path *path, const cJSON *value,
                    const char *text)
{
    if (speak(j))
        field_invalid(j->errors, path, value, words(j, path, text));
}

/* --- types --- */

static bool is_integer(const cJSON *value)
{
    int64_t i;

    return json_i64(value, &i) ||
           (json_is_number(value) && floor(value->valuedouble) == value->valuedouble &&
            fabs(value->valuedouble) < 9.3e18);
}

static bool type_holds(const struct schema_node *n, const struct schema_rules *r,
                       const cJSON *value)
{
    if (r->flags & RULE_INT_OR_STRING)
        return json_is_string(value) || is_integer(value);
    switch ((enum schema_kind)n->kind) {
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

    return n->kind < sizeof(names) / sizeof(*names) && names[n->kind] ? names[n->kind] : "any";
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
    struct str found = str_c(found_name(value));

    if (!speak(j))
        return;
    struct str text =
        arena_printf(j->arena, "must be of type %s: \"%.*s\"", type_name(n), STR_F(found));
    field_type_invalid(j->errors, path, found, words(j, path, text.p));
}

/* --- numbers --- */

static void judge_number(struct judge *j, const struct schema_rules *r, const cJSON *value,
                         const struct field_path *path)
{
    double x = value->valuedouble;
    bool low = r->flags & RULE_MIN && (r->flags & RULE_MIN_EXCLUSIVE ? x <= r->min : x < r->min);
    bool high = r->flags & RULE_MAX && (r->flags & RULE_MAX_EXCLUSIVE ? x >= r->max : x > r->max);
    struct str bound;

    if (high) {
        bound = json_text(j->arena, json_new_double(j->arena, r->max));
        invalid(j, path, value,
                arena_printf(j->arena, "should be less than %s%.*s",
                             r->flags & RULE_MAX_EXCLUSIVE ? "" : "or equal to ", STR_F(bound))
                    .p);
    }
    if (low) {
        bound = json_text(j->arena, json_new_double(j->arena, r->min));
        invalid(j, path, value,
                arena_printf(j->arena, "should be greater than %s%.*s",
                             r->flags & RULE_MIN_EXCLUSIVE ? "" : "or equal to ", STR_F(bound))
                    .p);
    }
    if (r->flags & RULE_MULTIPLE && r->multiple > 0) {
        double q = x / r->multiple;

        bound = json_text(j->arena, json_new_double(j->arena, r->multiple));
        if (fabs(q - round(q)) > 1e-9)
            invalid(j, path, value,
                    arena_printf(j->arena, "should be a multiple of %.*s", STR_F(bound)).p);
    }
    if (r->format == FORMAT_INT32 && (x < INT32_MIN || x > INT32_MAX))
        invalid(j, path, value, "must be of type int32");
}

/* --- strings --- */

static int64_t characters(struct str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* RE2's syntax is nearly a subset of PCRE2's; what differs fails to compile and was refused with
 * the CRD. */
static bool pattern_holds(const char *pattern, struct str text)
{
    int code;
    size_t offset;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                   &code, &offset, NULL);
    if (!re)
        return true;
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
    pcre2_set_match_limit(limits, 200000);
    pcre2_set_heap_limit(limits, 4096);
    int n = pcre2_match(re, (PCRE2_SPTR)text.p, text.n, 0, 0, data, limits);
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    pcre2_code_free(re);
    return n >= 0;
}

static void judge_string(struct judge *j, const struct schema_rules *r, const cJSON *value,
                         const struct field_path *path)
{
    struct str s = json_str(value);
    int64_t n = characters(s);

    if (r->max_length >= 0 && n > r->max_length && speak(j))
        field_too_long(j->errors, path, (size_t)r->max_length);
    if (r->min_length >= 0 && n < r->min_length)
        invalid(
            j, path, value,
            arena_printf(j->arena, "should be at least %lld chars long", (long long)r->min_length)
                .p);
    if (r->pattern && !pattern_holds(r->pattern, s))
        invalid(j, path, value, arena_printf(j->arena, "should match '%s'", r->pattern).p);
    if (r->format && !format_holds(r->format, s))
        invalid(j, path, value,
                arena_printf(j->arena, "must be of type %s: %.*s", RULE_FORMATS[r->format],
                             STR_F(json_text(j->arena, value)))
                    .p);
}

/* --- lists --- */

static void judge_items(struct judge *j, const struct schema_node *n, const struct schema_rules *r,
                        const cJSON *list, const struct field_path *path)
{
    int64_t count = (int64_t)json_count(list);
    size_t i = 0;

    if (r->max_items >= 0 && count > r->max_items && speak(j))
        field_too_many(j->errors, path, (size_t)count, (size_t)r->max_items);
    if (r->min_items >= 0 && count < r->min_items)
        invalid(
            j, path, json_new_i64(j->arena, count),
            arena_printf(j->arena, "should have at least %lld items", (long long)r->min_items).p);
    json_each(item, list)
    {
        if (n->elem)
            judge(j, n->elem, item, FIELD_INDEX(path, i));
        i++;
    }
}

/* The members of an item that make it one of a kind: its keys in a map, itself in a set. */
static struct str identity(struct judge *j, const struct schema_node *n, const cJSON *item)
{
    const char *key =
        n->list_type == LIST_MAP && n->keys ? schema_text(&j->v->schema, n->keys) : NULL;
    struct buf b = BUF_INIT(64 * 1024);

    if (!key)
        return json_text(j->arena, item);
    for (; *key; key += strlen(key) + 1) {
        const cJSON *part = json_get(item, key);

        buf_json_string(&b, str_c(key));
        if (part)
            json_print(&b, part);
        buf_char(&b, ',');
    }
    struct str text = arena_str(j->arena, buf_str(&b));
    buf_fini(&b);
    return text;
}

struct seen {
    struct str text;
    size_t index;
};

static int by_text(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int order = str_cmp(x->text, y->text);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void judge_unique(struct judge *j, const struct schema_node *n, const cJSON *list,
                         const struct field_path *path)
{
    size_t count = json_count(list), i = 0;
    struct seen *seen = arena_alloc(j->arena, (count + 1) * sizeof(*seen));

    json_each(item, list)
    {
        seen[i] = (struct seen){identity(j, n, item), i};
        i++;
    }
    qsort(seen, count, sizeof(*seen), by_text);
    for (i = 1; i < count; i++) {
        if (str_eq(seen[i].text, seen[i - 1].text) && speak(j))
            field_duplicate(j->errors, FIELD_INDEX(path, seen[i].index),
                            json_at(list, seen[i].index));
    }
}

/* --- objects --- */

static void judge_required(struct judge *j, const struct schema_rules *r, const cJSON *object,
                           const struct field_path *path)
{
    for (size_t i = 0; i < r->n_required; i++) {
        if (!json_get_str(object, r->required[i]) && speak(j))
            field_required(j->errors, FIELD(path, r->required[i].p), "");
    }
}

static void judge_members(struct judge *j, uint32_t node, const cJSON *object,
                          const struct field_path *path, bool is_root)
{
    const struct schema_node *n = schema_node(&j->v->schema, node);
    const struct schema_rules *r = version_rules(j->v, node);
    int64_t count = (int64_t)json_count(object);

    judge_required(j, r, object, path);
    if (r->max_properties >= 0 && count > r->max_properties && speak(j))
        field_too_many(j->errors, path, (size_t)count, (size_t)r->max_properties);
    if (r->min_properties >= 0 && count < r->min_properties)
        invalid(j, path, json_new_i64(j->arena, count),
                arena_printf(j->arena, "should have at least %lld properties",
                             (long long)r->min_properties)
                    .p);
    json_each(member, object)
    {
        const struct schema_field *f = schema_field(&j->v->schema, node, str_c(member->string));

        if (is_root && !strcmp(member->string, "metadata"))
            continue; /* the API's own */
        if (f)
            judge(j, f->node, member, FIELD(path, member->string));
        else if (n->elem)
            judge(j, n->elem, member, FIELD(path, member->string));
    }
}

/* --- alternatives --- */

static size_t holds(struct judge *j, const uint32_t *nodes, size_t n, const cJSON *value,
                    const struct field_path *path)
{
    size_t good = 0;

    for (size_t i = 0; i < n; i++) {
        struct judge trial = {.v = j->v, .errors = j->errors, .arena = j->arena, .silent = true};

        judge(&trial, nodes[i], value, path);
        good += trial.n == 0;
    }
    return good;
}

static void judge_combined(struct judge *j, const struct schema_rules *r, const cJSON *value,
                           const struct field_path *path)
{
    for (size_t i = 0; i < r->n_all_of; i++)
        judge(j, r->all_of[i], value, path);
    if (r->n_any_of && holds(j, r->any_of, r->n_any_of, value, path) == 0)
        invalid(j, path, value, "must validate at least one schema (anyOf)");
    if (r->n_one_of) {
        size_t good = holds(j, r->one_of, r->n_one_of, value, path);

        if (good != 1)
            invalid(
                j, path, value,
                good ? "must validate one and only one schema (oneOf). Found more than one valid "
                       "alternatives"
                     : "must validate one and only one schema (oneOf). Found none valid");
    }
    if (r->not_node && holds(j, &r->not_node, 1, value, path) == 1)
        invalid(j, path, value, "must not validate the schema (not)");
}

static void judge_enum(struct judge *j, const struct schema_rules *r, const cJSON *value,
                       const struct field_path *path)
{
    const char **allowed =
        arena_alloc(j->arena, (json_count(r->enumeration) + 1) * sizeof(*allowed));
    size_t n = 0;

    json_each(item, r->enumeration)
    {
        if (json_equal(item, value))
            return;
        allowed[n++] = json_is_string(item) ? json_str(item).p : json_text(j->arena, item).p;
    }
    if (speak(j))
        field_not_supported(j->errors, path,
                            json_is_string(value) ? json_str(value) : json_text(j->arena, value),
                            allowed);
}

static void judge(struct judge *j, uint32_t node, const cJSON *value, const struct field_path *path)
{
    const struct schema_node *n = schema_node(&j->v->schema, node);
    const struct schema_rules *r = version_rules(j->v, node);

    if (node == 0)
        return;
    if (json_is_null(value)) {
        if (!(r->flags & RULE_NULLABLE) && n->kind != SCHEMA_ANY)
            wrong_type(j, n, value, path);
        return;
    }
    if (!type_holds(n, r, value)) {
        wrong_type(j, n, value, path);
        return;
    }
    if (json_is_number(value))
        judge_number(j, r, value, path);
    if (json_is_string(value))
        judge_string(j, r, value, path);
    if (json_is_array(value)) {
        judge_items(j, n, r, value, path);
        if (n->list_type != LIST_ATOMIC || r->flags & RULE_UNIQUE)
            judge_unique(j, n, value, path);
    }
    if (json_is_object(value))
        judge_members(j, node, value, path, node == j->v->root);
    if (r->enumeration)
        judge_enum(j, r, value, path);
    judge_combined(j, r, value, path);
}

void crd_validate(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                  const cJSON *old)
{
    struct judge j = {.v = v, .errors = e, .arena = e->arena};

    (void)old; /* transition rules (CEL) are not evaluated by this version */
    if (!v->schema_text)
        return;
    version_ready(v);
    judge(&j, v->root, object, NULL);
}
