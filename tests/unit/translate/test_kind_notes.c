/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations that name objects and hosts: only those of the tenant's namespace, under their host
 * names, and only where the admin lists the key; hosts of the admin's lists. */

#include "test.h"

#include <sublet/translate_kind.h>

#define INGRESSES                                                                                  \
    "sync: {toHost: {ingresses: {enabled: true, classes: [nginx], hosts: ['*.team.example']}}}\n"
#define LISTED                                                                                     \
    "policy: {annotations: {allow: [nginx.ingress.kubernetes.io/, nginx.org/, "                    \
    "alb.ingress.kubernetes.io/, haproxy.org/server-ca]}}\n" INGRESSES
#define PREFIXES                                                                                   \
    "policy: {annotations: {allow: [nginx.ingress.kubernetes.io/, nginx.org/, "                    \
    "traefik.ingress.kubernetes.io/, haproxy-ingress.github.io/, ingress.kubernetes.io/, "         \
    "haproxy.org/, konghq.com/, nginx.org/policies]}}\n" INGRESSES
/* All of it listed by prefix: of Ingresses, of the Gateway API and of a custom resource. */
#define EVERYWHERE                                                                                 \
    "policy: {annotations: {allow: [nginx.org/, konghq.com/, cert-manager.io/, "                   \
    "acme.cert-manager.io/, external-dns.kubernetes.io/, external-dns.alpha.kubernetes.io/, "      \
    "gateway.istio.io/, networking.istio.io/, sidecar.istio.io/, proxy.istio.io/, "                \
    "inject.istio.io/, networking.gke.io/, application-networking.k8s.aws/, haproxy.org/, note, "  \
    "konghq.com/plugins]}}\n"                                                                      \
    "sync: {toHost: {ingresses: {enabled: true, classes: [nginx], hosts: ['*.team.example']}, "    \
    "gateways: {enabled: true, wildcards: false, classes: [shared], hosts: ['*.gate.example']}, "  \
    "httpRoutes: {enabled: true}, grpcRoutes: {enabled: true}, tlsRoutes: {enabled: true}, "       \
    "backendTLSPolicies: {enabled: true}, customResources: {things.team.example: {enabled: "       \
    "true}}}, fromHost: {gateways: {enabled: true, hosts: [shown.example], mappings: {byName: "    \
    "{infra/edge: shared/public}}}}}\n"
#define NGINX "nginx.ingress.kubernetes.io/"
#define ALB   "alb.ingress.kubernetes.io/"

static int setup(void **state)
{
    *state = fixture_new(LISTED);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static cJSON *ingress(struct fixture *f, const char *key, const char *value)
{
    cJSON *ret = doc(f, "{metadata: {name: x, namespace: ml, uid: u1}, spec: {}}");

    json_set_str(f->a, json_ensure_path(f->a, ret, "metadata.annotations"), key, str_c(value));
    return ret;
}

static int down(struct fixture *f, const char *key, const char *value, cJSON **ret)
{
    return translate_kind(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES),
                          ingress(f, key, value), ret, &f->err);
}

/* The value on the host under a key. */
static const char *note(struct fixture *f, const char *key, const char *value, const char *host_key)
{
    cJSON *ret = NULL;

    assert_ok(down(f, key, value, &ret));
    return json_str(json_get(json_path(ret, "metadata.annotations"), host_key)).p;
}

static const char *name(struct fixture *f, const char *virtual_)
{
    char *ret = arena_alloc(f->a, 64);

    translate_name(&f->tenant, STR("ml"), str_c(virtual_), ret);
    return ret;
}

static int check_service_value(struct fixture *f, const char *key, const char *value)
{
    cJSON *service = doc(f, "{metadata: {name: x, namespace: ml, uid: u1}, spec: {}}");

    json_set_str(f->a, json_ensure_path(f->a, service, "metadata.annotations"), key, str_c(value));
    return translate_check_service(f->a, &f->tenant, service, &f->err);
}

static int check_service(struct fixture *f, const char *key)
{
    return check_service_value(f, key, "{}");
}

