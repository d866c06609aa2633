/* SPDX-License-Identifier: Apache-2.0 */
/* The Gateway API: whose Gateways, Services and Secrets a tenant's object reaches on the host. */

#include "test.h"

#include <string.h>

static const char CONFIG[] =
    "sync:\n"
    "  toHost:\n"
    "    gateways: {enabled: true, classes: [shared, fast], hosts: ['*.team.example', a.example]}\n"
    "    httpRoutes: {enabled: true}\n"
    "    grpcRoutes: {enabled: true}\n"
    "    tlsRoutes: {enabled: true}\n"
    "    backendTLSPolicies: {enabled: true}\n"
    "  fromHost:\n"
    "    gateways: {enabled: true, hosts: ['*.team.example', a.example], mappings: {byName: "
    "{infra/edge: shared/public, 'lobby/*': 'lobby/*', /near: shared/near}}}\n";

struct world {
    struct fixture *f;
    cJSON *objects; /* plural -> list */
};

static const cJSON *find_object(void *ctx, struct arena *a, const char *group, const char *plural,
                                struct str ns, struct str name)
{
    const struct world *w = ctx;

    (void)a;
    assert_string_equal(group, strcmp(plural, "namespaces") ? "gateway.networking.k8s.io" : "");
    json_each(one, json_get(w->objects, plural))
    {
        if (str_eq(json_str_at(one, "metadata.name"), name) &&
            str_eq(json_str_at(one, "metadata.namespace"), ns))
            return one;
    }
    return NULL;
}

static const cJSON *list_objects(void *ctx, struct arena *a, const char *group, const char *plural,
                                 struct str ns)
{
    const struct world *w = ctx;
    cJSON *ret = json_new_array(a);

    (void)group;
    json_each(one, json_get(w->objects, plural))
    {
        if (!ns.p || str_eq(json_str_at(one, "metadata.namespace"), ns))
            json_append(ret, json_copy(a, one));
    }
    return ret;
}

static void on_denied(void *ctx, struct str why)
{
    struct fixture *f = ((struct world *)ctx)->f;

    f->warnings = arena_printf(f->a, "%.*s%s%.*s", STR_F(f->warnings), f->warnings.n ? " | " : "",
                               STR_F(why));
}

/* Those whose uid says so. */
static bool is_copy(void *ctx, enum config_from_kind kind, struct str ns, struct str name)
{
    const cJSON *found = find_object(ctx, NULL, "gateway.networking.k8s.io", "gateways", ns, name);

    assert_int_equal(kind, FROM_GATEWAYS);
    return str_eqc(json_str_at(found, "metadata.uid"), "copy");
}

