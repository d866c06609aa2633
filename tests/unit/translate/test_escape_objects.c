/* SPDX-License-Identifier: Apache-2.0 */
/* What Services and PersistentVolumeClaims must never do on the host. */
#include "escape.h"

/* ---- Services and claims ---- */

/* They only narrow what a balancer lets through; each is a rule on every node. */
static void source_ranges(void **state)
{
    struct fixture *f = *state;
    struct buf many = BUF_INIT(0);
    cJSON *host = NULL, *none = NULL, *patch;
    const char *format = "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, ports: "
                         "[{port: 80}], loadBalancerSourceRanges: [%s]}}";

    for (unsigned i = 0; i < 64; i++)
        buf_printf(&many, "%s10.%u.0.0/16", i ? ", " : "", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_ok(translate_service(
        f->a, &f->tenant, doc(f, arena_printf(f->a, format, arena_cstr(f->a, buf_str(&many))).p),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_int_equal(json_count(json_path(host, "spec.loadBalancerSourceRanges")), 64);
    buf_addc(&many, ", 192.0.2.0/24");
    assert_error(
        translate_service(f->a, &f->tenant,
                          doc(f, arena_printf(f->a, format, arena_cstr(f->a, buf_str(&many))).p),
                          &none, &f->err),
        "services \"s\" is forbidden: spec.loadBalancerSourceRanges: at most 64 ranges go "
        "down");
    assert_ok(translate_service(f->a, &f->tenant, doc(f, arena_printf(f->a, format, "").p), &none,
                                &f->err));
#pragma GCC diagnostic pop
    json_remove(json_get(none, "spec"), "loadBalancerSourceRanges");
    patch = translate_service_update(f->a, host, none);
    assert_json(patch, "{spec: {loadBalancerSourceRanges: null}}");
    buf_fini(&many);
}

static void services(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"externalIPs: [10.0.0.1]",
         "spec.externalIPs: external IPs are not allowed: they take over other tenants' traffic"},
        {"loadBalancerIP: 1.2.3.4", "spec.loadBalancerIP: the host chooses the address"},
        {"clusterIP: 10.96.0.1", "spec.clusterIP: picking a cluster IP is not allowed; leave it "
                                 "out and the host allocates one"},
        {"ports: [{port: 80, nodePort: 30000}]",
         "spec.ports.nodePort: picking a node port is not allowed; leave it out and the host "
         "allocates one"},
        {"healthCheckNodePort: 30001", "spec.healthCheckNodePort: picking a node port is not "
                                       "allowed; leave it out and the host allocates one"},
    };
    struct fixture *f = *state;
    cJSON *host;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *service =
            doc(f, arena_cstr(f->a,
                              arena_printf(f->a, "{metadata: {name: s, namespace: ml}, spec: {%s}}",
                                           cases[i].spec)));

        assert_error(translate_check_service(f->a, &f->tenant, service, &f->err),
                     arena_cstr(f->a, arena_printf(f->a, "services \"s\" is forbidden: %s",
                                                   cases[i].message)));
        assert_int_equal(translate_service(f->a, &f->tenant, service, &host, &f->err), -1);
        err_clear(&f->err);
    }
    /* What the host gave, in a stored Service, is neither refused nor sent. */
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml, uid: u, resourceVersion: '1', annotations: "
               "{service.beta.kubernetes.io/aws-load-balancer-internal: x}}, spec: {type: "
               "NodePort, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{port: 80, "
               "nodePort: 30000}], selector: {}, externalName: x, topologyKeys: [a]}}"),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_json(json_get(host, "spec"), "{type: NodePort, ports: [{port: 80}]}");
    /* A balancer that is named can only be the tenant's own. */
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, loadBalancerClass: "
               "x/y, allocateLoadBalancerNodePorts: true, externalTrafficPolicy: Local, ports: "
               "[{port: 80}], loadBalancerSourceRanges: [10.0.0.0/8]}}"),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_json(json_get(host, "spec"),
                "{type: NodePort, ports: [{port: 80}], externalTrafficPolicy: Local}");
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, loadBalancerClass: "
               "x/y, allocateLoadBalancerNodePorts: false, externalTrafficPolicy: Cluster, ports: "
               "[{port: 80}]}}"),
        &host, &f->err));
    assert_json(json_get(host, "spec"), "{type: ClusterIP, ports: [{port: 80}]}");
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: ExternalName, externalName: "
               "metadata.internal}}"),
        &host, &f->err));
    assert_null(host);
}

