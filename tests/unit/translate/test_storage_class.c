/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClasses of a tenant: which go down, what is refused, and the claims that name them. */

#include "test.h"

#include <sublet/translate_claim.h>
#include <sublet/translate_kind.h>
#include <sublet/translate_up.h>

static const char CONFIG[] =
    "policy: {storageClasses: [standard], annotations: {allow: [storageclass.kubernetes.io/]}}\n"
    "sync:\n"
    "  toHost:\n"
    "    storageClasses:\n"
    "      enabled: true\n"
    "      provisioners:\n"
    "        csi.example:\n"
    "          parameters: {type: [fast, 'small-*'], encrypted: ['true']}\n"
    "          mountOptions: [noatime]\n"
    "        retain.example: {reclaimPolicies: [Retain], topologyKeys: [retain.example/rack]}\n";

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

static const struct kind_rules *rules(void)
{
    return translate_kind_rules(DOWN_STORAGE_CLASSES);
}

static cJSON *class_of(struct fixture *f, const char *name, const char *body)
{
    return doc(f, arena_printf(f->a,
                               "{metadata: {name: %s, uid: u1, annotations: "
                               "{storageclass.kubernetes.io/is-default-class: 'true'}, "
                               "labels: {a: b}}, %s}",
                               name, body)
                      .p);
}

static cJSON *down(struct fixture *f, const char *name, const char *body)
{
    cJSON *ret = NULL, *again = NULL;
    struct str ns, of, uid;

    assert_ok(translate_kind(f->a, &f->tenant, rules(), class_of(f, name, body), &ret, &f->err));
    assert_ok(translate_kind(f->a, &f->tenant, rules(), class_of(f, name, body), &again, &f->err));
    if (!ret)
        return NULL;
    assert_null(translate_kind_update(f->a, rules(), ret, again));
    assert_true(translate_owner(&f->tenant, ret, &ns, &of, &uid));
    assert_str(ns, "");
    assert_str(of, name);
    assert_str(uid, "u1");
    return ret;
}

static void a_class_goes_down(void **state)
{
    struct fixture *f = *state;
    char name[64];
    cJSON *
        host = down(
           f, "fast",
           "provisioner: csi.example, parameters: {type: small-a, encrypted: 'true'}, odd: 1, "
           "mountOptions: [noatime], reclaimPolicy: Delete, volumeBindingMode: "
           "WaitForFirstConsumer, allowVolumeExpansion: true, allowedTopologies: "
           "[{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a], more: 1}]}]"),
       *metadata = json_get(host, "metadata");

    translate_name(&f->tenant, STR(""), STR("fast"), name);
    assert_str(json_str(json_get(metadata, "name")), name);
    assert_null(json_get(metadata, "namespace"));
    assert_str(json_str(json_get(json_get(metadata, "labels"), "sublet.dev/host-namespace")),
               "team-research");
    assert_str(json_str(json_get(json_get(metadata, "labels"), LABEL_NAMESPACE)), "");
    json_each(note, json_get(metadata, "annotations"))
        assert_true(str_has_prefix(json_key(note), STR("sublet.dev/")));
    json_remove(host, "metadata");
    assert_json(host, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: "
                      "csi.example, parameters: {type: small-a, encrypted: 'true'}, mountOptions: "
                      "[noatime], reclaimPolicy: Delete, volumeBindingMode: WaitForFirstConsumer, "
                      "allowVolumeExpansion: true, allowedTopologies: [{matchLabelExpressions: "
                      "[{key: topology.kubernetes.io/zone, values: [a]}]}]}");
    assert_non_null(down(f, "kept",
                         "provisioner: retain.example, reclaimPolicy: Retain, allowedTopologies: "
                         "[{matchLabelExpressions: [{key: retain.example/rack, values: [r]}]}]"));
}

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    (void)ctx;
    (void)kind;
    (void)name;
    (void)optional;
    fail();
}

/* A provisioner of the tenant's own serves it; a class that the host offers is the host's. */
static void others_stay(void **state)
{
    struct fixture *f = *state;
    cJSON *ret = NULL;

    assert_null(down(f, "own", "provisioner: own.example, parameters: {a: b}"));
    assert_null(down(f, "own", "parameters: {a: b}"));
    assert_null(down(f, "standard", "provisioner: csi.example"));
    assert_ok(translate_kind(f->a, &f->tenant, rules(),
                             doc(f, "{metadata: {name: gold, uid: u, annotations: "
                                    "{sublet.dev/from-host: 'true'}}, provisioner: csi.example}"),
                             &ret, &f->err));
    assert_null(ret);
    /* what it refers to is looked for before it is known to stay */
    translate_kind_refs(f->a, &f->tenant, rules(),
                        class_of(f, "own",
                                 "provisioner: own.example, parameters: {a: b}, "
                                 "mountOptions: [c], reclaimPolicy: Retain"),
                        on_ref, NULL);
}

#define UNLISTED ": is not listed in sync.toHost.storageClasses for this provisioner"
#define VALUE    ": is a value that the administrator of the host does not permit"
#define POLICY                                                                                     \
    "reclaimPolicy: is not one of the reclaimPolicies of sync.toHost.storageClasses for this "     \
    "provisioner"

