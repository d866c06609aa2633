/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of validation do. Must never change what is validated, nor report anything a row
 * does not say: the order and the words of a list of errors are upstream's. */
#include "rows.h"

#include <sublet/kinds.h>

#define RULE_FUNCTION(how)                                                                         \
    void rule_##how(const struct check *c, const struct rule *r __attribute__((unused)))

/* ---- walking ---- */

void rules_check(const struct check *c, const struct rule *rules, size_t n)
{
    for (const struct rule *r = rules; r < rules + n; r++) {
        if (!r->path) {
            r->check(c, r);
            continue;
        }
        struct check member = *c;

        member.at = FIELD(c->at, r->path);
        member.value = kinds_given(c->value, r->path);
        member.old = c->old ? kinds_given(c->old, r->path) : NULL;
        r->check(&member, r);
    }
}

void rules_check_value(struct field_errors *e, const struct field_path *p, const cJSON *value,
                       const void *context, const struct rule *rules, size_t n)
{
    const struct check c = {.e = e, .at = p, .value = value, .object = value, .context = context};

    rules_check(&c, rules, n);
}

RULE_FUNCTION(within)
{
    if (c->value)
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(inside)
{
    rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(each)
{
    struct names seen = {.arena = c->e->arena};
    struct check item = *c;

    item.old = NULL;
    item.list = c->value;
    item.seen = &seen;
    field_each(value, at, c->at, c->value)
    {
        item.at = at;
        item.value = value;
        rules_check(&item, r->rows, r->n);
    }
}

static bool has_at_most(const struct check *c, const struct rule *r)
{
    size_t most = (size_t)r->high;

    if (!r->words)
        return check_list_size(c->e, c->at, c->value, most);
    if (json_count(c->value) > most)
        field_invalid(c->e, c->at, c->value, r->words);
    return json_count(c->value) <= most;
}

RULE_FUNCTION(each_of_at_most)
{
    if (has_at_most(c, r))
        rule_each(c, r);
}

RULE_FUNCTION(when)
{
    if (kinds_text_is(c->value, r->other, r->words))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(unless)
{
    if (!kinds_text_is(c->value, r->other, r->words))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_set)
{
    if (json_str_at(c->value, r->other).n)
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_empty)
{
    if (!json_str_at(c->value, r->other).n)
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_given)
{
    if (kinds_given(c->value, r->other))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(unless_given)
{
    if (!kinds_given(c->value, r->other))
        rules_check(c, r->rows, r->n);
}

/* Whether every member that r names is there, or is not, as wanted. */
static bool each_is_there(const struct check *c, const struct rule *r, bool wanted)
{
    for (const char *const *name = r->members; *name; name++) {
        const cJSON *value = kinds_given(c->value, *name);

        if ((value && (!json_is_array(value) || json_count(value))) != wanted)
            return false;
    }
    return true;
}

RULE_FUNCTION(when_all)
{
    if (each_is_there(c, r, true))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_any)
{
    if (!each_is_there(c, r, false))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_none)
{
    if (each_is_there(c, r, false))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(when_true)
{
    if (json_true(json_path(c->value, r->other)))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(on_create)
{
    if (!c->before)
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(on_update)
{
    if (c->before)
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(changed)
{
    if (!c->before || !kinds_same_value(c->value, c->old))
        rules_check(c, r->rows, r->n);
}

RULE_FUNCTION(call)
{
    r->call(c);
}

RULE_FUNCTION(call_value)
{
    if (c->value)
        r->call_value(c->e, c->at, c->value);
}

RULE_FUNCTION(call_always)
{
    r->call_value(c->e, c->at, c->value);
}

RULE_FUNCTION(test_value)
{
    r->test_value(c->e, c->at, c->value);
}

RULE_FUNCTION(call_str)
{
    r->call_str(c->e, c->at, json_str(c->value));
}

RULE_FUNCTION(test_str)
{
    r->test_str(c->e, c->at, json_str(c->value));
}

RULE_FUNCTION(given_str)
{
    if (check_given(c->e, c->at, json_str(c->value)))
        r->test_str(c->e, c->at, json_str(c->value));
}

/* ---- what must be there, and what must not ---- */

RULE_FUNCTION(required)
{
    if (!c->value)
        field_required(c->e, c->at, r->words);
}

RULE_FUNCTION(missing)
{
    field_required(c->e, c->at, r->words);
}

RULE_FUNCTION(given)
{
    if (!json_str(c->value).n)
        field_required(c->e, c->at, r->words);
}

RULE_FUNCTION(all_given)
{
    for (const char *const *name = r->values; *name; name++)
        check_given(c->e, FIELD(c->at, *name), json_str(json_get(c->value, *name)));
}

RULE_FUNCTION(some)
{
    if (!json_count(c->value))
        field_required(c->e, c->at, r->words);
}

RULE_FUNCTION(some_of)
{
    for (const char *const *name = r->values; *name; name++) {
        if (json_count(json_get(c->value, *name)))
            return;
    }
    field_required(c->e, c->at, r->words);
}

RULE_FUNCTION(forbidden)
{
    if (c->value)
        field_forbidden(c->e, c->at, r->words);
}

RULE_FUNCTION(no_items)
{
    if (json_count(c->value))
        field_forbidden(c->e, c->at, r->words);
}

RULE_FUNCTION(not_true)
{
    if (json_true(c->value))
        field_invalid(c->e, c->at, c->value, r->words);
}

RULE_FUNCTION(invalid)
{
    if (c->value)
        field_invalid(c->e, c->at, c->value, r->words);
}

RULE_FUNCTION(invalid_as)
{
    if (c->value)
        field_invalid_str(c->e, c->at, str_c(r->other), r->words);
}

RULE_FUNCTION(invalid_bare)
{
    field_invalid_bare(c->e, c->at, r->words);
}

RULE_FUNCTION(not_blank)
{
    if (!kinds_trimmed(json_str(c->value)).n)
        field_required(c->e, c->at, r->words);
}

/* ---- enums and names ---- */

static bool is_present(const struct check *c, const struct rule *r)
{
    bool by_text = r->presence == REQUIRE_SET || r->presence == IF_SET;
    bool there = by_text ? json_str(c->value).n > 0 : c->value != NULL;

    if (!there && (r->presence == REQUIRE_SET || r->presence == REQUIRE_GIVEN))
        field_required(c->e, c->at, r->words);
    return there || r->presence == EVEN_ABSENT;
}

RULE_FUNCTION(enum)
{
    struct str value = json_str(c->value);

    if (is_present(c, r) && !kinds_one_of(value, r->values))
        field_not_supported(c->e, c->at, value, r->values);
}

RULE_FUNCTION(in)
{
    if (is_present(c, r) && !kinds_one_of(json_str(c->value), r->values))
        field_invalid_str(c->e, c->at, json_str(c->value), r->words);
}

RULE_FUNCTION(not_in)
{
    if (kinds_one_of(json_str(c->value), r->values))
        field_invalid_str(c->e, c->at, json_str(c->value), r->words);
}

RULE_FUNCTION(name)
{
    if (is_present(c, r))
        check_rule(c->e, c->at, r->name, json_str(c->value));
}

RULE_FUNCTION(each_enum_list)
{
    json_each(item, c->value) check_enum_if(c->e, c->at, item, r->values);
}

RULE_FUNCTION(enum_type)
{
    if (!kinds_one_of(json_str_at(c->value, "type"), r->values))
        field_not_supported_value(c->e, c->at, c->value, r->values);
}

/* ---- numbers ---- */

RULE_FUNCTION(nonnegatives)
{
    check_all_nonnegative(c->e, c->at, c->value, r->values);
}

RULE_FUNCTION(range)
{
    check_range(c->e, c->at, c->value, r->low, r->high);
}

RULE_FUNCTION(range_else)
{
    int64_t value;

    if (json_i64(c->value, &value) && (value < r->low || value > r->high))
        field_invalid(c->e, c->at, c->value, r->words);
}

RULE_FUNCTION(all_at_most)
{
    for (const char *const *name = r->values; *name; name++) {
        struct check member = *c;

        member.at = FIELD(c->at, *name);
        member.value = json_get(c->value, *name);
        rule_at_most(&member, r);
    }
}

RULE_FUNCTION(at_most)
{
    int64_t value = 0;

    json_i64(c->value, &value);
    if (value > json_i64_at(c->object, r->other, 0))
        field_invalid(c->e, c->at, json_new_i64(c->e->arena, value), r->words);
}

RULE_FUNCTION(not_decreased)
{
    int64_t now = 0, before = 0;

    json_i64(c->value, &now);
    json_i64(c->old, &before);
    if (c->old && (!c->value || before > now))
        field_invalid(c->e, c->at, c->value ? c->value : json_new_i64(c->e->arena, 0),
                      "cannot be decremented");
}

/* ---- sizes, uniqueness ---- */

RULE_FUNCTION(max_length)
{
    if (json_str(c->value).n <= (size_t)r->high)
        return;
    if (r->words)
        field_invalid(c->e, c->at, c->value, r->words);
    else
        field_too_long(c->e, c->at, (size_t)r->high);
}

RULE_FUNCTION(star_alone)
{
    if (json_count(c->value) > 1 && json_list_has(c->value, STR("*")))
        field_invalid_printf(c->e, c->at, c->value, "if '*' is present, must not specify other %s",
                             r->words);
}

RULE_FUNCTION(max_items)
{
    has_at_most(c, r);
}

static void report_repeated(const struct check *c, struct names *seen, const cJSON *value)
{
    if (!names_add(seen, json_str(value), c->value))
        field_duplicate(c->e, c->at, value ? value : json_new_string(c->e->arena, STR("")));
}

RULE_FUNCTION(once)
{
    if (r->presence == EVEN_ABSENT || json_str(c->value).n)
        report_repeated(c, c->seen, c->value);
}

RULE_FUNCTION(unique)
{
    struct names seen = {.arena = c->e->arena};
    struct check item = *c;

    field_each(value, at, c->at, c->value)
    {
        item.at = at;
        item.value = value;
        report_repeated(&item, &seen, r->words ? json_get(value, r->words) : value);
    }
}

RULE_FUNCTION(unique_of_at_most)
{
    if (json_count(c->value) <= (size_t)r->high)
        rule_unique(c, r);
}

/* ---- what an update may not change ---- */

RULE_FUNCTION(fixed)
{
    if (c->before)
        check_immutable(c->e, c->at, c->value, c->old);
}

RULE_FUNCTION(all_fixed)
{
    for (const char *const *name = r->values; c->before && *name; name++)
        check_immutable(c->e, FIELD(c->at, *name), kinds_given(c->value, *name),
                        kinds_given(c->old, *name));
}

RULE_FUNCTION(fixed_text)
{
    if (c->before)
        check_immutable_text(c->e, c->at, c->value, c->old);
}

RULE_FUNCTION(fixed_once_set)
{
    if (c->before && (json_count(c->old) || json_str(c->old).n) &&
        !kinds_same_value(c->value, c->old))
        field_forbidden(c->e, c->at, r->words);
}

RULE_FUNCTION(fixed_else_forbidden)
{
    if (c->before && !kinds_same_value(c->value, c->old))
        field_forbidden(c->e, c->at, r->words);
}

/* ---- common parts ---- */

const struct rule RULES_CONDITION[7] = {
    ONCE("type"),
    NAME_ALWAYS("type", QUALIFIED),
    ENUM_ALWAYS("status", ENUM_CONDITION_STATUS),
    AT_LEAST("observedGeneration", 0, "must be greater than or equal to zero"),
    REQUIRED("lastTransitionTime", ""),
    CHECK_STR("reason", check_reason),
    MAX_LENGTH("message", 32 * 1024),
};
