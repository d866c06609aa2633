/* SPDX-License-Identifier: Apache-2.0 */
/* An object of any shape as each of the kinds that the configuration adds: it is refused in words,
 * or what comes of it names nothing outside the tenant and the admin's lists, is the same each
 * time, and needs no update of itself. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/cidr.h>
#include <sublet/translate_kind.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char CONFIG[] =
    "policy: {annotations: {allow: [nginx.ingress.kubernetes.io/, nginx.org/, nginx.com/, "
    "alb.ingress.kubernetes.io/, haproxy-ingress.github.io/, haproxy.org/]}}\n"
    "sync: {toHost: {networkPolicies: {enabled: true, allowedCIDRs: [10.20.0.0/16]}, ingresses: "
    "{enabled: true, classes: [nginx], hosts: ['*.team.example', fixed.example]}, "
    "podDisruptionBudgets: {enabled: true}, endpointSlices: {enabled: true, allowedCIDRs: "
    "[10.30.0.0/16]}, gateways: {enabled: true, classes: [shared], hosts: ['*.team.example', "
    "fixed.example]}, httpRoutes: {enabled: true}, grpcRoutes: {enabled: true}, "
    "backendTLSPolicies: {enabled: true}, tlsRoutes: "
    "{enabled: true}, serviceAccounts: {enabled: true, annotations: {a.example/role: [one, "
    "team-*]}}, "
    "storageClasses: {enabled: true, provisioners: {a.example: {parameters: {type: [fast]}}}}, "
    "persistentVolumes: {enabled: true, drivers: {a.example: {volumeHandles: [fs-a], "
    "volumeAttributes: {tier: [fast]}}}}, "
    "customResources: {things.team.example: {enabled: true, "
    "patches: [{path: spec.secretName, reference: {kind: Secret}}, {path: 'spec.*[*].name', "
    "reference: {kind: Service}}, {path: spec.selector, selector: {}}, {path: spec.labels, labels: "
    "{}}, {path: 'spec.a[*][*].b', "
    "drop: "
    "true}, {path: spec.c, value: 1}]}}}}";

/* --- what must hold of what is emitted --- */

static bool selects_own(const struct translate_tenant *t, const cJSON *selector)
{
    return str_eq(json_str(json_get(json_get(selector, "matchLabels"), LABEL_CLUSTER)),
                  t->cluster_uid);
}

static void check_peers(const struct translate_tenant *t, const cJSON *peers)
{
    struct cidr range, allowed;

    assert(json_count(peers));
    assert(cidr_parse(STR("10.20.0.0/16"), &allowed));
    json_each(peer, peers)
    {
        const cJSON *block = json_get(peer, "ipBlock");

        assert(json_count(peer) == 1);
        if (block)
            assert(cidr_parse(json_str(json_get(block, "cidr")), &range) &&
                   cidr_within(&range, &allowed));
        else
            assert(selects_own(t, json_get(peer, "podSelector")));
    }
}

static void check_policy(const struct translate_tenant *t, const cJSON *host)
{
    assert(selects_own(t, json_path(host, "spec.podSelector")));
    json_each(rule, json_path(host, "spec.ingress")) check_peers(t, json_get(rule, "from"));
    json_each(rule, json_path(host, "spec.egress")) check_peers(t, json_get(rule, "to"));
}

static bool is_listed(struct str host)
{
    return str_eqc(host, "fixed.example") || str_has_suffix(host, STR(".team.example"));
}

static bool is_translated(struct str name)
{
    return name.n > 17 && name.p[name.n - 17] == '-';
}

/* "NAME", or "NAMESPACE/NAME" of the host namespace. */
static void check_name(const struct translate_tenant *t, struct str name)
{
    size_t slash = str_find(name, '/');

    if (slash < name.n) {
        assert(str_eq(str_sub(name, 0, slash), t->host_namespace));
        name = str_from(name, slash + 1);
    }
    assert(is_translated(name));
}

/* Members that name objects and hosts, wherever they are. */
static void check_balancer_value(const struct translate_tenant *t, const cJSON *value)
{
    json_each(member, value)
    {
        struct str key = json_is_object(value) ? json_key(member) : STR("");

        assert(!str_has_prefix(key, STR("targetGroupA")) && !str_eqc(key, "targetGroupName"));
        if (str_eqc(key, "serviceName") || str_eqc(key, "secretName"))
            check_name(t, json_str(member));
        if (str_eqc(key, "hostHeaderConfig"))
            json_each(one, json_get(member, "values")) assert(is_listed(json_str(one)));
        check_balancer_value(t, member);
    }
}

