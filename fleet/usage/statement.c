/* SPDX-License-Identifier: Apache-2.0 */
/* Issues statements: usage of a period that is over and was observed to its end, as a signed object
 * that follows the one before it. Must issue one statement of a period, ever: what was recorded is
 * what is printed again, whatever the ledger has learnt since. Must not record a statement that
 * does not verify. */
#include "statement.h"

#include "report.h"

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/json_build.h>

#define COLUMNS                                                                                    \
    (1u << USAGE_TENANT | 1u << USAGE_NAMESPACE | 1u << USAGE_POOL | 1u << USAGE_PRODUCT |         \
     1u << USAGE_MONTH)

struct issuing {
    struct arena *a;
    const struct statement_request *o;
    struct statement_rows *rows;
    struct fleet_records records;
    struct usage usage;
    struct err *err;
};

static struct str at(const struct issuing *s, int64_t us)
{
    return time_format_s(s->a, us / 1000000);
}

/* --- the object --- */

/* It holds for a part of the period: from its begin, or since then. */
static bool price_counts(const struct issuing *s, size_t which)
{
    const struct fleet_records *r = &s->records;
    const struct fleet_price *price = &r->prices[which];
    bool first = true;

    for (size_t i = 0; i < r->n_prices; i++) {
        if (!str_eq(r->prices[i].pool, price->pool))
            continue;
        if (i > which && r->prices[i].from_us <= s->usage.from_us)
            return false;
        first &= i >= which;
    }
    return first || price->from_us < s->usage.until_us;
}

static bool has_pool(const cJSON *lines, struct str pool)
{
    json_each(l, lines) if (str_eq(json_str(json_get(l, "pool")), pool)) return true;
    return false;
}

static cJSON *price_json(const struct issuing *s, const struct fleet_price *p)
{
    cJSON *ret =
        json_object(s->a, JSON("pool", p->pool), JSON("from", time_format_us(s->a, p->from_us)),
                    JSON("priceExact", exact_fraction(s->a, exact_of(p->price))),
                    JSON("currency", p->currency));

    if (p->borrow.den && p->borrow.num != p->borrow.den)
        json_put(s->a, ret, JSON("borrowFactorExact", exact_fraction(s->a, exact_of(p->borrow))));
    return ret;
}

static cJSON *prices_json(const struct issuing *s, const cJSON *lines)
{
    cJSON *ret = json_new_array(s->a);

    for (size_t i = 0; i < s->records.n_prices; i++) {
        const struct fleet_price *p = &s->records.prices[i];

        if (price_counts(s, i) && has_pool(lines, p->pool))
            json_append(ret, price_json(s, p));
    }
    return ret;
}

static cJSON *lines_json(const struct issuing *s)
{
    cJSON *ret = json_new_array(s->a);

    for (size_t i = 0; i < s->usage.n_lines; i++) {
        const struct fleet_usage_line *l = s->usage.lines[i];

        if (!s->o->tenant.n ||
            (l->kind == USAGE_HELD && str_eq(l->values[USAGE_TENANT], s->o->tenant)))
            json_append(ret, report_line_json(s->a, &s->usage, l, COLUMNS));
    }
    return ret;
}

static cJSON *balances_json(const struct issuing *s)
{
    cJSON *ret = json_new_array(s->a);

    for (size_t i = 0; !s->o->tenant.n && i < s->usage.n_balances; i++)
        json_append(ret, report_balance_json(s->a, &s->usage, &s->usage.balances[i]));
    return ret;
}

static int make_object(const struct issuing *s, int64_t number, struct str previous, struct str key,
                       cJSON **ret)
{
    cJSON *lines = lines_json(s), *totals;

    if (statement_totals(s->a, lines, &totals, s->err))
        return -1;
    *ret = json_object(
        s->a, JSON("format", STATEMENT_FORMAT),
        JSON("ledger",
             arena_printf(s->a, "%016llx", (unsigned long long)statement_rows_identity(s->rows))),
        JSON_NONEMPTY("tenant", s->o->tenant), JSON_I64("number", number),
        JSON("previous", previous), JSON("key", key),
        JSON("from", time_format_us(s->a, s->o->from_us)),
        JSON("until", time_format_us(s->a, s->o->until_us)),
        JSON("observedFrom", time_format_us(s->a, s->usage.from_us)),
        JSON("unobservedSeconds",
             exact_decimal(s->a, (struct exact){s->usage.unobserved_us, 1000000}, 6)),
        JSON("prices", prices_json(s, lines)), JSON("lines", lines),
        JSON("balances", balances_json(s)), JSON("totals", totals));
    return 0;
}

/* --- issue --- */

static int compute(struct issuing *s)
{
    const struct statement_request *o = s->o;

    return ledger_read(s->a, o->location, o->from_us, o->until_us, &s->records, s->err) ||
                   fleet_usage_compute(s->a, &s->records, o->from_us, o->until_us, COLUMNS,
                                       &s->usage, s->err)
               ? -1
               : 0;
}

