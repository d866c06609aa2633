/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors, label sets and names from any bytes: what is accepted prints as a string that is
 * accepted and prints the same again, matching agrees with looking each label up, and nothing reads
 * past its input. */

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/selector.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool has(const struct selector_term *term, struct str value)
{
    for (size_t i = 0; i < term->n_values; i++)
        if (str_eq(term->values[i], value))
            return true;
    return false;
}

/* The same answer as selector_match(), one look-up for each term. Gt and Lt are left out. */
static bool slow_match(const struct selector *s, struct str labels)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct selector_term *term = &s->terms[i];
        struct str value;
        bool present = labels_get(labels, term->key, &value);
        bool negative = term->op == SEL_NE || term->op == SEL_NOT_IN;
        bool holds = term->op == SEL_EXISTS ? present : !present;
        if (term->op == SEL_EQ || term->op == SEL_IN || negative)
            holds = (present && has(term, value)) != negative;
        if (!holds)
            return false;
    }
    return true;
}

static bool compares(const struct selector *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->terms[i].op == SEL_GT || s->terms[i].op == SEL_LT)
            return true;
    return false;
}

static void check_match(struct arena *a, const struct selector *s, struct str text)
{
    cJSON *map = json_new_object(a);

    /* Labels that have a chance to match: the selector's own keys and values, and the raw bytes. */
    for (size_t i = 0; i < s->n; i += 2)
        json_set_str(a, map, arena_cstr(a, s->terms[i].key),
                     s->terms[i].n_values ? s->terms[i].values[0] : STR("x"));
    struct str labels = labels_flatten(a, map), raw = text, key, value;
    bool sorted = true;
    for (struct str before = STR(""); labels_next(&raw, &key, &value); before = key)
        sorted = sorted && str_cmp(before, key) < 0;
    if (compares(s)) {
        (void)selector_match(s, labels);
        (void)selector_match(s, text);
        return;
    }
    assert(selector_match(s, labels) == slow_match(s, labels));
    assert(!sorted || selector_match(s, text) == slow_match(s, text));
}

static void check_labels(struct arena *a, struct str text)
{
    struct selector s, again;
    struct err err;

    err_init(&err, a);
    if (selector_parse(a, text, &s, &err)) {
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n > 0);
        return;
    }
    struct str canonical = selector_format(a, &s);
    int rc = selector_parse(a, canonical, &again, &err);
    assert(rc == 0 && again.n == s.n);
    assert(str_eq(selector_format(a, &again), canonical));
    check_match(a, &s, text);
}

static void check_fields(struct arena *a, struct str text)
{
    struct selector s;
    struct err err;

    err_init(&err, a);
    if (selector_parse_fields(a, text, &s, &err))
        return;
    for (size_t i = 0; i < s.n; i++)
        assert(s.terms[i].n_values == 1 && s.terms[i].op <= SEL_NE);
}

static void check_json(struct arena *a, struct str text)
{
    struct selector s;
    struct err err;
    cJSON *node;

    err_init(&err, a);
    if (json_parse(a, text, &node, &err))
        return;
    if (!selector_from_json(a, node, &s, &err))
        (void)selector_format(a, &s);
    selector_from_map(a, node, &s);
    assert(s.nothing || s.n > 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena *a = arena_new(0);
    const char *messages[NAME_MESSAGES_MAX];

    check_labels(a, text);
    check_fields(a, text);
    check_json(a, text);
    for (int rule = 0; rule <= NAME_LABEL_VALUE; rule++)
        (void)name_check((enum name_rule)rule, text, messages);
    (void)go_quote(a, text);
    arena_free(a);
    return 0;
}
