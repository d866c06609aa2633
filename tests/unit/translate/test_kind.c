/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that sync.toHost enables: what of them goes down, what never does, and what comes up. */

#include "test.h"

#include <sublet/translate_kind.h>

static const char CONFIG[] =
    "policy: {labels: {allow: [team.example/]}, annotations: {allow: [kubernetes.io/, note]}}\n"
    "sync:\n"
    "  toHost:\n"
    "    networkPolicies: {enabled: true, allowedCIDRs: [10.20.0.0/16, 'fd00:1::/32']}\n"
    "    ingresses: {enabled: true, classes: [nginx, web], hosts: ['*.team.example', "
    "fixed.example]}\n"
    "    podDisruptionBudgets: {enabled: true}\n"
    "    endpointSlices: {enabled: true, allowedCIDRs: [10.30.0.0/16]}\n"
    "    customResources:\n"
    "      certificates.cert-manager.io:\n"
    "        enabled: true\n"
    "        patches:\n"
    "        - {path: spec.secretName, reference: {kind: Secret}}\n"
    "        - {path: 'spec.targets[*].selector', selector: {}}\n"
    "        - {path: 'spec.targets[*].match', labels: {}}\n"
    "        - {path: 'spec.parts.*.claims[*]', reference: {kind: Other}}\n"
    "        - {path: spec.zone, value: {fixed: true}}\n"
    "        - {path: spec.hostNetwork, drop: true}\n";

#define CLUSTER    "sublet.dev/cluster: 11111111-2222-3333-4444-555555555555"
#define MINE       "{matchLabels: {" CLUSTER ", sublet.dev/namespace: ml}}"
#define EVERY      "{podSelector: {matchLabels: {" CLUSTER "}}}"
#define EVERYWHERE EVERY ", {ipBlock: {cidr: 10.20.0.0/16}}, {ipBlock: {cidr: 'fd00:1::/32'}}"

static int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static const struct kind_rules *custom_rules(struct fixture *f)
{
    return translate_custom_rules(f->a, &f->config.to_host->custom[0]);
}

static cJSON *object_of(struct fixture *f, const char *body)
{
    cJSON *ret = doc(f, body), *metadata = json_ensure_object(f->a, ret, "metadata");

    json_set_str(f->a, metadata, "name", STR("x"));
    json_set_str(f->a, metadata, "namespace", STR("ml"));
    json_set_str(f->a, metadata, "uid", STR("u1"));
    return ret;
}

static int down(struct fixture *f, const struct kind_rules *rules, const char *body, cJSON **ret)
{
    cJSON *again;
    int rc = translate_kind(f->a, &f->tenant, rules, object_of(f, body), ret, &f->err);

    if (rc)
        return rc;
    assert_ok(translate_kind(f->a, &f->tenant, rules, object_of(f, body), &again, &f->err));
    assert_str(json_text(f->a, again), json_text(f->a, *ret).p);
    assert_null(translate_kind_update(f->a, rules, *ret, again));
    return 0;
}

static cJSON *spec_of(struct fixture *f, enum sync_down kind, const char *spec)
{
    cJSON *ret = NULL;

    assert_ok(
        down(f, translate_kind_rules(kind), arena_printf(f->a, "{spec: {%s}}", spec).p, &ret));
    return json_get(ret, "spec");
}

static void assert_refused(struct fixture *f, enum sync_down kind, const char *spec,
                           const char *message)
{
    cJSON *ret = NULL;
    int rc = down(f, translate_kind_rules(kind), arena_printf(f->a, "{spec: {%s}}", spec).p, &ret);

    assert_ptr_equal(f->err.kind, rc ? &ERR_FORBIDDEN : NULL);
    assert_error(rc, message);
    assert_null(ret);
}

/* ---- NetworkPolicies ---- */

