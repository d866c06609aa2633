/* SPDX-License-Identifier: Apache-2.0
 *
 * The two query grammars, labelSelector= (apimachinery pkg/labels Parse) and fieldSelector=
 * (pkg/fields ParseSelector): the same strings are accepted and refused, with the same messages.
 * One token of look-ahead and no recursion: a long string costs its length and nothing more. */
#include "selector_impl.h"

#include <sublet/encode.h>

#include <stdlib.h>
#include <string.h>

enum token_kind { TOKEN_END, TOKEN_SYMBOL, TOKEN_WORD };

struct token {
    enum token_kind kind;
    struct str text;
};

struct parser {
    struct arena *a;
    struct err *err;
    struct str rest;
    struct token next;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_symbol(char c)
{
    return c != '\0' && strchr("=!(),><", c);
}

/* Reads the token after next. As in upstream's lexer a NUL ends the input where a token would
 * begin, and is swallowed where it ends one. */
static void advance(struct parser *p)
{
    struct str s = p->rest;
    size_t n = 0;

    while (s.n > 0 && is_blank(s.p[0]))
        s = str_from(s, 1);
    if (s.n == 0 || s.p[0] == '\0') {
        p->next = (struct token){.kind = TOKEN_END, .text = STR("")};
        return;
    }
    if (is_symbol(s.p[0])) {
        bool pair = str_has_prefix(s, STR("==")) || str_has_prefix(s, STR("!="));
        n = pair ? 2 : 1;
        p->next = (struct token){.kind = TOKEN_SYMBOL, .text = str_sub(s, 0, n)};
    } else {
        while (n < s.n && s.p[n] != '\0' && !is_blank(s.p[n]) && !is_symbol(s.p[n]))
            n++;
        p->next = (struct token){.kind = TOKEN_WORD, .text = str_sub(s, 0, n)};
    }
    p->rest = str_from(s, n < s.n && s.p[n] == '\0' ? n + 1 : n);
}

static struct token consume(struct parser *p)
{
    struct token token = p->next;

    if (token.kind != TOKEN_END)
        advance(p);
    return token;
}

static bool next_is(const struct parser *p, const char *symbol)
{
    return p->next.kind == TOKEN_SYMBOL && str_eqc(p->next.text, symbol);
}

static bool next_ends_term(const struct parser *p)
{
    return p->next.kind == TOKEN_END || next_is(p, ",");
}

static int unexpected(struct parser *p, struct str found, const char *wanted)
{
    return err_set(p->err, &ERR_BAD_REQUEST, "found '%.*s', expected: %s", STR_F(found), wanted);
}

/* ---- values ---- */

struct values {
    struct str *list;
    size_t n, cap;
    bool has_empty; /* "(,,,,)" must not grow */
};

static void add_value(struct parser *p, struct values *v, struct str value)
{
    if (value.n == 0 && v->has_empty)
        return;
    v->has_empty = v->has_empty || value.n == 0;
    ARENA_GROW(p->a, v->list, v->n, v->cap);
    v->list[v->n++] = value;
}

/* The words and commas between the parentheses; a missing word is the empty value. */
static int parse_list(struct parser *p, struct values *v)
{
    for (;;) {
        struct token token = consume(p);
        if (token.kind == TOKEN_WORD) {
            add_value(p, v, token.text);
            if (next_is(p, ")"))
                return 0;
            if (!next_is(p, ","))
                return unexpected(p, p->next.text, "',' or ')'");
            continue;
        }
        if (token.kind != TOKEN_SYMBOL || !str_eqc(token.text, ","))
            return unexpected(p, token.text, "',', or identifier");
        if (v->n == 0 || next_is(p, ",") || next_is(p, ")"))
            add_value(p, v, STR(""));
        if (next_is(p, ")"))
            return 0;
    }
}

static int parse_set(struct parser *p, struct values *v)
{
    struct token open = consume(p);

    if (open.kind != TOKEN_SYMBOL || !str_eqc(open.text, "("))
        return err_set(p->err, &ERR_BAD_REQUEST, "found '%.*s' expected: '('", STR_F(open.text));
    if (next_is(p, ")"))
        add_value(p, v, STR(""));
    else if (p->next.kind != TOKEN_WORD && !next_is(p, ","))
        return unexpected(p, p->next.text, "',', ')' or identifier");
    else if (parse_list(p, v))
        return -1;
    (void)consume(p); /* the closing parenthesis that was seen */
    return 0;
}

static int parse_exact(struct parser *p, struct values *v)
{
    if (next_ends_term(p)) {
        add_value(p, v, STR(""));
        return 0;
    }
    struct token token = consume(p);
    if (token.kind != TOKEN_WORD)
        return unexpected(p, token.text, "identifier");
    add_value(p, v, token.text);
    return 0;
}

/* ---- requirements ---- */

static int parse_operator(struct parser *p, enum selector_op *ret)
{
    static const struct {
        const char *text;
        enum selector_op op;
    } operators[] = {
        {"in", SEL_IN}, {"notin", SEL_NOT_IN}, {"=", SEL_EQ}, {"==", SEL_EQ},
        {"!=", SEL_NE}, {">", SEL_GT},         {"<", SEL_LT},
    };
    struct token token = consume(p);

    for (size_t i = 0; i < COUNT(operators); i++) {
        if (!str_eqc(token.text, operators[i].text))
            continue;
        *ret = operators[i].op;
        return 0;
    }
    return unexpected(p, token.text, "in, notin, =, ==, !=, gt, lt");
}

/* Upstream checks the key twice: here its path has no name yet and prints as "<nil>". */
static int check_key(struct parser *p, struct str key)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(NAME_QUALIFIED, key, messages);
    struct str detail = n > 0 ? str_c(messages[0]) : STR_NULL;

