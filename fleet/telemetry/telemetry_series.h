/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The series of exporters that a tenant may see: those of the GPUs that its own pods have to
 * themselves, with names of the host. Pure; times are milliseconds of one monotonic clock. */
#pragma once

#include <sublet/buf.h>

#include "activity.h"

struct telemetry_series;
/* UUIDs of GPUs are shown as hashes, of each tenant others, under the secret. */
struct telemetry_series *telemetry_series_new(int64_t fresh_ms, uint64_t secret);
struct telemetry_series *telemetry_series_free(struct telemetry_series *s); /* takes NULL */
/* What the exporter of a node says, in place of what it said before; the activity knows whose. */
void telemetry_series_answer(struct telemetry_series *s, const struct activity *a, struct str node,
                             const struct dcgm *d, int64_t now_ms);
/* Of a tenant, in Prometheus' text format: what is not older than fresh_ms. False, and nothing is
 * written: it reads more often than once in 5 s, beyond a few at once. */
bool telemetry_series_write(struct telemetry_series *s, struct str tenant, int64_t now_ms,
                            struct buf *out);