static void policies_reach_the_tenant_only(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"podSelector: {}, policyTypes: [Ingress]",
         "{podSelector: " MINE ", policyTypes: [Ingress]}"},
        {"policyTypes: [Egress]", "{podSelector: " MINE ", policyTypes: [Egress]}"},
        {"podSelector: {}, ingress: []", "{podSelector: " MINE ", ingress: []}"},
        /* upstream: from everywhere */
        {"podSelector: {}, ingress: [{}]",
         "{podSelector: " MINE ", ingress: [{from: [" EVERYWHERE "]}]}"},
        {"podSelector: {}, egress: [{to: []}]",
         "{podSelector: " MINE ", egress: [{to: [" EVERYWHERE "]}]}"},
        {"podSelector: {}, ingress: [{from: [{podSelector: {}}]}]",
         "{podSelector: " MINE ", ingress: [{from: [{podSelector: " MINE "}]}]}"},
        {"podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]",
         "{podSelector: " MINE ", ingress: [{from: [" EVERY "]}]}"},
        {"podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {tier: web}}}]}]",
         "{podSelector: " MINE ", ingress: [{from: [{podSelector: {matchLabels: {" CLUSTER
         "}, matchExpressions: [{key: sublet.dev/namespace, operator: In, values: [a, b]}]}}]}]}"},
        {"podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {tier: none}}}]}]",
         "{podSelector: " MINE ", ingress: [{from: [{podSelector: {matchLabels: {" CLUSTER
         "}, matchExpressions: [{key: sublet.dev/cluster, operator: DoesNotExist}]}}]}]}"},
        /* of no known kind: no pod outside the tenant */
        {"podSelector: {}, ingress: [{from: [{}, {nodeSelector: {}}]}]",
         "{podSelector: " MINE ", ingress: [{from: [{podSelector: " MINE "}, {podSelector: " MINE
         "}]}]}"},
        {"podSelector: {matchLabels: {team.example/a: b}}, egress: [{ports: [{port: 53, protocol: "
         "UDP, more: 1}, {port: http, endPort: 9}], to: [{ipBlock: {cidr: 10.20.1.0/24, except: "
         "[10.20.1.1/32]}}]}]",
         "{podSelector: {matchLabels: {" CLUSTER
         ", sublet.dev/namespace: ml, team.example/a: b}}, egress: [{ports: [{port: 53, protocol: "
         "UDP}, {port: http, endPort: 9}], to: [{ipBlock: {cidr: 10.20.1.0/24, except: "
         "[10.20.1.1/32]}}]}]}"},
    };
    struct fixture *f = *state;

    f->tenant.namespaces = translate_namespaces_of(
        f->a,
        doc(f, "[{metadata: {name: a, labels: {tier: web}}}, {metadata: {name: b, labels: {tier: "
               "web}}}, {metadata: {name: c, labels: {tier: db}}}]"));
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_json(spec_of(f, DOWN_NETWORK_POLICIES, cases[i].spec), cases[i].want);
}

#define POLICY "networkpolicies.networking.k8s.io \"x\" is forbidden: "

static void addresses_only_inside_the_list(void **state)
{
    static const char *const refused[] = {"0.0.0.0/0",
                                          "10.0.0.0/8",
                                          "10.21.0.0/16",
                                          "169.254.169.254/32",
                                          "::/0",
                                          "fd00::/16",
                                          "::ffff:169.254.169.254/128",
                                          "10.20.0.0/15"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(refused); i++)
        assert_refused(
            f, DOWN_NETWORK_POLICIES,
            arena_printf(f->a, "egress: [{}, {to: [{podSelector: {}}, {ipBlock: {cidr: '%s'}}]}]",
                         refused[i])
                .p,
            arena_printf(f->a,
                         POLICY "spec.egress: ipBlock.cidr: %s is not inside a range of "
                                "sync.toHost.networkPolicies.allowedCIDRs",
                         refused[i])
                .p);
    assert_refused(f, DOWN_NETWORK_POLICIES, "ingress: [{from: [{ipBlock: {}}]}]",
                   POLICY "spec.ingress: ipBlock.cidr: \"\" is not a range of addresses");
    assert_json(spec_of(f, DOWN_NETWORK_POLICIES,
                        "ingress: [{from: [{ipBlock: {cidr: '::ffff:10.20.3.0/120'}}]}]"),
                "{podSelector: " MINE
                ", ingress: [{from: [{ipBlock: {cidr: '::ffff:10.20.3.0/120'}}]}]}");
}

/* The admin's list became shorter: what it no longer has is left out, and nothing is opened by
 * it. */
static void stored_policies_are_narrowed(void **state)
{
    static const char none[] = "{podSelector: {matchLabels: {" CLUSTER "}, matchExpressions: "
                               "[{key: sublet.dev/cluster, operator: DoesNotExist}]}}";
    struct fixture *f = *state;
    struct err left_out;
    cJSON *v =
        object_of(f, "{spec: {podSelector: {}, policyTypes: [Egress], egress: ["
                     "{to: [{ipBlock: {cidr: 10.20.1.0/24}}, {ipBlock: {cidr: 10.9.0.0/16}}]}, "
                     "{to: [{ipBlock: {cidr: 10.9.0.0/16}}], ports: [{port: 53}]}, {}]}}");
    cJSON *ret = NULL;

    err_init(&left_out, f->a);
    assert_ok(translate_kind_narrowed(f->a, &f->tenant, translate_kind_rules(DOWN_NETWORK_POLICIES),
                                      v, &ret, &left_out, &f->err));
    assert_json(json_get(ret, "spec"),
                arena_printf(f->a,
                             "{podSelector: " MINE ", policyTypes: [Egress], egress: ["
                             "{to: [{ipBlock: {cidr: 10.20.1.0/24}}]}, "
                             "{ports: [{port: 53}], to: [%s]}, {to: [" EVERYWHERE "]}]}",
                             none)
                    .p);
    assert_string_equal(arena_cstr(f->a, left_out.message),
                        POLICY "spec.egress: ipBlock.cidr: 10.9.0.0/16 is not inside a range of "
                               "sync.toHost.networkPolicies.allowedCIDRs");
    assert_null(f->err.kind);
}

