/* SPDX-License-Identifier: Apache-2.0
 *
 * Times and durations as strings, as Go's time package and k8s.io/apimachinery write and read them:
 * metav1.Time is RFC 3339 in whole seconds, metav1.MicroTime with six digits, both in UTC.
 * Calendar arithmetic is the proleptic Gregorian one, done here: no time zone data, no libc state.
 */
#include <sublet/clock.h>

#include <string.h>

#define SECONDS_PER_DAY 86400

struct civil {
    int64_t year;
    unsigned month, day; /* 1..12, 1..31 */
};

/* Days are counted from 1970-01-01; eras of 400 years begin on 1 March, which puts the leap day
 * last. */
static struct civil civil_from_days(int64_t days)
{
    days += 719468; /* days from 0000-03-01 to 1970-01-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted_month = (5 * day_of_year + 2) / 153; /* 0 is March */
    unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;

    return (struct civil){
        .year = (int64_t)year_of_era + era * 400 + (month <= 2),
        .month = month,
        .day = day_of_year - (153 * shifted_month + 2) / 5 + 1,
    };
}

static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned year_of_era = (unsigned)(year - era * 400);
    unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + (int64_t)day_of_era - 719468;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && leap ? 29 : days[month - 1];
}

static struct str format(struct arena *a, int64_t seconds, const char *fraction)
{
    int64_t days = seconds / SECONDS_PER_DAY;
    int64_t rest = seconds % SECONDS_PER_DAY;
    if (rest < 0) {
        rest += SECONDS_PER_DAY;
        days--;
    }

    struct civil date = civil_from_days(days);
    unsigned second = (unsigned)rest;
    return arena_printf(a, "%04lld-%02u-%02uT%02u:%02u:%02u%sZ", (long long)date.year, date.month,
                        date.day, second / 3600, second / 60 % 60, second % 60, fraction);
}

struct str time_format_s(struct arena *a, int64_t unix_seconds)
{
    return format(a, unix_seconds, "");
}

struct str time_format_us(struct arena *a, int64_t unix_us)
{
    int64_t seconds = unix_us / 1000000;
    int64_t micros = unix_us % 1000000;
    if (micros < 0) {
        micros += 1000000;
        seconds--;
    }

    char fraction[8] = ".000000";
    for (size_t i = 6; i > 0; i--, micros /= 10)
        fraction[i] = (char)('0' + micros % 10);
    return format(a, seconds, fraction);
}

/* ---- reading RFC 3339 ---- */

/* A cursor over a string that never reads past its end; `ok` is sticky. */
struct scan {
    struct str rest;
    bool ok;
};

static bool at_digit(const struct scan *s)
{
    return s->rest.n > 0 && s->rest.p[0] >= '0' && s->rest.p[0] <= '9';
}

static unsigned scan_number(struct scan *s, unsigned digits, unsigned min, unsigned max)
{
    unsigned value = 0;

    for (; digits > 0; digits--) {
        if (!at_digit(s)) {
            s->ok = false;
            return min;
        }
        value = value * 10 + (unsigned)(s->rest.p[0] - '0');
        s->rest = str_from(s->rest, 1);
    }
    if (value >= min && value <= max)
        return value;
    s->ok = false;
    return min;
}

static bool scan_char(struct scan *s, char c)
{
    if (s->rest.n == 0 || s->rest.p[0] != c)
        return false;
    s->rest = str_from(s->rest, 1);
    return true;
}

static void scan_expect(struct scan *s, char c)
{
    if (!scan_char(s, c))
        s->ok = false;
}

/* Digits after the sixth are cut off, as in a Go time truncated to microseconds. */
static int64_t scan_fraction(struct scan *s)
{
    if (!scan_char(s, '.'))
        return 0;
    if (!at_digit(s))
        s->ok = false;

    int64_t micros = 0, weight = 100000;
    while (at_digit(s)) {
        micros += (s->rest.p[0] - '0') * weight;
        weight /= 10;
        s->rest = str_from(s->rest, 1);
    }
    return micros;
}

/* Seconds east of UTC. Go takes offsets of up to 24:60, "as some people do write" them. */
static int64_t scan_offset(struct scan *s)
{
    if (scan_char(s, 'Z'))
        return 0;

    bool west = scan_char(s, '-');
    if (!west)
        scan_expect(s, '+');
    int64_t hours = scan_number(s, 2, 0, 24);
    scan_expect(s, ':');
    int64_t minutes = scan_number(s, 2, 0, 60);
    int64_t offset = hours * 3600 + minutes * 60;
    return west ? -offset : offset;
}

bool time_parse(struct str text, int64_t *ret_us)
{
    struct scan s = {.rest = text, .ok = true};

    unsigned year = scan_number(&s, 4, 0, 9999);
    scan_expect(&s, '-');
    unsigned month = scan_number(&s, 2, 1, 12);
    scan_expect(&s, '-');
    unsigned day = scan_number(&s, 2, 1, days_in_month(year, month));
    scan_expect(&s, 'T');
    unsigned hour = scan_number(&s, 2, 0, 23);
    scan_expect(&s, ':');
    unsigned minute = scan_number(&s, 2, 0, 59);
    scan_expect(&s, ':');
    unsigned second = scan_number(&s, 2, 0, 59);
    int64_t micros = scan_fraction(&s);
    int64_t offset = scan_offset(&s);
    if (!s.ok || s.rest.n > 0)
        return false;

    int64_t seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + (int64_t)hour * 3600 +
                      (int64_t)minute * 60 + second - offset;
    *ret_us = seconds * 1000000 + micros;
    return true;
}

