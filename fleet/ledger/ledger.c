/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the ledger. Rows are added and never changed, which the database's triggers
 * enforce; `meta` alone is updated: until when the host was observed. Must never end a hold twice
 * or begin a pod's hold twice, whatever is repeated after a crash: unique keys decide that, not the
 * memory of a process. */
#include "ledger_rows.h"

#include <assert.h>

#include "ledger_queue.h"

#define LEDGER_MAGIC 0x6c656467u

enum row {
    ROW_HOLD,
    ROW_END,
    ROW_CAPACITY,
    ROW_PRICE,
    ROW_GAP,
    ROW_GUARANTEE,
    ROW_ACTIVITY,
    ROW_META,
    N_ROWS
};
static const char *const INSERTS[N_ROWS] = {
    [ROW_HOLD] = "INSERT INTO hold(pod_uid, tenant, cluster, ns, name, owner, node, pool, product,"
                 " resources, mode, gpu_num, gpu_den, begin_us)"
                 " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)"
                 " ON CONFLICT(pod_uid) DO NOTHING",
    [ROW_END] = "INSERT INTO hold_end SELECT id, greatest(begin_us, ?2), ?3, ?4 FROM hold"
                " WHERE pod_uid = ?1 ON CONFLICT(hold) DO NOTHING",
    [ROW_CAPACITY] = "INSERT INTO capacity(node, pool, product, from_us, total_num, total_den,"
                     " unhealthy_num, unhealthy_den, down, estimated)"
                     " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
    /* Not before the one on record, nor in what was seen: a clock may be set back. */
    [ROW_PRICE] = "INSERT INTO price(pool, from_us, num, den, currency, borrow_num, borrow_den)"
                  " SELECT ?1,"
                  " greatest(?2, coalesce((SELECT max(from_us) FROM price WHERE pool = ?1), ?2),"
                  " CASE WHEN EXISTS (SELECT 1 FROM price WHERE pool = ?1)"
                  " THEN (SELECT value FROM meta WHERE key = 'seen') ELSE ?2 END), ?3,?4,?5,?6,?7"
                  " WHERE NOT EXISTS (SELECT 1 FROM price WHERE num = ?3 AND den = ?4 AND"
                  " currency = ?5 AND borrow_num = ?6 AND borrow_den = ?7 AND id = (SELECT max(id) "
                  "FROM price WHERE pool = ?1))",
    [ROW_GAP] = "INSERT INTO gap(from_us, until_us) VALUES(?1,?2)",
    [ROW_GUARANTEE] =
        "INSERT INTO guarantee(tenant, pool, from_us, bound, num, den, granted_num, granted_den,"
        " labels)"
        " SELECT ?1, ?2, greatest(?3, (SELECT value FROM meta WHERE key = 'seen'),"
        " coalesce((SELECT from_us FROM guarantee WHERE tenant = ?1 AND pool = ?2"
        " ORDER BY id DESC LIMIT 1), ?3)),"
        " ?4, ?5, ?6, ?7, ?8, ?9",
    [ROW_ACTIVITY] = "INSERT INTO activity(hold, from_us, use) SELECT id, greatest(begin_us, ?2,"
                     " (SELECT value FROM meta WHERE key = 'seen'), coalesce((SELECT max(from_us)"
                     " FROM activity WHERE activity.hold = hold.id), 0)), ?3 FROM hold"
                     " WHERE pod_uid = ?1",
    [ROW_META] = LEDGER_PUT_META,
};

struct ledger {
    unsigned magic;
    struct ledger_db *db;
    struct ledger_query *inserts[N_ROWS];
    struct ledger_queue *queue; /* NULL: db is the database itself */
    struct ledger_remote_options remote;
    struct ledger_origin origin;
    int64_t durable_us;
};

/* --- statements --- */

static struct ledger_query *row(struct ledger *l, enum row which)
{
    l->db->ops->reset(l->inserts[which]);
    return l->inserts[which];
}

/* One that fails leaves the transaction open: the caller gives up the ledger. */
static int insert(struct ledger *l, enum row which, struct err *err)
{
    enum ledger_step step;

    assert(l->magic == LEDGER_MAGIC);
    step = ledger_step(l->inserts[which], err);
    l->db->ops->reset(l->inserts[which]);
    return step == LEDGER_FAILED ? -1 : 0;
}

