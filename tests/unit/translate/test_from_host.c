/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the host as sync.fromHost shows them: what is cut, what is never shown, and what pods
 * and claims may name. */

#include "test.h"

#define ALL                                                                                        \
    "policy: {labels: {allow: [shown.example/, argocd.argoproj.io/]}, annotations: {allow: "       \
    "[seen, "                                                                                      \
    "meta.helm.sh/release-name]}, "                                                                \
    "storageClasses: [fast]}\n"                                                                    \
    "sync: {fromHost: {ingressClasses: {enabled: true, selector: {matchLabels: {for: all}}},"      \
    " runtimeClasses: {enabled: true}, priorityClasses: {enabled: true},"                          \
    " storageClasses: {enabled: true}, deviceClasses: {enabled: true},"                            \
    " gatewayClasses: {enabled: true}, gateways: {enabled: true, hosts: [a.example], "             \
    "mappings: {byName: {a/*: b/*}}}, csiDrivers: {enabled: true}, csiNodes: {enabled: true},"     \
    " csiStorageCapacities: {enabled: true},"                                                      \
    " configMaps: {enabled: true, mappings: {byName: {a/*: b/*}}},"                                \
    " secrets: {enabled: true, mappings: {byName: {a/*: b/*}}},"                                   \
    " services: {enabled: true, mappings: {byName: {a/*: b/*}}},"                                  \
    " customResources: {widgets.example.com: {enabled: true, scope: Cluster}}}}\n"

/* gold, silver and bulk are shown, of every kind. */
static bool shown_by_name(void *ctx, enum config_from_kind kind, struct str ns, struct str name)
{
    (void)ctx;
    (void)kind;
    (void)ns;
    return str_eqc(name, "gold") || str_eqc(name, "silver") || str_eqc(name, "bulk");
}

