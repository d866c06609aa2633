/* SPDX-License-Identifier: Apache-2.0 */
/* The type checker: names that are declared, members that exist, calls that have an overload. What
 * is dyn is left to the evaluation. Types are the letters of table.c. Source: cel-go
 * checker/checker.go and its errors. */
#include "shape.h"

#include <string.h>

#define MOST_TYPE  250  /* letters: what nests deeper is dyn inside */
#define MOST_TYPES 8192 /* bytes of the types of arguments in a message */

struct checked_scope {
    const struct checked_scope *up;
    struct str name;
    const char *type;
};

struct checker {
    struct arena *arena;
    const struct cel_program *program;
    const struct cel_environment *env;
    const struct checked_scope *scope;
    struct err *err;
    bool failed;
    unsigned formats; /* calls of format() around: their lists may mix types */
};

static const char *check(struct checker *c, const struct cel_node *x);

static const char *fail(struct checker *c, const struct cel_node *x, const char *before,
                        struct str name, const char *after)
{
    if (!c->failed)
        cel_report(c->arena, c->program->source, x->at, c->err, "%s%.*s%s", before, STR_F(name),
                   after);
    c->failed = true;
    return "*";
}

/* ---- types ---- */

static struct str one_type(const char *type)
{
    return (struct str){type, (size_t)(cel_type_skip(type) - type)};
}

static const char *copy_type(struct checker *c, const char *type)
{
    return arena_cstr(c->arena, one_type(type));
}

static const char *wrap(struct checker *c, char letter, const char *type)
{
    struct str of = one_type(type);

    return arena_printf(c->arena, "%c%.*s", letter, STR_F(of.n < MOST_TYPE ? of : STR("*"))).p;
}

/* A macro may double the type of the one before it. */
static const char *map_type(struct checker *c, const char *key, const char *value)
{
    struct str k = one_type(key), v = one_type(value);
    bool fits = k.n + v.n < MOST_TYPE;

    return arena_printf(c->arena, "M%.*s%.*s", STR_F(fits ? k : STR("*")),
                        STR_F(fits ? v : STR("*")))
        .p;
}

/* Type parameters while one overload is tried. */
struct binding {
    const char *a, *b;
};

static bool is_dyn(const char *type)
{
    return *type == '*';
}

static bool is_nullable(const char *type)
{
    return *type == 'n' || *type == '*' || !strchr("bisudyLMT#", *type);
}

static bool unify(struct checker *c, struct binding *bound, const char *wanted, const char *given);

/* Of types that begin with the same letter. */
static bool unify_parts(struct checker *c, struct binding *bound, const char *wanted,
                        const char *given)
{
    if (*wanted == 'J')
        return cel_type_shape(wanted) == cel_type_shape(given);
    if (*wanted == 'L' || *wanted == 'O')
        return unify(c, bound, wanted + 1, given + 1);
    if (*wanted == '{')
        return str_eq(one_type(wanted), one_type(given));
    if (*wanted == 'M')
        return unify(c, bound, wanted + 1, given + 1) &&
               unify(c, bound, cel_type_skip(wanted + 1), cel_type_skip(given + 1));
    return true;
}

/* Does a value of type `given` fit `wanted`, which may hold parameters? */
static bool unify(struct checker *c, struct binding *bound, const char *wanted, const char *given)
{
    const char **slot = *wanted == 'A' ? &bound->a : *wanted == 'B' ? &bound->b : NULL;

    if (slot && *slot && !is_dyn(*slot)) {
        if (unify(c, bound, *slot, given))
            return true;
        if (*given == 'n' && is_nullable(*slot))
            return true;
        return unify(c, bound, given, *slot);
    }
    if (slot) {
        *slot = copy_type(c, given);
        return true;
    }
    if (is_dyn(wanted) || is_dyn(given))
        return true;
    if (*wanted == '#')
        return strchr("iud", *given);
    if (*wanted != *given)
        return *given == 'n' && is_nullable(wanted);
    return unify_parts(c, bound, wanted, given);
}