static int put_meta(struct ledger *l, const char *key, int64_t value, struct err *err)
{
    struct ledger_query *q = row(l, ROW_META);

    ledger_bind_str(q, 1, str_c(key));
    ledger_bind_int(q, 2, value);
    return insert(l, ROW_META, err);
}

/* --- open and close --- */

static int prepare(struct ledger *l, struct err *err)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (l->db->ops->prepare(l->db, INSERTS[i], &l->inserts[i], err))
            return -1;
    return 0;
}

static int open_database(struct ledger *l, struct str location, int64_t now_us, uint64_t identity,
                         struct err *err)
{
    return ledger_db_open(location, LEDGER_DB_WRITE, &l->db, err) ||
                   ledger_set_up(l->db, now_us, identity, &l->origin, err) || prepare(l, err)
               ? -1
               : 0;
}

int ledger_open(struct str location, int64_t now_us, uint64_t identity, struct ledger **ret,
                struct err *err)
{
    struct ledger *l = NEW(struct ledger);

    *l = (struct ledger){.magic = LEDGER_MAGIC};
    if (open_database(l, location, now_us, identity, err)) {
        ledger_close(l);
        return -1;
    }
    l->durable_us = l->origin.seen_us;
    *ret = l;
    return 0;
}

static void on_opened(void *ctx, const struct ledger_origin *origin,
                      const struct fleet_records *records)
{
    struct ledger *l = ctx;

    l->origin = *origin;
    l->remote.opened(l->remote.ctx, records);
}

struct ledger *ledger_open_remote(const struct ledger_remote_options *options)
{
    struct ledger *l = NEW(struct ledger);
    const struct ledger_queue_options o = {.remote = *options, .opened = on_opened, .ctx = l};
    int failed;

    *l = (struct ledger){.magic = LEDGER_MAGIC, .queue = ledger_queue_new(&o), .remote = *options};
    l->db = ledger_queue_db(l->queue);
    failed = prepare(l, NULL);
    assert(!failed);
    return l;
}

void ledger_start(struct ledger *l)
{
    assert(l->magic == LEDGER_MAGIC);
    if (l->queue)
        ledger_queue_start(l->queue);
}

struct ledger *ledger_close(struct ledger *l)
{
    if (!l)
        return NULL;
    assert(l->magic == LEDGER_MAGIC);
    for (unsigned i = 0; i < N_ROWS; i++)
        ledger_query_free(l->inserts[i]);
    if (!l->queue)
        ledger_db_close(l->db);
    ledger_queue_free(l->queue);
    l->magic = 0;
    return mem_free(l);
}

/* --- records --- */

uint64_t ledger_identity(const struct ledger *l)
{
    return (uint64_t)l->origin.identity;
}

int64_t ledger_begin_us(const struct ledger *l)
{
    return l->origin.begin_us;
}

int64_t ledger_seen_us(const struct ledger *l)
{
    return l->origin.seen_us;
}

static int64_t not_before(const struct ledger *l, int64_t us)
{
    return us < l->origin.begin_us ? l->origin.begin_us : us;
}

int ledger_add_hold(struct ledger *l, const struct fleet_hold *hold, struct err *err)
{
    const struct str strings[] = {hold->pod_uid, hold->tenant,    hold->cluster, hold->ns,
                                  hold->name,    hold->owner,     hold->node,    hold->pool,
                                  hold->product, hold->resources, hold->mode};
    struct ledger_query *q = row(l, ROW_HOLD);
    int at = 1;

    for (size_t i = 0; i < COUNT(strings); i++)
        ledger_bind_str(q, at++, strings[i]);
    ledger_bind_int(q, at++, hold->gpu_eq.num);
    ledger_bind_int(q, at++, hold->gpu_eq.den);
    ledger_bind_int(q, at, not_before(l, hold->begin_us));
    return insert(l, ROW_HOLD, err);
}

int ledger_end_hold(struct ledger *l, struct str pod_uid, int64_t end_us, struct str reason,
                    bool estimated, struct err *err)
{
    struct ledger_query *q = row(l, ROW_END);

    ledger_bind_str(q, 1, pod_uid);
    ledger_bind_int(q, 2, not_before(l, end_us));
    ledger_bind_str(q, 3, reason);
    ledger_bind_int(q, 4, estimated);
    return insert(l, ROW_END, err);
}