/* The AWS controller reads them there, too, and translate_service() leaves them as they are. */
static void on_services_they_are_refused(void **state)
{
    static const char *const keys[] = {ALB "auth-idp-oidc", ALB "actions.web",
                                       ALB "conditions.web"};
    struct fixture *f = *state, *unlisted;

    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_error(check_service(f, keys[i]),
                     arena_printf(f->a,
                                  "services \"x\" is forbidden: metadata.annotations[%s]: names "
                                  "objects, which are not translated in a Service: set it in its "
                                  "Ingress or route",
                                  keys[i])
                         .p);
        err_clear(&f->err);
    }
    assert_ok(check_service(f, ALB "target-type"));
    assert_ok(check_service(f, "service.beta.kubernetes.io/aws-load-balancer-type"));
    unlisted = fixture_new(INGRESSES);
    assert_ok(check_service(unlisted, ALB "auth-idp-oidc")); /* it stays with the tenant */
    fixture_free(unlisted);
}

/* Those of a backend are read from its Service, and a prefix does not list them there either. */
static void on_services_a_prefix_is_not_enough(void **state)
{
    static const char *const keys[] = {
        "haproxy.org/backend-config-snippet", "haproxy.org/cr-backend", "haproxy.org/route-acl",
        "traefik.ingress.kubernetes.io/service.serverstransport", "konghq.com/plugins"};
    struct fixture *f = *state;

    use_config(f, PREFIXES);
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_error(check_service(f, keys[i]),
                     arena_printf(f->a,
                                  "services \"x\" is forbidden: metadata.annotations[%s]: reaches "
                                  "further than its Service, and policy.annotations lists its "
                                  "prefix only",
                                  keys[i])
                         .p);
        err_clear(&f->err);
    }
    assert_error(check_service(f, "haproxy.org/server-ca"),
                 "services \"x\" is forbidden: metadata.annotations[haproxy.org/server-ca]: names "
                 "objects, which are not translated in a Service: set it in its Ingress or route");
    err_clear(&f->err);
    assert_ok(check_service(f, "nginx.org/policies"));
    assert_ok(check_service(f, "haproxy.org/check"));
}

/* Their DNS records as well: whoever lists a Service's names has them. */
static void on_services_hosts_are_judged(void **state)
{
    static const char *const keys[] = {
        "external-dns.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/hostname",
        "external-dns.alpha.kubernetes.io/internal-hostname", "konghq.com/host-aliases"};
    static const char *const refused[] = {"bank.example",    "a.team.example,bank.example",
                                          "a.team.example,", "",
                                          "*.team.example",  "team.example"};
    struct fixture *f = *state;

    use_config(f, EVERYWHERE);
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (size_t k = 0; k < COUNT(refused); k++) {
            assert_error(check_service_value(f, keys[i], refused[k]),
                         arena_printf(f->a,
                                      "services \"x\" is forbidden: metadata.annotations[%s]: "
                                      "names a host that is not one of "
                                      "sync.toHost.ingresses.hosts, sync.toHost.gateways.hosts or "
                                      "sync.fromHost.gateways.hosts",
                                      keys[i])
                             .p);
            err_clear(&f->err);
        }
        assert_ok(check_service_value(f, keys[i], "a.team.example, b.gate.example,shown.example"));
    }
}

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct fixture *f = ctx;

    (void)optional;
    f->warnings = arena_printf(f->a, "%.*s%s%s:%.*s", STR_F(f->warnings), f->warnings.n ? " " : "",
                               kind == REF_SECRET       ? "secret"
                               : kind == REF_CONFIG_MAP ? "map"
                                                        : "other",
                               STR_F(name));
}

static struct str refs(struct fixture *f, const char *key, const char *value)
{
    f->warnings = STR("");
    translate_kind_refs(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES),
                        ingress(f, key, value), on_ref, f);
    return f->warnings;
}

