/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as they are printed, and their arguments. */
#include "test.h"

#include <sublet/clock.h>
#include <sublet/fleet_report.h>

static struct fleet_hold HOLDS[] = {
    {.pod_uid = {"u1", 2},
     .tenant = {"team-a", 6},
     .ns = {"=1+1,\"x\"", 8},
     .name = {"train", 5},
     .node = {"n1", 2},
     .pool = {"a100", 4},
     .product = {"A100", 4},
     .gpu_eq = {3, 7},
     .begin_us = 0,
     .end_us = HOUR,
     .estimated = true},
    {.pod_uid = {"u2", 2},
     .tenant = {"team-b", 6},
     .name = {"infer", 5},
     .node = {"n1", 2},
     .pool = {"a100", 4},
     .product = {"A100", 4},
     .gpu_eq = {1, 1},
     .begin_us = 0,
     .end_us = FLEET_OPEN},
};
static struct fleet_capacity CAPACITY = {.node = {"n1", 2},
                                         .pool = {"a100", 4},
                                         .product = {"A100", 4},
                                         .total = {2, 1},
                                         .unhealthy = {0, 1}};
static struct fleet_price PRICE = {.pool = {"a100", 4}, .currency = {"USD", 3}, .price = {5, 2}};
static struct fleet_gap GAP = {HOUR, HOUR + 3 * SECOND};

static struct fleet_guarantee GUARANTEES[] = {
    {.tenant = {"team-a", 6},
     .pool = {"a100", 4},
     .bound = true,
     .guarantee = {1, 1},
     .labels = {"cost-center==42\n", 16}},
    {.tenant = {"team-b", 6}, .pool = {"a100", 4}, .bound = true, .guarantee = {1, 4}},
};
static size_t n_guarantees; /* on record */
static struct fleet_activity IDLE = {HOUR, FLEET_USE_WARM};
static size_t n_activities;

static struct str printed(struct arena *a, enum report_format format, const char *by)
{
    struct fleet_records r = {.seen_us = 2 * HOUR,
                              .holds = HOLDS,
                              .n_holds = 2,
                              .capacities = &CAPACITY,
                              .n_capacities = 1,
                              .prices = &PRICE,
                              .n_prices = 1,
                              .guarantees = GUARANTEES,
                              .n_guarantees = n_guarantees,
                              .activities = &IDLE,
                              .n_activities = n_activities,
                              .gaps = &GAP,
                              .n_gaps = 1};
    struct buf out = BUF_INIT(0);
    struct usage u;
    struct str text;
    struct err err;
    unsigned columns;

    err_init(&err, a);
    assert_ok(report_columns(str_c(by), &columns, &r.label, &err));
    if (format == REPORT_FOCUS)
        columns |= REPORT_FOCUS_COLUMNS;
    assert_ok(fleet_usage_compute(a, &r, 0, INT64_MAX, columns, &u, &err));
    report_print(&out, &u, columns, format);
    text = arena_str(a, buf_str(&out));
    buf_fini(&out);
    return text;
}

static void prints_a_table(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_str(printed(a, REPORT_TABLE, "tenant,pool"),
               "GPU usage from 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z\n"
               "\n"
               "KIND  TENANT  POOL  GPU-HOURS    COST  CURRENCY  PODS  ESTIMATED\n"
               "held  team-a  a100     0.4286  1.0714  USD          1          1\n"
               "held  team-b  a100     2.0000  5.0000  USD          1          0\n"
               "idle          a100     1.5714  3.9286  USD          0          0\n"
               "\n"
               "held 2.4286 + idle 1.5714 + unhealthy 0.0000 = 4.0000 GPU-hours of capacity "
               "(checked exactly, pool by pool and month by month)\n"
               "cost of what was held: 6.07 USD\n"
               "whether held GPUs were used was not measured\n"
               "no process observed the host for 3.0 s of this time\n");
    arena_free(a);
}