/* The type with its parameters replaced. */
static const char *resolve(struct checker *c, const struct binding *bound, const char *type)
{
    switch (*type) {
    case 'A':
        return bound->a ? bound->a : "*";
    case 'B':
        return bound->b ? bound->b : "*";
    case 'L':
    case 'O':
        return wrap(c, *type, resolve(c, bound, type + 1));
    case 'M':
        return map_type(c, resolve(c, bound, type + 1), resolve(c, bound, cel_type_skip(type + 1)));
    default:
        return copy_type(c, type);
    }
}

/* Of several: the one they share, or dyn. */
static const char *shared(const char *a, const char *b)
{
    return !a || !strcmp(a, b) ? b : "*";
}

/* ---- names ---- */

static const char *find_variable(const struct checker *c, struct str name)
{
    for (const struct checked_scope *s = c->scope; s; s = s->up) {
        if (str_eq(s->name, name))
            return s->type;
    }
    for (size_t i = 0; i < c->env->n; i++) {
        if (str_eqc(name, c->env->variables[i].name))
            return c->env->variables[i].type;
    }
    return str_word_index("bool|int|uint|double|string|bytes|list|map|type|null_type", name) >= 0
               ? "T"
               : NULL;
}

static const char *check_name(struct checker *c, const struct cel_node *x)
{
    const char *type = find_variable(c, x->name);

    return type ? type : fail(c, x, "undeclared reference to '", x->name, "' (in container '')");
}

/* Members of the object types. Source: k8s.io/apiserver admission/plugin/cel/compile.go. */
static const struct {
    char object;
    const char *member, *type;
} MEMBERS[] = {
    {'Q', "kind", "g"},
    {'Q', "resource", "r"},
    {'Q', "subResource", "s"},
    {'Q', "requestKind", "g"},
    {'Q', "requestResource", "r"},
    {'Q', "requestSubResource", "s"},
    {'Q', "name", "s"},
    {'Q', "namespace", "s"},
    {'Q', "operation", "s"},
    {'Q', "userInfo", "U"},
    {'Q', "dryRun", "b"},
    {'Q', "options", "*"},
    {'g', "group", "s"},
    {'g', "version", "s"},
    {'g', "kind", "s"},
    {'r', "group", "s"},
    {'r', "version", "s"},
    {'r', "resource", "s"},
    {'U', "username", "s"},
    {'U', "uid", "s"},
    {'U', "groups", "Ls"},
    {'U', "extra", "MsLs"},
    {'N', "metadata", "m"},
    {'N', "spec", "*"},
    {'N', "status", "*"},
    {'Z', "requestResource", "R"},
    {'m', "name", "s"},
    {'m', "generateName", "s"},
    {'m', "namespace", "s"},
    {'m', "labels", "Mss"},
    {'m', "annotations", "Mss"},
    {'m', "UID", "s"},
    {'m', "creationTimestamp", "t"},
    {'m', "deletionGracePeriodSeconds", "i"},
    {'m', "deletionTimestamp", "t"},
    {'m', "generation", "i"},
    {'m', "resourceVersion", "s"},
    {'m', "finalizers", "Ls"},
};

static bool is_object_type(struct str name)
{
    return str_eqc(name, "Object") || str_has_prefix(name, STR("Object."));
}

/* NULL: no such field. Fields of an Object are checked when the object is applied. */
static const char *named_type(struct str object, struct str field)
{
    if (is_object_type(object))
        return "*";
    return str_eqc(field, "value") ? "*" : str_word_index("op|path|from", field) >= 0 ? "s" : NULL;
}

static const char *field_type(const struct checker *c, uint32_t shape, struct str name)
{
    const struct cel_shapes *shapes = c->env->shapes;
    const struct cel_shape_field *f = cel_shape_field(&shapes->items[shape], name);

    return f ? cel_shape_type(c->arena, shapes, f->shape) : NULL;
}

static const char *member_type(const struct checker *c, const char *type, struct str name)
{
    if (*type == 'V')
        return c->env->member ? c->env->member(c->env->ctx, name) : NULL;
    if (*type == '{')
        return named_type(str_sub(one_type(type), 1, one_type(type).n - 2), name);
    if (*type == 'J')
        return field_type(c, cel_type_shape(type), name);
    for (size_t i = 0; i < COUNT(MEMBERS); i++) {
        if (MEMBERS[i].object == *type && str_eqc(name, MEMBERS[i].member))
            return MEMBERS[i].type;
    }
    return NULL;
}

