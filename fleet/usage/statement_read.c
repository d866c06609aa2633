/* SPDX-License-Identifier: Apache-2.0 */
/* What a statement says, checked against itself. Pure. Why: a signature proves who issued it, not
 * that it adds up; a tenant checks both. Must not trust a value that another value of the file
 * gives: decimals, sums and totals are computed again from the exact fractions. */
#include "statement.h"

#include "report.h"

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/json_build.h>

#define COST_PLACES 2
#define TOO_GREAT   "a sum does not fit"

struct line {
    struct str kind, tenant, pool, month, currency;
    struct exact hours, cost;
    struct exact borrowed; /* of the hours */
};
struct total {
    struct map_entry by_key;
    struct str tenant, currency;
    struct exact hours, cost;
};
struct reading {
    struct arena *a;
    struct line *lines;
    size_t n_lines;
    struct err *err;
};

static int bad(struct reading *r, const char *what, struct str value)
{
    return err_set(r->err, &ERR_BAD_REQUEST, "%s: \"%.*s\"", what, STR_F(str_clip(value, 200)));
}

/* --- lines --- */

/* An exact value and its decimals, which say the same. */
static int read_pair(struct reading *r, const cJSON *object, const char *exact, const char *decimal,
                     unsigned places, struct exact *ret)
{
    struct str fraction = json_str(json_get(object, exact));

    if (!exact_parse(r->a, fraction, ret))
        return bad(r, arena_printf(r->a, "%s is no fraction in lowest terms", exact).p, fraction);
    if (!str_eq(exact_decimal(r->a, *ret, places), json_str(json_get(object, decimal))))
        return bad(r, arena_printf(r->a, "%s is not %s, rounded", decimal, exact).p,
                   json_str(json_get(object, decimal)));
    return 0;
}

/* Where guarantees are on record: which of its hours are beyond one. */
static int read_parts(struct reading *r, const cJSON *item, struct line *ret)
{
    struct exact within, unused, sum;

    if (!json_get(item, "borrowedExact"))
        return 0;
    if (read_pair(r, item, "guaranteedExact", "guaranteed", REPORT_PLACES, &within) ||
        read_pair(r, item, "borrowedExact", "borrowed", REPORT_PLACES, &ret->borrowed) ||
        read_pair(r, item, "reservedUnusedExact", "reservedUnused", REPORT_PLACES, &unused))
        return -1;
    if (!exact_add(within, ret->borrowed, &sum) || exact_cmp(sum, ret->hours))
        return bad(r, "guaranteed and borrowed hours are not the hours of a line, pool", ret->pool);
    return 0;
}

static int read_line(struct reading *r, const cJSON *item, struct line *ret)
{
    *ret = (struct line){.kind = json_str(json_get(item, "kind")),
                         .tenant = json_str(json_get(item, "tenant")),
                         .pool = json_str(json_get(item, "pool")),
                         .month = json_str(json_get(item, "month")),
                         .currency = json_str(json_get(item, "currency")),
                         .hours = EXACT_ZERO,
                         .cost = EXACT_ZERO,
                         .borrowed = EXACT_ZERO};
    if (str_word_index("held|idle|unhealthy", ret->kind) < 0)
        return bad(r, "unknown kind of line", ret->kind);
    if (read_pair(r, item, "gpuHoursExact", "gpuHours", REPORT_PLACES, &ret->hours) ||
        read_parts(r, item, ret))
        return -1;
    if (!ret->currency.n)
        return json_get(item, "costExact") ? bad(r, "a cost without a currency, pool", ret->pool)
                                           : 0;
    return read_pair(r, item, "costExact", "cost", REPORT_PLACES, &ret->cost);
}

static int read_lines(struct reading *r, const cJSON *lines)
{
    r->lines = arena_alloc(r->a, (json_count(lines) + 1) * sizeof(*r->lines));
    json_each(item, lines)
    {
        if (read_line(r, item, &r->lines[r->n_lines]))
            return err_wrap(r->err, "line %zu", r->n_lines + 1);
        r->n_lines++;
    }
    return 0;
}

/* --- totals --- */

static struct total *total_of(struct reading *r, struct map *totals, const struct line *l)
{
    struct str key =
        arena_printf(r->a, "%zu:%.*s%.*s", l->tenant.n, STR_F(l->tenant), STR_F(l->currency));
    struct map_entry *found = map_get(totals, key);
    struct total *t =
        found ? CONTAINER(found, struct total, by_key) : ARENA_NEW(r->a, struct total);

