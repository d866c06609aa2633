/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What this virtual cluster wants of the pools that the fleet grants it, reported on the host: of a
 * guarantee that it does not want, `sublet fleet` lends. */
#pragma once

#include "core/core.h"

struct demand;
/* NULL: the fleet grants nothing (`fleet.bindings`). */
struct demand *sync_demand_new(struct syncer *s);
struct demand *sync_demand_free(struct demand *d);
/* The functions below take NULL. */
void sync_demand_close(struct demand *d); /* after host_stop() */
void sync_demand_kick(struct demand *d);  /* the host answers again, or may be changed again */
void sync_demand_renew(struct demand *d); /* what was reported may be another's by now */
void sync_demand_look(struct demand *d);  /* what is charged or waits, or what is bound, changed */
/* A pod without a controller was refused: with it the sum would be this. */
void sync_demand_turned_away(struct demand *d, const struct config_binding *binding,
                             struct rational sum);
