/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes of a custom resource that webhooks and policies see in another version: what is called,
 * in which order, what becomes of a failure, of an end in the pause, and how many versions one
 * write may have. What they see is compared with a kube-apiserver in tests/integration/
 * test_conversion_admission.py. */

#include "controller_world.h"

#include "../../../vapi/core/calls.h"

#include <sublet/json_build.h>
#include <sublet/registry.h>
#include <sublet/vapi_hooks.h>
#include <sublet/webhook.h>

#define CRDS     "customresourcedefinitions.apiextensions.k8s.io"
#define REGISTER "admissionregistration.k8s.io"
#define CRD                                                                                        \
    "{'metadata':{'name':'lots.x.dev'},'spec':{'group':'x.dev','scope':'Namespaced','names':{"     \
    "'kind':'Lot','plural':'lots'},'conversion':{'strategy':'Webhook','webhook':{"                 \
    "'conversionReviewVersions':['v1'],'clientConfig':{'service':{'namespace':'n','name':'c'}}}}," \
    "'versions':[{'name':'v1','served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':"  \
    "'object','properties':{'one':{'type':'string'},'more':{'type':'string'}}}}},"                 \
    "{'name':'v2','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"      \
    "'properties':{'two':{'type':'string'},'more':{'type':'string'}}}}}]}}"
#define LOT   "{'kind':'Lot','apiVersion':'x.dev/v2','metadata':{'name':'a'},'two':'x'}"
#define RULES "'apiGroups':['x.dev'],'apiVersions':['v1'],'operations':['*'],'resources':['lots']"

#define MOST_POSTS 64

static struct {
    struct {
        vapi_webhook_cb done;
        void *ctx;
        struct arena *arena;
        cJSON *review;
    } posts[MOST_POSTS];
    size_t sent, answered;
    bool fails;        /* every conversion */
    const char *patch; /* of reviews: base64 */
    char log[512];     /* one word a post */
} SERVER;

static void note(const char *word)
{
    size_t n = strlen(SERVER.log);

    snprintf(SERVER.log + n, sizeof(SERVER.log) - n, "%s%s", n ? " " : "", word);
}

static void on_post(void *ctx, const struct vapi_webhook *q, vapi_webhook_cb done, void *done_ctx)
{
    struct arena *a = arena_new(0);
    const cJSON *object;
    size_t i = SERVER.sent++;

    (void)ctx;
    assert_true(i < MOST_POSTS);
    SERVER.posts[i].done = done;
    SERVER.posts[i].ctx = done_ctx;
    SERVER.posts[i].arena = a;
    assert_int_equal(json_parse(a, q->body, &SERVER.posts[i].review, NULL), 0);
    object = json_path(SERVER.posts[i].review, "request.object");
    note(object
             ? arena_printf(a, "review:%.*s", STR_F(json_str(json_get(object, "apiVersion")))).p
             : arena_printf(a, "to:%.*s",
                            STR_F(json_str_at(SERVER.posts[i].review, "request.desiredAPIVersion")))
                   .p);
}

/* v1 has `one` where v2 has `two`. */
static cJSON *converted(struct arena *a, const cJSON *object, struct str to)
{
    static const char *const keys[] = {"one", "two"};
    cJSON *made = json_copy(a, object);
    bool second = str_eqc(to, "x.dev/v2");
    const cJSON *value = json_get(object, keys[!second]);

    if (value)
        json_set(a, made, keys[second], json_copy(a, value));
    json_remove(made, keys[!second]);
    json_set_str(a, made, "apiVersion", to);
    return made;
}

static cJSON *response_to(struct arena *a, const cJSON *request)
{
    const cJSON *objects = json_get(request, "objects");
    cJSON *list;

    if (!objects)
        return json_object(
            a, JSON("uid", json_str(json_get(request, "uid"))), JSON_BOOL("allowed", true),
            JSON("patch", SERVER.patch ? json_new_string(a, str_c(SERVER.patch)) : NULL),
            JSON("patchType", SERVER.patch ? json_new_string(a, STR("JSONPatch")) : NULL));
    list = json_new_array(a);
    json_each(object, objects)
        json_append(list, converted(a, object, json_str(json_get(request, "desiredAPIVersion"))));
    return json_object(
        a, JSON("uid", json_str(json_get(request, "uid"))), JSON("convertedObjects", list),
        JSON("result", json_object(a, JSON("status", SERVER.fails ? "Failure" : "Success"),
                                   JSON("message", "not today"))));
}

