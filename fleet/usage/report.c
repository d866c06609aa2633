/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: a table for people, CSV and JSON for programs, FOCUS for billing tools. Each value is
 * rounded once, here. Must print what was checked (the balance) and what is not certain (estimated
 * ends, time without an observer) with every report. */
#include "report.h"

#include <assert.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/json_build.h>

#define LABEL               "label:"
#define MEMBER_INDENT       "  "
#define ITEM_INDENT         "    "
#define PIECE               65536 /* bytes, about, of a report that are handed on at a time */
#define HOUR_US             INT64_C(3600000000)
#define REPORT_TABLE_PLACES 4

static const char *const KINDS[] = {
    [USAGE_HELD] = "held", [USAGE_IDLE] = "idle", [USAGE_UNHEALTHY] = "unhealthy"};

/* --- arguments --- */

int report_columns(struct str list, unsigned *ret, struct str *ret_label, struct err *err)
{
    unsigned columns = 0;
    struct str label = STR("");

    while (list.p) {
        struct str name = str_trim(str_cut(&list, ','));
        unsigned i = 0;

        if (str_has_prefix(name, STR(LABEL))) {
            struct str key = str_from(name, sizeof(LABEL) - 1);

            if (!key.n || (label.n && !str_eq(label, key)))
                return err_set(err, &ERR_BAD_REQUEST, "want one label:key, as label:cost-center");
            label = key;
            columns |= 1u << USAGE_LABEL;
            continue;
        }
        while (i < N_USAGE_COLUMNS && !str_eqc(name, FLEET_USAGE_COLUMNS[i]))
            i++;
        if (i == N_USAGE_COLUMNS || i == USAGE_LABEL)
            return err_set(err, &ERR_BAD_REQUEST,
                           "\"%.*s\" is no column: want tenant, namespace, owner, pod, pool, "
                           "product, node, mode, label:key, reason or month",
                           STR_F(name));
        columns |= 1u << i;
    }
    *ret = columns;
    *ret_label = label;
    return 0;
}

int report_time(struct arena *a, struct str text, int64_t *ret_us, struct err *err)
{
    static const char *const ends[] = {"", "T00:00:00Z", "-01T00:00:00Z"};

    for (size_t i = 0; i < COUNT(ends); i++)
        if (time_parse(arena_printf(a, "%.*s%s", STR_F(text), ends[i]), ret_us))
            return 0;
    return err_set(err, &ERR_BAD_REQUEST,
                   "\"%.*s\" is no time: want 2026-11, 2026-11-26 or 2026-11-26T12:00:00Z",
                   STR_F(text));
}

/* --- values --- */

struct exact report_hours(struct exact gpu_us)
{
    struct exact h = EXACT_ZERO;
    bool fits = exact_mul(gpu_us, (struct exact){1, HOUR_US}, &h);

    assert(fits);
    return h;
}

static bool has(unsigned columns, unsigned column)
{
    return columns & (1u << column);
}

/* fleet_usage_compute() checked that it fits. */
static struct exact guaranteed(const struct fleet_usage_line *l)
{
    struct exact rest = EXACT_ZERO;
    bool fits = exact_sub(l->gpu_us, l->borrowed, &rest);

    assert(fits);
    return rest;
}

bool report_is_number(const struct usage *u, size_t i, size_t n)
{
    size_t numbers = 5 + (u->bound ? 3u : 0) + (u->measured ? 2u : 0);

    return i + numbers >= n && i + 3 != n; /* the last ones, but for the currency */
}