    if (n == 0)
        return 0;
    for (size_t i = 1; i < n; i++) {
        struct str parts[] = {detail, STR("; "), str_c(messages[i])};
        detail = arena_concat(p->a, 3, parts);
    }
    struct str quoted = go_quote(p->a, key);
    return err_set(p->err, &ERR_BAD_REQUEST, "<nil>: Invalid value: %.*s: %.*s", STR_F(quoted),
                   STR_F(detail));
}

static int parse_term(struct parser *p, struct selector_term *term)
{
    struct values values = {0};
    bool negated = next_is(p, "!");
    size_t n = 0;

    if (negated)
        (void)consume(p);
    struct token key = consume(p);
    if (key.kind != TOKEN_WORD)
        return unexpected(p, key.text, "identifier");
    if (check_key(p, key.text))
        return -1;

    *term = (struct selector_term){.key = key.text};
    if (negated || next_ends_term(p)) {
        term->op = negated ? SEL_NOT_EXISTS : SEL_EXISTS;
        return selector_check_term(p->a, term, p->err);
    }
    if (parse_operator(p, &term->op))
        return -1;
    bool set = term->op == SEL_IN || term->op == SEL_NOT_IN;
    if (set ? parse_set(p, &values) : parse_exact(p, &values))
        return -1;
    /* A set: sorted, each once. */
    if (values.n > 1)
        qsort(values.list, values.n, sizeof(*values.list), str_order);
    for (size_t i = 0; i < values.n; i++)
        if (n == 0 || !str_eq(values.list[n - 1], values.list[i]))
            values.list[n++] = values.list[i];
    term->values = values.list;
    term->n_values = n;
    return selector_check_term(p->a, term, p->err);
}

/* Terms are gathered on a list of fixed size: the limit is what bounds it. */
static int parse_terms(struct parser *p, struct selector_term *terms, size_t *n)
{
    while (p->next.kind != TOKEN_END) {
        if (p->next.kind != TOKEN_WORD && !next_is(p, "!"))
            return unexpected(p, p->next.text, "!, identifier, or 'end of string'");
        if (*n == SELECTOR_MAX_TERMS)
            return selector_too_long(p->err);
        if (parse_term(p, &terms[*n]))
            return err_wrap(p->err, "unable to parse requirement");
        (*n)++;

        struct token token = consume(p);
        if (token.kind == TOKEN_END)
            return 0;
        if (token.kind != TOKEN_SYMBOL || !str_eqc(token.text, ","))
            return unexpected(p, token.text, "',' or 'end of string'");
        if (p->next.kind != TOKEN_WORD && !next_is(p, "!"))
            return unexpected(p, p->next.text, "identifier after ','");
    }
    return 0;
}

