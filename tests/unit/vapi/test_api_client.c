/* SPDX-License-Identifier: Apache-2.0 */
/* The in-process client, the syncer's hooks, events, and how the machine behaves when something
 * moves while a hook thinks. */
#include "../../../vapi/core/core.h"
#include "../../../vapi/controllers/expiry.h"
#include "api_harness.h"

#include "test.h"

#include <sublet/read_only.h>

#define CM   "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/namespaces/default/pods"

static int setup(void **state)
{
    *state = harness_new();
    return 0;
}

static int teardown(void **state)
{
    harness_free(*state);
    return 0;
}

struct outcome {
    struct arena *arena;
    bool done, in_call;
    const struct err_kind *kind; /* of the error */
    struct str message;
    cJSON *object;
    int calls;
};

static void on_done(void *ctx, const struct err *err, const struct store_object *object)
{
    struct outcome *o = ctx;

    assert_false(o->in_call);
    o->kind = err ? err->kind : NULL;
    o->message = err ? arena_str(o->arena, err->message) : STR_NULL;
    o->object = object ? vapi_tree(o->arena, object) : NULL;
    o->calls++;
    o->done = true;
}

static cJSON *tree(struct harness *h, const char *json)
{
    cJSON *t;

    assert_int_equal(json_parse(harness_arena(h), str_c(json), &t, NULL), 0);
    return t;
}

/* Runs one call of the client; it must not answer before it returned. */
#define CLIENT(h, o, call)                                                                         \
    do {                                                                                           \
        (o) = (struct outcome){.arena = harness_arena(h), .in_call = true};                        \
        call;                                                                                      \
        (o).in_call = false;                                                                       \
        harness_run_until(h, &(o).done);                                                           \
    } while (0)

static void test_client(void **state)
{
    struct harness *h = *state;
    struct vapi *api = harness_api(h);
    const struct resource *cm = harness_resource(h, "", "configmaps");
    struct vapi_delete gone = {.grace_seconds = -1};
    struct outcome o;

    CLIENT(h, o,
           vapi_create(api, cm, STR("default"),
                       tree(h, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"1\"}}"), on_done,
                       &o));
    assert_null(o.kind);
    assert_str(json_str_at(o.object, "metadata.namespace"), "default");

    CLIENT(h, o,
           vapi_create(api, cm, STR("default"), tree(h, "{\"metadata\":{\"name\":\"a\"}}"), on_done,
                       &o));
    assert_ptr_equal(o.kind, &ERR_ALREADY_EXISTS);
    CLIENT(h, o, vapi_create(api, cm, STR("default"), tree(h, "{\"metadata\":{}}"), on_done, &o));
    assert_ptr_equal(o.kind, &ERR_INVALID);

    CLIENT(h, o,
           vapi_patch(api, cm, STR_NULL, STR("default"), STR("a"),
                      tree(h, "{\"data\":{\"x\":\"2\"}}"), on_done, &o));
    assert_str(json_str_at(o.object, "data.x"), "2");
    cJSON *wanted = o.object;
    json_set_str(harness_arena(h), json_get(wanted, "data"), "x", STR("3"));
    CLIENT(h, o, vapi_update(api, cm, STR_NULL, wanted, on_done, &o));
    assert_str(json_str_at(o.object, "data.x"), "3");

    CLIENT(h, o, vapi_delete(api, cm, STR("default"), STR("a"), &gone, on_done, &o));
    assert_null(o.kind);
    assert_null(o.object);
    CLIENT(h, o, vapi_delete(api, cm, STR("default"), STR("a"), &gone, on_done, &o));
    assert_ptr_equal(o.kind, &ERR_NOT_FOUND);
}

