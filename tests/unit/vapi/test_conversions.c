/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion webhooks of a CRD: what is taken of an answer and in which words others are refused,
 * whatever a hostile server writes; how many calls are under way, and what becomes of those whose
 * reader leaves. Messages are compared with a kube-apiserver in tests/integration/
 * test_conversion.py. */

#include "controller_world.h"

#include "../../../vapi/crd/conversion.h"

#include <sublet/conversion.h>
#include <sublet/registry.h>
#include <sublet/vapi_hooks.h>

#define CRDS "customresourcedefinitions.apiextensions.k8s.io"
#define CRD                                                                                        \
    "{'metadata':{'name':'lots.x.dev'},'spec':{'group':'x.dev','scope':'Namespaced','names':{"     \
    "'kind':'Lot','plural':'lots'},'conversion':{'strategy':'Webhook','webhook':{"                 \
    "'conversionReviewVersions':['v1'],'clientConfig':{'service':{'namespace':'n','name':'s'}}}}," \
    "'versions':[{'name':'v1','served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':"  \
    "'object','properties':{'one':{'type':'string'}}}}},"                                          \
    "{'name':'v2','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"      \
    "'properties':{'two':{'type':'string'}}}}}]}}"
#define OTHER_CRD                                                                                  \
    "{'metadata':{'name':'bits.x.dev'},'spec':{'group':'x.dev','scope':'Namespaced','names':{"     \
    "'kind':'Bit','plural':'bits'},'conversion':{'strategy':'Webhook','webhook':{"                 \
    "'conversionReviewVersions':['v1'],'clientConfig':{'service':{'namespace':'n','name':'s'}}}}," \
    "'versions':[{'name':'v1','served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':"  \
    "'object'}}},{'name':'v2','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':"   \
    "'object'}}}]}}"
#define BIT "{'kind':'Bit','apiVersion':'x.dev/v2','metadata':{'name':'a','uid':'u'}}"
#define LOT "{'kind':'Lot','apiVersion':'x.dev/v2','metadata':{'name':'a','uid':'u'},'two':'x'}"

/* ---- answers ---- */

static struct str with(struct arena *a, const char *objects)
{
    cJSON *tree = world_parse(W, objects);

    return arena_printf(a,
                        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
                        "v1\",\"response\":{\"uid\":\"u1\",\"result\":{\"status\":\"Success\"},"
                        "\"convertedObjects\":%s}}",
                        json_text(a, tree).p);
}

static cJSON *lot_of(const char *json)
{
    return world_parse(W, json);
}

/* The message, or "" and the object. */
static struct str read_one(struct str body, int status, cJSON **ret)
{
    struct arena *a = world_arena(W);
    struct crd_conversion *x = crd_conversion_new(a, world_parse(W, CRD));
    cJSON *objects[1] = {lot_of(LOT)};
    struct err *err = ARENA_NEW(a, struct err);

    err_init(err, a);
    if (crd_conversion_read(x, a, STR("u1"), STR("x.dev/v1"), status, body, objects, 1, err)) {
        assert_ptr_equal(err->kind, &ERR_UNKNOWN);
        return err->message;
    }
    if (ret)
        *ret = objects[0];
    return STR("");
}

#define FAILED   "conversion webhook for x.dev/v2, Kind=Lot failed: "
#define RETURNED "conversion webhook for x.dev/v2, Kind=Lot returned "
#define META     "'metadata':{'name':'a','uid':'u'}"

