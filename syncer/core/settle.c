/* SPDX-License-Identifier: Apache-2.0 */
/* The decision on a virtual object and the host object under its name: kept, created again, taken
 * over, in quarantine, deleted. Why apart: `sublet restore --plan` shows what a start will do, so
 * both have to decide by one function. Must never have effects, nor let a host object be deleted
 * without proof.
 *
 *   virtual object   host object
 *   ----------------------------------------------------------------------------------
 *   any              missing       CREATE if another life had it there
 *   its own          there         KEEP; AWAIT if terminating by a request of another life
 *   none             there         DELETE with proof, else QUARANTINE
 *   hidden           there         SPARE if ours, else QUARANTINE
 *   terminating      another's     the same, unless there is proof
 *   there            another's     AWAIT if terminating; DELETE with proof; TAKE_OVER if it fits,
 *                                  else QUARANTINE */
#include "core/settle.h"

bool sync_settle_is_ours(const struct sync_sides *x)
{
    return x->proven || (x->known && x->exists);
}

static enum sync_settlement settle_absent(const struct sync_sides *x)
{
    bool due = x->readable && x->was_on_host && !x->terminating && !x->finished;

    return due ? SETTLE_CREATE : SETTLE_NOTHING;
}

static enum sync_settlement settle_unclaimed(const struct sync_sides *x)
{
    if (!sync_settle_is_ours(x))
        return SETTLE_QUARANTINE;
    return x->exists ? SETTLE_SPARE : SETTLE_DELETE;
}

/* The host object was made for another virtual uid of this name: of a predecessor, of a life that
 * this store does not know, or of an object that the store lost without a trace. */
static enum sync_settlement settle_other(const struct sync_sides *x)
{
    if (x->host_terminating)
        return SETTLE_AWAIT;
    /* A uid on record is one that was deleted, since another object has its name; not where the
     * store may have lost the object itself, so that its name was free for another. */
    if (x->proven && !x->damaged)
        return SETTLE_DELETE;
    return x->fits ? SETTLE_TAKE_OVER : SETTLE_QUARANTINE;
}

enum sync_settlement sync_settle(const struct sync_sides *x)
{
    if (!x->on_host)
        return settle_absent(x);
    if (x->readable && x->own)
        return x->stale ? SETTLE_AWAIT : SETTLE_KEEP;
    /* A terminating virtual object adopts nothing: what another process, or a later life of this
     * store, created under its name is not what the tenant deletes. */
    if (!x->readable || (x->terminating && !x->proven && !x->recorded))
        return settle_unclaimed(x);
    return settle_other(x);
}