    if (!found) {
        t->tenant = l->tenant;
        t->currency = l->currency;
        t->hours = t->cost = EXACT_ZERO;
        map_put(totals, &t->by_key, key);
    }
    return t;
}

struct printing {
    struct arena *a;
    cJSON *list;
};

static void print_total(void *ctx, struct map_entry *e)
{
    struct printing *p = ctx;
    const struct total *t = CONTAINER(e, struct total, by_key);
    cJSON *item = json_object(p->a, JSON("tenant", t->tenant),
                              JSON("gpuHoursExact", exact_fraction(p->a, t->hours)));

    if (t->currency.n)
        json_put(p->a, item, JSON("cost", exact_decimal(p->a, t->cost, COST_PLACES)),
                 JSON("costExact", exact_fraction(p->a, t->cost)), JSON("currency", t->currency));
    json_append(p->list, item);
}

static int make_totals(struct reading *r, cJSON **ret)
{
    struct printing p = {r->a, json_new_array(r->a)};
    struct map totals = {0};
    bool fits = true;

    for (size_t i = 0; i < r->n_lines; i++) {
        const struct line *l = &r->lines[i];
        struct total *t;

        if (!str_eqc(l->kind, "held"))
            continue;
        t = total_of(r, &totals, l);
        fits &= exact_add(t->hours, l->hours, &t->hours) && exact_add(t->cost, l->cost, &t->cost);
    }
    map_each(&totals, print_total, &p);
    map_clear(&totals);
    *ret = p.list;
    return fits ? 0 : err_set(r->err, &ERR_BAD_REQUEST, TOO_GREAT);
}

int statement_totals(struct arena *a, const cJSON *lines, cJSON **ret, struct err *err)
{
    struct reading r = {.a = a, .err = err};

    return read_lines(&r, lines) || make_totals(&r, ret) ? -1 : 0;
}

static int check_totals(struct reading *r, const cJSON *given)
{
    cJSON *own;

    if (make_totals(r, &own))
        return -1;
    return json_equal(own, given)
               ? 0
               : err_set(r->err, &ERR_BAD_REQUEST, "its totals are not the sums of its lines");
}

/* --- prices --- */

struct range {
    struct exact low, high;
};

static void widen(struct range *r, bool first, struct exact v)
{
    r->low = first || exact_cmp(v, r->low) < 0 ? v : r->low;
    r->high = first || exact_cmp(v, r->high) > 0 ? v : r->high;
}

/* What the hours of a line cost at a price, those within its guarantee and the others. */
static bool cost_at(struct reading *r, const cJSON *item, const struct line *l,
                    struct exact *ret_within, struct exact *ret_borrowed)
{
    const cJSON *factor = json_get(item, "borrowFactorExact");
    struct exact price, times = {1, 1};

    return exact_parse(r->a, json_str(json_get(item, "priceExact")), &price) &&
           (!factor || exact_parse(r->a, json_str(factor), &times)) &&
           exact_sub(l->hours, l->borrowed, ret_within) &&
           exact_mul(*ret_within, price, ret_within) && exact_mul(l->borrowed, price, &price) &&
           exact_mul(price, times, ret_borrowed);
}

/* Of a line: at its lowest and at its highest price. */
static int check_cost(struct reading *r, const cJSON *prices, const struct line *l)
{
    struct range within = {EXACT_ZERO, EXACT_ZERO}, borrowed = within;
    struct exact a, b, low, high;
    bool any = false;

    json_each(item, prices)
    {
        if (!str_eq(json_str(json_get(item, "pool")), l->pool) ||
            !str_eq(json_str(json_get(item, "currency")), l->currency))
            continue;
        if (!cost_at(r, item, l, &a, &b))
            return bad(r, "no price, or one that does not fit, of pool", l->pool);
        widen(&within, !any, a);
        widen(&borrowed, !any, b);
        any = true;
    }
    if (any == (l->currency.n > 0) && exact_add(within.low, borrowed.low, &low) &&
        exact_add(within.high, borrowed.high, &high) && exact_cmp(l->cost, low) >= 0 &&
        exact_cmp(l->cost, high) <= 0)
        return 0;
    return bad(r, "a cost that is not GPU hours times a price of its pool", l->pool);
}

static int check_costs(struct reading *r, const cJSON *prices)
{
    for (size_t i = 0; i < r->n_lines; i++)
        if (check_cost(r, prices, &r->lines[i]))
            return err_wrap(r->err, "line %zu", i + 1);
    return 0;
}