static void test_client_status(void **state)
{
    struct harness *h = *state;
    struct vapi *api = harness_api(h);
    const struct resource *d = harness_resource(h, "apps", "deployments");
    struct outcome o;

    CLIENT(h, o,
           vapi_create(api, d, STR("default"), tree(h, "{\"metadata\":{\"name\":\"d\"}}"), on_done,
                       &o));
    json_set_i64(harness_arena(h), json_ensure_object(harness_arena(h), o.object, "status"),
                 "replicas", 4);
    cJSON *wanted = o.object;
    CLIENT(h, o, vapi_update(api, d, STR("status"), wanted, on_done, &o));
    assert_null(o.kind);
    assert_int_equal(json_i64_at(o.object, "status.replicas", 0), 4);
    CLIENT(h, o, vapi_update(api, d, STR("status"), wanted, on_done, &o));
    assert_ptr_equal(o.kind, &ERR_CONFLICT);
}

/* Many writes without returning to the loop are one transaction, and each is answered once. */
static void test_many_at_once(void **state)
{
    enum { N = 500 };
    struct harness *h = *state;
    const struct resource *cm = harness_resource(h, "", "configmaps");
    struct outcome o = {.arena = harness_arena(h)};

    for (int i = 0; i < N; i++)
        vapi_create(harness_api(h), cm, STR("default"),
                    tree(h, "{\"metadata\":{\"generateName\":\"n-\"}}"), on_done, &o);
    assert_int_equal(o.calls, 0);
    while (o.calls < N) {
        o.done = false;
        harness_run_until(h, &o.done);
    }
    assert_int_equal(store_count(harness_store(h), cm->storage), N);
}

/* Everything written before this is durable after it. */
static void flush(struct harness *h)
{
    assert_int_equal(post(h, CM, "{\"metadata\":{\"generateName\":\"flush-\"}}").status, 201);
}

/* ---- events ---- */

static void test_events_count(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");

    for (int i = 0; i < 40; i++) {
        vapi_event(harness_api(h), a.json, "Warning", "Oops", STR("it broke"), "test");
        get(h, CM "/a");
    }
    flush(h);
    a = get(h, "/api/v1/namespaces/default/events");
    assert_int_equal(json_count(json_get(a.json, "items")), 1);
    const cJSON *event = json_at(json_get(a.json, "items"), 0);
    assert_int_equal(json_i64_at(event, "count", 0), 25);
    assert_str(json_str_at(event, "involvedObject.kind"), "ConfigMap");
    assert_str(json_str_at(event, "involvedObject.name"), "a");
    assert_str(json_str_at(event, "message"), "it broke");
    assert_str(json_str_at(event, "source.component"), "test");
}

/* An hour after it was last seen an event leaves; one whose time is in the future leaves as well.
 */
static void test_events_expire(void **state)
{
    struct harness *h = *state;
    const char *path = "/api/v1/namespaces/default/events";

    post(h, path, "{\"metadata\":{\"name\":\"old\"},\"lastTimestamp\":\"2027-01-15T08:00:00Z\"}");
    post(h, path, "{\"metadata\":{\"name\":\"liar\"},\"lastTimestamp\":\"2099-01-15T08:00:00Z\"}");
    harness_set_time(h, 1800000000 + 1800);
    post(h, path, "{\"metadata\":{\"name\":\"new\"}}");
    post(h, CM, "{\"metadata\":{\"name\":\"no-event\"}}");
    harness_set_time(h, 1800000000 + 3700);
    expiry_sweep(harness_api(h)->expiry);
    flush(h);
    assert_int_equal(get(h, CM "/no-event").status, 200);
    struct answer a = get(h, path);
    assert_int_equal(json_count(json_get(a.json, "items")), 1);
    assert_str(json_str_at(json_at(json_get(a.json, "items"), 0), "metadata.name"), "new");
}

/* ---- hooks ---- */

static struct {
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
    cJSON *object;
    int asked, undone, stored;
    bool refuse_store, asked_flag;
} HOOK;

static bool wants(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old)
{
    (void)ctx;
    (void)object;
    (void)old;
    return str_eqc(r->group_resource, "configmaps");
}