static void names(void **state)
{
    static const struct {
        const char *key, *needs;
    } keys[] = {
        {NGINX "auth-secret", "secret:s"},           {NGINX "auth-tls-secret", "secret:s"},
        {NGINX "proxy-ssl-secret", "secret:s"},      {NGINX "auth-proxy-set-headers", "map:s"},
        {NGINX "custom-headers", "map:s"},           {NGINX "default-backend", ""},
        {"nginx.org/basic-auth-secret", "secret:s"}, {"haproxy.org/server-ca", "secret:s"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_str(str_c(note(f, keys[i].key, "s", keys[i].key)), name(f, "s"));
        assert_str(str_c(note(f, keys[i].key, "ml/s", keys[i].key)),
                   arena_printf(f->a, "team-research/%s", name(f, "s")).p);
        assert_str(refs(f, keys[i].key, "ml/s"), keys[i].needs);
    }
    assert_str(str_c(note(f, "nginx.org/ssl-services", "a, b", "nginx.org/ssl-services")),
               arena_printf(f->a, "%s,%s", name(f, "a"), name(f, "b")).p);
    assert_str(
        str_c(note(f, NGINX "server-alias", "a.team.example,b.team.example", NGINX "server-alias")),
        "a.team.example,b.team.example");
    /* what names nothing goes as it is */
    assert_str(str_c(note(f, NGINX "proxy-body-size", "8m", NGINX "proxy-body-size")), "8m");
}

static void unlisted(void **state)
{
    struct fixture *f = *state;

    assert_null(note(f, "haproxy.org/server-crt", "other/s", "haproxy.org/server-crt"));
    assert_str(refs(f, "haproxy.org/server-crt", "s"), "");
    use_config(f, INGRESSES);
    assert_null(note(f, NGINX "auth-secret", "kube-system/s", NGINX "auth-secret"));
    assert_null(note(f, NGINX "auth-secret", "s", NGINX "auth-secret"));
    assert_str(refs(f, NGINX "auth-secret", "s"), "");
}

static void assert_refused(struct fixture *f, const char *key, const char *value, const char *why)
{
    cJSON *ret = NULL;

    assert_int_equal(down(f, key, value, &ret), -1);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    if (!str_contains(f->err.message, arena_printf(f->a, "metadata.annotations[%s]", key)) ||
        !str_contains(f->err.message, str_c(why)))
        fail_msg("%s: %.200s: %.*s", key, value, STR_F(f->err.message));
    err_clear(&f->err);
    assert_str(refs(f, key, value), "");
}

/* A prefix does not list what reaches further than the Ingress. */
static void keys_that_must_be_listed_themselves(void **state)
{
    static const char *const keys[] = {NGINX "server-snippet",
                                       NGINX "configuration-snippet",
                                       NGINX "auth-url",
                                       NGINX "from-to-www-redirect",
                                       NGINX "mirror-target",
                                       "nginx.org/server-snippets",
                                       "traefik.ingress.kubernetes.io/router.pathmatcher",
                                       "haproxy-ingress.github.io/server-alias-regex",
                                       "haproxy-ingress.github.io/redirect-from-regex",
                                       "haproxy-ingress.github.io/auth-url",
                                       "haproxy-ingress.github.io/tcp-service-port",
                                       "ingress.kubernetes.io/server-alias-regex",
                                       "haproxy.org/route-acl"};
    struct fixture *f = *state;

    use_config(f, PREFIXES);
    for (size_t i = 0; i < COUNT(keys); i++)
        assert_refused(f, keys[i], "x", "lists its prefix only");
    assert_refused(f, "konghq.com/host-aliases", "a.team.example,bank.example", "ingresses.hosts");
    assert_refused(f, "haproxy-ingress.github.io/redirect-from", "bank.example", "ingresses.hosts");
    assert_str(str_c(note(f, "konghq.com/host-aliases", "a.team.example, b.team.example",
                          "konghq.com/host-aliases")),
               "a.team.example,b.team.example");
    assert_str(str_c(note(f, "nginx.org/policies", "p", "nginx.org/policies")), "p");
    assert_str(str_c(note(f, NGINX "proxy-body-size", "8m", NGINX "proxy-body-size")), "8m");
}

/* Names of certificates and of DNS, classes, namespaces, addresses: of any controller. */
static void keys_of_other_controllers(void **state)
{
    static const char *const keys[] = {
        "nginx.org/listen-ports",
        "nginx.org/listen-ports-ssl",
        "appprotect.f5.com/app-protect-policy",
        "appprotect.f5.com/app-protect-security-log-destination",
        "appprotectdos.f5.com/app-protect-dos-resource",
        "traefik.ingress.kubernetes.io/router.tls.domains.0.main",
        "traefik.ingress.kubernetes.io/router.TLS.Domains.0.sans",
        "projectcontour.io/tls-cert-namespace",
        "cert-manager.io/ip-sans",
        "cert-manager.io/uri-sans",
        "cert-manager.io/email-sans",
        "cert-manager.io/secret-template",
        "metallb.io/loadBalancerIPs",
        "metallb.io/allow-shared-ip",
        "metallb.universe.tf/loadBalancerIPs",
        "metallb.universe.tf/allow-shared-ip",
        "kube-vip.io/loadbalancerIPs",
        "lbipam.cilium.io/ips",
        "lbipam.cilium.io/sharing-key",
        "lbipam.cilium.io/sharing-cross-namespace",
        "io.cilium/lb-ipam-ips",
        "io.cilium/lb-ipam-sharing-key",
        "io.cilium/lb-ipam-sharing-cross-namespace",
        "service.beta.kubernetes.io/azure-additional-public-ips",
        "service.beta.kubernetes.io/azure-load-balancer-ipv4",
        "service.beta.kubernetes.io/azure-load-balancer-ipv6",
        "service.beta.kubernetes.io/azure-pip-name",
        "service.beta.kubernetes.io/azure-pip-name-ipv6",
        "service.beta.kubernetes.io/azure-pip-prefix-id",
        "service.beta.kubernetes.io/aws-load-balancer-eip-allocations",
        "service.beta.kubernetes.io/aws-load-balancer-private-ipv4-addresses",
        "service.beta.kubernetes.io/aws-load-balancer-ipv6-addresses",
        "service.beta.kubernetes.io/aws-load-balancer-ssl-cert",
        "service.beta.kubernetes.io/aws-load-balancer-security-groups",
        "service.beta.kubernetes.io/aws-load-balancer-extra-security-groups",
        "service.beta.kubernetes.io/aws-load-balancer-subnets",
        "service.beta.kubernetes.io/aws-load-balancer-attributes",
        "service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-name",
        ALB "certificate-arn",
        ALB "security-groups",
        ALB "manage-backend-security-group-rules",
        ALB "subnets",
        ALB "load-balancer-name",
        ALB "load-balancer-attributes",
        ALB "tags",
        ALB "wafv2-acl-arn",
        ALB "web-acl-id",
        ALB "auth-idp-cognito",
        ALB "mutual-authentication",
        ALB "frontend-nlb-subnets",
        "networking.gke.io/load-balancer-ip-addresses",
        "kubernetes.io/ingress.global-static-ip-name",
        "kubernetes.io/ingress.regional-static-ip-name",
    };
    static const char *const hosts[] = {"appgw.ingress.kubernetes.io/hostname-extension",
                                        "cert-manager.io/common-name", "cert-manager.io/alt-names"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(keys); i++) {
        int prefix = (int)(strchr(keys[i], '/') - keys[i]) + 1;

        use_config(f, arena_printf(f->a, "policy: {annotations: {allow: [%.*s]}}\n" INGRESSES,
                                   prefix, keys[i])
                          .p);
        assert_refused(f, keys[i], "x", "lists its prefix only");
        assert_int_equal(check_service(f, keys[i]), -1);
        err_clear(&f->err);
        use_config(
            f, arena_printf(f->a, "policy: {annotations: {allow: [%s]}}\n" INGRESSES, keys[i]).p);
        assert_str(str_c(note(f, keys[i], "x", keys[i])), "x");
        assert_ok(check_service(f, keys[i]));
    }
    for (size_t i = 0; i < COUNT(hosts); i++) {
        use_config(
            f, arena_printf(f->a, "policy: {annotations: {allow: [%s]}}\n" INGRESSES, hosts[i]).p);
        assert_refused(f, hosts[i], "a.team.example,www.b*.com", "ingresses.hosts");
        assert_refused(f, hosts[i], "bank.example", "ingresses.hosts");
        assert_str(str_c(note(f, hosts[i], "a.team.example", hosts[i])), "a.team.example");
        assert_int_equal(check_service(f, hosts[i]), -1);
        err_clear(&f->err);
    }
}

/* Their controllers prefer it to ingressClassName. */
static void a_class_is_one_of_the_list(void **state)
{
    static const char *const keys[] = {"haproxy.org/ingress.class",
                                       "projectcontour.io/ingress.class",
                                       "contour.heptio.com/ingress.class"};
    static const char *const values[] = {"internal", "", "nginx,internal", "NGINX"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(keys); i++) {
        cJSON *v = doc(f, "{metadata: {name: x, namespace: ml, uid: u1}, spec: {ingressClassName: "
                          "nginx}}"),
              *notes = json_ensure_path(f->a, v, "metadata.annotations"), *ret = NULL;

        use_config(
            f, arena_printf(f->a, "policy: {annotations: {allow: [%s]}}\n" INGRESSES, keys[i]).p);
        for (size_t k = 0; k < COUNT(values); k++) {
            json_set_str(f->a, notes, keys[i], str_c(values[k]));
            assert_int_equal(translate_kind(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES),
                                            v, &ret, &f->err),
                             -1);
            assert_true(str_contains(f->err.message, STR("sync.toHost.ingresses.classes")));
            err_clear(&f->err);
        }
        json_set_str(f->a, notes, keys[i], STR("nginx"));
        assert_ok(translate_kind(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES), v, &ret,
                                 &f->err));
        assert_str(json_str(json_get(json_path(ret, "metadata.annotations"), keys[i])), "nginx");
    }
}

