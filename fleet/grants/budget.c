/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets. What was spent is the sum that a report of the month prints, rounded once to
 * millionths; thresholds are compared in these. Must never lift what a budget took because a
 * process starts, or cannot read the ledger: what the status says was spent in this month still
 * counts. */
#include "budget.h"

#include <sublet/clock.h>
#include <sublet/fleet_report.h>

#define MICROS       INT64_C(1000000)
#define MOST         INT64_C(1000000000000) /* of a currency: times MICROS, it is an int64_t */
#define PLACES       6
#define MOST_PERCENT INT64_C(1000000)

const char *const FLEET_BUDGET_ENFORCEMENTS[] = {"Warn", "Queue", "Stop"};

/* --- the spec --- */

static bool parse_amount(const cJSON *value, int64_t *ret)
{
    struct rational amount, micros;
    int64_t whole;

    if (json_i64(value, &whole))
        amount = (struct rational){whole, 1};
    else if (str_contains(json_str(value), STR("/")) || !rational_parse(json_str(value), &amount))
        return false;
    if (amount.num <= 0 || amount.num / amount.den >= MOST ||
        !rational_mul(amount, (struct rational){MICROS, 1}, &micros) || micros.den != 1)
        return false;
    *ret = micros.num;
    return true;
}

static bool parse_warnings(const cJSON *list, struct budget *ret)
{
    json_each(one, list)
    {
        unsigned last = ret->n_warn_at ? ret->warn_at[ret->n_warn_at - 1] : 0;
        int64_t percent;

        if (ret->n_warn_at == BUDGET_WARNINGS || !json_i64(one, &percent) || percent <= last ||
            percent > BUDGET_MOST_PERCENT)
            return false;
        ret->warn_at[ret->n_warn_at++] = (unsigned)percent;
    }
    return true;
}

static bool parse_enforcement(struct str word, struct budget *ret)
{
    for (unsigned i = 0; i < COUNT(FLEET_BUDGET_ENFORCEMENTS); i++)
        if (str_eqc(word, FLEET_BUDGET_ENFORCEMENTS[i])) {
            ret->enforcement = (enum budget_enforcement)i;
            return true;
        }
    return !word.n;
}

static const struct budget USUAL = {.is = true, .warn_at = {50, 80, 100}, .n_warn_at = 3};

bool fleet_budget_parse(struct arena *a, const cJSON *value, struct budget *ret,
                        struct str *ret_why)
{
    const cJSON *warnings = json_get(value, "warnAt");
    struct str period = json_str_at(value, "period");

    *ret = (struct budget){0};
    if (!value)
        return true;
    *ret = USUAL;
    *ret_why = STR("");
    if (!parse_amount(json_get(value, "amount"), &ret->amount))
        *ret_why = STR("budget.amount is a sum of money greater than 0 such as \"1500.00\", of at "
                       "most 6 places");
    else if (period.n && !str_eqc(period, "Month"))
        *ret_why = STR("budget.period is Month");
    else if (!parse_enforcement(json_str_at(value, "enforcement"), ret))
        *ret_why = STR("budget.enforcement is Warn, Queue or Stop");
    ret->currency = arena_str(a, json_str_at(value, "currency"));
    if (warnings)
        ret->n_warn_at = 0;
    if (warnings && !parse_warnings(warnings, ret))
        *ret_why = STR("budget.warnAt has at most 10 percentages, 1 to 1000, in ascending order");
    ret->is = !ret_why->n;
    return ret->is;
}

void fleet_budget_recall(struct arena *a, const cJSON *before, struct budget *ret)
{
    const cJSON *warnings = json_get(before, "warnAt");
    struct budget known = USUAL;

    if (warnings)
        known.n_warn_at = 0;
    if (warnings && !parse_warnings(warnings, &known))
        known = USUAL;
    known.is = before && parse_amount(json_get(before, "amount"), &known.amount) &&
               parse_enforcement(json_str_at(before, "enforcement"), &known);
    known.currency = arena_str(a, json_str_at(before, "currency"));
    *ret = known;
}

/* --- what was spent --- */

const struct config_pool *fleet_budget_pool(const struct budget_facts *facts, struct str pool)
{
    for (size_t i = 0; facts && i < facts->n_pools; i++)
        if (str_eq(facts->pools[i].name, pool) && facts->pools[i].price.n)
            return &facts->pools[i];
    return NULL;
}

struct str fleet_budget_currency(const struct budget_facts *facts, struct str pool)
{
    const struct config_pool *priced = fleet_budget_pool(facts, pool);

    return priced ? priced->currency : STR("");
}

/* Rounded down. */
static int64_t percent_of(int64_t spent, int64_t amount)
{
    __int128 percent = (__int128)spent * 100 / amount;

    return percent < MOST_PERCENT ? (int64_t)percent : MOST_PERCENT;
}

