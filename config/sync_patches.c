/* SPDX-License-Identifier: Apache-2.0 */
/* `patches` of built-in kinds: what the admin changes in an object after its translation. Why apart
 * from those of custom resources: a built-in kind is translated by rows already, so nothing is left
 * to translate. Must never admit a path by which an object is recognized, owned or kept inside its
 * namespace. */

#include <sublet/config_sync.h>
#include <sublet/selector.h>

#include "impl.h"

enum { MOST_HOST_PATCHES = 64, MOST_PATH = 256 };

#define ANNOTATIONS "metadata.annotations["

struct host_patch_draft {
    struct config_host_patch patch;
    unsigned actions;
};

/* Parts of a path that no patch may name, wherever they are. */
static const struct guarded {
    const char *part, *why;
} GUARDED[] = {
    {"namespace", "objects of a tenant stay in its namespace"},
    {"namespaces", "objects of a tenant stay in its namespace"},
    {"allowedRoutes", "a Gateway of a tenant takes routes of this tenant alone"},
    {"parentRefs", "the Gateways of a route are judged, and its status comes up by them"},
    {"podSelector", "selects the tenant's own pods"},
    {"selector", "selects the tenant's own pods"},
};

static int check_guarded(const struct place *at, struct str path)
{
    struct str rest = path;

    while (rest.p) {
        struct str part = str_cut(&rest, '.');

        part.n = str_find(part, '[');
        for (size_t i = 0; i < COUNT(GUARDED); i++)
            if (str_eqc(part, GUARDED[i].part))
                return place_error(at, "\"%.*s\": cannot be patched: %s", STR_F(path),
                                   GUARDED[i].why);
    }
    return 0;
}

static int read_annotation(const struct place *at, struct str path, struct host_patch_draft *d)
{
    struct str key = str_from(path, sizeof(ANNOTATIONS) - 1);
    const char *why;

    if (!str_has_suffix(key, STR("]")))
        return place_error(at, "\"%.*s\": want metadata.annotations[KEY]", STR_F(path));
    key.n--;
    why = name_check_qualified(key);
    if (!why && str_has_prefix(key, STR("sublet.dev/")))
        why = "by annotations of sublet.dev an object is recognized";
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(path), why);
    d->patch.annotation = arena_cstr(at->arena, key);
    return 0;
}

static int host_patch_path(const struct place *at, const cJSON *value, void *into)
{
    struct host_patch_draft *d = into;
    struct str path;

    if (place_string(at, value, &path))
        return -1;
    if (str_has_prefix(path, STR(ANNOTATIONS)))
        return read_annotation(at, path, d);
    if (!str_has_prefix(path, STR("spec.")) || !config_path_valid(path) || path.n > MOST_PATH ||
        str_has_suffix(path, STR("*]")) || str_has_suffix(path, STR(".*")))
        return place_error(at,
                           "\"%.*s\": want a member below spec, such as "
                           "spec.rules[*].timeouts.request, or metadata.annotations[KEY]",
                           STR_F(path));
    if (check_guarded(at, path))
        return -1;
    d->patch.path = arena_cstr(at->arena, path);
    return 0;
}

static int host_patch_value(const struct place *at, const cJSON *value, void *into)
{
    struct host_patch_draft *d = into;

    d->actions++;
    d->patch.value = json_copy(at->arena, value);
    return 0;
}

static int host_patch_drop(const struct place *at, const cJSON *value, void *into)
{
    ((struct host_patch_draft *)into)->actions++;
    return json_true(value) ? 0 : place_error(at, "want true");
}

static const struct place_key HOST_PATCH_KEYS[] = {
    {"path", host_patch_path},
    {"value", host_patch_value},
    {"drop", host_patch_drop},
    {0},
};

static int check_patch(const struct place *at, const struct host_patch_draft *d)
{
    if ((!d->patch.path && !d->patch.annotation) || d->actions != 1)
        return place_error(at, "want a path and one of value, drop");
    if (d->patch.annotation && !json_is_string(d->patch.value))
        return place_error(at, "an annotation gets a value, which is a string; those of tenants go "
                               "down by policy.annotations.allow");
    return 0;
}

int config_read_host_patches(const struct place *at, const cJSON *value,
                             struct config_host_patches *ret)
{
    struct config_host_patch *items;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_HOST_PATCHES)
        return place_error(at, "at most %d", MOST_HOST_PATCHES);
    items = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*items));
    json_each(item, value)
    {
        struct place inner = place_item(at, ret->n);
        struct host_patch_draft d = {0};

        if (place_object(&inner, item, HOST_PATCH_KEYS, &d) || check_patch(&inner, &d))
            return -1;
        items[ret->n++] = d.patch;
    }
    ret->items = items;
    return 0;
}

int config_read_annotations(const struct place *at, const cJSON *value,
                            struct config_host_patches *ret)
{
    if (config_read_host_patches(at, value, ret))
        return -1;
    for (size_t i = 0; i < ret->n; i++) {
        struct place inner = place_item(at, i);

        if (!ret->items[i].annotation)
            return place_error(&inner, "only annotations can be patched: want "
                                       "metadata.annotations[KEY]");
    }
    return 0;
}
