/* SPDX-License-Identifier: Apache-2.0 */
/* Writes of this process that the life which took over lacks: every object written or deleted after
 * the last revision that both have in common. Must never guess: where that revision is not known,
 * or the history has no deletions after it any more, the report says so. */

#include "core/leader.h"
#include "core/turns.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LACKING_MAGIC 0x6c61636bu
#define FILE_NAME     "lacking.txt"
#define FIRST_NAMES   20

struct lacking {
    unsigned magic;
    struct syncer *syncer;
    FILE *file;  /* NULL: it could not be created */
    bool listed; /* all of it is there */
    int64_t since, until;
    int64_t possible; /* up to this revision the other life may have it too */
    bool committing;  /* the answer of store_on_commit() is outstanding */
    int64_t unknown;  /* deletions up to this revision may be missing in the history; 0: none */
    struct store_watch *watch;
    void (*done)(struct syncer *s, struct str report);
    size_t n;
    struct buf first;
    const struct resource *resource;
    unsigned storage; /* for on_stored_as(): the resource number to find */
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

static bool is_reported(const struct resource *r)
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
    return !is_reported(r) || !store_scan(l->syncer->store, r->storage, STR_NULL, STR_NULL,
                                          STR_NULL, 0, on_object, l, &err);
}

static bool on_stored_as(void *ctx, const struct resource *r)
{
    struct lacking *l = ctx;

    if (is_reported(r) && r->storage == l->storage)
        l->resource = r;
    return !l->resource;
}

static void add_deleted(struct lacking *l, const struct store_event *e)
{
    l->resource = NULL;
    l->storage = e->object->resource;
    registry_each(vapi_registry(l->syncer->api), on_stored_as, l);
    if (l->resource)
        add(l, "deleted", e->object, e->revision);
}

static struct str report(struct lacking *l, struct arena *a)
{
    if (!l->n && !l->unknown)
        return STR("it lacks nothing of this data");
    if (!l->n)
        return arena_printf(a,
                            "it may lack deletions up to revision %lld, which history no longer "
                            "has, and nothing else",
                            (long long)l->unknown);
    return arena_printf(a,
                        "it %s %zu objects written or deleted here after revision %lld%s%s: %.*s%s",
                        l->since < l->possible ? "may lack" : "lacks", l->n, (long long)l->since,
                        l->unknown ? ", and deletions that history no longer has" : "",
                        l->listed ? " (all of them in " FILE_NAME " of the data directory)" : "",
                        STR_F(buf_str(&l->first)), l->n > FIRST_NAMES ? ", ..." : "");
}

/* A list that the disk did not take as a whole is none. */
static void finish_file(struct lacking *l)
{
    if (!l->file)
        return;
    if (l->unknown)
        fprintf(l->file, "unknown deletions up to revision %lld\n", (long long)l->unknown);
    bool failed = ferror(l->file) != 0;
    l->listed = !fclose(l->file) && !failed;
    l->file = NULL;
}

static void finish(struct lacking *l)
{
    void (*done)(struct syncer *s, struct str report) = l->done;
    struct syncer *s = l->syncer;
    struct arena *a = arena_new(0);

    finish_file(l);
    struct str text = report(l, a);

    sync_lacking_stop(s);
    done(s, text);
    arena_free(a);
}

static void on_wake(void *ctx)
{
    struct lacking *l = ctx;
    bool expired = false;
    const struct store_event *e;

    assert(l->magic == LACKING_MAGIC);
    while ((e = store_watch_next(l->watch, &expired)))
        if (e->type == STORE_DELETED)
            add_deleted(l, e);
    if (expired)
        l->unknown = l->until;
    if (expired || store_watch_position(l->watch) >= l->until)
        finish(l);
}

static void scan(struct lacking *l)
{
    struct store *store = l->syncer->store;
    int64_t oldest = store_oldest_revision(store);
    struct err err;

    registry_each(vapi_registry(l->syncer->api), on_resource, l);
    err_init(&err, NULL);
    l->until = store_revision(store);
    l->since = l->since < l->until ? l->since : l->until;
    l->unknown = l->since < oldest ? oldest : 0;
    int failed = store_watch_open(store, STORE_ALL_RESOURCES, l->unknown ? oldest : l->since,
                                  on_wake, l, &l->watch, &err);
    assert(!failed); /* the oldest revision is never compacted */
    on_wake(l);
}

static void free_one(struct lacking *l)
{
    l->magic = 0;
    mem_free(l);
}

/* What was written before this process lost the Lease is answered, and belongs to the report. */
static void on_committed(void *ctx, const struct err *err)
{
    struct lacking *l = ctx;

    (void)err; /* what failed is not there */
    assert(l->magic == LACKING_MAGIC);
    l->committing = false;
    if (l->syncer)
        scan(l);
    else
        free_one(l);
}

static bool find_common(struct lacking *l, struct arena *a, struct str our_epoch, struct str branch)
{
    const struct turns *ours = sync_lease_turns(l->syncer->lease);
    struct turns none = {.n = 0};

    if (!str_eq(ours->epoch, our_epoch))
        ours = &none;
    return sync_turns_common(ours, a, branch, &l->since, &l->possible);
}

/* forks: "epoch@branch" of each epoch that a life descends from, the latest first. */
static bool find_branch(struct str forks, struct str epoch, struct str *ret)
{
    while (forks.n) {
        *ret = str_cut(&forks, ' ');
        if (str_eq(str_cut(ret, '@'), epoch))
            return true;
    }
    return false;
}

/* The other life descends from ours; or both descend from an earlier one, as two restores of one
 * backup do: then all of our own life is lacking there. */
static bool find_fork(struct lacking *l, struct arena *a, struct str forks, struct str our_epoch)
{
    struct str own = sync_lease_fork(l->syncer->lease), theirs;

    if (find_branch(forks, our_epoch, &theirs))
        return find_common(l, a, our_epoch, theirs);
    while (own.n) {
        struct str ours = str_cut(&own, ' '), epoch = str_cut(&ours, '@');

        if (find_branch(forks, epoch, &theirs))
            return sync_turns_parted(a, ours, theirs, &l->since, &l->possible);
    }
    return false;
}

void sync_lacking_start(struct syncer *s, struct str our_epoch, struct str fork,
                        void (*done)(struct syncer *s, struct str report))
{
    struct arena *a = arena_new(0);
    struct lacking *l = NEW(struct lacking);

    assert(!s->lacking);
    *l = (struct lacking){.magic = LACKING_MAGIC, .syncer = s, .done = done, .first = BUF_INIT(0)};
    s->lacking = l;
    if (find_fork(l, a, fork, our_epoch)) {
        l->file = fopen(arena_printf(a, "%.*s/" FILE_NAME, STR_F(s->config->data_dir)).p, "we");
        l->committing = true;
        store_on_commit(s->store, on_committed, l);
    } else {
        sync_lacking_stop(s);
        done(s, STR("what it lacks of this data is not known: nothing that both descend from is on "
                    "record"));
    }
    arena_free(a);
}

void sync_lacking_stop(struct syncer *s)
{
    struct lacking *l = s->lacking;

    if (!l)
        return;
    assert(l->magic == LACKING_MAGIC);
    s->lacking = NULL;
    l->syncer = NULL;
    store_watch_close(l->watch);
    if (l->file)
        fclose(l->file);
    buf_fini(&l->first);
    if (!l->committing)
        free_one(l);
}