size_t report_line_cells(struct arena *a, const struct usage *u, const struct fleet_usage_line *l,
                         unsigned columns, unsigned places, struct str cells[REPORT_CELLS + 1])
{
    const struct exact parts[] = {guaranteed(l), l->borrowed, l->reserved};
    const struct exact uses[] = {l->idle_held, l->unmeasured};
    size_t n = 0;

    cells[n++] = str_c(KINDS[l->kind]);
    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        if (has(columns, i))
            cells[n++] = l->values[i];
    cells[n++] = exact_decimal(a, report_hours(l->gpu_us), places);
    for (size_t i = 0; u->bound && i < COUNT(parts); i++)
        cells[n++] =
            l->kind == USAGE_HELD ? exact_decimal(a, report_hours(parts[i]), places) : STR("");
    for (size_t i = 0; u->measured && i < COUNT(uses); i++)
        cells[n++] =
            l->kind == USAGE_HELD ? exact_decimal(a, report_hours(uses[i]), places) : STR("");
    cells[n++] = l->currency.n ? exact_decimal(a, l->cost, places) : STR("");
    cells[n++] = l->currency;
    cells[n++] = arena_printf(a, "%zu", l->pods);
    cells[n++] = arena_printf(a, "%zu", l->estimated);
    return n;
}

size_t report_head_cells(const struct usage *u, unsigned columns,
                         struct str cells[REPORT_CELLS + 1])
{
    static const char *const parts[] = {"guaranteed", "borrowed", "reservedUnused"};
    static const char *const last[] = {"cost", "currency", "pods", "estimated"};
    size_t n = 0;

    cells[n++] = STR("kind");
    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        if (has(columns, i))
            cells[n++] = i == USAGE_LABEL ? u->label : str_c(FLEET_USAGE_COLUMNS[i]);
    cells[n++] = STR("gpuHours");
    for (size_t i = 0; u->bound && i < COUNT(parts); i++)
        cells[n++] = str_c(parts[i]);
    if (u->measured) {
        cells[n++] = STR("idleHeld");
        cells[n++] = STR("unmeasured");
    }
    for (size_t i = 0; i < COUNT(last); i++)
        cells[n++] = str_c(last[i]);
    return n;
}

/* sum += more, which fits in hours as well. */
static bool add(struct exact *sum, struct exact more)
{
    struct exact unused;

    return exact_add(*sum, more, sum) && exact_mul(*sum, (struct exact){1, HOUR_US}, &unused);
}

/* Of all pools and months; false when a sum does not fit. */
static bool total(const struct usage *u, struct fleet_usage_balance *ret)
{
    struct fleet_usage_balance t = {.capacity = EXACT_ZERO,
                                    .held = EXACT_ZERO,
                                    .idle = EXACT_ZERO,
                                    .unhealthy = EXACT_ZERO,
                                    .unmatched = EXACT_ZERO,
                                    .borrowed = EXACT_ZERO,
                                    .reserved = EXACT_ZERO,
                                    .reserved_idle = EXACT_ZERO};
    bool fits = true;

    for (size_t i = 0; i < u->n_balances; i++) {
        const struct fleet_usage_balance *b = &u->balances[i];

        fits &= add(&t.capacity, b->capacity) && add(&t.held, b->held) && add(&t.idle, b->idle) &&
                add(&t.unhealthy, b->unhealthy) && add(&t.unmatched, b->unmatched) &&
                add(&t.borrowed, b->borrowed) && add(&t.reserved, b->reserved) &&
                add(&t.reserved_idle, b->reserved_idle);
    }
    *ret = t;
    return fits;
}

/* --- table --- */

static void print_padded(struct buf *out, struct str cell, size_t width, bool right, bool last)
{
    size_t blanks = width > cell.n ? width - cell.n : 0;

    for (size_t i = 0; right && i < blanks; i++)
        buf_char(out, ' ');
    buf_add(out, cell);
    for (size_t i = 0; !right && !last && i < blanks; i++)
        buf_char(out, ' ');
    buf_addc(out, last ? "\n" : "  ");
}

static struct str upper(struct arena *a, struct str s)
{
    char *p = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        p[i] = (char)(p[i] >= 'a' && p[i] <= 'z' ? p[i] - 'a' + 'A' : p[i]);
    return (struct str){p, s.n};
}

static void widen(size_t widths[REPORT_CELLS + 1], const struct str *cells, size_t n)
{
    for (size_t k = 0; k < n; k++)
        widths[k] = cells[k].n > widths[k] ? cells[k].n : widths[k];
}