static void answer_next(void)
{
    size_t i = SERVER.answered++;
    struct arena *a = SERVER.posts[i].arena;
    const cJSON *review = SERVER.posts[i].review;
    struct str body =
        json_text(a, json_object(a, JSON("kind", json_str(json_get(review, "kind"))),
                                 JSON("apiVersion", json_str(json_get(review, "apiVersion"))),
                                 JSON("response", response_to(a, json_get(review, "request")))));

    SERVER.posts[i].done(SERVER.posts[i].ctx, 200, body, NULL);
    arena_free(a);
}

static void answer_all(void)
{
    world_settle(W);
    while (SERVER.answered < SERVER.sent) {
        answer_next();
        world_settle(W);
    }
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

static int set_up(void **state)
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

/* ---- what is registered ---- */

static void register_hook(const char *kind, const char *name)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s'},'webhooks':[{'name':'%s.x.dev','sideEffects':'None',"
             "'admissionReviewVersions':['v1'],'matchPolicy':'Equivalent','rules':[{" RULES
             "}],'clientConfig':{'service':{'namespace':'n','name':'h'}}}]}",
             name, name);
    world_create(W, kind, "", json);
}

static void register_policy(const char *failure_policy)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{'metadata':{'name':'p'},'spec':{'failurePolicy':'%s','matchConstraints':{"
             "'matchPolicy':'Equivalent','resourceRules':[{" RULES
             "}]},'validations':[{'expression':'object.one.size() < 3'}]}}",
             failure_policy);
    world_create(W, "validatingadmissionpolicies." REGISTER, "", json);
    world_create(
        W, "validatingadmissionpolicybindings." REGISTER, "",
        "{'metadata':{'name':'p'},'spec':{'policyName':'p','validationActions':['Deny']}}");
}

/* ---- writes of a controller, which both see ---- */

struct outcome {
    size_t done;
    char message[512];
};

static void on_created(void *ctx, const struct err *err, const struct store_object *object)
{
    struct outcome *o = ctx;

    (void)object;
    o->done++;
    snprintf(o->message, sizeof(o->message), "%.*s", err ? (int)err->message.n : 0,
             err ? err->message.p : "");
}

static void create(const char *json, struct outcome *o)
{
    const struct resource *r =
        registry_find(vapi_registry(world_api(W)), STR("x.dev"), STR("v2"), STR("lots"));

    *o = (struct outcome){0};
    SERVER.log[0] = '\0';
    vapi_create_by(world_api(W), "job-controller", r, STR("n"), world_parse(W, json), on_created,
                   o);
}

static struct str stored(const char *key)
{
    return json_str(json_get(world_get(W, "lots.x.dev", "n", "a"), key));
}

static void nothing_is_called_for_the_version_of_the_request(void **state)
{
    struct outcome o;

    (void)state;
    create(LOT, &o);
    answer_all();
    assert_int_equal(o.done, 1);
    assert_string_equal(o.message, "");
    assert_string_equal(SERVER.log, "");
}

static void a_policy_and_a_hook_share_a_version(void **state)
{
    struct outcome o;

    (void)state;
    register_policy("Fail");
    register_hook("validatingwebhookconfigurations." REGISTER, "v");
    create(LOT, &o);
    world_settle(W);
    assert_int_equal(o.done, 0);
    assert_string_equal(SERVER.log, "to:x.dev/v1");
    answer_all();
    assert_string_equal(SERVER.log, "to:x.dev/v1 review:x.dev/v1");
    assert_int_equal(o.done, 1);
    assert_string_equal(o.message, "");
    assert_str(stored("two"), "x");
    create("{'kind':'Lot','apiVersion':'x.dev/v2','metadata':{'name':'b'},'two':'bad'}", &o);
    answer_all();
    assert_string_equal(SERVER.log, "to:x.dev/v1");
    assert_non_null(strstr(o.message, "failed expression: object.one.size() < 3"));
}

/* [{"op":"replace","path":"/one","value":"y"}] */
#define REPLACES "W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9vbmUiLCJ2YWx1ZSI6InkifV0="

static void a_patch_is_converted_back_once(void **state)
{
    struct outcome o;

    (void)state;
    register_hook("mutatingwebhookconfigurations." REGISTER, "m");
    register_hook("mutatingwebhookconfigurations." REGISTER, "n");
    SERVER.patch = REPLACES;
    create(LOT, &o);
    answer_all();
    assert_string_equal(SERVER.log, "to:x.dev/v1 review:x.dev/v1 review:x.dev/v1 to:x.dev/v2");
    assert_string_equal(o.message, "");
    assert_str(stored("two"), "y");
    assert_null(json_get(world_get(W, "lots.x.dev", "n", "a"), "one"));
    assert_true(json_str_at(world_get(W, "lots.x.dev", "n", "a"), "metadata.uid").n);
}

#define NOT_TODAY "conversion webhook for x.dev/v2, Kind=Lot failed: not today"

static void a_failure_refuses(void **state)
{
    struct outcome o;

    (void)state;
    SERVER.fails = true;
    register_policy("Ignore");
    create(LOT, &o);
    answer_all();
    assert_string_equal(o.message, "");
    world_delete(W, "lots.x.dev", "n", "a", "Background");
    world_delete(W, "validatingadmissionpolicies." REGISTER, "", "p", "Background");
    world_delete(W, "validatingadmissionpolicybindings." REGISTER, "", "p", "Background");
    register_policy("Fail");
    create(LOT, &o);
    answer_all();
    assert_non_null(strstr(o.message, "denied request: failed to configure binding: failed to "
                                      "convert object version: " NOT_TODAY));
    world_delete(W, "validatingadmissionpolicies." REGISTER, "", "p", "Background");
    register_hook("validatingwebhookconfigurations." REGISTER, "v");
    create(LOT, &o);
    answer_all();
    assert_string_equal(o.message, "Internal error occurred: " NOT_TODAY);
    register_hook("mutatingwebhookconfigurations." REGISTER, "m");
    create(LOT, &o);
    answer_all();
    assert_string_equal(o.message, "Internal error occurred: Internal error occurred: " NOT_TODAY);
    assert_null(world_get(W, "lots.x.dev", "n", "a"));
}

/* The definition goes while the write waits. */
static void a_kind_that_goes_ends_the_write(void **state)
{
    struct outcome o;

    (void)state;
    register_policy("Fail");
    create(LOT, &o);
    world_settle(W);
    assert_string_equal(SERVER.log, "to:x.dev/v1");
    world_delete(W, CRDS, "", "lots.x.dev", "Background");
    world_settle(W);
    answer_all();
    assert_int_equal(o.done, 1);
    assert_true(o.message[0]);
}

/* The server answers while the API closes. */
static struct outcome LAST;

static void an_end_in_the_pause(void **state)
{
    (void)state;
    register_policy("Fail");
    register_hook("mutatingwebhookconfigurations." REGISTER, "m");
    create(LOT, &LAST);
    world_settle(W);
    assert_int_equal(LAST.done, 0);
    assert_int_equal(SERVER.sent, 1);
}

static void versions_of_a_write_are_bounded(void **state)
{
    struct call *c = ARENA_NEW(world_arena(W), struct call);
    struct versions v = {0};
    const struct err *failed;

    (void)state;
    c->arena = world_arena(W);
    for (int i = 0; i <= VERSIONS_MOST; i++) {
        cJSON *object = world_parse(W, LOT);

        json_set_i64(c->arena, object, "i", i);
        assert_null(versions_find(&v, c, object, STR("x.dev/v1"), &failed));
        assert_int_equal(failed != NULL, i == VERSIONS_MOST);
        assert_null(versions_find(&v, c, object, STR("x.dev/v1"), &failed));
    }
    assert_ptr_equal(failed->kind, &ERR_TOO_LARGE);
    assert_int_equal(v.n, VERSIONS_MOST);
    assert_true(versions_wanted(&v) && !versions_failed(&v));
}

#define CALLS(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS(nothing_is_called_for_the_version_of_the_request),
        CALLS(a_policy_and_a_hook_share_a_version),
        CALLS(a_patch_is_converted_back_once),
        CALLS(a_failure_refuses),
        CALLS(a_kind_that_goes_ends_the_write),
        CALLS(an_end_in_the_pause),
        CALLS(versions_of_a_write_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
