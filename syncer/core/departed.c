/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects that were deleted on the host before the record of their existence is committed. A
 * failed transaction rolls that record back, and afterwards the object looks like one that was
 * never created: it would be created a second time. So each deletion is kept here until its record
 * is committed. Must never outlive the life it was seen in: in another one a missing host object
 * was not deleted. */

#include "core/life.h"
#include "core/run.h"
#include <sublet/store.h>

struct departed {
    LIST_ENTRY(departed) place;
    struct syncer *syncer;
    enum sync_id id;
    int64_t life;
    struct str ns, name, uid, host_uid; /* heap; uid: of the virtual object */
    bool is_pending;                    /* a commit callback is outstanding */
};

static void drop(struct departed *d)
{
    LIST_REMOVE(d, place);
    mem_free(d->ns.p);
    mem_free(d->name.p);
    mem_free(d->uid.p);
    mem_free(d->host_uid.p);
    mem_free(d);
}

static void on_committed(void *ctx, const struct err *err)
{
    struct departed *d = ctx;
    struct syncer *s = d->syncer;

    d->is_pending = false;
    if (!err)
        drop(d); /* else sync_departed_retry() */
    syncer_release(s);
}

/* Records it, unless the record is of another object or another life by now. */
static void record(struct departed *d)
{
    struct syncer *s = d->syncer;
    struct arena *a = arena_new(0);
    struct mapping m = sync_mapping_on_record(s, a, d->id, d->ns, d->name);
    bool matters = m.exists && str_eq(m.uid, d->uid) && d->life == s->life;

    if (matters && !sync_mapping_has_host(s, &m)) {
        sync_mapping_set_host(s, &m, d->host_uid);
        sync_mapping_put(s, d->id, d->ns, d->name, &m);
    }
    arena_free(a);
    if (!matters) {
        drop(d);
        return;
    }
    d->is_pending = true;
    syncer_hold(s);
    store_on_commit(s->store, on_committed, d);
}

void sync_departed_note(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                        struct str uid, const cJSON *host_object)
{
    struct departed *d = NEW(struct departed);

    *d = (struct departed){.syncer = s, .id = id, .life = s->life};
    d->ns = mem_str(ns);
    d->name = mem_str(name);
    d->uid = mem_str(uid);
    d->host_uid = mem_str(sync_uid(host_object));
    LIST_INSERT_HEAD(&s->departed, d, place);
    sync_revision_note(s, id, host_object);
    record(d);
}

void sync_departed_apply(const struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                         struct str name, struct mapping *m)
{
    const struct departed *d;

    LIST_FOREACH(d, &s->departed, place)
    {
        if (d->id == id && d->life == s->life && str_eq(d->uid, m->uid) && str_eq(d->name, name) &&
            str_eq(d->ns, ns) && !sync_mapping_has_host(s, m))
            sync_mapping_set_host(s, m, arena_str(a, d->host_uid));
    }
}

void sync_departed_retry(struct syncer *s)
{
    struct departed *d, *next;

    for (d = LIST_FIRST(&s->departed); d; d = next) {
        next = LIST_NEXT(d, place);
        if (!d->is_pending)
            record(d);
    }
}

void sync_departed_fini(struct syncer *s)
{
    while (!LIST_EMPTY(&s->departed))
        drop(LIST_FIRST(&s->departed));
}