/* ---- durations ---- */

#define DURATION_LIMIT ((uint64_t)1 << 63)

static const struct {
    struct str name;
    uint64_t ns;
} UNITS[] = {
    {{"ns", 2}, 1},           {{"us", 2}, 1000},         {{"\xc2\xb5s", 3}, 1000},
    {{"\xce\xbcs", 3}, 1000}, {{"ms", 2}, 1000000},      {{"s", 1}, 1000000000},
    {{"m", 1}, 60000000000},  {{"h", 1}, 3600000000000},
};

static uint64_t unit_ns(struct str name)
{
    for (size_t i = 0; i < COUNT(UNITS); i++)
        if (str_eq(UNITS[i].name, name))
            return UNITS[i].ns;
    return 0;
}

static uint64_t scan_whole(struct scan *s)
{
    uint64_t value = 0;

    for (; at_digit(s); s->rest = str_from(s->rest, 1)) {
        if (value > DURATION_LIMIT / 10)
            s->ok = false;
        value = value * 10 + (uint64_t)(s->rest.p[0] - '0');
        if (value > DURATION_LIMIT)
            s->ok = false;
        if (!s->ok)
            return 0;
    }
    return value;
}

/* The digits after the point as part / scale; digits that no longer fit are dropped. */
static uint64_t scan_part(struct scan *s, double *scale)
{
    uint64_t part = 0;
    bool full = false;

    for (*scale = 1; at_digit(s); s->rest = str_from(s->rest, 1)) {
        uint64_t next = part * 10 + (uint64_t)(s->rest.p[0] - '0');
        full = full || part > (DURATION_LIMIT - 1) / 10 || next > DURATION_LIMIT;
        if (full)
            continue;
        part = next;
        *scale *= 10;
    }
    return part;
}

static struct str scan_unit(struct scan *s)
{
    struct str start = s->rest;

    while (s->rest.n > 0 && s->rest.p[0] != '.' && !at_digit(s))
        s->rest = str_from(s->rest, 1);
    return str_sub(start, 0, start.n - s->rest.n);
}

/* One "1.5h" of a duration in nanoseconds. The product with a fraction is taken in double and cut,
 * exactly like Go's ParseDuration: the same string must give the same nanoseconds. */
static uint64_t scan_duration_term(struct scan *s)
{
    size_t before = s->rest.n;
    uint64_t whole = scan_whole(s);
    bool digits = s->rest.n != before;
    double scale = 1;
    uint64_t part = 0;
    if (scan_char(s, '.')) {
        before = s->rest.n;
        part = scan_part(s, &scale);
        digits = digits || s->rest.n != before;
    }

    uint64_t unit = unit_ns(scan_unit(s));
    if (!s->ok || !digits || unit == 0 || whole > DURATION_LIMIT / unit) {
        s->ok = false;
        return 0;
    }
    return whole * unit + (uint64_t)((double)part * ((double)unit / scale));
}

bool duration_parse(struct str text, int64_t *ret_ns)
{
    struct scan s = {.rest = text, .ok = true};
    bool negative = scan_char(&s, '-');
    if (!negative)
        (void)scan_char(&s, '+');
    if (str_eq(s.rest, STR("0"))) {
        *ret_ns = 0;
        return true;
    }

    uint64_t total = 0;
    s.ok = s.rest.n > 0;
    while (s.ok && s.rest.n > 0) {
        uint64_t term = scan_duration_term(&s);
        if (term > DURATION_LIMIT || total + term > DURATION_LIMIT)
            return false;
        total += term;
    }
    if (!s.ok || (!negative && total == DURATION_LIMIT))
        return false;

    *ret_ns = negative ? (int64_t)(0 - total) : (int64_t)total;
    return true;
}

/* Two units, the smaller one left out when it is 0. */
static struct str human_pair(struct arena *a, int64_t big, char big_unit, int64_t small,
                             char small_unit)
{
    if (small == 0)
        return arena_printf(a, "%lld%c", (long long)big, big_unit);
    return arena_printf(a, "%lld%c%lld%c", (long long)big, big_unit, (long long)small, small_unit);
}

struct str duration_human(struct arena *a, int64_t seconds)
{
    int64_t minutes = seconds / 60, hours = seconds / 3600, days = hours / 24;

    if (seconds < -1)
        return STR("<invalid>");
    if (seconds < 0)
        return STR("0s");
    if (seconds < 120)
        return human_pair(a, seconds, 's', 0, 's');
    if (minutes < 10)
        return human_pair(a, minutes, 'm', seconds % 60, 's');
    if (minutes < 180)
        return human_pair(a, minutes, 'm', 0, 's');
    if (hours < 8)
        return human_pair(a, hours, 'h', minutes % 60, 'm');
    if (days < 2)
        return human_pair(a, hours, 'h', 0, 'm');
    if (days < 8)
        return human_pair(a, days, 'd', hours % 24, 'h');
    if (days < 730)
        return human_pair(a, days, 'd', 0, 'h');
    if (days < 2920)
        return human_pair(a, days / 365, 'y', days % 365, 'd');
    return human_pair(a, days / 365, 'y', 0, 'd');
}
