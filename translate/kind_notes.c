/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations that name objects or hosts, of Ingresses, of the Gateway API and of custom resources.
 * Why: a controller of the host reads such a name in the host namespace, so one that goes down as
 * the tenant wrote it names an object of another component, or none; and a host name takes the
 * traffic, the DNS record or a certificate of that name. Must never send a listed key whose value
 * was not translated: what cannot be read is refused, as controllers read JSON with less care than
 * this does. */

#include "kind_impl.h"
#include "pod_marks.h"

#include <sublet/selector.h>

#define NGINX       "nginx.ingress.kubernetes.io/"
#define ALB         "alb.ingress.kubernetes.io/"
#define HAPROXY     "haproxy-ingress.github.io/"
#define HAPROXY_OLD "ingress.kubernetes.io/" /* the other prefix of both HAProxy controllers */
#define HAPROXY_ORG "haproxy.org/"
#define HAPROXY_COM "haproxy.com/"
#define TRAEFIK     "traefik.ingress.kubernetes.io/"
#define KONG        "konghq.com/"
#define CERTIFICATE "cert-manager.io/"
#define ACME        "acme.cert-manager.io/"
#define DNS         "external-dns.kubernetes.io/"
#define DNS_OLD     "external-dns.alpha.kubernetes.io/" /* before external-dns 0.22 */
#define ISTIO       "gateway.istio.io/"
#define AZURE       "service.beta.kubernetes.io/azure-"
#define AWS         "service.beta.kubernetes.io/aws-load-balancer-"

enum form {
    FORM_NAME,  /* NAME, or NAMESPACE/NAME */
    FORM_NAMES, /* NAME,NAME */
    FORM_HOSTS, /* HOST,HOST: of the admin's lists */
    FORM_CLASS, /* of the admin's list */
    FORM_JSON,  /* by rows */
    FORM_OF,    /* JSON, and the end of the key names a backend */
    FORM_ALONE  /* reaches further than its object: the admin has to list the key itself */
};

struct note {
    const char *key; /* one that ends in '-', '.', '/': all that begin with it */
    enum form form;
    const char *kind; /* of what it names */
    const struct kind_rule *rows;
};

/* ---- AWS Load Balancer Controller: its Ingress annotations, v2 ---- */

static const struct kind_rule ALB_ACTION[] = {
    {".type", KIND_KEEP},
    {".fixedResponseConfig", KIND_KEEP},
    {".redirectConfig", KIND_KEEP},
    {".targetGroupARN", KIND_REFUSE, .what = "a target group of the cloud is not the tenant's"},
    {".targetGroupName", KIND_REFUSE, .what = "a target group of the cloud is not the tenant's"},
    {".forwardConfig.targetGroupStickinessConfig", KIND_KEEP},
    {".forwardConfig.targetGroups[*].targetGroupARN", KIND_REFUSE,
     .what = "a target group of the cloud is not the tenant's"},
    {".forwardConfig.targetGroups[*].targetGroupName", KIND_REFUSE,
     .what = "a target group of the cloud is not the tenant's"},
    {".forwardConfig.targetGroups[*].serviceName", KIND_REFERENCE, .what = "Service"},
    {".forwardConfig.targetGroups[*].servicePort", KIND_KEEP},
    {".forwardConfig.targetGroups[*].weight", KIND_KEEP},
    {0},
};

static const struct kind_rule ALB_CONDITIONS[] = {
    {"[*].field", KIND_KEEP},
    /* One more host of the rule, not a narrower one. */
    {"[*].hostHeaderConfig.values[*]", KIND_CALL, .call = translate_kind_host},
    {"[*].hostHeaderConfig.regexValues", KIND_REFUSE, .what = "an expression is no listed host"},
    {"[*].pathPatternConfig", KIND_KEEP},
    {"[*].httpHeaderConfig", KIND_KEEP},
    {"[*].httpRequestMethodConfig", KIND_KEEP},
    {"[*].queryStringConfig", KIND_KEEP},
    {"[*].sourceIPConfig", KIND_KEEP},
    {0},
};