/* team-a has 3/7 of 1 for an hour, team-b 1 of 1/4 for two. */
static void shows_what_was_borrowed(void **state)
{
    static const char *const parts[] = {
        "\"guaranteedExact\": \"1/2\"",      "\"borrowedExact\": \"3/2\"",
        "\"reservedUnusedExact\": \"11/7\"", "\"borrowed\": \"3/2\"",
        "\"reservedUnused\": \"11/7\"",      "\"reservedIdle\": \"11/7\"",
    };
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    n_guarantees = COUNT(GUARANTEES);
    assert_str(printed(a, REPORT_TABLE, "tenant,pool"),
               "GPU usage from 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z\n"
               "\n"
               "KIND  TENANT  POOL  GPU-HOURS  GUARANTEED  BORROWED  RESERVED-UNUSED    COST  "
               "CURRENCY  PODS  ESTIMATED\n"
               "held  team-a  a100     0.4286      0.4286    0.0000           1.5714  1.0714  "
               "USD          1          1\n"
               "held  team-b  a100     2.0000      0.5000    1.5000           0.0000  5.0000  "
               "USD          1          0\n"
               "idle          a100     1.5714                                         3.9286  "
               "USD          0          0\n"
               "\n"
               "held 2.4286 + idle 1.5714 + unhealthy 0.0000 = 4.0000 GPU-hours of capacity "
               "(checked exactly, pool by pool and month by month)\n"
               "held: guaranteed 0.9286 + borrowed 1.5000; idle: reserved 1.5714 + free 0.0000\n"
               "guarantees that their tenants did not use: 1.5714 GPU-hours, of which 0.0000 were "
               "lent, or not healthy\n"
               "cost of what was held: 6.07 USD\n"
               "whether held GPUs were used was not measured\n"
               "no process observed the host for 3.0 s of this time\n");
    text = printed(a, REPORT_JSON, "tenant");
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!str_contains(text, str_c(parts[i])))
            fail_msg("%s is not in:\n%.*s", parts[i], STR_F(text));
    text = printed(a, REPORT_CSV, "tenant");
    assert_true(str_has_prefix(text, STR("kind,tenant,gpuHours,guaranteed,borrowed,"
                                         "reservedUnused,cost,currency,pods,estimated\r\n")));
    assert_true(str_contains(text, STR("held,team-b,2.000000000,0.500000000,1.500000000,"
                                       "0.000000000,5.000000000,USD,1,0\r\n")));
    assert_true(str_contains(printed(a, REPORT_FOCUS, "tenant"),
                             STR("\"\"borrowedGPUHours\"\":\"\"1.500000000\"\"")));
    assert_true(str_contains(printed(a, REPORT_HTML, "tenant"),
                             STR("<th class=\"n\">reservedUnused</th>")));
    assert_true(str_has_prefix(printed(a, REPORT_CSV, "label:cost-center"),
                               STR("kind,cost-center,gpuHours,")));
    assert_true(
        str_contains(printed(a, REPORT_CSV, "label:cost-center"), STR("held,'=42,0.428571429,")));
    assert_true(str_contains(printed(a, REPORT_FOCUS, "label:cost-center"),
                             STR("\"\"binding/cost-center\"\":\"\"=42\"\"")));
    n_guarantees = 0;
    arena_free(a);
}

static void csv_is_quoted_and_never_a_formula(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_str(printed(a, REPORT_CSV, "namespace"),
               "kind,namespace,gpuHours,cost,currency,pods,estimated\r\n"
               "held,,2.000000000,5.000000000,USD,1,0\r\n"
               "held,\"'=1+1,\"\"x\"\"\",0.428571429,1.071428571,USD,1,1\r\n"
               "idle,,1.571428571,3.928571429,USD,0,0\r\n");
    arena_free(a);
}

static void json_has_the_exact_values(void **state)
{
    static const char *const parts[] = {"\"gpuHoursExact\": \"3/7\"",
                                        "\"costExact\": \"15/14\"",
                                        "\"estimated\": 1",
                                        "\"running\": 1",
                                        "\"capacity\": \"4\"",
                                        "\"held\": \"17/7\"",
                                        "\"unobservedSeconds\": \"3.000000\""};
    struct arena *a = arena_new(0);
    struct str text = printed(a, REPORT_JSON, "pod");

    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_true(str_contains(text, str_c(parts[i])));
    arena_free(a);
}

static void focus_has_a_row_per_charge(void **state)
{
    struct arena *a = arena_new(0);
    struct str text = printed(a, REPORT_FOCUS, "tenant"), head = str_cut(&text, '\n');
    size_t columns = 1;

    (void)state;
    for (size_t i = 0; i < head.n; i++)
        columns += head.p[i] == ',';
    assert_int_equal(columns, 28);
    assert_str(str_cut(&text, '\n'),
               "team-a,team-a,1970-01-01T00:00:00Z,1970-02-01T00:00:00Z,1970-01-01T00:00:00Z,"
               "1970-01-01T02:00:00Z,Usage,GPU hours of pool a100,1.071428571,1.071428571,"
               "1.071428571,1.071428571,USD,0.428571429,GPU-Hours,0.428571429,GPU-Hours,sublet,"
               "AI and Machine Learning,GPU pool,a100,A100,,team-a,,sublet,sublet,"
               "\"{\"\"pool\"\":\"\"a100\"\",\"\"product\"\":\"\"A100\"\"}\"\r");
    assert_true(str_has_prefix(str_cut(&text, '\n'), STR("team-b,")));
    assert_int_equal(text.n, 0);
    arena_free(a);
}