/* Traefik reads the names in its keys without regard to case. */
static void the_case_of_a_key_changes_nothing(void **state)
{
    static const char *const keys[] = {"traefik.ingress.kubernetes.io/router.Middlewares",
                                       "traefik.ingress.kubernetes.io/Router.pathMatcher",
                                       "traefik.ingress.kubernetes.io/ROUTER.TLS.OPTIONS",
                                       "traefik.ingress.kubernetes.io/service.serversTransport"};
    struct fixture *f = *state;

    use_config(f, PREFIXES);
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_refused(f, keys[i], "kube-system-strip@kubernetescrd", "lists its prefix only");
        assert_int_equal(check_service(f, keys[i]), -1);
        assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
        err_clear(&f->err);
    }
    assert_str(str_c(note(f, NGINX "Auth-Secret", "s", NGINX "Auth-Secret")), name(f, "s"));
    assert_str(str_c(note(f, "konghq.com/plugins-x", "p", "konghq.com/plugins-x")), "p");
}

static void refused_names(void **state)
{
    static const char *const values[] = {
        "",      "/",  "ml/", "/s",       "..",          "../s",  "ml/../s", "ml/s/t",
        "a b",   "S",  "s,t", "s\n",      "file:///etc", "-s",    "ml/..",   "%2e%2e",
        "ml /s", " s", "s ",  "\xc3\xa4", "{}",          "ml//s", ".",       "ml/s#a",
    };
    static const char *const others[] = {"kube-system/s", "other/s", "team-research/s", "ML/s",
                                         "*/s"};
    static const char *const keys[] = {NGINX "auth-secret", NGINX "custom-headers",
                                       NGINX "default-backend"};
    struct fixture *f = *state;
    char *most = arena_alloc(f->a, 256 * 1024);

    memset(most, 'a', 256 * 1024 - 1);
    most[256 * 1024 - 1] = 0;
    for (size_t k = 0; k < COUNT(keys); k++) {
        for (size_t i = 0; i < COUNT(values); i++)
            assert_refused(f, keys[k], values[i], "");
        for (size_t i = 0; i < COUNT(others); i++)
            assert_refused(f, keys[k], others[i], "a namespace other than its own");
        assert_refused(f, keys[k], most, "is not the name of a");
    }
    assert_refused(f, "nginx.org/grpc-services", "a,", "is not the name of a Service");
    assert_refused(f, "nginx.org/grpc-services", "", "is not the name of a Service");
    assert_refused(f, "nginx.org/grpc-services", "a,other/b", "a namespace other than");
    assert_refused(f, NGINX "server-alias", "a.team.example,bank.example", "ingresses.hosts");
    assert_refused(f, NGINX "server-alias", "~^.*$", "ingresses.hosts");
    assert_refused(f, NGINX "server-alias", "", "ingresses.hosts");
    assert_refused(f, NGINX "server-alias", "~^|x.team.example", "ingresses.hosts");
    assert_refused(f, NGINX "server-alias", "a b;} x.team.example", "ingresses.hosts");
}

