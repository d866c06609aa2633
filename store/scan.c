/* SPDX-License-Identifier: Apache-2.0
 * Scans over a resource in key order: the committed state of now, the latest state, and the state
 * of an older revision, which is what was not written since, and what the events since replaced. */
#include "impl.h"
#include "reading.h"

#include <assert.h>
#include <stdlib.h>

static int expired(const struct table *t, int64_t revision, struct err *err)
{
    return err_set(err, &ERR_EXPIRED, "too old resource version: %lld (%lld)", (long long)revision,
                   (long long)t->floor);
}

static int check_revision(const struct store *s, const struct table *t, int64_t revision,
                          struct err *err)
{
    if (revision > s->revision) {
        err_set(err, &ERR_TIMEOUT, "Timeout: Too large resource version: %lld, current: %lld",
                (long long)revision, (long long)s->revision);
        if (err) {
            err_cause(err, STR("ResourceVersionTooLarge"), STR_NULL,
                      STR("Too large resource version"));
            err->retry_after = 1;
        }
        return -1;
    }
    return revision < t->floor ? expired(t, revision, err) : 0;
}

struct range {
    struct str ns; /* p == NULL: all */
    struct store_object after;
    bool has_after;
};

static bool in_namespace(const struct range *r, const struct store_object *key)
{
    return !r->ns.p || str_eq(r->ns, key->ns);
}

static bool is_behind(const struct range *r, const struct store_object *key)
{
    return !r->has_after || table_key_cmp(key, &r->after) > 0;
}

static struct object_entry *first_entry(struct table *t, const struct range *r)
{
    struct object_entry *e;

    if (r->has_after && (!r->ns.p || str_cmp(r->after.ns, r->ns) >= 0))
        e = table_seek(t, r->after.ns, r->after.name);
    else
        e = table_seek(t, r->ns.p ? r->ns : STR(""), STR(""));
    while (e && !is_behind(r, table_entry_key(e)))
        e = table_next(e);
    return e && in_namespace(r, table_entry_key(e)) ? e : NULL;
}

static struct object_entry *next_entry(struct object_entry *e, const struct range *r)
{
    e = table_next(e);
    return e && in_namespace(r, table_entry_key(e)) ? e : NULL;
}

static void scan_now(struct table *t, const struct range *r, store_scan_cb each, void *ctx)
{
    for (struct object_entry *e = first_entry(t, r); e; e = next_entry(e, r)) {
        const struct store_object *o = table_entry_visible(e);
        if (o && !each(ctx, o))
            return;
    }
}

static int version_cmp(const void *a, const void *b)
{
    return table_key_cmp(*(const struct store_object *const *)a,
                         *(const struct store_object *const *)b);
}

/* What is no more, or no more what it was, but was live at the revision. */
struct past {
    const struct store_object **objects; /* in key order; borrowed */
    size_t n, cap;
};

static void past_add(struct past *p, const struct range *r, const struct store_object *o)
{
    if (!in_namespace(r, o) || !is_behind(r, o))
        return;
    GROW(p->objects, p->n, p->cap);
    p->objects[p->n++] = o;
}

/* A version was live at the revision when it is not newer, and the event that replaced it is. False
 * when one of them is on disk only, and was not recalled. */
static bool collect(struct store *s, const struct table *t, const struct range *r, int64_t revision,
                    struct past *p)
{
    const struct history *h = &s->history;
    const struct store_object **recalled = NULL;
    size_t n = 0;
    bool whole = recall_objects(s, t->id, revision, &recalled, &n);

    for (size_t i = 0; i < n; i++)
        past_add(p, r, recalled[i]);
    for (uint64_t i = history_seek(h, revision); i < h->next; i++) {
        const struct history_slot *slot = history_at(h, i);
        const struct history_pair *pair = history_pair(h, i);
        if (slot->resource != t->id || !slot->previous || slot->previous > revision)
            continue;
        if (pair)
            past_add(p, r, pair->previous);
        else if (!whole)
            return false;
    }
    if (p->n)
        qsort(p->objects, p->n, sizeof(const struct store_object *), version_cmp);
    return true;
}

/* Both are in key order, and no key is in both. */
static void scan_then(struct table *t, const struct range *r, const struct past *p,
                      int64_t revision, store_scan_cb each, void *ctx)
{
    struct object_entry *e = first_entry(t, r);
    size_t i = 0;

    while (e || i < p->n) {
        const struct store_object *o;
        if (!e || (i < p->n && table_key_cmp(table_entry_key(e), p->objects[i]) > 0)) {
            o = p->objects[i++];
        } else {
            o = table_entry_visible(e);
            if (o && o->revision > revision)
                o = NULL;
            e = next_entry(e, r);
        }
        if (o && !each(ctx, o))
            return;
    }
}

int store_scan(struct store *s, unsigned resource, struct str ns, struct str after_ns,
               struct str after_name, int64_t revision, store_scan_cb each, void *ctx,
               struct err *err)
{
    assert(s->magic == STORE_MAGIC && resource);
    struct table *t = table_get(s, resource);
    struct range range = {
        .ns = ns,
        .after = {.ns = after_ns, .name = after_name},
        .has_after = after_name.p != NULL,
    };

    if (revision && check_revision(s, t, revision, err))
        return -1;
    if (!revision || revision == s->revision) {
        scan_now(t, &range, each, ctx);
        return 0;
    }

    struct past past = {0};
    bool whole = collect(s, t, &range, revision, &past);
    if (whole)
        scan_then(t, &range, &past, revision, each, ctx);
    mem_free(past.objects);
    return whole ? 0 : expired(t, revision, err);
}

void store_scan_latest(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                       void *ctx)
{
    assert(s->magic == STORE_MAGIC && resource);
    struct range range = {.ns = ns};
    struct table *t = table_get(s, resource);

    for (struct object_entry *e = first_entry(t, &range); e; e = next_entry(e, &range)) {
        const struct store_object *o =
            e->n_pending ? table_entry_latest(e) : table_entry_visible(e);
        if (o && !each(ctx, o))
            return;
    }
}