static int setup(void **state)
{
    static struct world world;
    struct fixture *f = fixture_new(CONFIG);

    world = (struct world){f, NULL};
    f->related = (struct translate_related){
        .ctx = &world, .object = find_object, .list = list_objects, .denied = on_denied};
    f->tenant.related = &f->related;
    f->tenant.shown = (struct translate_shown){is_copy, &world};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static void there_are(struct fixture *f, const char *objects)
{
    ((struct world *)f->related.ctx)->objects = doc(f, objects);
}

static cJSON *object_of(struct fixture *f, const char *kind, const char *spec)
{
    return doc(f, arena_printf(f->a,
                               "{kind: %s, metadata: {name: x, namespace: ml, uid: u1, generation: "
                               "4}, spec: {%s}}",
                               kind, spec)
                      .p);
}

static enum sync_down kind_of(const char *kind)
{
    return !strcmp(kind, "Gateway")            ? DOWN_GATEWAYS
           : !strcmp(kind, "HTTPRoute")        ? DOWN_HTTP_ROUTES
           : !strcmp(kind, "GRPCRoute")        ? DOWN_GRPC_ROUTES
           : !strcmp(kind, "BackendTLSPolicy") ? DOWN_BACKEND_TLS
                                               : DOWN_TLS_ROUTES;
}

static cJSON *spec_of(struct fixture *f, const char *kind, const char *spec)
{
    const struct kind_rules *rules = translate_kind_rules(kind_of(kind));
    cJSON *one, *two;

    f->warnings = STR("");
    assert_ok(translate_kind(f->a, &f->tenant, rules, object_of(f, kind, spec), &one, &f->err));
    f->warnings = STR("");
    assert_ok(translate_kind(f->a, &f->tenant, rules, object_of(f, kind, spec), &two, &f->err));
    assert_str(json_text(f->a, one), json_text(f->a, two).p);
    assert_null(translate_kind_update(f->a, rules, one, two));
    return json_get(one, "spec");
}

static void assert_refused(struct fixture *f, const char *kind, const char *spec,
                           const char *message)
{
    cJSON *ret = NULL;
    int rc = translate_kind(f->a, &f->tenant, translate_kind_rules(kind_of(kind)),
                            object_of(f, kind, spec), &ret, &f->err);

    assert_ptr_equal(f->err.kind, rc ? &ERR_FORBIDDEN : NULL);
    if (!strstr(f->err.message.p, message))
        fail_msg("%s", f->err.message.p);
    assert_null(ret);
    err_init(&f->err, f->a);
}

static const char *host_name(struct fixture *f, const char *ns, const char *name)
{
    char ret[64];

    translate_name(&f->tenant, str_c(ns), str_c(name), ret);
    return arena_printf(f->a, "%s", ret).p;
}

static bool is_denied(struct str name)
{
    return str_has_prefix(name, STR("not-permitted-")) && name.n == 14 + 16;
}

/* ---- Gateways ---- */

#define LISTENER "name: web, hostname: a.example, port: 443, protocol: HTTPS"

static void gateways_go_down_by_list(void **state)
{
    struct fixture *f = *state;

    assert_json(spec_of(f, "Gateway",
                        "gatewayClassName: fast, more: 1, allowedListeners: {namespaces: {from: "
                        "All}}, listeners: [{" LISTENER ", odd: 1, allowedRoutes: {namespaces: "
                        "{from: All}, kinds: [{kind: HTTPRoute, more: 1}]}, tls: {mode: Terminate, "
                        "certificateRefs: [{name: cert}, {kind: Secret, group: '', name: two, "
                        "namespace: ml}]}}, {name: b, hostname: '*.team.example', port: 80, "
                        "protocol: HTTP}]"),
                arena_printf(f->a,
                             "{gatewayClassName: fast, listeners: [{" LISTENER
                             ", allowedRoutes: {namespaces: {from: Same}, kinds: [{kind: "
                             "HTTPRoute}]}, tls: {mode: Terminate, certificateRefs: [{name: %s}, "
                             "{kind: Secret, group: '', name: %s}]}}, {name: b, hostname: "
                             "'*.team.example', port: 80, protocol: HTTP}]}",
                             host_name(f, "ml", "cert"), host_name(f, "ml", "two"))
                    .p);
    assert_str(f->warnings, "");
    assert_json(
        spec_of(f, "Gateway",
                "gatewayClassName: shared, tls: {frontend: {default: {validation: {mode: "
                "AllowValidOnly, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}}"),
        arena_printf(f->a,
                     "{gatewayClassName: shared, tls: {frontend: {default: {validation: {mode: "
                     "AllowValidOnly, caCertificateRefs: [{group: '', kind: ConfigMap, name: "
                     "%s}]}}}}}",
                     host_name(f, "ml", "ca"))
            .p);
}

static void gateways_refused(void **state)
{
    static const char *const cases[][2] = {
        {"gatewayClassName: other", "class \"other\" is not one of sync.toHost.gateways.classes"},
        {"gatewayClassName: ''", "class \"\" is not one of"},
        {"listeners: [{name: a, hostname: bank.example, protocol: HTTP}]",
         "spec.listeners[0].hostname: host name \"bank.example\" is not one of "
         "sync.toHost.gateways.hosts"},
        {"listeners: [{name: a, hostname: '*.example', protocol: HTTP}]", "\"*.example\" is not"},
        {"listeners: [{name: a, hostname: a.example, protocol: HTTP}, {name: b, protocol: HTTP}]",
         "spec.listeners[1]: a listener without a hostname"},
        {"listeners: [{name: a, hostname: '', protocol: TLS}]", "a listener without a hostname"},
        {"listeners: [{name: a, hostname: a.example, protocol: TCP}]", "only listeners of HTTP"},
        {"listeners: [{name: a, hostname: a.example, protocol: HTTPS, tls: {options: {a: b}}}]",
         "spec.listeners[0].tls.options: configures a controller"},
        {"addresses: [{value: 10.0.0.1}]", "spec.addresses[0]: addresses are the host's"},
        {"infrastructure: {annotations: {a: b}}", "spec.infrastructure: configures"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(f, "Gateway", cases[i][0], cases[i][1]);
}

/* Domains are shared: a listener for a pattern takes those of any depth. */
static void listeners_for_patterns_can_be_off(void **state)
{
    static const char key[] = "    gateways: {enabled: true, classes: ";
    struct fixture *f = *state;
    const char *at = strstr(CONFIG, key);
    const char *both =
        "listeners: [{name: a, hostname: a.example, port: 80, protocol: HTTP}, {name: "
        "b, hostname: '*.team.example', port: 80, protocol: HTTP}]";

    assert_non_null(at);
    spec_of(f, "Gateway", arena_printf(f->a, "gatewayClassName: shared, %s", both).p);
    use_config(f,
               arena_printf(f->a, "%.*s    gateways: {enabled: true, wildcards: false, classes: %s",
                            (int)(at - CONFIG), CONFIG, at + strlen(key))
                   .p);
    assert_refused(f, "Gateway", both,
                   "spec.listeners[1].hostname: host name \"*.team.example\" takes names of any "
                   "depth: sync.toHost.gateways.wildcards is off");
    spec_of(f, "Gateway",
            "gatewayClassName: shared, listeners: [{name: b, hostname: b.team.example, port: 80, "
            "protocol: HTTP}]");
}

#define CERTIFICATE                                                                                \
    "listeners: [{" LISTENER ", tls: {certificateRefs: [{name: cert, namespace: other}]}}]"
#define GRANT(from, to)                                                                            \
    "{referencegrants: [{metadata: {namespace: other, name: g}, spec: {from: [{group: "            \
    "gateway.networking.k8s.io, " from "}], to: [{" to "}]}}]}"

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct fixture *f = ctx;

    (void)optional;
    f->warnings = arena_printf(f->a, "%.*s %s:%.*s", STR_F(f->warnings),
                               kind == REF_SECRET ? "secret" : "config map", STR_F(name));
}

static struct str refs_of(struct fixture *f, const char *kind, const char *spec)
{
    f->related.denied = NULL;
    f->warnings = STR("");
    translate_kind_refs(f->a, &f->tenant, translate_kind_rules(kind_of(kind)),
                        object_of(f, kind, spec), on_ref, f);
    f->related.denied = on_denied;
    return f->warnings;
}

static struct str certificate(struct fixture *f)
{
    const cJSON *listener = json_first(json_get(spec_of(f, "Gateway", CERTIFICATE), "listeners"));

    return json_str(json_get(json_first(json_path(listener, "tls.certificateRefs")), "name"));
}

static void secrets_of_other_namespaces_need_a_grant(void **state)
{
    static const char *const others[] = {
        "{}",
        GRANT("kind: Gateway, namespace: another", "group: '', kind: Secret"),
        GRANT("kind: HTTPRoute, namespace: ml", "group: '', kind: Secret"),
        GRANT("kind: Gateway, namespace: ml", "group: '', kind: Service"),
        GRANT("kind: Gateway, namespace: ml", "group: '', kind: Secret, name: else"),
        GRANT("kind: Gateway, namespace: ml", "group: apps, kind: Secret"),
        "{referencegrants: [{metadata: {namespace: ml, name: g}, spec: {from: [{group: "
        "gateway.networking.k8s.io, kind: Gateway, namespace: ml}], to: [{group: '', kind: "
        "Secret}]}}]}",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(others); i++) {
        there_are(f, others[i]);
        assert_true(is_denied(certificate(f)));
        assert_str(f->warnings,
                   "spec.listeners[0].tls.certificateRefs[0].name: namespace \"other\" has no "
                   "ReferenceGrant for Secret \"cert\": the reference leads nowhere on the host");
        assert_str(refs_of(f, "Gateway", CERTIFICATE), "");
    }
    there_are(f, GRANT("kind: Gateway, namespace: ml", "group: '', kind: Secret"));
    assert_str(certificate(f), host_name(f, "other", "cert"));
    assert_str(f->warnings, "");
    assert_str(refs_of(f, "Gateway", CERTIFICATE), " secret:other/cert");
    there_are(f, GRANT("kind: Gateway, namespace: ml", "group: '', kind: Secret, name: cert"));
    assert_str(certificate(f), host_name(f, "other", "cert"));
}

/* A slash would name a Secret of another namespace, past its grants. */
static void a_name_is_no_path(void **state)
{
    struct fixture *f = *state;

    assert_str(refs_of(f, "Gateway",
                       "listeners: [{" LISTENER
                       ", tls: {certificateRefs: [{name: other/cert}, {name: cert}]}}]"),
               " secret:cert");
}

/* ---- policies for the connections to backends ---- */

#define TARGET "targetRefs: [{group: '', kind: Service, name: svc, sectionName: https, more: 1}]"

static void backend_policies(void **state)
{
    struct fixture *f = *state;
    const char *svc = host_name(f, "ml", "svc"), *ca = host_name(f, "ml", "ca");
    const cJSON *validation;

    assert_json(spec_of(f, "BackendTLSPolicy",
                        TARGET ", odd: 1, validation: {hostname: a.example, caCertificateRefs: "
                               "[{group: '', kind: ConfigMap, name: ca}], subjectAltNames: [{type: "
                               "URI, uri: u, more: 1}], wellKnownCACertificates: System}"),
                arena_printf(f->a,
                             "{targetRefs: [{group: '', kind: Service, name: %s, sectionName: "
                             "https}], validation: {hostname: a.example, caCertificateRefs: "
                             "[{group: '', kind: ConfigMap, name: %s}], subjectAltNames: [{type: "
                             "URI, uri: u}], wellKnownCACertificates: System}}",
                             svc, ca)
                    .p);
    assert_str(refs_of(f, "BackendTLSPolicy",
                       "validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}, "
                       "{group: '', kind: Secret, name: s}]}"),
               " config map:ca secret:s");
    assert_refused(f, "BackendTLSPolicy", "targetRefs: [{group: apps, kind: Service, name: s}]",
                   "spec.targetRefs[0]: only Services go down as targets");
    assert_refused(f, "BackendTLSPolicy", "targetRefs: [{group: '', kind: Pod, name: s}]",
                   "only Services go down");
    assert_refused(f, "BackendTLSPolicy", TARGET ", options: {a: b}",
                   "spec.options: configures a controller");
    validation = json_get(spec_of(f, "BackendTLSPolicy",
                                  "validation: {caCertificateRefs: [{group: '', kind: Secret, "
                                  "name: s, namespace: other}]}"),
                          "validation");
    assert_true(is_denied(
        json_str(json_get(json_first(json_get(validation, "caCertificateRefs")), "name"))));
}

/* ref: the other members of the reference. */
static const char *ancestor(struct fixture *f, const char *ref, const char *name)
{
    return arena_printf(f->a, "{controllerName: c, conditions: [], ancestorRef: {%s, name: %s}}",
                        ref, name)
        .p;
}

static void ancestors_are_the_tenants(void **state)
{
    static const char service[] = "group: '', kind: Service", section[] = "sectionName: web";
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_BACKEND_TLS);
    cJSON *v = object_of(f, "BackendTLSPolicy", TARGET), *host;
    const char *own_service = ancestor(f, service, "svc");

    there_are(f, "{gateways: [{metadata: {namespace: edge, name: gw}}, {metadata: {namespace: ml, "
                 "name: g}}]}");
    host = doc(f, arena_printf(f->a,
                               "{metadata: {generation: 4}, status: {ancestors: [%s, %s, %s, %s]}}",
                               ancestor(f, "namespace: infra", "of-the-admin"),
                               ancestor(f, section, host_name(f, "edge", "gw")),
                               ancestor(f, service, host_name(f, "ml", "svc")),
                               ancestor(f, service, host_name(f, "ml", "other")))
                      .p);
    assert_json(translate_kind_status_up(f->a, &f->tenant, rules, host, v),
                arena_printf(f->a, "{ancestors: [%s, %s]}",
                             ancestor(f, "namespace: edge, sectionName: web", "gw"), own_service)
                    .p);
    f->tenant.related = NULL;
    assert_json(translate_kind_status_up(f->a, &f->tenant, rules, host, v),
                arena_printf(f->a, "{ancestors: [%s]}", own_service).p);
}

/* ---- routes ---- */

static void routes_go_down_by_rows(void **state)
{
    struct fixture *f = *state;
    const char *svc = host_name(f, "ml", "svc"), *gw = host_name(f, "ml", "gw");

    assert_json(
        spec_of(f, "HTTPRoute",
                "hostnames: [a.example], useDefaultGateways: All, parentRefs: [{name: gw, "
                "sectionName: web, more: 1}], rules: [{name: r, matches: [{path: {type: Exact, "
                "value: /a}, method: GET, headers: [{name: h, value: v, odd: 1}]}], timeouts: "
                "{request: 1s}, filters: [{type: RequestMirror, requestMirror: {percent: 5, "
                "backendRef: {name: svc, port: 80}}}, {type: ExtensionRef, extensionRef: {group: "
                "g.example, kind: K, name: svc}}], backendRefs: [{name: svc, port: 80, weight: 1, "
                "namespace: ml, filters: [{type: URLRewrite, urlRewrite: {hostname: b, path: "
                "{type: ReplaceFullPath, replaceFullPath: /}}}]}]}]"),
        arena_printf(
            f->a,
            "{hostnames: [a.example], parentRefs: [{sectionName: web, name: %s}], rules: [{name: "
            "r, matches: [{path: {type: Exact, value: /a}, method: GET, headers: [{name: h, value: "
            "v}]}], timeouts: {request: 1s}, filters: [{type: RequestMirror, requestMirror: "
            "{percent: 5, backendRef: {name: %s, port: 80}}}, {type: ExtensionRef, extensionRef: "
            "{group: g.example, kind: K, name: %s}}], backendRefs: [{name: %s, port: 80, weight: "
            "1, filters: [{type: URLRewrite, urlRewrite: {hostname: b, path: {type: "
            "ReplaceFullPath, replaceFullPath: /}}}]}]}]}",
            gw, svc, svc, svc)
            .p);
    assert_json(spec_of(f, "GRPCRoute",
                        "rules: [{matches: [{method: {service: s, method: m}}], backendRefs: "
                        "[{kind: Service, name: svc, port: 80}]}]"),
                arena_printf(f->a,
                             "{rules: [{matches: [{method: {service: s, method: m}}], backendRefs: "
                             "[{kind: Service, name: %s, port: 80}]}]}",
                             svc)
                    .p);
    assert_json(
        spec_of(f, "TLSRoute", "hostnames: [a.example], rules: [{backendRefs: [{name: svc}]}]"),
        arena_printf(f->a, "{hostnames: [a.example], rules: [{backendRefs: [{name: %s}]}]}", svc)
            .p);
    assert_str(f->warnings, "");
}

static void parents_are_gateways(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "HTTPRoute", "parentRefs: [{group: '', kind: Service, name: s}]",
                   "spec.parentRefs: only Gateways go down as parents");
    assert_refused(f, "TLSRoute", "parentRefs: [{kind: ListenerSet, name: s}]", "only Gateways");
    assert_refused(f, "GRPCRoute", "parentRefs: [{}]", "a parent needs a name");
    assert_refused(
        f, "HTTPRoute",
        "parentRefs: [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, "
        "{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]",
        "at most 32 parents");
}

