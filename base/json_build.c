/* SPDX-License-Identifier: Apache-2.0 */
/* Building objects from a list of members. Why: a chain of calls that set one member each hides the
 * shape of what it builds and looks every key up in what is there already. Must never copy a key:
 * they are literals. */

#include <sublet/json_build.h>

#include <assert.h>

#include "json_impl.h"

static cJSON *node_of(struct arena *a, const struct json_member *m)
{
    switch (m->kind) {
    case JSON_MEMBER_STR:
        return json_new_string(a, m->str);
    case JSON_MEMBER_I64:
        return json_new_i64(a, m->i64);
    case JSON_MEMBER_BOOL:
        return json_new_bool(a, m->boolean);
    case JSON_MEMBER_NODE:
        assert(!m->node->next); /* detached */
        return m->node;
    case JSON_MEMBER_ABSENT:
    case JSON_MEMBER_END:
        break;
    }
    return NULL;
}

static void append(cJSON *object, const char *key, cJSON *node)
{
    union {
        const char *literal;
        char *string; /* of cJSON's type; nobody writes through it */
    } pun = {.literal = key};

    node->string = pun.string;
    json_link(object, node);
}

cJSON *json_build(struct arena *a, const struct json_member *members)
{
    cJSON *ret = json_new_object(a);

    for (; members->kind != JSON_MEMBER_END; members++) {
        cJSON *node = node_of(a, members);

        if (node)
            append(ret, members->key, node);
    }
    return ret;
}

cJSON *json_put_members(struct arena *a, cJSON *object, const struct json_member *members)
{
    for (; members->kind != JSON_MEMBER_END; members++) {
        cJSON *node = node_of(a, members), *old = node ? json_get(object, members->key) : NULL;

        if (old)
            json_replace(object, old, node);
        else if (node)
            append(object, members->key, node);
    }
    return object;
}

cJSON *json_build_array(struct arena *a, size_t n, cJSON *const *items)
{
    cJSON *ret = json_new_array(a);

    for (size_t i = 0; i < n; i++) {
        if (items[i])
            json_append(ret, items[i]);
    }
    return ret;
}