static void answers_are_judged(void **state)
{
    static const struct {
        const char *objects, *message;
    } cases[] = {
        {"[{'kind':'Lot','apiVersion':'x.dev/v1'," META "}]", ""},
        {"[]", RETURNED "0 objects, expected 1"},
        {"{}", RETURNED "0 objects, expected 1"},
        {"null", RETURNED "0 objects, expected 1"},
        {"[{'kind':'Lot','apiVersion':'x.dev/v1'," META "},1]", RETURNED "2 objects, expected 1"},
        {"[1]", "Object 'Kind' is missing in '1'"},
        {"[{'kind':'Lot','apiVersion':'x.dev/v3'," META "}]",
         RETURNED "invalid object at index 0: invalid groupVersion (expected x.dev/v1, received "
                  "x.dev/v3)"},
        {"[{'kind':'Lots','apiVersion':'x.dev/v1'," META "}]",
         RETURNED "invalid object at index 0: invalid kind (expected Lot, received Lots)"},
        {"[{'kind':'Lot','apiVersion':'x.dev/v1','metadata':{'name':'b','uid':'u'}}]",
         RETURNED "invalid object: must have the same name: a != b"},
        {"[{'kind':'Lot','apiVersion':'x.dev/v1','metadata':{'name':'a','uid':'u','namespace':'k'}"
         "}]",
         RETURNED "invalid object: must have the same namespace:  != k"},
        {"[{'kind':'Lot','apiVersion':'x.dev/v1','metadata':{'name':'a'}}]",
         RETURNED "invalid object: must have the same UID: u != "},
        {"[{'kind':'Lot','apiVersion':'x.dev/v1','metadata':{'name':'a','uid':'u','labels':{'a':1}}"
         "}]",
         RETURNED "invalid metadata: metadata.labels[a] must be a string, but is int64 in "
                  "converted object"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        print_message("case %zu\n", i);
        assert_str(read_one(with(world_arena(W), cases[i].objects), 200, NULL), cases[i].message);
    }
    assert_str(read_one(STR("no"), 500, NULL),
               FAILED "an error on the server (\"no\") has prevented the request from succeeding");
    assert_str(read_one(STR("{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
                            "v1\",\"response\":{\"uid\":\"u2\"}}"),
                        200, NULL),
               FAILED "expected response.uid=\"u1\", got \"u2\"");
}

static void only_labels_and_annotations_change(void **state)
{
    cJSON *made = NULL;

    (void)state;
    assert_str(
        read_one(with(world_arena(W),
                      "[{'kind':'Lot','apiVersion':'x.dev/v1','one':'x','metadata':{'name':'a',"
                      "'uid':'u','generation':7,'finalizers':['f'],'resourceVersion':'9',"
                      "'ownerReferences':[{}],'labels':{'a':'b'},'annotations':{'c':'d'}}}]"),
                 200, &made),
        "");
    assert_true(json_equal(made, lot_of("{'kind':'Lot','apiVersion':'x.dev/v1','one':'x','metadata'"
                                        ":{'name':'a','uid':'u','labels':{'a':'b'},'annotations':{"
                                        "'c':'d'}}}")));
}

/* Deep nesting, a key twice, bytes that are no review. */
static void hostile_answers(void **state)
{
    struct arena *a = world_arena(W);
    struct buf deep = BUF_INIT(0);
    cJSON *made = NULL;

    (void)state;
    buf_addc(&deep, "[{'kind':'Lot','apiVersion':'x.dev/v1'," META ",'one':");
    for (int i = 0; i < 255; i++)
        buf_char(&deep, '[');
    for (int i = 0; i < 255; i++)
        buf_char(&deep, ']');
    buf_addc(&deep, "}]");
    for (size_t i = 0; i < deep.n; i++)
        if (deep.p[i] == '\'')
            deep.p[i] = '"';
    struct str text = arena_printf(
        a,
        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"response\":"
        "{\"uid\":\"u1\",\"result\":{\"status\":\"Success\"},\"convertedObjects\":%.*s}}",
        STR_F(buf_str(&deep)));
    assert_str(read_one(text, 200, NULL), "");
    buf_fini(&deep);
    text = STR("{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\","
               "\"response\":{\"uid\":\"u1\",\"result\":{\"status\":\"Success\"},"
               "\"convertedObjects\":[{\"kind\":\"Lot\",\"apiVersion\":\"x.dev/v1\",\"metadata\":{"
               "\"name\":\"b\",\"name\":\"a\",\"uid\":\"u\"},\"one\":\"x\",\"one\":\"y\"}]}}");
    assert_str(read_one(text, 200, &made), "");
    assert_str(json_str(json_get(made, "one")), "y");
    for (size_t i = 0; i < text.n; i++)
        assert_true(read_one(str_sub(text, 0, i), 200, NULL).n);
}

/* ---- calls ---- */

#define MOST_POSTS 2048

static struct {
    struct {
        vapi_webhook_cb done;
        void *ctx;
        char uid[64];
    } posts[MOST_POSTS];
    size_t sent, answered;
} SERVER;

static void on_post(void *ctx, const struct vapi_webhook *q, vapi_webhook_cb done, void *done_ctx)
{
    struct arena *a = arena_new(0);
    cJSON *review = NULL;

    (void)ctx;
    assert_true(SERVER.sent < MOST_POSTS);
    assert_int_equal(json_parse(a, q->body, &review, NULL), 0);
    assert_str(json_str_at(review, "request.desiredAPIVersion"), "x.dev/v1");
    snprintf(SERVER.posts[SERVER.sent].uid, sizeof(SERVER.posts[0].uid), "%.*s",
             STR_F(json_str_at(review, "request.uid")));
    SERVER.posts[SERVER.sent].done = done;
    SERVER.posts[SERVER.sent++].ctx = done_ctx;
    arena_free(a);
}

static void answer_next(void)
{
    struct arena *a = arena_new(0);
    size_t i = SERVER.answered++;
    struct str body = arena_printf(
        a,
        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"response\":{"
        "\"uid\":\"%s\",\"result\":{\"status\":\"Success\"},\"convertedObjects\":[{\"kind\":"
        "\"Lot\",\"apiVersion\":\"x.dev/v1\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"one\":"
        "\"x\",\"two\":\"x\"}]}}",
        SERVER.posts[i].uid);

    SERVER.posts[i].done(SERVER.posts[i].ctx, 200, body, NULL);
    arena_free(a);
}

static void *open_hooks(struct vapi *api)
{
    static const struct vapi_hooks hooks = {.webhook = on_post};

    memset(&SERVER, 0, sizeof(SERVER));
    vapi_set_hooks(api, &hooks);
    return api;
}

static void guest_start(void *guest)
{
    (void)guest;
}

static void guest_close(void *guest, void (*closed)(void *ctx), void *ctx)
{
    (void)guest;
    while (SERVER.answered < SERVER.sent)
        answer_next();
    closed(ctx);
}

static int64_t guest_due(const void *guest)
{
    (void)guest;
    return INT64_MAX;
}

static int calls_set_up(void **state)
{
    static const struct world_guest guest = {.open = open_hooks,
                                             .start = guest_start,
                                             .close = guest_close,
                                             .next_due = guest_due,
                                             .wake = guest_start};

    (void)state;
    W = world_new_with(1, &guest);
    world_create(W, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_create(W, CRDS, "", CRD);
    world_settle(W);
    return 0;
}

static const struct resource *kind_of(const char *plural, const char *version)
{
    return registry_find(vapi_registry(world_api(W)), STR("x.dev"), str_c(version), str_c(plural));
}

static const struct resource *lots(const char *version)
{
    return kind_of("lots", version);
}

struct outcome {
    size_t done, failed;
    const struct err_kind *kind;
};

static void on_done(void *ctx, cJSON **objects, const struct err *err)
{
    struct outcome *o = ctx;

    o->done++;
    o->failed += err != NULL;
    o->kind = err ? err->kind : NULL;
    if (err)
        return;
    assert_str(json_str(json_get(objects[0], "one")), "x");
    assert_null(json_get(objects[0], "two")); /* the schema of v1 does not have it */
}

/* The server answers as for the other kind. */
static void on_other(void *ctx, cJSON **objects, const struct err *err)
{
    struct outcome *o = ctx;

    (void)objects;
    o->done++;
    assert_true(str_contains(err->message, STR("invalid kind (expected Bit, received Lot)")));
}

static struct conversion *start(struct outcome *o)
{
    return conversion_start_one(world_api(W), lots("v1"), STR("x.dev/v1"), lot_of(LOT), on_done, o);
}

static void calls_are_bounded(void **state)
{
    struct outcome o = {0};

    (void)state;
    for (size_t i = 0; i < CONVERSION_MOST_CALLS_EACH + CONVERSION_MOST_WAITING; i++)
        start(&o);
    assert_int_equal(SERVER.sent, CONVERSION_MOST_CALLS_EACH);
    start(&o);
    assert_int_equal(o.done, 0); /* never before it returned */
    world_settle(W);
    assert_int_equal(o.done, 1);
    assert_ptr_equal(o.kind, &ERR_TOO_MANY_REQUESTS);
    while (SERVER.answered < SERVER.sent) {
        answer_next();
        assert_true(SERVER.sent - SERVER.answered <= CONVERSION_MOST_CALLS_EACH);
    }
    assert_int_equal(o.done, CONVERSION_MOST_CALLS_EACH + CONVERSION_MOST_WAITING + 1);
    assert_int_equal(o.failed, 1);
}

/* One kind's webhook hangs: another kind has turns, until all are taken. */
static void a_kind_leaves_turns_to_others(void **state)
{
    struct outcome o = {0};

    (void)state;
    world_create(W, CRDS, "", OTHER_CRD);
    world_settle(W);
    for (size_t i = 0; i < 2 * CONVERSION_MOST_CALLS; i++)
        start(&o);
    assert_int_equal(SERVER.sent, CONVERSION_MOST_CALLS_EACH);
    for (size_t i = 0; i < 2 * CONVERSION_MOST_CALLS; i++)
        conversion_start_one(world_api(W), kind_of("bits", "v1"), STR("x.dev/v1"), lot_of(BIT),
                             on_other, &o);
    assert_int_equal(SERVER.sent, CONVERSION_MOST_CALLS);
    while (SERVER.answered < SERVER.sent)
        answer_next();
    assert_int_equal(o.done, 4 * CONVERSION_MOST_CALLS);
}

static void what_is_cancelled_calls_nothing_back(void **state)
{
    struct outcome o = {0}, others = {0};
    struct conversion *sent = start(&o), *waiting, *failed;

    (void)state;
    for (size_t i = 1; i < CONVERSION_MOST_CALLS_EACH; i++)
        start(&others);
    waiting = start(&o);
    failed =
        conversion_start_one(world_api(W), lots("v1"), STR("x.dev/v7"), lot_of(LOT), on_done, &o);
    assert_int_equal(SERVER.sent, CONVERSION_MOST_CALLS_EACH);
    conversion_cancel(sent);
    conversion_cancel(waiting);
    conversion_cancel(failed);
    conversion_cancel(NULL);
    world_settle(W);
    /* Its kind is gone before the answer comes. */
    world_delete(W, CRDS, "", "lots.x.dev", "Background");
    while (SERVER.answered < SERVER.sent)
        answer_next();
    world_settle(W);
    assert_int_equal(o.done, 0);
    assert_int_equal(SERVER.sent, CONVERSION_MOST_CALLS_EACH);
    assert_int_equal(others.done, CONVERSION_MOST_CALLS_EACH - 1);
}

/* A reader left, and the API ends before the server answers. */
static void an_end_with_a_call_under_way(void **state)
{
    struct outcome o = {0};

    (void)state;
    conversion_cancel(start(&o));
    assert_int_equal(SERVER.sent, 1);
}

static void versions_have_to_be_of_the_definition(void **state)
{
    struct outcome o = {0};

    (void)state;
    conversion_start_one(world_api(W), lots("v1"), STR("x.dev/v9"), lot_of(LOT), on_done, &o);
    world_settle(W);
    assert_int_equal(o.failed, 1);
    assert_int_equal(SERVER.sent, 0);
}

/* This process reads and deletes what is stored without the webhook. */
static void controllers_do_not_wait(void **state)
{
    (void)state;
    world_create(W, "lots.x.dev", "n", "{'metadata':{'name':'a'},'two':'x'}");
    assert_str(json_str(json_get(world_get(W, "lots.x.dev", "n", "a"), "two")), "x");
    world_delete(W, "lots.x.dev", "n", "a", "Background");
    assert_null(world_get(W, "lots.x.dev", "n", "a"));
    world_create(W, "lots.x.dev", "n", "{'metadata':{'name':'b'},'two':'x'}");
    world_delete(W, CRDS, "", "lots.x.dev", "Background");
    world_settle(W);
    assert_null(world_get(W, CRDS, "", "lots.x.dev"));
    assert_int_equal(SERVER.sent, 0);
}

#define CALLS(f) cmocka_unit_test_setup_teardown(f, calls_set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(answers_are_judged),       WORLD_TEST(only_labels_and_annotations_change),
        WORLD_TEST(hostile_answers),          CALLS(calls_are_bounded),
        CALLS(a_kind_leaves_turns_to_others), CALLS(what_is_cancelled_calls_nothing_back),
        CALLS(an_end_with_a_call_under_way),  CALLS(versions_have_to_be_of_the_definition),
        CALLS(controllers_do_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
