/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * GPUBindings of the host namespace, by which `sublet fleet` grants GPUs (`fleet.bindings`): the
 * pools and bindings of syncer.config follow them without a restart. */
#pragma once

#include "core/core.h"

struct grants;
/* NULL: the option is off. Else s->config becomes a copy whose pools and bindings are replaced as a
 * whole between two events of the loop; at first they are those that were granted last. Before
 * anything else keeps s->config. */
struct grants *sync_grants_new(struct syncer *s);
struct grants *sync_grants_free(struct grants *g);
/* What a store has on record, for a reader of it: *live becomes a copy of the configuration with
 * it, as long as the result lives. Nothing is written. */
struct config_bound *sync_grants_recorded(struct store *store, const struct config *base,
                                          struct config *live);
/* The functions below take NULL. */
void sync_grants_start(struct grants *g);
void sync_grants_stop(struct grants *g);    /* closes the watch */
void sync_grants_kick(struct grants *g);    /* the host answers again */
void sync_grants_restart(struct grants *g); /* another host, or another state of it */
void sync_grants_keep(struct grants *g);    /* a transaction failed: records are written again */
void sync_grants_look(struct grants *g);    /* the Lease was confirmed */
/* Something that was charged to a pool whose binding has ended was released. */
void sync_grants_released(struct grants *g);
