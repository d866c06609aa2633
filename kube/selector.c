/* SPDX-License-Identifier: Apache-2.0
 *
 * Selectors as terms: built from metav1.LabelSelector or a plain map, matched against flat label
 * sets, printed in canonical form (apimachinery pkg/labels, pkg/apis/meta/v1
 * LabelSelectorAsSelector). Matching must stay linear in terms plus labels: both are a tenant's. */
#include "selector_impl.h"

#include <sublet/encode.h>

#include <stdlib.h>
#include <string.h>

/* ---- checks ---- */

/* More messages are of no use, and a selector may hold thousands of bad values. */
enum { PROBLEMS_MAX = 32 };

struct problems {
    struct arena *a;
    size_t n;
    struct str list[PROBLEMS_MAX];
};

static void add_problem(struct problems *p, struct str field, struct str value, struct str detail)
{
    if (p->n == PROBLEMS_MAX)
        return;
    struct str parts[] = {field, STR(": Invalid value: "), value, STR(": "), detail};
    p->list[p->n++] = arena_concat(p->a, COUNT(parts), parts);
}

static void check_name(struct problems *p, struct str field, enum name_rule rule, struct str value)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, value, messages);
    struct str detail = n > 0 ? str_c(messages[0]) : STR_NULL;

    for (size_t i = 1; i < n; i++) {
        struct str parts[] = {detail, STR("; "), str_c(messages[i])};
        detail = arena_concat(p->a, 3, parts);
    }
    if (n > 0)
        add_problem(p, field, go_quote(p->a, value), detail);
}

static struct str values_json(struct arena *a, const struct selector_term *term)
{
    cJSON *array = json_new_array(a);

    if (term->n_values == 0)
        return STR("null");
    for (size_t i = 0; i < term->n_values; i++)
        json_append(array, json_new_string(a, term->values[i]));
    return json_text(a, array);
}

static void check_integer(struct problems *p, struct str value)
{
    bool sign = value.n > 1 && value.p[0] == '+' && value.p[1] != '-';
    int64_t unused;

    if (!str_to_i64(sign ? str_from(value, 1) : value, &unused))
        add_problem(p, STR("values[0]"), go_quote(p->a, value),
                    STR("for 'Gt', 'Lt' operators, the value must be an integer"));
}

static void check_arity(struct problems *p, const struct selector_term *term)
{
    switch (term->op) {
    case SEL_IN:
    case SEL_NOT_IN:
        if (term->n_values == 0)
            add_problem(p, STR("values"), STR("null"),
                        STR("for 'in', 'notin' operators, values set can't be empty"));
        break;
    case SEL_EXISTS:
    case SEL_NOT_EXISTS:
        if (term->n_values != 0)
            add_problem(p, STR("values"), values_json(p->a, term),
                        STR("values set must be empty for exists and does not exist"));
        break;
    case SEL_GT:
    case SEL_LT:
        check_integer(p, term->values[0]);
        break;
    case SEL_EQ:
    case SEL_NE:
        break; /* both grammars give exactly one value */
    }
}

/* One message is printed as it is, several in brackets, as Go's aggregate prints them. */
static int report(struct problems *p, struct err *err)
{
    struct buf text = BUF_INIT(0);

    if (p->n == 0)
        return 0;
    for (size_t i = 0; i < p->n; i++) {
        buf_addc(&text, i > 0 ? ", " : "");
        buf_add(&text, p->list[i]);
    }
    struct str all = buf_str(&text);
    err_set(err, &ERR_BAD_REQUEST, p->n > 1 ? "[%.*s]" : "%.*s", STR_F(all));
    buf_fini(&text);
    return -1;
}

int selector_check_term(struct arena *a, const struct selector_term *term, struct err *err)
{
    struct problems p = {.a = a};

    check_name(&p, STR("key"), NAME_QUALIFIED, term->key);
    check_arity(&p, term);
    for (size_t i = 0; i < term->n_values && p.n < PROBLEMS_MAX; i++) {
        if (!name_check_label_value(term->values[i]))
            continue;
        struct str field = arena_printf(a, "values[%zu][%.*s]", i, STR_F(term->key));
        check_name(&p, field, NAME_LABEL_VALUE, term->values[i]);
    }
    return report(&p, err);
}

int selector_too_long(struct err *err)
{
    return err_set(err, &ERR_BAD_REQUEST, "selector has more than %d requirements",
                   SELECTOR_MAX_TERMS);
}

void selector_sort_terms(struct selector_term *terms, size_t n)
{
    for (size_t i = 1; i < n; i++) { /* n is at most SELECTOR_MAX_TERMS */
        struct selector_term term = terms[i];
        size_t at = i;
        for (; at > 0 && str_cmp(terms[at - 1].key, term.key) > 0; at--)
            terms[at] = terms[at - 1];
        terms[at] = term;
    }
}