static int setup(void **state)
{
    struct fixture *f = fixture_new(ALL);

    f->tenant.shown.is = shown_by_name;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static cJSON *up(struct fixture *f, enum config_from_kind kind, const char *host, const char *ns,
                 const char *name)
{
    return translate_from_host(f->a, &f->tenant, config_from_row(&f->config, kind), doc(f, host),
                               str_c(ns), str_c(name));
}

#define OF_THE_HOST                                                                                \
    "uid: 8d0b, resourceVersion: '7', generation: 3, creationTimestamp: '2026-01-01T00:00:00Z',"   \
    "ownerReferences: [{kind: Node, name: h1}], finalizers: [x/y], managedFields: [{manager: m}],"
#define NOTES "annotations: {sublet.dev/from-host: sync}"

static const struct {
    enum config_from_kind kind;
    const char *ns, *name, *host, *want; /* want NULL: not shown */
} CASES[] = {
    {FROM_INGRESS_CLASSES, "", "gold",
     "{metadata: {name: gold, " OF_THE_HOST " labels: {for: all, shown.example/a: b, sublet.dev/x: "
     "y, argocd.argoproj.io/instance: theirs}, annotations: {seen: 'yes', "
     "meta.helm.sh/release-name: theirs, hidden: h, ingressclass.kubernetes.io/is-default-class: "
     "'true'}}, spec: {controller: e.com/c, parameters: {kind: Secret, name: s, namespace: n}}}",
     "{metadata: {name: gold, labels: {shown.example/a: b}, annotations: {seen: 'yes', "
     "ingressclass.kubernetes.io/is-default-class: 'true', sublet.dev/from-host: sync}},"
     " spec: {controller: e.com/c}}"},
    {FROM_INGRESS_CLASSES, "", "gold", "{metadata: {name: gold, labels: {for: some}}}", NULL},
    {FROM_INGRESS_CLASSES, "", "gold",
     "{metadata: {name: gold, labels: {for: all, sublet.dev/cluster: other}}}", NULL},
    {FROM_RUNTIME_CLASSES, "", "kata",
     "{metadata: {name: kata}, handler: kata-qemu-17, overhead: {podFixed: {cpu: 1}},"
     " scheduling: {nodeSelector: {rack: r1}, tolerations: [{operator: Exists}]}}",
     "{metadata: {name: kata, " NOTES "}, handler: kata}"},
    {FROM_PRIORITY_CLASSES, "", "high",
     "{metadata: {name: high}, value: 1000, preemptionPolicy: Never, globalDefault: true,"
     " description: rack 7}",
     "{metadata: {name: high, " NOTES "}, value: 1000, preemptionPolicy: Never}"},
    {FROM_PRIORITY_CLASSES, "", "system-x", "{metadata: {name: system-x}, value: 2000000000}",
     NULL},
    {FROM_STORAGE_CLASSES, "", "bulk",
     "{metadata: {name: bulk, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}},"
     " provisioner: p, reclaimPolicy: Retain, volumeBindingMode: Immediate, parameters:"
     " {csi.storage.k8s.io/provisioner-secret-name: s}, mountOptions: [ro], allowedTopologies:"
     " [{matchLabelExpressions: []}]}",
     "{metadata: {name: bulk, " NOTES "}, provisioner: p, reclaimPolicy: Retain,"
     " volumeBindingMode: Immediate}"},
    {FROM_STORAGE_CLASSES, "", "fast", "{metadata: {name: fast}, provisioner: p}", NULL},
    {FROM_DEVICE_CLASSES, "", "gpu",
     "{metadata: {name: gpu}, spec: {selectors: [{cel: {expression: 'device.attributes[x] == u'}}],"
     " config: [{opaque: {driver: d, parameters: {key: secret}}}],"
     " extendedResourceName: e.com/gpu}}",
     "{metadata: {name: gpu, " NOTES "}, spec: {extendedResourceName: e.com/gpu}}"},
    {FROM_GATEWAY_CLASSES, "", "lb",
     "{metadata: {name: lb}, spec: {controllerName: e.com/lb, parametersRef: {name: s}}, status:"
     " {more: 1, supportedFeatures: [{name: HTTPRoute, more: 1}], conditions: [{type: Accepted,"
     " status: 'True', reason: Accepted, message: by the Secret s, observedGeneration: 3,"
     " lastTransitionTime: t}]}}",
     "{metadata: {name: lb, " NOTES "}, spec: {controllerName: e.com/lb}, status: {conditions:"
     " [{type: Accepted, status: 'True', reason: Accepted, message: reported by the host cluster,"
     " lastTransitionTime: t}], supportedFeatures: [{name: HTTPRoute}]}}"},
    {FROM_CSI_DRIVERS, "", "d",
     "{metadata: {name: d}, spec: {attachRequired: true, tokenRequests: [{audience: a}],"
     " volumeLifecycleModes: [Persistent], nodeAllocatableUpdatePeriodSeconds: 9}}",
     "{metadata: {name: d, " NOTES "}, spec: {attachRequired: true, volumeLifecycleModes:"
     " [Persistent]}}"},
    {FROM_CSI_NODES, "", "node-1",
     "{metadata: {name: node-1, " OF_THE_HOST "}, spec: {drivers: [{name: d, nodeID: i-0abc,"
     " topologyKeys: [z], allocatable: {count: 5}}]}}",
     "{metadata: {name: node-1, " NOTES "}, spec: {drivers: [{name: d, nodeID: node-1,"
     " topologyKeys: [z], allocatable: {count: 5}}]}}"},
    {FROM_CSI_NODES, "", "hidden-1", "{metadata: {name: hidden-1}, spec: {drivers: []}}", NULL},
    {FROM_CSI_NODES, "", "own-1", "{metadata: {name: own-1}, spec: {drivers: []}}", NULL},
    {FROM_CSI_STORAGE_CAPACITIES, "kube-system", "c",
     "{metadata: {name: c, namespace: csi}, storageClassName: bulk, capacity: 1Gi, nodeTopology:"
     " {matchLabels: {topology.kubernetes.io/zone: z, kubernetes.io/hostname: node-1}}}",
     "{metadata: {name: c, namespace: kube-system, " NOTES "}, storageClassName: bulk, capacity:"
     " 1Gi, nodeTopology: {matchLabels: {topology.kubernetes.io/zone: z, kubernetes.io/hostname:"
     " node-1}}}"},
    {FROM_CSI_STORAGE_CAPACITIES, "kube-system", "c",
     "{metadata: {name: c}, storageClassName: bulk, nodeTopology: {matchLabels:"
     " {kubernetes.io/hostname: hidden-1}}}",
     NULL},
    {FROM_CSI_STORAGE_CAPACITIES, "kube-system", "c",
     "{metadata: {name: c}, storageClassName: bulk, nodeTopology: {matchLabels: {rack: r1}}}",
     NULL},
    {FROM_CSI_STORAGE_CAPACITIES, "kube-system", "c",
     "{metadata: {name: c}, storageClassName: bulk, nodeTopology: {matchExpressions: [{key: rack,"
     " operator: Exists}]}}",
     NULL},
    {FROM_CSI_STORAGE_CAPACITIES, "kube-system", "c",
     "{metadata: {name: c}, storageClassName: other, nodeTopology: {}}", NULL},
    {FROM_CONFIG_MAPS, "b", "m",
     "{metadata: {name: m, namespace: a, " OF_THE_HOST "}, immutable: true, data: {k: v},"
     " binaryData: {b: YQ==}}",
     "{metadata: {name: m, namespace: b, " NOTES "}, data: {k: v}, binaryData: {b: YQ==}}"},
    {FROM_CONFIG_MAPS, "b", "kube-root-ca.crt",
     "{metadata: {name: kube-root-ca.crt, namespace: a}, data: {ca.crt: c}}", NULL},
    {FROM_SECRETS, "b", "s",
     "{metadata: {name: s, namespace: a}, type: kubernetes.io/tls, immutable: true, data: {tls.crt:"
     " YQ==, tls.key: YQ==}}",
     "{metadata: {name: s, namespace: b, " NOTES "}, type: kubernetes.io/tls, data: {tls.crt:"
     " YQ==, tls.key: YQ==}}"},
    {FROM_SECRETS, "b", "s",
     "{metadata: {name: s}, type: kubernetes.io/service-account-token, data: {token: YQ==}}", NULL},
    {FROM_SECRETS, "b", "s", "{metadata: {name: s}, type: bootstrap.kubernetes.io/token}", NULL},
    {FROM_SECRETS, "b", "s", "{metadata: {name: s}, type: helm.sh/release.v1}", NULL},
    {FROM_GATEWAYS, "b", "g",
     "{metadata: {name: g, namespace: a, " OF_THE_HOST " annotations: {hidden: h}}, spec: "
     "{gatewayClassName: c, addresses: [{value: 10.0.0.1}], infrastructure: {labels: {a: b}}, tls: "
     "{backend: {clientCertificateRef: {name: s}}}, listeners: [{name: web, hostname: a.example, "
     "port: 443, protocol: HTTPS, odd: 1, tls: {mode: Terminate, options: {o: p}, certificateRefs: "
     "[{name: cert}]}, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {t: "
     "x}}}, kinds: [{group: g, kind: HTTPRoute, odd: 1}]}}, {name: tls, port: 444, protocol: TLS, "
     "tls: {mode: Passthrough}}, {name: plain, port: 80, protocol: HTTP}]}, status: {addresses: "
     "[{type: IPAddress, value: 192.0.2.1}], odd: 1, conditions: [{type: Accepted, status: 'True', "
     "reason: r, message: by infra/s, observedGeneration: 7}], listeners: [{name: web, "
     "attachedRoutes: 12, supportedKinds: [{group: g, kind: HTTPRoute}], conditions: [{type: R, "
     "message: infra/cert}]}]}}",
     "{metadata: {name: g, namespace: b, " NOTES
     "}, spec: {gatewayClassName: c, listeners: [{name: "
     "web, hostname: a.example, port: 443, protocol: HTTPS, tls: {mode: Terminate, options: "
     "{sublet.dev/from-host: sync}}, allowedRoutes: {kinds: [{group: g, kind: HTTPRoute}], "
     "namespaces: {from: All}}}, {name: tls, port: 444, protocol: TLS, tls: {mode: Passthrough}, "
     "allowedRoutes: {namespaces: {from: All}}}, {name: plain, port: 80, protocol: HTTP, "
     "allowedRoutes: {namespaces: {from: All}}}]}, status: {addresses: [{type: IPAddress, value: "
     "192.0.2.1}], conditions: [{type: Accepted, status: 'True', reason: r, message: reported by "
     "the host cluster}], listeners: [{name: web, attachedRoutes: 0, supportedKinds: [{group: g, "
     "kind: HTTPRoute}], conditions: [{type: R, message: reported by the host cluster}]}]}}"},
    /* Listeners of other host names are those of other tenants. */
    {FROM_GATEWAYS, "b", "g",
     "{metadata: {name: g, namespace: a}, spec: {gatewayClassName: c, listeners: [{name: bank, "
     "hostname: bank.example, port: 1}, {name: wild, hostname: '*.example', port: 2}, {name: "
     "below, hostname: '*.a.example', port: 3}, {name: null-host, hostname: null, port: 4}, {name: "
     "odd, hostname: [a.example], port: 5}]}, status: {listeners: [{name: bank, conditions: []}, "
     "{name: wild, conditions: []}, {name: gone, conditions: []}, {conditions: []}, {name: "
     "[wild]}, {name: null-host, conditions: []}, {name: odd, conditions: []}]}}",
     "{metadata: {name: g, namespace: b, " NOTES
     "}, spec: {gatewayClassName: c, listeners: [{name: wild, hostname: '*.example', port: 2, "
     "allowedRoutes: {namespaces: {from: All}}}, {name: null-host, port: 4, allowedRoutes: "
     "{namespaces: {from: All}}}]}, status: {listeners: [{name: wild, conditions: []}, {name: "
     "null-host, conditions: []}]}}"},
    {FROM_GATEWAYS, "b", "g",
     "{metadata: {name: g, namespace: a}, spec: {gatewayClassName: c, listeners: [{name: bank, "
     "hostname: bank.example, port: 1}]}}",
     NULL},
    {FROM_GATEWAYS, "b", "g",
     "{metadata: {name: g, namespace: a, labels: {sublet.dev/cluster: other}}, spec: "
     "{gatewayClassName: c}}",
     NULL},
    {FROM_SERVICES, "b", "db",
     "{metadata: {name: x, namespace: a, " OF_THE_HOST " annotations: {hidden: h}}, spec: {type: "
     "LoadBalancer, selector: {app: db}, clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], ipFamilies: "
     "[IPv4], ipFamilyPolicy: SingleStack, externalIPs: [1.2.3.4], loadBalancerIP: 1.2.3.4, ports: "
     "[{name: sql, port: 5432, protocol: TCP, targetPort: pg, nodePort: 30007, appProtocol: p}]}, "
     "status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}",
     "{metadata: {name: db, namespace: b, " NOTES "}, spec: {type: ClusterIP, clusterIP: 10.0.0.9, "
     "clusterIPs: [10.0.0.9], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{name: sql, "
     "port: 5432, protocol: TCP, appProtocol: p, targetPort: 5432}]}}"},
    {FROM_SERVICES, "b", "db",
     "{metadata: {name: db, namespace: a, labels: {sublet.dev/cluster: other}}, spec: {type: "
     "ClusterIP, clusterIP: 10.0.0.9}}",
     NULL},
    {FROM_SERVICES, "b", "db",
     "{metadata: {name: db, namespace: a}, spec: {type: ClusterIP, clusterIP: None}}", NULL},
    {FROM_SERVICES, "b", "db",
     "{metadata: {name: db, namespace: a}, spec: {type: ExternalName, externalName: x.example}}",
     NULL},
    {FROM_SERVICES, "b", "db", "{metadata: {name: db, namespace: a}, spec: {type: ClusterIP}}",
     NULL},
    {FROM_SERVICES, "b", "kubernetes",
     "{metadata: {name: kubernetes, namespace: default}, spec: {type: ClusterIP, clusterIP: "
     "10.0.0.1}}",
     NULL},
    {FROM_SECRETS, "b", "s",
     "{metadata: {name: s, labels: {app.kubernetes.io/managed-by: sublet}}, type: Opaque}", NULL},
    {FROM_SECRETS, "b", "s",
     "{metadata: {name: s, labels: {sublet.dev/cluster: other}}, type: Opaque}", NULL},
    {FROM_CUSTOM_RESOURCES, "", "w",
     "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, " OF_THE_HOST "}, spec: {a:"
     " {b: [1]}}, status: {ok: true}}",
     "{metadata: {name: w, " NOTES "}, spec: {a: {b: [1]}}, status: {ok: true}}"},
};

static void tables(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(CASES); i++) {
        cJSON *got = up(f, CASES[i].kind, CASES[i].host, CASES[i].ns, CASES[i].name);

        if (CASES[i].want)
            assert_json(got, CASES[i].want);
        else
            assert_null(got);
    }
}

