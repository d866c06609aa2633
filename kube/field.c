/* SPDX-License-Identifier: Apache-2.0 */
/* Field paths and lists of field errors, in the words of apimachinery's pkg/util/validation/field:
 * clients and tests read them. Must stay bounded whatever is validated: the list and each value
 * shown are cut. */
#include <sublet/field.h>

#include <sublet/encode.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_ERRORS 256
#define MAX_VALUE  1024

/* --- paths --- */

struct str field_path_text(struct arena *a, const struct field_path *p)
{
    struct buf b = BUF_INIT(0);
    const struct field_path *chain[128];
    size_t n = 0;

    for (; p && n < 128; p = p->parent)
        chain[n++] = p;
    while (n--) {
        const struct field_path *part = chain[n];

        if (part->is_index) {
            buf_printf(&b, "[%zu]", part->index);
        } else if (part->name) {
            if (b.n)
                buf_char(&b, '.');
            buf_addc(&b, part->name);
        } else {
            buf_char(&b, '[');
            buf_add(&b, part->key);
            buf_char(&b, ']');
        }
    }

    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* --- errors --- */

enum field_error {
    ERROR_REQUIRED,
    ERROR_INVALID,
    ERROR_NOT_SUPPORTED,
    ERROR_DUPLICATE,
    ERROR_FORBIDDEN,
    ERROR_TOO_LONG,
    ERROR_TOO_MANY,
    ERROR_TOO_FEW,
    ERROR_TYPE_INVALID,
    ERROR_NOT_FOUND,
    ERROR_INTERNAL,
};

static const struct {
    const char *cause, *words;
} TYPES[] = {
    [ERROR_REQUIRED] = {"FieldValueRequired", "Required value"},
    [ERROR_INVALID] = {"FieldValueInvalid", "Invalid value"},
    [ERROR_NOT_SUPPORTED] = {"FieldValueNotSupported", "Unsupported value"},
    [ERROR_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value"},
    [ERROR_FORBIDDEN] = {"FieldValueForbidden", "Forbidden"},
    [ERROR_TOO_LONG] = {"FieldValueTooLong", "Too long"},
    [ERROR_TOO_MANY] = {"FieldValueTooMany", "Too many"},
    [ERROR_TOO_FEW] = {"FieldValueTooFew", "Too few"},
    [ERROR_TYPE_INVALID] = {"FieldValueTypeInvalid", "Invalid value"},
    [ERROR_NOT_FOUND] = {"FieldValueNotFound", "Not found"},
    [ERROR_INTERNAL] = {"InternalError", "Internal error"},
};

void field_errors_init(struct field_errors *e, struct arena *a)
{
    *e = (struct field_errors){.arena = a};
    e->last = &e->first;
}

void field_errors_append(struct field_errors *e, const struct field_errors *more)
{
    *e->last = more->first;
    if (more->first)
        e->last = more->last;
    e->n += more->n;
}

/* value: already printed; p == NULL for none. */
static void add(struct field_errors *e, enum field_error type, const struct field_path *path,
                struct str value, const char *detail)
{
    struct buf b = BUF_INIT(0);

    if (e->n++ >= MAX_ERRORS)
        return;
    buf_addc(&b, TYPES[type].words);
    if (value.p) {
        buf_addc(&b, ": ");
        buf_add(&b, str_sub(value, 0, MAX_VALUE));
    }
    if (detail && *detail) {
        buf_addc(&b, ": ");
        buf_addc(&b, detail);
    }
    struct err_cause *cause = ARENA_NEW(e->arena, struct err_cause);
    cause->type = str_c(TYPES[type].cause);
    cause->field = field_path_text(e->arena, path);
    cause->message = arena_str(e->arena, buf_str(&b));
    buf_fini(&b);
    *e->last = cause;
    e->last = &cause->next;
}

/* As field.Error prints it: Go's quotes for a string, JSON for other values. */
static struct str value_text(struct arena *a, const cJSON *value)
{
    if (json_is_string(value))
        return go_quote(a, json_str(value));
    return value ? json_text(a, value) : STR("null");
}

void field_internal(struct field_errors *e, const struct field_path *p, const char *detail)
{
    add(e, ERROR_INTERNAL, p, STR_NULL, detail);
}

void field_required(struct field_errors *e, const struct field_path *p, const char *detail)
{
    add(e, ERROR_REQUIRED, p, STR_NULL, detail);
}

void field_invalid(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *detail)
{
    add(e, ERROR_INVALID, p, value_text(e->arena, value), detail);
}

void field_invalid_str(struct field_errors *e, const struct field_path *p, struct str value,
                       const char *detail)
{
    add(e, ERROR_INVALID, p, go_quote(e->arena, value), detail);
}

void field_invalid_bare(struct field_errors *e, const struct field_path *p, const char *detail)
{
    add(e, ERROR_INVALID, p, STR_NULL, detail);
}

static void not_supported(struct field_errors *e, const struct field_path *p, struct str value,
                          const char *const *supported)
{
    struct buf detail = BUF_INIT(0);

    for (size_t i = 0; supported[i]; i++) {
        buf_addc(&detail, i ? ", " : "supported values: ");
        buf_add(&detail, go_quote(e->arena, str_c(supported[i])));
    }
    buf_char(&detail, '\0');
    add(e, ERROR_NOT_SUPPORTED, p, value, detail.p);
    buf_fini(&detail);
}

void field_not_supported(struct field_errors *e, const struct field_path *p, struct str value,
                         const char *const *supported)
{
    not_supported(e, p, go_quote(e->arena, value), supported);
}

void field_not_supported_value(struct field_errors *e, const struct field_path *p,
                               const cJSON *value, const char *const *supported)
{
    not_supported(e, p, value_text(e->arena, value), supported);
}

void field_duplicate(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    add(e, ERROR_DUPLICATE, p, value_text(e->arena, value), NULL);
}

void field_duplicate_bare(struct field_errors *e, const struct field_path *p)
{
    add(e, ERROR_DUPLICATE, p, STR_NULL, NULL);
}

void field_duplicate_because(struct field_errors *e, const struct field_path *p, const cJSON *value,
                             const char *detail)
{
    add(e, ERROR_DUPLICATE, p, value_text(e->arena, value), detail);
}

void field_forbidden(struct field_errors *e, const struct field_path *p, const char *detail)
{
    add(e, ERROR_FORBIDDEN, p, STR_NULL, detail);
}

void field_too_long(struct field_errors *e, const struct field_path *p, size_t max)
{
    struct str detail =
        arena_printf(e->arena, "may not be more than %zu %s", max, max == 1 ? "byte" : "bytes");

    add(e, ERROR_TOO_LONG, p, STR_NULL, detail.p);
}

void field_too_long_chars(struct field_errors *e, const struct field_path *p, size_t max)
{
    struct str detail = arena_printf(e->arena, "may not be more than %zu %s", max,
                                     max == 1 ? "character" : "characters");

    add(e, ERROR_TOO_LONG, p, STR_NULL, detail.p);
}

void field_too_few(struct field_errors *e, const struct field_path *p, size_t actual, size_t min)
{
    struct str detail =
        arena_printf(e->arena, "must have at least %zu %s", min, min == 1 ? "item" : "items");

    add(e, ERROR_TOO_FEW, p, arena_printf(e->arena, "%zu", actual), detail.p);
}

void field_too_many(struct field_errors *e, const struct field_path *p, size_t actual, size_t max)
{
    struct str detail =
        arena_printf(e->arena, "must have at most %zu %s", max, max == 1 ? "item" : "items");

    add(e, ERROR_TOO_MANY, p, arena_printf(e->arena, "%zu", actual), detail.p);
}

void field_type_invalid(struct field_errors *e, const struct field_path *p, struct str value,
                        const char *detail)
{
    add(e, ERROR_TYPE_INVALID, p, go_quote(e->arena, value), detail);
}

void field_not_found_because(struct field_errors *e, const struct field_path *p, const cJSON *value,
                             const char *detail)
{
    add(e, ERROR_NOT_FOUND, p, value_text(e->arena, value), detail);
}

void field_not_found(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    add(e, ERROR_NOT_FOUND, p, value_text(e->arena, value), NULL);
}

/* --- as one error --- */

static bool said_before(const struct err_cause *first, const struct err_cause *cause)
{
    for (const struct err_cause *c = first; c != cause; c = c->next) {
        if (str_eq(c->field, cause->field) && str_eq(c->message, cause->message))
            return true;
    }
    return false;
}

static void aggregate(struct buf *b, const struct err_cause *first)
{
    bool many = false, some = false;

    for (const struct err_cause *c = first->next; c && !many; c = c->next)
        many = !said_before(first, c);
    if (many)
        buf_char(b, '[');
    for (const struct err_cause *c = first; c; c = c->next) {
        if (said_before(first, c))
            continue;
        if (some)
            buf_addc(b, ", ");
        some = true;
        buf_add(b, c->field.n ? c->field : STR("<nil>"));
        buf_addc(b, ": ");
        buf_add(b, c->message);
    }
    if (many)
        buf_char(b, ']');
}

int field_errors_to_err(const struct field_errors *e, struct str group, struct str kind,
                        struct str name, struct err *err)
{
    struct buf text = BUF_INIT(64 * 1024);

    if (!e->first)
        return 0;
    buf_printf(&text, "%.*s%s%.*s ", STR_F(kind), group.n ? "." : "", STR_F(group));
    buf_add(&text, go_quote(e->arena, name));
    buf_addc(&text, " is invalid: ");
    aggregate(&text, e->first);
    err_set(err, &ERR_INVALID, "%.*s", STR_F(buf_str(&text)));
    buf_fini(&text);
    err->group = group;
    err->resource = kind;
    err->name = name;
    for (const struct err_cause *c = e->first; c; c = c->next)
        err_cause(err, c->type, c->field, c->message);
    return -1;
}