/* ---- from JSON ---- */

static int wrong_type(struct err *err, const cJSON *node, const char *where, const char *type)
{
    return err_set(err, &ERR_BAD_REQUEST,
                   "json: cannot unmarshal %s into Go struct field %s of type %s",
                   json_type_name(node), where, type);
}

/* A string, or null, which Go reads as the empty string. */
static int read_string(struct arena *a, const cJSON *node, const char *where, struct str *ret,
                       struct err *err)
{
    if (node && !json_is_null(node) && !json_is_string(node))
        return wrong_type(err, node, where, "string");
    struct str s = json_str(node);
    *ret = s.p ? arena_str(a, s) : STR("");
    return 0;
}

static bool read_operator(struct str name, enum selector_op *ret)
{
    static const struct {
        const char *name;
        enum selector_op op;
    } operators[] = {
        {"In", SEL_IN},
        {"NotIn", SEL_NOT_IN},
        {"Exists", SEL_EXISTS},
        {"DoesNotExist", SEL_NOT_EXISTS},
    };

    for (size_t i = 0; i < COUNT(operators); i++) {
        if (!str_eqc(name, operators[i].name))
            continue;
        *ret = operators[i].op;
        return true;
    }
    return false;
}

static int read_values(struct arena *a, const cJSON *array, struct selector_term *term,
                       struct err *err)
{
    if (array && !json_is_null(array) && !json_is_array(array))
        return wrong_type(err, array, "LabelSelectorRequirement.matchExpressions.values",
                          "[]string");

    struct str *values = arena_alloc(a, (json_count(array) + 1) * sizeof(*values));
    json_each(child, array)
    {
        if (read_string(a, child, "LabelSelectorRequirement.matchExpressions.values",
                        &values[term->n_values], err))
            return -1;
        term->n_values++;
    }
    term->values = values;
    return 0;
}

static int read_expression(struct arena *a, const cJSON *node, struct selector_term *term,
                           struct err *err)
{
    struct str op = STR_NULL;

    if (!json_is_null(node) && !json_is_object(node))
        return wrong_type(err, node, "LabelSelector.matchExpressions",
                          "v1.LabelSelectorRequirement");
    if (read_string(a, json_get(node, "key"), "LabelSelectorRequirement.matchExpressions.key",
                    &term->key, err) ||
        read_string(a, json_get(node, "operator"),
                    "LabelSelectorRequirement.matchExpressions.operator", &op, err) ||
        read_values(a, json_get(node, "values"), term, err))
        return -1;
    if (!read_operator(op, &term->op)) {
        struct str quoted = go_quote(a, op);
        return err_set(err, &ERR_BAD_REQUEST, "%.*s is not a valid label selector operator",
                       STR_F(quoted));
    }
    return selector_check_term(a, term, err);
}

static int read_pair(struct arena *a, const cJSON *node, struct selector_term *term,
                     struct err *err)
{
    struct str *value = ARENA_NEW(a, struct str);

    if (read_string(a, node, "LabelSelector.matchLabels", value, err))
        return -1;
    *term = (struct selector_term){
        .key = arena_str(a, str_c(node->string)), .op = SEL_EQ, .n_values = 1, .values = value};
    return selector_check_term(a, term, err);
}

int selector_from_json(struct arena *a, const cJSON *selector, struct selector *ret,
                       struct err *err)
{
    if (!selector || json_is_null(selector)) {
        *ret = (struct selector){.nothing = true};
        return 0;
    }
    if (!json_is_object(selector))
        return err_set(err, &ERR_BAD_REQUEST,
                       "json: cannot unmarshal %s into Go value of type v1.LabelSelector",
                       json_type_name(selector));

    const cJSON *pairs = json_get(selector, "matchLabels");
    const cJSON *expressions = json_get(selector, "matchExpressions");
    if (pairs && !json_is_null(pairs) && !json_is_object(pairs))
        return wrong_type(err, pairs, "LabelSelector.matchLabels", "map[string]string");
    if (expressions && !json_is_null(expressions) && !json_is_array(expressions))
        return wrong_type(err, expressions, "LabelSelector.matchExpressions",
                          "[]v1.LabelSelectorRequirement");

    size_t limit = json_count(pairs) + json_count(expressions), n = 0;
    if (limit > SELECTOR_MAX_TERMS)
        return selector_too_long(err);
    struct selector_term *terms = arena_alloc(a, (limit + 1) * sizeof(*terms));
    json_each(pair, pairs) if (read_pair(a, pair, &terms[n++], err)) return -1;
    json_each(expression,
              expressions) if (read_expression(a, expression, &terms[n++], err)) return -1;

