/* SPDX-License-Identifier: Apache-2.0 */
/* The rooms around the API core, as small as they can be: the user is what `x-user` says,
 * everything is allowed but to STANDIN.user_denied, and a handful of kinds is served. Must stay
 * without memory beyond STANDIN. */
#include "../../../vapi/api/proxy/extension.h"
#include "../../../vapi/crd/version_new.h"
#include "api_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/admission.h>
#include <sublet/admission_policies.h>
#include <sublet/call.h>
#include <sublet/controller.h>
#include <sublet/crd.h>
#include <sublet/kinds.h>
#include <sublet/webhook.h>

struct standin STANDIN;

/* ---- auth ---- */

struct auth *auth_new(struct vapi *api, struct store *store, struct pki *pki)
{
    (void)store;
    (void)pki;
    return (struct auth *)(void *)api;
}

struct auth *auth_free(struct auth *auth)
{
    (void)auth;
    return NULL;
}

bool auth_await(struct auth *auth, struct arena *a, const struct net_request *r,
                struct auth_wait *w)
{
    (void)auth;
    (void)a;
    (void)r;
    (void)w;
    return false;
}

void auth_wait_end(struct auth_wait *w)
{
    (void)w;
}

int auth_authenticate(struct auth *auth, struct arena *a, const struct net_request *r,
                      const struct attributes *what, struct user *ret, struct err *err)
{
    (void)what;
    struct str name = net_header(r, "x-user");

    (void)auth;
    if (str_eqc(name, "wrong"))
        return err_set(err, &ERR_UNAUTHORIZED, "Unauthorized");
    *ret = (struct user){.name = name.n ? arena_str(a, name) : STR("admin")};
    return 0;
}

bool auth_authorize(struct auth *auth, struct arena *a, const struct user *u,
                    const struct attributes *what, struct str *ret_reason)
{
    (void)auth;
    (void)a;
    *ret_reason = STR_NULL;
    if (STANDIN.deny) {
        size_t n = strlen(STANDIN.asked);

        snprintf(STANDIN.asked + n, sizeof(STANDIN.asked) - n, "%s %.*s/%.*s %.*s ", what->verb,
                 STR_F(what->resource), STR_F(what->subresource), STR_F(what->name));
    }
    return !STANDIN.deny && (!STANDIN.user_denied || !str_eqc(u->name, STANDIN.user_denied));
}

/* The kinds of pools: a name and nothing else. */
struct crd_version *crd_version_new(const cJSON *crd, const cJSON *version,
                                    const struct crd_version *sibling)
{
    const cJSON *names = json_path(crd, "spec.names");
    struct arena *a = arena_new(0);
    struct crd_version *v = ARENA_NEW(a, struct crd_version);
    struct resource *r = NEW(struct resource);

    (void)version;
    (void)sibling;
    *v = (struct crd_version){.arena = a, .resource = r};
    *r = (struct resource){
        .group = arena_str(a, json_str_at(crd, "spec.group")),
        .version = STR("v1"),
        .kind = arena_str(a, json_str_at(names, "kind")),
        .list_kind = arena_str(a, json_str_at(names, "listKind")),
        .plural = arena_str(a, json_str_at(names, "plural")),
        .singular = arena_str(a, json_str_at(names, "singular")),
        .flags = str_eqc(json_str_at(crd, "spec.scope"), "Namespaced") ? RES_NAMESPACED : 0u,
        .schema = &SCHEMA_BUILTIN,
        .crd = v,
    };
    r->group_resource = arena_printf(a, "%.*s.%.*s", STR_F(r->plural), STR_F(r->group));
    r->api_version = r->storage_version = arena_printf(a, "%.*s/v1", STR_F(r->group));
    return v;
}

void crd_version_free(void *ctx)
{
    arena_free(((struct crd_version *)ctx)->arena);
}

void auth_bootstrap(struct auth *auth, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    (void)auth;
    done(ctx, NULL);
}

bool auth_can_wait(struct vapi *api, const struct err *err)
{
    (void)api, (void)err;
    return false;
}

void auth_handle_review(struct call *call)
{
    call_tree(call, 201, call->body);
}

void auth_default_token_request(struct call *call)
{
    (void)call;
}

int auth_check_token_request(struct call *call, struct err *err)
{
    (void)call;
    (void)err;
    return 0;
}

void auth_issue_token(struct call *call)
{
    auth_handle_review(call);
}

/* Answers with the method and the body that would be forwarded. */
bool proxy_extension(struct call *call, struct str group, struct str version)
{
    (void)call;
    (void)group;
    (void)version;
    return false;
}

bool proxy_handle_extension(struct call *call, struct str path)
{
    (void)call;
    (void)path;
    return false;
}