#define BACKEND(more) "rules: [{backendRefs: [{name: svc, namespace: other" more "}]}]"

static struct str backend(struct fixture *f, const char *spec)
{
    const cJSON *rule = json_first(json_get(spec_of(f, "HTTPRoute", spec), "rules"));

    return json_str(json_get(json_first(json_get(rule, "backendRefs")), "name"));
}

static void backends_of_other_namespaces_need_a_grant(void **state)
{
    struct fixture *f = *state;

    there_are(f, "{}");
    assert_true(is_denied(backend(f, BACKEND(""))));
    assert_non_null(strstr(f->warnings.p, "no ReferenceGrant for Service \"svc\""));
    there_are(f, GRANT("kind: HTTPRoute, namespace: ml", "group: '', kind: Service"));
    assert_str(backend(f, BACKEND("")), host_name(f, "other", "svc"));
    assert_true(is_denied(backend(f, BACKEND(", kind: Pool, group: g.example"))));
    there_are(f, GRANT("kind: HTTPRoute, namespace: ml", "group: g.example, kind: Pool"));
    assert_str(backend(f, BACKEND(", kind: Pool, group: g.example")), host_name(f, "other", "svc"));
}

#define GATEWAY(ns, listeners)                                                                     \
    "{metadata: {name: gw, namespace: " ns "}, spec: {listeners: [" listeners "]}}"