static void actions(void **state)
{
    struct fixture *f = *state;
    const char *key = arena_printf(f->a, ALB "actions.%s", name(f, "split")).p;
    const char *conditions = arena_printf(f->a, ALB "conditions.%s", name(f, "split")).p;

    assert_json(
        doc(f, note(f, ALB "actions.split",
                    "{\"type\":\"forward\",\"Type\":\"x\",\"forwardConfig\":{\"targetGroups\":["
                    "{\"serviceName\":\"a\",\"servicePort\":80,\"weight\":20},"
                    "{\"ServiceName\":\"kube-dns\",\"serviceName\":\"../b\",\"servicePort\":"
                    "\"http\"}],\"targetGroupStickinessConfig\":{\"enabled\":true}}}",
                    key)),
        arena_printf(f->a,
                     "{type: forward, forwardConfig: {targetGroups: [{serviceName: %s, "
                     "servicePort: 80, weight: 20}, {serviceName: %s, servicePort: http}], "
                     "targetGroupStickinessConfig: {enabled: true}}}",
                     name(f, "a"), name(f, "../b"))
            .p);
    assert_null(note(f, ALB "actions.split", "{\"type\":\"fixed-response\"}", ALB "actions.split"));
    assert_json(doc(f, note(f, ALB "conditions.split",
                            "[{\"field\":\"host-header\",\"hostHeaderConfig\":{\"values\":"
                            "[\"a.team.example\"]}},{\"field\":\"path-pattern\","
                            "\"pathPatternConfig\":{\"values\":[\"/a\"]}}]",
                            conditions)),
                "[{field: host-header, hostHeaderConfig: {values: [a.team.example]}}, {field: "
                "path-pattern, pathPatternConfig: {values: [/a]}}]");
    assert_json(
        doc(f, note(f, ALB "auth-idp-oidc",
                    "{\"issuer\":\"https://id.example\",\"secretName\":\"s\","
                    "\"SecretName\":\"victim\"}",
                    ALB "auth-idp-oidc")),
        arena_printf(f->a, "{issuer: 'https://id.example', secretName: %s}", name(f, "s")).p);
    assert_str(refs(f, ALB "auth-idp-oidc", "{\"secretName\":\"s\"}"), "secret:s");
}

