/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of the configuration on host objects of built-in kinds. Why last: they say what the
 * controllers of the host get, whatever the tenant wrote. Must never add an annotation that is not
 * on record as ours: it could not be removed with its patch. */

#include <string.h>

#include <sublet/config_sync.h>

#include "impl.h"

/* rest: what of the path is below the node: ".name...", "[*]...". */
static void change(struct arena *a, const struct config_host_patch *patch, cJSON *node,
                   const char *rest)
{
    const char *key;
    cJSON *child;
    size_t n;

    if (!strncmp(rest, "[*]", 3)) {
        json_each(item, json_is_array(node) ? node : NULL) change(a, patch, item, rest + 3);
        return;
    }
    rest += *rest == '.';
    if (!json_is_object(node))
        return;
    n = strcspn(rest, ".[");
    if (n == 1 && *rest == '*') {
        json_each(member, node) change(a, patch, member, rest + 1);
        return;
    }
    key = arena_cstr(a, (struct str){rest, n});
    if (!rest[n]) {
        if (patch->value)
            json_set(a, node, key, json_copy(a, patch->value));
        else
            json_remove(node, key);
        return;
    }
    child = json_get(node, key);
    if (!child && patch->value && rest[n] == '.')
        child = json_ensure_object(a, node, key);
    change(a, patch, child, rest + n);
}

static void annotate(struct arena *a, const struct config_host_patch *patch, cJSON *host)
{
    cJSON *notes = json_ensure_path(a, host, "metadata.annotations");
    struct str owned = json_str(json_get(notes, ANNOTATION_OWNED));

    if (!json_get(notes, patch->annotation))
        json_set_str(
            a, notes, ANNOTATION_OWNED,
            arena_printf(a, "%.*s%sa:%s", STR_F(owned), owned.n ? "," : "", patch->annotation));
    json_set_str(a, notes, patch->annotation, json_str(patch->value));
}

void translate_host_patch(struct arena *a, const struct config_host_patches *patches, cJSON *host)
{
    for (size_t i = 0; i < patches->n; i++) {
        if (patches->items[i].annotation)
            annotate(a, &patches->items[i], host);
        else
            change(a, &patches->items[i], host, patches->items[i].path);
    }
}
