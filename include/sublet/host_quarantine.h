/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * Host objects that are kept because no record proves whose they are, as a store has them on
 * record. Reads the store only: for `sublet check`. */
#pragma once

#include <stdbool.h>

#include <sublet/str.h>

struct store;

struct host_quarantine {
    struct str kind;                /* "pods", "ingresses.networking.k8s.io" */
    struct str host_name, host_uid; /* on the host */
    struct str ns, name, uid;       /* of the virtual object it says it was made for */
    bool tokens;                    /* a Secret with the tokens of that pod */
};
/* Strings are good until each() returns. */
void host_quarantine_each(struct store *s, void (*each)(void *ctx, const struct host_quarantine *q),
                          void *ctx);