/* Cell i of the line of this tenant. */
static struct str charge(struct str text, const char *tenant, const char *column)
{
    struct str head = str_trim(str_cut(&text, '\n')), line = {0}, cell = {0};

    do {
        cell = line = str_trim(str_cut(&text, '\n'));
    } while (text.n && !str_eqc(str_cut(&cell, ','), tenant));
    while (head.p) {
        bool found = str_eqc(str_cut(&head, ','), column);

        cell = head.p ? str_cut(&line, ',') : line; /* Tags have commas */
        if (found)
            return cell;
    }
    fail_msg("no column %s", column);
    return cell;
}

/* team-b is guaranteed a quarter of the GPU that it holds for two hours; the other hours cost half
 * as much. */
static void focus_tells_costs_apart(void **state)
{
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    n_guarantees = 2;
    n_activities = 1;
    PRICE.borrow = (struct rational){1, 2};
    HOLDS[1].n_activities = 1;
    text = printed(a, REPORT_FOCUS, "tenant");
    n_guarantees = n_activities = HOLDS[1].n_activities = 0;
    PRICE.borrow = (struct rational){0};
    assert_str(charge(text, "team-b", "ListCost"), "5.000000000");
    assert_str(charge(text, "team-b", "ContractedCost"), "3.125000000");
    assert_str(charge(text, "team-b", "EffectiveCost"), "3.125000000");
    assert_str(charge(text, "team-b", "BilledCost"), "3.125000000");
    assert_str(charge(text, "team-a", "ListCost"), "1.071428571");
    assert_str(charge(text, "team-a", "BilledCost"), "1.071428571");
    assert_true(str_contains(charge(text, "team-b", "Tags"),
                             STR("\"\"idleHeldGPUHours\"\":\"\"1.000000000\"\",\"\"unmeasured"
                                 "GPUHours\"\":\"\"1.000000000\"\"")));
    arena_free(a);
}

/* Names of FOCUS 1.0, of which those with a mark must be there. */
static void focus_columns_are_those_of_the_specification(void **state)
{
    static const char names[] =
        "|BilledCost!|BillingAccountId!|BillingAccountName!|BillingCurrency!|BillingPeriodEnd!|"
        "BillingPeriodStart!|ChargeCategory!|ChargeClass!|ChargeDescription!|ChargePeriodEnd!|"
        "ChargePeriodStart!|ContractedCost!|EffectiveCost!|InvoiceIssuerName!|ListCost!|"
        "PricingQuantity!|PricingUnit!|ProviderName!|PublisherName!|ServiceCategory!|ServiceName!|"
        "ConsumedQuantity|ConsumedUnit|RegionId|ResourceType|SkuId|SubAccountId|Tags|";
    struct arena *a = arena_new(0);
    struct str text = printed(a, REPORT_FOCUS, "tenant"), head = str_trim(str_cut(&text, '\n'));
    size_t needed = 0;

    (void)state;
    for (const char *p = names; *p; p++)
        needed += *p == '!';
    while (head.p) {
        struct str name = str_cut(&head, ',');
        bool must = str_contains(str_c(names), arena_printf(a, "|%.*s!|", STR_F(name)));

        needed -= must;
        if (!must && !str_contains(str_c(names), arena_printf(a, "|%.*s|", STR_F(name))))
            fail_msg("%.*s is no column of FOCUS", STR_F(name));
    }
    assert_int_equal(needed, 0);
    arena_free(a);
}

/* Every tag of a page is one of its own. */
static void check_tags(struct str page)
{
    static const char *const own[] = {
        "!doctype", "html", "head", "meta",  "title", "style", "body", "h1", "h2", "p",
        "svg",      "text", "rect", "table", "thead", "tbody", "tr",   "th", "td"};

    str_cut(&page, '<');
    while (page.p) {
        struct str tag = str_cut(&page, '<'), attributes = str_sub(tag, 0, str_find(tag, '>')),
                   name;
        size_t k = 0;

        assert_true(attributes.n < tag.n);
        name = str_cut(&attributes, ' ');
        name = str_from(name, name.n && name.p[0] == '/');
        while (k < COUNT(own) && !str_eqc(name, own[k]))
            k++;
        if (k == COUNT(own))
            fail_msg("a tag that is not the page's: <%.*s>", STR_F(str_clip(tag, 100)));
        assert_false(str_contains(attributes, STR("onerror")));
    }
}