static void patched_custom_resources(void **state)
{
    struct fixture *f = *state;

    use_config(f, "sync: {fromHost: {customResources: {widgets.example.com: {enabled: true, scope: "
                  "Cluster, patches: [{path: 'spec.servers[*].token', drop: true},"
                  " {path: spec.*.owner, value: host}, {path: spec.region, value: {name: eu}},"
                  " {path: status.address, drop: true}, {path: data, drop: true}]}}}}");
    assert_json(
        up(f, FROM_CUSTOM_RESOURCES,
           "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, " OF_THE_HOST "},"
           " spec: {servers: [{name: a, token: t1}, {token: t2}], team: {owner: x, size: 1},"
           " region: r7}, status: {address: 10.0.0.1, ready: true}, data: {k: v}, more: [1]}",
           "", "w"),
        "{metadata: {name: w, " NOTES "}, spec: {servers: [{name: a}, {}], team: {owner: host,"
        " size: 1}, region: {name: eu}}, status: {ready: true}, more: [1]}");
    /* A value is put where one is, and nowhere else. */
    assert_json(up(f, FROM_CUSTOM_RESOURCES, "{metadata: {name: w}, spec: {size: 1}, status: text}",
                   "", "w"),
                "{metadata: {name: w, " NOTES "}, spec: {size: 1}, status: text}");
}

