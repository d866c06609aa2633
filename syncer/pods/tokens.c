/* SPDX-License-Identifier: Apache-2.0 */
/* Service account tokens of pods: signed with the tenant's own key, bound to the pod, short-lived,
 * in one Secret per pod on the host, renewed at four fifths of their lifetime. Must never put a
 * token of one pod into another's Secret, nor let one outlive its pod. */

#include "core/life.h"
#include "pods/pods.h"
#include <sublet/encode.h>
#include <sublet/pki.h>

#define ANNOTATION_RENEW "sublet.dev/renew-at"
#define MIN_SECONDS      600
#define MAX_SECONDS      86400

struct tokens {
    struct sync_run *run;
    struct token_claims claims;
    cJSON *data;        /* of the Secret; NULL: count the tokens only */
    int64_t now, renew; /* seconds */
    size_t n;
    struct err err;
    bool failed;
};

/* --- the contents --- */

static void sign(struct tokens *t, struct str key, struct str audience, int64_t life)
{
    struct arena *a = t->run->arena;
    struct pki *pki = vapi_pki(t->run->syncer->api);
    struct str audiences[1] = {audience.n ? audience : pki_issuer(pki)}, jwt;
    char id[37];

    rng_uuid(vapi_rng(t->run->syncer->api), id);
    t->claims.audiences = audiences;
    t->claims.n_audiences = 1;
    t->claims.issued = t->claims.not_before = t->now;
    t->claims.expires = t->now + life;
    t->claims.id = str_c(id);
    if (pki_sign_token(pki, a, &t->claims, &jwt, &t->err)) {
        t->failed = true;
        return;
    }
    json_set_str(a, t->data, arena_cstr(a, key), base64_encode(a, jwt));
}

static void on_token(void *ctx, struct str key, struct str audience, int64_t expiration_s)
{
    struct tokens *t = ctx;
    int64_t life = expiration_s, renew;

    if (life < MIN_SECONDS)
        life = MIN_SECONDS;
    if (life > MAX_SECONDS)
        life = MAX_SECONDS;
    renew = t->now + life * 4 / 5;
    t->n++;
    if (renew < t->renew)
        t->renew = renew;
    if (t->data && !t->failed)
        sign(t, key, audience, life);
}

static void tokens_init(struct tokens *t, struct sync_run *run)
{
    *t = (struct tokens){.run = run, .now = reconcile_now_s(run->reconcile), .renew = INT64_MAX};
    err_init(&t->err, run->arena);
}

static bool wants_tokens(struct sync_run *run)
{
    struct tokens t;

    tokens_init(&t, run);
    translate_pod_tokens(run->arena, run->virtual_, on_token, &t);
    return t.n > 0;
}

static int account(struct tokens *t)
{
    struct sync_run *run = t->run;
    struct str name = json_str_at(run->virtual_, "spec.serviceAccountName");
    const struct resource *r = syncer_resource(run->syncer, "", "serviceaccounts");
    const struct store_object *o;

    if (!name.n)
        name = STR("default");
    o = store_get(run->syncer->store, r->storage, run->ns, name);
    if (!o)
        return err_not_found(&t->err, STR(""), STR("serviceaccounts"), name);
    t->claims.ns = run->ns;
    t->claims.service_account = arena_str(run->arena, name);
    t->claims.service_account_uid = arena_str(run->arena, o->uid);
    t->claims.bound_kind = STR("Pod");
    t->claims.bound_name = run->name;
    t->claims.bound_uid = run->uid;
    return 0;
}

/* The Secret carries the pod's owner annotations, so that translate_owner() finds the pod. */
static cJSON *secret_of(struct sync_run *run, struct tokens *t, struct str host_name)
{
    struct arena *a = run->arena;
    cJSON *secret = json_new_object(a), *bare = json_new_object(a), *metadata, *from;

    from = json_ensure_object(a, bare, "metadata");
    json_set_str(a, from, "name", run->name);
    json_set_str(a, from, "namespace", run->ns);
    json_set_str(a, from, "uid", run->uid);
    json_set_str(a, secret, "apiVersion", STR("v1"));
    json_set_str(a, secret, "kind", STR("Secret"));
    metadata = translate_metadata(a, &run->syncer->tenant, bare, host_name);
    json_set_str(a, json_ensure_object(a, metadata, "annotations"), ANNOTATION_RENEW,
                 arena_printf(a, "%lld", (long long)t->renew));
    json_set(a, secret, "metadata", metadata);
    json_set_str(a, secret, "type", STR("Opaque"));
    json_set(a, secret, "data", t->data);
    return secret;
}

/* --- the Secret on the host --- */

static const struct host_object *find_secret(struct sync_run *run, char name[64])
{
    translate_token_secret_name(&run->syncer->tenant, run->ns, run->name, name);
    return reflector_get(run->syncer->watches[SYNC_SECRETS].reflector, str_c(name));
}

