/* SPDX-License-Identifier: Apache-2.0
 * From rows that cannot be read to keys that must not be served. The trail says of every version
 * which key it belongs to; when the newest version of a key is lost, older ones of it are stale and
 * hidden as well. Of a key that cannot be named only its hash is known: a caller that looks up that
 * very name finds it in quarantine. Absence must never be an effect of damage. */
#include "db_load.h"
#include "db_sum.h"
#include "impl.h"

#include <assert.h>
#include <stdlib.h>

static bool names_its_key(const struct db_version *v, const struct db_trail *t, struct str resource)
{
    return v && resource.n && v->name.n && db_key(resource, v->ns, v->name) == t->key;
}

void damage_loss_add(struct loss_list *l, const struct db_version *v, const struct db_trail *t,
                     struct str resource)
{
    GROW(l->items, l->n, l->cap);
    struct loss *loss = &l->items[l->n++];
    *loss = (struct loss){.revision = t->revision, .key = t->key, .type = t->type};
    if (names_its_key(v, t, resource)) {
        loss->resource = v->resource;
        loss->ns = mem_str(v->ns);
        loss->name = mem_str(v->name);
    }
}

void damage_losses_free(struct loss_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        str_drop(&l->items[i].ns);
        str_drop(&l->items[i].name);
    }
    mem_free(l->items);
    *l = (struct loss_list){0};
}

static int loss_cmp(const void *a, const void *b)
{
    const struct loss *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->revision > y->revision) - (x->revision < y->revision);
}

static int key_cmp(const void *a, const void *b)
{
    const struct lost_key *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* The newest loss of a key, NULL when there is none. */
static struct loss *newest_of(const struct loss_list *l, int64_t key)
{
    size_t low = 0, high = l->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->items[middle].key > key)
            high = middle;
        else
            low = middle + 1;
    }
    return low && l->items[low - 1].key == key ? &l->items[low - 1] : NULL;
}

static void on_trail(void *ctx, const struct db_trail *t)
{
    struct loss *loss = newest_of(ctx, t->key);

    if (loss && t->revision > loss->revision)
        loss->over = true;
}

bool damage_may_drop(struct store *s, struct db *db)
{
    struct damage *d = &s->damage;

    if (!d->unkept && !d->kept) {
        d->kept = db_keep_rows(db, true);
        d->unkept = !d->kept;
    }
    return !d->unkept;
}

/* The row is void. Without a copy of it the next start removes it. */
static void drop_row(struct store *s, struct db *db, int64_t revision)
{
    if (damage_may_drop(s, db))
        history_drop_row(&s->history, revision);
}

static void quarantine(struct store *s, struct db *db, struct table *t, struct object_entry *e,
                       const struct store_object *key, int64_t revision)
{
    const struct store_object *o = store_object_new(&(struct db_version){
        .resource = t->id, .revision = revision, .ns = key->ns, .name = key->name});
    const struct store_object *before = table_entry_commit(s, t, e, o);

    if (before)
        drop_row(s, db, before->revision);
    store_object_unref(before);
    e->quarantined = true;
    s->quarantined++;
}

static struct object_entry *quarantine_name(struct store *s, struct db *db, struct table *t,
                                            struct str ns, struct str name, int64_t revision)
{
    struct store_object key = {.ns = ns, .name = name};
    struct object_entry *e = table_find_or_add(t, &key);

    quarantine(s, db, t, e, &key, revision);
    return e;
}

static void apply_to_entry(struct store *s, struct db *db, struct table *t, struct object_entry *e,
                           const struct loss *loss)
{
    if (loss->type != STORE_DELETED) {
        quarantine(s, db, t, e, table_entry_key(e), loss->revision);
        return;
    }
    const struct store_object *before = table_entry_commit(s, t, e, NULL);

    drop_row(s, db, before->revision);
    drop_row(s, db, loss->revision);
    table_entry_settle(t, e);
    store_object_unref(before);
}

static void apply_to_entries(struct store *s, struct db *db, const struct loss_list *l)
{
    struct sum *sum = db_sum_new();

    for (size_t id = 1; id < s->n_tables; id++) {
        struct table *t = s->tables[id];
        struct object_entry *next, *e = t ? table_seek(t, STR(""), STR("")) : NULL;
        for (; e; e = next) {
            next = table_next(e);
            struct loss *loss = newest_of(
                l, db_sum_key(sum, t->name, table_entry_key(e)->ns, table_entry_key(e)->name));
            if (!loss || loss->over)
                continue;
            loss->over = true;
            apply_to_entry(s, db, t, e, loss);
        }
    }
    db_sum_free(sum);
}

static void add_lost_key(struct store *s, const struct loss *loss)
{
    struct damage *d = &s->damage;

    GROW(d->lost, d->n_lost, d->cap_lost);
    d->lost[d->n_lost++] = (struct lost_key){loss->key, loss->revision};
}