#define TOPOLOGY(key)                                                                              \
    "provisioner: csi.example, allowedTopologies: [{matchLabelExpressions: [{key: " key            \
    ", values: [a]}]}]"
#define KEY                                                                                        \
    "allowedTopologies[0].matchLabelExpressions[0].key: is not one of topology.kubernetes.io/zone" \
    ", topology.kubernetes.io/region, nor of topologyKeys of its driver"

static void refused(void **state)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        {"provisioner: csi.example, parameters: {pool: x}", "parameters.pool" UNLISTED},
        {"provisioner: csi.example, parameters: {csi.storage.k8s.io/provisioner-secret-name: x}",
         "parameters.csi.storage.k8s.io/provisioner-secret-name" UNLISTED},
        {"provisioner: csi.example, parameters: {type: slow}", "parameters.type" VALUE},
        {"provisioner: csi.example, parameters: {type: small-}", "parameters.type" VALUE},
        {"provisioner: csi.example, parameters: {type: {a: b}}", "parameters.type" VALUE},
        {"provisioner: csi.example, mountOptions: [noatime, suid]", "mountOptions[1]" UNLISTED},
        {"provisioner: retain.example, mountOptions: [noatime]", "mountOptions[0]" UNLISTED},
        {"provisioner: retain.example, parameters: {type: fast}", "parameters.type" UNLISTED},
        {"provisioner: csi.example, reclaimPolicy: Retain", POLICY},
        {TOPOLOGY("kubernetes.io/hostname"), KEY},
        {TOPOLOGY("topology.csi.example/node"), KEY},
        {TOPOLOGY("{a: b}"), KEY},
        {"provisioner: retain.example, reclaimPolicy: Delete", POLICY},
    };
    struct fixture *f = *state;
    cJSON *ret = NULL;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(
            translate_kind(f->a, &f->tenant, rules(), class_of(f, "x", cases[i].body), &ret,
                           &f->err),
            arena_printf(f->a, "storageclasses.storage.k8s.io \"x\" is forbidden: %s", cases[i].why)
                .p);
}

/* ---- claims ---- */

static bool is_down(void *ctx, struct str class)
{
    (void)ctx;
    return str_eqc(class, "fast") || str_eqc(class, "standard");
}

static struct str class_on_host(struct fixture *f, const char *spec)
{
    const cJSON *v = doc(
        f, arena_printf(f->a, "{metadata: {name: c, namespace: ml, uid: u}, spec: {%s}}", spec).p);
    cJSON *ret = NULL;

    assert_ok(translate_pvc(f->a, &f->tenant, v, NULL, &ret, &f->err));
    return json_str_at(ret, "spec.storageClassName");
}

static void claims_name_it(void **state)
{
    struct fixture *f = *state;
    char name[64];
    cJSON *host, *v;

    f->tenant.class_down = is_down;
    translate_name(&f->tenant, STR(""), STR("fast"), name);
    assert_str(class_on_host(f, "storageClassName: fast"), name);
    assert_str(class_on_host(f, "storageClassName: standard"), "standard");
    assert_str(class_on_host(f, "accessModes: []"), "standard");
    assert_error(
        translate_check_pvc_class(
            &f->tenant, doc(f, "{metadata: {name: c}, spec: {storageClassName: x}}"), &f->err),
        "persistentvolumeclaims \"c\" is forbidden: spec.storageClassName: \"x\" is not offered to "
        "this virtual cluster");

    /* Its name on the host stays there. */
    host = doc(f, arena_printf(f->a, "{spec: {storageClassName: %s, volumeName: pv}}", name).p);
    v = doc(f, "{metadata: {name: c, namespace: ml}, spec: {storageClassName: fast}}");
    assert_json(translate_pvc_spec_up(f->a, &f->tenant, host, v),
                "{storageClassName: fast, volumeName: pv}");
    v = doc(f, "{metadata: {name: c, namespace: ml, annotations: "
               "{volume.beta.kubernetes.io/storage-class: fast}}, spec: {}}");
    assert_json(translate_pvc_spec_up(f->a, &f->tenant, host, v),
                "{storageClassName: fast, volumeName: pv}");
}

/* Marks of ours on an object elsewhere do not make it ours. */
static void owners_by_scope(void **state)
{
    struct fixture *f = *state;
    cJSON *host = down(f, "fast", "provisioner: csi.example"), *metadata;
    struct str ns, name, uid;

    metadata = json_get(host, "metadata");
    json_set_str(f->a, metadata, "namespace", STR("team-research"));
    assert_false(translate_owner(&f->tenant, host, &ns, &name, &uid));
    json_remove(metadata, "namespace");
    json_set_str(f->a, json_get(metadata, "labels"), LABEL_NAMESPACE, STR("ml"));
    assert_false(translate_owner(&f->tenant, host, &ns, &name, &uid));
    json_set_str(f->a, json_get(metadata, "annotations"), ANNOTATION_NS, STR("ml"));
    assert_false(translate_owner(&f->tenant, host, &ns, &name, &uid));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_class_goes_down), TEST(others_stay),     TEST(refused),
        TEST(claims_name_it),    TEST(owners_by_scope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