void sub_proxy(struct call *call)
{
    call_raw(call, 200, STR("text/plain"),
             arena_printf(call->arena, "%.*s %.*s", STR_F(call->request->method_text),
                          STR_F(call->request->body)));
}

bool auth_handle_openid(struct call *call, struct str path)
{
    (void)call;
    (void)path;
    return false;
}

/* ---- pki: the harness listens in cleartext ---- */

struct str pki_ca_pem(const struct pki *p)
{
    (void)p;
    return STR_NULL;
}

struct str pki_serving_pem(const struct pki *p)
{
    (void)p;
    return STR_NULL;
}

struct str pki_serving_key_pem(const struct pki *p)
{
    (void)p;
    return STR_NULL;
}

bool pki_set_addresses(struct pki *p, const struct str *ips, size_t n)
{
    (void)p;
    (void)ips;
    (void)n;
    return false;
}

void pki_lifetime(const struct pki *p, enum pki_certificate which, int64_t *ret_from,
                  int64_t *ret_end)
{
    (void)p;
    (void)which;
    *ret_from = *ret_end = 0;
}

int64_t pki_serving_renew_at(const struct pki *p)
{
    (void)p;
    return INT64_MAX;
}

int pki_front_proxy(struct pki *p, struct str *ret_cert, struct str *ret_key, struct err *err)
{
    (void)p;
    (void)err;
    *ret_cert = *ret_key = STR("");
    return 0;
}

int pki_renew_serving(struct pki *p, struct err *err)
{
    (void)p;
    (void)err;
    return 0;
}

/* ---- admission ---- */

int admission_mutate(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err)
{
    (void)c;
    (void)object;
    (void)old;
    (void)err;
    return 0;
}

int admission_validate(const struct admission_call *c, const cJSON *object, const cJSON *old,
                       struct err *err)
{
    (void)c;
    (void)object;
    (void)old;
    (void)err;
    return 0;
}

int admission_lifecycle(const struct admission_call *c, cJSON *object, struct err *err)
{
    (void)c;
    (void)object;
    (void)err;
    return 0;
}

struct admission_memo *admission_memo_new(const struct rng *rng)
{
    (void)rng;
    return NULL;
}

struct admission_memo *admission_memo_free(struct admission_memo *m)
{
    (void)m;
    return NULL;
}

struct admission_policies *admission_policies_new(void)
{
    return NULL;
}

struct admission_policies *admission_policies_free(struct admission_policies *p)
{
    (void)p;
    return NULL;
}

int admission_quota(const struct admission_call *c, const cJSON *object, const cJSON *old,
                    struct err *err)
{
    (void)object;
    (void)old;
    if (!STANDIN.refuse_quota)
        return 0;
    return err_forbidden(err, c->resource->group, c->resource->plural, c->name, "exceeded quota");
}

/* ---- CRDs and controllers ---- */

struct crds *crds_start(struct vapi *api)
{
    (void)api;
    return NULL;
}

void crds_close(struct crds *c, void (*closed)(void *ctx), void *ctx)
{
    (void)c;
    closed(ctx);
}

void crd_prune(const struct crd_version *v, struct arena *a, cJSON *object,
               struct strict_errors *strict)
{
    (void)v;
    (void)a;
    (void)object;
    (void)strict;
}

void crd_default(const struct crd_version *v, struct arena *a, cJSON *object)
{
    (void)v;
    (void)a;
    (void)object;
}

bool crd_default_written(const struct crd_version *v, struct arena *a, cJSON *object, bool applied)
{
    (void)v;
    (void)a;
    (void)object;
    (void)applied;
    return true;
}

void crd_from_own(const struct crd_version *v, struct arena *a, cJSON *object)
{
    (void)v;
    (void)a;
    (void)object;
}

void crd_from_stored(const struct crd_version *v, struct arena *a, cJSON *object)
{
    (void)v;
    (void)a;
    (void)object;
}

void crd_to_stored(const struct crd_version *v, struct arena *a, cJSON *object)
{
    (void)v;
    (void)a;
    (void)object;
}

bool crd_defaults_on_read(const struct crd_version *v)
{
    (void)v;
    return false;
}

void crd_validate(const struct crd_version *v, struct field_errors *e, struct field_errors *kept,
                  const cJSON *object, const cJSON *old)
{
    (void)v;
    (void)e;
    (void)kept;
    (void)object;
    (void)old;
}

void crd_cells(const struct crd_version *v, struct arena *a, const cJSON *object, int64_t now,
               cJSON *cells)
{
    (void)v;
    (void)a;
    (void)object;
    (void)now;
    (void)cells;
}

const cJSON *crd_openapi(const struct crd_version *v)
{
    (void)v;
    return NULL;
}

struct str crd_schema_text(const struct crd_version *v)
{
    (void)v;
    return STR_NULL;
}