/* --- balances --- */

static bool balance_value(struct reading *r, const cJSON *balance, const char *key,
                          struct exact *ret)
{
    return exact_parse(r->a, json_str(json_get(balance, key)), ret);
}

/* The lines of a kind, pool and month are what the balance says. */
static bool lines_sum_to(struct reading *r, const cJSON *balance, const char *kind,
                         struct exact want)
{
    struct str pool = json_str(json_get(balance, "pool"));
    struct str month = json_str(json_get(balance, "month"));
    struct exact sum = EXACT_ZERO;

    for (size_t i = 0; i < r->n_lines; i++) {
        const struct line *l = &r->lines[i];

        if (str_eqc(l->kind, kind) && str_eq(l->pool, pool) && str_eq(l->month, month) &&
            !exact_add(sum, l->hours, &sum))
            return false;
    }
    return !exact_cmp(sum, want);
}

/* What pods borrowed is what their tenants did. */
static int check_borrowed(struct reading *r, const cJSON *b)
{
    struct str pool = json_str(json_get(b, "pool")), month = json_str(json_get(b, "month"));
    struct exact want = EXACT_ZERO, sum = EXACT_ZERO;
    bool fits = !json_get(b, "borrowed") || balance_value(r, b, "borrowed", &want);

    for (size_t i = 0; i < r->n_lines; i++)
        if (str_eq(r->lines[i].pool, pool) && str_eq(r->lines[i].month, month))
            fits &= exact_add(sum, r->lines[i].borrowed, &sum);
    return fits && !exact_cmp(sum, want)
               ? 0
               : bad(r, "the lines are not what is borrowed of pool", pool);
}

static int check_balance(struct reading *r, const cJSON *b)
{
    static const char *const used[] = {"held", "idle", "unhealthy"}, *const owned[] = {"capacity",
                                                                                       "unmatched"};
    struct exact v, left = EXACT_ZERO, right = EXACT_ZERO;
    struct str pool = json_str(json_get(b, "pool"));

    for (size_t i = 0; i < COUNT(used); i++)
        if (!balance_value(r, b, used[i], &v) || !exact_add(left, v, &left) ||
            !lines_sum_to(r, b, used[i], v))
            return bad(r, arena_printf(r->a, "the lines are not what is %s of pool", used[i]).p,
                       pool);
    for (size_t i = 0; i < COUNT(owned); i++)
        if (!balance_value(r, b, owned[i], &v) || !exact_add(right, v, &right))
            return bad(r, "no capacity of pool", pool);
    if (exact_cmp(left, right))
        return bad(r, "held, idle and unhealthy are not the capacity of pool", pool);
    return check_borrowed(r, b);
}

static const cJSON *balance_of(const cJSON *balances, const struct line *l)
{
    json_each(b, balances) if (str_eq(json_str(json_get(b, "pool")), l->pool) &&
                               str_eq(json_str(json_get(b, "month")), l->month)) return b;
    return NULL;
}

static int check_balances(struct reading *r, const cJSON *balances)
{
    json_each(b, balances) if (check_balance(r, b)) return -1;
    for (size_t i = 0; i < r->n_lines; i++)
        if (!balance_of(balances, &r->lines[i]))
            return bad(r, "no balance of pool", r->lines[i].pool);
    return 0;
}

/* A tenant's statement has its own lines, and says nothing of capacity. */
static int check_tenant(struct reading *r, struct str tenant, const cJSON *balances)
{
    for (size_t i = 0; i < r->n_lines; i++)
        if (!str_eqc(r->lines[i].kind, "held") || !str_eq(r->lines[i].tenant, tenant))
            return bad(r, "a line that is not this tenant's", tenant);
    return json_count(balances) ? bad(r, "a balance in the statement of a tenant", tenant) : 0;
}

/* --- the whole --- */

static int read_head(struct reading *r, const cJSON *root, struct statement *ret)
{
    struct str format = json_str(json_get(root, "format"));

    ret->ledger = json_str(json_get(root, "ledger"));
    ret->tenant = json_str(json_get(root, "tenant"));
    ret->previous = json_str(json_get(root, "previous"));
    if (!str_eqc(format, STATEMENT_FORMAT))
        return bad(r, "its format is not known to this version, which reads " STATEMENT_FORMAT,
                   format);
    if (!json_i64(json_get(root, "number"), &ret->number) || ret->number < 1)
        return err_set(r->err, &ERR_BAD_REQUEST, "it has no number");
    if ((ret->number == 1) != !ret->previous.n)
        return bad(r, "number 1, and no other, has no statement before it", ret->previous);
    if (!time_parse(json_str(json_get(root, "from")), &ret->from_us) ||
        !time_parse(json_str(json_get(root, "until")), &ret->until_us) ||
        ret->from_us >= ret->until_us)
        return bad(r, "its period is none, from", json_str(json_get(root, "from")));
    return 0;
}