#define FROM(name, from) "{name: " name ", port: 80, allowedRoutes: {namespaces: {from: " from "}}}"
#define SELECTS                                                                                    \
    "{name: s, port: 81, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: "    \
    "{tier: web}}}}}"
#define NAMESPACES(tier)                                                                           \
    "namespaces: [{metadata: {name: ml, namespace: '', labels: {tier: " tier "}}}], "

static void a_gateway_decides_whose_routes_it_takes(void **state)
{
    /* sections: those that the route gets by name; "-" one reference as it is, "!" one that leads
     * nowhere */
    static const struct {
        const char *objects, *ref, *sections;
    } cases[] = {
        {"{gateways: []}", "name: gw", "-"},
        {"{gateways: []}", "name: gw, namespace: other", "!"},
        {"{gateways: [" GATEWAY("ml", "{name: a}") "]}", "name: gw", "-"},
        {"{gateways: [" GATEWAY("ml", "{name: a}") "]}", "name: gw, namespace: ''", "-"},
        {"{gateways: [" GATEWAY("ml", FROM("a", "None")) "]}", "name: gw", "!"},
        {"{gateways: [" GATEWAY("other", "{name: a}") "]}", "name: gw, namespace: other", "!"},
        {"{gateways: [" GATEWAY("other", FROM("a", "Same")) "]}", "name: gw, namespace: other",
         "!"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All")) "]}", "name: gw, namespace: other", "-"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All") ", " FROM("b", "Same")) "]}",
         "name: gw, namespace: other", "a"},
        {"{gateways: [" GATEWAY("other",
                                FROM("a", "All") ", " FROM("b", "Same") ", " FROM("c", "All")) "]}",
         "name: gw, namespace: other", "ac"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All") ", " FROM("b", "Same")) "]}",
         "name: gw, namespace: other, sectionName: b", "!"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All") ", " FROM("b", "Same")) "]}",
         "name: gw, namespace: other, sectionName: a", "-"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All")) "]}",
         "name: gw, namespace: other, sectionName: z", "!"},
        {"{gateways: [" GATEWAY("other", FROM("a", "All")) "]}",
         "name: gw, namespace: other, port: 81", "!"},
        {"{" NAMESPACES("web") "gateways: [" GATEWAY("other", SELECTS) "]}",
         "name: gw, namespace: other", "-"},
        {"{" NAMESPACES("db") "gateways: [" GATEWAY("other", SELECTS) "]}",
         "name: gw, namespace: other", "!"},
        {"{gateways: [" GATEWAY("other", SELECTS) "]}", "name: gw, namespace: other", "!"},
        {"{" NAMESPACES("web") "gateways: [" GATEWAY("other", SELECTS ", " FROM("b", "None")) "]}",
         "name: gw, namespace: other", "s"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *ns = strstr(cases[i].ref, "other") ? "other" : "ml", *want = cases[i].sections;
        const cJSON *refs;

        there_are(f, cases[i].objects);
        refs = json_get(
            spec_of(f, "HTTPRoute", arena_printf(f->a, "parentRefs: [{%s}]", cases[i].ref).p),
            "parentRefs");
        if (json_count(refs) != strlen(want))
            fail_msg("%zu: %s", i, json_text(f->a, refs).p);
        json_each(ref, refs)
        {
            struct str name = json_str(json_get(ref, "name"));

            assert_null(json_get(ref, "namespace"));
            if (is_denied(name) != (*want == '!'))
                fail_msg("%zu: %s", i, name.p);
            if (*want != '!')
                assert_str(name, host_name(f, ns, "gw"));
            if (*want != '!' && *want != '-')
                assert_int_equal(json_str(json_get(ref, "sectionName")).p[0], *want);
            want++;
        }
    }
}

