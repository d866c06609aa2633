/* SPDX-License-Identifier: Apache-2.0 */
/* What the status of a GPUBinding says of money. Must never differ for each cent: what is written
 * changes with a percent, and a condition's message with what it is about, since each write of a
 * status is read by a tenant's process. */
#include "grant_money.h"

#include <sublet/json_build.h>
#include <sublet/object.h>

#define CURRENCY_MOST 253 /* of the definition of the kind */

static void set_condition(struct grant_state *s, cJSON *object, const char *type, bool is,
                          const char *reason, struct str message)
{
    condition_set(s->a, object, type, is ? "True" : "False", reason, message, s->now_s);
}

/* --- prices --- */

/* As the definition of the kind has it, however the file spells it; NULL: there is none. */
static cJSON *amount_of(struct grant_state *s, struct str text)
{
    struct rational r;

    return text.n && rational_parse(text, &r) && r.num >= 0
               ? json_new_string(s->a, rational_format(s->a, r))
               : NULL;
}

void grant_metering(struct grant_state *s, const struct grant_pool *pool, cJSON *item)
{
    const struct config_pool *priced = pool ? fleet_budget_pool(s->budgets, pool->name) : NULL;
    cJSON *price = item && priced ? amount_of(s, priced->price) : NULL;

    if (price)
        json_set(s->a, item, "metering",
                 json_object(s->a, JSON("price", price),
                             JSON_NONEMPTY("currency", str_clip(priced->currency, CURRENCY_MOST)),
                             JSON("per", "GPUHour"),
                             JSON("borrowFactor", amount_of(s, priced->borrow_factor))));
}

/* --- budgets --- */

struct str grant_budget_name(struct grant_state *s, const struct grant_row *r)
{
    return arena_printf(s->a, "the budget of %.*s %.*s for %.*s",
                        STR_F(fleet_budget_text(s->a, r->budget.amount)), STR_F(r->spent.currency),
                        STR_F(r->spent.month));
}

void grant_budget_conditions(struct grant_state *s, const struct grant_row *r, cJSON *object)
{
    static const char *const effects[] = {
        "", ": nothing is granted beyond the guarantee until it ends or the amount is raised",
        ": nothing new is granted until it ends or the amount is raised"};
    const struct budget_state *now = &r->spent;
    struct str name;

    if (r->budget.is || r->budget_why.n)
        set_condition(s, object, "BudgetAccepted", !r->budget_why.n,
                      r->budget_why.n ? "BudgetRefused" : "Accepted",
                      r->budget_why.n
                          ? arena_printf(s->a, "spec.budget is refused, and %s: %.*s",
                                         r->budget.is ? "the one before it stays in force"
                                                      : "none is in force, as before it",
                                         STR_F(str_clip(r->budget_why, 800)))
                          : STR(""));
    else
        condition_remove(object, "BudgetAccepted");
    if (!r->budget.is) {
        condition_remove(object, "BudgetWarning");
        condition_remove(object, "BudgetExceeded");
        condition_remove(object, "BudgetForecastExceeded");
        return;
    }
    name = grant_budget_name(s, r);
    set_condition(s, object, "BudgetWarning", now->threshold > 0,
                  now->threshold ? "BudgetThresholdReached" : "BelowThresholds",
                  now->threshold
                      ? arena_printf(s->a, "%u%% of %.*s is spent", now->threshold, STR_F(name))
                      : STR(""));
    set_condition(s, object, "BudgetExceeded", now->exceeded,
                  now->exceeded ? "BudgetExceeded" : "WithinBudget",
                  now->exceeded ? arena_printf(s->a, "%.*s is spent%s", STR_F(name),
                                               effects[r->budget.enforcement])
                                : STR(""));
    set_condition(s, object, "BudgetForecastExceeded", now->will_exceed,
                  now->will_exceed ? "ForecastBeyondBudget"
                  : now->shown     ? "ForecastWithinBudget"
                                   : "NoForecast",
                  now->will_exceed ? arena_printf(s->a,
                                                  "at the rate of the last 24 hours the month "
                                                  "costs more than %.*s",
                                                  STR_F(name))
                                   : STR(""));
}

static cJSON *warnings_of(struct grant_state *s, const struct budget *budget)
{
    cJSON *list = json_new_array(s->a);

    for (size_t i = 0; i < budget->n_warn_at; i++)
        json_append(list, json_new_i64(s->a, budget->warn_at[i]));
    return list;
}

/* What was spent is written anew with each percent: at rest, and from one percent to
 * the next, nothing is. */
cJSON *grant_budget_status(struct grant_state *s, const struct grant_row *r)
{
    const cJSON *before = json_path(r->tree, "status.budget");
    const struct budget_state *now = &r->spent;
    cJSON *budget;

    if (!r->budget.is)
        return NULL;
    budget = json_object(
        s->a, JSON("month", now->month), JSON("amount", fleet_budget_text(s->a, r->budget.amount)),
        JSON("currency", now->currency), JSON("spent", fleet_budget_text(s->a, now->spent)),
        JSON_I64("percent", now->percent),
        JSON_NONEMPTY("forecast", now->shown ? fleet_budget_text(s->a, now->shown) : STR("")),
        JSON("enforcement", FLEET_BUDGET_ENFORCEMENTS[r->budget.enforcement]),
        JSON("warnAt", warnings_of(s, &r->budget)), JSON_NONEMPTY("otherCurrency", now->other));
    if (before && json_i64_at(before, "percent", -1) == now->percent) {
        cJSON *same = json_copy(s->a, budget);

        json_set_str(s->a, same, "spent", json_str_at(before, "spent"));
        if (json_equal(same, before))
            return same;
    }
    return budget;
}