static const char *check_select(struct checker *c, const struct cel_node *x)
{
    const char *from = check(c, x->args[0]), *type;
    bool optional = x->optional;

    if (*from == 'O') {
        optional = true;
        from++;
    }
    if (is_dyn(from))
        return optional ? "O*" : "*";
    if (*from == 'M') {
        type = cel_type_skip(from + 1);
        return optional ? wrap(c, 'O', type) : copy_type(c, type);
    }
    if (!strchr("QgrUNZVmJ{", *from)) {
        struct str shown = cel_type_text(c->arena, from);

        return fail(c, x, "type '", shown, "' does not support field selection");
    }
    type = member_type(c, from, x->name);
    if (!type)
        return fail(c, x, "undefined field '", x->name, "'");
    return optional ? wrap(c, 'O', type) : type;
}

/* ---- calls ---- */

static bool overload_fits(struct checker *c, const struct cel_function *f, const struct cel_node *x,
                          const char *const *given, struct binding *bound)
{
    const char *wanted = f->args;

    if (f->member != x->member)
        return false;
    for (size_t i = 0; i < x->n; i++, wanted = cel_type_skip(wanted)) {
        if (!*wanted || !unify(c, bound, wanted, given[i]))
            return false;
    }
    return !*wanted;
}

static const char *no_overload(struct checker *c, const struct cel_node *x,
                               const char *const *given)
{
    struct buf shown = BUF_INIT(MOST_TYPES);

    for (size_t i = 0; i < x->n && !shown.failed; i++)
        buf_printf(&shown, "%s%.*s%s", i > x->member ? ", " : "",
                   STR_F(cel_type_text(c->arena, given[i])), x->member && !i ? ".(" : "");
    if (shown.failed) {
        buf_clear(&shown);
        buf_printf(&shown, "%s%zu arguments", x->member ? "(" : "", x->n);
    }
    if (!c->failed)
        cel_report(c->arena, c->program->source, x->at, c->err,
                   "found no matching overload for '%.*s' applied to '%s%.*s)'", STR_F(x->name),
                   x->member ? "" : "(", STR_F(buf_str(&shown)));
    buf_fini(&shown);
    c->failed = true;
    return "*";
}

static const char *check_call(struct checker *c, const struct cel_node *x)
{
    const char **given = arena_alloc(c->arena, (x->n + 1) * sizeof(*given)), *type = NULL;
    const struct cel_function *first = cel_function_first(x->name);
    bool dyn = false, is_format = x->member && str_eqc(x->name, "format");

    c->formats += is_format;
    for (size_t i = 0; i < x->n; i++) {
        given[i] = check(c, x->args[i]);
        dyn |= is_dyn(given[i]);
    }
    c->formats -= is_format;
    if (c->failed)
        return "*";
    if (!first)
        return fail(c, x, "undeclared reference to '", x->name, "' (in container '')");
    for (const struct cel_function *f = first; f; f = cel_function_next(f)) {
        struct binding bound = {0};

        if (!overload_fits(c, f, x, given, &bound))
            continue;
        type = shared(type, resolve(c, &bound, f->result));
        if (!dyn)
            break;
    }
    return type ? type : no_overload(c, x, given);
}

/* Operands of && || and conditions. */
static void want_bool(struct checker *c, const struct cel_node *x, const char *name,
                      const char *const *given, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (*given[i] != 'b' && !is_dyn(given[i])) {
            struct cel_node shown = *x;

            shown.name = str_c(name);
            shown.n = 2;
            shown.member = false;
            no_overload(c, &shown, given);
            return;
        }
    }
}

static void want_operand(struct checker *c, const struct cel_node *x, const char *type)
{
    if (*type != 'b' && !is_dyn(type))
        fail(c, x, "expected type 'bool' but found '", cel_type_text(c->arena, type), "'");
}

static const char *check_logic(struct checker *c, const struct cel_node *x)
{
    for (size_t i = 0; i < x->n; i++)
        want_operand(c, x->args[i], check(c, x->args[i]));
    return "b";
}