static void parents_come_up_by_the_tenants_names(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_HTTP_ROUTES);
    cJSON *v = object_of(f, "HTTPRoute",
                         "parentRefs: [{name: gw, namespace: other}, {name: own, sectionName: s}]");
    const char *gw = host_name(f, "other", "gw"), *own = host_name(f, "ml", "own");
    cJSON *host = doc(
        f, arena_printf(
               f->a,
               "{metadata: {name: h, generation: 9}, status: {parents: [{parentRef: {name: %s, "
               "namespace: team-research, sectionName: a}, controllerName: c/c, conditions: "
               "[{type: Accepted, status: 'True', reason: Accepted, message: 'Gateway "
               "team-research/%s', observedGeneration: 9, lastTransitionTime: t, odd: {a: 1}}]}, "
               "{parentRef: {name: %s, sectionName: b}, controllerName: c/c, conditions: []}, "
               "{parentRef: {name: %s, sectionName: s}, controllerName: c/d, conditions: [{type: "
               "Accepted, observedGeneration: 8}]}, {parentRef: {name: foreign}, controllerName: "
               "c/c, conditions: []}]}}",
               gw, own, gw, own)
               .p);

    assert_json(translate_kind_status_up(f->a, &f->tenant, rules, host, v),
                "{parents: [{parentRef: {namespace: other, name: gw}, controllerName: c/c, "
                "conditions: [{type: Accepted, status: 'True', reason: Accepted, message: "
                "'Gateway ml/own', observedGeneration: 4, lastTransitionTime: t}]}, {parentRef: "
                "{name: own, sectionName: s}, controllerName: c/d, conditions: [{type: Accepted, "
                "observedGeneration: 3}]}]}");
}

