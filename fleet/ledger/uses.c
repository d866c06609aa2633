/* SPDX-License-Identifier: Apache-2.0 */
/* From the verdicts of telemetry to records of the ledger. Of a pod that an earlier process saw,
 * nothing is known from when the host was observed last: that is on record before anything else.
 * Must not write more than the bound of its header, whatever exporters say, nor keep a verdict
 * that no exporter confirms. */
#include "uses.h"

#include <assert.h>

#include <sublet/hash.h>

#define USES_MAGIC 0x75736573u

struct pod {
    struct map_entry by_uid;
    struct str uid; /* on the heap */
    enum fleet_use last, now;
    int64_t next_us; /* no record but of silence before */
    bool seen;
};
struct uses {
    unsigned magic;
    struct ledger *ledger;
    struct map pods;
};

static struct pod *pod_of(struct uses *u, struct str uid)
{
    struct map_entry *e = map_get(&u->pods, uid);
    struct pod *p;

    if (e)
        return CONTAINER(e, struct pod, by_uid);
    p = NEW(struct pod);
    *p = (struct pod){.uid = mem_str(uid)};
    map_put(&u->pods, &p->by_uid, p->uid);
    return p;
}

static void pod_free(struct uses *u, struct pod *p)
{
    map_remove(&u->pods, &p->by_uid);
    mem_free(p->uid.p);
    mem_free(p);
}

static void not_seen(void *ctx, struct map_entry *e)
{
    struct pod *p = CONTAINER(e, struct pod, by_uid);

    (void)ctx;
    p->seen = false;
    p->now = FLEET_USE_UNKNOWN;
}

void uses_begin(struct uses *u)
{
    assert(u->magic == USES_MAGIC);
    map_each(&u->pods, not_seen, NULL);
}

void uses_pod(struct uses *u, struct str uid, enum activity_state state)
{
    static const enum fleet_use uses[N_ACTIVITY_STATES] = {
        [ACTIVITY_BUSY] = FLEET_USE_BUSY,
        [ACTIVITY_WARM] = FLEET_USE_WARM,
        [ACTIVITY_UNUSED] = FLEET_USE_UNUSED,
        [ACTIVITY_UNKNOWN] = FLEET_USE_UNKNOWN,
    };
    struct pod *p = pod_of(u, uid);

    p->seen = true;
    p->now = uses[state];
}

struct ending {
    struct uses *u;
    int64_t now_us;
    struct err *err;
    int result;
};

static void end_pod(void *ctx, struct map_entry *e)
{
    struct ending *x = ctx;
    struct pod *p = CONTAINER(e, struct pod, by_uid);
    bool may = p->now == FLEET_USE_UNKNOWN || x->now_us >= p->next_us ||
               x->now_us < p->next_us - USES_SPACING_US; /* a clock that was set back */

    if (x->result)
        return;
    if (p->now != p->last && may) {
        x->result = ledger_add_activity(x->u->ledger, p->uid, x->now_us, p->now, x->err);
        if (p->now != FLEET_USE_UNKNOWN)
            p->next_us = x->now_us + USES_SPACING_US;
        p->last = p->now;
    }
    if (!p->seen)
        pod_free(x->u, p);
}

int uses_end(struct uses *u, int64_t now_us, struct err *err)
{
    struct ending x = {u, now_us, err, 0};

    assert(u->magic == USES_MAGIC);
    map_each(&u->pods, end_pod, &x);
    return x.result;
}

int uses_forget(struct uses *u, struct err *err)
{
    uses_begin(u);
    return uses_end(u, ledger_seen_us(u->ledger), err);
}

struct uses *uses_new(struct ledger *ledger, const struct fleet_records *records)
{
    struct uses *u = NEW(struct uses);

    *u = (struct uses){.magic = USES_MAGIC, .ledger = ledger};
    for (size_t i = 0; i < records->n_holds; i++) {
        const struct fleet_hold *h = &records->holds[i];

        if (h->end_us == FLEET_OPEN && h->n_activities)
            pod_of(u, h->pod_uid)->last =
                records->activities[h->activity + h->n_activities - 1].use;
    }
    return u;
}

static void free_pod(void *ctx, struct map_entry *e)
{
    pod_free(ctx, CONTAINER(e, struct pod, by_uid));
}

struct uses *uses_free(struct uses *u)
{
    if (!u)
        return NULL;
    assert(u->magic == USES_MAGIC);
    map_each(&u->pods, free_pod, u);
    map_clear(&u->pods);
    u->magic = 0;
    return mem_free(u);
}