static int check(struct reading *r, const cJSON *root, const struct statement *s)
{
    const cJSON *balances = json_get(root, "balances");

    if (read_lines(r, json_get(root, "lines")) || check_costs(r, json_get(root, "prices")))
        return -1;
    if (s->tenant.n ? check_tenant(r, s->tenant, balances) : check_balances(r, balances))
        return -1;
    return check_totals(r, json_get(root, "totals"));
}

struct duplicate {
    struct arena *a;
    struct str path;
};

static void on_duplicate(void *ctx, struct str path)
{
    struct duplicate *d = ctx;

    d->path = d->path.n ? d->path : arena_str(d->a, path);
}

int statement_read(struct arena *a, struct str text, struct statement *ret, struct str *ret_key,
                   struct err *err)
{
    struct reading r = {.a = a, .err = err};
    struct duplicate twice = {a, STR("")};
    unsigned char hash[32];
    cJSON *root;

    *ret = (struct statement){0};
    if (text.n > STATEMENT_LIMIT)
        return err_set(err, &ERR_TOO_LARGE, "more than %zu bytes", STATEMENT_LIMIT);
    if (json_parse_strict(a, text, &JSON_LIMITS, on_duplicate, &twice, &root, err))
        return -1;
    if (twice.path.n)
        return bad(&r, "a key stands twice", twice.path);
    if (read_head(&r, root, ret) || check(&r, root, ret))
        return -1;
    sha256(text, hash);
    ret->sha256 = hex_encode(a, (struct str){(char *)hash, sizeof(hash)});
    *ret_key = json_str(json_get(root, "key"));
    return 0;
}

int statement_verify(struct arena *a, struct str text, struct str public_pem, struct statement *ret,
                     struct err *err)
{
    struct str signed_by, given, key;
    cJSON *root;

    if (statement_check_signature(a, text, public_pem, &signed_by, &given, err))
        return -1;
    if (signed_by.n) {
        if (statement_read(a, text, ret, &key, err))
            return -1;
        return str_eq(key, signed_by)
                   ? 0
                   : err_set(err, &ERR_BAD_REQUEST, "it names another key than its signature's");
    }
    /* The name of the key is not to be trusted; it only chooses the words. */
    key = json_parse(a, text, &root, NULL) ? STR("") : json_str(json_get(root, "key"));
    if (!key.n || str_contains(given, key))
        return err_set(err, &ERR_BAD_REQUEST,
                       "a byte was changed: its signature is not of these bytes");
    return err_set(err, &ERR_BAD_REQUEST, "it is signed with key %.*s, and the given one is %.*s",
                   STR_F(str_clip(key, 64)), STR_F(given));
}

int statement_follows(const struct statement *before, const struct statement *next, struct err *err)
{
    long long want = (long long)before->number + 1, number = (long long)next->number;

    if (!str_eq(before->ledger, next->ledger) || !str_eq(before->tenant, next->tenant))
        return err_set(err, &ERR_BAD_REQUEST, "%.*s is of another ledger or tenant than %.*s",
                       STR_F(next->name), STR_F(before->name));
    if (number < want)
        return err_set(err, &ERR_BAD_REQUEST,
                       "%.*s is number %lld and stands behind number %lld, %.*s: out of order",
                       STR_F(next->name), number, want - 1, STR_F(before->name));
    if (number > want)
        return err_set(err, &ERR_BAD_REQUEST, "number %lld is missing between %.*s and %.*s", want,
                       STR_F(before->name), STR_F(next->name));
    if (!str_eq(next->previous, before->sha256))
        return err_set(err, &ERR_BAD_REQUEST,
                       "%.*s does not follow %.*s: the statement before it has SHA-256 %.*s, that "
                       "file has %.*s",
                       STR_F(next->name), STR_F(before->name), STR_F(next->previous),
                       STR_F(before->sha256));
    if (next->from_us != before->until_us)
        return err_set(err, &ERR_BAD_REQUEST, "%.*s does not begin where %.*s ends",
                       STR_F(next->name), STR_F(before->name));
    return 0;
}