static void check_note(const struct translate_tenant *t, struct str key, struct str value)
{
    static const char *const names[] = {"-secret", "default-backend", "/jwt-key", "-services"};
    static const char *const json[] = {"/auth-idp-oidc", "/actions.", "/conditions."};
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;

    for (size_t i = 0; i < COUNT(names); i++)
        while (value.p && str_has_suffix(key, str_c(names[i])) && !str_has_prefix(key, STR("alb.")))
            check_name(t, str_cut(&value, ','));
    while (value.p && str_has_suffix(key, STR("/server-alias")))
        assert(is_listed(str_cut(&value, ',')));
    for (size_t i = 0; i < COUNT(json); i++) {
        if (!str_has_prefix(key, STR("alb.")) || !str_contains(key, str_c(json[i])))
            continue;
        assert(!json_parse(a, value, &tree, NULL));
        check_balancer_value(t, tree);
    }
    arena_free(a);
}

static void check_notes(const struct translate_tenant *t, const cJSON *host)
{
    json_each(note, json_path(host, "metadata.annotations"))
        check_note(t, json_key(note), json_str(note));
}

static void check_ingress(const struct translate_tenant *t, const cJSON *host)
{
    check_notes(t, host);
    assert(str_eqc(json_str_at(host, "spec.ingressClassName"), "nginx"));
    assert(!json_path(host, "spec.defaultBackend"));
    json_each(rule, json_path(host, "spec.rules")) assert(is_listed(json_str_at(rule, "host")));
    json_each(tls, json_path(host, "spec.tls"))
    {
        json_each(one, json_get(tls, "hosts")) assert(is_listed(json_str(one)));
    }
}

static bool is_bare(void *ctx, struct str ns, struct str name)
{
    (void)ctx;
    (void)ns;
    return name.n % 2;
}

static void check_slice(const struct translate_tenant *t, const cJSON *host)
{
    struct cidr address, allowed;

    (void)t;
    assert(cidr_parse(STR("10.30.0.0/16"), &allowed));
    assert(json_str(json_get(json_path(host, "metadata.labels"), "kubernetes.io/service-name")).n >
           16);
    json_each(endpoint, json_get(host, "endpoints"))
    {
        assert(!json_get(endpoint, "nodeName") && !json_get(endpoint, "targetRef"));
        json_each(one, json_get(endpoint, "addresses"))
            assert(cidr_parse(json_str(one), &address) && cidr_within(&address, &allowed));
    }
}

static void check_budget(const struct translate_tenant *t, const cJSON *host)
{
    const cJSON *selector = json_path(host, "spec.selector");

    assert(!selector || selects_own(t, selector));
}

/* Nothing names a namespace, and every reference has a name of ours. */
static void check_references(const cJSON *value, bool in_reference)
{
    json_each(member, value)
    {
        struct str key = json_is_object(value) ? json_key(member) : STR("");
        bool reference = str_has_suffix(key, STR("Ref")) || str_has_suffix(key, STR("Refs"));

        assert(!str_eqc(key, "namespace"));
        assert(!in_reference || !str_eqc(key, "name") || is_translated(json_str(member)));
        if (json_is_object(value))
            check_references(member, reference);
        else
            check_references(member, in_reference);
    }
}

static void check_route(const struct translate_tenant *t, const cJSON *host)
{
    check_notes(t, host);
    check_references(json_get(host, "spec"), false);
}

static void check_gateway(const struct translate_tenant *t, const cJSON *host)
{
    const cJSON *class = json_path(host, "spec.gatewayClassName");

    check_route(t, host);
    assert(!class || str_eqc(json_str(class), "shared"));
    assert(!json_path(host, "spec.infrastructure") &&
           !json_count(json_path(host, "spec.addresses")));
    json_each(listener, json_path(host, "spec.listeners"))
    {
        const cJSON *from = json_path(listener, "allowedRoutes.namespaces.from");

        assert(is_listed(json_str(json_get(listener, "hostname"))));
        assert(!json_path(listener, "tls.options"));
        assert(!json_get(listener, "allowedRoutes") || str_eqc(json_str(from), "Same"));
    }
}