/* Why there can be no statement of the period, yet or ever. */
static int check_period(const struct issuing *s, const struct statement_row *last)
{
    const struct statement_request *o = s->o;

    if (o->from_us >= o->until_us)
        return err_set(s->err, &ERR_BAD_REQUEST, "the period is empty");
    if (last->number && last->until_us != o->from_us)
        return err_set(s->err, &ERR_BAD_REQUEST,
                       "statement %lld ends at %.*s, where the next one begins, not at %.*s",
                       (long long)last->number, STR_F(at(s, last->until_us)),
                       STR_F(at(s, o->from_us)));
    if (o->now_us < o->until_us)
        return err_set(s->err, &ERR_BAD_REQUEST, "the period is not over: it ends at %.*s",
                       STR_F(at(s, o->until_us)));
    if (s->records.seen_us < o->until_us)
        return err_set(s->err, &ERR_BAD_REQUEST,
                       "the period was not observed to its end at %.*s: the host was last observed "
                       "at %.*s",
                       STR_F(at(s, o->until_us)), STR_F(at(s, s->records.seen_us)));
    if (s->records.seen_us > o->now_us)
        return err_set(
            s->err, &ERR_BAD_REQUEST,
            "the ledger says that the host was observed at %.*s, which is in the future: "
            "a clock was wrong",
            STR_F(at(s, s->records.seen_us)));
    if (s->records.begin_us >= o->until_us)
        return err_set(s->err, &ERR_BAD_REQUEST, "the ledger begins later, at %.*s",
                       STR_F(at(s, s->records.begin_us)));
    if (!o->private_pem.n)
        return err_set(s->err, &ERR_BAD_REQUEST,
                       "the period has no statement yet, and no key to sign one is given");
    return 0;
}

static int issue_next(struct issuing *s, const struct statement_row *last, struct str *ret)
{
    struct statement_row row = {last->number + 1, s->o->from_us, s->o->until_us, STR("")};
    struct str previous = STR(""), key, public_pem;
    struct statement before, made;
    cJSON *object;

    if (last->number) {
        if (statement_read(s->a, last->text, &before, &key, s->err))
            return err_wrap(s->err, "statement %lld", (long long)last->number);
        previous = before.sha256;
    }
    if (statement_key_id(s->a, s->o->private_pem, &key, s->err) ||
        make_object(s, row.number, previous, key, &object))
        return -1;
    if (!last->number && s->o->tenant.n && !json_count(json_get(object, "lines")))
        return err_set(s->err, &ERR_BAD_REQUEST, "tenant \"%.*s\" held no GPUs in the period",
                       STR_F(s->o->tenant));
    struct buf text = BUF_INIT(0);
    json_print_pretty(&text, object);
    int result = statement_sign(s->a, buf_str(&text), s->o->private_pem, &row.text, s->err);
    buf_fini(&text);
    if (result || statement_key_public(s->a, s->o->private_pem, &public_pem, s->err) ||
        statement_verify(s->a, row.text, public_pem, &made, s->err) ||
        statement_rows_add(s->rows, s->o->tenant, &row, s->err))
        return -1;
    *ret = row.text;
    return 0;
}

/* Would it be issued with other values now? */
static int compare(const struct issuing *s, const struct statement_row *row, bool *ret_differs)
{
    static const char *const parts[] = {"prices", "lines", "balances", "totals"};
    struct statement issued;
    struct str key;
    cJSON *was, *now;

    if (statement_read(s->a, row->text, &issued, &key, s->err) ||
        json_parse(s->a, row->text, &was, s->err) ||
        make_object(s, row->number, issued.previous, key, &now))
        return err_wrap(s->err, "statement %lld", (long long)row->number);
    *ret_differs = false;
    for (size_t i = 0; i < COUNT(parts); i++)
        *ret_differs |= !json_equal(json_get(was, parts[i]), json_get(now, parts[i]));
    return 0;
}

static int issue(struct issuing *s, struct str *ret, bool *ret_differs)
{
    struct statement_row same, last;

    if (statement_rows_find(s->rows, s->a, s->o->tenant, s->o->from_us, s->o->until_us, &same,
                            &last, s->err) ||
        compute(s))
        return -1;
    *ret_differs = false;
    if (same.number) {
        *ret = same.text;
        return compare(s, &same, ret_differs);
    }
    return check_period(s, &last) || issue_next(s, &last, ret) ? -1 : 0;
}

int statement_issue(struct arena *a, const struct statement_request *request, struct str *ret,
                    bool *ret_differs, struct err *err)
{
    struct issuing s = {.a = a, .o = request, .err = err};
    int result;

    if (statement_rows_open(request->location, &s.rows, err))
        return -1;
    result = issue(&s, ret, ret_differs);
    statement_rows_close(s.rows);
    return result;
}
