/* SPDX-License-Identifier: Apache-2.0 */
/* The reflector against a host that pages, expires, cuts, lies and stops: what it reports must
 * always end in what the host has, and nothing may be called gone that was not proven to be. */
#include "fake_server.h"

#include <sublet/reflector.h>

struct world {
    struct fake_server s;
    struct reflector *f;
    struct buf told; /* "+a1 ~a2 -a3 ": what changed, with revisions */
    bool synced, refused, want_reached;
    const char *want; /* want_reached when the events end with it */
    const char *pages[3];
    const char *learn; /* sent before the second page is */
    unsigned page, fail_lists;
    int watch_status;
    bool hold_watch;
    bool failing, goes_on, went_back, resumed;
    unsigned checks, lists;
    const char *check;        /* the answer to a list of one object; NULL: of a late revision */
    const char *const *paths; /* where it may be; NULL: at one alone */
    unsigned n_paths, at;
};

#define LIST(rv, more, items)                                                                      \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" rv "\"" more                      \
    "},\"items\":[" items "]}"
#define OBJ(name, uid, rv)                                                                         \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv           \
    "\",\"managedFields\":[{\"a\":1}]}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"

static void check_wanted(struct world *w)
{
    if (w->want && str_has_suffix(buf_str(&w->told), str_c(w->want)))
        w->want_reached = true;
}

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct world *w = ctx;
    const struct host_object *o = now ? now : before;

    buf_printf(&w->told, "%c%.*s%llu ",
               !now     ? '-'
               : before ? '~'
                        : '+',
               STR_F(o->name), (unsigned long long)o->revision);
    check_wanted(w);
}

/* What waits for a current cache is decided in here. */
static void on_current(void *ctx, bool listed)
{
    struct world *w = ctx;

    assert_int_not_equal(reflector_listed_ms(w->f), REFLECTOR_NOT_CURRENT);
    w->synced = true;
    w->lists += listed;
    w->resumed |= !listed;
}

static void on_refused(void *ctx, const struct err *err)
{
    (void)err;
    ((struct world *)ctx)->refused = true;
}

static bool on_elsewhere(void *ctx, size_t tried)
{
    struct world *w = ctx;

    if (!w->paths)
        return false;
    w->at = (w->at + 1) % w->n_paths;
    reflector_at(w->f, str_c(w->paths[w->at]));
    return tried + 1 < w->n_paths;
}

static void on_failing(void *ctx, const struct err *err)
{
    struct world *w = ctx;

    w->failing |= err != NULL;
    w->goes_on |= !err;
}

static void on_went_back(void *ctx)
{
    struct world *w = ctx;

    w->went_back = true;
    w->check = NULL;
    reflector_restart(w->f);
}

static void answer(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    struct world *w = s->ctx;

    if (str_contains(r->query, STR("watch=1"))) {
        if (w->watch_status)
            fake_reply(x, w->watch_status, "{}");
        else
            fake_begin_watch(s, x);
        return;
    }
    if (str_contains(r->query, STR("limit=1&"))) {
        w->checks++;
        w->s.lists--;
        fake_reply(x, 200, w->check ? w->check : LIST("1000000", "", ""));
        return;
    }
    if (w->fail_lists) {
        w->fail_lists--;
        fake_reply(x, 500, "{}");
        return;
    }
    if (w->learn && w->page == 1)
        reflector_learn(w->f, str_c(w->learn));
    fake_reply(x, 200, w->pages[w->page]);
    if (w->page < 2 && w->pages[w->page + 1])
        w->page++;
}

static void world_open(struct world *w)
{
    memset(w, 0, sizeof(*w));
    fake_open(&w->s, answer, NULL);
    w->s.ctx = w;
}

static void world_reflect(struct world *w)
{
    struct reflector_options o = {.host = w->s.host,
                                  .path = STR("/api/v1/namespaces/x/pods"),
                                  .label_selector = STR("sublet.dev/cluster=u"),
                                  .changed = on_changed,
                                  .current = on_current,
                                  .refused = on_refused,
                                  .elsewhere = on_elsewhere,
                                  .failing = on_failing,
                                  .went_back = on_went_back,
                                  .ctx = w};

    w->f = reflector_open(&o);
}

static void world_sync(struct world *w)
{
    world_reflect(w);
    fake_run_until(&w->s, &w->synced);
}

static void world_wait(struct world *w, const char *suffix)
{
    w->want = suffix;
    w->want_reached = false;
    check_wanted(w);
    fake_run_until(&w->s, &w->want_reached);
}

static void world_wait_watches(struct world *w, unsigned n)
{
    while (w->s.watches < n)
        fake_run_ms(&w->s, 2);
}