static void check_backend_tls(const struct translate_tenant *t, const cJSON *host)
{
    check_route(t, host);
    assert(!json_path(host, "spec.options"));
    json_each(target, json_path(host, "spec.targetRefs"))
        assert(str_eqc(json_str(json_get(target, "kind")), "Service"));
}

static void check_request(const cJSON *one)
{
    assert(!json_get(one, "adminAccess") && !json_get(one, "tolerations"));
}

static void check_device_claim(const struct translate_tenant *t, const cJSON *host)
{
    (void)t;
    assert(!json_get(host, "status"));
    json_each(request, json_path(host, "spec.devices.requests"))
    {
        check_request(request);
        check_request(json_get(request, "exactly"));
        json_each(one, json_get(request, "firstAvailable")) check_request(one);
    }
}

static void check_account(const struct translate_tenant *t, const cJSON *host)
{
    (void)t;
    assert(json_count(host) == 4);
    assert(json_get(host, "automountServiceAccountToken") &&
           !json_true(json_get(host, "automountServiceAccountToken")));
    json_each(note, json_path(host, "metadata.annotations"))
    {
        struct str value = json_str(note);

        assert(str_has_prefix(json_key(note), STR("sublet.dev/")) ||
               (str_eqc(json_key(note), "a.example/role") &&
                (str_eqc(value, "one") || str_has_prefix(value, STR("team-")))));
    }
}

static void check_class(const struct translate_tenant *t, const cJSON *host)
{
    (void)t;
    assert(str_eqc(json_str(json_get(host, "provisioner")), "a.example"));
    assert(!json_count(json_get(host, "mountOptions")));
    json_each(note, json_path(host, "metadata.annotations"))
        assert(str_has_prefix(json_key(note), STR("sublet.dev/")));
    json_each(one, json_get(host, "parameters"))
        assert(!strcmp(one->string, "type") && str_eqc(json_str(one), "fast"));
}

static bool has_suffix_of_ours(struct str name)
{
    return name.n > 17 && name.p[name.n - 17] == '-';
}

static void check_volume(const struct translate_tenant *t, const cJSON *host)
{
    const cJSON *spec = json_get(host, "spec"), *csi = json_get(spec, "csi");

    assert(str_eqc(json_str(json_get(csi, "driver")), "a.example"));
    assert(!json_get(csi, "volumeHandle") ||
           str_eqc(json_str(json_get(csi, "volumeHandle")), "fs-a"));
    assert(str_eq(json_str_at(spec, "claimRef.namespace"), t->host_namespace));
    assert(has_suffix_of_ours(json_str_at(spec, "claimRef.name")));
    assert(!json_count(json_get(spec, "mountOptions")) && !json_get(spec, "storageClassName"));
    json_each(member, csi)
    {
        if (!str_has_suffix(json_key(member), STR("SecretRef")))
            continue;
        assert(str_eq(json_str(json_get(member, "namespace")), t->host_namespace));
        assert(has_suffix_of_ours(json_str(json_get(member, "name"))));
    }
    json_each(one, json_get(csi, "volumeAttributes"))
        assert(!strcmp(one->string, "tier") && str_eqc(json_str(one), "fast"));
}

/* The tenant's other objects are part of the input. */
static const cJSON *related_object(void *ctx, struct arena *a, const char *group,
                                   const char *plural, struct str ns, struct str name)
{
    (void)a;
    (void)group;
    (void)ns;
    json_each(one, json_get(*(cJSON **)ctx, plural))
    {
        if (str_eq(json_str_at(one, "metadata.name"), name))
            return one;
    }
    return NULL;
}

static const cJSON *related_list(void *ctx, struct arena *a, const char *group, const char *plural,
                                 struct str ns)
{
    (void)a;
    (void)group;
    (void)ns;
    return json_get(*(cJSON **)ctx, plural);
}

/* Whole; only its metadata is ours to judge. */
static void check_custom(const struct translate_tenant *t, const cJSON *host)
{
    check_notes(t, host);
    assert(!json_get(host, "status"));
}

