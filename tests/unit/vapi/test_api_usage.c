/* SPDX-License-Identifier: Apache-2.0 */
/* LIST and WATCH of GPUUsage over a hook whose answer the test changes. */
#include "test.h"

#include "api_harness.h"

#include <sublet/config.h>
#include <sublet/json_build.h>

#define USAGES  "/apis/sublet.dev/v1/namespaces/default/gpuusages"
#define ALL     "/apis/sublet.dev/v1/gpuusages"
#define CLUSTER "/apis/sublet.dev/v1/clustergpuusages"

struct world {
    struct harness *h;
    int64_t now_s;
    const char *used;   /* of pool a */
    const char *hours;  /* of all */
    bool other, silent; /* namespace other holds some; the hook knows nothing */
    unsigned asked;
};

static cJSON *usage_of(struct arena *a, bool cluster, const char *ns, const char *used,
                       const char *hours)
{
    return json_object(
        a,
        JSON("metadata", json_object(a, JSON("name", "a"),
                                     JSON_NONEMPTY("namespace", cluster ? STR("") : str_c(ns)))),
        JSON("status", json_object(a, JSON("used", used), JSON("gpuHours", hours),
                                   JSON("otherGPUHours", hours))));
}

static cJSON *gpu_usage(void *ctx, struct arena *a, bool cluster, struct str ns)
{
    struct world *w = ctx;
    cJSON *ret = json_new_array(a);

    w->asked++;
    if (cluster || !ns.n || str_eqc(ns, "default"))
        json_append(ret, usage_of(a, cluster, "default", w->used, w->hours));
    if (w->other && !cluster && (!ns.n || str_eqc(ns, "other")))
        json_append(ret, usage_of(a, cluster, "other", "7", w->hours));
    return ret;
}

static int set_up(void **state)
{
    struct world *w = NEW(struct world);
    struct vapi_hooks hooks = {.ctx = w, .gpu_usage = gpu_usage};
    struct config config = {.fleet_bindings = true};

    *w = (struct world){.now_s = 1800000000, .used = "1", .hours = "0"};
    w->h = harness_new_for(&hooks, &config);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    harness_free(w->h);
    mem_free(w);
    return 0;
}

/* Of the tenant's clock, by which watches look again and end. */
static void pass(struct world *w, int64_t seconds)
{
    w->now_s += seconds;
    harness_set_time(w->h, w->now_s);
}

/* A watch to its end: its events as "TYPE ns/name used". */
static const char *events(struct world *w, struct request *r)
{
    struct arena *a = harness_arena(w->h);
    struct answer got;
    struct str rest, ret = STR("");

    pass(w, 10);
    got = ask_end(w->h, r);
    rest = got.body;

    assert_int_equal(got.status, 200);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');
        cJSON *event;

        if (!line.n)
            continue;
        assert_int_equal(json_parse(a, line, &event, NULL), 0);
        ret = arena_printf(a, "%.*s%s%.*s %.*s/%.*s %.*s", STR_F(ret), ret.n ? ", " : "",
                           STR_F(json_str_at(event, "type")),
                           STR_F(json_str_at(event, "object.metadata.namespace")),
                           STR_F(json_str_at(event, "object.metadata.name")),
                           STR_F(json_str_at(event, "object.status.used")));
    }
    return arena_printf(a, "%.*s", STR_F(ret)).p;
}

static void run_until_asked(struct world *w, unsigned until)
{
    while (w->asked < until)
        get(w->h, "/livez");
}

static struct request *begin(struct world *w, const char *path, struct str revision)
{
    struct arena *a = harness_arena(w->h);

    return ask_begin(
        w->h, "GET",
        arena_printf(a, "%s?watch=1&timeoutSeconds=1&resourceVersion=%.*s", path, STR_F(revision))
            .p,
        NULL, STR_NULL, NULL);
}

/* Until it has compared for the first time. */
static struct request *watch(struct world *w, const char *path, struct str revision)
{
    unsigned before = w->asked;
    struct request *ret = begin(w, path, revision);

    run_until_asked(w, before + 1);
    return ret;
}

static struct str listed(struct world *w, const char *path)
{
    struct answer got = get(w->h, path);

    assert_int_equal(got.status, 200);
    return json_str_at(got.json, "metadata.resourceVersion");
}

static void test_a_watch_goes_on_from_a_list(void **state)
{
    struct world *w = *state;
    struct str revision = listed(w, USAGES);
    struct request *r;

    assert_true(revision.n > 0);
    assert_string_equal(events(w, watch(w, USAGES, revision)), "");
    w->used = "2"; /* between the list and the watch */
    r = watch(w, USAGES, revision);
    w->used = "3";
    vapi_gpu_usage_changed(harness_api(w->h));
    pass(w, 1);
    run_until_asked(w, 4);
    assert_string_equal(events(w, r), "MODIFIED default/a 2, MODIFIED default/a 3");
}