/* ---- Ingresses ---- */

#define INGRESS "ingresses.networking.k8s.io \"x\" is forbidden: "
#define HTTP(s) "http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: " s "}}}]}"
#define PATH(s) "rules: [{host: fixed.example, http: {paths: [{path: \"" s "\"}]}}]"

static void ingresses_go_down_by_list(void **state)
{
    struct fixture *f = *state;
    struct str svc, tls;
    char name[64];

    translate_name(&f->tenant, STR("ml"), STR("svc"), name);
    svc = arena_str(f->a, str_c(name));
    translate_name(&f->tenant, STR("ml"), STR("cert"), name);
    tls = arena_str(f->a, str_c(name));
    assert_json(
        spec_of(f, DOWN_INGRESSES,
                "ingressClassName: web, more: 1, rules: [{host: a.team.example, http: {paths: "
                "[{path: /x, pathType: Exact, odd: 1, backend: {service: {name: svc, port: {name: "
                "http}}}}]}}, {host: '*.team.example'}], tls: [{hosts: [fixed.example], "
                "secretName: cert}]"),
        arena_printf(f->a,
                     "{ingressClassName: web, rules: [{host: a.team.example, http: {paths: [{path: "
                     "/x, pathType: Exact, backend: {service: {name: %.*s, port: {name: "
                     "http}}}}]}}, {host: '*.team.example'}], tls: [{hosts: [fixed.example], "
                     "secretName: %.*s}]}",
                     STR_F(svc), STR_F(tls))
            .p);
    /* the first class of the list is that of an Ingress without one */
    assert_json(spec_of(f, DOWN_INGRESSES, "rules: [{host: fixed.example}]"),
                "{rules: [{host: fixed.example}], ingressClassName: nginx}");
}

static void ingresses_refused(void **state)
{
    static const char *const cases[][2] = {
        {"ingressClassName: other, rules: [{host: fixed.example}]",
         "spec.ingressClassName: class \"other\" is not one of sync.toHost.ingresses.classes"},
        {"rules: [{host: fixed.example}, {host: bank.example}]",
         "spec.rules[1].host: host \"bank.example\" is not one of sync.toHost.ingresses.hosts"},
        {"rules: [{host: a.b.team.example}]",
         "spec.rules[0].host: host \"a.b.team.example\" is not one of "
         "sync.toHost.ingresses.hosts"},
        {"rules: [{host: '*.fixed.example'}]",
         "spec.rules[0].host: host \"*.fixed.example\" is not one of sync.toHost.ingresses.hosts"},
        {"rules: [{" HTTP("s") "}]",
         "spec.rules[0]: a rule without a host would take the traffic of every host"},
        {"rules: [{host: '', " HTTP("s") "}]",
         "spec.rules[0]: a rule without a host would take the traffic of every host"},
        {"defaultBackend: {service: {name: s}}",
         "spec.defaultBackend: would take the traffic of every host"},
        {"rules: [{host: fixed.example, http: {paths: [{backend: {resource: {kind: Secret, name: "
         "s}}}]}}]",
         "spec.rules[0].http.paths[0].backend.resource: only Services go down as backends"},
        {"tls: [{secretName: s}]", "spec.tls[0]: TLS without hosts would be for every host"},
        {"tls: [{hosts: [], secretName: s}]",
         "spec.tls[0]: TLS without hosts would be for every host"},
        {"tls: [{hosts: [fixed.example]}, {hosts: [bank.example], secretName: s}]",
         "spec.tls[1].hosts[0]: host \"bank.example\" is not one of sync.toHost.ingresses.hosts"},
        {PATH("/a{}"), "spec.rules[0].http.paths[0].path: a path must not contain blanks, control "
                       "characters or any of {};\"'`\\$<>^|"},
        {PATH("/a\\nb"), "spec.rules[0].http.paths[0].path: a path must not contain blanks, "
                         "control characters or any of {};\"'`\\$<>^|"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(f, DOWN_INGRESSES, cases[i][0],
                       arena_printf(f->a, INGRESS "%s", cases[i][1]).p);
}

static void legacy_class(void **state)
{
    static const char note[] = "{metadata: {annotations: {kubernetes.io/ingress.class: other, "
                               "note: kept, nginx.ingress.kubernetes.io/server-snippet: x}}, spec: "
                               "{%srules: [{host: fixed.example}]}}";
    struct fixture *f = *state;
    cJSON *ret = NULL, *notes;

    assert_error(
        down(f, translate_kind_rules(DOWN_INGRESSES), arena_printf(f->a, note, "").p, &ret),
        INGRESS "spec: ingressClassName: the annotation kubernetes.io/ingress.class "
                "chooses no class here; set spec.ingressClassName");
    assert_ok(down(f, translate_kind_rules(DOWN_INGRESSES),
                   arena_printf(f->a, note, "ingressClassName: web, ").p, &ret));
    notes = json_path(ret, "metadata.annotations");
    assert_null(json_get(notes, "kubernetes.io/ingress.class"));
    assert_null(json_get(notes, "nginx.ingress.kubernetes.io/server-snippet"));
    assert_str(json_str(json_get(notes, "note")), "kept");
}

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct fixture *f = ctx;

    (void)optional;
    f->warnings = arena_printf(f->a, "%.*s%s%s:%.*s", STR_F(f->warnings), f->warnings.n ? " " : "",
                               kind == REF_SECRET ? "secret" : "other", STR_F(name));
}

static void certificates_are_referred_to(void **state)
{
    struct fixture *f = *state;

    f->warnings = STR("");
    translate_kind_refs(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES),
                        object_of(f, "{spec: {rules: [{host: fixed.example, " HTTP(
                                         "s") "}], tls: "
                                              "[{secretName: one, hosts: [fixed.example]}, "
                                              "{hosts: [fixed.example]}, {secretName: two, hosts: "
                                              "[fixed.example]}]}}"),
                        on_ref, f);
    assert_str(f->warnings, "secret:one secret:two");
    /* what may not go down needs nothing there */
    f->warnings = STR("");
    translate_kind_refs(f->a, &f->tenant, translate_kind_rules(DOWN_INGRESSES),
                        object_of(f, "{spec: {tls: [{secretName: one, hosts: [bank.example]}]}}"),
                        on_ref, f);
    assert_str(f->warnings, "");
}