static void admit(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run,
                  void (*done)(void *done_ctx, const struct err *err), void *done_ctx)
{
    (void)ctx;
    (void)r;
    (void)old;
    (void)dry_run;
    json_set_str(a, json_ensure_object(a, object, "data"), "seen", STR("yes"));
    HOOK.done = done;
    HOOK.ctx = done_ctx;
    HOOK.object = object;
    HOOK.asked++;
    HOOK.asked_flag = true;
}

static void undo(void *ctx, const struct resource *r, const cJSON *object)
{
    (void)ctx;
    (void)r;
    (void)object;
    HOOK.undone++;
}

static int before_store(void *ctx, struct arena *a, const struct resource *r, const cJSON *object,
                        const cJSON *old, bool dry_run, struct err *err)
{
    (void)ctx;
    (void)a;
    (void)object;
    (void)old;
    (void)dry_run;
    HOOK.stored++;
    if (!HOOK.refuse_store)
        return 0;
    return err_forbidden(err, r->group, r->plural, STR("x"), "the pool is full");
}

static int check_pod(void *ctx, struct arena *a, struct str ns, const cJSON *pod,
                     const struct vapi_template *of, bool dry_run,
                     void (*warn)(void *warn_ctx, struct str text), void *warn_ctx, struct err *err)
{
    (void)ctx;
    (void)dry_run;
    (void)ns;
    if (of)
        warn(warn_ctx,
             arena_printf(a, "%.*s %.*s: %lld of %.*s", STR_F(of->kind), STR_F(of->name),
                          (long long)of->copies, STR_F(json_str_at(pod, "metadata.generateName"))));
    if (!json_true(json_path(pod, "spec.hostNetwork")))
        return 0;
    return err_set(err, &ERR_FORBIDDEN, "host networking is not for you");
}

static const struct vapi_hooks HOOKS = {
    .before_store = before_store,
    .check_pod = check_pod,
    .admit = admit,
    .wants_admit = wants,
    .admit_undo = undo,
};

static int setup_hooks(void **state)
{
    memset(&HOOK, 0, sizeof(HOOK));
    *state = harness_new_with(&HOOKS);
    return 0;
}

/* Starts a patch and runs the loop until the hook was called. */
static void start_patch(struct harness *h, struct outcome *o, const char *patch)
{
    *o = (struct outcome){.arena = harness_arena(h)};
    HOOK.asked_flag = false;
    vapi_patch(harness_api(h), harness_resource(h, "", "configmaps"), STR_NULL, STR("default"),
               STR("a"), tree(h, patch), on_done, o);
    assert_true(HOOK.asked_flag);
}

static void make_one(struct harness *h)
{
    struct outcome o = {.arena = harness_arena(h)};

    vapi_create(harness_api(h), harness_resource(h, "", "configmaps"), STR("default"),
                tree(h, "{\"metadata\":{\"name\":\"a\"}}"), on_done, &o);
    assert_false(o.done);
    HOOK.done(HOOK.ctx, NULL);
    harness_run_until(h, &o.done);
    assert_null(o.kind);
    assert_str(json_str_at(o.object, "data.seen"), "yes");
}

static void test_admit_may_refuse(void **state)
{
    struct harness *h = *state;
    struct outcome o;
    struct err err;

    make_one(h);
    start_patch(h, &o, "{\"data\":{\"x\":\"1\"}}");
    err_init(&err, NULL);
    err_set(&err, &ERR_FORBIDDEN, "no");
    HOOK.done(HOOK.ctx, &err);
    harness_run_until(h, &o.done);
    assert_ptr_equal(o.kind, &ERR_FORBIDDEN);
    assert_int_equal(HOOK.undone, 0);
}