/* ---- Gateways of the host ---- */

#define COPIES                                                                                     \
    "{gateways: [{metadata: {namespace: shared, name: public, uid: copy}, spec: {listeners: "      \
    "[{name: web, port: 443}]}}, {metadata: {namespace: lobby, name: front, uid: copy}}, "         \
    "{metadata: {namespace: shared, name: near, uid: copy}}, {metadata: {namespace: lobby, "       \
    "name: mine, uid: own}, spec: {listeners: [" FROM(                                             \
        "a", "All") "]}}, {metadata: {namespace: shared, name: "                                   \
                    "other, uid: copy}, spec: {listeners: [" FROM("a", "All") "]}}]}"

static cJSON *parents_of(struct fixture *f, const char *kind, const char *refs)
{
    return json_get(spec_of(f, kind,
                            arena_printf(f->a,
                                         "hostnames: [b.team.example, a.example], "
                                         "parentRefs: [%s]",
                                         refs)
                                .p),
                    "parentRefs");
}

static void shown_gateways_are_the_hosts(void **state)
{
    static const char *const kinds[] = {"HTTPRoute", "GRPCRoute", "TLSRoute"};
    struct fixture *f = *state;

    there_are(f, COPIES);
    for (size_t i = 0; i < COUNT(kinds); i++)
        assert_json(
            parents_of(f, kinds[i],
                       "{name: public, namespace: shared, sectionName: web, port: 443, odd: 1}, "
                       "{name: front, namespace: lobby}, {name: near, namespace: shared}, {name: "
                       "mine, namespace: lobby}, {name: other, namespace: shared}"),
            arena_printf(f->a,
                         "[{sectionName: web, port: 443, name: edge, namespace: infra}, {name: "
                         "front, namespace: lobby}, {name: near, namespace: team-research}, "
                         "{name: %s}, {name: %s}]",
                         host_name(f, "lobby", "mine"), host_name(f, "shared", "other"))
                .p);
    assert_str(f->warnings, "");

    /* Not shown now: a name alone leads nowhere. */
    there_are(f, "{gateways: []}");
    assert_true(is_denied(json_str(json_get(
        json_first(parents_of(f, "HTTPRoute", "{name: public, namespace: shared}")), "name"))));
    assert_true(is_denied(json_str(json_get(
        json_first(parents_of(f, "HTTPRoute", "{name: edge, namespace: infra}")), "name"))));
    there_are(f, COPIES);
    f->tenant.shown.is = NULL;
    assert_true(is_denied(json_str(json_get(
        json_first(parents_of(f, "HTTPRoute", "{name: public, namespace: shared}")), "name"))));
}