static void balancer_comes_up(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_INGRESSES);
    cJSON *host = doc(f, "{metadata: {name: h}, status: {more: 1, loadBalancer: {ingress: [{ip: "
                         "192.0.2.1, hostname: lb.example, node: n1}]}}}");
    cJSON *v = object_of(f, "{spec: {}}"), *status;

    status = translate_kind_status_up(f->a, &f->tenant, rules, host, v);
    assert_json(status, "{loadBalancer: {ingress: [{ip: 192.0.2.1, hostname: lb.example}]}}");
    json_set(f->a, v, "status", status);
    assert_null(translate_kind_status_up(f->a, &f->tenant, rules, host, v));
    assert_null(translate_kind_status_up(f->a, &f->tenant, rules, doc(f, "{metadata: {}}"), v));
}

/* ---- budgets ---- */

#define BUDGET(spec, status) "{metadata: {generation: 3}, spec: {" spec "}, status: {" status "}}"
#define COUNTED(generation, expected, desired)                                                     \
    "observedGeneration: " generation ", expectedPods: " expected ", desiredHealthy: " desired

static void budgets(void **state)
{
    struct fixture *f = *state;

    assert_json(spec_of(f, DOWN_DISRUPTION_BUDGETS, "minAvailable: 5, selector: {}, more: 1"),
                "{minAvailable: 5, selector: " MINE "}");
    /* no selector matches nothing, there and here */
    assert_json(spec_of(f, DOWN_DISRUPTION_BUDGETS, "maxUnavailable: 1"), "{maxUnavailable: 0}");
    assert_null(translate_kind_status_up(
        f->a, &f->tenant, translate_kind_rules(DOWN_DISRUPTION_BUDGETS),
        doc(f, "{metadata: {name: h}, status: {currentHealthy: 3}}"), object_of(f, "{}")));
}