static void world_close(struct world *w)
{
    w->f = reflector_close(w->f);
    fake_close(&w->s);
    buf_fini(&w->told);
}

static void test_pages_then_watch(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", ",\"continue\":\"c/1\"", OBJ("a", "ua", "1"));
    w.pages[1] = LIST("5", "", OBJ("b", "ub", "2"));
    world_sync(&w);
    assert_str(buf_str(&w.told), "+a1 +b2 ");
    assert_int_equal(w.s.lists, 2);
    assert_false(str_contains(reflector_get(w.f, STR("a"))->bytes, STR("managedFields")));

    world_wait_watches(&w, 1);
    assert_non_null(strstr(w.s.last_query, "resourceVersion=5"));
    assert_non_null(strstr(w.s.last_query, "labelSelector=sublet.dev%2Fcluster%3Du"));
    fake_line(&w.s, EVENT("MODIFIED", OBJ("a", "ua", "6")));
    fake_line(&w.s, EVENT("DELETED", OBJ("b", "ub", "7")));
    fake_line(&w.s, EVENT("ADDED", OBJ("c", "uc", "8")));
    world_wait(&w, "~a6 -b2 +c8 ");
    assert_int_equal(reflector_count(w.f), 2);
    world_close(&w);
}

static void test_cut_watch_resumes_where_it_was(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", "");
    world_sync(&w);
    world_wait_watches(&w, 1);
    fake_line(&w.s, EVENT("ADDED", OBJ("a", "ua", "6")));
    fake_line(&w.s, EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}"));
    world_wait(&w, "+a6 ");
    fake_run_ms(&w.s, 5);
    fake_end_streams(&w.s, true);
    world_wait_watches(&w, 2);
    assert_non_null(strstr(w.s.last_query, "resourceVersion=9&"));
    assert_int_equal(w.s.lists, 1);
    fake_line(&w.s, EVENT("ADDED", OBJ("a", "ua", "6"))); /* sent again: nothing new */
    fake_line(&w.s, EVENT("MODIFIED", OBJ("a", "ua", "10")));
    world_wait(&w, "~a10 ");
    assert_str(buf_str(&w.told), "+a6 ~a10 ");
    world_close(&w);
}

static void relist_after(const char *line)
{
    struct world w;

    world_open(&w);
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1") "," OBJ("b", "ub", "2"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    w.pages[0] = LIST("20", "", OBJ("a", "ua", "1") "," OBJ("c", "uc", "19"));
    fake_line(&w.s, line);
    world_wait_watches(&w, 2);
    assert_str(buf_str(&w.told), "+a1 +b2 +c19 -b2 ");
    assert_int_equal(w.s.lists, 2);
    assert_int_equal(w.lists, 2);
    assert_non_null(strstr(w.s.last_query, "resourceVersion=20"));
    world_close(&w);
}

static void test_expired_watch_lists_and_tells_the_difference(void **state)
{
    (void)state;
    relist_after(EVENT("ERROR", "{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}"));
}

static void test_garbage_lists_and_tells_the_difference(void **state)
{
    (void)state;
    relist_after("{\"type\":\"ADDED\",\"obj");
}

static void test_refused_watch_with_410_lists(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.watch_status = 410;
    w.pages[0] = LIST("5", "", "");
    world_sync(&w);
    while (w.s.lists < 2)
        fake_run_ms(&w.s, 2);
    w.watch_status = 0;
    unsigned watches = w.s.watches;
    world_wait_watches(&w, watches + 1);
    world_close(&w);
}

static void test_failed_list_is_no_empty_list(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    w.fail_lists = 3;
    fake_line(&w.s, EVENT("ERROR", "{\"code\":410}"));
    world_wait_watches(&w, 2);
    assert_int_equal(w.s.lists, 5);
    assert_str(buf_str(&w.told), "+a1 ");

    /* Neither is something that is no list, nor half of one. */
    w.pages[0] = "{}";
    fake_line(&w.s, EVENT("ERROR", "{\"code\":410}"));
    fake_run_ms(&w.s, 30);
    assert_str(buf_str(&w.told), "+a1 ");
    w.pages[0] = LIST("9", ",\"continue\":\"x\"", "");
    w.pages[1] = "{}";
    fake_run_ms(&w.s, 30);
    assert_str(buf_str(&w.told), "+a1 ");
    assert_non_null(reflector_get(w.f, STR("a")));
    world_close(&w);
}