static void test_what_holds_nothing_is_deleted(void **state)
{
    struct world *w = *state;
    struct request *r;

    w->other = true;
    r = watch(w, ALL, STR(""));
    w->other = false;
    vapi_gpu_usage_changed(harness_api(w->h));
    pass(w, 1);
    run_until_asked(w, 2);
    assert_string_equal(events(w, r), "ADDED default/a 1, ADDED other/a 7, DELETED other/a ");
}

/* Every change that the syncer reports within a quarter of a second is one. */
static void test_changes_in_a_row_are_one(void **state)
{
    struct world *w = *state;
    struct request *r = watch(w, CLUSTER, STR("0"));

    for (int i = 0; i < 100; i++)
        vapi_gpu_usage_changed(harness_api(w->h));
    w->used = "5";
    assert_string_equal(events(w, r), "ADDED /a 1, MODIFIED /a 5");
    assert_int_equal(w->asked, 2);
}

/* Nor are they one because something else changed: a namespace that waits for nothing gets no event
 * for each pod of the others. */
static void test_hours_that_pass_are_no_change(void **state)
{
    struct world *w = *state;
    struct request *r;

    w->other = true;
    r = watch(w, ALL, STR(""));
    w->hours = "0.5";
    w->used = "2";
    vapi_gpu_usage_changed(harness_api(w->h));
    assert_string_equal(events(w, r), "ADDED default/a 1, ADDED other/a 7, MODIFIED default/a 2");
    assert_int_equal(w->asked, 2);
}

static void test_only_what_was_listed_may_be_gone_on_from(void **state)
{
    struct world *w = *state;
    struct str revision = listed(w, USAGES);

    assert_string_equal(events(w, begin(w, ALL, revision)), "ERROR / ");
    assert_string_equal(events(w, begin(w, USAGES, STR("7"))), "ERROR / ");
    for (int i = 0; i < 8; i++)
        listed(w, USAGES);
    assert_string_equal(events(w, begin(w, USAGES, revision)), "ERROR / ");
}

static void test_initial_events_and_their_end(void **state)
{
    struct world *w = *state;
    struct request *r = ask_begin(w->h, "GET",
                                  CLUSTER "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&"
                                          "sendInitialEvents=true&"
                                          "resourceVersionMatch=NotOlderThan",
                                  NULL, STR_NULL, NULL);
    struct answer got;

    run_until_asked(w, 1);
    pass(w, 2);
    got = ask_end(w->h, r);
    assert_int_equal(got.status, 200);
    assert_non_null(memmem(got.body.p, got.body.n, "\"type\":\"ADDED\"", 14));
    assert_non_null(memmem(got.body.p, got.body.n, "\"k8s.io/initial-events-end\":\"true\"", 33));
}

static void test_a_selector_hides_what_it_excludes(void **state)
{
    struct world *w = *state;
    struct request *r =
        ask_begin(w->h, "GET", ALL "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dnone",
                  NULL, STR_NULL, NULL);
    struct answer got;

    run_until_asked(w, 1);
    pass(w, 2);
    got = ask_end(w->h, r);
    assert_int_equal(got.status, 200);
    assert_int_equal(got.body.n, 0);
}

/* A syncer that is closing takes its hooks away: that is no deletion. */
static void test_no_hook_is_no_deletion(void **state)
{
    struct world *w = *state;
    const struct vapi_hooks none = {0};
    struct request *r = watch(w, CLUSTER, STR(""));

    vapi_set_hooks(harness_api(w->h), &none);
    vapi_gpu_usage_changed(harness_api(w->h));
    assert_string_equal(events(w, r), "ADDED /a 1");
}

/* Nor is it one for a client that comes meanwhile: it comes again. */
static void test_without_its_hook_nothing_is_said(void **state)
{
    struct world *w = *state;
    const struct vapi_hooks none = {0};
    struct str revision = listed(w, USAGES);
    struct arena *a = harness_arena(w->h);

    vapi_set_hooks(harness_api(w->h), &none);
    assert_int_equal(get(w->h, USAGES).status, 503);
    assert_int_equal(get(w->h, USAGES "/a").status, 503);
    assert_int_equal(get(w->h, arena_printf(a, "%s?watch=1&timeoutSeconds=1&resourceVersion=%.*s",
                                            USAGES, STR_F(revision))
                                   .p)
                         .status,
                     503);
    assert_int_equal(get(w->h, CLUSTER "?watch=1&timeoutSeconds=1").status, 503);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_watch_goes_on_from_a_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_holds_nothing_is_deleted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_in_a_row_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hours_that_pass_are_no_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_what_was_listed_may_be_gone_on_from, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_initial_events_and_their_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_selector_hides_what_it_excludes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_hook_is_no_deletion, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_its_hook_nothing_is_said, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