/* Pods of the host have no controller: what is counted from the scale of one is 0 there. */
static void budgets_are_counted_by_the_tenant(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *budget, *want;
    } cases[] = {
        {BUDGET("maxUnavailable: 1", COUNTED("3", "4", "3")), "{minAvailable: 3}"},
        {BUDGET("minAvailable: 50%", COUNTED("3", "4", "2")), "{minAvailable: 2}"},
        {BUDGET("maxUnavailable: 100%", COUNTED("3", "4", "0")), "{minAvailable: 0}"},
        {BUDGET("minAvailable: 7", COUNTED("3", "4", "2")), "{minAvailable: 7}"},
        {BUDGET("unhealthyPodEvictionPolicy: AlwaysAllow", COUNTED("3", "4", "2")),
         "{unhealthyPodEvictionPolicy: AlwaysAllow}"},
        /* nothing is known of this spec, or no pod is expected: nothing is permitted */
        {BUDGET("maxUnavailable: 1", COUNTED("2", "4", "3")), "{maxUnavailable: 0}"},
        {BUDGET("maxUnavailable: 1", ""), "{maxUnavailable: 0}"},
        {BUDGET("minAvailable: 50%", COUNTED("3", "0", "0")), "{maxUnavailable: 0}"},
        {BUDGET("maxUnavailable: 1",
                COUNTED("3", "4", "3") ", conditions: [{type: "
                                       "DisruptionAllowed, status: 'False', reason: SyncFailed}]"),
         "{maxUnavailable: 0}"},
        {BUDGET("maxUnavailable: 1",
                COUNTED("3", "4", "3") ", conditions: [{type: DisruptionAllowed, status: 'False', "
                                       "reason: InsufficientPods}]"),
         "{minAvailable: 3}"},
        {BUDGET("minAvailable: 50%", COUNTED("3", "4", "-1")), "{maxUnavailable: 0}"},
        {BUDGET("minAvailable: 50%", COUNTED("3", "4", "'2'")), "{maxUnavailable: 0}"},
        {BUDGET("minAvailable: 50%", COUNTED("3", "4", "2147483648")), "{maxUnavailable: 0}"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *host = NULL;

        assert_ok(down(f, translate_kind_rules(DOWN_DISRUPTION_BUDGETS), cases[i].budget, &host));
        assert_json(json_get(host, "spec"), cases[i].want);
    }
}

/* ---- EndpointSlices ---- */

static bool is_bare(void *ctx, struct str ns, struct str name)
{
    (void)ctx;
    return str_eqc(ns, "ml") && str_eqc(name, "db");
}

#define SLICE(service, more)                                                                       \
    "{metadata: {labels: {kubernetes.io/service-name: " service                                    \
    ", endpointslice.kubernetes.io/managed-by: x, a: b}}, addressType: IPv4, " more "}"

static void slices_of_bare_services(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_ENDPOINT_SLICES);
    cJSON *ret = NULL, *labels;
    char name[64];

    f->related.bare_service = is_bare;
    f->tenant.related = &f->related;
    assert_ok(down(f, rules,
                   SLICE("db", "ports: [{name: '', port: 5432, more: 1}], endpoints: [{addresses: "
                               "[10.30.0.7], conditions: {ready: true}, nodeName: n, zone: z, "
                               "hints: {}, targetRef: {kind: Pod, name: p}, hostname: h}]"),
                   &ret));
    assert_json(json_get(ret, "endpoints"),
                "[{addresses: [10.30.0.7], conditions: {ready: true}}]");
    assert_json(json_get(ret, "ports"), "[{name: '', port: 5432}]");
    translate_name(&f->tenant, STR("ml"), STR("db"), name);
    labels = json_path(ret, "metadata.labels");
    assert_str(json_str(json_get(labels, "kubernetes.io/service-name")), name);
    assert_str(json_str(json_get(labels, "endpointslice.kubernetes.io/managed-by")), "sublet.dev");
    /* with a selector, or of no Service: the host has slices of its own */
    assert_ok(translate_kind(f->a, &f->tenant, rules,
                             object_of(f, SLICE("web", "endpoints: [{addresses: [8.8.8.8]}]")),
                             &ret, &f->err));
    assert_null(ret);
    f->related.bare_service = NULL;
    assert_ok(translate_kind(f->a, &f->tenant, rules, object_of(f, SLICE("db", "endpoints: []")),
                             &ret, &f->err));
    assert_null(ret);
}

#define SLICES "endpointslices.discovery.k8s.io \"x\" is forbidden: "

static void slices_refused(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "169.254.169.254", "10.31.0.1", "::1",
                                            "::ffff:169.254.169.254"};
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_ENDPOINT_SLICES);
    cJSON *ret = NULL;

    f->related.bare_service = is_bare;
    f->tenant.related = &f->related;
    for (size_t i = 0; i < COUNT(addresses); i++)
        assert_error(
            down(f, rules,
                 arena_printf(f->a, SLICE("db", "endpoints: [{addresses: [10.30.0.1, '%s']}]"),
                              addresses[i])
                     .p,
                 &ret),
            arena_printf(f->a,
                         SLICES "endpoints[0].addresses[1]: %s is not inside a range of "
                                "sync.toHost.endpointSlices.allowedCIDRs",
                         addresses[i])
                .p);
    assert_error(down(f, rules, SLICE("db", "endpoints: [{addresses: [10.30.0.0/24]}]"), &ret),
                 SLICES "endpoints[0].addresses[0]: \"10.30.0.0/24\" is not an IP address");
    assert_error(down(f, rules,
                      "{metadata: {labels: {kubernetes.io/service-name: db}}, "
                      "addressType: FQDN}",
                      &ret),
                 SLICES "addressType: only IPv4 and IPv6 go down");
}

