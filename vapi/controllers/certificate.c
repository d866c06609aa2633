/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate signing requests: approves requests of nodes for themselves, signs approved ones for
 * the signers of kubernetes.io with the cluster's CA, and deletes expired requests. Must never sign
 * a request that was not approved with permission, and checks the signer's own rules first. Source
 * of the rules: pkg/controller/certificates of Kubernetes 1.36. */
#include "util.h"

#include <sublet/encode.h>

#define HOUR_S         3600
#define DECIDED_S      HOUR_S
#define PENDING_S      (24 * HOUR_S)
#define MAX_LIFETIME_S (365LL * 24 * HOUR_S)
#define MIN_LIFETIME_S 600
#define USAGES_MOST    64

/* Tags of GeneralName (RFC 5280, 4.2.1.6). */
enum { NAME_EMAIL = 1, NAME_DNS = 2, NAME_URI = 6, NAME_IP = 7 };

struct signing {
    struct reconcile *run;
    const struct resource *res;
    cJSON *csr;
    struct str pem;
    struct pki_request request;
    struct str usages[USAGES_MOST];
    size_t n_usages;
};

static struct str signer_of(const struct signing *s)
{
    return json_str_at(s->csr, "spec.signerName");
}

static bool holds(const struct signing *s, const char *type)
{
    return condition_is_true(json_path(s->csr, "status.conditions"), type);
}

/* --- the signers' rules: NULL when met, otherwise the reason --- */

static bool has_usage(const struct signing *s, const char *usage)
{
    for (size_t i = 0; i < s->n_usages; i++) {
        if (str_eqc(s->usages[i], usage))
            return true;
    }
    return false;
}

/* Exactly digital signature and `purpose`, with or without key encipherment. */
static bool usages_are(const struct signing *s, const char *purpose)
{
    for (size_t i = 0; i < s->n_usages; i++) {
        if (!str_eqc(s->usages[i], "digital signature") &&
            !str_eqc(s->usages[i], "key encipherment") && !str_eqc(s->usages[i], purpose))
            return false;
    }
    return has_usage(s, "digital signature") && has_usage(s, purpose);
}

static bool is_of_nodes(const struct signing *s)
{
    return s->request.n_organizations == 1 && str_eqc(s->request.organizations[0], "system:nodes");
}

static bool is_named_as_node(const struct signing *s)
{
    return str_has_prefix(s->request.cn, STR("system:node:"));
}

static const char *check_node_client(const struct signing *s)
{
    const size_t *n = s->request.n_alternatives;

    if (!is_of_nodes(s))
        return "subject organization is not system:nodes";
    if (n[NAME_DNS])
        return "DNS subjectAltNames are not allowed";
    if (n[NAME_EMAIL])
        return "Email subjectAltNames are not allowed";
    if (n[NAME_IP])
        return "IP subjectAltNames are not allowed";
    if (n[NAME_URI])
        return "URI subjectAltNames are not allowed";
    if (!is_named_as_node(s))
        return "subject common name does not begin with system:node:";
    if (!usages_are(s, "client auth"))
        return "usages did not match [client auth digital signature key encipherment]";
    return NULL;
}

static const char *check_node_serving(const struct signing *s)
{
    const size_t *n = s->request.n_alternatives;

    if (!is_of_nodes(s))
        return "subject organization is not system:nodes";
    if (!n[NAME_DNS] && !n[NAME_IP])
        return "DNS or IP subjectAltName is required";
    if (n[NAME_EMAIL])
        return "Email subjectAltNames are not allowed";
    if (n[NAME_URI])
        return "URI subjectAltNames are not allowed";
    if (!usages_are(s, "server auth"))
        return "usages did not match [digital signature key encipherment server auth]";
    if (!is_named_as_node(s))
        return "subject common name does not begin with system:node:";
    return NULL;
}

static const char *check_client(const struct signing *s)
{
    for (size_t i = 0; i < s->n_usages; i++) {
        if (!str_eqc(s->usages[i], "digital signature") &&
            !str_eqc(s->usages[i], "key encipherment") && !str_eqc(s->usages[i], "client auth"))
            return arena_printf(reconcile_arena(s->run),
                                "invalid usage for client certificate: %.*s", STR_F(s->usages[i]))
                .p;
    }
    return has_usage(s, "client auth")
               ? NULL
               : "missing required usage for client certificate: client auth";
}

static const struct signer {
    const char *name;
    const char *(*check)(const struct signing *s);
} SIGNERS[] = {
    {"kubernetes.io/kube-apiserver-client", check_client},
    {"kubernetes.io/kube-apiserver-client-kubelet", check_node_client},
    {"kubernetes.io/kubelet-serving", check_node_serving},
};

static const struct signer *find_signer(struct str name)
{
    for (size_t i = 0; i < COUNT(SIGNERS); i++) {
        if (str_eqc(name, SIGNERS[i].name))
            return &SIGNERS[i];
    }
    return NULL; /* another component's signer */
}

/* --- signing --- */

static void add_condition(struct signing *s, const char *type, const char *reason,
                          struct str message)
{
    struct arena *a = reconcile_arena(s->run);
    int64_t now = reconcile_now_s(s->run);

    condition_set(a, s->csr, type, "True", reason, message, now);
    json_set_str(a, condition_get(json_path(s->csr, "status.conditions"), type), "lastUpdateTime",
                 time_format_s(a, now));
}

static int64_t lifetime_of(const struct signing *s)
{
    int64_t requested = json_i64_at(s->csr, "spec.expirationSeconds", MAX_LIFETIME_S);

    if (requested > MAX_LIFETIME_S)
        return MAX_LIFETIME_S;
    return requested < MIN_LIFETIME_S ? MIN_LIFETIME_S : requested;
}

