/* SPDX-License-Identifier: Apache-2.0 */
/* The AdmissionReview of admission.k8s.io/v1: the request as upstream sends it, and its answer.
 * Must never take an answer for another request's, nor one without a verdict for an admission.
 * Source: apiserver pkg/admission/plugin/webhook/{request,errors}. */
#include "webhook_impl.h"

#include "../core/calls.h"

#include <sublet/encode.h>
#include <sublet/json_build.h>

#define API_VERSION "admission.k8s.io/v1"

/* ---- the request ---- */

static cJSON *or_null(struct arena *a, const cJSON *tree)
{
    return tree ? json_copy(a, tree) : json_new_null(a);
}

/* As upstream's attributes have them: a generated name is unknown to mutating hooks, and the
 * namespace of a Namespace with such a name to all. */
static struct str shown_name(enum webhook_phase phase, const struct webhook_review *r)
{
    return r->unnamed && phase == WEBHOOKS_MUTATING ? STR("") : r->call->name;
}

static struct str shown_ns(const struct webhook_review *r)
{
    if (!resource_is_namespace(r->requested))
        return r->call->ns;
    return r->unnamed ? STR("") : r->call->name;
}

void webhook_request(enum webhook_phase phase, const struct webhook_review *r, struct arena *a,
                     struct admission_call *call, struct policy_request *q)
{
    call_admission(r->call, r->operation, call);
    call->resource = r->requested;
    call->apart = r->apart;
    q->call = call;
    q->arena = a;
    q->object = r->object;
    q->old = r->old;
    q->name = shown_name(phase, r);
    q->ns = shown_ns(r);
    q->user = policy_request_user(a, call);
}

void webhook_print(const struct policy_request *q, const struct resource *as, struct str uid,
                   const cJSON *object, const cJSON *old, struct buf *out)
{
    struct arena *a = q->arena;
    cJSON *request = policy_request_tree(q, as, as);

    json_set_str(a, request, "uid", uid);
    json_set(a, request, "object", or_null(a, object));
    json_set(a, request, "oldObject", or_null(a, old));
    json_print(out, json_object(a, JSON("kind", "AdmissionReview"), JSON("apiVersion", API_VERSION),
                                JSON("request", request)));
}

/* ---- the answer ---- */

static int invalid(struct err *err, const char *why)
{
    return err_set(err, &ERR_INTERNAL, "received invalid webhook response: %s", why);
}

static int check_head(struct arena *a, const cJSON *review, struct str uid, struct err *err)
{
    struct str version = json_str(json_get(review, "apiVersion"));
    struct str kind = json_str(json_get(review, "kind"));
    const cJSON *response = json_get(review, "response");
    struct str got = json_str(json_get(response, "uid"));

    if (!json_is_object(response))
        return invalid(err, "webhook response was absent");
    if (!str_eqc(version, API_VERSION) || !str_eqc(kind, "AdmissionReview"))
        return invalid(err, arena_printf(a,
                                         "expected webhook response of " API_VERSION
                                         ", Kind=AdmissionReview, got %.*s, Kind=%.*s",
                                         STR_F(version), STR_F(kind))
                                .p);
    if (!str_eq(got, uid))
        return invalid(err, arena_printf(a, "expected response.uid=%.*s, got %.*s",
                                         STR_F(go_quote(a, uid)), STR_F(go_quote(a, got)))
                                .p);
    return 0;
}

static int read_patch(struct arena *a, enum webhook_phase phase, const cJSON *response, cJSON **ret,
                      struct err *err)
{
    const cJSON *patch = json_get(response, "patch"), *type = json_get(response, "patchType");
    struct str bytes;

