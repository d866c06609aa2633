/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The query of a URL, parsed as Go's net/url does: pairs in order, decoded. Must never know the
 * meaning of a parameter (options.c). */
#include "target.h"

#include <sublet/encode.h>

#define MAX_PARAMETERS 1000

static size_t count_pairs(struct str text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '&';
    return n;
}

void query_parse(struct arena *a, struct str text, struct query *ret)
{
    struct query_item *items;
    size_t n = 0, cap = count_pairs(text);

    *ret = (struct query){NULL, 0};
    if (!text.n)
        return;
    if (cap > MAX_PARAMETERS)
        cap = MAX_PARAMETERS;
    items = arena_alloc(a, cap * sizeof(*items));
    while (text.p && n < cap) {
        struct str pair = str_cut(&text, '&');
        struct str name = str_cut(&pair, '=');

        /* Go drops a pair with a semicolon or a bad escape, and keeps the others. */
        if ((!name.n && !pair.n) || str_find(name, ';') < name.n || str_find(pair, ';') < pair.n)
            continue;
        if (!url_decode(a, name, true, &items[n].name))
            continue;
        if (!url_decode(a, pair.p ? pair : STR(""), true, &items[n].value))
            continue;
        if (!items[n].value.p)
            items[n].value = STR("");
        n++;
    }
    *ret = (struct query){items, n};
}

/* A parameter that is dropped could be the one that makes a write a dry run. */
int query_parse_all(struct arena *a, struct str text, struct query *ret, struct err *err)
{
    if (count_pairs(text) > MAX_PARAMETERS)
        return err_set(err, &ERR_BAD_REQUEST, "too many query parameters: limit is %d",
                       MAX_PARAMETERS);
    query_parse(a, text, ret);
    return 0;
}

struct str query_get(const struct query *q, const char *name)
{
    for (size_t i = 0; i < q->n; i++)
        if (str_eqc(q->items[i].name, name))
            return q->items[i].value;
    return STR_NULL;
}

bool query_truth(struct str value)
{
    if (str_eqc(value, "0"))
        return false;
    return !str_eq_nocase(value, STR("false"));
}