static struct selector finish(struct arena *a, const struct selector_term *terms, size_t n)
{
    struct selector_term *copy = arena_alloc(a, (n + 1) * sizeof(*copy));

    if (n > 0)
        memcpy(copy, terms, n * sizeof(*copy));
    return (struct selector){.n = n, .terms = copy};
}

int selector_parse(struct arena *a, struct str text, struct selector *ret, struct err *err)
{
    struct parser p = {.a = a, .err = err, .rest = arena_str(a, text)};
    struct selector_term terms[SELECTOR_MAX_TERMS];
    size_t n = 0;

    advance(&p);
    if (parse_terms(&p, terms, &n))
        return -1;
    selector_sort_terms(terms, n);
    *ret = finish(a, terms, n);
    return 0;
}

/* ---- fields ---- */

/* Cuts at the first comma that no backslash escapes. */
static struct str cut_field(struct str *rest)
{
    struct str s = *rest;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\') {
            i++;
            continue;
        }
        if (s.p[i] != ',')
            continue;
        *rest = str_from(s, i + 1);
        return str_sub(s, 0, i);
    }
    *rest = STR_NULL;
    return s;
}

/* Length of the character that begins at s, for quoting it in an error. */
static size_t character(struct str s)
{
    size_t n = 1;

    while (n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static int unescape(struct arena *a, struct str s, struct str *ret, struct err *err)
{
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == ',' || c == '=')
            return err_set(err, &ERR_BAD_REQUEST,
                           "invalid field selector: unescaped character in value: %d", c);
        if (c == '\\') {
            struct str after = str_from(s, ++i);
            c = after.n > 0 ? after.p[0] : '\0';
            if (c != '\\' && c != ',' && c != '=')
                return err_set(err, &ERR_BAD_REQUEST,
                               "invalid field selector: invalid escape sequence: \\%.*s",
                               after.n > 0 ? (int)character(after) : 0, after.n > 0 ? after.p : "");
        }
        out[n++] = c;
    }
    *ret = (struct str){out, n};
    return 0;
}

/* Splits at the first operator: "a!=b", "a==b", "a=b". */
static bool split_field(struct str part, struct selector_term *term, struct str *value)
{
    for (size_t i = 0; i < part.n; i++) {
        struct str rest = str_from(part, i);
        bool not_equal = str_has_prefix(rest, STR("!="));
        if (rest.p[0] != '=' && !not_equal)
            continue;
        bool wide = not_equal || str_has_prefix(rest, STR("=="));
        term->key = str_sub(part, 0, i);
        term->op = not_equal ? SEL_NE : SEL_EQ;
        *value = str_from(rest, wide ? 2 : 1);
        return true;
    }
    return false;
}

static int parse_field(struct arena *a, struct str all, struct str part, struct selector_term *term,
                       struct err *err)
{
    struct str *value = ARENA_NEW(a, struct str), raw;

    *term = (struct selector_term){.n_values = 1, .values = value};
    if (!split_field(part, term, &raw))
        return err_set(err, &ERR_BAD_REQUEST, "invalid selector: '%.*s'; can't understand '%.*s'",
                       STR_F(all), STR_F(part));
    return unescape(a, raw, value, err);
}

int selector_parse_fields(struct arena *a, struct str text, struct selector *ret, struct err *err)
{
    struct str all = arena_str(a, text), parts[SELECTOR_MAX_TERMS];
    struct selector_term terms[SELECTOR_MAX_TERMS];
    size_t n = 0, kept = 0;

    for (struct str rest = all; rest.p;) {
        struct str part = cut_field(&rest);
        if (part.n == 0)
            continue;
        if (n == SELECTOR_MAX_TERMS)
            return selector_too_long(err);
        parts[n++] = part;
    }
    qsort(parts, n, sizeof(parts[0]), str_order);
    for (size_t i = 0; i < n; i++) {
        if (parse_field(a, all, parts[i], &terms[kept], err))
            return -1;
        kept += terms[kept].key.n + terms[kept].values[0].n > 0; /* upstream drops a bare "=" */
    }
    *ret = finish(a, terms, kept);
    return 0;
}