static void html_has_plots_and_sums(void **state)
{
    static const char *const parts[] = {
        "<p>From 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z.</p>",
        "<p>held 2.4286 + idle 1.5714 + unhealthy 0.0000 = 4.0000 GPU-hours of capacity",
        "<p>cost of what was held: 6.07 USD</p>",
        "<p>no process observed the host for 3.0 s of this time</p>",
        "<rect class=\"held\" x=\"310.00\" y=\"3\" width=\"340.00\"",
        "<rect class=\"idle\" x=\"650.00\" y=\"3\" width=\"220.00\"",
        "<title>team-b, a100</title>team-b, a100</text>",
        "<td>held</td><td>team-a</td><td>a100</td><td class=\"n\">0.4286</td>",
        "<td class=\"n\">1.0714</td><td>USD</td><td class=\"n\">1</td><td class=\"n\">1</td>",
    };
    struct arena *a = arena_new(0);
    struct str page = printed(a, REPORT_HTML, "tenant,pool");

    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!str_contains(page, str_c(parts[i])))
            fail_msg("\"%s\" is not in:\n%.*s", parts[i], STR_F(page));
    assert_false(str_contains(page, STR("://")));
    check_tags(page);
    arena_free(a);
}

static void html_escapes_what_tenants_choose(void **state)
{
    static const char *const names[] = {
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "</title></svg><h1>",
        "&lt;script&gt;",
        "'onmouseover='alert(1)",
        "</td></table><style>",
        "<!--",
        "\xf0\x9f\x92\xa9<\n\x01>",
    };
    struct arena *a = arena_new(0);
    const struct fleet_hold before = HOLDS[0];
    struct str page;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        HOLDS[0].ns = HOLDS[0].name = HOLDS[0].owner = HOLDS[0].tenant = str_c(names[i]);
        page = printed(a, REPORT_HTML, "tenant,namespace,owner,pod");
        check_tags(page);
        assert_false(str_contains(page, str_c(names[i])));
    }
    HOLDS[0] = before;
    arena_free(a);
}

static void html_is_empty_without_usage(void **state)
{
    struct usage u = {.lines = NULL};
    struct buf out = BUF_INIT(0);
    struct arena *a = arena_new(0);

    (void)state;
    report_print(&out, &u, 1u << USAGE_TENANT, REPORT_HTML);
    check_tags(buf_str(&out));
    assert_true(str_has_suffix(buf_str(&out), STR("</html>\n")));
    buf_fini(&out);
    arena_free(a);
}

static void reads_columns_and_times(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;
    unsigned columns;
    struct str label;
    int64_t us, until;

    (void)state;
    err_init(&err, a);
    assert_ok(report_columns(STR("label:cost-center,pool"), &columns, &label, &err));
    assert_int_equal(columns, 1u << USAGE_POOL | 1u << USAGE_LABEL);
    assert_str(label, "cost-center");
    assert_int_equal(report_columns(STR("label:a,label:b"), &columns, &label, &err), -1);
    assert_int_equal(report_columns(STR("label:"), &columns, &label, &err), -1);
    assert_int_equal(report_columns(STR("label"), &columns, &label, &err), -1);
    assert_ok(report_columns(STR("pool, month"), &columns, &label, &err));
    assert_int_equal(columns, 1u << USAGE_POOL | 1u << USAGE_MONTH);
    assert_str(label, "");
    assert_int_equal(report_columns(STR("pool,color"), &columns, &label, &err), -1);
    assert_true(str_contains(err.message, STR("\"color\" is no column")));
    assert_ok(report_time(a, STR("1970-02"), &us, &err));
    assert_int_equal(us, 31 * 24 * HOUR);
    assert_ok(report_time(a, STR("1970-01-02"), &us, &err));
    assert_int_equal(us, 24 * HOUR);
    assert_ok(report_time(a, STR("1970-01-01T01:00:00+01:00"), &us, &err));
    assert_int_equal(us, 0);
    assert_int_equal(report_time(a, STR("yesterday"), &us, &err), -1);
    assert_ok(report_month(a, STR("1970-12"), &us, &until, &err));
    assert_int_equal(until - us, 31 * 24 * HOUR);
    assert_int_equal(us, 334 * 24 * HOUR);
    assert_int_equal(report_month(a, STR("1970-13"), &us, &until, &err), -1);
    assert_int_equal(report_month(a, STR("1970-12-01"), &us, &until, &err), -1);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_a_table),
        cmocka_unit_test(shows_what_was_borrowed),
        cmocka_unit_test(csv_is_quoted_and_never_a_formula),
        cmocka_unit_test(json_has_the_exact_values),
        cmocka_unit_test(focus_has_a_row_per_charge),
        cmocka_unit_test(focus_tells_costs_apart),
        cmocka_unit_test(focus_columns_are_those_of_the_specification),
        cmocka_unit_test(html_has_plots_and_sums),
        cmocka_unit_test(html_escapes_what_tenants_choose),
        cmocka_unit_test(html_is_empty_without_usage),
        cmocka_unit_test(reads_columns_and_times),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
