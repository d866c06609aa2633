/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as sets of bits, searched day by day and then within the day: at most five years of
 * days, however many times were missed. Pure; must accept exactly what validation accepts. */
#include "cron_schedule.h"

#include <sublet/clock.h>
#include <sublet/time_zone.h>

#include <strings.h>

#define DAY_S      86400
#define DAYS_MOST  (5 * 366)
#define SPANS_MOST 40 /* limit of clock changes to search across */

struct bounds {
    unsigned min, max;
    const char *names; /* of min, min + 1, ...: three letters each */
};
static const struct bounds BOUNDS[5] = {
    {0, 59, ""},
    {0, 23, ""},
    {1, 31, ""},
    {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {0, 6, "sunmontuewedthufrisat"},
};

/* --- reading --- */

static bool read_number(struct str text, const struct bounds *b, uint64_t *ret)
{
    for (unsigned i = 0; text.n == 3 && b->names[i]; i += 3) {
        if (!strncasecmp(text.p, b->names + i, 3)) {
            *ret = b->min + i / 3;
            return true;
        }
    }
    if (text.n > 1 && text.p[0] == '+')
        text = str_from(text, 1);
    return str_to_u64(text, ret);
}

/* a, a-b, *, each with "/step"; a/step continues to the end. */
static bool read_range(struct str text, const struct bounds *b, uint64_t *bits, bool *any)
{
    struct str step_text = text, ends = str_cut(&step_text, '/');
    struct str high = ends, low = str_cut(&high, '-');
    uint64_t from = b->min, to = b->max, step = 1;

    if (step_text.p && (!str_to_u64(step_text, &step) || !step))
        return false;
    if (str_eqc(low, "*") || str_eqc(low, "?")) {
        *any |= step == 1;
    } else {
        if (!read_number(low, b, &from))
            return false;
        if (high.p ? !read_number(high, b, &to) : false)
            return false;
        if (!high.p && !step_text.p)
            to = from;
    }
    if (from < b->min || to > b->max || from > to)
        return false;
    for (uint64_t i = from; i <= to; i += step) {
        *bits |= UINT64_C(1) << i;
        if (step > b->max)
            break;
    }
    return true;
}

static bool read_field(struct str text, const struct bounds *b, uint64_t *bits, bool *any)
{
    do {
        struct str range = str_cut(&text, ',');

        if (range.n && !read_range(range, b, bits, any))
            return false;
    } while (text.p);
    return true;
}

static struct str next_word(struct str *rest)
{
    struct str s = str_trim(*rest);
    size_t n = 0;

    while (n < s.n && s.p[n] != ' ' && s.p[n] != '\t' && s.p[n] != '\n')
        n++;
    *rest = str_from(s, n);
    return str_sub(s, 0, n);
}

static bool read_fields(struct str text, struct cron_schedule *s)
{
    uint64_t *bits[5] = {&s->minutes, &s->hours, &s->days, &s->months, &s->weekdays};
    bool any[5] = {false};

    for (size_t i = 0; i < 5; i++) {
        struct str word = next_word(&text);

        if (!word.n || !read_field(word, &BOUNDS[i], bits[i], &any[i]))
            return false;
    }
    s->any_day = any[2];
    s->any_weekday = any[4];
    return !str_trim(text).n;
}

static const struct {
    const char *name, *fields;
} DESCRIPTORS[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

bool cron_parse(struct str text, struct cron_schedule *ret)
{
    int64_t ns;

    *ret = (struct cron_schedule){0};
    text = str_trim(text);
    for (size_t i = 0; i < COUNT(DESCRIPTORS); i++) {
        if (str_eqc(text, DESCRIPTORS[i].name))
            return read_fields(str_c(DESCRIPTORS[i].fields), ret);
    }
    if (!str_has_prefix(text, STR("@every ")))
        return read_fields(text, ret);
    if (!duration_parse(str_from(text, 7), &ns))
        return false;
    ret->every_s = ns / 1000000000 > 0 ? ns / 1000000000 : 1;
    return true;
}

/* --- searching --- */

struct date {
    unsigned month, day, weekday;
};

/* Of the days since 1970-01-01, in the proleptic Gregorian calendar. */
static struct date date_of(int64_t days)
{
    int64_t z = days + 719468, era = z / 146097, of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;

    return (struct date){(unsigned)(m < 10 ? m + 3 : m - 9),
                         (unsigned)(of_year - (153 * m + 2) / 5 + 1), (unsigned)((days + 4) % 7)};
}

static bool has(uint64_t bits, uint64_t n)
{
    return bits >> n & 1;
}

/* With both day fields set either may match. */
static bool day_matches(const struct cron_schedule *s, int64_t days)
{
    struct date d = date_of(days);
    bool day = has(s->days, d.day), weekday = has(s->weekdays, d.weekday);

    if (!has(s->months, d.month))
        return false;
    return s->any_day || s->any_weekday ? day && weekday : day || weekday;
}

/* The next matching minute of the day, from `from` on in steps of 1 or -1; -1 when there is
 * none. */
static int minute_of(const struct cron_schedule *s, int from, int step)
{
    for (int m = from; m >= 0 && m < 1440; m += step) {
        if (has(s->hours, (uint64_t)m / 60) && has(s->minutes, (uint64_t)m % 60))
            return m;
    }
    return -1;
}

static bool minute_is_due(const struct cron_schedule *s, int64_t minute)
{
    return day_matches(s, minute / 1440) &&
           minute_of(s, (int)(minute % 1440), 1) == (int)(minute % 1440);
}

static int64_t search(const struct cron_schedule *s, int64_t minute, int step)
{
    int64_t day = minute / 1440;
    int from = (int)(minute % 1440), found;

    for (int i = 0; i < DAYS_MOST && day >= 0; i++, day += step) {
        if (day_matches(s, day) && (found = minute_of(s, from, step)) >= 0)
            return day * DAY_S + found * 60;
        from = step > 0 ? 0 : 1439;
    }
    return 0;
}

/* Between two clock changes local time is linear: each span is searched separately. */
static int64_t search_zone(const struct cron_schedule *s, int64_t t, int step)
{
    int64_t limit = DAYS_MOST * (int64_t)DAY_S, start = t;

    for (int i = 0; i < SPANS_MOST && (t - start) * step < limit; i++) {
        struct time_span span = time_zone_at(s->zone, t);
        int64_t local = t + span.offset, minute = (local - (local < 0 ? 59 : 0)) / 60;
        int64_t found = search(s, step > 0 ? minute + 1 : minute, step);

        if (found) {
            found -= span.offset;
            if (found >= span.from && found < span.to)
                return found;
        }
        if (step > 0 ? span.to == INT64_MAX : span.from == INT64_MIN)
            return 0;
        t = step > 0 ? span.to - 1 : span.from - 1;
        if (step > 0) { /* the change's own minute belongs to the next span */
            struct time_span next = time_zone_at(s->zone, span.to);
            int64_t first = span.to + next.offset;

            if (first % 60 == 0 && minute_is_due(s, first / 60))
                return span.to;
            t = span.to;
        }
    }
    return 0;
}

int64_t cron_next(const struct cron_schedule *s, int64_t start, int64_t t)
{
    if (s->every_s)
        return t < start ? start + s->every_s : t + s->every_s - (t - start) % s->every_s;
    return s->zone ? search_zone(s, t, 1) : search(s, t / 60 + 1, 1);
}

int64_t cron_last(const struct cron_schedule *s, int64_t start, int64_t t)
{
    if (s->every_s)
        return t < start + s->every_s ? 0 : t - (t - start) % s->every_s;
    return s->zone ? search_zone(s, t, -1) : search(s, t / 60, -1);
}
