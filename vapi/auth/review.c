/* SPDX-License-Identifier: Apache-2.0 */
/* The review kinds: questions about identity and permission, answered and never stored. */
#include <sublet/call.h>

#include <string.h>

#include "auth_impl.h"
#include "rbac.h"

/* --- access reviews --- */

static const cJSON *spec_of(const struct call *c)
{
    return json_get(c->body, "spec");
}

/* spec.resourceAttributes or spec.nonResourceAttributes: exactly one. */
static int read_attributes(struct call *c, struct attributes *ret, struct err *err)
{
    const cJSON *spec = spec_of(c), *r = json_get(spec, "resourceAttributes");
    const cJSON *path = json_get(spec, "nonResourceAttributes");
    struct field_errors e;

    field_errors_init(&e, c->arena);
    if (r && path)
        field_invalid(&e, FIELD(FIELD(NULL, "spec"), "nonResourceAttributes"), path,
                      "cannot be specified in combination with resourceAttributes");
    if (!r && !path)
        field_invalid(
            &e, FIELD(FIELD(NULL, "spec"), "resourceAttributes"), json_new_null(c->arena),
            "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    if (field_errors_to_err(&e, c->resource->group, c->resource->kind, STR(""), err))
        return -1;
    const cJSON *from = r ? r : path;
    *ret = (struct attributes){.verb = arena_cstr(c->arena, json_str_at(from, "verb"))};
    if (!r) {
        ret->path = json_str_at(path, "path");
        return 0;
    }
    ret->group = json_str_at(r, "group");
    ret->version = json_str_at(r, "version");
    ret->resource = json_str_at(r, "resource").p ? json_str_at(r, "resource") : STR("");
    ret->subresource = json_str_at(r, "subresource");
    ret->name = json_str_at(r, "name");
    ret->ns = json_str_at(r, "namespace");
    return 0;
}

static void read_user(struct arena *a, const cJSON *spec, struct user *ret)
{
    const cJSON *list = json_get(spec, "groups");
    struct str *groups = arena_alloc(a, (json_count(list) + 1) * sizeof(*groups));
    size_t n = 0;

    json_each(group, list) groups[n++] = json_str(group);
    *ret = (struct user){.name = json_str_at(spec, "user"),
                         .uid = json_str_at(spec, "uid"),
                         .groups = groups,
                         .n_groups = n};
}

static void answer_access(struct call *c, const struct user *u, const struct attributes *what)
{
    struct str reason;
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));
    bool allowed = auth_authorize(vapi_auth(c->api), c->arena, u, what, &reason);

    json_set_bool(c->arena, status, "allowed", allowed);
    if (reason.n)
        json_set_str(c->arena, status, "reason", reason);
    call_tree(c, 201, c->body);
}

static void review_self_access(struct call *c)
{
    struct attributes what;
    struct err err;

    err_init(&err, c->arena);
    if (read_attributes(c, &what, &err))
        call_error(c, &err);
    else
        answer_access(c, &c->user, &what);
}

static void review_access(struct call *c)
{
    struct attributes what;
    struct user u;
    struct err err;

    err_init(&err, c->arena);
    read_user(c->arena, spec_of(c), &u);
    if (!u.name.n && !u.n_groups) {
        struct field_errors e;

        field_errors_init(&e, c->arena);
        field_invalid(&e, FIELD(FIELD(NULL, "spec"), "user"), json_new_string(c->arena, STR("")),
                      "at least one of user or group must be specified");
        if (field_errors_to_err(&e, c->resource->group, c->resource->kind, STR(""), &err)) {
            call_error(c, &err);
            return;
        }
    }
    if (read_attributes(c, &what, &err)) {
        call_error(c, &err);
        return;
    }
    if (str_eqc(c->resource->plural, "localsubjectaccessreviews") && !str_eq(what.ns, c->ns)) {
        err_set(&err, &ERR_BAD_REQUEST,
                "spec.resourceAttributes.namespace must match namespace: %.*s", STR_F(c->ns));
        call_error(c, &err);
        return;
    }
    answer_access(c, &u, &what);
}