/* A class that a Gateway could not name is not shown by sync.toHost.gatewayApi. */
static void named_gateway_classes(void **state)
{
    struct fixture *f = *state;

    use_config(f,
               "sync: {toHost: {gatewayApi: {enabled: true, classes: [lb], hosts: [a.example]}}}");
    assert_non_null(up(f, FROM_GATEWAY_CLASSES, "{metadata: {name: lb}, spec: {}}", "", "lb"));
    assert_null(up(f, FROM_GATEWAY_CLASSES, "{metadata: {name: other}, spec: {}}", "", "other"));
}

/* Places of storage are the zone, the region, a shown node, and what the admin lists. */
static void listed_topology_keys(void **state)
{
    struct fixture *f = *state;

    use_config(f, "policy: {storageClasses: [bulk]}\n"
                  "sync: {fromHost: {csiStorageCapacities: {enabled: true, topologyKeys: "
                  "[topology.example.com/rack]}}}");
    assert_non_null(up(f, FROM_CSI_STORAGE_CAPACITIES,
                       "{metadata: {name: c}, storageClassName: bulk, nodeTopology: {matchLabels: "
                       "{topology.example.com/rack: r1, topology.kubernetes.io/zone: z}}}",
                       "kube-system", "c"));
    assert_null(up(f, FROM_CSI_STORAGE_CAPACITIES,
                   "{metadata: {name: c}, storageClassName: bulk, nodeTopology: {matchLabels: "
                   "{topology.example.com/rack: r1, rack: r1}}}",
                   "kube-system", "c"));
}

