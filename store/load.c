/* SPDX-License-Identifier: Apache-2.0
 * Rebuilds memory from the log of versions: replaying it in order of revisions gives the live
 * objects, and the events after the floor with what was before each of them. */
#include "impl.h"

struct loading {
    struct store *store;
    int64_t floor;
};

static bool on_resource(void *ctx, unsigned id, struct str name)
{
    struct loading *l = ctx;
    struct table *t = name.n ? table_add(l->store, id, name) : NULL;

    if (t)
        t->saved = t->released = true; /* until store_resource() gives its id */
    return t != NULL;
}

/* At or below the floor a key may have one live version and no event; above it every version is an
 * event, and its type must fit what was there before. */
static bool type_fits(const struct loading *l, const struct db_version *v,
                      const struct store_object *previous)
{
    if (v->revision <= l->floor)
        return !previous && v->type != STORE_DELETED;
    return (v->type == STORE_ADDED) == !previous;
}

static bool on_version(void *ctx, const struct db_version *v)
{
    struct loading *l = ctx;
    struct store *s = l->store;

    if (v->resource >= s->n_tables || !s->tables[v->resource] || v->revision <= s->revision)
        return false;
    struct table *t = s->tables[v->resource];
    const struct store_object *o = object_new(v);
    struct object_entry *e = table_find_or_add(t, o);
    bool fits = type_fits(l, v, e->committed);
    bool gone = v->type == STORE_DELETED;
    bool readable = !s->options.readable || s->options.readable(t->name, o);
    bool shows_bad = !readable || e->quarantined;
    const struct store_object *previous = entry_commit(s, t, e, gone ? NULL : store_object_ref(o));

    if (fits && v->revision > l->floor) {
        struct store_event event = {v->type, v->revision, o, previous};
        history_add(&s->history, &event, v->at);
        t->rows++;
        /* Who watches must list again instead: no event with such a version is ever delivered. */
        if (shows_bad)
            t->floor = v->revision;
    }
    e->quarantined = !gone && !readable;
    s->quarantined += e->quarantined;
    entry_settle(t, e);
    store_object_unref(previous);
    store_object_unref(o);
    s->revision = v->revision;
    return fits;
}

static bool on_record(void *ctx, unsigned kind, struct str key, struct str value)
{
    struct loading *l = ctx;

    return record_load(l->store, kind, key, value);
}

int load(struct store *s, struct db *db, struct err *err)
{
    struct loading l = {.store = s};
    int64_t used;
    struct db_loader loader = {on_resource, on_version, on_record, &l};

    if (db_floor(db, &l.floor, err) || db_revision(db, &used, err))
        return -1;
    s->load_floor = l.floor;
    history_init(&s->history, l.floor);
    if (db_load(db, &loader, err))
        return -1;
    if (s->revision < l.floor)
        s->revision = l.floor;
    if (s->revision < used)
        s->revision = used;
    s->next = s->revision + 1;
    s->latest_objects = s->live_objects;
    s->latest_bytes = s->live_bytes;
    return 0;
}