static void test_learned_objects_are_ordered_by_revision(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", "");
    world_sync(&w);
    world_wait_watches(&w, 1);
    reflector_learn(w.f, STR(OBJ("a", "ua", "10")));
    assert_str(buf_str(&w.told), "+a10 ");
    fake_line(&w.s, EVENT("ADDED", OBJ("a", "ua", "10")));
    fake_line(&w.s, EVENT("ADDED", OBJ("b", "ub", "11")));
    fake_line(&w.s, EVENT("DELETED", OBJ("b", "ub", "12")));
    world_wait(&w, "-b11 ");
    reflector_learn(w.f, STR(OBJ("b", "ub", "11"))); /* an answer that came late: b is gone */
    reflector_learn(w.f, STR(OBJ("a", "ua", "9")));
    reflector_learn(w.f, STR("garbage"));
    assert_str(buf_str(&w.told), "+a10 +b11 -b11 ");

    /* A list made before what we wrote does not take it away. */
    reflector_learn(w.f, STR(OBJ("n", "un", "50")));
    w.pages[0] = LIST("40", "", OBJ("a", "ua", "10"));
    fake_line(&w.s, EVENT("ERROR", "{\"code\":410}"));
    world_wait_watches(&w, 2);
    assert_non_null(reflector_get(w.f, STR("n")));
    world_close(&w);
}

/* The answer to a create is no part of the list that is being made: when the list is younger and
 * does not have the object, it went in between, and no watch will say so. */
static void test_learned_during_a_list(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("20", ",\"continue\":\"c\"", OBJ("a", "ua", "1"));
    w.pages[1] = LIST("20", "", "");
    w.learn = OBJ("n", "un", "10");
    world_sync(&w);
    assert_str(buf_str(&w.told), "+a1 +n10 -n10 ");
    world_close(&w);
}

static void test_late_removal_of_a_predecessor(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", OBJ("a", "u1", "1"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    reflector_learn(w.f, STR(OBJ("a", "u2", "20")));
    fake_line(&w.s, EVENT("DELETED", OBJ("a", "u1", "19")));
    fake_line(&w.s, EVENT("ADDED", OBJ("z", "uz", "21")));
    world_wait(&w, "+z21 ");
    assert_str(buf_str(&w.told), "+a1 ~a20 +z21 ");
    world_close(&w);
}

static void answer_forbidden(struct fake_server *s, struct net_exchange *x,
                             const struct net_request *r)
{
    (void)s;
    (void)r;
    fake_reply(x, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}");
}

static void test_refusal_is_told_once_and_not_hammered(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.s.answer = answer_forbidden;
    world_reflect(&w);
    fake_run_until(&w.s, &w.refused);
    fake_run_ms(&w.s, 60);
    assert_int_equal(w.s.lists, 1);
    assert_false(reflector_synced(w.f));
    assert_true(reflector_refused(w.f));
    world_close(&w);
}

static void answer_of_c(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    if (str_contains(r->path, STR("/c")))
        answer(s, x, r);
    else
        fake_reply(x, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}");
}

static void test_another_path_is_tried_at_once(void **state)
{
    static const char *const paths[] = {"/a", "/b", "/c"};
    struct world w;

    (void)state;
    world_open(&w);
    w.paths = paths;
    w.n_paths = 3;
    w.s.answer = answer_of_c;
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1"));
    world_sync(&w);
    assert_int_equal(w.at, 2);
    assert_false(w.refused);
    assert_str(buf_str(&w.told), "+a1 ");
    /* Those before the one where it was are tried as well. */
    w.paths = (const char *const[]){"/c", "/b", "/a"};
    reflector_at(w.f, STR("/a"));
    w.synced = false;
    reflector_restart(w.f);
    fake_run_until(&w.s, &w.synced);
    assert_int_equal(w.at, 0);
    assert_false(w.refused);
    world_close(&w);
}

static void test_no_path_is_a_refusal(void **state)
{
    static const char *const paths[] = {"/a", "/b"};
    struct world w;

    (void)state;
    world_open(&w);
    w.paths = paths;
    w.n_paths = 2;
    w.s.answer = answer_of_c;
    world_reflect(&w);
    fake_run_until(&w.s, &w.refused);
    fake_run_ms(&w.s, 60);
    assert_int_equal(w.at, 0); /* which is tried first, in a while */
    assert_true(reflector_refused(w.f));
    world_close(&w);
}

/* Each of them lists and none watches: no reason to go from one to the other. */
static void test_a_path_without_watches_is_not_left_at_once(void **state)
{
    static const char *const paths[] = {"/a", "/b"};
    struct world w;

    (void)state;
    world_open(&w);
    w.paths = paths;
    w.n_paths = 2;
    w.watch_status = 404;
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1"));
    world_sync(&w);
    fake_run_ms(&w.s, 60);
    assert_in_range(w.s.lists, 1, 5);
    assert_int_equal(w.at, 0);
    world_close(&w);
}