static void routes_to_shown_gateways_need_listed_hosts(void **state)
{
    static const char *const cases[][2] = {
        {"parentRefs: ["
         "{name: public, namespace: shared}]",
         "spec.hostnames: a route to a Gateway of the host without one would take"},
        {"hostnames: [], parentRefs: [{name: public, namespace: shared}]",
         "spec.hostnames: a route"},
        {"hostnames: {a: b.team.example}, parentRefs: [{name: public, namespace: shared}]",
         "spec.hostnames: a route"},
        {"hostnames: [a.example, bank.example], parentRefs: [{name: public, namespace: shared}]",
         "spec.hostnames: host name \"bank.example\" is not one of sync.fromHost.gateways.hosts"},
        {"hostnames: ['*.team.example'], parentRefs: [{name: public, namespace: shared}]",
         "spec.hostnames: host name \"*.team.example\" covers names of several labels, which "
         "sync.fromHost.gateways.wildcards does not admit"},
        {"hostnames: ['*.example'], parentRefs: [{name: public, namespace: shared}]",
         "\"*.example\" is not"},
        {"hostnames: [a.b.team.example], parentRefs: [{name: public, namespace: shared}]",
         "\"a.b.team.example\" is not"},
        {"hostnames: ['*.b.team.example'], parentRefs: [{name: public, namespace: shared}]",
         "is not"},
        {"hostnames: [[a.example]], parentRefs: [{name: public, namespace: shared}]", "is not"},
        {"hostnames: [bank.example], parentRefs: [{name: mine, namespace: lobby}, {name: public, "
         "namespace: shared}]",
         "\"bank.example\" is not"},
    };
    struct fixture *f = *state;

    there_are(f, COPIES);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(f, "HTTPRoute", cases[i][0], cases[i][1]);
    /* Its own Gateway has listeners that were judged. */
    spec_of(f, "HTTPRoute",
            "hostnames: [bank.example], parentRefs: [{name: mine, namespace: lobby}]");
}

static void wildcards_need_their_own_setting(void **state)
{
    static const char setting[] = "gateways: {enabled: true, wildcards: true, hosts: ";
    struct fixture *f = *state;
    const char *at = strstr(CONFIG, "  fromHost:\n    gateways: {enabled: true, hosts: ");
    size_t before = (size_t)(at - CONFIG) + strlen("  fromHost:\n    ");

    assert_non_null(at);
    use_config(f, arena_printf(f->a, "%.*s%s%s", (int)before, CONFIG, setting,
                               CONFIG + before + strlen("gateways: {enabled: true, hosts: "))
                      .p);
    there_are(f, COPIES);
    spec_of(f, "HTTPRoute",
            "hostnames: ['*.team.example', b.team.example], parentRefs: [{name: public, namespace: "
            "shared}]");
    assert_refused(
        f, "HTTPRoute",
        "hostnames: ['*.b.team.example'], parentRefs: [{name: public, namespace: shared}]",
        "\"*.b.team.example\" is not one of sync.fromHost.gateways.hosts");
    assert_refused(f, "HTTPRoute",
                   "hostnames: ['*.example'], parentRefs: [{name: public, namespace: shared}]",
                   "\"*.example\" is not");
    assert_refused(f, "HTTPRoute",
                   "hostnames: [a.b.team.example], parentRefs: [{name: public, namespace: shared}]",
                   "is not");
}

