/* SPDX-License-Identifier: Apache-2.0
 * Scans over a resource in key order: the committed state of now, the latest state, and the state
 * of an older revision, which is the committed state with the events since then undone. */
#include "impl.h"

#include <assert.h>
#include <stdlib.h>

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
    if (revision < t->floor)
        return err_set(err, &ERR_EXPIRED, "too old resource version: %lld (%lld)",
                       (long long)revision, (long long)t->floor);
    return 0;
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
    return !r->has_after || object_key_cmp(key, &r->after) > 0;
}

static struct object_entry *first_entry(struct table *t, const struct range *r)
{
    struct object_entry *e;

    if (r->has_after && (!r->ns.p || str_cmp(r->after.ns, r->ns) >= 0))
        e = table_seek(t, r->after.ns, r->after.name);
    else
        e = table_seek(t, r->ns.p ? r->ns : STR(""), STR(""));
    while (e && !is_behind(r, e->key))
        e = table_next(e);
    return e && in_namespace(r, e->key) ? e : NULL;
}

static struct object_entry *next_entry(struct object_entry *e, const struct range *r)
{
    e = table_next(e);
    return e && in_namespace(r, e->key) ? e : NULL;
}

static void scan_now(struct table *t, const struct range *r, store_scan_cb each, void *ctx)
{
    for (struct object_entry *e = first_entry(t, r); e; e = next_entry(e, r)) {
        const struct store_object *o = entry_visible(e);
        if (o && !each(ctx, o))
            return;
    }
}

static int event_cmp(const void *a, const void *b)
{
    const struct store_event *x = *(const struct store_event *const *)a;
    const struct store_event *y = *(const struct store_event *const *)b;
    int c = object_key_cmp(x->object, y->object);

    return c ? c : (x->revision > y->revision) - (x->revision < y->revision);
}

/* The first event after the revision for every key in range, in key order: its `previous` is what
 * the key was. *ret is for the caller to free. */
static size_t collect_undo(struct store *s, const struct table *t, const struct range *r,
                           int64_t revision, const struct store_event ***ret)
{
    const struct store_event **list = NULL;
    size_t n = 0, cap = 0, kept = 0;

    for (uint64_t i = history_seek(&s->history, revision); i < s->history.next; i++) {
        const struct store_event *e = &history_at(&s->history, i)->event;
        if (e->object->resource != t->id || !in_namespace(r, e->object) || !is_behind(r, e->object))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 64;
            list = mem_realloc(list, cap * sizeof(const struct store_event *));
        }
        list[n++] = e;
    }
    if (n)
        qsort(list, n, sizeof(const struct store_event *), event_cmp);
    for (size_t i = 0; i < n; i++) {
        if (!kept || object_key_cmp(list[kept - 1]->object, list[i]->object))
            list[kept++] = list[i];
    }
    *ret = list;
    return kept;
}

static void scan_then(struct table *t, const struct range *r, const struct store_event **undo,
                      size_t n, store_scan_cb each, void *ctx)
{
    struct object_entry *e = first_entry(t, r);
    size_t i = 0;

    while (e || i < n) {
        const struct store_object *o;
        int c = !e ? 1 : i == n ? -1 : object_key_cmp(e->key, undo[i]->object);
        o = c < 0 ? entry_visible(e) : undo[i]->previous;
        if (c <= 0)
            e = next_entry(e, r);
        if (c >= 0)
            i++;
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

    const struct store_event **undo;
    size_t n = collect_undo(s, t, &range, revision, &undo);
    scan_then(t, &range, undo, n, each, ctx);
    mem_free(undo);
    return 0;
}

void store_scan_latest(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                       void *ctx)
{
    assert(s->magic == STORE_MAGIC && resource);
    struct range range = {.ns = ns};
    struct table *t = table_get(s, resource);

    for (struct object_entry *e = first_entry(t, &range); e; e = next_entry(e, &range)) {
        const struct store_object *o = e->n_pending ? entry_latest(e) : entry_visible(e);
        if (o && !each(ctx, o))
            return;
    }
}