static void refused_actions(void **state)
{
    static const char *const bad[] = {"",      "x", "[]",  "1",          "null",
                                      "\"s\"", "{", "{}}", "{'type': 1}"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_refused(f, ALB "actions.a", bad[i], "is not");
    assert_refused(f, ALB "actions.", "{}", "is not the name of a Service");
    assert_refused(f, ALB "actions..", "{}", "is not the name of a Service");
    assert_refused(f, ALB "actions.A", "{}", "is not the name of a Service");
    assert_refused(f, ALB "actions.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "{}",
                   "at most 38 characters");
    assert_refused(f, ALB "conditions.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "[]",
                   "at most 35 characters");
    assert_refused(f, ALB "conditions.a", "{}", "is not what the controller reads");
    assert_refused(
        f, ALB "conditions.a",
        "[{\"field\":\"host-header\",\"hostHeaderConfig\":{\"values\":[\"bank.example\"]}}]",
        "ingresses.hosts");
    assert_refused(f, ALB "conditions.a", "[{\"hostHeaderConfig\":{\"regexValues\":[\".*\"]}}]",
                   "no listed host");
    assert_refused(f, ALB "actions.a", "{\"targetGroupARN\":\"arn:aws:other\"}", "a target group");
    assert_refused(f, ALB "actions.a",
                   "{\"forwardConfig\":{\"targetGroups\":[{\"targetGroupARN\":\"arn\"}]}}",
                   "a target group");
    use_config(f, "policy: {annotations: {allow: [" ALB "actions.a]}}\n" INGRESSES);
    assert_refused(f, ALB "actions.a", "{}", "list the prefix");
}

/* ---- of pods, from which external-dns makes records as well ---- */

static struct str on_pod(struct fixture *f, const char *key, const char *value)
{
    cJSON *vpod = doc(f, "{metadata: {name: x, namespace: ml, uid: u1}, spec: {}}");

    json_set_str(f->a, json_ensure_path(f->a, vpod, "metadata.annotations"), key, str_c(value));
    return json_str(json_get(
        json_get(translate_metadata(f->a, &f->tenant, vpod, STR("h")), "annotations"), key));
}

static void on_warning(void *ctx, struct str text)
{
    struct fixture *f = ctx;

    f->warnings = arena_printf(f->a, "%.*s%.*s\n", STR_F(f->warnings), STR_F(text));
}

/* The tenant gets a Warning, but for what is not listed at all. */
static void hosts_of_pods_are_a_warning(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice = {0};
    const cJSON *vpod = doc(f, "{metadata: {name: x, namespace: ml, annotations: "
                               "{external-dns.alpha.kubernetes.io/hostname: bank.example, "
                               "external-dns.kubernetes.io/hostname: a.team.example}}, spec: "
                               "{containers: [{name: c, image: i}]}}");

    use_config(f, EVERYWHERE);
    f->warnings = STR("");
    pool_warnings(f->a, &f->config, &choice, vpod, on_warning, f);
    assert_str(f->warnings,
               "metadata.annotations[external-dns.alpha.kubernetes.io/hostname] has no effect: it "
               "names a host that is not one of sync.toHost.ingresses.hosts, "
               "sync.toHost.gateways.hosts or sync.fromHost.gateways.hosts\n");
    use_config(f, INGRESSES);
    f->warnings = STR("");
    pool_warnings(f->a, &f->config, &choice, vpod, on_warning, f);
    assert_str(f->warnings, "");
}

static void hosts_of_pods_are_judged(void **state)
{
    static const char *const keys[] = {"external-dns.alpha.kubernetes.io/hostname",
                                       "external-dns.alpha.kubernetes.io/internal-hostname",
                                       "external-dns.kubernetes.io/hostname",
                                       "external-dns.kubernetes.io/internal-hostname"};
    struct fixture *f = *state;

    use_config(f, EVERYWHERE);
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_str(on_pod(f, keys[i], "a.team.example,b.gate.example"),
                   "a.team.example,b.gate.example");
        assert_str(on_pod(f, keys[i], "bank.example"), "");
        assert_str(on_pod(f, keys[i], "a.team.example,bank.example"), "");
        assert_str(on_pod(f, keys[i], ""), "");
    }
    assert_str(on_pod(f, "external-dns.alpha.kubernetes.io/ttl", "60"), "60");
    assert_str(on_pod(f, "sidecar.istio.io/inject", "true"), "true");
}