static void check_metadata(const struct translate_tenant *t, const cJSON *host)
{
    const cJSON *metadata = json_get(host, "metadata");

    if (str_eqc(json_str(json_get(host, "kind")), "StorageClass") ||
        str_eqc(json_str(json_get(host, "kind")), "PersistentVolume"))
        assert(json_count(metadata) == 3 && !json_get(metadata, "namespace"));
    else /* name, namespace, labels, annotations */
        assert(json_count(metadata) == 4 &&
               str_eq(json_str(json_get(metadata, "namespace")), t->host_namespace));
    assert(str_eq(json_str(json_get(json_get(metadata, "labels"), LABEL_CLUSTER)), t->cluster_uid));
}

/* --- one object as one kind --- */

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    (void)ctx;
    (void)kind;
    (void)optional;
    assert(name.n);
}

/* What is refused, of an object that is stored already. */
static void narrow_one(struct arena *a, const struct translate_tenant *t,
                       const struct kind_rules *rules, const cJSON *v,
                       void (*check)(const struct translate_tenant *t, const cJSON *host))
{
    struct err err, left_out;
    cJSON *ret;

    err_init(&err, a);
    err_init(&left_out, a);
    if (translate_kind_narrowed(a, t, rules, v, &ret, &left_out, &err))
        return;
    assert(translate_kind_is_fence(rules) || translate_kind_goes_with_pods(rules));
    assert(ret && left_out.kind == &ERR_FORBIDDEN);
    check(t, ret);
    check_metadata(t, ret);
}

static void translate_one(struct arena *a, const struct translate_tenant *t,
                          const struct kind_rules *rules, const cJSON *v,
                          void (*check)(const struct translate_tenant *t, const cJSON *host))
{
    cJSON *one, *two, *status;
    struct err err;

    err_init(&err, a);
    translate_kind_refs(a, t, rules, v, on_ref, NULL);
    if (translate_kind(a, t, rules, v, &one, &err)) {
        assert(err.kind == &ERR_FORBIDDEN && err.message.n && str_is_utf8(err.message) && !one);
        narrow_one(a, t, rules, v, check);
        return;
    }
    if (!one)
        return; /* it stays with the tenant */
    check(t, one);
    check_metadata(t, one);
    assert(!translate_kind(a, t, rules, v, &two, &err));
    assert(str_eq(json_text(a, one), json_text(a, two)));
    assert(!translate_kind_update(a, rules, one, two));
    (void)translate_kind_update(a, rules, v, one);
    status = translate_kind_status_up(a, t, rules, v, one);
    assert(!status || json_is_object(status));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static void (*const checks[N_SYNC_DOWN])(const struct translate_tenant *, const cJSON *) = {
        [DOWN_NETWORK_POLICIES] = check_policy,
        [DOWN_INGRESSES] = check_ingress,
        [DOWN_DISRUPTION_BUDGETS] = check_budget,
        [DOWN_ENDPOINT_SLICES] = check_slice,
        [DOWN_GATEWAYS] = check_gateway,
        [DOWN_HTTP_ROUTES] = check_route,
        [DOWN_GRPC_ROUTES] = check_route,
        [DOWN_TLS_ROUTES] = check_route,
        [DOWN_BACKEND_TLS] = check_backend_tls,
        [DOWN_RESOURCE_CLAIMS] = check_device_claim,
        [DOWN_SERVICE_ACCOUNTS] = check_account,
        [DOWN_STORAGE_CLASSES] = check_class,
        [DOWN_VOLUMES] = check_volume};
    struct arena *a = arena_new(0);
    struct config config;
    cJSON *v = NULL;
    struct translate_related related = {&v, is_bare, related_object, related_list, NULL};
    struct translate_tenant t = {.config = &config,
                                 .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
                                 .host_namespace = STR("team"),
                                 .related = &related};
    struct err err;

    err_init(&err, a);
    if (config_load(a, str_c(CONFIG), 0, NULL, NULL, &config, &err))
        abort();
    if (!json_parse(a, (struct str){(const char *)data, size}, &v, NULL) && json_is_object(v)) {
        t.namespaces = translate_namespaces_of(a, json_get(v, "namespaces"));
        for (int kind = 0; kind < N_SYNC_DOWN; kind++)
            translate_one(a, &t, translate_kind_rules((enum sync_down)kind), v, checks[kind]);
        translate_one(a, &t, translate_custom_rules(a, &config.to_host->custom[0]), v,
                      check_custom);
    }
    arena_free(a);
    return 0;
}
