/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two maps as a JSON merge patch (RFC 7386). Why: labels, annotations and data
 * are maps of a tenant's size, so the walk must stay n log n; and keys that are not ours must never
 * be removed. */

#include <stdlib.h>
#include <string.h>

#include "host_keys.h"

static int by_key(const void *x, const void *y)
{
    const cJSON *const *a = x, *const *b = y;

    return strcmp((*a)->string, (*b)->string);
}

struct members translate_map_sorted_members(struct arena *a, const cJSON *map)
{
    struct members ret = {0};

    if (!json_is_object(map))
        return ret;
    ret.items = arena_alloc(a, (json_count(map) + 1) * sizeof *ret.items);
    json_each(member, map)
    {
        ret.items[ret.n++] = member;
    }
    qsort(ret.items, ret.n, sizeof *ret.items, by_key);
    return ret;
}

static void put(struct arena *a, cJSON **patch, struct str key, cJSON *value)
{
    if (!*patch)
        *patch = json_new_object(a);
    object_add(a, *patch, key, value);
}

cJSON *translate_map_patch(struct arena *a, const cJSON *now, const cJSON *wanted,
                           map_drop_cb may_drop, void *ctx)
{
    struct members have = translate_map_sorted_members(a, now),
                   want = translate_map_sorted_members(a, wanted);
    cJSON *patch = NULL;
    size_t i = 0, k = 0;

    while (i < have.n || k < want.n) {
        int order = i == have.n ? 1 : k == want.n ? -1 : by_key(&have.items[i], &want.items[k]);

        if (order < 0) {
            if (!may_drop || may_drop(ctx, json_key(have.items[i])))
                put(a, &patch, json_key(have.items[i]), json_new_null(a));
            i++;
            continue;
        }
        if (order > 0 || !json_equal(have.items[i], want.items[k]))
            put(a, &patch, json_key(want.items[k]), json_copy(a, want.items[k]));
        i += order == 0;
        k++;
    }
    return patch;
}

/* ---- metadata: only what an earlier translation of ours wrote may be dropped ---- */

struct map_owned {
    struct str *keys; /* sorted, each with its "l:" or "a:" */
    size_t n;
    struct arena *arena;
    char what;
};

static struct map_owned owned_of(struct arena *a, const cJSON *host)
{
    struct str text = json_str(json_get(json_path(host, "metadata.annotations"), ANNOTATION_OWNED));
    struct map_owned ret = {.arena = a};
    size_t n = 1;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == ',';
    ret.keys = arena_alloc(a, n * sizeof *ret.keys);
    while (text.p)
        ret.keys[ret.n++] = str_cut(&text, ',');
    qsort(ret.keys, ret.n, sizeof *ret.keys, str_order);
    return ret;
}

struct map_owned *translate_map_owned(struct arena *a, const cJSON *host)
{
    struct map_owned *ret = ARENA_NEW(a, struct map_owned);

    *ret = owned_of(a, host);
    return ret;
}

bool translate_map_is_owned(const struct map_owned *owned, char what, struct str key)
{
    struct str full = arena_printf(owned->arena, "%c:%.*s", what, STR_F(key));

    return owned->n && bsearch(&full, owned->keys, owned->n, sizeof full, str_order);
}

/* Keys this room writes only for some objects. Others under sublet.dev/ may be the syncer's own. */
static bool is_derived(struct str key)
{
    static const char *const keys[] = {LABEL_POOL, LABEL_MODE, ANNOTATION_OWNED, ANNOTATION_LABELS,
                                       ANNOTATION_ALL};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (str_eqc(key, keys[i]))
            return true;
    }
    return str_has_prefix(key, STR(LABEL_HASHED)) || str_has_prefix(key, STR(ANNOTATION_HASHED));
}

static bool was_ours(void *ctx, struct str key)
{
    struct map_owned *owned = ctx;

    return is_derived(key) || translate_map_is_owned(owned, owned->what, key);
}

cJSON *translate_map_patch_metadata(struct arena *a, const cJSON *host_now,
                                    const cJSON *host_wanted)
{
    static const struct {
        const char *map;
        char what;
    } maps[] = {{"labels", 'l'}, {"annotations", 'a'}};
    struct map_owned owned = owned_of(a, host_now);
    cJSON *ret = NULL;

    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *now = json_get(json_get(host_now, "metadata"), maps[i].map);
        const cJSON *wanted = json_get(json_get(host_wanted, "metadata"), maps[i].map);
        cJSON *patch;

        owned.what = maps[i].what;
        patch = translate_map_patch(a, now, wanted, was_ours, &owned);
        if (patch)
            put(a, &ret, str_c(maps[i].map), patch);
    }
    return ret;
}
