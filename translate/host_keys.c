/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations up: what the host's controllers wrote into a host object, under the keys
 * that policy.labels.fromHost and policy.annotations.fromHost list. Which keys of a virtual object
 * came from the host, and with which value, is on record in an annotation of it: one whose value is
 * another is the tenant's. Must never overwrite a key of the tenant's, bring up what an earlier
 * translation sent down or what names another's object, nor let what came up go down under its own
 * name: the host could not remove it again.
 *
 *   sublet.dev/host-keys: "l:example.com/zone=<hash>,a:example.com/address=<hash>" */

#include <sublet/config.h>
#include <sublet/selector.h>
#include <sublet/translate_up.h>

#include "host_keys.h"

enum {
    KEYS_MAX = 64,               /* of one object */
    VALUE_MAX = 4 << 10,         /* of an annotation */
    BYTES_MAX = 32 << 10,        /* of one object, with the record */
    ANNOTATIONS_MAX = 256 << 10, /* of one object, by the API's rules */
    ENTRY_BYTES = HASH_CHARS + 4 /* of the record, beside the key */
};

static const struct kept_map {
    const char *name;
    char what;
} MAPS[] = {{"labels", 'l'}, {"annotations", 'a'}};

/* ---- the record ---- */

struct entry {
    struct str key, hash;
    char what;
};
struct record {
    struct entry items[KEYS_MAX];
    size_t n;
};

/* The tenant can write it as well: it is no proof of anything but of what may be changed in this
 * object. */
static void record_read(const cJSON *meta, struct record *ret)
{
    struct str text = json_str(json_get(json_get(meta, "annotations"), ANNOTATION_HOST_KEYS));

    ret->n = 0;
    while (text.n && ret->n < KEYS_MAX) {
        struct str hash = str_cut(&text, ','), key = str_cut(&hash, '=');

        if (key.n > 2 && key.p[1] == ':' && hash.n == HASH_CHARS)
            ret->items[ret->n++] = (struct entry){str_from(key, 2), hash, key.p[0]};
    }
}

/* Is it what the record says, so that the tenant has not changed it since? */
static bool is_recorded(const struct record *record, char what, const cJSON *member)
{
    struct str value = json_str(member);
    char hash[HASH_CHARS + 1];

    for (size_t i = 0; json_is_string(member) && i < record->n; i++) {
        const struct entry *e = &record->items[i];

        if (e->what != what || !str_eq(e->key, json_key(member)))
            continue;
        translate_hash(1, &value, hash);
        return str_eqc(e->hash, hash);
    }
    return false;
}

/* ---- up ---- */

struct keys_up {
    struct arena *arena;
    const struct translate_tenant *tenant;
    struct record before;
    const cJSON *meta; /* virtual */
    struct buf record;
    size_t n, left; /* keys, and bytes that may still come up */
};

/* The value as the tenant may read it; STR_NULL: not at all. */
static struct str readable(const struct keys_up *up, const cJSON *host, struct str value)
{
    if (value.n > VALUE_MAX)
        return STR_NULL;
    return translate_value_up(up->arena, up->tenant, value, json_str_at(host, "metadata.name"),
                              json_str(json_get(up->meta, "namespace")),
                              json_str(json_get(up->meta, "name")));
}

static bool fits(const struct keys_up *up, char what, struct str key, struct str value)
{
    if (what == 'l' ? name_check_label_value(value) != NULL : value.n > VALUE_MAX)
        return false;
    return up->n < KEYS_MAX && !name_check_qualified(key) &&
           2 * key.n + value.n + ENTRY_BYTES <= up->left;
}

static void note(struct keys_up *up, char what, struct str key, struct str value)
{
    char hash[HASH_CHARS + 1];

    translate_hash(1, &value, hash);
    buf_printf(&up->record, "%s%c:%.*s=%s", up->n ? "," : "", what, STR_F(key), hash);
    up->left -= 2 * key.n + value.n + ENTRY_BYTES;
    up->n++;
}

/* The map without what came from the host before. */
static cJSON *own_of(const struct keys_up *up, char what, const cJSON *map)
{
    cJSON *ret = json_new_object(up->arena);

    json_each(member, json_is_object(map) ? map : NULL)
    {
        if (!is_recorded(&up->before, what, member) &&
            (what != 'a' || !str_eqc(json_key(member), ANNOTATION_HOST_KEYS)))
            object_add(up->arena, ret, json_key(member), json_copy(up->arena, member));
    }
    return ret;
}

