/* SPDX-License-Identifier: Apache-2.0 */
/* The fake host's objects: one table, one counter of revisions, an event for each change, and
 * copies of earlier states. Must never change an object without an event. */
#include "fake_host_impl.h"

#include <string.h>

/* --- chance --- */

uint64_t fake_host_random(struct fake_host *h)
{
    h->random ^= h->random >> 12;
    h->random ^= h->random << 25;
    h->random ^= h->random >> 27;
    return h->random * 2685821657736338717u;
}

bool fake_chance(struct fake_host *h, unsigned of_thousand)
{
    return (fake_host_random(h) >> 20) % 1000 < of_thousand;
}

/* --- objects --- */

cJSON *fake_parse(struct arena *a, struct str bytes)
{
    cJSON *tree = NULL;

    if (json_parse(a, bytes, &tree, NULL))
        return NULL;
    return tree;
}

bool fake_is_ours(const cJSON *tree)
{
    return json_get(json_path(tree, "metadata.labels"), "sublet.dev/cluster") != NULL;
}

struct object **fake_find(struct fake_host *h, const char *plural, const char *name)
{
    struct object **at = &h->objects;

    while (*at && (strcmp((*at)->plural, plural) != 0 || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static void record(struct fake_host *h, const char *type, const char *plural, struct str bytes,
                   bool ours)
{
    GROW(h->events, h->n_events, h->capacity);
    h->events[h->n_events++] =
        (struct event){type, mem_strdup(str_c(plural)), mem_str(bytes), h->revision, ours};
}

static struct str stamp(struct fake_host *h, struct arena *a, cJSON *tree)
{
    struct buf b = BUF_INIT(0);
    struct str bytes;

    h->revision++;
    json_set_str(a, json_get(tree, "metadata"), "resourceVersion",
                 arena_printf(a, "%llu", (unsigned long long)h->revision));
    json_print(&b, tree);
    bytes = mem_str(buf_str(&b));
    buf_fini(&b);
    return bytes;
}

/* Watches with a selector that it matches no more see it deleted, as it was before, at the revision
 * of the change (apiserver/pkg/storage/cacher). */
static void record_left(struct fake_host *h, struct arena *a, const char *plural, struct str before)
{
    cJSON *tree = fake_parse(a, before);

    json_set_str(a, json_get(tree, "metadata"), "resourceVersion",
                 arena_printf(a, "%llu", (unsigned long long)h->revision));
    record(h, "DELETED", plural, json_text(a, tree), true);
    h->events[h->n_events - 1].selected = true;
}

void fake_store(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree)
{
    const char *name = arena_cstr(a, json_str_at(tree, "metadata.name"));
    struct object **at = fake_find(h, plural, name), *o = *at;
    const char *type = o ? "MODIFIED" : "ADDED";
    struct str before;
    bool left;

    if (!o) {
        o = NEW(struct object);
        o->plural = mem_strdup(str_c(plural));
        o->name = mem_strdup(str_c(name));
        *at = o;
    }
    left = o->bytes.n && fake_is_ours(fake_parse(a, o->bytes)) && !fake_is_ours(tree);
    before = o->bytes;
    o->bytes = stamp(h, a, tree);
    o->revision = h->revision;
    record(h, type, plural, o->bytes, fake_is_ours(tree));
    if (left)
        record_left(h, a, plural, before);
    mem_free(before.p);
}

static void object_free(struct object *o)
{
    mem_free(o->plural);
    mem_free(o->name);
    mem_free(o->bytes.p);
    mem_free(o);
}

void fake_drop(struct fake_host *h, struct arena *a, struct object **at)
{
    struct object *o = *at;
    cJSON *tree = fake_parse(a, o->bytes);
    struct str bytes = stamp(h, a, tree);

    record(h, "DELETED", o->plural, bytes, fake_is_ours(tree));
    mem_free(bytes.p);
    *at = o->next;
    object_free(o);
}

/* So long it may take, on a busy machine, until what was sent is read and its record committed. */
enum { RECORD_MS = 2000 };

static struct created *account_of(struct fake_host *h, struct str uid)
{
    struct map_entry *e = map_get(&h->created, uid);

    return e ? CONTAINER(e, struct created, entry) : NULL;
}

static struct str virtual_uid(const cJSON *tree)
{
    return json_str(json_get(json_path(tree, "metadata.annotations"), "sublet.dev/uid"));
}

void fake_count_created(struct fake_host *h, const cJSON *tree)
{
    struct str uid = virtual_uid(tree);
    struct created *c = account_of(h, uid);

    if (!uid.n)
        return;
    if (!c) {
        c = NEW(struct created);
        c->uid = mem_strdup(uid);
        map_put(&h->created, &c->entry, str_c(c->uid));
    }
    c->doubled += c->told_ms > 0;
}

/* These bytes are on their way to the syncer. */
void fake_note_told(struct fake_host *h, struct arena *a, const char *plural, struct str bytes)
{
    struct created *c;

    if (strcmp(plural, "pods") != 0)
        return;
    c = account_of(h, virtual_uid(fake_parse(a, bytes)));
    if (c && !c->told_ms)
        c->told_ms = uv_now(h->loop);
}

static void forget_recent(void *ctx, struct map_entry *e)
{
    const struct fake_host *h = ctx;
    struct created *c = CONTAINER(e, struct created, entry);

    if (c->told_ms + RECORD_MS > uv_now(h->loop))
        c->told_ms = 0;
}

void fake_forget_told(struct fake_host *h)
{
    map_each(&h->created, forget_recent, h);
}

unsigned fake_host_doubled(struct fake_host *h, struct str uid)
{
    struct created *c = account_of(h, uid);

    return c ? c->doubled : 0;
}

/* DefaultStorageClass: a class marked as the default; there is one at most here. */
static void fill_class(struct fake_host *h, struct arena *a, cJSON *spec)
{
    for (struct object *o = h->objects; o && !json_get(spec, "storageClassName"); o = o->next) {
        if (!strcmp(o->plural, "storageclasses") &&
            str_contains(o->bytes, STR("is-default-class\":\"true\"")))
            json_set_str(a, spec, "storageClassName", str_c(o->name));
    }
}

void fake_fill(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree)
{
    cJSON *metadata = json_ensure_object(a, tree, "metadata");
    cJSON *spec = json_ensure_object(a, tree, "spec");

    h->uids++;
    json_set_str(a, metadata, "uid", arena_printf(a, "host-uid-%u", h->uids));
    json_set_str(a, metadata, "creationTimestamp", STR("2026-01-01T00:00:00Z"));
    if (!strcmp(plural, "pods"))
        json_set_str(a, json_ensure_object(a, tree, "status"), "phase", STR("Pending"));
    if (!strcmp(plural, "persistentvolumeclaims"))
        fill_class(h, a, spec);
    if (!strcmp(plural, "services") && !json_get(spec, "clusterIP")) {
        struct str ip = arena_printf(a, "10.0.%u.%u", h->uids / 250, h->uids % 250 + 1);

        json_set_str(a, spec, "clusterIP", ip);
        json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    }
    if (str_eqc(json_str_at(tree, "spec.type"), "NodePort")) {
        json_each(port, json_get(spec, "ports"))
            json_set_i64(a, port, "nodePort", 30000 + h->uids % 2000);
    }
}

static void created_free(void *ctx, struct map_entry *e)
{
    struct created *c = CONTAINER(e, struct created, entry);
    struct fake_host *h = ctx;

    map_remove(&h->created, e);
    mem_free(c->uid);
    mem_free(c);
}

static void objects_free(struct object *o)
{
    while (o) {
        struct object *next = o->next;

        object_free(o);
        o = next;
    }
}

/* --- earlier states --- */

struct fake_host_image {
    struct object *objects;
    uint64_t revision;
};

struct fake_host_image *fake_host_image(struct fake_host *h)
{
    struct fake_host_image *image = NEW(struct fake_host_image);
    struct object **at = &image->objects;

    image->revision = h->revision;
    for (const struct object *o = h->objects; o; o = o->next) {
        *at = NEW(struct object);
        **at = (struct object){NULL, mem_strdup(str_c(o->plural)), mem_strdup(str_c(o->name)),
                               mem_str(o->bytes), o->revision};
        at = &(*at)->next;
    }
    return image;
}

void fake_objects_roll_back(struct fake_host *h, struct fake_host_image *image)
{
    objects_free(h->objects);
    h->objects = image->objects;
    h->revision = image->revision;
    mem_free(image);
    while (h->n_events && h->events[h->n_events - 1].revision > h->revision) {
        struct event *e = &h->events[--h->n_events];

        mem_free(e->plural);
        mem_free(e->bytes.p);
    }
    map_each(&h->created, created_free, h);
}

void fake_objects_fini(struct fake_host *h)
{
    objects_free(h->objects);
    for (size_t i = 0; i < h->n_events; i++) {
        mem_free(h->events[i].plural);
        mem_free(h->events[i].bytes.p);
    }
    mem_free(h->events);
    map_each(&h->created, created_free, h);
}