/* ---- custom resources ---- */

static void custom_resources_go_down_whole(void **state)
{
    struct fixture *f = *state;
    struct str secret, claim;
    cJSON *ret = NULL;
    char name[64];

    translate_name(&f->tenant, STR("ml"), STR("tls"), name);
    secret = arena_str(f->a, str_c(name));
    translate_name(&f->tenant, STR("ml"), STR("c1"), name);
    claim = arena_str(f->a, str_c(name));
    assert_ok(down(f, custom_rules(f),
                   "{apiVersion: cert-manager.io/v1alpha2, kind: Certificate, metadata: "
                   "{ownerReferences: [{uid: x}], finalizers: [f], labels: {a: b}}, data: [1, "
                   "null, {x: null, y: 2}], status: {secret: 1}, spec: {secretName: tls, zone: z, "
                   "hostNetwork: true, deep: [{er: {more: [1, 2]}}], parts: {one: {claims: [c1], "
                   "k: 1}, two: 5}, targets: [{selector: {matchLabels: {team.example/a: b}}}, "
                   "{match: {team.example/c: d}, selector: {}, port: 1}]}}",
                   &ret));
    assert_json(json_get(ret, "spec"),
                arena_printf(f->a,
                             "{secretName: %.*s, zone: {fixed: true}, deep: [{er: {more: [1, "
                             "2]}}], parts: {one: {claims: [%.*s], k: 1}, two: 5}, targets: "
                             "[{selector: {matchLabels: {" CLUSTER
                             ", sublet.dev/namespace: ml, team.example/a: b}}}, {match: {" CLUSTER
                             ", sublet.dev/namespace: ml, team.example/c: d}, selector: " MINE
                             ", port: 1}]}",
                             STR_F(secret), STR_F(claim))
                    .p);
    assert_json(json_get(ret, "data"), "[1, null, {x: null, y: 2}]");
    assert_str(json_str(json_get(ret, "apiVersion")), "cert-manager.io/v1");
    assert_str(json_str(json_get(ret, "kind")), "Certificate");
    assert_null(json_get(ret, "status"));
    assert_null(json_path(ret, "metadata.ownerReferences"));
    assert_null(json_path(ret, "metadata.finalizers"));
    assert_null(json_path(ret, "metadata.labels.a"));
}

/* What narrows a map of labels would be unknown fields of a LabelSelector, and dropped there. */
static void selectors_of_custom_resources_never_widen(void **state)
{
    static const char *const wrong[] = {
        "{match: {matchLabels: {a: b}}}",
        "{match: {matchLabels: x}}",
        "{match: {matchExpressions: []}}",
        "{selector: 5}",
        "{selector: []}",
        "{selector: x}",
    };
    struct fixture *f = *state;
    cJSON *ret = NULL;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        err_init(&f->err, f->a);
        assert_int_equal(down(f, custom_rules(f),
                              arena_printf(f->a, "{kind: C, spec: {targets: [%s]}}", wrong[i]).p,
                              &ret),
                         -1);
        assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
        assert_non_null(
            strstr(f->err.message.p, i < 3 ? "is a LabelSelector" : "no LabelSelector"));
    }
}

static void a_whole_status_comes_up_without_host_names(void **state)
{
    struct fixture *f = *state;
    char own[64], other[64];
    cJSON *host, *status;

    translate_name(&f->tenant, STR("ml"), STR("x"), own);
    translate_name(&f->tenant, STR("ml"), STR("tls"), other);
    host =
        doc(f, arena_printf(
                   f->a,
                   "{metadata: {name: %s}, status: {ready: true, refs: [{name: %s, "
                   "namespace: team-research}], conditions: [{message: 'secret \"%s\" in namespace "
                   "\"team-research\" of %s'}]}}",
                   own, other, other, own)
                   .p);
    status = translate_kind_status_up(f->a, &f->tenant, custom_rules(f), host, object_of(f, "{}"));
    assert_json(status, "{ready: true, refs: [{name: tls, namespace: ml}], conditions: [{message: "
                        "'secret \"tls\" in namespace \"ml\" of x'}]}");
}

/* ---- updates ---- */

static cJSON *wanted_of(struct fixture *f, const struct kind_rules *rules, const char *body)
{
    cJSON *ret = NULL;

    assert_ok(down(f, rules, body, &ret));
    return ret;
}

static void set_spec(struct fixture *f, cJSON *host, const char *spec)
{
    json_set(f->a, host, "spec", doc(f, spec));
}

