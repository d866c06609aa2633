/* SPDX-License-Identifier: Apache-2.0 */
/* What of this process's data the life that took over lacks: everything written or deleted after
 * the revision up to which the two have their history in common. Must never guess: where that
 * revision is not known, it says so. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME   "lacking.txt"
#define FIRST_NAMES 20

struct lacking {
    struct syncer *syncer;
    FILE *file; /* NULL: it cannot be written */
    int64_t since;
    size_t n;
    struct buf first;
    const struct resource *resource;
    unsigned storage; /* whose name is looked for */
};

static void add(struct lacking *l, const char *what, const struct store_object *o, int64_t revision)
{
    struct str plural = l->resource->group_resource;

    l->n++;
    if (l->n <= FIRST_NAMES)
        buf_printf(&l->first, "%s%.*s %.*s%s%.*s", l->n > 1 ? ", " : "", STR_F(plural),
                   STR_F(o->ns), o->ns.n ? "/" : "", STR_F(o->name));
    if (l->file)
        fprintf(l->file, "%s %.*s %.*s%s%.*s %lld\n", what, STR_F(plural), STR_F(o->ns),
                o->ns.n ? "/" : "", STR_F(o->name), (long long)revision);
}

static bool is_worth_it(const struct resource *r)
{
    return !(r->flags & RES_REVIEW) && str_eq(r->storage_version, r->api_version) &&
           !str_eqc(r->plural, "events");
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct lacking *l = ctx;

    if (o->revision > l->since)
        add(l, "written", o, o->revision);
    return true;
}

static bool on_resource(void *ctx, const struct resource *r)
{
    struct lacking *l = ctx;
    struct err err;

    l->resource = r;
    err_init(&err, NULL);
    /* The state of now is always to be had. */
    return !is_worth_it(r) || !store_scan(l->syncer->store, r->storage, STR_NULL, STR_NULL,
                                          STR_NULL, 0, on_object, l, &err);
}

static bool on_stored_as(void *ctx, const struct resource *r)
{
    struct lacking *l = ctx;

    if (is_worth_it(r) && r->storage == l->storage)
        l->resource = r;
    return !l->resource;
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static void add_deleted(struct lacking *l, const struct store_event *e)
{
    l->resource = NULL;
    l->storage = e->object->resource;
    registry_each(vapi_registry(l->syncer->api), on_stored_as, l);
    if (l->resource)
        add(l, "deleted", e->object, e->revision);
}

/* True: history goes back far enough. */
static bool add_deletions(struct lacking *l)
{
    struct store *store = l->syncer->store;
    int64_t oldest = store_oldest_revision(store);
    bool whole = l->since >= oldest, expired = false;
    const struct store_event *e;
    struct store_watch *w;
    struct err err;

    err_init(&err, NULL);
    if (store_watch_open(store, STORE_ALL_RESOURCES, whole ? l->since : oldest, on_wake, NULL, &w,
                         &err))
        return false;
    while ((e = store_watch_next(w, &expired)))
        if (e->type == STORE_DELETED)
            add_deleted(l, e);
    store_watch_close(w);
    return whole && !expired;
}

static struct str report(struct lacking *l, struct arena *a)
{
    bool whole;

    registry_each(vapi_registry(l->syncer->api), on_resource, l);
    whole = add_deletions(l);
    if (!l->n)
        return STR("it lacks nothing of this data");
    return arena_printf(
        a, "it lacks %zu objects written or deleted here after revision %lld%s%s: %.*s%s", l->n,
        (long long)l->since, whole ? "" : ", and deletions that history no longer has",
        l->file ? " (all of them in " FILE_NAME " of the data directory)" : "",
        STR_F(buf_str(&l->first)), l->n > FIRST_NAMES ? ", ..." : "");
}

/* forks: "epoch@revision" of each epoch it has its data from. */
static bool find_fork(struct str forks, struct str our_epoch, int64_t *ret)
{
    while (forks.n) {
        struct str revision = str_cut(&forks, ' '), epoch = str_cut(&revision, '@');

        if (str_eq(epoch, our_epoch))
            return str_to_i64(revision, ret);
    }
    return false;
}

struct str lacking_report(struct syncer *s, struct arena *a, struct str our_epoch, struct str fork)
{
    struct lacking l = {.syncer = s, .first = BUF_INIT(0)};
    struct str out;

    if (!find_fork(fork, our_epoch, &l.since))
        return STR("what it lacks of this data is not known: it does not stem from it directly");
    l.file = fopen(arena_printf(a, "%.*s/" FILE_NAME, STR_F(s->config->data_dir)).p, "we");
    out = report(&l, a);
    if (l.file)
        fclose(l.file);
    buf_fini(&l.first);
    return out;
}
