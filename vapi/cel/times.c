/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of timestamps, in UTC, at an offset or in a time zone, and of durations. Must never load a
 * zone twice in one evaluation. */
#include "impl.h"

#include <time.h>

#include <sublet/time_zone.h>

/* Zones that this evaluation has loaded. zone NULL: there is no such zone. */
struct cel_zone {
    struct cel_zone *next;
    struct str name;
    const struct time_zone *zone;
};

enum { LOAD_STEPS = 400, HOURS_MOST = 100000 };

static const char *const PARTS = "getFullYear|getMonth|getDayOfYear|getDayOfMonth|getDate|"
                                 "getDayOfWeek|getHours|getMinutes|getSeconds|getMilliseconds";

static const struct cel_zone *zone_of(struct cel_run *r, struct str name)
{
    struct cel_zone *z;

    for (z = r->zones; z; z = z->next) {
        cel_charge_walk(r, 1);
        if (str_eq(z->name, name))
            return z;
    }
    cel_charge_walk(r, LOAD_STEPS);
    z = ARENA_NEW(r->arena, struct cel_zone);
    *z = (struct cel_zone){r->zones, name, time_zone_load(r->arena, name)};
    r->zones = z;
    return z;
}

/* As Go's strconv.Atoi. */
static bool hours_or_minutes(struct cel_run *r, struct str text, int64_t *ret,
                             struct cel_value *why)
{
    bool sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
    uint64_t value;

    if (!str_to_u64(str_from(text, sign), &value)) {
        *why = cel_error(r, "strconv.Atoi: parsing \"%.*s\": invalid syntax", STR_F(text));
        return false;
    }
    if (value > HOURS_MOST) {
        *why = cel_error(r, "timestamp overflow");
        return false;
    }
    *ret = sign && text.p[0] == '-' ? -(int64_t)value : (int64_t)value;
    return true;
}

/* "+01:30", seconds to the east. */
static bool fixed_offset(struct cel_run *r, struct str text, int64_t *ret, struct cel_value *why)
{
    struct str rest = text, hours = str_cut(&rest, ':');
    int64_t h, m;

    if (!hours_or_minutes(r, hours, &h, why) || !hours_or_minutes(r, rest, &m, why))
        return false;
    *ret = (h * 60 + (text.p[0] == '-' ? -m : m)) * 60;
    return true;
}

static bool offset_of(struct cel_run *r, struct str name, int64_t at_s, int64_t *ret,
                      struct cel_value *why)
{
    const struct cel_zone *z;

    cel_charge_text(r, name.n);
    if (str_contains(name, STR(":")))
        return fixed_offset(r, name, ret, why);
    *ret = 0;
    if (!name.n || str_eqc(name, "Local")) /* a process's own zone is UTC here */
        return true;
    z = zone_of(r, name);
    if (!z->zone) {
        *why = cel_error(r, "unknown time zone %.*s", STR_F(name));
        return false;
    }
    *ret = time_zone_at(z->zone, at_s).offset;
    return true;
}

static struct cel_value time_part(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t us = a[0].i, s = us / 1000000 - (us % 1000000 < 0), offset = 0;
    struct cel_value why;
    time_t seconds;
    struct tm t;

    if (n == 2 && !offset_of(r, a[1].s, s, &offset, &why))
        return why;
    seconds = (time_t)(s + offset);
    if (!gmtime_r(&seconds, &t))
        return cel_error(r, "timestamp overflow");

    const int parts[] = {
        t.tm_year + 1900, t.tm_mon,  t.tm_yday, t.tm_mday - 1, t.tm_mday,
        t.tm_wday,        t.tm_hour, t.tm_min,  t.tm_sec,      (int)((us - s * 1000000) / 1000)};

    return cel_int(parts[str_word_index(PARTS, r->node->name)]);
}

static struct cel_value duration_part(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t ns = a[0].i;

    (void)n;
    if (str_eqc(r->node->name, "getHours"))
        return cel_int(ns / 3600000000000);
    if (str_eqc(r->node->name, "getMinutes"))
        return cel_int(ns / 60000000000);
    if (str_eqc(r->node->name, "getSeconds"))
        return cel_int(ns / 1000000000);
    return cel_int(ns / 1000000 % 1000);
}

#define TIME_PART(name)                                                                            \
    {name, true, "t", "i", time_part},                                                             \
    {                                                                                              \
        name, true, "ts", "i", time_part                                                           \
    }
#define EITHER_PART(name)                                                                          \
    TIME_PART(name),                                                                               \
    {                                                                                              \
        name, true, "D", "i", duration_part                                                        \
    }

static const struct cel_function ROWS[] = {
    TIME_PART("getFullYear"),       TIME_PART("getMonth"),     TIME_PART("getDayOfYear"),
    TIME_PART("getDayOfMonth"),     TIME_PART("getDate"),      TIME_PART("getDayOfWeek"),
    EITHER_PART("getHours"),        EITHER_PART("getMinutes"), EITHER_PART("getSeconds"),
    EITHER_PART("getMilliseconds"),
};
const struct cel_functions CEL_TIMES = {ROWS, COUNT(ROWS)};