bool crd_preserves_all(const struct crd_version *v)
{
    (void)v;
    return true;
}

const struct schema *crd_schema(const struct crd_version *v, uint32_t *ret_root)
{
    (void)v;
    (void)ret_root;
    return NULL;
}

struct str crd_deprecation(const struct crd_version *v)
{
    (void)v;
    return STR_NULL;
}

struct controllers *controllers_start(struct vapi *api, bool native)
{
    (void)api;
    (void)native;
    return NULL;
}

void controllers_close(struct controllers *cs, void (*closed)(void *ctx), void *ctx)
{
    (void)cs;
    closed(ctx);
}

/* ---- kinds ---- */

/* One list of the spec and who owns what are all that is kept. */
static cJSON *keep_list(struct arena *a, const cJSON *pod, const cJSON *old, const char *list)
{
    cJSON *made = json_copy(a, old);
    const cJSON *value = json_get(json_get(pod, "spec"), list);

    if (value)
        json_set(a, json_get(made, "spec"), list, json_copy(a, value));
    else
        json_remove(json_get(made, "spec"), list);
    json_set(a, json_get(made, "metadata"), "managedFields",
             json_copy(a, json_path(pod, "metadata.managedFields")));
    return made;
}

cJSON *prepare_pod_ephemeral(struct arena *a, cJSON *pod, const cJSON *old)
{
    return keep_list(a, pod, old, "ephemeralContainers");
}

void validate_pod_ephemeral(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    if (json_count(json_path(pod, "spec.ephemeralContainers")) <
        json_count(json_path(old, "spec.ephemeralContainers")))
        field_forbidden(e, FIELD(NULL, "spec"), "may not be removed");
}

cJSON *prepare_pod_resize(struct arena *a, cJSON *pod, const cJSON *old)
{
    return keep_list(a, pod, old, "containers");
}

/* There may not be more of them. */
void validate_pod_resize(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    if (json_count(json_path(pod, "spec.containers")) !=
        json_count(json_path(old, "spec.containers")))
        field_forbidden(e, FIELD(NULL, "spec"), "not on resize");
}

static const char *unreadable(struct arena *a, const cJSON *body)
{
    (void)a;
    return json_path(body, "metadata.labels.unreadable") ? "it says so" : NULL;
}

static void default_deployment(struct arena *a, cJSON *object)
{
    cJSON *spec = json_ensure_object(a, object, "spec");

    if (!json_get(spec, "replicas"))
        json_set_i64(a, spec, "replicas", 1);
}

static void validate_deployment(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    if (json_i64_at(object, "spec.replicas", 0) < 0)
        field_invalid(e, FIELD(FIELD(NULL, "spec"), "replicas"), json_path(object, "spec.replicas"),
                      "must be greater than or equal to 0");
}

static void prepare_namespace(struct arena *a, cJSON *object)
{
    cJSON *finalizers = json_new_array(a);

    json_append(finalizers, json_new_string(a, STR("kubernetes")));
    json_set(a, json_ensure_object(a, object, "spec"), "finalizers", finalizers);
    json_set_str(a, json_ensure_object(a, object, "status"), "phase", STR("Active"));
}

static void validate_budget_first(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    if (json_i64_at(object, "spec.minAvailable", 0) < 0)
        field_required(e, FIELD(FIELD(NULL, "spec"), "minAvailable"), "");
}

static void validate_budget(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    if (json_i64_at(object, "spec.maxUnavailable", 0) < 0)
        field_required(e, FIELD(FIELD(NULL, "spec"), "maxUnavailable"), "");
}

static const struct scale_paths SCALE = {"spec.replicas", "status.replicas", NULL};

#define UPDATES (VERB_GET | VERB_UPDATE | VERB_PATCH)
#define STATUS_OF(g, k)                                                                            \
    {                                                                                              \
        "status", SUB_STATUS, UPDATES, g, "v1", k, NULL                                            \
    }