static void what_the_host_adds_stays(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = custom_rules(f);
    cJSON *wanted = wanted_of(f, rules, "{kind: C, spec: {a: 1, list: [{n: 1}, {n: 2}]}}");
    cJSON *host = json_copy(f->a, wanted);

    set_spec(f, host, "{a: 1, more: {b: 1}, list: [{n: 1, d: 1}, {n: 9}, {n: 2}]}");
    assert_null(translate_kind_update(f->a, rules, host, wanted));
    set_spec(f, host, "{a: 2, more: 1, list: [{n: 1}, {n: 2}]}");
    assert_json(translate_kind_update(f->a, rules, host, wanted), "{spec: {a: 1}}");
    set_spec(f, host, "{a: 1, list: [{n: 1}]}");
    assert_json(translate_kind_update(f->a, rules, host, wanted),
                "{spec: {list: [{n: 1}, {n: 2}]}}");
}

/* Each pair of items is compared once: 2^60 steps would never end. */
static void nested_lists_are_compared_in_time(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = custom_rules(f);
    struct buf body = BUF_INIT(0);
    cJSON *wanted, *host;

    buf_addc(&body, "{kind: C, spec: {x: ");
    for (int i = 0; i < 60; i++)
        buf_char(&body, '[');
    for (int i = 0; i < 60; i++)
        buf_char(&body, ']');
    buf_addc(&body, "}}");
    wanted = wanted_of(f, rules, arena_cstr(f->a, buf_str(&body)));
    host = json_copy(f->a, wanted);
    assert_null(translate_kind_update(f->a, rules, host, wanted));
    buf_fini(&body);
}

/* Of a fence every item counts: one that was added on the host is removed. */
static void lists_of_rows_are_exact(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_NETWORK_POLICIES);
    cJSON *wanted = wanted_of(f, rules, "{spec: {podSelector: {}, ingress: []}}");
    cJSON *host = json_copy(f->a, wanted);

    json_remove(json_get(host, "spec"), "ingress"); /* a server leaves out an empty list */
    assert_null(translate_kind_update(f->a, rules, host, wanted));
    json_set(f->a, json_get(host, "spec"), "ingress", doc(f, "[{}]"));
    assert_json(translate_kind_update(f->a, rules, host, wanted), "{spec: {ingress: []}}");
    json_set(f->a, json_get(host, "spec"), "ingress", doc(f, "[]"));
    json_set(f->a, json_get(host, "spec"), "egress", doc(f, "[{}]"));
    json_set(f->a, json_get(host, "spec"), "newer", doc(f, "1"));
    assert_json(translate_kind_update(f->a, rules, host, wanted), "{spec: {egress: null}}");
}

/* A field that the tenant removed is removed: the digest shows that the object changed. */
static void what_the_tenant_removes_goes(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = custom_rules(f);
    cJSON *host = wanted_of(f, rules, "{kind: C, spec: {a: 1, b: {c: 1, d: 2}}, data: x}");
    cJSON *wanted = wanted_of(f, rules, "{kind: C, spec: {b: {c: 1}}}");
    cJSON *patch = translate_kind_update(f->a, rules, host, wanted);

    assert_json(json_get(patch, "spec"), "{a: null, b: {d: null}}");
    assert_true(json_is_null(json_get(patch, "data")));
    assert_non_null(json_path(patch, "metadata.annotations"));
}

/* ---- patches of the admin ---- */

static const char PATCHED[] =
    "policy: {annotations: {allow: [note, class]}, storageClasses: [fast]}\n"
    "sync:\n"
    "  toHost:\n"
    "    services: {patches: [{path: 'metadata.annotations[lb.example/internal]', value: "
    "'true'}]}\n"
    "    persistentVolumeClaims: {patches: [{path: 'metadata.annotations[backup]', value: "
    "daily}]}\n"
    "    ingresses:\n"
    "      enabled: true\n"
    "      classes: [nginx]\n"
    "      hosts: ['*.team.example']\n"
    "      patches:\n"
    "      - {path: 'metadata.annotations[issuer.example/name]', value: internal}\n"
    "      - {path: 'metadata.annotations[class]', value: fixed}\n"
    "      - {path: spec.ingressClassName, value: behind}\n"
    "      - {path: spec.extra.deep, value: {a: 1}}\n"
    "      - {path: 'spec.tls[*].secretName', drop: true}\n"
    "      - {path: 'spec.rules[*].http.paths[*].pathType', value: Prefix}\n"
    "      - {path: 'spec.rules[*].none.here', value: 1}\n"
    "      - {path: 'spec.absent[*].name', value: 1}\n";

#define PATCHED_RULE                                                                               \
    "host: a.team.example, http: {paths: [{path: /, pathType: %s, backend: {service: {name: %s, "  \
    "port: {number: 80}}}}]}"