static void on_written(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    if (!err) {
        reflector_learn(run->syncer->watches[SYNC_SECRETS].reflector, answer->body);
        syncer_add(run->syncer, SYNC_PODS, run->ns, run->name);
    } else if (err->kind == &ERR_ALREADY_EXISTS || err->kind == &ERR_NOT_FOUND ||
               err->kind == &ERR_CONFLICT) {
        reconcile_again_after(run->reconcile, 200); /* the watch will show it */
    } else {
        sync_refused(run, err);
    }
}

/* The record is durable before the request, and outlives one without an answer, even if the pod
 * itself is on the host: it proves the Secret ours. */
static void on_created(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    sync_attempt_over(run, err);
    on_written(run, answer, err);
}

/* host_uid: of the Secret that is written over; empty: none is there. */
static void write_secret(struct sync_run *run, struct str name, struct str host_uid)
{
    struct host_request q = {.method = host_uid.n ? "PATCH" : "POST"};
    struct tokens t;
    cJSON *secret;

    tokens_init(&t, run);
    t.data = json_new_object(run->arena);
    if (!account(&t))
        translate_pod_tokens(run->arena, run->virtual_, on_token, &t);
    if (t.err.kind) {
        sync_refused(run, &t.err);
        return;
    }
    secret = secret_of(run, &t, name);
    if (host_uid.n) /* another may have its name by now */
        json_set_str(run->arena, json_get(secret, "metadata"), "uid", host_uid);
    q.path = sync_path(run->arena, run->syncer, SYNC_SECRETS, host_uid.n ? name : STR(""), "");
    q.body = json_text(run->arena, secret);
    if (!host_uid.n) {
        sync_send_attempt(run, &q, on_created);
        return;
    }
    q.content_type = "application/merge-patch+json";
    sync_send(run, &q, on_written);
}

static void on_removed(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    (void)answer;
    /* Conflict: it is another object by now, which the watch shows. */
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        reconcile_fail(run->reconcile, err);
    else
        reconcile_again_after(run->reconcile, err ? 1000 : 100);
}

static void delete_secret(struct sync_run *run, struct str name, struct str host_uid)
{
    struct host_request q = {.method = "DELETE"};

    q.path = sync_path(run->arena, run->syncer, SYNC_SECRETS, name, "");
    q.body = arena_printf(run->arena,
                          "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                          "\"preconditions\":{\"uid\":\"%.*s\"}}",
                          STR_F(host_uid));
    sync_send(run, &q, on_removed);
}

struct secret_state {
    struct str pod_uid, host_uid;
    int64_t renew;
    bool ours; /* and of no later epoch, whose pod needs it */
};

static void read_secret(struct sync_run *run, const struct host_object *o, struct secret_state *ret)
{
    cJSON *tree = NULL;
    struct str ns, name;

    *ret = (struct secret_state){0};
    if (json_parse(run->arena, o->bytes, &tree, NULL))
        return;
    ret->ours = translate_owner(&run->syncer->tenant, tree, &ns, &name, &ret->pod_uid) &&
                str_eq(ns, run->ns) && str_eq(name, run->name) && sync_life_owns(run->syncer, tree);
    ret->host_uid = sync_uid(tree);
    str_to_i64(json_str(json_get(json_path(tree, "metadata.annotations"), ANNOTATION_RENEW)),
               &ret->renew);
}

bool sync_tokens_ensure(struct sync_run *run)
{
    struct secret_state state;
    const struct host_object *o;
    int64_t now = reconcile_now_s(run->reconcile);
    char name[64];

    if (!wants_tokens(run))
        return true;
    o = find_secret(run, name);
    if (!o) {
        write_secret(run, str_c(name), STR(""));
        return false;
    }
    read_secret(run, o, &state);
    if (!state.ours || !str_eq(state.pod_uid, run->uid)) {
        if (state.ours && sync_mapping_knows(&run->mapping, state.pod_uid))
            delete_secret(run, str_c(name), state.host_uid);
        else if (state.ours) /* of a pod that this one adopted */
            write_secret(run, str_c(name), state.host_uid);
        return false;
    }
    if (state.renew <= now) {
        write_secret(run, str_c(name), state.host_uid);
        return false;
    }
    reconcile_again_after(run->reconcile, (state.renew - now) * 1000);
    return true;
}

bool sync_tokens_remove(struct sync_run *run)
{
    struct secret_state state;
    const struct host_object *o;
    char name[64];

    o = find_secret(run, name);
    if (!o)
        return true;
    read_secret(run, o, &state);
    if (!state.ours || !sync_mapping_knows(&run->mapping, state.pod_uid))
        return true;
    delete_secret(run, str_c(name), state.host_uid);
    return false;
}