/* Each line is formatted twice, for the widths and to be printed: a year has more than fit. */
static void print_lines(struct report_out *to, const struct usage *u, unsigned columns)
{
    struct str cells[REPORT_CELLS + 1], head[REPORT_CELLS + 1];
    size_t n = report_head_cells(u, columns, head), widths[REPORT_CELLS + 1] = {0};
    struct arena *names = arena_new(0);

    for (size_t k = 0; k < n; k++)
        head[k] = str_eqc(head[k], "gpuHours")         ? STR("GPU-HOURS")
                  : str_eqc(head[k], "reservedUnused") ? STR("RESERVED-UNUSED")
                  : str_eqc(head[k], "idleHeld")       ? STR("IDLE-HELD")
                                                       : upper(names, head[k]);
    widen(widths, head, n);
    for (size_t i = 0; i < u->n_lines; i++, arena_reset(to->a))
        widen(widths, cells,
              report_line_cells(to->a, u, u->lines[i], columns, REPORT_TABLE_PLACES, cells));
    for (size_t k = 0; k < n; k++)
        print_padded(&to->buf, head[k], widths[k], report_is_number(u, k, n), k + 1 == n);
    for (size_t i = 0; i < u->n_lines; i++, report_line_ends(to)) {
        report_line_cells(to->a, u, u->lines[i], columns, REPORT_TABLE_PLACES, cells);
        for (size_t k = 0; k < n; k++)
            print_padded(&to->buf, cells[k], widths[k], report_is_number(u, k, n), k + 1 == n);
    }
    arena_free(names);
}

static bool has_currency(const struct str *list, size_t n, struct str currency)
{
    return str_list_has((struct str_list){list, n}, currency);
}

/* A sum for each currency of what is held, of which there are few. */
static void print_costs(struct arena *a, struct buf *out, const struct usage *u)
{
    struct str *seen = NULL;
    size_t n = 0, cap = 0;

    for (size_t i = 0; i < u->n_lines; i++) {
        struct str currency = u->lines[i]->currency;
        struct exact sum = EXACT_ZERO;
        bool fits = true;

        if (u->lines[i]->kind != USAGE_HELD || !currency.n || has_currency(seen, n, currency))
            continue;
        GROW(seen, n, cap);
        seen[n++] = currency;
        for (size_t k = i; k < u->n_lines; k++)
            if (u->lines[k]->kind == USAGE_HELD && str_eq(u->lines[k]->currency, currency))
                fits &= exact_add(sum, u->lines[k]->cost, &sum);
        buf_printf(out, "cost of what was held: %.*s %.*s\n",
                   STR_F(fits ? exact_decimal(a, sum, 2) : STR("does not fit")), STR_F(currency));
    }
    mem_free(seen);
}

static struct str table_hours(struct arena *a, struct exact gpu_us)
{
    return exact_decimal(a, report_hours(gpu_us), REPORT_TABLE_PLACES);
}

/* What was checked of guarantees: t's sums, of which each of these is a part. */
static void print_guarantees(struct arena *a, struct buf *out, const struct fleet_usage_balance *t)
{
    struct exact within = EXACT_ZERO, available = EXACT_ZERO, lent = EXACT_ZERO;

    if (!exact_sub(t->held, t->borrowed, &within) ||
        !exact_sub(t->idle, t->reserved_idle, &available) ||
        !exact_sub(t->reserved, t->reserved_idle, &lent))
        return;
    buf_printf(out, "held: guaranteed %.*s + borrowed %.*s; idle: reserved %.*s + free %.*s\n",
               STR_F(table_hours(a, within)), STR_F(table_hours(a, t->borrowed)),
               STR_F(table_hours(a, t->reserved_idle)), STR_F(table_hours(a, available)));
    buf_printf(
        out,
        "guarantees that their tenants did not use: %.*s GPU-hours, of which %.*s were lent, "
        "or not healthy\n",
        STR_F(table_hours(a, t->reserved)), STR_F(table_hours(a, lent)));
}

