/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes of a status are Events, and how many of them a host is sent. */
#include "test.h"

#include <sublet/object.h>

#include "grants/events.h"
#include "../../quoted.h"

#define NOW (INT64_C(1790000000) * SECOND)

/* JSON with ' for ". */
static cJSON *parse(struct arena *a, const char *text)
{
    return quoted_json(a, str_c(text));
}

#define CONDITION(type, is, reason, message)                                                       \
    "{'type':'" type "','status':'" is "','reason':'" reason "','message':'" message "'}"
#define STATUS(rest, conditions)                                                                   \
    "{'spec':{'pool':'a100'},'status':{" rest "'conditions':[" conditions "]}}"

static void a_change_of_a_status_is_an_event(void **state)
{
    static const struct {
        const char *kind, *before, *now, *want;
    } cases[] = {
        {"GPUBinding", "{}", STATUS("'grant':'0',", CONDITION("Ready", "True", "Granted", "")),
         "Normal Granted its guarantee counts\n"},
        {"GPUBinding", STATUS("'grant':'4',", ""), STATUS("'grant':'12',", ""),
         "Normal GrantChanged 12 GPUs of GPUPool \"a100\" are granted, before 4\n"},
        {"GPUBinding", STATUS("'grant':'4',", ""), STATUS("'grant':'4',", ""), ""},
        {"GPUBinding", STATUS("", CONDITION("Ready", "True", "Granted", "")),
         STATUS("", CONDITION("Ready", "False", "Overcommitted", "does not fit")),
         "Warning Refused Overcommitted: does not fit\n"},
        {"GPUBinding", STATUS("", CONDITION("Ready", "False", "Overcommitted", "does not fit")),
         STATUS("", CONDITION("Ready", "False", "Overcommitted", "does not fit")), ""},
        {"GPUBinding", STATUS("", CONDITION("Reclaiming", "False", "WithinGrant", "")),
         STATUS("'reclaim':{'gpus':'8','notBefore':'T1'},",
                CONDITION("Reclaiming", "True", "BeyondGrant", "x")),
         "Warning Reclaiming 8 GPUs are to be given back: pods are ended from T1 on\n"},
        {"GPUBinding", /* fewer, with the same notice */
         STATUS("'reclaim':{'gpus':'8','notBefore':'T1'},",
                CONDITION("Reclaiming", "True", "BeyondGrant", "x")),
         STATUS("'reclaim':{'gpus':'2','notBefore':'T1'},",
                CONDITION("Reclaiming", "True", "BeyondGrant", "x")),
         ""},
        {"GPUBinding",
         STATUS("'reclaim':{'gpus':'8','notBefore':'T1'},",
                CONDITION("Reclaiming", "True", "BeyondGrant", "x")),
         STATUS("", CONDITION("Reclaiming", "False", "WithinGrant", "")),
         "Normal Reclaimed nothing is left to be given back\n"},
        {"GPUBinding", "{}", STATUS("'lent':'6',", CONDITION("Borrowing", "False", "x", "")),
         "Normal Lent of its guarantee 6 GPUs are lent, before 0\n"},
        {"GPUBinding", STATUS("'lent':'6',", ""),
         STATUS("'lent':'3','lendPause':{'lend':'3','until':'T2'},", ""),
         "Normal LentTakenBack of its guarantee 3 GPUs are lent, before 6; until T2 at most 3\n"},
        {"GPUBinding", "{}", STATUS("", CONDITION("BudgetExceeded", "False", "WithinBudget", "")),
         ""},
        {"GPUBinding", STATUS("", CONDITION("BudgetWarning", "False", "BelowThresholds", "")),
         STATUS("", CONDITION("BudgetWarning", "True", "BudgetThresholdReached", "50%")),
         "Warning BudgetThresholdReached 50%\n"},
        {"GPUBinding",
         STATUS("", CONDITION("BudgetWarning", "True", "BudgetThresholdReached", "50%")),
         STATUS("", CONDITION("BudgetWarning", "True", "BudgetThresholdReached", "80%")),
         "Warning BudgetThresholdReached 80%\n"},
        {"GPUBinding", STATUS("", CONDITION("BudgetExceeded", "False", "WithinBudget", "")),
         STATUS("", CONDITION("BudgetExceeded", "True", "BudgetExceeded", "all")),
         "Warning BudgetExceeded all\n"},
        {"GPUBinding", STATUS("", CONDITION("BudgetExceeded", "True", "BudgetExceeded", "all")),
         STATUS("", CONDITION("BudgetExceeded", "False", "WithinBudget", "")),
         "Normal WithinBudget less than the budget is spent\n"},
        {"GPUPool", "{}", STATUS("", CONDITION("Overcommitted", "False", "WithinCapacity", "")),
         ""},
        {"GPUPool", STATUS("", CONDITION("Overcommitted", "False", "WithinCapacity", "")),
         STATUS("", CONDITION("Overcommitted", "True", "Unhealthy", "fewer")),
         "Warning Overcommitted Unhealthy: fewer\n"},
        {"GPUPool", STATUS("", CONDITION("Overcommitted", "False", "WithinCapacity", "")),
         STATUS("", CONDITION("Overcommitted", "True", "Refused", "of team-x/b")),
         "Warning Overcommitted Refused: a guarantee does not fit beside older ones: the "
         "GPUPool's status says whose\n"},
        {"GPUPool", STATUS("", CONDITION("Overcommitted", "True", "Unhealthy", "fewer")),
         STATUS("", CONDITION("Overcommitted", "False", "WithinCapacity", "")),
         "Normal WithinCapacity guarantees fit\n"},
        {"GPUPool", STATUS("", CONDITION("Ready", "True", "Served", "")),
         STATUS("", CONDITION("Ready", "False", "NoNodes", "none")), "Warning NoNodes none\n"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fleet_event events[FLEET_EVENTS_MOST];
        size_t n = fleet_events_of(a, cases[i].kind, parse(a, cases[i].before),
                                   parse(a, cases[i].now), events);
        struct buf got = BUF_INIT(0);

        for (size_t k = 0; k < n; k++)
            buf_printf(&got, "%s %s %.*s\n", events[k].type, events[k].reason,
                       STR_F(events[k].message));
        assert_str(buf_str(&got), cases[i].want);
        buf_fini(&got);
    }
    arena_free(a);
}

struct saying {
    struct arena *a;
    struct event_book *book;
    struct fleet_event_request request;
};

static bool say(struct saying *s, const char *kind, const char *object, const char *reason,
                int64_t now_us)
{
    const struct fleet_event event = {"Normal", reason, STR("m")};

    return fleet_event_request(s->book, s->a, kind, parse(s->a, object), &event, now_us,
                               &s->request);
}

static struct str said(struct saying *s, const char *path)
{
    cJSON *body = NULL;

    assert_int_equal(json_parse(s->a, s->request.body, &body, NULL), 0);
    return json_is_string(json_path(body, path)) ? json_str_at(body, path)
                                                 : json_text(s->a, json_path(body, path));
}

#define BINDING "{'metadata':{'name':'b','namespace':'team-a','uid':'u1'}}"
#define POOL    "{'metadata':{'name':'a100','uid':'u2'}}"

static void a_repeat_raises_the_count(void **state)
{
    struct saying s = {arena_new(0), fleet_event_book_new(), {0}};
    struct str first;

    (void)state;
    assert_true(say(&s, "GPUBinding", BINDING, "Granted", NOW));
    assert_string_equal(s.request.method, "POST");
    assert_str(s.request.path, "/api/v1/namespaces/team-a/events");
    assert_str(said(&s, "involvedObject"),
               "{\"apiVersion\":\"sublet.dev/v1alpha1\",\"kind\":\"GPUBinding\",\"name\":\"b\","
               "\"namespace\":\"team-a\",\"uid\":\"u1\"}");
    assert_str(said(&s, "count"), "1");
    first = s.request.event;
    assert_true(say(&s, "GPUBinding", BINDING, "Granted", NOW + 599 * SECOND));
    assert_string_equal(s.request.method, "PATCH");
    assert_true(str_eq(s.request.path, first));
    assert_str(said(&s, "count"), "2");
    assert_true(say(&s, "GPUBinding", BINDING, "Lent", NOW + 599 * SECOND));
    assert_string_equal(s.request.method, "POST");
    assert_true(say(&s, "GPUBinding", BINDING, "Granted", NOW + 1200 * SECOND));
    assert_string_equal(s.request.method, "POST");
    assert_false(str_eq(s.request.event, first));
    fleet_event_expired(s.book, s.request.event);
    assert_true(say(&s, "GPUBinding", BINDING, "Granted", NOW + 1201 * SECOND));
    assert_string_equal(s.request.method, "POST");
    assert_true(say(&s, "GPUPool", POOL, "Served", NOW));
    assert_str(s.request.path, "/api/v1/namespaces/default/events");
    assert_str(said(&s, "involvedObject"), "{\"apiVersion\":\"sublet.dev/v1alpha1\",\"kind\":"
                                           "\"GPUPool\",\"name\":\"a100\",\"uid\":\"u2\"}");
    fleet_event_book_free(s.book);
    arena_free(s.a);
}

static void the_rate_is_bounded(void **state)
{
    struct saying s = {arena_new(0), fleet_event_book_new(), {0}};
    int n = 0, all = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        n += say(&s, "GPUBinding", BINDING, i % 2 ? "Granted" : "Refused", NOW + i);
    assert_int_equal(n, 40); /* each reason has a bound of its own */
    assert_int_equal(fleet_event_book_dropped(s.book), 60);
    assert_false(say(&s, "GPUBinding", BINDING, "Granted", NOW + 59 * SECOND));
    assert_true(say(&s, "GPUBinding", BINDING, "Granted", NOW + 61 * SECOND));
    assert_false(say(&s, "GPUBinding", BINDING, "Granted", NOW)); /* the clock is set back */
    for (int i = 0; i < 3000; i++) {
        struct str object = arena_printf(s.a, "{'metadata':{'name':'b','uid':'x%d'}}", i);

        all += say(&s, "GPUBinding", arena_cstr(s.a, object), "Granted", NOW + 3600 * SECOND);
    }
    assert_int_equal(all, 1000);
    for (int i = 0; i < 40; i++) { /* more reasons than there are places */
        struct str reason = arena_printf(s.a, "Reason%d", i);

        (void)say(&s, "GPUBinding", BINDING, arena_cstr(s.a, reason),
                  NOW + (7200 + 120 * i) * SECOND);
        assert_string_equal(s.request.method, "POST");
    }
    fleet_event_book_free(s.book);
    arena_free(s.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_of_a_status_is_an_event),
        cmocka_unit_test(a_repeat_raises_the_count),
        cmocka_unit_test(the_rate_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
