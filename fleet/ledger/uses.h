/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What pods do with the GPUs they hold, as intervals in the ledger: a record for each change. */
#pragma once

#include <sublet/fleet_ledger.h>

#include "telemetry/activity.h"

/* Between two records of a pod; one of silence does not wait. So a pod has at most
 * 2 * 86400 / 1800 = 96 records a day. */
#define USES_SPACING_US INT64_C(1800000000)

struct uses;
/* records: with the open holds of the ledger. */
struct uses *uses_new(struct ledger *ledger, const struct fleet_records *records);
struct uses *uses_free(struct uses *u); /* takes NULL */
/* Before anything is observed: what an earlier process saw of pods is not known from the moment on
 * until which the host was observed. */
int uses_forget(struct uses *u, struct err *err) MUST_CHECK;
/* uses_begin(), each pod that is measured or may be, uses_end(): of others nothing is known any
 * more. */
void uses_begin(struct uses *u);
void uses_pod(struct uses *u, struct str uid, enum activity_state state);
int uses_end(struct uses *u, int64_t now_us, struct err *err) MUST_CHECK;
