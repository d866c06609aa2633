/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a schedule is one, in the words of the parser upstream uses (robfig/cron v3, five fields
 * and descriptors). It only judges: when a job runs is the controller's. */
#include "job.h"

#include <sublet/clock.h>

#include <strings.h>

struct bounds {
    unsigned min, max;
    const char *names[13]; /* of min, min + 1, ... */
};

static const struct bounds FIELDS[] = {
    {0, 59, {NULL}},
    {0, 23, {NULL}},
    {1, 31, {NULL}},
    {1,
     12,
     {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL}},
    {0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL}},
};

/* ---- numbers ---- */

static const char *parse_number(struct arena *a, struct str text, const struct bounds *b,
                                int64_t *ret)
{
    struct str digits = text.n > 1 && text.p[0] == '+' ? str_from(text, 1) : text;

    for (size_t i = 0; b && b->names[i]; i++) {
        if (text.n == 3 && strncasecmp(text.p, b->names[i], 3) == 0) {
            *ret = b->min + (int64_t)i;
            return NULL;
        }
    }
    if (!str_to_i64(digits, ret))
        return problem_printf(a,
                              "failed to parse int from %.*s: strconv.Atoi: parsing \"%.*s\": "
                              "invalid syntax",
                              STR_F(text), STR_F(text));
    if (*ret < 0)
        return problem_printf(a, "negative number (%lld) not allowed: %.*s", (long long)*ret,
                              STR_F(text));
    return NULL;
}

/* ---- ranges: a, a-b, *, with a step ---- */

struct range {
    int64_t start, end, step;
    bool single;
};

static const char *parse_ends(struct arena *a, struct str text, struct str whole,
                              const struct bounds *b, struct range *r)
{
    struct str rest = text, low = str_cut(&rest, '-'), high;
    const char *why;

    r->single = !rest.p;
    if (str_eqc(low, "*") || str_eqc(low, "?")) {
        r->start = b->min;
        r->end = b->max;
        return NULL;
    }
    why = parse_number(a, low, b, &r->start);
    r->end = r->start;
    if (why || !rest.p)
        return why;
    high = str_cut(&rest, '-');
    if (rest.p)
        return problem_printf(a, "too many hyphens: %.*s", STR_F(whole));
    return parse_number(a, high, b, &r->end);
}

static const char *check_bounds(struct arena *a, struct str whole, const struct bounds *b,
                                const struct range *r)
{
    long long start = r->start, end = r->end;

    if (start < b->min)
        return problem_printf(a, "beginning of range (%lld) below minimum (%u): %.*s", start,
                              b->min, STR_F(whole));
    if (end > b->max)
        return problem_printf(a, "end of range (%lld) above maximum (%u): %.*s", end, b->max,
                              STR_F(whole));
    if (start > end)
        return problem_printf(a, "beginning of range (%lld) beyond end of range (%lld): %.*s",
                              start, end, STR_F(whole));
    if (!r->step)
        return problem_printf(a, "step of range should be a positive number: %.*s", STR_F(whole));
    return NULL;
}

static const char *check_range_text(struct arena *a, struct str whole, const struct bounds *b)
{
    struct str rest = whole, ends = str_cut(&rest, '/');
    struct range r = {.step = 1};
    const char *why = parse_ends(a, ends, whole, b, &r);

    if (why)
        return why;
    if (rest.p) {
        if (str_find(rest, '/') < rest.n)
            return problem_printf(a, "too many slashes: %.*s", STR_F(whole));
        why = parse_number(a, rest, NULL, &r.step);
        if (why)
            return why;
        if (r.single)
            r.end = b->max;
    }
    return check_bounds(a, whole, b, &r);
}

static const char *check_field(struct arena *a, struct str field, const struct bounds *b)
{
    do {
        struct str range = str_cut(&field, ',');
        const char *why = range.n ? check_range_text(a, range, b) : NULL;

        if (why)
            return why;
    } while (field.p);
    return NULL;
}

/* ---- the whole ---- */

static const char *check_descriptor(struct arena *a, struct str text)
{
    static const char *const known[] = {"@yearly", "@annually", "@monthly", "@weekly",
                                        "@daily",  "@midnight", "@hourly",  NULL};
    int64_t ns;

    if (kinds_one_of(text, known))
        return NULL;
    if (!str_has_prefix(text, STR("@every ")))
        return problem_printf(a, "unrecognized descriptor: %.*s", STR_F(text));
    if (duration_parse(str_from(text, 7), &ns))
        return NULL;
    return problem_printf(a, "failed to parse duration %.*s: time: invalid duration \"%.*s\"",
                          STR_F(text), STR_F(str_from(text, 7)));
}

static size_t split(struct str text, struct str *fields, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n;) {
        size_t from;

        while (i < text.n && (text.p[i] == ' ' || text.p[i] == '\t' || text.p[i] == '\n'))
            i++;
        from = i;
        while (i < text.n && text.p[i] != ' ' && text.p[i] != '\t' && text.p[i] != '\n')
            i++;
        if (i == from)
            break;
        if (n < max)
            fields[n] = str_sub(text, from, i - from);
        n++;
    }
    return n;
}

const char *kinds_cron_problem(struct arena *a, struct str schedule)
{
    struct str fields[16];
    struct buf b = BUF_INIT(1024);
    size_t n;

    if (str_has_prefix(schedule, STR("TZ=")) || str_has_prefix(schedule, STR("CRON_TZ="))) {
        size_t blank = str_find(schedule, ' ');

        if (blank == schedule.n)
            return "invalid schedule format: runtime error: slice bounds out of range";
        schedule = str_trim(str_from(schedule, blank));
    }
    if (schedule.n && schedule.p[0] == '@')
        return check_descriptor(a, schedule);
    n = split(schedule, fields, COUNT(fields));
    if (n == COUNT(FIELDS)) {
        for (size_t i = 0; i < n; i++) {
            const char *why = check_field(a, fields[i], &FIELDS[i]);

            if (why)
                return why;
        }
        return NULL;
    }
    for (size_t i = 0; i < n && i < COUNT(fields); i++) {
        buf_addc(&b, i ? " " : "");
        buf_add(&b, fields[i]);
    }
    struct str text =
        arena_printf(a, "expected exactly 5 fields, found %zu: [%.*s]", n, STR_F(buf_str(&b)));
    buf_fini(&b);
    return text.p;
}