/* The reasons of a route's status would say which listeners the host's has. */
static void listeners_that_are_not_shown_lead_nowhere(void **state)
{
    static const struct {
        const char *section;
        bool leads;
    } cases[] = {
        {"sectionName: web", true},
        {"port: 443", true},
        {"sectionName: web, port: 443", true},
        {"sectionName: bank", false},
        {"port: 8443", false},
        {"sectionName: web, port: 8443", false},
    };
    struct fixture *f = *state;

    there_are(f, COPIES);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *ref = json_first(parents_of(
            f, "HTTPRoute",
            arena_printf(f->a, "{name: public, namespace: shared, %s}", cases[i].section).p));

        if (is_denied(json_str(json_get(ref, "name"))) == cases[i].leads ||
            (json_get(ref, "namespace") != NULL) != cases[i].leads)
            fail_msg("%s", cases[i].section);
    }
    assert_non_null(strstr(arena_cstr(f->a, f->warnings),
                           "namespace \"shared\" has no Gateway \"public\" with a listener"));
}

static void parents_of_the_host_come_up(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object_of(f, "HTTPRoute",
                         "hostnames: [a.example], parentRefs: [{name: public, namespace: shared}]");
    cJSON *host = doc(f, "{metadata: {generation: 4}, status: {parents: [{parentRef: {name: edge, "
                         "namespace: other}, controllerName: c/c, conditions: []}, {parentRef: "
                         "{name: edge, namespace: infra, sectionName: x}, controllerName: c/c, "
                         "conditions: [{type: Accepted, status: 'False', reason: Conflicted, "
                         "message: 'infra/edge: taken by team-b/r'}]}]}}");

    there_are(f, COPIES);
    assert_json(
        translate_kind_status_up(f->a, &f->tenant, translate_kind_rules(DOWN_HTTP_ROUTES), host, v),
        "{parents: [{parentRef: {namespace: shared, name: public}, controllerName: c/c, "
        "conditions: [{type: Accepted, status: 'False', reason: Conflicted, message: "
        "reported by the host cluster}]}]}");

    v = object_of(f, "BackendTLSPolicy", TARGET);
    host = doc(f, arena_printf(f->a, "{metadata: {generation: 4}, status: {ancestors: [%s, %s]}}",
                               ancestor(f, "namespace: infra", "edge"),
                               ancestor(f, "namespace: other", "edge"))
                      .p);
    assert_json(
        translate_kind_status_up(f->a, &f->tenant, translate_kind_rules(DOWN_BACKEND_TLS), host, v),
        arena_printf(f->a, "{ancestors: [%s]}", ancestor(f, "namespace: shared", "public")).p);
}

static void the_status_of_a_gateway_comes_up(void **state)
{
    struct fixture *f = *state;
    cJSON *host = doc(f, "{metadata: {name: h, generation: 2}, status: {odd: 1, addresses: [{type: "
                         "IPAddress, value: 192.0.2.1}], conditions: [{type: Programmed, status: "
                         "'True', observedGeneration: 2}], listeners: [{name: web, "
                         "attachedRoutes: 2, supportedKinds: [{kind: HTTPRoute}], conditions: "
                         "[]}]}}");

    assert_json(translate_kind_status_up(f->a, &f->tenant, translate_kind_rules(DOWN_GATEWAYS),
                                         host, object_of(f, "Gateway", "")),
                "{addresses: [{type: IPAddress, value: 192.0.2.1}], conditions: [{type: "
                "Programmed, status: 'True', observedGeneration: 4}], listeners: [{name: web, "
                "attachedRoutes: 2, supportedKinds: [{kind: HTTPRoute}], conditions: []}]}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gateways_go_down_by_list),
        TEST(gateways_refused),
        TEST(listeners_for_patterns_can_be_off),
        TEST(shown_gateways_are_the_hosts),
        TEST(routes_to_shown_gateways_need_listed_hosts),
        TEST(wildcards_need_their_own_setting),
        TEST(listeners_that_are_not_shown_lead_nowhere),
        TEST(parents_of_the_host_come_up),
        TEST(secrets_of_other_namespaces_need_a_grant),
        TEST(a_name_is_no_path),
        TEST(backend_policies),
        TEST(ancestors_are_the_tenants),
        TEST(routes_go_down_by_rows),
        TEST(parents_are_gateways),
        TEST(backends_of_other_namespaces_need_a_grant),
        TEST(a_gateway_decides_whose_routes_it_takes),
        TEST(parents_come_up_by_the_tenants_names),
        TEST(the_status_of_a_gateway_comes_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