static cJSON *slice_up(struct fixture *f, const char *host, const char *name, const char *service)
{
    return translate_from_host_slice(f->a, &f->tenant,
                                     config_from_row(&f->config, FROM_ENDPOINT_SLICES),
                                     doc(f, host), STR("b"), str_c(name), str_c(service));
}

/* Addresses, ports and conditions; not the pods, nodes, zones and host names of the host. */
static void headless_services(void **state)
{
    struct fixture *f = *state;
    struct str one, other;

    use_config(f, "sync: {fromHost: {services: {enabled: true, headless: true, mappings: {byName: "
                  "{a/*: b/*}}}}}");
    assert_json(up(f, FROM_SERVICES,
                   "{metadata: {name: db, namespace: a}, spec: {type: ClusterIP, clusterIP: None, "
                   "clusterIPs: [None], selector: {app: db}, publishNotReadyAddresses: true, "
                   "ports: [{port: 5432, targetPort: 15432}]}}",
                   "b", "db"),
                "{metadata: {name: db, namespace: b, " NOTES "}, spec: {type: ClusterIP, "
                "clusterIP: None, clusterIPs: [None], ports: [{port: 5432, targetPort: 5432}]}}");
    assert_null(up(f, FROM_SERVICES,
                   "{metadata: {name: x}, spec: {type: ExternalName, externalName: x.example}}",
                   "b", "x"));
    assert_json(
        slice_up(
            f,
            "{metadata: {name: db-x7, namespace: a, generateName: db-, " OF_THE_HOST
            " labels: {kubernetes.io/service-name: db, endpointslice.kubernetes.io/managed-by:"
            " endpointslice-controller.k8s.io, team: host}}, addressType: IPv4, endpoints:"
            " [{addresses: [10.1.2.3], hostname: db-0, nodeName: h1, zone: z, hints: {forZones:"
            " [{name: z}]}, targetRef: {kind: Pod, name: db-0, namespace: a, uid: u},"
            " deprecatedTopology: {k: v}, more: 1, conditions: {ready: false, serving: true,"
            " terminating: true, more: x}}], ports: [{name: sql, port: 15432, protocol: TCP,"
            " appProtocol: p, more: 1}], more: 1}",
            "db-x7", "db"),
        "{metadata: {name: db-x7, namespace: b, " NOTES ", labels: {kubernetes.io/service-name: db,"
        " endpointslice.kubernetes.io/managed-by: sublet.dev}}, addressType: IPv4, endpoints:"
        " [{addresses: [10.1.2.3], conditions: {ready: false, serving: true, terminating: true}}],"
        " ports: [{name: sql, port: 15432, protocol: TCP, appProtocol: p}]}");
    assert_json(slice_up(f, "{metadata: {name: e}, addressType: IPv6, endpoints: null}", "e", "db"),
                "{metadata: {name: e, namespace: b, " NOTES ", labels: {kubernetes.io/service-name:"
                " db, endpointslice.kubernetes.io/managed-by: sublet.dev}}, addressType: IPv6, "
                "endpoints: []}");
    assert_null(slice_up(f, "{metadata: {name: e}, addressType: FQDN}", "e", "db"));
    assert_null(
        slice_up(f, "{metadata: {name: e, labels: {sublet.dev/cluster: other}}, addressType: IPv4}",
                 "e", "db"));

    one = translate_from_host_slice_name(f->a, &f->tenant, STR("db"), STR("postgres-x7"));
    other = translate_from_host_slice_name(f->a, &f->tenant, STR("db"), STR("postgres-x8"));
    assert_true(str_has_prefix(one, STR("db-")) && !str_contains(one, STR("postgres")));
    assert_int_equal(one.n, 19);
    assert_false(str_eq(one, other));
}