/* ---- of the Gateway API and of custom resources ---- */

static const struct kind_rules *other_rules(struct fixture *f, size_t i)
{
    static const enum sync_down kinds[] = {DOWN_GATEWAYS, DOWN_HTTP_ROUTES, DOWN_GRPC_ROUTES,
                                           DOWN_TLS_ROUTES, DOWN_BACKEND_TLS};

    if (i < COUNT(kinds))
        return translate_kind_rules(kinds[i]);
    return translate_custom_rules(f->a, &f->tenant.config->to_host->custom[0]);
}

enum { OTHERS = 6 };

static int other_down(struct fixture *f, size_t i, const char *key, const char *value, cJSON **ret)
{
    return translate_kind(f->a, &f->tenant, other_rules(f, i), ingress(f, key, value), ret,
                          &f->err);
}

static const char *other_note(struct fixture *f, size_t i, const char *key, const char *value)
{
    cJSON *ret = NULL;

    assert_ok(other_down(f, i, key, value, &ret));
    return json_str(json_get(json_path(ret, "metadata.annotations"), key)).p;
}

static struct str other_refs(struct fixture *f, size_t i, const char *key, const char *value)
{
    f->warnings = STR("");
    translate_kind_refs(f->a, &f->tenant, other_rules(f, i), ingress(f, key, value), on_ref, f);
    return f->warnings;
}

static void other_refused(struct fixture *f, size_t i, const char *key, const char *value,
                          const char *why)
{
    cJSON *ret = NULL;

    if (!other_down(f, i, key, value, &ret))
        fail_msg("%zu: %s: %s is not refused", i, key, value);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    if (!str_contains(f->err.message, arena_printf(f->a, "metadata.annotations[%s]", key)) ||
        !str_contains(f->err.message, str_c(why)))
        fail_msg("%zu: %s: %s: %.*s", i, key, value, STR_F(f->err.message));
    err_clear(&f->err);
    assert_str(other_refs(f, i, key, value), "");
}

static void names_of_other_kinds(void **state)
{
    struct fixture *f = *state;

    use_config(f, EVERYWHERE);
    for (size_t i = 0; i < OTHERS; i++) {
        assert_str(str_c(other_note(f, i, "nginx.org/basic-auth-secret", "ml/s")),
                   arena_printf(f->a, "team-research/%s", name(f, "s")).p);
        assert_str(other_refs(f, i, "nginx.org/basic-auth-secret", "ml/s"), "secret:s");
        assert_str(str_c(other_note(f, i, "konghq.com/client-cert", "s")), name(f, "s"));
        assert_str(str_c(other_note(f, i, "konghq.com/ca-certificates-secrets", "a,b")),
                   arena_printf(f->a, "%s,%s", name(f, "a"), name(f, "b")).p);
        assert_str(other_refs(f, i, "konghq.com/ca-certificates-configmaps", "a, b"),
                   "map:a map:b");
        other_refused(f, i, "nginx.org/basic-auth-secret", "kube-system/s", "other than its own");
        other_refused(f, i, "nginx.org/basic-auth-secret", "../s", "other than its own");
        /* what names nothing goes as it is, what is listed itself too, what is not stays */
        assert_str(str_c(other_note(f, i, "note", "kube-system/s")), "kube-system/s");
        assert_str(str_c(other_note(f, i, "konghq.com/strip-path", "true")), "true");
        assert_str(str_c(other_note(f, i, "konghq.com/plugins", "other:p")), "other:p");
        assert_null(other_note(f, i, NGINX "auth-secret", "kube-system/s"));
    }
}