/* --- rules --- */

struct rules {
    struct arena *arena;
    cJSON *resources, *urls;
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

    (void)origin;
    if (rule->resources.n) {
        cJSON *r = json_append(out->resources, json_new_object(a));

        json_set(a, r, "verbs", texts(a, rule->verbs));
        json_set(a, r, "apiGroups", texts(a, rule->groups));
        json_set(a, r, "resources", texts(a, rule->resources));
        if (rule->names.n)
            json_set(a, r, "resourceNames", texts(a, rule->names));
    }
    if (rule->urls.n) {
        cJSON *r = json_append(out->urls, json_new_object(a));

        json_set(a, r, "verbs", texts(a, rule->verbs));
        json_set(a, r, "nonResourceURLs", texts(a, rule->urls));
    }
    return true;
}

static void review_rules(struct call *c)
{
    static const struct str star[] = {{"*", 1}};
    static const struct rule all = {
        .verbs = {star, 1}, .groups = {star, 1}, .resources = {star, 1}};
    static const struct rule all_urls = {.verbs = {star, 1}, .urls = {star, 1}};
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
    out.resources = json_set(c->arena, status, "resourceRules", json_new_array(c->arena));
    out.urls = json_set(c->arena, status, "nonResourceRules", json_new_array(c->arena));
    json_set_bool(c->arena, status, "incomplete", false);
    if (user_is_master(&c->user)) {
        on_rule(&out, &all, NULL);
        on_rule(&out, &all_urls, NULL);
    }
    rbac_each(auth_rbac(vapi_auth(c->api)), &c->user, ns, on_rule, &out);
    call_tree(c, 201, c->body);
}

/* --- identity --- */

static cJSON *user_tree(struct arena *a, const struct user *u)
{
    cJSON *info = json_new_object(a);

    json_set_str(a, info, "username", u->name);
    if (u->uid.n)
        json_set_str(a, info, "uid", u->uid);
    if (u->n_groups)
        json_set(a, info, "groups", texts(a, (struct str_list){u->groups, u->n_groups}));
    if (u->extra)
        json_set(a, info, "extra", json_copy(a, u->extra));
    return info;
}

static void review_self(struct call *c)
{
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));

    json_set(c->arena, status, "userInfo", user_tree(c->arena, &c->user));
    call_tree(c, 201, c->body);
}

static void review_token(struct call *c)
{
    const cJSON *spec = spec_of(c), *list = json_get(spec, "audiences");
    struct str *audiences = arena_alloc(c->arena, (json_count(list) + 1) * sizeof(*audiences));
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));
    struct token_claims claims;
    size_t n = 0;
    struct err err;

    json_each(audience, list) audiences[n++] = json_str(audience);
    err_init(&err, c->arena);
    if (auth_check_token(vapi_auth(c->api), c->arena, json_str_at(spec, "token"), audiences, n,
                         &claims, &err)) {
        json_ensure_object(c->arena, status, "user");
        json_set_str(c->arena, status, "error", err.message);
    } else {
        struct user u;

        auth_token_user(c->arena, &claims, &u);
        json_set_bool(c->arena, status, "authenticated", true);
        json_set(c->arena, status, "user", user_tree(c->arena, &u));
        json_set(c->arena, status, "audiences",
                 n ? json_copy(c->arena, list)
                   : texts(c->arena, (struct str_list){claims.audiences, claims.n_audiences}));
    }
    call_tree(c, 201, c->body);
}

static const struct {
    const char *plural;
    void (*handle)(struct call *c);
} REVIEWS[] = {
    {"selfsubjectaccessreviews", review_self_access},
    {"subjectaccessreviews", review_access},
    {"localsubjectaccessreviews", review_access},
    {"selfsubjectrulesreviews", review_rules},
    {"selfsubjectreviews", review_self},
    {"tokenreviews", review_token},
};

void auth_handle_review(struct call *c)
{
    struct err err;

    for (size_t i = 0; i < sizeof(REVIEWS) / sizeof(*REVIEWS); i++) {
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
