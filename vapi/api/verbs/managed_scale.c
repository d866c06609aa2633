/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * managedFields of an object as those of its Scale, and back: the managers of the replica count.
 * Entries keep upstream's form, including its losses: an updater's ownership gained through one
 * endpoint is not recognized by the other. Source: apimachinery
 * pkg/util/managedfields/scalehandler.go. */
#include "managed.h"

#include "../../core/meta.h"

#include <string.h>

/* The path of the count in a version. False: there is no such version; *ret NULL: it has no
 * scale. */
static bool replicas_in(const struct managed *m, struct str version, const char **ret)
{
    const struct resource *r = managed_in_version(m, version);
    const struct subresource *s = r ? resource_sub(r, STR("scale")) : NULL;

    *ret = s && s->scale ? s->scale->spec_replicas : NULL;
    return r != NULL;
}

static struct field_set *path_set(struct arena *a, const char *path)
{
    return set_of(a, (const char *const[]){path, NULL});
}

static int read_entries(const struct managed *m, const cJSON *entries, struct managers *ret,
                        struct err *err)
{
    struct str why;

    if (managers_read(m->call->arena, entries, ret, &why) == 0)
        return 0;
    return err_set(err, &ERR_UNKNOWN, "%.*s", STR_F(why));
}

static void append(struct managers *to, const struct manager *entry)
{
    to->at[to->n++] = *entry;
}

static void room_for(struct arena *a, struct managers *m, size_t n)
{
    *m = (struct managers){.at = arena_alloc(a, (n + 1) * sizeof(*m->at)), .cap = n + 1};
}

int managed_to_scale(const struct managed *m, const cJSON *object, cJSON *scale, struct err *err)
{
    struct arena *a = m->call->arena;
    struct managers parent, mine;
    cJSON *entries;

    if (read_entries(m, json_path(object, "metadata.managedFields"), &parent, err))
        return -1;
    room_for(a, &mine, parent.n);
    for (size_t i = 0; i < parent.n; i++) {
        struct manager entry = parent.at[i];
        const char *path;

        if (!replicas_in(m, entry.api_version, &path) || !path || !set_has_path(entry.set, path))
            continue;
        entry.set = path_set(a, "spec.replicas");
        entry.api_version = STR(SCALE_VERSION);
        append(&mine, &entry);
    }
    entries = managers_write(a, &mine);
    if (entries)
        json_set(a, vapi_meta_of(a, scale), "managedFields", entries);
    return 0;
}

static struct manager *find(struct managers *m, const struct manager *like)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct manager *x = &m->at[i];

        if (x->applied == like->applied && str_eq(x->name, like->name) &&
            str_eq(x->subresource, like->subresource) &&
            (x->applied || str_eq(x->api_version, like->api_version)))
            return &m->at[i];
    }
    return NULL;
}

/* An entry of the object after the scale was written: it may lose the count. */
static void keep_parent(const struct managed *m, const struct manager *entry, struct managers *mine,
                        struct managers *out)
{
    struct arena *a = m->call->arena;
    struct manager kept = *entry, *own;
    const char *path;

    if (!replicas_in(m, entry->api_version, &path))
        return;
    if (path && set_has_path(entry->set, path)) {
        own = find(mine, entry);
        if (own)
            own->set = NULL;
        else
            kept.set = set_difference(a, kept.set, path_set(a, path));
    }
    if (kept.set)
        append(out, &kept);
}

int managed_from_scale(const struct managed *m, const cJSON *scale, cJSON *object, struct err *err)
{
    struct arena *a = m->call->arena;
    cJSON *metadata = vapi_meta_of(a, object), *entries;
    struct managers parent, mine, out;
    const char *path;

    if (read_entries(m, json_get(metadata, "managedFields"), &parent, err) ||
        read_entries(m, json_path(scale, "metadata.managedFields"), &mine, err))
        return -1;
    room_for(a, &out, parent.n + mine.n);
    for (size_t i = 0; i < parent.n; i++)
        keep_parent(m, &parent.at[i], &mine, &out);
    replicas_in(m, m->requested->api_version, &path);
    for (size_t i = 0; i < mine.n; i++) {
        struct manager entry = mine.at[i], *before = find(&parent, &entry);

        if (!set_has_path(entry.set, "spec.replicas"))
            continue;
        entry.time = before ? before->time : NULL;
        entry.set = path_set(a, path);
        entry.api_version = m->requested->api_version;
        append(&out, &entry);
    }
    json_remove(metadata, "managedFields");
    entries = managers_write(a, &out);
    if (entries)
        json_set(a, metadata, "managedFields", entries);
    return 0;
}