static void print_sums(struct arena *a, struct buf *out, const struct usage *u)
{
    struct fleet_usage_balance t;

    if (!total(u, &t)) {
        buf_addc(out, "the sum over all pools does not fit; each pool's was checked\n");
        return;
    }
    buf_printf(out, "held %.*s + idle %.*s + unhealthy %.*s = %.*s GPU-hours",
               STR_F(exact_decimal(a, report_hours(t.held), REPORT_TABLE_PLACES)),
               STR_F(exact_decimal(a, report_hours(t.idle), REPORT_TABLE_PLACES)),
               STR_F(exact_decimal(a, report_hours(t.unhealthy), REPORT_TABLE_PLACES)),
               STR_F(exact_decimal(a, report_hours(t.capacity), REPORT_TABLE_PLACES)));
    if (t.unmatched.num)
        buf_printf(out, " of capacity + %.*s held beyond the capacity on record",
                   STR_F(exact_decimal(a, report_hours(t.unmatched), REPORT_TABLE_PLACES)));
    else
        buf_addc(out, " of capacity");
    buf_printf(out, " (checked exactly, pool by pool and month by month)\n");
    if (u->bound)
        print_guarantees(a, out, &t);
}

void report_sums(struct arena *a, struct buf *out, const struct usage *u)
{
    print_sums(a, out, u);
    print_costs(a, out, u);
    if (!u->measured)
        buf_addc(out, "whether held GPUs were used was not measured\n");
    if (u->unobserved_us)
        buf_printf(out, "no process observed the host for %.*s s of this time\n",
                   STR_F(exact_decimal(a, (struct exact){u->unobserved_us, 1000000}, 1)));
}

static void print_table(struct report_out *to, const struct usage *u, unsigned columns)
{
    buf_printf(&to->buf, "GPU usage from %.*s to %.*s\n\n",
               STR_F(time_format_s(to->a, u->from_us / 1000000)),
               STR_F(time_format_s(to->a, u->until_us / 1000000)));
    print_lines(to, u, columns);
    buf_char(&to->buf, '\n');
    report_sums(to->a, &to->buf, u);
}

/* --- CSV --- */

/* RFC 4180. A cell that a spreadsheet would take for a formula begins with a quote mark: tenants
 * choose names. */
static void print_cell(struct buf *out, struct str cell, bool first)
{
    bool quoted = memchr(cell.p ? cell.p : "", '"', cell.n) || str_find(cell, ',') < cell.n ||
                  str_find(cell, '\n') < cell.n || str_find(cell, '\r') < cell.n;

    if (!first)
        buf_char(out, ',');
    if (quoted)
        buf_char(out, '"');
    if (cell.n && memchr("=+-@", cell.p[0], 4))
        buf_char(out, '\'');
    for (size_t i = 0; i < cell.n; i++) {
        if (cell.p[i] == '"')
            buf_char(out, '"');
        buf_char(out, cell.p[i]);
    }
    if (quoted)
        buf_char(out, '"');
}

static void print_row(struct buf *out, const struct str *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_cell(out, cells[i], i == 0);
    buf_addc(out, "\r\n");
}

static void print_csv(struct report_out *to, const struct usage *u, unsigned columns)
{
    struct str cells[REPORT_CELLS + 1];

    print_row(&to->buf, cells, report_head_cells(u, columns, cells));
    for (size_t i = 0; i < u->n_lines; i++, report_line_ends(to))
        print_row(&to->buf, cells,
                  report_line_cells(to->a, u, u->lines[i], columns, REPORT_PLACES, cells));
}

/* --- JSON --- */