/* As reports round; one that does not fit is the most there is. */
static int64_t micros_of(struct arena *a, struct exact cost)
{
    struct str fraction = exact_decimal(a, cost, PLACES), whole = str_cut(&fraction, '.');
    int64_t ret;

    if (cost.num <= 0)
        return 0;
    return str_to_i64(arena_concat(a, 2, (struct str[]){whole, fraction}), &ret) ? ret : INT64_MAX;
}

/* By the ledger, which has a line for each currency. */
static int64_t sum_up(struct arena *a, const struct usage *month, struct str tenant,
                      struct str pool, struct budget_state *ret)
{
    struct exact sum = EXACT_ZERO;

    for (size_t i = 0; i < month->n_lines && month->lines[i]->kind == USAGE_HELD; i++) {
        const struct fleet_usage_line *l = month->lines[i];

        if (!str_eq(l->values[USAGE_TENANT], tenant) || !str_eq(l->values[USAGE_POOL], pool))
            continue;
        if (str_eq(l->currency, ret->currency)) {
            if (!exact_add(sum, l->cost, &sum))
                sum = (struct exact){INT64_MAX, 1};
        } else if (l->cost.num > 0) {
            ret->other = arena_str(a, str_clip(l->currency, BUDGET_CURRENCY));
        }
    }
    return micros_of(a, sum);
}

/* 0: it is of another month or currency, or cannot be read. */
static int64_t recall(struct arena *a, const cJSON *before, const char *member,
                      const struct budget_state *now)
{
    struct rational r;

    if (!str_eq(json_str_at(before, "month"), now->month) ||
        !str_eq(json_str_at(before, "currency"), now->currency) ||
        !rational_parse(json_str_at(before, member), &r) || r.num < 0)
        return 0;
    return micros_of(a, exact_of(r));
}

/* --- what it will be --- */

/* Spent, and what is left of the month at the rate of the last day: rounded down; one that does not
 * fit is the most there is. */
static int64_t forecast_of(int64_t spent, int64_t of_day, const struct usage *day, int64_t until_us)
{
    int64_t length = day->until_us - day->from_us, left = until_us - day->until_us;
    __int128 all;

    if (length < BUDGET_RATE_US)
        return 0;
    all = spent + (__int128)of_day * (left > 0 ? left : 0) / length;
    return all < INT64_MAX ? (int64_t)all : INT64_MAX;
}

/* It moves with each look at the ledger. */
static bool is_about(int64_t forecast, int64_t before, int64_t amount)
{
    __int128 apart = forecast > before ? forecast - before : before - forecast;

    return apart * 100 <= (before > amount ? before : amount);
}

static void look_ahead(struct arena *a, const struct budget *budget,
                       const struct budget_facts *facts, struct str tenant, struct str pool,
                       const cJSON *before, int64_t until_us, struct budget_state *ret)
{
    struct budget_state day = {.currency = ret->currency};
    int64_t shown = recall(a, before, "forecast", ret);

    if (ret->current && facts->day) {
        day.spent = sum_up(a, facts->day, tenant, pool, &day);
        ret->forecast = forecast_of(ret->spent, day.spent, facts->day, until_us);
    }
    ret->shown = ret->forecast;
    if (shown && (!ret->current || is_about(ret->forecast, shown, budget->amount)))
        ret->shown = shown;
    ret->will_exceed = ret->shown > budget->amount;
}

static bool is_of_month(const struct budget_facts *facts, int64_t from_us, int64_t until_us)
{
    return facts && facts->month && facts->month_us >= from_us && facts->month_us < until_us;
}

void fleet_budget_judge(struct arena *a, const struct budget *budget,
                        const struct budget_facts *facts, struct str tenant, struct str pool,
                        const cJSON *before, int64_t now_s, struct budget_state *ret)
{
    struct str price = fleet_budget_currency(facts, pool);
    int64_t from_us = 0, until_us = 0;
    struct err err;

    *ret = (struct budget_state){.month = str_sub(time_format_s(a, now_s), 0, 7)};
    err_init(&err, a);
    if (report_month(a, ret->month, &from_us, &until_us, &err))
        err_clear(&err);
    ret->next_s = until_us / 1000000;
    ret->currency = budget->currency.n ? budget->currency
                    : price.n          ? price
                                       : json_str_at(before, "currency");
    ret->current = is_of_month(facts, from_us, until_us);
    ret->spent =
        ret->current ? sum_up(a, facts->month, tenant, pool, ret) : recall(a, before, "spent", ret);
    look_ahead(a, budget, facts, tenant, pool, before, until_us, ret);
    ret->percent = percent_of(ret->spent, budget->amount);
    ret->exceeded = ret->spent >= budget->amount;
    for (size_t i = 0; i < budget->n_warn_at && budget->warn_at[i] <= ret->percent; i++)
        ret->threshold = budget->warn_at[i];
}

struct str fleet_budget_text(struct arena *a, int64_t micros)
{
    struct str text =
        arena_printf(a, "%lld.%06lld", (long long)(micros / MICROS), (long long)(micros % MICROS));

    while (text.p[text.n - 1] == '0' && text.p[text.n - 3] != '.')
        text.n--;
    return text;
}
