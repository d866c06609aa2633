/* SPDX-License-Identifier: Apache-2.0 */
/* Source to tree: a recursive descent over CEL's grammar, with the macros Kubernetes enables. Must
 * never nest deeper than its limits, whatever a tenant writes. Source: cel-spec langdef.md,
 * cel-go parser/gen/CEL.g4. */
#include "impl.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SNIPPET 16384 /* characters of a line that is shown, as cel-go */

struct parser {
    struct arena *arena;
    struct str source;
    size_t at;        /* of the token */
    struct str token; /* empty at the end */
    enum { T_END, T_IDENT, T_NUMBER, T_STRING, T_PUNCT, T_QUOTED } type;
    struct cel_value literal;
    unsigned depth;
    size_t nodes;
    struct err *err;
    bool failed;
};

int cel_report(struct arena *a, struct str source, size_t at, struct err *err, const char *format,
               ...)
{
    size_t line = 1, start = 0;
    struct str message, row;
    va_list args;

    for (size_t i = 0; i < at && i < source.n; i++) {
        if (source.p[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    va_start(args, format);
    message = arena_vprintf(a, format, args);
    va_end(args);
    row = str_from(source, start);
    row = str_sub(row, 0, str_find(row, '\n'));

    size_t column = str_characters(str_sub(source, start, at - start));
    char *dots;

    if (row.n > MOST_SNIPPET)
        return err_set(err, &ERR_INVALID, "ERROR: <input>:%zu:%zu: %.*s", line, column + 1,
                       STR_F(message));
    dots = arena_alloc(a, column + 1);
    memset(dots, '.', column);
    return err_set(err, &ERR_INVALID, "ERROR: <input>:%zu:%zu: %.*s\n | %.*s\n | %s^", line,
                   column + 1, STR_F(message), STR_F(row), dots);
}

static void wrong(struct parser *p, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void wrong(struct parser *p, size_t at, const char *format, ...)
{
    va_list args;
    struct str text;

    if (p->failed)
        return;
    va_start(args, format);
    text = arena_vprintf(p->arena, format, args);
    va_end(args);
    cel_report(p->arena, p->source, at, p->err, "%.*s", STR_F(text));
    p->failed = true;
    p->type = T_END;
    p->token = STR("");
}

/* ---- tokens ---- */

static int peek(const struct parser *p, size_t at)
{
    return at < p->source.n ? (unsigned char)p->source.p[at] : -1;
}

static size_t skip_blanks(struct parser *p, size_t at)
{
    for (;;) {
        while (peek(p, at) >= 0 && strchr(" \t\r\n\f", peek(p, at)) && peek(p, at))
            at++;
        if (peek(p, at) != '/' || peek(p, at + 1) != '/')
            return at;
        while (peek(p, at) >= 0 && peek(p, at) != '\n')
            at++;
    }
}

static void take(struct parser *p, int type, size_t n)
{
    p->type = (unsigned)type;
    p->token = str_sub(p->source, p->at, n);
}

static size_t skip_digits(const struct parser *p, size_t at, bool hex)
{
    while (hex ? isxdigit(peek(p, at)) : isdigit(peek(p, at)))
        at++;
    return at;
}

/* The fraction and the exponent, if there are any. */
static size_t skip_real(const struct parser *p, size_t at)
{
    if (peek(p, at) == '.' && isdigit(peek(p, at + 1)))
        at = skip_digits(p, at + 1, false);
    if ((peek(p, at) | 32) == 'e') {
        size_t sign = peek(p, at + 1) == '+' || peek(p, at + 1) == '-' ? 2 : 1;

        if (isdigit(peek(p, at + sign)))
            at = skip_digits(p, at + sign, false);
    }
    return at;
}

static void take_integer(struct parser *p, const char *digits, int base, bool is_unsigned)
{
    uint64_t value;

    errno = 0;
    value = strtoull(digits, NULL, base);
    p->literal = is_unsigned ? cel_uint(value) : cel_int((int64_t)value);
    /* -2^63 is the one int whose digits alone overflow: only behind a minus. */
    p->literal.is_json = !is_unsigned && value > INT64_MAX;
    if (errno || (!is_unsigned && value > (uint64_t)INT64_MAX + 1))
        wrong(p, p->at, "invalid %s literal", is_unsigned ? "uint" : "int");
}

static void scan_number(struct parser *p)
{
    bool hex = peek(p, p->at) == '0' && (peek(p, p->at + 1) | 32) == 'x';
    size_t whole = skip_digits(p, p->at + (hex ? 2 : 0), hex);
    size_t at = hex ? whole : skip_real(p, whole);
    bool real = at > whole, is_unsigned = !real && (peek(p, at) | 32) == 'u';
    char *digits = arena_cstr(p->arena, str_sub(p->source, p->at, at - p->at));

    take(p, T_NUMBER, at - p->at + is_unsigned);
    if (real)
        p->literal = cel_double(strtod(digits, NULL));
    else
        take_integer(p, hex ? digits + 2 : digits, hex ? 16 : 10, is_unsigned);
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | (c >> 18));
    out[1] = (char)(0x80 | ((c >> 12) & 63));
    out[2] = (char)(0x80 | ((c >> 6) & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* The digits of an escape; false: another character, or fewer. */
static bool scan_code(struct parser *p, size_t *at, unsigned digits, unsigned base, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < digits; i++, (*at)++) {
        int d = peek(p, *at);

        if (base == 8 ? d < '0' || d > '7' : !isxdigit(d))
            return false;
        *ret = *ret * base + (uint32_t)(isdigit(d) ? d - '0' : (d | 32) - 'a' + 10);
    }
    return true;
}

/* Positioned behind the backslash; returns the bytes written, SIZE_MAX for an unknown escape. */
static size_t scan_escape(struct parser *p, size_t *at, bool bytes, char *out)
{
    static const char names[] = "abfnrtv\\'\"`?", means[] = "\a\b\f\n\r\t\v\\'\"`?";
    int c = peek(p, *at);
    const char *name = c > 0 ? strchr(names, c) : NULL;
    bool octal = c >= '0' && c <= '3';
    unsigned digits = octal ? 3 : c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t value;

    if (name) {
        *out = means[name - names];
        (*at)++;
        return 1;
    }
    *at += !octal;
    if (!digits || (bytes && digits > 3) || !scan_code(p, at, digits, octal ? 8 : 16, &value))
        return SIZE_MAX;
    if (bytes) {
        *out = (char)value;
        return 1;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return SIZE_MAX;
    return put_utf8(out, value);
}

/* No more than this is written for what begins at `at`: an escape is longer than what it means. */
static size_t string_room(const struct parser *p, size_t at, int quote, size_t width)
{
    size_t from = at;

    for (; peek(p, at) >= 0; at += peek(p, at) == '\\' ? 2 : 1) {
        if (peek(p, at) == quote &&
            (width == 1 || (peek(p, at + 1) == quote && peek(p, at + 2) == quote)))
            break;
    }
    return at - from + 8;
}

/* at: behind the prefix letters. */
static void scan_string(struct parser *p, size_t at, bool raw, bool bytes)
{
    int quote = peek(p, at);
    size_t width = peek(p, at + 1) == quote && peek(p, at + 2) == quote ? 3 : 1, n = 0;
    char *out = arena_alloc(p->arena, string_room(p, at + width, quote, width));

    for (at += width;;) {
        int c = peek(p, at);

        if (c == quote && (width == 1 || (peek(p, at + 1) == quote && peek(p, at + 2) == quote)))
            break;
        if (c < 0 || (width == 1 && (c == '\n' || c == '\r'))) {
            wrong(p, p->at, "Syntax error: token recognition error at: '%.*s'",
                  STR_F(str_sub(p->source, p->at, at - p->at)));
            return;
        }
        at++;
        if (c == '\\' && !raw) {
            size_t more = scan_escape(p, &at, bytes, out + n);

            if (more == SIZE_MAX) {
                wrong(p, p->at, "Syntax error: token recognition error at: '%.*s'",
                      STR_F(str_sub(p->source, p->at, at + 1 - p->at)));
                return;
            }
            n += more;
        } else {
            out[n++] = (char)c;
        }
    }
    take(p, T_STRING, at + width - p->at);
    p->literal = (struct cel_value){.kind = bytes ? CEL_BYTES : CEL_STRING, .s = {out, n}};
}

static bool scan_prefixed_string(struct parser *p)
{
    size_t at = p->at;
    bool raw = false, bytes = false;

    for (unsigned i = 0; i < 2; i++) {
        int c = peek(p, at) | 32;

        if (c == 'r' && !raw)
            raw = true;
        else if (c == 'b' && !bytes)
            bytes = true;
        else
            break;
        at++;
    }
    if (peek(p, at) != '"' && peek(p, at) != '\'')
        return false;
    scan_string(p, at, raw, bytes);
    return true;
}

static void next(struct parser *p)
{
    static const char *const puncts[] = {"==", "!=", "<=", ">=", "&&", "||", NULL};
    int c;

    if (p->failed)
        return;
    p->at = skip_blanks(p, p->at + p->token.n);
    c = peek(p, p->at);
    if (c < 0) {
        take(p, T_END, 0);
        return;
    }
    if (scan_prefixed_string(p))
        return;
    if (isalpha(c) || c == '_') {
        size_t n = 1;

        while (isalnum(peek(p, p->at + n)) || peek(p, p->at + n) == '_')
            n++;
        take(p, T_IDENT, n);
        return;
    }
    if (isdigit(c) || (c == '.' && isdigit(peek(p, p->at + 1)))) {
        scan_number(p);
        return;
    }
    if (c == '`') {
        size_t n = str_find(str_from(p->source, p->at + 1), '`') + 2;

        take(p, T_QUOTED, n);
        if (p->token.n < n)
            wrong(p, p->at, "Syntax error: token recognition error at: '`'");
        return;
    }
    for (size_t i = 0; puncts[i]; i++) {
        if (c == puncts[i][0] && peek(p, p->at + 1) == puncts[i][1]) {
            take(p, T_PUNCT, 2);
            return;
        }
    }
    take(p, T_PUNCT, 1);
    if (!strchr("+-*/%!<>?:.,()[]{}", c) || !c)
        wrong(p, p->at, "Syntax error: token recognition error at: '%.*s'",
              STR_F(str_clip(str_sub(p->source, p->at, 4), 4)));
}

static bool at_punct(const struct parser *p, const char *text)
{
    return p->type == T_PUNCT && str_eqc(p->token, text);
}

static bool accept(struct parser *p, const char *text)
{
    if (!at_punct(p, text))
        return false;
    next(p);
    return true;
}

static void unexpected(struct parser *p)
{
    if (p->type == T_END)
        wrong(p, p->at,
              "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', "
              "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}");
    else
        wrong(p, p->at, "Syntax error: extraneous input '%.*s' expecting <EOF>", STR_F(p->token));
}

static void expect(struct parser *p, const char *text)
{
    if (accept(p, text) || p->failed)
        return;
    if (p->type == T_END)
        wrong(p, p->at, "Syntax error: missing '%s' at '<EOF>'", text);
    else
        wrong(p, p->at, "Syntax error: missing '%s' at '%.*s'", text, STR_F(p->token));
}

/* ---- the tree ---- */

static struct cel_node *node(struct parser *p, enum cel_op op, size_t at, size_t n)
{
    struct cel_node *x = ARENA_NEW(p->arena, struct cel_node);

    x->op = op;
    x->at = at;
    x->depth = 1;
    x->n = n;
    x->args = n ? arena_alloc(p->arena, n * sizeof(*x->args)) : NULL;
    if (++p->nodes > CEL_MAX_NODES)
        wrong(p, at, "expression code point size exceeds limit: size: %zu, limit %u", p->nodes,
              CEL_MAX_NODES);
    return x;
}

static struct cel_node *set(struct parser *p, struct cel_node *x, size_t i, struct cel_node *arg)
{
    x->args[i] = arg;
    if (arg->depth >= x->depth)
        x->depth = arg->depth + 1;
    if (x->depth > CEL_MAX_TREE)
        wrong(p, x->at, "expression recursion limit exceeded: %u", CEL_MAX_DEPTH);
    return x;
}

static struct cel_node *literal(struct parser *p, size_t at, struct cel_value v)
{
    struct cel_node *x = node(p, CEL_LITERAL, at, 0);

    x->value = v;
    return x;
}

static struct cel_node *call(struct parser *p, size_t at, const char *name, struct cel_node *a,
                             struct cel_node *b)
{
    struct cel_node *x = node(p, CEL_CALL, at, b ? 2 : 1);

    x->name = str_c(name);
    set(p, x, 0, a);
    return b ? set(p, x, 1, b) : x;
}

static struct cel_node *parse_expression(struct parser *p);

/* The elements between brackets, the closing one included. */
struct items {
    struct cel_node **nodes;
    bool *optional;
    size_t n, cap, cap_optional;
};

static void add_item(struct parser *p, struct items *l, struct cel_node *x, bool optional)
{
    ARENA_GROW(p->arena, l->nodes, l->n, l->cap);
    ARENA_GROW(p->arena, l->optional, l->n, l->cap_optional);
    l->optional[l->n] = optional;
    l->nodes[l->n++] = x;
}

static struct items parse_items(struct parser *p, const char *end, bool optional)
{
    struct items l = {0};

    while (!p->failed && !at_punct(p, end)) {
        bool is_optional = optional && accept(p, "?");

        add_item(p, &l, parse_expression(p), is_optional);
        if (!accept(p, ","))
            break;
    }
    expect(p, end);
    return l;
}

static struct cel_node *with_items(struct parser *p, enum cel_op op, size_t at,
                                   const struct items *l)
{
    struct cel_node *x = node(p, op, at, l->n);

    for (size_t i = 0; i < l->n && !p->failed; i++)
        set(p, x, i, l->nodes[i]);
    x->optionals = l->optional;
    return x;
}

static struct cel_node *parse_map(struct parser *p, size_t at)
{
    struct items l = {0};

    while (!p->failed && !at_punct(p, "}")) {
        bool optional = accept(p, "?");

        add_item(p, &l, parse_expression(p), optional);
        expect(p, ":");
        add_item(p, &l, parse_expression(p), optional);
        if (!accept(p, ","))
            break;
    }
    expect(p, "}");
    return with_items(p, CEL_NEW_MAP, at, &l);
}

/* ---- macros ---- */

static const struct macro {
    const char *name;
    enum cel_fold fold;
    size_t least, most; /* arguments */
    size_t variables;
} MACROS[] = {
    {"all", FOLD_ALL, 2, 2, 1},
    {"all", FOLD_ALL, 3, 3, 2},
    {"exists", FOLD_EXISTS, 2, 2, 1},
    {"exists", FOLD_EXISTS, 3, 3, 2},
    {"exists_one", FOLD_ONE, 2, 2, 1},
    {"existsOne", FOLD_ONE, 2, 2, 1},
    {"existsOne", FOLD_ONE, 3, 3, 2},
    {"map", FOLD_MAP, 2, 3, 1},
    {"filter", FOLD_FILTER, 2, 2, 1},
    {"sortBy", FOLD_SORT_BY, 2, 2, 1},
    {"optMap", FOLD_OPT_MAP, 2, 2, 1},
    {"optFlatMap", FOLD_OPT_FLAT, 2, 2, 1},
    {"transformList", FOLD_TRANSFORM_LIST, 3, 4, 2},
    {"transformMap", FOLD_TRANSFORM_MAP, 3, 4, 2},
    {"transformMapEntry", FOLD_TRANSFORM_ENTRIES, 3, 4, 2},
};

static const struct macro *find_macro(struct str name, size_t n)
{
    for (size_t i = 0; i < COUNT(MACROS); i++) {
        if (str_eqc(name, MACROS[i].name) && n >= MACROS[i].least && n <= MACROS[i].most)
            return &MACROS[i];
    }
    return NULL;
}

static struct cel_node *fold(struct parser *p, const struct macro *m, size_t at,
                             struct cel_node *range, const struct items *l)
{
    struct cel_node *x = node(p, CEL_FOLD, at, 1 + l->n - m->variables);

    x->fold = m->fold;
    x->name = l->nodes[0]->name;
    for (size_t i = 0; i < m->variables; i++) {
        if (l->nodes[i]->op != CEL_IDENT)
            wrong(p, l->nodes[i]->at, "argument must be a simple name");
    }
    if (m->variables == 2) {
        x->second = l->nodes[1]->name;
        if (str_eq(x->name, x->second))
            wrong(p, l->nodes[1]->at, "duplicate variable name: %.*s", STR_F(x->name));
    }
    set(p, x, 0, range);
    for (size_t i = m->variables; i < l->n && !p->failed; i++)
        set(p, x, 1 + i - m->variables, l->nodes[i]);
    return x;
}

static struct cel_node *has(struct parser *p, size_t at, const struct items *l)
{
    struct cel_node *x = l->nodes[0];

    if (x->op != CEL_SELECT) {
        wrong(p, x->at, "invalid argument to has() macro");
        return x;
    }
    x->op = CEL_HAS;
    (void)at;
    return x;
}

/* ---- expressions ---- */

static struct cel_node *parse_call(struct parser *p, size_t at, struct str name,
                                   struct cel_node *target)
{
    struct items l = parse_items(p, ")", false);
    const struct macro *m = target ? find_macro(name, l.n) : NULL;
    struct cel_node *x;

    if (p->failed)
        return literal(p, at, cel_null());
    if (m)
        return fold(p, m, at, target, &l);
    if (!target && l.n == 1 && str_eqc(name, "has"))
        return has(p, at, &l);
    x = node(p, CEL_CALL, at, l.n + !!target);
    x->name = name;
    x->member = target;
    if (target)
        set(p, x, 0, target);
    for (size_t i = 0; i < l.n && !p->failed; i++)
        set(p, x, i + !!target, l.nodes[i]);
    return x;
}

static bool is_reserved(struct str s)
{
    return str_word_index("as|break|const|continue|else|for|function|if|import|in|let|loop|package|"
                          "namespace|return|var|void|while",
                          s) >= 0;
}

static struct cel_node *parse_name(struct parser *p)
{
    size_t at = p->at;
    struct str name = p->token;
    struct cel_node *x;

    next(p);
    if (str_eqc(name, "true") || str_eqc(name, "false"))
        return literal(p, at, cel_bool(name.p[0] == 't'));
    if (str_eqc(name, "null"))
        return literal(p, at, cel_null());
    if (is_reserved(name))
        wrong(p, at, "reserved identifier: %.*s", STR_F(name));
    if (at_punct(p, "(")) {
        size_t open = p->at;

        next(p);
        return parse_call(p, open, name, NULL);
    }
    x = node(p, CEL_IDENT, at, 0);
    x->name = name;
    return x;
}

static struct cel_node *parse_primary(struct parser *p)
{
    size_t at = p->at;
    struct cel_node *x;

    accept(p, "."); /* a name from the root: containers are not used */
    if (p->type == T_IDENT)
        return parse_name(p);
    if (p->type == T_STRING || p->type == T_NUMBER) {
        struct cel_value v = p->literal;

        if (v.kind == CEL_INT && v.is_json)
            wrong(p, at, "invalid int literal");
        next(p);
        return literal(p, at, v);
    }
    if (accept(p, "(")) {
        x = parse_expression(p);
        expect(p, ")");
        return x;
    }
    if (accept(p, "[")) {
        struct items l = parse_items(p, "]", true);

        return with_items(p, CEL_NEW_LIST, at, &l);
    }
    if (accept(p, "{"))
        return parse_map(p, at);
    unexpected(p);
    return literal(p, at, cel_null());
}

/* `__dot__` and the like stand for characters a name cannot have; keywords are written bare. */
static struct str field_name(struct parser *p)
{
    struct str name = p->token;

    if (p->type == T_QUOTED)
        name = str_sub(name, 1, name.n - 2);
    else if (p->type != T_IDENT)
        unexpected(p);
    next(p);
    return name;
}

static struct cel_node *parse_member(struct parser *p, struct cel_node *x)
{
    size_t at = p->at;
    bool optional;

    if (accept(p, "[")) {
        struct cel_node *index;

        optional = accept(p, "?");
        index = call(p, at, optional ? "_[?_]" : "_[_]", x, parse_expression(p));
        index->optional = optional;
        expect(p, "]");
        return index;
    }
    next(p);
    optional = accept(p, "?");

    struct str name = field_name(p);

    if (!optional && at_punct(p, "(")) {
        size_t open = p->at;

        next(p);
        return parse_call(p, open, name, x);
    }

    struct cel_node *select = node(p, CEL_SELECT, at, 1);

    select->name = name;
    select->optional = optional;
    return set(p, select, 0, x);
}

/* ---- objects: `Object.spec{replicas: 1}` ---- */

/* The name that a chain of names spells; empty: x is none. */
static struct str type_name(struct parser *p, const struct cel_node *x)
{
    struct str up;

    if (x->op == CEL_IDENT)
        return x->name;
    if (x->op != CEL_SELECT || x->optional)
        return STR_NULL;
    up = type_name(p, x->args[0]);
    return up.n ? arena_printf(p->arena, "%.*s.%.*s", STR_F(up), STR_F(x->name)) : STR_NULL;
}

static struct cel_node *parse_object(struct parser *p, size_t at, struct str name)
{
    struct items l = {0};
    struct cel_node *x;

    while (!p->failed && !at_punct(p, "}")) {
        bool optional = accept(p, "?");
        struct str field = field_name(p);

        add_item(p, &l, literal(p, p->at, cel_string(field)), optional);
        expect(p, ":");
        add_item(p, &l, parse_expression(p), optional);
        if (!accept(p, ","))
            break;
    }
    expect(p, "}");
    x = with_items(p, CEL_NEW_OBJECT, at, &l);
    x->name = name;
    return x;
}

/* Functions of a namespace: `sets.contains(a, b)` is a global call of that name. */
static struct cel_node *join_namespace(struct cel_node *x)
{
    static const char names[] = "sets|optional|lists|format|ip|strings|math|jsonpatch";
    struct cel_node *target = x->op == CEL_CALL && x->member ? x->args[0] : NULL;

    return target && target->op == CEL_IDENT && str_word_index(names, target->name) >= 0 ? target
                                                                                         : NULL;
}

static struct cel_node *qualify(struct parser *p, struct cel_node *x)
{
    struct cel_node *space = join_namespace(x);
    struct str full;

    if (!space)
        return x;
    full = arena_printf(p->arena, "%.*s.%.*s", STR_F(space->name), STR_F(x->name));
    if (!cel_function_first(full))
        return x;
    x->name = full;
    x->member = false;
    x->args++;
    x->n--;
    return x;
}

static struct cel_node *parse_postfix(struct parser *p)
{
    struct cel_node *x = parse_primary(p);

    for (;;) {
        size_t at = p->at;
        struct str type;

        if (p->failed)
            return x;
        if (at_punct(p, ".") || at_punct(p, "[")) {
            x = qualify(p, parse_member(p, x));
        } else if (at_punct(p, "{") && (type = type_name(p, x)).n) {
            next(p);
            x = parse_object(p, at, type);
        } else {
            return x;
        }
    }
}

static struct cel_node *negative_literal(struct parser *p, size_t at)
{
    struct cel_value v = p->literal;

    if (v.kind == CEL_INT)
        v.i = (int64_t)(0 - (uint64_t)v.i);
    else
        v.d = -v.d;
    v.is_json = false;
    next(p);
    return literal(p, at, v);
}

static struct cel_node *parse_unary(struct parser *p)
{
    size_t at = p->at, times = 0;
    const char *op = at_punct(p, "!") ? "!" : at_punct(p, "-") ? "-" : NULL;
    struct cel_node *x;

    if (!op)
        return parse_postfix(p);
    while (accept(p, op))
        times++;
    if (*op == '-' && times == 1 && p->type == T_NUMBER && p->literal.kind != CEL_UINT) {
        x = negative_literal(p, at);
        while (!p->failed && (at_punct(p, ".") || at_punct(p, "[")))
            x = qualify(p, parse_member(p, x));
        return x;
    }
    x = parse_postfix(p);
    return times % 2 ? call(p, at, *op == '!' ? "!_" : "-_", x, NULL) : x;
}

/* Binary operators that group to the left, weakest first. */
static const char *const LEVELS[][8] = {
    {"<", "<=", ">=", ">", "==", "!=", "in", NULL},
    {"+", "-", NULL},
    {"*", "/", "%", NULL},
};

static const char *operator_at(const struct parser *p, size_t level)
{
    for (size_t i = 0; LEVELS[level][i]; i++) {
        if ((p->type == T_PUNCT || p->type == T_IDENT) && str_eqc(p->token, LEVELS[level][i]))
            return LEVELS[level][i];
    }
    return NULL;
}

static struct cel_node *parse_binary(struct parser *p, size_t level)
{
    struct cel_node *x = level + 1 < COUNT(LEVELS) ? parse_binary(p, level + 1) : parse_unary(p);
    const char *op;

    while (!p->failed && (op = operator_at(p, level))) {
        size_t at = p->at;
        const char *name = *op == 'i' ? "@in" : arena_printf(p->arena, "_%s_", op).p;

        next(p);
        x = call(p, at, name, x,
                 level + 1 < COUNT(LEVELS) ? parse_binary(p, level + 1) : parse_unary(p));
    }
    return x;
}

/* A chain of && or || is one node: its operands do not nest. */
static struct cel_node *parse_logic(struct parser *p, bool is_or)
{
    const char *op = is_or ? "||" : "&&";
    struct cel_node *x = is_or ? parse_logic(p, false) : parse_binary(p, 0);
    struct items l = {0};
    size_t at = p->at;

    if (!at_punct(p, op))
        return x;
    add_item(p, &l, x, false);
    while (accept(p, op))
        add_item(p, &l, is_or ? parse_logic(p, false) : parse_binary(p, 0), false);
    return with_items(p, is_or ? CEL_OR : CEL_AND, at, &l);
}

static struct cel_node *parse_expression(struct parser *p)
{
    struct cel_node *x, *cond;
    size_t at;

    if (++p->depth > CEL_MAX_DEPTH)
        wrong(p, p->at, "expression recursion limit exceeded: %u", CEL_MAX_DEPTH);
    x = p->failed ? literal(p, p->at, cel_null()) : parse_logic(p, true);
    at = p->at;
    if (accept(p, "?")) {
        cond = node(p, CEL_COND, at, 3);
        set(p, cond, 0, x);
        set(p, cond, 1, parse_logic(p, true));
        expect(p, ":");
        x = set(p, cond, 2, parse_expression(p));
    }
    p->depth--;
    return x;
}

int cel_parse(struct arena *a, struct str source, struct cel_program *program, struct err *err)
{
    struct parser p = {.arena = a, .source = source, .err = err};

    if (str_characters(source) > CEL_MAX_SOURCE)
        return cel_report(a, STR(""), 0, err,
                          "expression code point size exceeds limit: size: %zu, limit %u",
                          str_characters(source), CEL_MAX_SOURCE);
    next(&p);
    program->root = parse_expression(&p);
    if (!p.failed && p.type != T_END)
        unexpected(&p);
    return p.failed ? -1 : 0;
}