static void put_parts(struct arena *a, cJSON *into, const struct fleet_usage_line *l)
{
    const struct {
        const char *name, *exact;
        struct exact gpu_us;
    } parts[] = {{"guaranteed", "guaranteedExact", guaranteed(l)},
                 {"borrowed", "borrowedExact", l->borrowed},
                 {"reservedUnused", "reservedUnusedExact", l->reserved}};

    for (size_t i = 0; i < COUNT(parts); i++) {
        struct exact hours = report_hours(parts[i].gpu_us);

        json_set_str(a, into, parts[i].name, exact_decimal(a, hours, REPORT_PLACES));
        json_set_str(a, into, parts[i].exact, exact_fraction(a, hours));
    }
}

cJSON *report_line_json(struct arena *a, const struct usage *u, const struct fleet_usage_line *l,
                        unsigned columns)
{
    cJSON *ret = json_object(a, JSON("kind", KINDS[l->kind]));

    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        if (has(columns, i))
            json_set_str(a, ret, FLEET_USAGE_COLUMNS[i], l->values[i]);
    if (has(columns, USAGE_LABEL))
        json_set_str(a, ret, "labelKey", u->label);
    json_put(a, ret, JSON("gpuHours", exact_decimal(a, report_hours(l->gpu_us), REPORT_PLACES)),
             JSON("gpuHoursExact", exact_fraction(a, report_hours(l->gpu_us))));
    if (u->bound && l->kind == USAGE_HELD)
        put_parts(a, ret, l);
    if (u->measured && l->kind == USAGE_HELD) {
        struct exact idle = report_hours(l->idle_held), unknown = report_hours(l->unmeasured);

        json_put(a, ret, JSON("idleHeld", exact_decimal(a, idle, REPORT_PLACES)),
                 JSON("idleHeldExact", exact_fraction(a, idle)),
                 JSON("unmeasured", exact_decimal(a, unknown, REPORT_PLACES)),
                 JSON("unmeasuredExact", exact_fraction(a, unknown)));
    }
    if (l->currency.n)
        json_put(a, ret, JSON("cost", exact_decimal(a, l->cost, REPORT_PLACES)),
                 JSON("costExact", exact_fraction(a, l->cost)), JSON("currency", l->currency));
    if (l->kind == USAGE_HELD)
        json_put(a, ret, JSON_I64("pods", (int64_t)l->pods),
                 JSON_I64("estimated", (int64_t)l->estimated),
                 JSON_I64("running", (int64_t)l->open));
    return ret;
}

cJSON *report_balance_json(struct arena *a, const struct usage *u,
                           const struct fleet_usage_balance *b)
{
    cJSON *ret = json_object(a, JSON("pool", b->pool), JSON("month", b->month),
                             JSON("capacity", exact_fraction(a, report_hours(b->capacity))),
                             JSON("held", exact_fraction(a, report_hours(b->held))),
                             JSON("idle", exact_fraction(a, report_hours(b->idle))),
                             JSON("unhealthy", exact_fraction(a, report_hours(b->unhealthy))),
                             JSON("unmatched", exact_fraction(a, report_hours(b->unmatched))));

    if (u->bound)
        json_put(a, ret, JSON("borrowed", exact_fraction(a, report_hours(b->borrowed))),
                 JSON("reservedUnused", exact_fraction(a, report_hours(b->reserved))),
                 JSON("reservedIdle", exact_fraction(a, report_hours(b->reserved_idle))));
    return ret;
}

/* An item of an array that is a member of the document: deeper by two levels. */
static void print_item(struct report_out *to, const cJSON *item, bool first)
{
    struct buf text = BUF_INIT(0);

    buf_addc(&to->buf, first ? "\n" ITEM_INDENT : ",\n" ITEM_INDENT);
    json_print_pretty(&text, item);
    for (struct str rest = buf_str(&text); rest.n;) {
        buf_add(&to->buf, str_cut(&rest, '\n'));
        if (rest.p)
            buf_addc(&to->buf, "\n" ITEM_INDENT);
    }
    buf_fini(&text);
    report_line_ends(to);
}

