/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone database consists of files: a list of changes, and a rule for the time after them
 * (a POSIX TZ string). localtime() and TZ belong to the whole process, including other threads, and
 * are never used. Files are checked as strictly as untrusted input: an invalid one is no zone. */
#include <fcntl.h>
#include <unistd.h>

#include <sublet/clock.h>
#include <sublet/time_zone.h>

#define FILE_MOST    (256 * 1024)
#define NAME_MOST    128
#define CHANGES_MOST 4000
#define DAY_S        86400

/* The day of a rule's change: the n-th (5: last) weekday of a month, or a day of the year. */
enum day_kind { DAY_OF_MONTH_WEEK, DAY_OF_YEAR, DAY_OF_YEAR_NO_LEAP };
struct change_day {
    enum day_kind kind;
    int64_t month, week, day, time_s;
};

struct rule {
    bool given, has_summer;
    int64_t offset, summer_offset;
    struct change_day starts, ends; /* of summer time, in the clock before the change */
};

struct time_zone {
    size_t n;
    int64_t *at;     /* ascending */
    int64_t *offset; /* from at[i] on */
    int64_t first;   /* before at[0] */
    struct rule rule;
};

/* --- the calendar --- */

/* Days since 1970-01-01 of a day in the proleptic Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t year_of(int64_t unix_s)
{
    int64_t year = 1970 + unix_s / (DAY_S * 365 + DAY_S / 4);

    while (days_of(year, 1, 1) * DAY_S > unix_s)
        year--;
    while (days_of(year + 1, 1, 1) * DAY_S <= unix_s)
        year++;
    return year;
}

/* Midnight of the change's day, as a count of seconds without a zone. */
static int64_t day_in(const struct change_day *d, int64_t year)
{
    int64_t first, weekday, length, day;

    if (d->kind == DAY_OF_YEAR)
        return (days_of(year, 1, 1) + d->day) * DAY_S;
    if (d->kind == DAY_OF_YEAR_NO_LEAP) /* 1 to 365: February 29 is never counted */
        return (days_of(year, 1, 1) + d->day - 1 +
                ((year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) && d->day >= 60)) *
               DAY_S;
    first = days_of(year, d->month, 1);
    length = (d->month == 12 ? days_of(year + 1, 1, 1) : days_of(year, d->month + 1, 1)) - first;
    weekday = ((first + 4) % 7 + 7) % 7;
    day = (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
    while (day >= length)
        day -= 7;
    return (first + day) * DAY_S;
}

/* --- the rule's string: std offset [dst [offset] , start [/time] , end [/time]] --- */

struct reader {
    const unsigned char *p, *end;
    bool bad;
};

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != (unsigned char)c)
        return false;
    r->p++;
    return true;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void skip_name(struct reader *r)
{
    const unsigned char *start = r->p;

    if (take(r, '<')) {
        while (r->p < r->end && *r->p != '>')
            r->p++;
        r->bad |= !take(r, '>');
        return;
    }
    while (r->p < r->end && is_letter(*r->p))
        r->p++;
    r->bad |= r->p - start < 3;
}

static int64_t number(struct reader *r, int64_t least, int64_t most)
{
    int64_t n = 0;
    int digits = 0;

    while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && digits++ < 4)
        n = n * 10 + (*r->p++ - '0');
    r->bad |= !digits || n < least || n > most;
    return n;
}

/* [+-]hh[:mm[:ss]] */
static int64_t time_of(struct reader *r)
{
    int64_t sign = take(r, '-') ? -1 : 1, s;

    if (sign == 1)
        take(r, '+');
    s = number(r, 0, 167) * 3600;
    if (take(r, ':'))
        s += number(r, 0, 59) * 60;
    if (take(r, ':'))
        s += number(r, 0, 59);
    return sign * s;
}

