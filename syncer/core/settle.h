/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What becomes of a virtual object and the host object under its name. The reconcile of a key and
 * the plan of a restore decide by the same function, which has no effects. */
#pragma once

#include <stdbool.h>

/* What is known of the two sides of a key. */
struct sync_sides {
    bool exists;      /* the virtual object, perhaps hidden by damage */
    bool readable;    /* ... and not hidden */
    bool terminating; /* ... its deletion was requested */
    bool finished;    /* ... a pod that does not run again */
    bool was_on_host; /* in another life, on record */
    bool on_host;     /* the host object under its name, made for this key */
    bool host_terminating;
    bool stale;    /* ... requested in another life */
    bool own;      /* it carries the uid of the virtual object */
    bool recorded; /* it is the host object on record */
    bool proven;   /* sync_mapping_proves() */
    bool known;    /* sync_mapping_knows() */
    bool fits;     /* it matches the translation of the virtual object */
    bool damaged;  /* objects may be missing in the store without a trace */
};

enum sync_settlement {
    SETTLE_NOTHING,   /* no host object, and none is due by the record alone */
    SETTLE_KEEP,      /* the host object is the virtual object's */
    SETTLE_SPARE,     /* ours; what it was made for may exist: neither deleted nor taken over */
    SETTLE_CREATE,    /* missing since another life: created again */
    SETTLE_AWAIT,     /* terminating on the host; created again once it is deleted */
    SETTLE_TAKE_OVER, /* becomes the virtual object's */
    SETTLE_QUARANTINE,
    SETTLE_DELETE /* of a predecessor, or of a deleted object */
};
enum sync_settlement sync_settle(const struct sync_sides *x);
/* Does the record say whose the host object is? If not, it belongs into quarantine, until a virtual
 * object takes it over. */
bool sync_settle_is_ours(const struct sync_sides *x);