static void the_admin_patches_what_goes_down(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_INGRESSES);
    char service[64];
    const char *body;
    cJSON *plain, *host, *patch, *notes;

    translate_name(&f->tenant, STR("ml"), STR("web"), service);
    body = arena_printf(f->a,
                        "{kind: Ingress, metadata: {annotations: {class: mine, note: one}}, spec: "
                        "{tls: [{hosts: [a.team.example], secretName: s}], rules: [{" PATCHED_RULE
                        "}]}}",
                        "Exact", "web")
               .p;
    use_config(f, "policy: {annotations: {allow: [note, class]}}\nsync: {toHost: {ingresses: "
                  "{enabled: true, classes: [nginx], hosts: ['*.team.example']}}}");
    assert_ok(down(f, rules, body, &plain));
    use_config(f, PATCHED);
    assert_ok(down(f, rules, body, &host));
    assert_json(json_get(host, "spec"),
                arena_printf(f->a,
                             "{ingressClassName: behind, tls: [{hosts: [a.team.example]}], rules: "
                             "[{" PATCHED_RULE ", none: {here: 1}}], extra: {deep: {a: 1}}}",
                             "Prefix", service)
                    .p);
    notes = json_path(host, "metadata.annotations");
    assert_str(json_str(json_get(notes, "class")), "fixed");
    assert_str(json_str(json_get(notes, "note")), "one");
    assert_str(json_str(json_get(notes, "issuer.example/name")), "internal");
    assert_str(json_str(json_get(notes, ANNOTATION_NAME)), "x");

    /* Identity is as without patches; both ways of a changed configuration reach the host. */
    assert_json(json_path(host, "metadata.labels"),
                json_text(f->a, json_path(plain, "metadata.labels")).p);
    assert_null(translate_kind_update(f->a, rules, host, host));
    patch = translate_kind_update(f->a, rules, plain, host);
    assert_str(json_str_at(patch, "spec.ingressClassName"), "behind");
    assert_str(json_str(json_get(json_path(patch, "metadata.annotations"), "issuer.example/name")),
               "internal");
    patch = translate_kind_update(f->a, rules, host, plain);
    assert_str(json_str_at(patch, "spec.ingressClassName"), "nginx");
    assert_true(json_is_null(json_path(patch, "spec.extra")));
    assert_true(
        json_is_null(json_get(json_path(patch, "metadata.annotations"), "issuer.example/name")));
}

static void the_admin_annotates_what_always_goes_down(void **state)
{
    struct fixture *f = *state;
    cJSON *host = NULL, *before = NULL, *patch;
    cJSON *service = object_of(f, "{kind: Service, spec: {ports: [{port: 80}]}}");
    cJSON *claim = object_of(f, "{kind: PersistentVolumeClaim, spec: {storageClassName: fast, "
                                "accessModes: [ReadWriteOnce]}}");

    use_config(f, "");
    assert_ok(translate_service(f->a, &f->tenant, service, &before, &f->err));
    use_config(f, PATCHED);
    assert_ok(translate_service(f->a, &f->tenant, service, &host, &f->err));
    assert_str(json_str(json_get(json_path(host, "metadata.annotations"), "lb.example/internal")),
               "true");
    assert_null(translate_service_update(f->a, host, host));
    patch = translate_service_update(f->a, host, before);
    assert_true(
        json_is_null(json_get(json_path(patch, "metadata.annotations"), "lb.example/internal")));
    assert_ok(translate_pvc(f->a, &f->tenant, claim, NULL, &host, &f->err));
    assert_str(json_str(json_get(json_path(host, "metadata.annotations"), "backup")), "daily");
    assert_non_null(json_get(json_path(host, "metadata.annotations"), ANNOTATION_UID));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(policies_reach_the_tenant_only),
        TEST(addresses_only_inside_the_list),
        TEST(stored_policies_are_narrowed),
        TEST(ingresses_go_down_by_list),
        TEST(ingresses_refused),
        TEST(legacy_class),
        TEST(certificates_are_referred_to),
        TEST(balancer_comes_up),
        TEST(budgets),
        TEST(budgets_are_counted_by_the_tenant),
        TEST(slices_of_bare_services),
        TEST(slices_refused),
        TEST(custom_resources_go_down_whole),
        TEST(selectors_of_custom_resources_never_widen),
        TEST(a_whole_status_comes_up_without_host_names),
        TEST(what_the_host_adds_stays),
        TEST(nested_lists_are_compared_in_time),
        TEST(lists_of_rows_are_exact),
        TEST(what_the_tenant_removes_goes),
        TEST(the_admin_patches_what_goes_down),
        TEST(the_admin_annotates_what_always_goes_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
