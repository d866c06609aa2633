/* SPDX-License-Identifier: Apache-2.0 */
/* The review kinds: non-persisted requests about identity and permission. */
#include <sublet/call.h>
#include <sublet/json_build.h>

#include <string.h>

#include "auth_impl.h"
#include "rbac.h"

static const cJSON *spec_of(const struct call *c)
{
    return json_get(c->body, "spec");
}

/* --- rules --- */

struct rules {
    struct arena *arena;
    cJSON *resources, *urls;
    struct missing_roles missing;
};

static cJSON *texts(struct arena *a, struct str_list list)
{
    cJSON *array = json_new_array(a);

    for (size_t i = 0; i < list.n; i++)
        json_append(array, json_new_string(a, list.items[i]));
    return array;
}

static bool on_rule(void *ctx, const struct rule *rule, const struct rule_origin *origin)
{
    struct rules *out = ctx;
    struct arena *a = out->arena;

    if (!rule) {
        rbac_missing_add(&out->missing, a, origin);
        return true;
    }
    if (rule->resources.n) {
        cJSON *names = rule->names.n ? texts(a, rule->names) : NULL;

        json_append(out->resources, json_object(a, JSON("verbs", texts(a, rule->verbs)),
                                                JSON("apiGroups", texts(a, rule->groups)),
                                                JSON("resources", texts(a, rule->resources)),
                                                JSON("resourceNames", names)));
    }
    if (rule->urls.n) {
        json_append(out->urls, json_object(a, JSON("verbs", texts(a, rule->verbs)),
                                           JSON("nonResourceURLs", texts(a, rule->urls))));
    }
    return true;
}

static void review_rules(struct call *c)
{
    struct str ns = json_str_at(spec_of(c), "namespace");
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));
    struct rules out = {.arena = c->arena};
    struct err err;

    if (!ns.n) {
        err_init(&err, c->arena);
        err_set(&err, &ERR_BAD_REQUEST, "no namespace on request");
        call_error(c, &err);
        return;
    }
    /* The response omits the spec and the metadata, as upstream. */
    ns = arena_str(c->arena, ns);
    json_set(c->arena, c->body, "metadata", json_new_object(c->arena));
    json_set(c->arena, c->body, "spec", json_new_object(c->arena));
    out.resources = json_set(c->arena, status, "resourceRules", json_new_array(c->arena));
    out.urls = json_set(c->arena, status, "nonResourceRules", json_new_array(c->arena));
    json_set_bool(c->arena, status, "incomplete", false);
    rbac_each(auth_rbac(vapi_auth(c->api)), &c->user, ns, on_rule, &out);
    if (out.missing.n)
        json_set_str(c->arena, status, "evaluationError",
                     rbac_missing_message(&out.missing, c->arena));
    call_tree(c, 201, c->body);
}

/* --- identity --- */

static cJSON *user_tree(struct arena *a, const struct user *u)
{
    cJSON *groups = u->n_groups ? texts(a, (struct str_list){u->groups, u->n_groups}) : NULL;

    return json_object(a, JSON("username", u->name), JSON_NONEMPTY("uid", u->uid),
                       JSON("groups", groups), JSON("extra", json_copy(a, u->extra)));
}

static void review_self(struct call *c)
{
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));
    struct user u = c->user;

    account_add_node(vapi_auth(c->api), c->arena, &u);
    json_set(c->arena, status, "userInfo", user_tree(c->arena, &u));
    /* The only review with a creationTimestamp; it keeps nothing of the sent metadata. */
    cJSON *metadata = json_set(c->arena, c->body, "metadata", json_new_object(c->arena));
    json_set_str(c->arena, metadata, "creationTimestamp",
                 time_format_s(c->arena, clock_wall_s(vapi_clock(c->api))));
    call_tree(c, 201, c->body);
}

/* A review that waits for the keys of the token's issuer. */
struct token_review {
    struct call *call;
    struct auth_wait wait;
};

/* Upstream's error has one entry per authenticator; the second one is always the same. */
static struct str review_error(struct arena *a, struct str why)
{
    return str_eqc(why, "invalid bearer token")
               ? why
               : arena_printf(a, "[invalid bearer token, %.*s]", STR_F(why));
}

/* Parsed as if it came in a header: anything after a space or line end is ignored. */
static struct str token_of(const struct call *c)
{
    struct str token = json_str_at(spec_of(c), "token");
    struct str end = str_trim(token);

    return end.n && end.p == token.p ? str_cut(&end, ' ') : token;
}

static void answer_token(struct call *c)
{
    const cJSON *spec = spec_of(c), *list = json_get(spec, "audiences");
    struct str *audiences = arena_alloc(c->arena, (json_count(list) + 1) * sizeof(*audiences));
    cJSON *status = json_ensure_object(c->arena, c->body, "status"); /* sent fields stay */
    struct str_list known;
    struct user u;
    struct err err;
    size_t n = 0;

    json_remove(status, "authenticated");
    json_each(audience, list) audiences[n++] = json_str(audience);
    err_init(&err, c->arena);
    if (auth_token_user(vapi_auth(c->api), c->arena, token_of(c), audiences, n, &u, &known, &err)) {
        json_ensure_object(c->arena, status, "user");
        json_set_str(c->arena, status, "error", review_error(c->arena, err.message));
    } else {
        account_add_node(vapi_auth(c->api), c->arena, &u);
        json_put(c->arena, status, JSON_BOOL("authenticated", true),
                 JSON("user", user_tree(c->arena, &u)), JSON("audiences", texts(c->arena, known)));
    }
    call_tree(c, 201, c->body);
}

static void on_keys(void *ctx)
{
    struct token_review *r = ctx;

    r->call->cancel = NULL;
    answer_token(r->call);
}

static void cancel_wait(struct call *c)
{
    auth_wait_end(&((struct token_review *)c->state)->wait);
}

static void review_token(struct call *c)
{
    struct str token = token_of(c);
    struct token_review *r;
    struct err err;

    if (!token.n) {
        err_init(&err, c->arena);
        err_set(&err, &ERR_BAD_REQUEST, "token is required for TokenReview in authentication");
        call_error(c, &err);
        return;
    }
    r = ARENA_NEW(c->arena, struct token_review);
    *r = (struct token_review){.call = c, .wait = {.again = on_keys, .ctx = r}};
    if (!auth_await_token(vapi_auth(c->api), c->arena, token, &r->wait)) {
        answer_token(c);
        return;
    }
    c->state = r;
    c->cancel = cancel_wait;
}

static const struct {
    const char *plural;
    void (*handle)(struct call *c);
} REVIEWS[] = {
    {"selfsubjectaccessreviews", review_access},  {"subjectaccessreviews", review_access},
    {"localsubjectaccessreviews", review_access}, {"selfsubjectrulesreviews", review_rules},
    {"selfsubjectreviews", review_self},          {"tokenreviews", review_token},
};

void auth_handle_review(struct call *c)
{
    struct err err;

    for (size_t i = 0; i < COUNT(REVIEWS); i++) {
        if (str_eqc(c->resource->plural, REVIEWS[i].plural)) {
            json_ensure_object(c->arena, c->body, "metadata");
            REVIEWS[i].handle(c);
            return;
        }
    }
    err_init(&err, c->arena);
    err_set(&err, &ERR_NOT_IMPLEMENTED, "review of %.*s is not implemented",
            STR_F(c->resource->kind));
    call_error(c, &err);
}