static void print_member(struct report_out *to, const char *name, struct str value, bool last)
{
    buf_printf(&to->buf, MEMBER_INDENT "\"%s\": ", name);
    buf_json_string(&to->buf, value);
    buf_addc(&to->buf, last ? "\n" : ",\n");
}

static void print_json(struct report_out *to, const struct usage *u, unsigned columns)
{
    struct buf *out = &to->buf;

    buf_addc(out, "{\n");
    print_member(to, "from", time_format_us(to->a, u->from_us), false);
    print_member(to, "until", time_format_us(to->a, u->until_us), false);
    buf_addc(out, MEMBER_INDENT "\"lines\": [");
    for (size_t i = 0; i < u->n_lines; i++)
        print_item(to, report_line_json(to->a, u, u->lines[i], columns), i == 0);
    buf_addc(out, u->n_lines ? "\n" MEMBER_INDENT "],\n" : "],\n");
    buf_addc(out, MEMBER_INDENT "\"balances\": [");
    for (size_t i = 0; i < u->n_balances; i++)
        print_item(to, report_balance_json(to->a, u, &u->balances[i]), i == 0);
    buf_addc(out, u->n_balances ? "\n" MEMBER_INDENT "],\n" : "],\n");
    print_member(to, "unobservedSeconds",
                 exact_decimal(to->a, (struct exact){u->unobserved_us, 1000000}, 6), true);
    buf_addc(out, "}\n");
}

/* --- months --- */

static struct str month_edge(struct arena *a, struct str month, bool end)
{
    struct str first = arena_printf(a, "%.*s-01T00:00:00Z", STR_F(month));
    int64_t us = 0;

    if (!end || !time_parse(first, &us))
        return first;
    return arena_printf(a, "%.*s-01T00:00:00Z",
                        STR_F(str_sub(time_format_s(a, us / 1000000 + 31 * 86400), 0, 7)));
}

int report_month(struct arena *a, struct str month, int64_t *ret_from, int64_t *ret_until,
                 struct err *err)
{
    int64_t from, until;

    if (month.n != 7 || !time_parse(month_edge(a, month, false), &from) ||
        !time_parse(month_edge(a, month, true), &until))
        return err_set(err, &ERR_BAD_REQUEST, "\"%.*s\" is no month: want 2026-11", STR_F(month));
    *ret_from = from;
    *ret_until = until;
    return 0;
}

/* --- FOCUS: finops.org's open cost and usage specification --- */

static struct str charge_edge(struct arena *a, const struct usage *u, struct str month, bool end)
{
    struct str edge = month_edge(a, month, end);
    struct str own = time_format_s(a, (end ? u->until_us : u->from_us) / 1000000);
    bool use_own = end ? str_cmp(own, edge) < 0 : str_cmp(own, edge) > 0;

    return use_own ? own : edge;
}

static cJSON *tags_of(struct arena *a, const struct usage *u, const struct fleet_usage_line *l)
{
    cJSON *tags = json_object(
        a, JSON("pool", l->values[USAGE_POOL]), JSON("product", l->values[USAGE_PRODUCT]),
        JSON_NONEMPTY("namespace", l->values[USAGE_NAMESPACE]),
        JSON_NONEMPTY("owner", l->values[USAGE_OWNER]), JSON_NONEMPTY("pod", l->values[USAGE_POD]),
        JSON_NONEMPTY("mode", l->values[USAGE_MODE]),
        JSON_NONEMPTY("reason", l->values[USAGE_REASON]));

    if (u->bound)
        json_set_str(a, tags, "borrowedGPUHours",
                     exact_decimal(a, report_hours(l->borrowed), REPORT_PLACES));
    if (u->measured)
        json_put(
            a, tags,
            JSON("idleHeldGPUHours", exact_decimal(a, report_hours(l->idle_held), REPORT_PLACES)),
            JSON("unmeasuredGPUHours",
                 exact_decimal(a, report_hours(l->unmeasured), REPORT_PLACES)));
    if (l->values[USAGE_LABEL].n) /* a key of the configuration; not one of those above */
        json_set_str(a, tags, arena_printf(a, "binding/%.*s", STR_F(u->label)).p,
                     l->values[USAGE_LABEL]);
    return tags;
}

