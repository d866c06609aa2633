/* SPDX-License-Identifier: Apache-2.0 */
/* `init.manifests`: objects that a virtual cluster has from its first start, as a list or as
 * YAML documents in a string. Must never take one that cannot be applied again: each has a name. */

#include <sublet/config.h>
#include <sublet/yaml.h>

#include "impl.h"

enum { MOST_MANIFESTS = 256, MOST_BYTES = 512 * 1024 };

static int add_object(const struct place *at, const cJSON *object, cJSON *to)
{
    const struct str apart[] = {json_str(json_get(object, "apiVersion")),
                                json_str(json_get(object, "kind")),
                                json_str_at(object, "metadata.name")};

    for (size_t i = 0; i < COUNT(apart); i++)
        if (!apart[i].n)
            return place_error(at, "want an object with apiVersion, kind and metadata.name");
    if (json_count(to) == MOST_MANIFESTS)
        return place_error(at, "at most %d objects", MOST_MANIFESTS);
    json_append(to, json_copy(at->arena, object));
    return 0;
}

static int add_list(const struct place *at, const cJSON *list, cJSON *to)
{
    size_t i = 0;

    json_each(item, list)
    {
        struct place one = place_item(at, i++);

        if (add_object(&one, item, to))
            return -1;
    }
    return 0;
}

static int add_document(const struct place *at, struct str text, cJSON *to)
{
    cJSON *document = NULL;
    struct err err;

    err_init(&err, at->arena);
    if (yaml_parse(at->arena, text, NULL, NULL, &document, &err))
        return place_error(at, "%.*s", STR_F(err.message));
    if (json_is_null(document))
        return 0;
    if (str_eqc(json_str(json_get(document, "kind")), "List"))
        return add_list(at, json_get(document, "items"), to);
    return add_object(at, document, to);
}

static int read_manifests(const struct place *at, const cJSON *value, void *into)
{
    struct config *config = into;
    cJSON *all = json_new_array(at->arena);
    struct str text = json_str(value), document;
    size_t i = 0;

    if (!json_is_string(value) && !json_is_array(value))
        return place_error(at, "want a list of objects, or YAML documents as a string");
    if (text.n > MOST_BYTES)
        return place_error(at, "at most %d bytes", MOST_BYTES);
    if (json_is_array(value) && add_list(at, value, all))
        return -1;
    while (text.p) {
        struct place one = place_item(at, i++);

        document = yaml_cut(&text);
        if (add_document(&one, document, all))
            return -1;
    }
    if (json_text(at->arena, all).n > MOST_BYTES)
        return place_error(at, "at most %d bytes", MOST_BYTES);
    config->manifests = all;
    return 0;
}

static const struct place_key INIT_KEYS[] = {
    {"manifests", read_manifests},
    {0},
};

int config_load_init(struct arena *a, const cJSON *tree, struct config *config, struct err *err)
{
    struct place at = {a, STR("config: init"), err};
    const cJSON *value = json_get(tree, "init");

    return value && !json_is_null(value) ? place_object(&at, value, INIT_KEYS, config) : 0;
}