    *ret = NULL;
    if (phase == WEBHOOKS_VALIDATING)
        return json_str(patch).n || json_str(type).n
                   ? invalid(err, "webhook returned response.patch or response.patchType, which is "
                                  "not supported for validating webhooks")
                   : 0;
    if (json_str(patch).n && !json_is_string(type))
        return invalid(err, "webhook returned response.patch but not response.patchType");
    if (!json_str(patch).n)
        return json_str(type).n
                   ? invalid(err, "webhook returned response.patchType but not response.patch")
                   : 0;
    if (!str_eqc(json_str(type), "JSONPatch"))
        return invalid(err, arena_printf(a, "webhook returned invalid response.patchType of %.*s",
                                         STR_F(go_quote(a, json_str(type))))
                                .p);
    if (!base64_decode(a, json_str(patch), &bytes))
        return invalid(err, "response.patch is not base64");
    if (json_parse(a, bytes, ret, err) || !json_is_array(*ret)) {
        err_clear(err);
        return err_set(err, &ERR_INTERNAL,
                       "received undecodable patch in webhook response: not a JSON patch");
    }
    if (!json_count(*ret))
        *ret = NULL;
    return 0;
}

int webhook_read(struct arena *a, enum webhook_phase phase, struct str body, struct str uid,
                 struct webhook_verdict *ret, struct err *err)
{
    static const struct json_limits limits = {.depth = 64, .nodes = 200000};
    cJSON *review = NULL;
    const cJSON *response, *allowed;

    if (json_parse_strict(a, body, &limits, NULL, NULL, &review, err)) {
        err_wrap(err, "failed to call webhook");
        return -1;
    }
    if (check_head(a, review, uid, err))
        return -1;
    response = json_get(review, "response");
    allowed = json_get(response, "allowed");
    *ret = (struct webhook_verdict){.allowed = json_true(allowed),
                                    .result = json_get(response, "status"),
                                    .warnings = json_get(response, "warnings"),
                                    .annotations = json_get(response, "auditAnnotations")};
    return read_patch(a, phase, response, &ret->patch, err);
}

int webhook_refused(int status, struct str body, struct err *err)
{
    struct str text = str_clip(str_trim(body), 512);

    if (status == 404)
        return err_set(err, &ERR_INTERNAL,
                       "failed to call webhook: the server could not find the requested resource");
    if (status >= 500)
        return err_set(err, &ERR_INTERNAL,
                       "failed to call webhook: an error on the server (\"%.*s\") has prevented "
                       "the request from succeeding",
                       STR_F(text));
    return err_set(err, &ERR_INTERNAL,
                   "failed to call webhook: the server responded with the status code %d but did "
                   "not return more information",
                   status);
}

/* ---- a refusal ---- */

/* In-process callers compare kinds by address, and keep them. */
static const struct err_kind *kind_of_refusal(struct call *c, const cJSON *result,
                                              const struct err_kind *known)
{
    int64_t code = json_i64_at(result, "code", 0);
    struct err_kind *kind;

    if (c->done)
        return known;
    if (code < 400 || code > 599)
        code = 400;
    kind = ARENA_NEW(c->arena, struct err_kind);
    kind->reason = arena_cstr(c->arena, json_str(json_get(result, "reason")));
    kind->code = (int)code;
    return kind;
}

int webhook_denied(struct call *c, struct str name, const cJSON *result, struct err *err)
{
    struct arena *a = c->arena;
    struct str message = json_str(json_get(result, "message"));
    struct str reason = json_str(json_get(result, "reason"));
    struct str quoted = go_quote(a, name);
    cJSON *status = json_is_object(result) ? json_copy(a, result) : json_new_object(a);

    if (message.n || reason.n)
        message = arena_printf(a, "admission webhook %.*s denied the request: %.*s", STR_F(quoted),
                               STR_F(message.n ? message : reason));
    else
        message = arena_printf(a, "admission webhook %.*s denied the request without explanation",
                               STR_F(quoted));
    json_set_str(a, status, "message", message);
    if (json_i64_at(status, "code", 0) < 400)
        json_set_i64(a, status, "code", 400);
    if (!status_parse(a, status, err))
        return -1;
    err->kind = kind_of_refusal(c, result, err->kind);
    return -1;
}