static const char *check_condition(struct checker *c, const struct cel_node *x)
{
    const char *given[3];

    for (size_t i = 0; i < 3; i++)
        given[i] = check(c, x->args[i]);
    if (c->failed)
        return "*";
    if ((*given[0] != 'b' && !is_dyn(given[0])) ||
        (strcmp(given[1], given[2]) && !is_dyn(given[1]) && !is_dyn(given[2]))) {
        struct binding bound = {0};
        struct cel_node shown = *x;

        shown.name = STR("_?_:_");
        if ((*given[0] != 'b' && !is_dyn(given[0])) || !unify(c, &bound, "A", given[1]) ||
            !unify(c, &bound, "A", given[2]))
            return no_overload(c, &shown, given);
    }
    return *given[1] == 'n' || is_dyn(given[1]) ? given[2] : given[1];
}

/* ---- lists, maps, macros ---- */

/* `?optional.none()` */
static bool is_none(const struct cel_node *x, size_t i, const char *type)
{
    return x->optionals && x->optionals[i] && is_dyn(type) &&
           str_eqc(x->args[i]->name, "optional.none");
}

static const char *check_list(struct checker *c, const struct cel_node *x)
{
    const char *type = NULL;

    for (size_t i = 0; i < x->n; i++) {
        const char *item = check(c, x->args[i]);

        if (x->optionals && x->optionals[i] && *item == 'O')
            item++;
        if (type && is_none(x, i, item)) /* it takes the type of the others */
            continue;
        /* HomogeneousAggregateLiterals: dyn is a type of its own. */
        if (type && !c->formats && strcmp(type, item))
            return fail(c, x->args[i],
                        arena_printf(c->arena, "expected type '%s' but found '",
                                     cel_type_text(c->arena, type).p)
                            .p,
                        cel_type_text(c->arena, item), "'");
        type = shared(type, item);
    }
    return wrap(c, 'L', type ? type : "*");
}

static const char *check_map(struct checker *c, const struct cel_node *x)
{
    const char *types[2] = {NULL, NULL};

    for (size_t i = 0; i < x->n; i++) {
        const char *item = check(c, x->args[i]);

        if (i % 2 && x->optionals && x->optionals[i] && *item == 'O')
            item++;
        if (types[i % 2] && is_none(x, i, item))
            continue;
        if (types[i % 2] && !c->formats && strcmp(types[i % 2], item))
            return fail(c, x->args[i],
                        arena_printf(c->arena, "expected type '%s' but found '",
                                     cel_type_text(c->arena, types[i % 2]).p)
                            .p,
                        cel_type_text(c->arena, item), "'");
        types[i % 2] = shared(types[i % 2], item);
    }
    return map_type(c, types[0] ? types[0] : "*", types[1] ? types[1] : "*");
}

/* ---- objects ---- */

static const char *check_object(struct checker *c, const struct cel_node *x)
{
    if (!c->env->objects || (!is_object_type(x->name) && !str_eqc(x->name, "JSONPatch")))
        return fail(c, x, "undeclared reference to '", x->name, "' (in container '')");
    for (size_t i = 0; i < x->n; i += 2) {
        struct str field = x->args[i]->value.s;
        const char *wanted = named_type(x->name, field), *given = check(c, x->args[i + 1]);
        struct binding none = {0};

        if (x->optionals && x->optionals[i] && *given == 'O')
            given++;
        if (!wanted || !unify(c, &none, wanted, given))
            return fail(c, x->args[i],
                        arena_printf(c->arena,
                                     "expected type of field '%.*s' is '%.*s' but "
                                     "provided type is '",
                                     STR_F(field),
                                     STR_F(wanted ? cel_type_text(c->arena, wanted) : STR("")))
                            .p,
                        cel_type_text(c->arena, given), "'");
    }
    return arena_printf(c->arena, "{%.*s}", STR_F(x->name)).p;
}

