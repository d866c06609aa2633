/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes file of the embedded host from any bytes: it is refused in words, or makes Node objects
 * that can be stored: with a name each, no name twice, labels and quantities that are strings. */

#include <assert.h>

#include "../../embedded/impl.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_texts(const cJSON *map)
{
    json_each(item, map)
    {
        assert(item->string && json_is_string(item));
    }
}

static void check_node(const cJSON *node)
{
    assert(json_is_object(node));
    assert(json_str_at(node, "metadata.name").n);
    check_texts(json_path(node, "metadata.labels"));
    check_texts(json_path(node, "metadata.annotations"));
    json_each(taint, json_path(node, "spec.taints"))
    {
        assert(json_is_object(taint) && json_str(json_get(taint, "key")).n);
    }
}

static void check_names(const cJSON *nodes)
{
    if (json_count(nodes) > 50)
        return;
    json_each(one, nodes)
    {
        json_each(two, nodes)
        {
            assert(one == two ||
                   !str_eq(json_str_at(one, "metadata.name"), json_str_at(two, "metadata.name")));
        }
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct err err;
    cJSON *nodes;

    err_init(&err, a);
    if (node_file_parse(a, (struct str){(const char *)data, size}, &nodes, &err)) {
        assert(err.kind && err.message.n && str_is_utf8(err.message));
    } else {
        assert(json_is_array(nodes));
        json_each(node, nodes)
        {
            check_node(node);
        }
        check_names(nodes);
    }
    arena_free(a);
    return 0;
}