/* Two patches wait; the second to be let through finds another base and is made anew on it. */
static void test_base_moves_while_hook_thinks(void **state)
{
    struct harness *h = *state;
    struct outcome first, second;
    void (*done)(void *, const struct err *);
    void *ctx;

    make_one(h);
    start_patch(h, &first, "{\"data\":{\"x\":\"1\"}}");
    done = HOOK.done;
    ctx = HOOK.ctx;
    start_patch(h, &second, "{\"data\":{\"y\":\"2\"}}");
    done(ctx, NULL);
    harness_run_until(h, &first.done);
    assert_null(first.kind);

    HOOK.asked_flag = false;
    HOOK.done(HOOK.ctx, NULL);
    assert_true(HOOK.asked_flag);
    assert_int_equal(HOOK.undone, 1);
    HOOK.done(HOOK.ctx, NULL);
    harness_run_until(h, &second.done);
    assert_null(second.kind);
    assert_str(json_str_at(second.object, "data.x"), "1");
    assert_str(json_str_at(second.object, "data.y"), "2");
}

/* A patch that names a revision is not made anew. */
static void test_revision_given_is_a_precondition(void **state)
{
    struct harness *h = *state;
    struct outcome first, second;
    void (*done)(void *, const struct err *);
    void *ctx;
    struct str rv;

    make_one(h);
    rv = json_str_at(get(h, CM "/a").json, "metadata.resourceVersion");
    start_patch(h, &first, "{\"data\":{\"x\":\"1\"}}");
    done = HOOK.done;
    ctx = HOOK.ctx;
    start_patch(h, &second,
                arena_printf(harness_arena(h),
                             "{\"metadata\":{\"resourceVersion\":\"%.*s\"},\"data\":{\"y\":\"2\"}}",
                             STR_F(rv))
                    .p);
    done(ctx, NULL);
    harness_run_until(h, &first.done);
    HOOK.done(HOOK.ctx, NULL);
    harness_run_until(h, &second.done);
    assert_ptr_equal(second.kind, &ERR_CONFLICT);
    assert_int_equal(HOOK.undone, 1);
}

static void test_store_hook_refuses(void **state)
{
    struct harness *h = *state;
    struct answer a;

    assert_int_equal(post(h, PODS, "{\"metadata\":{\"name\":\"p\"}}").status, 201);
    HOOK.refuse_store = true;
    a = post(h, PODS, "{\"metadata\":{\"name\":\"q\"}}");
    assert_int_equal(a.status, 403);
    assert_str(json_str_at(a.json, "message"), "pods \"x\" is forbidden: the pool is full");
    assert_int_equal(delete_(h, PODS "/p", NULL).status, 403);
    assert_int_equal(get(h, PODS "/p").status, 200);
    HOOK.refuse_store = false;
}

static void test_pod_shape(void **state)
{
    struct harness *h = *state;
    struct answer a =
        post(h, PODS, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostNetwork\":true}}");

    assert_int_equal(a.status, 403);
    a = post(h, "/apis/apps/v1/namespaces/default/deployments",
             "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"template\":{\"spec\":{\"hostNetwork\":"
             "true}}}}");
    assert_int_equal(a.status, 201);
    assert_true(has_header(&a, "warning: 299 - \"host networking is not for you\""));
}

/* How many pods a template is for, also when only the scale is written. */
static void test_template_has_its_owner_and_number(void **state)
{
    struct harness *h = *state;
    struct answer a = post(
        h, "/apis/apps/v1/namespaces/default/deployments",
        "{\"metadata\":{\"name\":\"o\"},\"spec\":{\"replicas\":7,\"template\":{\"spec\":{}}}}");

    assert_int_equal(a.status, 201);
    assert_true(has_header(&a, "warning: 299 - \"Deployment o: 7 of o-\""));
    a = merge(h, "/apis/apps/v1/namespaces/default/deployments/o/scale",
              "{\"spec\":{\"replicas\":9}}");
    assert_int_equal(a.status, 200);
    assert_true(has_header(&a, "warning: 299 - \"Deployment o: 9 of o-\""));
}