static void forget_history(struct store *s)
{
    while (history_count(&s->history))
        history_drop_first(&s->history);
    s->load_floor = s->revision;
    s->history.floor = s->revision;
    for (size_t id = 1; id < s->n_tables; id++) {
        if (s->tables[id])
            s->tables[id]->floor = s->revision;
    }
    s->damage.history = true;
}

int damage_resolve(struct store *s, struct db *db, struct loss_list *l, struct err *err)
{
    if (!l->n && !s->damage.history)
        return 0;
    if (l->n) {
        s->damage.unkept = !db_keep_rows(db, false);
        qsort(l->items, l->n, sizeof(*l->items), loss_cmp);
    }
    if (s->revision < 1)
        s->revision = 1;
    forget_history(s);
    if (db_trail(db, on_trail, l, err))
        return -1;
    for (size_t i = 0; i < l->n; i++) {
        struct loss *loss = &l->items[i];
        if (newest_of(l, loss->key) == loss && !loss->over)
            continue;
        loss->over = true;
        s->damage.superseded++;
        drop_row(s, db, loss->revision);
    }
    apply_to_entries(s, db, l);
    for (size_t i = 0; i < l->n; i++) {
        struct loss *loss = &l->items[i];
        if (loss->over)
            continue;
        if (loss->type == STORE_DELETED)
            drop_row(s, db, loss->revision);
        else if (loss->resource)
            quarantine_name(s, db, table_get(s, loss->resource), loss->ns, loss->name,
                            loss->revision);
        else
            add_lost_key(s, loss);
    }
    return 0;
}

void damage_fini(struct store *s)
{
    struct damage *d = &s->damage;

    for (size_t i = 0; i < d->n_records; i++)
        str_drop(&d->records[i].key);
    mem_free(d->records);
    mem_free(d->lost);
    *d = (struct damage){0};
}

struct object_entry *damage_entry(struct store *s, struct table *t, struct str ns, struct str name)
{
    struct object_entry *e = table_find(t, ns, name);
    struct damage *d = &s->damage;

    if (e || !d->n_lost)
        return e;
    struct lost_key probe = {.key = db_key(t->name, ns, name)};
    struct lost_key *lost = bsearch(&probe, d->lost, d->n_lost, sizeof(probe), key_cmp);
    if (!lost)
        return NULL;
    /* No version of it was loaded, so none is dropped: that would need the file. */
    e = quarantine_name(s, NULL, t, ns, name, lost->revision);
    s->latest_objects++; /* loading is over: both counts are kept */
    size_t at = (size_t)(lost - d->lost);
    s->latest_bytes += store_object_size(e->committed);
    for (d->n_lost--; at < d->n_lost; at++)
        d->lost[at] = d->lost[at + 1];
    return e;
}

/* ---- records ---- */

void damage_record(struct store *s, unsigned kind, struct str key)
{
    struct damage *d = &s->damage;

    GROW(d->records, d->n_records, d->cap_records);
    d->records[d->n_records++] = (struct damaged_record){kind, mem_str(key)};
}

bool damage_record_over(struct store *s, unsigned kind, struct str key)
{
    struct damage *d = &s->damage;

    for (size_t i = 0; i < d->n_records; i++) {
        if (d->records[i].kind != kind || !str_eq(d->records[i].key, key))
            continue;
        str_drop(&d->records[i].key);
        d->records[i] = d->records[--d->n_records];
        return true;
    }
    return false;
}

bool store_record_damaged(struct store *s, enum store_record kind, struct str key)
{
    struct str value;

    assert(s->magic == STORE_MAGIC);
    return (s->damage.n_records || s->damage.missing_records) &&
           !store_record_get(s, kind, key, &value);
}

/* ---- for callers ---- */

void store_damage(const struct store *s, struct store_damage *ret)
{
    const struct damage *d = &s->damage;

    assert(s->magic == STORE_MAGIC);
    *ret = (struct store_damage){
        .objects = s->quarantined,
        .nameless = d->n_lost,
        .superseded = d->superseded,
        .records = d->n_records + d->missing_records,
        .unattributed = d->unattributed,
        .history = d->history,
        .salvaged = s->state.reports & DB_REPORT_SALVAGED,
        .log = s->state.reports & DB_REPORT_LOG,
        .log_missing = s->state.reports & DB_REPORT_LOG_MISSING,
        .own_account = s->state.reports & DB_REPORT_ACCOUNT,
        .copies_full = d->copies_full,
        .reported_at = s->state.reported_at,
    };
}

bool store_is_damaged(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->damage.unattributed > 0;
}

bool store_is_absent(struct store *s, unsigned resource, struct str ns, struct str name)
{
    return !s->state.behind && !store_is_damaged(s) && !store_get(s, resource, ns, name) &&
           !store_quarantined(s, resource, ns, name);
}
