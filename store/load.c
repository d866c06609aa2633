/* SPDX-License-Identifier: Apache-2.0
 * Rebuilds memory from the log of versions: replaying it in order of revisions gives the live
 * objects, and the events after the floor with what was before each of them. What is damaged is put
 * into losses and hidden when all of it is known: see damage.c. */
#include "db_load.h"
#include "impl.h"
#include "reading.h"

#include <stdio.h>

struct loading {
    struct store *store;
    int64_t floor;
    struct loss_list losses;
    size_t rowless;   /* losses of which no row is left */
    size_t trailless; /* good versions of which the trail has no row */
    int64_t *bad;     /* revisions of the next */
    size_t bad_rows;  /* versions that are damaged and that the trail does not know */
    size_t cap_bad;
    size_t bad_trails; /* damaged rows of the trail that no version belongs to */
    int64_t records;   /* rows, good or not */
    bool mend;         /* the trail says something else than a good version */
};

/* The id of a resource whose name is lost must not be given to another one. */
static void reserve(struct store *s, unsigned id)
{
    char text[32];

    if (!id || id > STORE_MAX_RESOURCES || (id < s->n_tables && s->tables[id]))
        return;
    snprintf(text, sizeof(text), "(damaged %u)", id);
    struct table *t = table_add(s, id, str_c(text));
    if (t)
        t->saved = t->nameless = true;
}

static void on_resource(void *ctx, unsigned id, struct str name, bool good)
{
    struct loading *l = ctx;
    struct table *t = good ? table_add(l->store, id, name) : NULL;

    if (t)
        t->saved = t->released = true; /* until store_resource() gives its id */
    else
        reserve(l->store, id);
}

static struct table *table_of(const struct store *s, unsigned id)
{
    struct table *t = id < s->n_tables ? s->tables[id] : NULL;

    return t && !t->nameless ? t : NULL;
}

/* At or below the floor only the newest version of a key means anything; what a transaction has not
 * yet removed goes now. Above it every version is an event. */
static void replay(struct loading *l, struct table *t, const struct db_version *v)
{
    struct store *s = l->store;
    const struct store_object *o = store_object_new(v);
    struct object_entry *e = table_find_or_add(t, o);
    bool gone = v->type == STORE_DELETED;
    bool readable = !s->options.readable || s->options.readable(t->name, o);
    bool shows_bad = !readable || e->quarantined;
    const struct store_object *previous =
        table_entry_commit(s, t, e, gone ? NULL : store_object_ref(o));

    if (v->revision <= l->floor) {
        if (previous)
            history_drop_row(&s->history, previous->revision);
        if (gone)
            history_drop_row(&s->history, v->revision);
    } else if ((v->type == STORE_ADDED) == !previous) {
        struct store_event event = {v->type, v->revision, o, previous};
        struct history_slot *slot = history_add_cold(&s->history, &event, v->at);
        t->rows++;
        /* No event with such a version is ever delivered. */
        if (shows_bad)
            recall_event_lost(s, slot);
    } else {
        s->damage.history = true; /* what was before it is lost */
        if (previous)
            history_drop_row(&s->history, previous->revision);
        if (gone)
            history_drop_row(&s->history, v->revision);
    }
    e->quarantined = !gone && !readable;
    s->quarantined += e->quarantined;
    table_entry_settle(t, e);
    store_object_unref(previous);
    store_object_unref(o);
}

static void lose(struct loading *l, const struct db_version *v, const struct db_trail *t)
{
    struct table *table = v ? table_of(l->store, v->resource) : NULL;

    if (v && v->good)
        reserve(l->store, v->resource);
    if (!v)
        l->rowless++;
    damage_loss_add(&l->losses, v, t, table ? table->name : STR_NULL);
}

static void on_version(void *ctx, const struct db_version *v, const struct db_trail *t)
{
    struct loading *l = ctx;
    struct store *s = l->store;
    struct table *table = v && v->good ? table_of(s, v->resource) : NULL;
    bool known = t && t->good;

    if (table && v->revision > s->revision) {
        replay(l, table, v);
        l->trailless += !t;
        l->mend |= !known || t->key != v->key || t->type != v->type;
    } else if (known) {
        lose(l, v, t);
    } else if (v) {
        reserve(s, v->good ? v->resource : 0);
        GROW(l->bad, l->bad_rows, l->cap_bad);
        l->bad[l->bad_rows++] = v->revision;
    } else {
        l->bad_trails++;
        l->mend = true;
    }
    if (table || known) {
        int64_t revision = v && table ? v->revision : t->revision;
        s->revision = revision > s->revision ? revision : s->revision;
    }
}

static void on_record(void *ctx, unsigned kind, struct str key, struct str value, bool good)
{
    struct loading *l = ctx;

    l->records++;
    if (!good || !record_load(l->store, kind, key, value))
        damage_record(l->store, kind, key);
}

static size_t beyond(size_t n, size_t explained)
{
    return n > explained ? n - explained : 0;
}

/* A row whose revision is damaged is not where the trail says, and is counted once. */
static int settle_damage(struct loading *l, struct db *db, struct err *err)
{
    struct damage *d = &l->store->damage;

    d->unattributed = beyond(l->bad_rows, l->rowless) + beyond(l->bad_trails, l->trailless) +
                      l->store->state.untraced;
    d->missing_records =
        l->store->state.records > l->records ? (size_t)(l->store->state.records - l->records) : 0;
    d->history |= l->bad_rows || l->bad_trails || l->losses.n;
    if (damage_resolve(l->store, db, &l->losses, err))
        return -1;
    /* What is explained can go. What is not stays, and is found again by every start. */
    if (d->unattributed || d->unkept)
        return 0;
    for (size_t i = 0; i < l->bad_rows && damage_may_drop(l->store, db); i++)
        history_drop_row(&l->store->history, l->bad[i]);
    if (l->mend)
        (void)!db_mend(db, NULL); /* else the next start does */
    return 0;
}

int store_load(struct store *s, struct db *db, struct err *err)
{
    struct loading l = {.store = s};
    struct db_loader loader = {on_resource, on_version, on_record, &l};

    db_state(db, &s->state);
    l.floor = s->load_floor = s->state.floor;
    history_init(&s->history, l.floor);
    int result = db_load(db, &loader, err);
    if (s->revision < l.floor)
        s->revision = l.floor;
    if (s->revision < s->state.revision)
        s->revision = s->state.revision;
    if (!result)
        result = settle_damage(&l, db, err);
    s->damage.copies_full = db_keep_is_full(db);
    damage_losses_free(&l.losses);
    mem_free(l.bad);
    s->next = s->revision + 1;
    s->packed = s->revision;
    s->latest_objects = s->live_objects;
    s->latest_bytes = s->live_bytes;
    return result;
}
