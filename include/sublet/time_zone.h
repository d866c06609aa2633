/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Time zones of the system's database (TZif, RFC 9636), read without touching the process's own
 * zone. */
#pragma once

#include <sublet/mem.h>

struct time_zone;

/* NULL when there is no such zone. name as in CronJob.spec.timeZone ("Europe/Berlin"). */
const struct time_zone *time_zone_load(struct arena *a, struct str name);
/* There is a database, and the zone is not in it. */
bool time_zone_is_unknown(struct arena *a, struct str name);
/* The same from the bytes of a file; NULL when they are invalid. */
const struct time_zone *time_zone_parse(struct arena *a, struct str bytes);

/* The zone's offset around a time: seconds from UTC, from (inclusive) to (exclusive) in unix
 * seconds; INT64_MIN and INT64_MAX when it never changes. */
struct time_span {
    int64_t from, to;
    int64_t offset;
};
struct time_span time_zone_at(const struct time_zone *z, int64_t unix_s);
