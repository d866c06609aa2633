/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * sync.fromHost: objects of the host that the tenant is shown, read-only. */
#pragma once

#include "core/run.h"

#include <sublet/config_sync_from.h>

struct mirrors;
struct mirrors *sync_mirrors_new(struct syncer *s); /* NULL: nothing is enabled, nor was before */
struct mirrors *sync_mirrors_free(struct mirrors *m);
/* The functions below take NULL. */
void sync_mirrors_start(struct mirrors *m);
void sync_mirrors_rescan(struct mirrors *m);
void sync_mirrors_kick(struct mirrors *m);    /* the host answers again */
void sync_mirrors_restart(struct mirrors *m); /* another host, or another state of it */
/* Closes watches; closed() once for each controller, whose number is returned. */
size_t sync_mirrors_close(struct mirrors *m, void (*closed)(void *ctx), void *ctx);
/* translate_tenant.shown.is; ctx: the syncer. */
bool sync_mirror_shows(void *ctx, enum config_from_kind kind, struct str ns, struct str name);
/* Does the object, of a kind with namespaces, show one of the host's? Then it has no host object of
 * its own. resource: "services", MIRROR_GATEWAYS. */
#define MIRROR_GATEWAYS "gateways.gateway.networking.k8s.io"
bool sync_mirror_is_copy(struct syncer *s, const char *resource, const cJSON *object);
/* FORBIDDEN for an Ingress or a Gateway whose class is neither shown nor the tenant's own. */
int sync_mirror_check(struct syncer *s, const struct resource *r, const cJSON *object,
                      const cJSON *old, struct err *err) MUST_CHECK;
