/* SPDX-License-Identifier: Apache-2.0 */
/* Building objects from a list of members. Why: a chain of calls that set one member each hides the
 * shape of what it builds and looks every key up in what is there already. Must never copy a key:
 * they are literals. */

#include <sublet/json_build.h>

#include <assert.h>

/* NULL: the member is left out. */
static cJSON *node_of(struct arena *a, const struct json_member *m)
{
    switch (m->length) {
    case JSON_LENGTH_C:
        return json_new_string(a, str_c(m->string));
    case JSON_LENGTH_NODE:
        assert(!m->node || !m->node->next); /* detached */
        return m->node;
    case JSON_LENGTH_I64:
        return json_new_i64(a, m->number);
    case JSON_LENGTH_BOOL:
        return json_new_bool(a, m->number != 0);
    case JSON_LENGTH_ABSENT:
        return NULL;
    default:
        return json_new_string(a, (struct str){m->string, m->length});
    }
}

cJSON *json_build(struct arena *a, size_t n, const struct json_member *members)
{
    cJSON *ret = json_new_object(a);

    for (size_t i = 0; i < n; i++) {
        cJSON *node = node_of(a, &members[i]);

        if (node)
            json_add(ret, members[i].key, node);
    }
    return ret;
}

cJSON *json_put_members(struct arena *a, cJSON *object, size_t n, const struct json_member *members)
{
    for (size_t i = 0; i < n; i++) {
        cJSON *node = node_of(a, &members[i]);
        cJSON *old = node ? json_get(object, members[i].key) : NULL;

        if (old)
            json_replace(object, old, node);
        else if (node)
            json_add(object, members[i].key, node);
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
