/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * Tries a host before (or while) a virtual cluster uses it: can it be reached and trusted, does it
 * know us, which rights are missing, and is there what pools, quotas and claims count on. Reads and
 * access reviews only: nothing on the host is changed. */
#pragma once

#include <sublet/config.h>

enum host_finding { HOST_FINDING_OK, HOST_FINDING_WARNING, HOST_FINDING_MISSING };

typedef void (*host_finding_cb)(void *ctx, enum host_finding level, struct str what,
                                struct str text);
/* Runs a loop of its own until everything is looked at; found() comes in a fixed order. Returns how
 * many findings are MISSING: what a virtual cluster cannot do without. -1 with err when there are
 * no credentials to try. */
int sync_host_check(struct arena *a, const struct config *config, host_finding_cb found, void *ctx,
                    struct err *err) MUST_CHECK;