static void print_charge(struct arena *a, struct buf *out, const struct usage *u,
                         const struct fleet_usage_line *l)
{
    struct str cost = exact_decimal(a, l->cost, REPORT_PLACES);
    struct str list = exact_decimal(a, l->list, REPORT_PLACES);
    struct str quantity = exact_decimal(a, report_hours(l->gpu_us), REPORT_PLACES);
    struct str month = l->values[USAGE_MONTH];
    const struct str cells[] = {
        l->values[USAGE_TENANT],
        l->values[USAGE_TENANT],
        month_edge(a, month, false),
        month_edge(a, month, true),
        charge_edge(a, u, month, false),
        charge_edge(a, u, month, true),
        STR("Usage"),
        arena_printf(a, "GPU hours of pool %.*s", STR_F(l->values[USAGE_POOL])),
        cost, /* billed */
        cost, /* effective */
        list,
        cost, /* contracted: borrowFactor is agreed upon */
        l->currency,
        quantity,
        STR("GPU-Hours"),
        quantity,
        STR("GPU-Hours"),
        STR("sublet"),
        STR("AI and Machine Learning"),
        STR("GPU pool"),
        l->values[USAGE_POOL],
        l->values[USAGE_PRODUCT],
        STR(""), /* a host cluster has no region */
        l->values[USAGE_TENANT],
        STR(""), /* no correction: a statement is never issued twice */
        STR("sublet"),
        STR("sublet"),
        json_text(a, tags_of(a, u, l)),
    };

    print_row(out, cells, COUNT(cells));
}

static void print_focus(struct report_out *to, const struct usage *u)
{
    buf_addc(&to->buf,
             "BillingAccountId,SubAccountId,BillingPeriodStart,BillingPeriodEnd,"
             "ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeDescription,BilledCost,"
             "EffectiveCost,ListCost,ContractedCost,BillingCurrency,PricingQuantity,"
             "PricingUnit,ConsumedQuantity,ConsumedUnit,ProviderName,ServiceCategory,"
             "ServiceName,SkuId,ResourceType,RegionId,BillingAccountName,ChargeClass,"
             "InvoiceIssuerName,PublisherName,Tags\r\n");
    for (size_t i = 0; i < u->n_lines; i++, report_line_ends(to))
        if (u->lines[i]->kind == USAGE_HELD && u->lines[i]->gpu_us.num)
            print_charge(to->a, &to->buf, u, u->lines[i]);
}

/* --- the whole --- */

static void hand_on(struct report_out *to)
{
    if (!to->sink)
        return;
    to->sink->write(to->sink->ctx, buf_str(&to->buf));
    buf_clear(&to->buf);
}

void report_line_ends(struct report_out *to)
{
    arena_reset(to->a);
    if (to->buf.n >= PIECE)
        hand_on(to);
}

static void print(struct report_out *to, const struct usage *u, unsigned columns,
                  enum report_format format)
{
    if (format == REPORT_CSV)
        print_csv(to, u, columns);
    else if (format == REPORT_JSON)
        print_json(to, u, columns);
    else if (format == REPORT_FOCUS)
        print_focus(to, u);
    else if (format == REPORT_HTML)
        report_html(to, u, columns);
    else
        print_table(to, u, columns);
}

void report_write(const struct report_sink *sink, const struct usage *u, unsigned columns,
                  enum report_format format)
{
    struct report_out to = {.a = arena_new(0), .buf = BUF_INIT(0), .sink = sink};

    print(&to, u, columns, format);
    hand_on(&to);
    buf_fini(&to.buf);
    arena_free(to.a);
}

void report_print(struct buf *out, const struct usage *u, unsigned columns,
                  enum report_format format)
{
    struct report_out to = {.a = arena_new(0), .buf = *out};

    print(&to, u, columns, format);
    *out = to.buf;
    arena_free(to.a);
}