static const struct kind_rule ALB_OIDC[] = {
    {".issuer", KIND_KEEP},
    {".authorizationEndpoint", KIND_KEEP},
    {".tokenEndpoint", KIND_KEEP},
    {".userInfoEndpoint", KIND_KEEP},
    {".secretName", KIND_REFERENCE, .what = "Secret"},
    {".authenticationRequestExtraParams", KIND_KEEP},
    {0},
};

static const struct note NOTES[] = {
    {NGINX "auth-secret", FORM_NAME, .kind = "Secret"},
    {NGINX "auth-tls-secret", FORM_NAME, .kind = "Secret"},
    {NGINX "proxy-ssl-secret", FORM_NAME, .kind = "Secret"},
    {NGINX "secure-verify-ca-secret", FORM_NAME, .kind = "Secret"},
    {NGINX "auth-proxy-set-headers", FORM_NAME, .kind = "ConfigMap"},
    {NGINX "custom-headers", FORM_NAME, .kind = "ConfigMap"},
    {NGINX "default-backend", FORM_NAME, .kind = "Service"},
    {NGINX "fastcgi-params-configmap", FORM_NAME, .kind = "ConfigMap"},
    {NGINX "server-alias", FORM_HOSTS},
    {NGINX "auth-url", FORM_ALONE},
    {NGINX "from-to-www-redirect", FORM_ALONE}, /* the name without www, or with it */
    {NGINX "mirror-target", FORM_ALONE},
    {"nginx.org/policies", FORM_ALONE},
    {"nginx.org/listen-ports", FORM_ALONE}, /* of the controller's own pods */
    {"nginx.org/listen-ports-ssl", FORM_ALONE},
    {"appprotect.f5.com/", FORM_ALONE}, /* NAMESPACE/NAME, and servers that get logs */
    {"appprotectdos.f5.com/", FORM_ALONE},
    {"nginx.org/basic-auth-secret", FORM_NAME, .kind = "Secret"},
    {"nginx.com/jwt-key", FORM_NAME, .kind = "Secret"},
    {"nginx.org/ssl-services", FORM_NAMES, .kind = "Service"},
    {"nginx.org/grpc-services", FORM_NAMES, .kind = "Service"},
    {"nginx.org/websocket-services", FORM_NAMES, .kind = "Service"},
    {HAPROXY "auth-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY "auth-tls-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY "secure-crt-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY "secure-verify-ca-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY "server-alias", FORM_HOSTS},
    {HAPROXY "server-alias-regex", FORM_ALONE},
    {HAPROXY "redirect-from", FORM_HOSTS},
    {HAPROXY "redirect-from-regex", FORM_ALONE},
    {HAPROXY "auth-url", FORM_ALONE},
    {HAPROXY "tcp-service-port", FORM_ALONE},
    {HAPROXY "config-backend", FORM_ALONE},
    {HAPROXY_OLD "auth-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "auth-tls-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "secure-crt-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "secure-verify-ca-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "client-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "client-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "server-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "server-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_OLD "server-alias", FORM_HOSTS},
    {HAPROXY_OLD "server-alias-regex", FORM_ALONE},
    {HAPROXY_OLD "redirect-from", FORM_HOSTS},
    {HAPROXY_OLD "redirect-from-regex", FORM_ALONE},
    {HAPROXY_OLD "auth-url", FORM_ALONE},
    {HAPROXY_OLD "tcp-service-port", FORM_ALONE},
    {HAPROXY_OLD "config-backend", FORM_ALONE},
    {HAPROXY_OLD "cr-backend", FORM_ALONE},
    {HAPROXY_OLD "route-acl", FORM_ALONE},
    {HAPROXY_ORG "auth-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_ORG "client-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_ORG "client-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_ORG "server-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_ORG "server-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_ORG "cr-backend", FORM_ALONE},
    {HAPROXY_ORG "ingress.class", FORM_CLASS},
    {HAPROXY_ORG "route-acl", FORM_ALONE},
    {HAPROXY_COM "auth-secret", FORM_NAME, .kind = "Secret"},
    {HAPROXY_COM "client-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_COM "client-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_COM "server-ca", FORM_NAME, .kind = "Secret"},
    {HAPROXY_COM "server-crt", FORM_NAME, .kind = "Secret"},
    {HAPROXY_COM "cr-backend", FORM_ALONE},
    {HAPROXY_COM "route-acl", FORM_ALONE},
    {TRAEFIK "router.middlewares", FORM_ALONE},  /* NAMESPACE-NAME@kubernetescrd */
    {TRAEFIK "router.pathmatcher", FORM_ALONE},  /* a piece of the rule, which can have hosts */
    {TRAEFIK "router.tls.domains.", FORM_ALONE}, /* names of a certificate */
    {TRAEFIK "router.tls.options", FORM_ALONE},
    {TRAEFIK "service.serverstransport", FORM_ALONE},
    {KONG "plugins", FORM_ALONE}, /* NAME, or NAMESPACE:NAME */
    {KONG "override", FORM_ALONE},
    {KONG "upstream-policy", FORM_ALONE},
    {KONG "publish-service", FORM_ALONE}, /* whose addresses a Gateway has */
    {KONG "host-aliases", FORM_HOSTS},
    {KONG "snis", FORM_HOSTS},
    {KONG "client-cert", FORM_NAME, .kind = "Secret"},
    {KONG "ca-certificates-secrets", FORM_NAMES, .kind = "Secret"},
    {KONG "ca-certificates-configmaps", FORM_NAMES, .kind = "ConfigMap"},
    {"projectcontour.io/tls-cert-namespace", FORM_ALONE},
    {"projectcontour.io/ingress.class", FORM_CLASS},
    {"contour.heptio.com/ingress.class", FORM_CLASS},
    {"appgw.ingress.kubernetes.io/hostname-extension", FORM_HOSTS},
    {ALB "auth-idp-oidc", FORM_JSON, .rows = ALB_OIDC},
    {ALB "actions.", FORM_OF, .kind = "Service", .rows = ALB_ACTION},
    {ALB "conditions.", FORM_OF, .kind = "Service", .rows = ALB_CONDITIONS},
    {ALB "group.name", FORM_ALONE}, /* of Ingresses of all namespaces */
    /* What the cloud account has for everybody: certificates, networks, firewalls, users. */
    {ALB "certificate-arn", FORM_ALONE},
    {ALB "security-groups", FORM_ALONE},
    {ALB "manage-backend-security-group-rules", FORM_ALONE},
    {ALB "subnets", FORM_ALONE},
    {ALB "load-balancer-name", FORM_ALONE},
    {ALB "load-balancer-attributes", FORM_ALONE}, /* the bucket of its logs */
    {ALB "tags", FORM_ALONE},
    {ALB "wafv2-acl-", FORM_ALONE},
    {ALB "waf-acl-id", FORM_ALONE},
    {ALB "web-acl-id", FORM_ALONE},
    {ALB "auth-idp-cognito", FORM_ALONE},
    {ALB "mutual-authentication", FORM_ALONE},
    {ALB "customer-owned-ipv4-pool", FORM_ALONE},
    {ALB "ipam-ipv4-pool-id", FORM_ALONE},
    {ALB "frontend-nlb-", FORM_ALONE},
    {CERTIFICATE "issuer", FORM_ALONE},
    {CERTIFICATE "issuer-", FORM_ALONE}, /* kind, group: an issuer of the cluster */
    {CERTIFICATE "cluster-issuer", FORM_ALONE},
    {CERTIFICATE "common-name", FORM_HOSTS},
    {CERTIFICATE "alt-names", FORM_HOSTS},
    {CERTIFICATE "ip-sans", FORM_ALONE},
    {CERTIFICATE "uri-sans", FORM_ALONE},
    {CERTIFICATE "email-sans", FORM_ALONE},
    {CERTIFICATE "subject-", FORM_ALONE}, /* groups and names, where certificates authenticate */
    {CERTIFICATE "secret-template", FORM_ALONE}, /* labels and annotations of a Secret */
    {CERTIFICATE "private-key-secret-name", FORM_NAME, .kind = "Secret"},
    {ACME "http01-ingress-", FORM_ALONE}, /* a class */
    {DNS "hostname", FORM_HOSTS},
    {DNS "internal-hostname", FORM_HOSTS},
    {DNS_OLD "hostname", FORM_HOSTS},
    {DNS_OLD "internal-hostname", FORM_HOSTS},
    {ISTIO "name-override", FORM_ALONE}, /* the Deployment and Service that are made for it */
    {ISTIO "service-account", FORM_ALONE},
    {"networking.istio.io/service-type", FORM_ALONE},
    /* Istio hands those of a Gateway on to the pods that it makes for it. */
    {"proxy.istio.io/", FORM_ALONE},
    {"sidecar.istio.io/", FORM_ALONE},
    {"inject.istio.io/", FORM_ALONE},
    {"networking.gke.io/certmap", FORM_ALONE}, /* certificates of the cloud, by name */
    /* A service of the cloud that another cluster has. */
    {"application-networking.k8s.aws/allow-takeover-from", FORM_ALONE},
    /* What externalIPs and loadBalancerIP of a Service would say: addresses, and sharing them. */
    {"metallb.io/loadBalancerIPs", FORM_ALONE},
    {"metallb.io/allow-shared-ip", FORM_ALONE},
    {"metallb.universe.tf/loadBalancerIPs", FORM_ALONE},
    {"metallb.universe.tf/allow-shared-ip", FORM_ALONE},
    {"kube-vip.io/loadbalancerIPs", FORM_ALONE},
    {"lbipam.cilium.io/ips", FORM_ALONE},
    {"lbipam.cilium.io/sharing-key", FORM_ALONE},
    {"lbipam.cilium.io/sharing-cross-namespace", FORM_ALONE},
    {"io.cilium/lb-ipam-ips", FORM_ALONE},
    {"io.cilium/lb-ipam-sharing-key", FORM_ALONE},
    {"io.cilium/lb-ipam-sharing-cross-namespace", FORM_ALONE},
    {AZURE "additional-public-ips", FORM_ALONE},
    {AZURE "load-balancer-ipv4", FORM_ALONE},
    {AZURE "load-balancer-ipv6", FORM_ALONE},
    {AZURE "pip-name", FORM_ALONE},
    {AZURE "pip-name-ipv6", FORM_ALONE},
    {AZURE "pip-prefix-id", FORM_ALONE},
    {AWS "ssl-cert", FORM_ALONE},
    {AWS "security-groups", FORM_ALONE},
    {AWS "extra-security-groups", FORM_ALONE},
    {AWS "manage-backend-security-group-rules", FORM_ALONE},
    {AWS "subnets", FORM_ALONE},
    {AWS "name", FORM_ALONE},
    {AWS "attributes", FORM_ALONE},
    {AWS "access-log-s3-bucket-name", FORM_ALONE},
    {AWS "additional-resource-tags", FORM_ALONE},
    {AWS "eip-allocations", FORM_ALONE},
    {AWS "private-ipv4-addresses", FORM_ALONE},
    {AWS "ipv6-addresses", FORM_ALONE},
    {"networking.gke.io/load-balancer-ip-addresses", FORM_ALONE},
    {"kubernetes.io/ingress.global-static-ip-name", FORM_ALONE},
    {"kubernetes.io/ingress.regional-static-ip-name", FORM_ALONE},
};

/* Lines of a controller's configuration. */
static const struct note SNIPPET = {"", FORM_ALONE, NULL, NULL};

/* ---- forms ---- */

/* NAME, or NAMESPACE/NAME of the object's own namespace. */
static int name_down(const struct kind_call *c, const char *kind, struct str value, struct str *ret)
{
    size_t slash = str_find(value, '/');
    bool with_ns = slash < value.n;
    struct str name = with_ns ? str_from(value, slash + 1) : value, host;
    const char *wrong = name_check_dns1123_subdomain(name);

    if (with_ns && !str_eq(str_sub(value, 0, slash), c->ns))
        return translate_kind_refuse(c, "names a namespace other than its own");
    if (wrong)
        return translate_kind_refuse(c, "is not the name of a %s: %s", kind, wrong);
    host = json_str(translate_kind_reference(c, kind, c->ns, name));
    *ret = with_ns
               ? arena_printf(c->arena, "%.*s/%.*s", STR_F(c->tenant->host_namespace), STR_F(host))
               : host;
    return 0;
}

/* Of the lists for Ingresses, Gateways and routes: each name there is this tenant's to have. */
static bool is_listed_host(const struct translate_tenant *t, struct str host)
{
    const struct config_to_host *to = t->config->to_host;
    const struct config_from *from = config_from_row(t->config, FROM_GATEWAYS);
    bool pattern = str_has_prefix(host, STR("*"));

    return (!pattern && config_host_listed(to->ingress_hosts, host)) ||
           ((!pattern || to->gateway_wildcards) && config_host_listed(to->gateway_hosts, host)) ||
           (from && (!pattern || from->wildcards) && config_host_listed(from->hosts, host));
}

static int host_checked(const struct kind_call *c, struct str host, struct str *ret)
{
    cJSON *unused;

    *ret = host;
    if (c->host)
        return c->host(c, json_new_string(c->arena, host), &unused);
    if (is_listed_host(c->tenant, host))
        return 0;
    return translate_kind_refuse(c,
                                 "host name \"%.*s\" is not one of sync.toHost.ingresses.hosts, "
                                 "sync.toHost.gateways.hosts or sync.fromHost.gateways.hosts",
                                 STR_F(host));
}

static int each_down(const struct kind_call *c, const struct note *note, struct str rest,
                     struct buf *to)
{
    do {
        struct str one = str_trim(str_cut(&rest, ',')), made = one;

        if (note->form == FORM_HOSTS ? host_checked(c, one, &made)
                                     : name_down(c, note->kind, one, &made))
            return -1;
        if (to->n)
            buf_char(to, ',');
        buf_add(to, made);
    } while (rest.p); /* an empty end is a name as well, and refused */
    return 0;
}

static int list_down(const struct kind_call *c, const struct note *note, struct str value,
                     struct str *ret)
{
    struct buf to = BUF_INIT(0);
    int rc = each_down(c, note, value, &to);

    *ret = arena_str(c->arena, buf_str(&to));
    buf_fini(&to);
    return rc;
}

static int json_down(const struct kind_call *c, const struct note *note, struct str value,
                     struct str *ret)
{
    cJSON *read = NULL, *made = NULL;
    struct err err;

    err_init(&err, c->arena);
    if (json_parse(c->arena, value, &read, &err)) {
        err_clear(&err);
        return translate_kind_refuse(c, "is not JSON");
    }
    if (translate_kind_part(c, note->rows, read, &made))
        return -1;
    if (!made || json_is_array(made) != (note->rows[0].path[0] == '['))
        return translate_kind_refuse(c, "is not what the controller reads");
    *ret = json_text(c->arena, made);
    return 0;
}

static int value_down(const struct kind_call *c, const struct note *note, struct str value,
                      struct str *ret)
{
    switch (note->form) {
    case FORM_NAME:
        return name_down(c, note->kind, value, ret);
    case FORM_NAMES:
    case FORM_HOSTS:
        return list_down(c, note, value, ret);
    case FORM_CLASS:
        *ret = value;
        return translate_kind_ingress_class(c, value);
    case FORM_ALONE:
        *ret = value;
        return 0;
    case FORM_JSON:
    case FORM_OF:
        break;
    }
    return json_down(c, note, value, ret);
}

/* The end of the key is the name of a backend of the Ingress, and is translated as that is. */
static int key_down(const struct kind_call *c, const struct note *note, struct str key,
                    struct str *ret)
{
    struct str start = str_c(note->key), host;
    size_t domain = str_find(key, '/') + 1, most = 63;

    if (note->form != FORM_OF) {
        *ret = key;
        return 0;
    }
    if (name_down(c, note->kind, str_from(key, start.n), &host))
        return -1;
    *ret = arena_printf(c->arena, "%s%.*s", note->key, STR_F(host));
    if (ret->n - domain > most)
        return translate_kind_refuse(c,
                                     "the name of the backend is too long to be one on the host "
                                     "in this key: at most %zu characters go",
                                     most - (start.n - domain) - HASH_CHARS - 1);
    if (!translate_annotation_listed(c->tenant, *ret))
        return translate_kind_refuse(c, "its key on the host is not one of policy.annotations: "
                                        "list the prefix " ALB);
    return 0;
}

/* ---- the hook ---- */

/* Traefik reads the names in its keys without regard to case. A key that is renamed gets the row's
 * own start, so that is found as its controller reads it: exactly so. */
static bool is_of(const struct note *note, struct str key)
{
    struct str row = str_c(note->key);
    char end = row.p[row.n - 1];

    if (note->form == FORM_OF)
        return str_has_prefix(key, row);
    return str_eq_nocase(end == '.' || end == '-' || end == '/' ? str_sub(key, 0, row.n) : key,
                         row);
}

static const struct note *note_of(struct str key)
{
    for (size_t i = 0; i < COUNT(NOTES); i++)
        if (is_of(&NOTES[i], key))
            return &NOTES[i];
    return str_has_suffix(key, STR("-snippet")) || str_has_suffix(key, STR("-snippets")) ? &SNIPPET
                                                                                         : NULL;
}

static bool is_listed_itself(const struct translate_tenant *t, struct str key)
{
    for (size_t i = 0; i < t->config->annotations_allow.n; i++)
        if (str_eq(t->config->annotations_allow.items[i], key))
            return true;
    return false;
}

static bool are_listed_hosts(const struct translate_tenant *t, struct str rest)
{
    bool listed = true;

    do
        listed &= is_listed_host(t, str_trim(str_cut(&rest, ',')));
    while (rest.p);
    return listed;
}

const char *translate_kind_note_of_service(const struct translate_tenant *t, struct str key,
                                           struct str value)
{
    const struct note *note = note_of(key);

    if (!note)
        return NULL;
    switch (note->form) {
    case FORM_ALONE:
        return is_listed_itself(t, key)
                   ? NULL
                   : "reaches further than its Service, and policy.annotations lists its prefix "
                     "only";
    case FORM_HOSTS:
        return are_listed_hosts(t, value)
                   ? NULL
                   : "names a host that is not one of sync.toHost.ingresses.hosts, "
                     "sync.toHost.gateways.hosts or sync.fromHost.gateways.hosts";
    case FORM_CLASS:
        return "chooses the class of an Ingress: set it there";
    default:
        return "names objects, which are not translated in a Service: set it in its Ingress or "
               "route";
    }
}

/* external-dns reads its keys from Pods and Services as well (source "pod"). */
const char *translate_note_of_dns(const struct translate_tenant *t, struct str key,
                                  struct str value)
{
    if (!str_has_prefix(key, STR(DNS)) && !str_has_prefix(key, STR(DNS_OLD)))
        return NULL;
    return translate_kind_note_of_service(t, key, value);
}

int translate_kind_notes(const struct kind_call *c, const cJSON *annotations, cJSON **ret)
{
    *ret = json_new_object(c->arena);
    json_each(member, annotations)
    {
        struct str key = json_key(member), value = json_str(member);
        const struct note *note = note_of(key);
        struct kind_call one = *c;

        if (!json_is_string(member) || !translate_annotation_listed(c->tenant, key))
            continue;
        one.path = arena_printf(c->arena, "metadata.annotations[%.*s]", STR_F(key)).p;
        if (note && note->form == FORM_ALONE && !is_listed_itself(c->tenant, key))
            return translate_kind_refuse(&one, "reaches further than its object, and "
                                               "policy.annotations lists its prefix only");
        if (note && (key_down(&one, note, key, &key) || value_down(&one, note, value, &value)))
            return -1;
        object_add(c->arena, *ret, key, json_new_string(c->arena, value));
    }
    return 0;
}
