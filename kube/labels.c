/* SPDX-License-Identifier: Apache-2.0
 *
 * Label sets as flat bytes ("key\0value\0", sorted by key): one allocation, one comparison, no
 * pointers, so that the store can keep them beside every object and match without a tree. A pair
 * that the form cannot hold is never written. */
#include <sublet/selector.h>

#include <stdlib.h>
#include <string.h>

struct pair {
    struct str key, value;
};

static int by_key(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;

    return str_cmp(left->key, right->key);
}

static bool is_flat(struct str s)
{
    return s.p && str_find(s, '\0') == s.n;
}

static char *put(char *to, struct str s)
{
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return to + s.n + 1;
}

struct str labels_flatten(struct arena *a, const cJSON *map)
{
    size_t n = 0, size = 0;

    if (!map)
        return STR_NULL;
    struct pair *pairs = arena_alloc(a, (json_count(map) + 1) * sizeof(*pairs));
    json_each(child, map)
    {
        struct pair pair = {.key = str_c(child->string), .value = json_str(child)};
        if (!is_flat(pair.key) || !is_flat(pair.value))
            continue;
        pairs[n++] = pair;
        size += pair.key.n + pair.value.n + 2;
    }
    qsort(pairs, n, sizeof(*pairs), by_key);

    char *out = arena_alloc(a, size + 1), *p = out;
    for (size_t i = 0; i < n; i++)
        p = put(put(p, pairs[i].key), pairs[i].value);
    return (struct str){out, size};
}

/* Cuts one NUL-terminated string off the front. */
static bool take(struct str *rest, struct str *ret)
{
    size_t n = str_find(*rest, '\0');

    if (n == rest->n)
        return false;
    *ret = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n + 1);
    return true;
}

bool labels_next(struct str *rest, struct str *ret_key, struct str *ret_value)
{
    return take(rest, ret_key) && take(rest, ret_value);
}

bool labels_get(struct str labels, struct str key, struct str *ret_value)
{
    struct str at, value;

    while (labels_next(&labels, &at, &value)) {
        int order = str_cmp(at, key);
        if (order > 0)
            return false;
        if (order < 0)
            continue;
        *ret_value = value;
        return true;
    }
    return false;
}