static void sign(struct signing *s, const struct signer *signer)
{
    struct arena *a = reconcile_arena(s->run);
    const char *wrong = signer->check(s);
    struct str cert;
    struct err err;

    err_init(&err, a);
    if (wrong)
        add_condition(s, "Failed", "SignerValidationFailure", str_c(wrong));
    else if (pki_sign_request(vapi_pki(reconcile_api(s->run)), a, s->pem, s->usages, s->n_usages,
                              lifetime_of(s), &cert, &err))
        add_condition(s, "Failed", "SigningFailure", err.message);
    else
        json_set_str(a, json_ensure_object(a, s->csr, "status"), "certificate",
                     base64_encode(a, cert));
    reconcile_update_status(s->run, s->res, s->csr);
}

/* --- approval of a node's own client certificate, with permission --- */

static void user_of(struct signing *s, struct user *ret)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *list = json_path(s->csr, "spec.groups");
    struct str *groups = arena_alloc(a, (json_count(list) + 1) * sizeof(*groups));

    *ret = (struct user){.name = json_str_at(s->csr, "spec.username"),
                         .uid = json_str_at(s->csr, "spec.uid"),
                         .extra = json_path(s->csr, "spec.extra")};
    json_each(group, list) groups[ret->n_groups++] = json_str(group);
    ret->groups = groups;
}

static void approve(struct signing *s)
{
    static const struct {
        const char *subresource, *message;
        bool self;
    } ways[] = {
        {"selfnodeclient",
         "Auto approving self kubelet client certificate after SubjectAccessReview.", true},
        {"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.",
         false},
    };
    struct user user;

    if (!str_eqc(signer_of(s), "kubernetes.io/kube-apiserver-client-kubelet") ||
        check_node_client(s))
        return;
    user_of(s, &user);
    for (size_t i = 0; i < 2; i++) {
        struct attributes what = {.verb = "create",
                                  .group = s->res->group,
                                  .version = STR("*"),
                                  .resource = s->res->plural,
                                  .subresource = str_c(ways[i].subresource)};

        if ((ways[i].self && !str_eq(user.name, s->request.cn)) ||
            !auth_authorize(vapi_auth(reconcile_api(s->run)), reconcile_arena(s->run), &user, &what,
                            NULL))
            continue;
        add_condition(s, "Approved", "AutoApproved", str_c(ways[i].message));
        reconcile_update_at(s->run, s->res, "approval", s->csr);
        return;
    }
}

/* --- deletion of expired requests --- */

static int64_t decided_at(const struct signing *s, const char *type)
{
    const cJSON *c = condition_get(json_path(s->csr, "status.conditions"), type);

    return c ? object_time_s(c, "lastUpdateTime") : 0;
}

static void earlier(int64_t *end, int64_t at, int64_t after)
{
    if (at && at + after < *end)
        *end = at + after;
}

/* When the request may be deleted; INT64_MAX: never. */
static int64_t end_of(struct signing *s)
{
    struct arena *a = reconcile_arena(s->run);
    struct str cert = json_str_at(s->csr, "status.certificate"), pem;
    int64_t end = INT64_MAX;

    if (!json_count(json_path(s->csr, "status.conditions")))
        earlier(&end, meta_created_s(s->csr), PENDING_S);
    earlier(&end, decided_at(s, "Denied"), DECIDED_S);
    earlier(&end, decided_at(s, "Failed"), DECIDED_S);
    earlier(&end, decided_at(s, "Approved"), cert.n ? DECIDED_S : PENDING_S);
    if (cert.n && decided_at(s, "Approved") && base64_decode(a, cert, &pem))
        earlier(&end, pki_certificate_end(pem), 0);
    return end;
}

/* True when it is deleted now. */
static bool clean(struct signing *s)
{
    int64_t end = end_of(s), now = reconcile_now_s(s->run);

    if (end == INT64_MAX)
        return false;
    if (end >= now) {
        reconcile_again_after(s->run, (end - now + 1) * 1000);
        return false;
    }
    reconcile_delete_exact(s->run, s->res, s->csr, NULL);
    return true;
}

/* --- reconcile --- */

static bool read_request(struct signing *s)
{
    struct arena *a = reconcile_arena(s->run);
    struct err err;

    json_each(usage, json_path(s->csr, "spec.usages"))
    {
        if (s->n_usages == USAGES_MOST)
            return false;
        s->usages[s->n_usages++] = json_str(usage);
    }
    err_init(&err, a);
    return base64_decode(a, json_str_at(s->csr, "spec.request"), &s->pem) &&
           !pki_read_request(a, s->pem, &s->request, &err);
}

static void certificate_reconcile(struct reconcile *r)
{
    struct signing *s = ARENA_NEW(reconcile_arena(r), struct signing);
    const struct signer *signer;
    struct str ns, name;

    s->run = r;
    s->res = reconcile_resource(r, "certificates.k8s.io", "certificatesigningrequests");
    if (!key_split(reconcile_key(r), &ns, &name) ||
        !(s->csr = reconcile_get(r, s->res, STR(""), name)) || object_is_terminating(s->csr) ||
        clean(s))
        return;
    signer = find_signer(signer_of(s));
    if (!signer || json_str_at(s->csr, "status.certificate").n || holds(s, "Denied") ||
        holds(s, "Failed") || !read_request(s))
        return;
    if (holds(s, "Approved"))
        sign(s, signer);
    else
        approve(s);
}

static const struct controller_source SOURCES[] = {
    {"certificates.k8s.io", "certificatesigningrequests", controller_map_self},
    {NULL, NULL, NULL},
};

const struct controller_def CERTIFICATE_CONTROLLER = {
    .name = "certificate-controller",
    .sources = SOURCES,
    .reconcile = certificate_reconcile,
};