/* What the variables of a fold are, of a range of this type. */
static bool fold_types(struct checker *c, const struct cel_node *x, const char *range,
                       const char *ret[2])
{
    bool optional = x->fold == FOLD_OPT_MAP || x->fold == FOLD_OPT_FLAT;

    ret[0] = ret[1] = "*";
    if (is_dyn(range))
        return true;
    if (optional) {
        ret[0] = copy_type(c, range + 1);
        return *range == 'O';
    }
    if (*range == 'L') {
        ret[0] = x->second.n ? "i" : copy_type(c, range + 1);
        ret[1] = copy_type(c, range + 1);
        return true;
    }
    if (*range != 'M')
        return false;
    ret[0] = copy_type(c, range + 1);
    ret[1] = copy_type(c, cel_type_skip(range + 1));
    return true;
}

static const char *fold_result(struct checker *c, const struct cel_node *x, const char *range,
                               const char *first, const char *last)
{
    switch (x->fold) {
    case FOLD_FILTER:
        return wrap(c, 'L', first);
    case FOLD_SORT_BY:
        return wrap(c, 'L', first);
    case FOLD_MAP:
    case FOLD_TRANSFORM_LIST:
        return wrap(c, 'L', last);
    case FOLD_TRANSFORM_MAP:
        return map_type(c, *range == 'L' ? "i" : first, last);
    case FOLD_TRANSFORM_ENTRIES:
        return last;
    case FOLD_OPT_MAP:
        return wrap(c, 'O', last);
    case FOLD_OPT_FLAT:
        return last;
    default:
        return "b";
    }
}

static const char *check_fold(struct checker *c, const struct cel_node *x)
{
    const char *range = check(c, x->args[0]), *types[2], *last = "*";
    const struct checked_scope *outer = c->scope;
    struct checked_scope first = {outer, x->name, "*"}, second = {&first, x->second, "*"};

    if (!fold_types(c, x, range, types))
        return fail(c, x->args[0], "expression of type '", cel_type_text(c->arena, range),
                    "' cannot be range of a comprehension (must be list, map, or dynamic)");
    first.type = types[0];
    second.type = types[1];
    c->scope = x->second.n ? &second : &first;
    for (size_t i = 1; i < x->n; i++) {
        const char *given[2] = {"b", check(c, x->args[i])};

        last = given[1];
        if (x->fold <= FOLD_EXISTS)
            want_operand(c, x->args[i], last);
        else if (x->fold == FOLD_ONE || x->fold == FOLD_FILTER || (x->n == 3 && i == 1))
            want_bool(c, x, "_?_:_", given, 2);
    }
    c->scope = outer;
    if (x->fold == FOLD_TRANSFORM_ENTRIES && *last != 'M' && !is_dyn(last))
        return fail(c, x,
                    "found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), ",
                    cel_type_text(c->arena, last), ")'");
    return fold_result(c, x, range, types[0], last);
}

static const char *literal_type(struct cel_value v)
{
    static const char *const types[] = {
        [CEL_NULL] = "n",   [CEL_BOOL] = "b",   [CEL_INT] = "i",   [CEL_UINT] = "u",
        [CEL_DOUBLE] = "d", [CEL_STRING] = "s", [CEL_BYTES] = "y",
    };

    return types[v.kind];
}

static const char *check(struct checker *c, const struct cel_node *x)
{
    if (c->failed)
        return "*";
    switch (x->op) {
    case CEL_LITERAL:
        return literal_type(x->value);
    case CEL_IDENT:
        return check_name(c, x);
    case CEL_SELECT:
        return check_select(c, x);
    case CEL_HAS:
        check_select(c, x);
        return "b";
    case CEL_CALL:
        return check_call(c, x);
    case CEL_AND:
    case CEL_OR:
        return check_logic(c, x);
    case CEL_COND:
        return check_condition(c, x);
    case CEL_NEW_LIST:
        return check_list(c, x);
    case CEL_NEW_MAP:
        return check_map(c, x);
    case CEL_NEW_OBJECT:
        return check_object(c, x);
    case CEL_FOLD:
        return check_fold(c, x);
    }
    return "*";
}

int cel_check_types(struct arena *a, struct cel_program *p, const struct cel_environment *e,
                    struct err *err)
{
    struct checker c = {.arena = a, .program = p, .env = e, .err = err};

    p->type = check(&c, p->root);
    return c.failed ? -1 : 0;
}