    selector_sort_terms(terms, n);
    *ret = (struct selector){.n = n, .terms = terms};
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct selector_term *left = a, *right = b;

    return str_cmp(left->key, right->key);
}

void selector_from_map(struct arena *a, const cJSON *map, struct selector *ret)
{
    size_t n = 0, count = json_is_object(map) ? json_count(map) : 0;

    *ret = (struct selector){.nothing = true};
    if (count == 0)
        return;
    struct selector_term *terms = arena_alloc(a, count * sizeof(*terms));
    struct str *values = arena_alloc(a, count * sizeof(*values));
    json_each(child, map)
    {
        values[n] = arena_str(a, json_str(child));
        terms[n] = (struct selector_term){.key = arena_str(a, str_c(child->string)),
                                          .op = SEL_EQ,
                                          .n_values = 1,
                                          .values = &values[n]};
        n++;
    }
    qsort(terms, n, sizeof(*terms), by_key);
    *ret = (struct selector){.n = n, .terms = terms};
}

/* ---- matching ---- */

static bool has_value(const struct selector_term *term, struct str value)
{
    for (size_t i = 0; i < term->n_values; i++)
        if (str_eq(term->values[i], value))
            return true;
    return false;
}

static bool compare(const struct selector_term *term, struct str value)
{
    int64_t left, right;

    if (term->n_values != 1 || !str_to_i64(value, &left) || !str_to_i64(term->values[0], &right))
        return false;
    return term->op == SEL_GT ? left > right : left < right;
}

static bool term_matches(const struct selector_term *term, bool present, struct str value)
{
    switch (term->op) {
    case SEL_EQ:
    case SEL_IN:
        return present && has_value(term, value);
    case SEL_NE:
    case SEL_NOT_IN:
        return !present || !has_value(term, value);
    case SEL_EXISTS:
        return present;
    case SEL_NOT_EXISTS:
        return !present;
    case SEL_GT:
    case SEL_LT:
        return present && compare(term, value);
    }
    return false;
}

/* Terms come sorted from every function here, so one walk over the labels serves all of them; a
 * caller's own unsorted terms only cost the walk anew. */
struct walk {
    struct str labels, rest, key, value;
    bool at_pair;
};

static void walk_start(struct walk *w)
{
    w->rest = w->labels;
    w->at_pair = labels_next(&w->rest, &w->key, &w->value);
}

static bool walk_to(struct walk *w, struct str key)
{
    while (w->at_pair && str_cmp(w->key, key) < 0)
        w->at_pair = labels_next(&w->rest, &w->key, &w->value);
    return w->at_pair && str_eq(w->key, key);
}

bool selector_match(const struct selector *s, struct str labels)
{
    struct walk walk = {.labels = labels};

    if (s->nothing)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        if (i == 0 || str_cmp(s->terms[i - 1].key, s->terms[i].key) > 0)
            walk_start(&walk);
        bool present = walk_to(&walk, s->terms[i].key);
        if (!term_matches(&s->terms[i], present, walk.value))
            return false;
    }
    return true;
}

/* ---- printing ---- */

static const char *const OPERATORS[] = {
    [SEL_EQ] = "=",    [SEL_NE] = "!=",       [SEL_IN] = " in (", [SEL_NOT_IN] = " notin (",
    [SEL_EXISTS] = "", [SEL_NOT_EXISTS] = "", [SEL_GT] = ">",     [SEL_LT] = "<",
};

static void format_values(struct arena *a, struct buf *b, const struct selector_term *term)
{
    struct str *sorted = arena_alloc(a, (term->n_values + 1) * sizeof(*sorted));

    if (term->n_values > 0)
        memcpy(sorted, term->values, term->n_values * sizeof(*sorted));
    qsort(sorted, term->n_values, sizeof(*sorted), str_order);
    for (size_t i = 0; i < term->n_values; i++) {
        buf_addc(b, i > 0 ? "," : "");
        buf_add(b, sorted[i]);
    }
}

struct str selector_format(struct arena *a, const struct selector *s)
{
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < s->n; i++) {
        const struct selector_term *term = &s->terms[i];
        bool set = term->op == SEL_IN || term->op == SEL_NOT_IN;
        buf_addc(&b, i > 0 ? "," : "");
        buf_addc(&b, term->op == SEL_NOT_EXISTS ? "!" : "");
        buf_add(&b, term->key);
        buf_addc(&b, OPERATORS[term->op]);
        if (term->op != SEL_EXISTS && term->op != SEL_NOT_EXISTS)
            format_values(a, &b, term);
        buf_addc(&b, set ? ")" : "");
    }
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}