static void check_pod(struct fixture *f, const char *spec, const char *error)
{
    cJSON *pod = doc(f, spec);
    int rc = translate_check_pod_classes(&f->tenant, pod, &f->err);

    if (error)
        assert_error(rc, error);
    else
        assert_ok(rc);
}

static void classes_of_pods(void **state)
{
    struct fixture *f = *state;

    check_pod(f, "{metadata: {name: p}, spec: {}}", NULL);
    check_pod(f, "{metadata: {name: p}, spec: {runtimeClassName: gold, priorityClassName: gold}}",
              NULL);
    check_pod(f, "{metadata: {name: p}, spec: {runtimeClassName: other}}",
              "pods \"p\" is forbidden: spec.runtimeClassName: \"other\" is not offered to this "
              "virtual cluster");
    check_pod(f, "{metadata: {name: p}, spec: {priorityClassName: other}}",
              "pods \"p\" is forbidden: spec.priorityClassName: \"other\" is not offered to this "
              "virtual cluster");
    check_pod(f, "{metadata: {name: p}, spec: {priorityClassName: system-node-critical}}", NULL);
    check_pod(f, "{metadata: {name: p, resourceVersion: '7'}, spec: {priorityClassName: other}}",
              NULL);   /* stored when it was shown */
    use_config(f, ""); /* nothing is shown: nothing changes */
    check_pod(f, "{metadata: {name: p}, spec: {runtimeClassName: other}}", NULL);
}

