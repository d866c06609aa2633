/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Time and randomness come through these, so that tests own them. */
#pragma once

#include <sublet/mem.h>

struct clock {
    int64_t (*wall_us)(void *ctx); /* microseconds since 1970-01-01T00:00:00Z */
    int64_t (*mono_ms)(void *ctx); /* monotonic milliseconds */
    void *ctx;
};
extern const struct clock CLOCK_SYSTEM;
int64_t clock_wall_us(const struct clock *c);
int64_t clock_wall_s(const struct clock *c);
int64_t clock_mono_ms(const struct clock *c);

struct rng {
    void (*fill)(void *ctx, void *out, size_t n);
    void *ctx;
};
extern const struct rng RNG_SYSTEM; /* getrandom(2) */
uint64_t rng_u64(const struct rng *r);
/* n characters of Kubernetes' safe alphabet bcdfghjklmnpqrstvwxz2456789, and a NUL. */
void rng_suffix(const struct rng *r, char *out, size_t n);
void rng_uuid(const struct rng *r, char out[37]); /* version 4 */

/* RFC 3339 as metav1.Time (seconds) and MicroTime (six digits) print it, in UTC. */
struct str time_format_s(struct arena *a, int64_t unix_seconds);
struct str time_format_us(struct arena *a, int64_t unix_us);
/* Any RFC 3339 string (offset and fraction allowed) to microseconds since 1970. */
bool time_parse(struct str text, int64_t *ret_us);
/* Go's duration string ("1h2m3.5s", "300ms") to nanoseconds. */
bool duration_parse(struct str text, int64_t *ret_ns);
/* Like kubectl's ages: 5s, 3m12s, 4h, 2d3h, 1y4d (k8s.io/apimachinery duration.HumanDuration). */
struct str duration_human(struct arena *a, int64_t seconds);