static void claims(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"volumeName: pv-of-others", "spec.volumeName: picking a volume is not allowed"},
        {"selector: {}",
         "spec.selector: selecting volumes is not allowed: they could be another tenant's"},
        {"dataSource: {kind: VolumeSnapshot, apiGroup: snapshot.storage.k8s.io, name: s}",
         "dataSource: only a PersistentVolumeClaim may be a source"},
        {"dataSourceRef: {kind: PersistentVolumeClaim, name: s, namespace: other}",
         "dataSourceRef: a source in another namespace is not allowed"},
        {"volumeAttributesClassName: fast",
         "spec.volumeAttributesClassName: is not supported by this version"},
    };
    struct fixture *f = *state;
    cJSON *host;

    use_config(f, "policy: {storageClasses: [standard, fast]}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *claim =
            doc(f, arena_cstr(f->a,
                              arena_printf(f->a, "{metadata: {name: c, namespace: ml}, spec: {%s}}",
                                           cases[i].spec)));

        assert_error(
            translate_check_pvc(f->a, &f->tenant, claim, &f->err),
            arena_cstr(f->a, arena_printf(f->a, "persistentvolumeclaims \"c\" is forbidden: %s",
                                          cases[i].message)));
        assert_int_equal(translate_pvc(f->a, &f->tenant, claim, NULL, &host, &f->err), -1);
        err_clear(&f->err);
    }
    assert_ok(translate_pvc(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: c, namespace: ml, annotations: "
               "{volume.kubernetes.io/selected-node: node}}, spec: {accessModes: [ReadWriteOnce], "
               "resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, "
               "name: other}}}"),
        NULL, &host, &f->err));
    assert_str(json_str_at(host, "spec.storageClassName"), "standard");
    assert_has(json_str_at(host, "spec.dataSource.name"), "other-");
    assert_null(
        json_get(json_path(host, "metadata.annotations"), "volume.kubernetes.io/selected-node"));
}

static struct str class_sent(struct fixture *f, const char *claim)
{
    cJSON *host;

    assert_ok(translate_pvc(f->a, &f->tenant, doc(f, claim), NULL, &host, &f->err));
    return json_str_at(host, "spec.storageClassName");
}

static void class_refused(struct fixture *f, const char *claim, const char *why)
{
    cJSON *host;
    const char *message =
        arena_cstr(f->a, arena_printf(f->a,
                                      "persistentvolumeclaims \"c\" is forbidden: "
                                      "spec.storageClassName: %s",
                                      why));

    assert_error(translate_check_pvc_class(&f->tenant, doc(f, claim), &f->err), message);
    assert_error(translate_pvc(f->a, &f->tenant, doc(f, claim), NULL, &host, &f->err), message);
}

#define CLAIM(spec) "{metadata: {name: c, namespace: ml}, spec: {" spec "}}"
#define OLD_CLAIM(class)                                                                           \
    "{metadata: {name: c, namespace: ml, annotations: "                                            \
    "{volume.beta.kubernetes.io/storage-class: " class "}}}"
#define BY_HAND "volumes without a class are bound by hand, which is not allowed"

/* No claim goes down without a class: it would bind to what an admin has lying about. */
static void classes_go_down_by_name(void **state)
{
    struct fixture *f = *state;
    cJSON *host;

    class_refused(f, CLAIM("storageClassName: ''"), BY_HAND);
    assert_error(translate_pvc(f->a, &f->tenant, doc(f, CLAIM("")), NULL, &host, &f->err),
                 "the storage class of the host cluster is not known yet");
    f->tenant.host_class_known = true;
    class_refused(f, CLAIM(""), "no storage class is offered to this virtual cluster");
    class_refused(f, CLAIM("storageClassName: gold"),
                  "no storage class is offered to this virtual cluster");

    f->tenant.host_class = STR("standard");
    assert_str(class_sent(f, CLAIM("")), "standard");
    assert_str(class_sent(f, CLAIM("storageClassName: standard")), "standard");
    assert_str(class_sent(f, OLD_CLAIM("standard")), "standard");
    class_refused(f, CLAIM("storageClassName: gold"),
                  "\"gold\" is not offered to this virtual cluster");
    class_refused(f, OLD_CLAIM("gold"), "\"gold\" is not offered to this virtual cluster");
    class_refused(f, OLD_CLAIM("''"), BY_HAND);

    use_config(f, "policy: {storageClasses: [fast, gold]}");
    assert_str(class_sent(f, CLAIM("")), "fast");
    assert_str(class_sent(f, CLAIM("storageClassName: gold")), "gold");
    class_refused(f, CLAIM("storageClassName: standard"),
                  "\"standard\" is not offered to this virtual cluster");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(source_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(services, setup, teardown),
        cmocka_unit_test_setup_teardown(claims, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_go_down_by_name, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
