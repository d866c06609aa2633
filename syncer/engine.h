/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * All headers of the syncer, for the files above its folders: syncer.c, changes.c, restore_plan.c,
 * and tests. */
#pragma once

#include "admission/admission.h"
#include "core/leader.h"
#include "core/life.h"
#include "gpu/ledger.h"
#include "grants/demand.h"
#include "grants/grants.h"
#include "nodes/nodes.h"
#include "objects/aliases.h"
#include "objects/mirror.h"
#include "objects/objects.h"
#include "pods/gangs.h"
#include "pods/pods.h"
#include "streams/streams.h"

/* --- changes.c --- */
/* Fills s->kinds from s->config, with the functions of each kind; needs s->arena. */
void syncer_make_kinds(struct syncer *s);

/* --- syncer.c --- */
/* Takes ownership of host; tests pass their own. */
int syncer_new_with(struct vapi *api, const struct config *config, struct host *host,
                    struct syncer **ret, struct err *err) MUST_CHECK;
/* All keys, and everything else that waits for the host: it answers again, or may be changed again.
 */
void syncer_rescan_all(struct syncer *s);