int ledger_add_capacity(struct ledger *l, const struct fleet_capacity *c, struct err *err)
{
    struct ledger_query *q = row(l, ROW_CAPACITY);

    ledger_bind_str(q, 1, c->node);
    ledger_bind_str(q, 2, c->pool);
    ledger_bind_str(q, 3, c->product);
    ledger_bind_int(q, 4, not_before(l, c->from_us));
    ledger_bind_int(q, 5, c->total.num);
    ledger_bind_int(q, 6, c->total.den);
    ledger_bind_int(q, 7, c->unhealthy.num);
    ledger_bind_int(q, 8, c->unhealthy.den);
    ledger_bind_int(q, 9, c->down);
    ledger_bind_int(q, 10, c->estimated);
    return insert(l, ROW_CAPACITY, err);
}

int ledger_add_price(struct ledger *l, const struct fleet_price *price, struct err *err)
{
    struct ledger_query *q = row(l, ROW_PRICE);

    ledger_bind_str(q, 1, price->pool);
    ledger_bind_int(q, 2, not_before(l, price->from_us));
    ledger_bind_int(q, 3, price->price.num);
    ledger_bind_int(q, 4, price->price.den);
    ledger_bind_str(q, 5, price->currency);
    ledger_bind_int(q, 6, price->borrow.den ? price->borrow.num : 1);
    ledger_bind_int(q, 7, price->borrow.den ? price->borrow.den : 1);
    return insert(l, ROW_PRICE, err);
}

int ledger_add_guarantee(struct ledger *l, const struct fleet_guarantee *g, struct err *err)
{
    struct ledger_query *q = row(l, ROW_GUARANTEE);

    ledger_bind_str(q, 1, g->tenant);
    ledger_bind_str(q, 2, g->pool);
    ledger_bind_int(q, 3, not_before(l, g->from_us));
    ledger_bind_int(q, 4, g->bound);
    ledger_bind_int(q, 5, g->guarantee.num);
    ledger_bind_int(q, 6, g->guarantee.den);
    ledger_bind_int(q, 7, g->granted.num);
    ledger_bind_int(q, 8, g->granted.den);
    ledger_bind_str(q, 9, g->labels);
    return insert(l, ROW_GUARANTEE, err);
}

int ledger_add_activity(struct ledger *l, struct str pod_uid, int64_t from_us, enum fleet_use use,
                        struct err *err)
{
    struct ledger_query *q = row(l, ROW_ACTIVITY);

    ledger_bind_str(q, 1, pod_uid);
    ledger_bind_int(q, 2, not_before(l, from_us));
    ledger_bind_int(q, 3, use);
    return insert(l, ROW_ACTIVITY, err);
}

int ledger_add_gap(struct ledger *l, const struct fleet_gap *gap, struct err *err)
{
    struct ledger_query *q = row(l, ROW_GAP);

    ledger_bind_int(q, 1, gap->from_us);
    ledger_bind_int(q, 2, gap->until_us);
    return insert(l, ROW_GAP, err);
}

int ledger_set_seen(struct ledger *l, int64_t now_us, struct err *err)
{
    if (now_us <= l->origin.seen_us)
        return 0;
    l->origin.seen_us = now_us;
    return put_meta(l, "seen", now_us, err);
}

int ledger_commit(struct ledger *l, struct err *err)
{
    if (l->queue)
        return ledger_queue_commit(l->queue, l->origin.seen_us, err);
    if (l->db->ops->commit(l->db, err))
        return -1;
    l->durable_us = l->origin.seen_us;
    return 0;
}

/* --- what a server has of it --- */

int64_t ledger_durable_us(const struct ledger *l)
{
    return l->queue ? ledger_queue_durable_us(l->queue) : l->durable_us;
}

struct str ledger_trouble(const struct ledger *l)
{
    return l->queue ? ledger_queue_trouble(l->queue) : STR("");
}

void ledger_waiting(struct ledger *l, struct ledger_waiting *ret)
{
    *ret = (struct ledger_waiting){0};
    if (l->queue)
        ledger_queue_waiting(l->queue, ret);
}

void ledger_flush(struct ledger *l, int64_t most_ms, void (*done)(void *ctx), void *ctx)
{
    if (l->queue)
        ledger_queue_flush(l->queue, most_ms, done, ctx);
    else
        done(ctx);
}

void ledger_drop(struct ledger *l)
{
    if (l->queue)
        ledger_queue_drop(l->queue);
}