static void check_claim(struct fixture *f, const char *class, const char *error)
{
    cJSON *claim = doc(f, "{metadata: {name: c}, spec: {}}");
    int rc;

    json_set_str(f->a, json_get(claim, "spec"), "storageClassName", str_c(class));
    rc = translate_check_pvc_class(&f->tenant, claim, &f->err);
    if (error)
        assert_error(rc, error);
    else
        assert_ok(rc);
}

static void classes_of_claims(void **state)
{
    struct fixture *f = *state;

    check_claim(f, "fast", NULL);
    check_claim(f, "bulk", NULL);
    check_claim(
        f, "other",
        "persistentvolumeclaims \"c\" is forbidden: spec.storageClassName: \"other\" is not "
        "offered to this virtual cluster");
    use_config(f, "policy: {storageClasses: [fast]}");
    check_claim(f, "bulk",
                "persistentvolumeclaims \"c\" is forbidden: spec.storageClassName: \"bulk\" is not "
                "offered to this virtual cluster");
}

static cJSON *down(struct fixture *f, const char *spec)
{
    cJSON *pod = doc(f, "{metadata: {name: p, namespace: d, uid: u}}"), *host = NULL;
    struct pool_choice none = {0};

    json_set(f->a, pod, "spec", doc(f, spec));
    assert_ok(translate_pod(f->a, &f->tenant, &none, pod, NULL, &host, &f->err));
    return json_get(host, "spec");
}

static void pods_go_down_with_shown_classes(void **state)
{
    struct fixture *f = *state;
    cJSON *spec = down(f, "{runtimeClassName: gold, priorityClassName: silver, priority: 5,"
                          " containers: [{name: c, image: i}]}");

    assert_str(json_str(json_get(spec, "runtimeClassName")), "gold");
    assert_str(json_str(json_get(spec, "priorityClassName")), "silver");
    assert_null(json_get(spec, "priority"));
    spec = down(f, "{runtimeClassName: other, priorityClassName: other,"
                   " containers: [{name: c, image: i}]}");
    assert_null(json_get(spec, "runtimeClassName"));
    assert_null(json_get(spec, "priorityClassName"));
    use_config(f, "");
    spec = down(f, "{runtimeClassName: gold, priorityClassName: gold,"
                   " containers: [{name: c, image: i}]}");
    assert_null(json_get(spec, "runtimeClassName"));
    assert_null(json_get(spec, "priorityClassName"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables, setup, teardown),
        cmocka_unit_test_setup_teardown(patched_custom_resources, setup, teardown),
        cmocka_unit_test_setup_teardown(headless_services, setup, teardown),
        cmocka_unit_test_setup_teardown(named_gateway_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(listed_topology_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_of_pods, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_of_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_go_down_with_shown_classes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