static void hosts_of_other_kinds(void **state)
{
    static const char *const keys[] = {
        "konghq.com/host-aliases",
        "konghq.com/snis",
        "cert-manager.io/common-name",
        "cert-manager.io/alt-names",
        "external-dns.kubernetes.io/hostname",
        "external-dns.alpha.kubernetes.io/hostname",
    };
    static const char *const refused[] = {"bank.example",   "a.team.example,bank.example",
                                          "*.team.example", "*.gate.example",
                                          "*.example",      "",
                                          "~^.*$",          "a.b.team.example"};
    struct fixture *f = *state;
    cJSON *ret = NULL;

    use_config(f, EVERYWHERE);
    for (size_t i = 0; i < OTHERS; i++)
        for (size_t k = 0; k < COUNT(keys); k++) {
            assert_str(str_c(other_note(f, i, keys[k], "a.team.example, b.gate.example")),
                       "a.team.example,b.gate.example");
            assert_str(str_c(other_note(f, i, keys[k], "shown.example")), "shown.example");
            for (size_t n = 0; n < COUNT(refused); n++)
                other_refused(f, i, keys[k], refused[n], "sync.toHost.gateways.hosts");
        }
    use_config(f, "policy: {annotations: {allow: [konghq.com/]}}\nsync: {toHost: {gateways: "
                  "{enabled: true, classes: [shared], hosts: ['*.gate.example']}}}\n");
    assert_str(str_c(other_note(f, 0, "konghq.com/snis", "*.gate.example")), "*.gate.example");
    /* an Ingress has those of Ingresses alone */
    use_config(f, EVERYWHERE);
    assert_int_equal(down(f, "cert-manager.io/common-name", "b.gate.example", &ret), -1);
    assert_true(str_contains(f->err.message, STR("sync.toHost.ingresses.hosts")));
    err_clear(&f->err);
    assert_ok(down(f, "cert-manager.io/common-name", "a.team.example", &ret));
}

static void keys_of_other_kinds_that_reach_further(void **state)
{
    static const char *const keys[] = {"konghq.com/override",
                                       "konghq.com/upstream-policy",
                                       "konghq.com/publish-service",
                                       "cert-manager.io/issuer",
                                       "cert-manager.io/issuer-kind",
                                       "cert-manager.io/cluster-issuer",
                                       "cert-manager.io/uri-sans",
                                       "cert-manager.io/subject-organizations",
                                       "acme.cert-manager.io/http01-ingress-class",
                                       "acme.cert-manager.io/http01-ingress-ingressclassname",
                                       "gateway.istio.io/name-override",
                                       "gateway.istio.io/service-account",
                                       "networking.istio.io/service-type",
                                       "proxy.istio.io/config",
                                       "sidecar.istio.io/userVolume",
                                       "inject.istio.io/templates",
                                       "networking.gke.io/certmap",
                                       "application-networking.k8s.aws/allow-takeover-from",
                                       "nginx.org/server-snippets",
                                       "haproxy.org/route-acl"};
    struct fixture *f = *state;

    use_config(f, EVERYWHERE);
    for (size_t i = 0; i < OTHERS; i++)
        for (size_t k = 0; k < COUNT(keys); k++)
            other_refused(f, i, keys[k], "x", "lists its prefix only");
    use_config(f, "policy: {annotations: {allow: [cert-manager.io/issuer-kind, "
                  "sidecar.istio.io/userVolume]}}\nsync: {toHost: {gateways: {enabled: true, "
                  "classes: [shared], hosts: [a.example]}}}\n");
    assert_str(str_c(other_note(f, 0, "cert-manager.io/issuer-kind", "Issuer")), "Issuer");
    assert_str(str_c(other_note(f, 0, "sidecar.istio.io/userVolume", "[]")), "[]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(on_services_they_are_refused),
        TEST(on_services_a_prefix_is_not_enough),
        TEST(on_services_hosts_are_judged),
        TEST(names),
        TEST(unlisted),
        TEST(keys_that_must_be_listed_themselves),
        TEST(keys_of_other_controllers),
        TEST(a_class_is_one_of_the_list),
        TEST(the_case_of_a_key_changes_nothing),
        TEST(refused_names),
        TEST(actions),
        TEST(refused_actions),
        TEST(hosts_of_pods_are_judged),
        TEST(hosts_of_pods_are_a_warning),
        TEST(names_of_other_kinds),
        TEST(hosts_of_other_kinds),
        TEST(keys_of_other_kinds_that_reach_further),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