static void add_keys(struct keys_up *up, const struct kept_map *map, const cJSON *host,
                     struct str_list listed, cJSON *to)
{
    struct members members =
        translate_map_sorted_members(up->arena, json_get(json_get(host, "metadata"), map->name));
    struct map_owned *owned = translate_map_owned(up->arena, host);

    for (size_t i = 0; i < members.n && up->n < KEYS_MAX; i++) {
        struct str key = json_key(members.items[i]), value;

        if (!json_is_string(members.items[i]) || !translate_labels_key_listed(key, listed) ||
            translate_map_is_owned(owned, map->what, key) || json_get_str(to, key) ||
            !str_eq(readable(up, host, key), key))
            continue;
        value = readable(up, host, json_str(members.items[i]));
        if (!value.p || !fits(up, map->what, key, value))
            continue;
        note(up, map->what, key, value);
        object_add(up->arena, to, key, json_new_string(up->arena, value));
    }
}

/* How much the annotations of the tenant leave. */
static size_t room(const cJSON *notes)
{
    size_t used = sizeof(ANNOTATION_HOST_KEYS);

    json_each(note, notes) used += json_key(note).n + json_str(note).n;
    used = used < ANNOTATIONS_MAX ? ANNOTATIONS_MAX - used : 0;
    return used < BYTES_MAX ? used : BYTES_MAX;
}

static bool put(struct arena *a, cJSON *meta, const char *name, cJSON *map)
{
    const cJSON *now = json_get(meta, name);

    if (!translate_map_patch(a, now, map, NULL, NULL))
        return false;
    if (json_count(map))
        json_set(a, meta, name, map);
    else
        json_remove(meta, name);
    return true;
}

bool translate_host_keys_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                            cJSON *v)
{
    cJSON *meta = json_get(v, "metadata"), *maps[COUNT(MAPS)];
    const struct str_list listed[] = {t->config->labels_up, t->config->annotations_up};
    struct keys_up up = {.arena = a, .tenant = t, .meta = meta, .record = BUF_INIT(0)};
    bool changed = false;

    if (!json_is_object(meta) || (!listed[0].n && !listed[1].n && !translate_host_keys_any(v)))
        return false;
    record_read(meta, &up.before);
    for (size_t i = 0; i < COUNT(MAPS); i++)
        maps[i] = own_of(&up, MAPS[i].what, json_get(meta, MAPS[i].name));
    up.left = room(maps[1]);
    for (size_t i = 0; i < COUNT(MAPS); i++)
        add_keys(&up, &MAPS[i], host, listed[i], maps[i]);
    if (up.n)
        json_set_str(a, maps[1], ANNOTATION_HOST_KEYS, buf_str(&up.record));
    buf_fini(&up.record);
    for (size_t i = 0; i < COUNT(MAPS); i++)
        changed |= put(a, meta, MAPS[i].name, maps[i]);
    return changed;
}

/* ---- down ---- */

bool translate_host_keys_any(const cJSON *v)
{
    return json_get(json_path(v, "metadata.annotations"), ANNOTATION_HOST_KEYS) != NULL;
}

static bool stays(const struct translate_tenant *t, char what, struct str key, bool hashed)
{
    return what == 'a' || !hashed || translate_labels_key_listed(key, t->config->labels_allow);
}

const cJSON *translate_host_keys_without(struct arena *a, const struct translate_tenant *t,
                                         const cJSON *v, bool hashed)
{
    struct record record;
    cJSON *ret, *meta;

    if (!translate_host_keys_any(v))
        return v;
    ret = json_copy(a, v);
    meta = json_get(ret, "metadata");
    record_read(meta, &record);
    for (size_t i = 0; i < COUNT(MAPS); i++) {
        cJSON *map = json_get(meta, MAPS[i].name);

        for (size_t k = 0; k < record.n; k++) {
            const struct entry *e = &record.items[k];
            const cJSON *member = json_get_str(map, e->key);

            if (e->what == MAPS[i].what && member && is_recorded(&record, e->what, member) &&
                stays(t, e->what, e->key, hashed))
                json_remove(map, arena_cstr(a, e->key));
        }
    }
    json_remove(json_get(meta, "annotations"), ANNOTATION_HOST_KEYS);
    return ret;
}