static void read_change(struct reader *r, struct change_day *d)
{
    r->bad |= !take(r, ',');
    if (take(r, 'M')) {
        d->kind = DAY_OF_MONTH_WEEK;
        d->month = number(r, 1, 12);
        r->bad |= !take(r, '.');
        d->week = number(r, 1, 5);
        r->bad |= !take(r, '.');
        d->day = number(r, 0, 6);
    } else if (take(r, 'J')) {
        d->kind = DAY_OF_YEAR_NO_LEAP;
        d->day = number(r, 1, 365);
    } else {
        d->kind = DAY_OF_YEAR;
        d->day = number(r, 0, 365);
    }
    d->time_s = take(r, '/') ? time_of(r) : 2 * 3600;
}

/* POSIX counts offsets westwards. */
static bool read_rule(const unsigned char *p, const unsigned char *end, struct rule *ret)
{
    struct reader r = {p, end, false};

    skip_name(&r);
    ret->offset = -time_of(&r);
    ret->given = true;
    if (r.p == r.end || r.bad)
        return !r.bad;
    ret->has_summer = true;
    skip_name(&r);
    ret->summer_offset = r.p < r.end && *r.p != ',' ? -time_of(&r) : ret->offset + 3600;
    read_change(&r, &ret->starts);
    read_change(&r, &ret->ends);
    return !r.bad && r.p == r.end;
}

/* --- the file --- */

static int64_t be(const unsigned char *p, size_t n)
{
    uint64_t v = p[0] & 0x80 ? UINT64_MAX : 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

struct header {
    size_t utc, standard, leap, times, types, chars;
};

#define HEADER_BYTES 44

/* False unless the numbers are plausible; callers check them against the size. */
static bool read_header(const unsigned char *p, size_t n, struct header *h)
{
    size_t *to[] = {&h->utc, &h->standard, &h->leap, &h->times, &h->types, &h->chars};

    if (n < HEADER_BYTES || !str_has_prefix((struct str){(const char *)p, n}, STR("TZif")))
        return false;
    for (size_t i = 0; i < 6; i++) {
        int64_t v = be(p + 20 + 4 * i, 4);

        if (v < 0 || v > CHANGES_MOST)
            return false;
        *to[i] = (size_t)v;
    }
    return h->types > 0;
}

static size_t body_bytes(const struct header *h, size_t time_size)
{
    return h->times * (time_size + 1) + h->types * 6 + h->chars + h->leap * (time_size + 4) +
           h->standard + h->utc;
}

static bool read_body(struct arena *a, const unsigned char *p, const struct header *h,
                      struct time_zone *z)
{
    const unsigned char *indexes = p + h->times * 8, *types = indexes + h->times;

    z->n = h->times;
    z->at = arena_alloc(a, (z->n + 1) * sizeof(*z->at));
    z->offset = arena_alloc(a, (z->n + 1) * sizeof(*z->offset));
    z->first = be(types, 4);
    for (size_t i = 0; i < z->n; i++) {
        if (indexes[i] >= h->types)
            return false;
        z->at[i] = be(p + 8 * i, 8);
        z->offset[i] = be(types + 6 * indexes[i], 4);
        if (i && z->at[i] <= z->at[i - 1])
            return false;
        if (z->offset[i] < -DAY_S * 2 || z->offset[i] > DAY_S * 2)
            return false;
    }
    return z->first >= -DAY_S * 2 && z->first <= DAY_S * 2;
}

const struct time_zone *time_zone_parse(struct arena *a, struct str bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p, *end = p + bytes.n;
    struct time_zone *z = ARENA_NEW(a, struct time_zone);
    struct header h;
    size_t old;

    if (!read_header(p, bytes.n, &h) || p[4] < '2')
        return NULL; /* version 1 has times of 32 bits only, and is no longer written */
    old = HEADER_BYTES + body_bytes(&h, 4);
    if (old > bytes.n)
        return NULL;
    p += old;
    if (!read_header(p, (size_t)(end - p), &h) ||
        HEADER_BYTES + body_bytes(&h, 8) > (size_t)(end - p) ||
        !read_body(a, p + HEADER_BYTES, &h, z))
        return NULL;
    p += HEADER_BYTES + body_bytes(&h, 8);
    if (end - p < 2 || p[0] != '\n' || end[-1] != '\n')
        return NULL;
    if (end - p > 2 && !read_rule(p + 1, end - 1, &z->rule))
        return NULL;
    return z;
}

/* Letters, digits and "_+-" between single slashes: never a dot, so the path stays inside the
 * database. */
static bool name_is_safe(struct str name)
{
    char before = '/';

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c == '/' ? before == '/'
                     : !is_letter((unsigned char)c) && (c < '0' || c > '9') && c != '_' &&
                           c != '+' && c != '-')
            return false;
        before = c;
    }
    return name.n && name.n <= NAME_MOST && before != '/';
}

