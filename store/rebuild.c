/* SPDX-License-Identifier: Apache-2.0
 * A commit that finds the file's structure damaged is answered as failed; then the file is made
 * again of what is in memory, and the store goes on as if it had been opened anew: the history
 * begins at the present revision. Meanwhile reads are served and writes wait. Must never store what
 * was not committed: the snapshot is taken where nothing is under way. */
#include "batch.h"
#include "impl.h"
#include "op.h"
#include "upkeep.h"

#include <assert.h>

#define REBUILD_EVERY_MS 10000 /* a check of every page costs more than a write that fails */

struct rebuild {
    struct op *ops;
    size_t n_ops, cap_ops;
    int64_t *kept;
    size_t n_kept, cap_kept;
    int64_t now;
    unsigned kind; /* of the records that are being added */
    struct db_snapshot snapshot;
};

static struct op *add(struct rebuild *r, enum op_kind kind)
{
    GROW(r->ops, r->n_ops, r->cap_ops);
    struct op *op = &r->ops[r->n_ops++];
    *op = (struct op){.kind = kind};
    return op;
}

static void keep(struct rebuild *r, int64_t revision)
{
    GROW(r->kept, r->n_kept, r->cap_kept);
    r->kept[r->n_kept++] = revision;
}

static void add_entry(struct rebuild *r, struct table *t, const struct object_entry *e)
{
    if (e->quarantined) {
        keep(r, e->committed->revision);
        return;
    }
    struct op *op = add(r, OP_VERSION);
    op->type = STORE_MODIFIED; /* what it was is part of the history */
    op->version.object = store_object_ref(e->committed);
    op->version.resource = t->name;
    op->version.at = r->now;
}

static void add_table(struct rebuild *r, struct table *t)
{
    if (t->saved && !t->nameless) {
        struct op *op = add(r, OP_RESOURCE);
        op->resource.id = t->id;
        op->resource.name = t->name;
    }
    for (struct object_entry *e = table_first(t); e; e = table_next(e)) {
        if (e->committed)
            add_entry(r, t, e);
    }
}

static bool add_record(void *ctx, struct str key, struct str value)
{
    struct rebuild *r = ctx;
    struct op *op = add(r, OP_RECORD_PUT);

    op->type = r->kind;
    op->record.key = key;
    op->record.value = value;
    return true;
}

static struct rebuild *snapshot(struct store *s)
{
    struct rebuild *r = NEW(struct rebuild);

    r->now = store_now(s);
    for (size_t id = 1; id < s->n_tables; id++) {
        if (s->tables[id])
            add_table(r, s->tables[id]);
    }
    for (size_t i = 0; i < s->damage.n_lost; i++)
        keep(r, s->damage.lost[i].revision);
    size_t before = r->n_ops;
    for (r->kind = RECORD_META; r->kind <= RECORD_CONTROLLER; r->kind++)
        store_record_each(s, r->kind, STR(""), add_record, r);
    size_t n_records = r->n_ops - before;
    add(r, OP_REVISION)->revision = s->revision;
    add(r, OP_DROP)->drop.floor = s->history.floor;
    r->snapshot = (struct db_snapshot){
        .ops = r->ops,
        .n_ops = r->n_ops,
        .kept = r->kept,
        .n_kept = r->n_kept,
        .records = (int64_t)(n_records + s->damage.n_records + s->damage.missing_records),
        .untraced = s->damage.unattributed > 0};
    return r;
}

/* Rows of the history are not taken over, so it must not promise them: not after a restart
 * either. */
void rebuild_prepare(struct store *s)
{
    uint64_t now = uv_now(s->loop);

    assert(!s->open && !s->flying && !s->rebuild);
    if (now < s->rebuild_after)
        return;
    s->rebuild_after = now + REBUILD_EVERY_MS;
    retain_nothing(s);
    s->rebuild = snapshot(s);
}

void rebuild_post(struct store *s)
{
    writer_post(&s->writer, &(struct job){.kind = JOB_REBUILD, .snapshot = &s->rebuild->snapshot});
}

static void rebuild_fini(struct store *s)
{
    struct rebuild *r = s->rebuild;

    if (!r)
        return;
    for (size_t i = 0; i < r->n_ops; i++) {
        if (r->ops[i].kind == OP_VERSION)
            store_object_unref(r->ops[i].version.object);
    }
    mem_free(r->ops);
    mem_free(r->kept);
    s->rebuild = mem_free(r);
}

void rebuild_answer(struct store *s, const struct job *job)
{
    rebuild_fini(s);
    store_disk_learn(s, &job->disk);
    if (!job->result) {
        batch_drops_done(s, s->history.n_drops); /* the rows were not taken over */
        s->state.reports |= DB_REPORT_SALVAGED;
        s->state.reported_at = store_now(s) / 1000000;
        s->damage.history = true;
    }
    if (s->on_rebuilt)
        s->on_rebuilt(s->on_rebuilt_ctx, job->result ? job->err : NULL);
}

void store_on_rebuilt(struct store *s, void (*rebuilt)(void *ctx, const struct err *err), void *ctx)
{
    assert(s->magic == STORE_MAGIC);
    s->on_rebuilt = rebuilt;
    s->on_rebuilt_ctx = ctx;
}