static const struct subresource POD_SUBS[] = {
    {"exec", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodExecOptions", NULL},
    {"log", SUB_PROXY, VERB_GET, "", "", "Pod", NULL},
    {"proxy", SUB_PROXY, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "PodProxyOptions", NULL},
    STATUS_OF("", "Pod"),
    {"binding", SUB_BINDING, VERB_CREATE, "", "v1", "Binding", NULL},
    {"eviction", SUB_EVICTION, VERB_CREATE, "policy", "v1", "Eviction", NULL},
    {"ephemeralcontainers", SUB_EPHEMERAL_CONTAINERS, UPDATES, "", "v1", "Pod", NULL},
    {"resize", SUB_RESIZE, UPDATES, "", "v1", "Pod", NULL},
};
static const struct subresource DEPLOYMENT_SUBS[] = {
    STATUS_OF("apps", "Deployment"),
    {"scale", SUB_SCALE, UPDATES, "autoscaling", "v1", "Scale", &SCALE},
};
static const struct subresource NAMESPACE_SUBS[] = {
    STATUS_OF("", "Namespace"),
    {"finalize", SUB_FINALIZE, VERB_UPDATE, "", "v1", "Namespace", NULL},
};
static const struct subresource BUDGET_SUBS[] = {STATUS_OF("policy", "PodDisruptionBudget")};
static const struct subresource CSR_SUBS[] = {
    STATUS_OF("certificates.k8s.io", "CertificateSigningRequest"),
    {"approval", SUB_APPROVAL, UPDATES, "certificates.k8s.io", "v1", "CertificateSigningRequest",
     NULL},
};

#define S(text)                                                                                    \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define KIND(g, v, k, p, s)                                                                        \
    .group = S(g), .version = S(v), .kind = S(k), .list_kind = S(k "List"), .plural = S(p),        \
    .singular = S(s)
#define SUBS(list) .subresources = list, .n_subresources = COUNT(list)

static const struct kind CONFIG_MAP = {
    .unreadable = unreadable,
    .resource = {KIND("", "v1", "ConfigMap", "configmaps", "configmap"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED},
};

static const struct kind EVENT = {
    .unreadable = unreadable,
    .resource = {KIND("", "v1", "Event", "events", "event"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_EXPIRES},
};

static const struct kind NAMESPACE = {
    .unreadable = unreadable,
    .resource = {KIND("", "v1", "Namespace", "namespaces", "namespace"), .verbs = VERBS_ALL,
                 .flags = RES_STATUS, SUBS(NAMESPACE_SUBS)},
    .prepare_create = prepare_namespace,
    .check_name = name_check_dns1123_label,
};

static const struct kind POD = {
    .unreadable = unreadable,
    .resource = {KIND("", "v1", "Pod", "pods", "pod"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_GRACEFUL |
                          RES_DELETE_RETURNS_OBJECT,
                 SUBS(POD_SUBS)},
};

static const struct kind DEPLOYMENT = {
    .unreadable = unreadable,
    .resource = {KIND("apps", "v1", "Deployment", "deployments", "deployment"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION, SUBS(DEPLOYMENT_SUBS)},
    .defaults = default_deployment,
    .validate = validate_deployment,
};

static const struct kind SELF_SUBJECT_ACCESS_REVIEW = {
    .unreadable = unreadable,
    .resource = {KIND("authorization.k8s.io", "v1", "SelfSubjectAccessReview",
                      "selfsubjectaccessreviews", "selfsubjectaccessreview"),
                 .verbs = VERB_CREATE, .flags = RES_REVIEW},
};

static const struct kind JOB = {
    .unreadable = unreadable,
    .resource = {KIND("batch", "v1", "Job", "jobs", "job"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT},
};

static const struct kind CERTIFICATE_SIGNING_REQUEST = {
    .unreadable = unreadable,
    .resource = {KIND("certificates.k8s.io", "v1", "CertificateSigningRequest",
                      "certificatesigningrequests", "certificatesigningrequest"),
                 .verbs = VERBS_ALL, .flags = RES_STATUS, SUBS(CSR_SUBS)},
};

static const struct kind LEASE = {
    .unreadable = unreadable,
    .resource = {KIND("coordination.k8s.io", "v1", "Lease", "leases", "lease"), .verbs = VERBS_ALL,
                 .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE},
};

static const struct kind POD_DISRUPTION_BUDGET = {
    .unreadable = unreadable,
    .resource = {KIND("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets",
                      "poddisruptionbudget"),
                 .verbs = VERBS_ALL,
                 .flags =
                     RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_SYSTEM_NAME | RES_META_LAST,
                 SUBS(BUDGET_SUBS)},
    .validate_first = validate_budget_first,
    .validate = validate_budget,
};

const struct kind *const KINDS[] = {
    &CONFIG_MAP, &EVENT,
    &NAMESPACE,  &POD,
    &DEPLOYMENT, &SELF_SUBJECT_ACCESS_REVIEW,
    &JOB,        &CERTIFICATE_SIGNING_REQUEST,
    &LEASE,      &POD_DISRUPTION_BUDGET,
    NULL,
};

const char *kinds_stored_problem(struct str resource, const struct store_object *o)
{
    (void)resource, (void)o;
    return NULL;
}

/* No webhooks. */
bool webhooks_run(enum webhook_phase phase, const struct webhook_review *r, webhook_decode decode,
                  webhook_done done, void *ctx)
{
    (void)phase;
    (void)r;
    (void)decode;
    (void)done;
    (void)ctx;
    return false;
}

struct webhooks *webhooks_free(struct webhooks *w)
{
    (void)w;
    return NULL;
}