static bool read_file(struct arena *a, const char *path, struct str *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *bytes;
    size_t n = 0;
    ssize_t got = 1;

    if (fd < 0)
        return false;
    bytes = arena_alloc(a, FILE_MOST);
    while (got > 0 && n < FILE_MOST) {
        got = read(fd, bytes + n, FILE_MOST - n);
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    *ret = (struct str){bytes, n};
    return got == 0;
}

static const char *const FOLDERS[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo",
                                      "/usr/share/lib/zoneinfo", "/etc/zoneinfo"};

const struct time_zone *time_zone_load(struct arena *a, struct str name)
{
    const struct time_zone *z = NULL;
    struct arena *scratch;
    struct str bytes;

    if (str_eqc(name, "UTC") || str_eqc(name, "Etc/UTC"))
        return ARENA_NEW(a, struct time_zone); /* known without a database */
    if (!name_is_safe(name))
        return NULL;
    scratch = arena_new(0);
    for (size_t i = 0; i < COUNT(FOLDERS) && !z; i++) {
        if (read_file(scratch, arena_printf(scratch, "%s/%.*s", FOLDERS[i], STR_F(name)).p, &bytes))
            z = time_zone_parse(a, bytes);
    }
    arena_free(scratch);
    return z;
}

bool time_zone_is_unknown(struct arena *a, struct str name)
{
    if (time_zone_load(a, name))
        return false;
    for (size_t i = 0; i < COUNT(FOLDERS); i++) {
        if (!access(FOLDERS[i], F_OK))
            return true;
    }
    return false;
}

/* --- look-ups --- */

/* The span of the rule around a time: the years before and after contain its ends. */
static struct time_span by_rule(const struct rule *r, int64_t unix_s)
{
    struct time_span span = {INT64_MIN, INT64_MAX, r->offset};
    int64_t year = year_of(unix_s);

    if (!r->has_summer)
        return span;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t starts = day_in(&r->starts, y) + r->starts.time_s - r->offset;
        int64_t ends = day_in(&r->ends, y) + r->ends.time_s - r->summer_offset;
        const struct {
            int64_t at, offset;
        } changes[] = {{starts, r->summer_offset}, {ends, r->offset}};

        for (size_t i = 0; i < 2; i++) {
            if (changes[i].at <= unix_s && changes[i].at > span.from) {
                span.from = changes[i].at;
                span.offset = changes[i].offset;
            }
            if (changes[i].at > unix_s && changes[i].at < span.to)
                span.to = changes[i].at;
        }
    }
    return span;
}

struct time_span time_zone_at(const struct time_zone *z, int64_t unix_s)
{
    size_t low = 0, high = z->n; /* the first change after unix_s */

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (z->at[middle] <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->n && z->rule.given) {
        struct time_span span = by_rule(&z->rule, unix_s);

        if (z->n && span.from < z->at[z->n - 1])
            span.from = z->at[z->n - 1];
        return span;
    }
    return (struct time_span){
        .from = low ? z->at[low - 1] : INT64_MIN,
        .to = low < z->n ? z->at[low] : INT64_MAX,
        .offset = low ? z->offset[low - 1] : z->first,
    };
}