static void test_host_away_and_back(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    fake_go_away(&w.s);
    fake_run_ms(&w.s, 50);
    assert_str(buf_str(&w.told), "+a1 ");
    fake_come_back(&w.s);
    world_wait_watches(&w, 2);
    fake_line(&w.s, EVENT("DELETED", OBJ("a", "ua", "6")));
    world_wait(&w, "-a1 ");
    world_close(&w);
}

/* It may have been restored while the watch was cut: then its revision is lower, whatever the watch
 * from there on says. */
static void test_a_host_that_went_back_is_listed_anew(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("50", "", OBJ("a", "ua", "40") "," OBJ("b", "ub", "20"));
    world_sync(&w);
    /* A connection that breaks before the first byte of an answer is used again by libcurl. */
    world_wait_watches(&w, 1);
    fake_line(&w.s, EVENT("MODIFIED", OBJ("b", "ub", "51")));
    world_wait(&w, "~b51 ");
    fake_end_streams(&w.s, true);
    world_wait_watches(&w, 2);
    fake_line(&w.s, EVENT("MODIFIED", OBJ("b", "ub", "52")));
    world_wait(&w, "~b52 ");
    assert_int_equal(w.checks, 1);
    assert_false(w.went_back);

    w.check = LIST("30", "", "");
    w.pages[0] = LIST("30", "", OBJ("b", "ub", "20"));
    fake_end_streams(&w.s, true);
    world_wait(&w, "-a0 ");
    assert_true(w.went_back);
    world_close(&w);
}

/* The answer to a request of ours has an object that the watch should have shown already: it was
 * deleted since, or the host was restored and has not ended the watch yet. */
static void test_an_object_of_the_past_is_checked(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("50", "", OBJ("a", "ua", "40"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    reflector_learn(w.f, STR(OBJ("b", "ub", "45")));
    assert_int_equal(reflector_listed_ms(w.f), REFLECTOR_NOT_CURRENT);
    fake_run_until(&w.s, &w.resumed);
    assert_int_equal(w.checks, 1);
    assert_str(buf_str(&w.told), "+a40 ");
    world_wait_watches(&w, 2);

    w.check = LIST("31", "", "");
    w.pages[0] = LIST("31", "", OBJ("b", "ub", "30"));
    reflector_learn(w.f, STR(OBJ("b", "ub", "30")));
    world_wait(&w, "+b30 -a0 ");
    assert_true(w.went_back);
    world_close(&w);
}

/* The list after an expired watch says so as well. */
static void test_a_list_of_a_host_that_went_back(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("50", "", OBJ("a", "ua", "40"));
    world_sync(&w);
    world_wait_watches(&w, 1);
    w.pages[0] = LIST("30", "", "");
    fake_line(&w.s, EVENT("ERROR", "{\"code\":410}"));
    world_wait(&w, "-a0 ");
    assert_true(w.went_back);
    world_close(&w);
}

/* A host that answers everything but its watches: 429, as where it has too many of them. */
static void test_watches_that_are_turned_away_are_told(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.pages[0] = LIST("5", "", OBJ("a", "ua", "1"));
    w.watch_status = 429;
    world_reflect(&w);
    fake_run_until(&w.s, &w.failing);
    assert_true(reflector_synced(w.f));
    assert_false(w.goes_on);
    w.watch_status = 0;
    world_wait_watches(&w, w.s.watches + 1);
    fake_line(&w.s, EVENT("MODIFIED", OBJ("a", "ua", "6")));
    world_wait(&w, "~a6 ");
    assert_true(w.goes_on);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_then_watch),
        cmocka_unit_test(test_cut_watch_resumes_where_it_was),
        cmocka_unit_test(test_expired_watch_lists_and_tells_the_difference),
        cmocka_unit_test(test_garbage_lists_and_tells_the_difference),
        cmocka_unit_test(test_refused_watch_with_410_lists),
        cmocka_unit_test(test_failed_list_is_no_empty_list),
        cmocka_unit_test(test_learned_objects_are_ordered_by_revision),
        cmocka_unit_test(test_learned_during_a_list),
        cmocka_unit_test(test_late_removal_of_a_predecessor),
        cmocka_unit_test(test_refusal_is_told_once_and_not_hammered),
        cmocka_unit_test(test_another_path_is_tried_at_once),
        cmocka_unit_test(test_a_path_without_watches_is_not_left_at_once),
        cmocka_unit_test(test_no_path_is_a_refusal),
        cmocka_unit_test(test_host_away_and_back),
        cmocka_unit_test(test_a_host_that_went_back_is_listed_anew),
        cmocka_unit_test(test_an_object_of_the_past_is_checked),
        cmocka_unit_test(test_a_list_of_a_host_that_went_back),
        cmocka_unit_test(test_watches_that_are_turned_away_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
