/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Links of a proxied page. The host's API server writes its own path of the proxied object before
 * each of them; a client of the tenant needs the tenant's path there. Pure. */
#pragma once

#include <sublet/buf.h>
#include <sublet/str.h>

struct relink {
    struct str from, to; /* borrowed; from is not empty */
    struct buf held;     /* shorter than from: the begin of one may be in it */
};

/* Appends to out what bytes and those held before become. */
void sync_relink_add(struct relink *r, struct str bytes, struct buf *out);
void sync_relink_end(struct relink *r, struct buf *out); /* what is held; frees it */