/* ---- read-only by order ---- */

#define NO "another process serves this virtual cluster: other_1"

static void check_refused(const struct answer *a)
{
    assert_int_equal(a->status, 503);
    assert_str(json_str_at(a->json, "reason"), "ServiceUnavailable");
    assert_str(json_str_at(a->json, "message"), NO);
    assert_int_equal(json_i64_at(a->json, "details.retryAfterSeconds", 0), 5);
    assert_true(has_header(a, "retry-after: 5"));
}

static void test_read_only_refuses_writes_alone(void **state)
{
    struct harness *h = *state;
    struct vapi *api = harness_api(h);
    struct outcome o;
    struct answer a;

    assert_int_equal(post(h, CM, "{\"metadata\":{\"name\":\"kept\"}}").status, 201);
    vapi_set_read_only(api, NO);
    a = post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    check_refused(&a);
    a = merge(h, CM "/kept", "{\"data\":{\"k\":\"v\"}}");
    check_refused(&a);
    a = delete_(h, CM "/kept", NULL);
    check_refused(&a);
    a = delete_(h, CM, NULL);
    check_refused(&a);
    assert_int_equal(get(h, CM "/kept").status, 200);
    assert_int_equal(get(h, CM).status, 200);
    assert_int_equal(post(h, CM "?dryRun=All", "{\"metadata\":{\"name\":\"a\"}}").status, 201);
    CLIENT(h, o,
           vapi_create(api, harness_resource(h, "", "configmaps"), STR("default"),
                       tree(h, "{\"metadata\":{\"name\":\"inside\"}}"), on_done, &o));
    assert_ptr_equal(o.kind, &ERR_UNAVAILABLE);
    vapi_set_read_only(api, NULL);
    assert_int_equal(post(h, CM, "{\"metadata\":{\"name\":\"a\"}}").status, 201);
}

static void test_held_writes_are_answered_when_it_is_decided(void **state)
{
    struct harness *h = *state;
    struct vapi *api = harness_api(h);
    struct outcome o = {.arena = harness_arena(h)};
    struct request *r;
    struct answer a;

    vapi_hold_writes(api);
    r = ask_begin(h, "POST", CM, NULL, STR("{\"metadata\":{\"name\":\"a\"}}"), NULL);
    vapi_create(api, harness_resource(h, "", "configmaps"), STR("default"),
                tree(h, "{\"metadata\":{\"name\":\"inside\"}}"), on_done, &o);
    assert_int_equal(get(h, CM).status, 200); /* reads do not wait */
    assert_false(o.done);
    vapi_set_read_only(api, NULL);
    a = ask_end(h, r);
    assert_int_equal(a.status, 201);
    harness_run_until(h, &o.done);
    assert_null(o.kind);

    vapi_hold_writes(api);
    r = ask_begin(h, "DELETE", CM "/a", NULL, STR_NULL, NULL);
    assert_int_equal(get(h, CM "/a").status, 200);
    vapi_set_read_only(api, NO);
    a = ask_end(h, r);
    check_refused(&a);
}

int main(void)
{
#define TEST(name)   cmocka_unit_test_setup_teardown(name, setup, teardown)
#define HOOKS_(name) cmocka_unit_test_setup_teardown(name, setup_hooks, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_client),
        TEST(test_client_status),
        TEST(test_many_at_once),
        TEST(test_events_count),
        TEST(test_events_expire),
        TEST(test_read_only_refuses_writes_alone),
        TEST(test_held_writes_are_answered_when_it_is_decided),
        HOOKS_(test_admit_may_refuse),
        HOOKS_(test_base_moves_while_hook_thinks),
        HOOKS_(test_revision_given_is_a_precondition),
        HOOKS_(test_store_hook_refuses),
        HOOKS_(test_pod_shape),
        HOOKS_(test_template_has_its_owner_and_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
