/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes of a tenant: which go down, what is refused, and the claims that name them. */

#include "test.h"

#include <sublet/translate_claim.h>
#include <sublet/translate_up.h>
#include <sublet/translate_volume.h>

static const char CONFIG[] =
    "policy: {storageClasses: [standard], annotations: {allow: [pv.kubernetes.io/]}}\n"
    "sync:\n"
    "  toHost:\n"
    "    persistentVolumes:\n"
    "      enabled: true\n"
    "      drivers:\n"
    "        csi.example:\n"
    "          volumeHandles: ['fs-1::*', whole]\n"
    "          volumeAttributes: {tier: [fast, 'small-*']}\n"
    "          mountOptions: [noatime]\n"
    "        bare.example: {volumeHandles: [one], topologyKeys: [topology.bare.example/rack]}\n";

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
    return translate_kind_rules(DOWN_VOLUMES);
}

#define CSI   "csi: {driver: csi.example, volumeHandle: whole}"
#define CLAIM ", claimRef: {namespace: ml, name: data, uid: u7, resourceVersion: '5'}"

static cJSON *volume_of(struct fixture *f, const char *spec)
{
    return doc(f, arena_printf(f->a,
                               "{metadata: {name: v, uid: u1, labels: {a: b}, annotations: "
                               "{pv.kubernetes.io/provisioned-by: csi.example}}, spec: {%s}}",
                               spec)
                      .p);
}

static cJSON *down(struct fixture *f, const char *spec)
{
    cJSON *ret = NULL, *again = NULL;
    struct str ns, name, uid;

    assert_ok(translate_kind(f->a, &f->tenant, rules(), volume_of(f, spec), &ret, &f->err));
    assert_ok(translate_kind(f->a, &f->tenant, rules(), volume_of(f, spec), &again, &f->err));
    if (!ret)
        return NULL;
    assert_null(translate_kind_update(f->a, rules(), ret, again));
    assert_true(translate_owner(&f->tenant, ret, &ns, &name, &uid));
    assert_str(name, "v");
    return ret;
}

#define REF "Ref: {name: s, namespace: ml}"

static const char *host_name(struct fixture *f, const char *ns, const char *name)
{
    char *ret = arena_alloc(f->a, 64);

    translate_name(&f->tenant, str_c(ns), str_c(name), ret);
    return ret;
}

static void a_volume_goes_down(void **state)
{
    struct fixture *f = *state;
    const char *secret =
        arena_printf(f->a, "{name: %s, namespace: team-research}", host_name(f, "ml", "s")).p;
    cJSON *host = down(f, "csi: {driver: csi.example, volumeHandle: 'fs-1::a', fsType: ext4, "
                          "readOnly: true, volumeAttributes: {tier: small-a}, odd: 1, "
                          "controllerPublishSecret" REF ", controllerExpandSecret" REF
                          ", nodeStageSecret" REF ", nodePublishSecret" REF ", nodeExpandSecret" REF
                          "}, odd: 1, capacity: {storage: 5Gi}, "
                          "accessModes: [ReadWriteMany], volumeMode: Filesystem, "
                          "storageClassName: efs, persistentVolumeReclaimPolicy: Retain, "
                          "mountOptions: [noatime], nodeAffinity: {required: {nodeSelectorTerms: "
                          "[{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, "
                          "values: [a], more: 1}]}]}}" CLAIM);

    assert_str(json_str_at(host, "metadata.name"), host_name(f, "", "v"));
    assert_null(json_path(host, "metadata.namespace"));
    json_each(note, json_path(host, "metadata.annotations"))
        assert_true(str_has_prefix(json_key(note), STR("sublet.dev/")));
    assert_json(
        json_get(host, "spec"),
        arena_printf(f->a,
                     "{csi: {driver: csi.example, volumeHandle: 'fs-1::a', fsType: ext4, readOnly: "
                     "true, volumeAttributes: {tier: small-a}, controllerPublishSecretRef: %s, "
                     "controllerExpandSecretRef: %s, nodeStageSecretRef: %s, "
                     "nodePublishSecretRef: %s, nodeExpandSecretRef: %s}, capacity: {storage: 5Gi},"
                     " accessModes: [ReadWriteMany], volumeMode: Filesystem, "
                     "persistentVolumeReclaimPolicy: Retain, mountOptions: [noatime], "
                     "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
                     "topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}, claimRef: "
                     "{apiVersion: v1, kind: PersistentVolumeClaim, namespace: team-research, "
                     "name: %s}}",
                     secret, secret, secret, secret, secret, host_name(f, "ml", "data"))
            .p);
}

static void a_place_of_its_driver_goes_down(void **state)
{
    struct fixture *f = *state;
    cJSON *host =
        down(f, "csi: {driver: bare.example, volumeHandle: one}, nodeAffinity: {required: "
                "{nodeSelectorTerms: [{matchExpressions: [{key: topology.bare.example/rack, "
                "operator: In, values: [r]}]}]}}" CLAIM);

    assert_json(json_path(host, "spec.nodeAffinity"),
                "{required: {nodeSelectorTerms: [{matchExpressions: [{key: "
                "topology.bare.example/rack, operator: In, values: [r]}]}]}}");
}

/* Any claim of the host could bind a volume that names none. */
static void others_stay(void **state)
{
    struct fixture *f = *state;

    assert_null(down(f, CSI));
    assert_null(down(f, CSI ", claimRef: {namespace: ml}"));
    assert_null(down(f, CSI ", claimRef: {name: data}"));
    assert_null(down(f, "hostPath: {path: /}" CLAIM));
    assert_null(down(f, "csi: {driver: other.example, volumeHandle: whole}" CLAIM));
}

static void on_secret(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    (void)optional;
    assert_int_equal(kind, REF_SECRET);
    assert_str(name, "ml/s");
    ++*(int *)ctx;
}

static void its_secrets_go_down(void **state)
{
    struct fixture *f = *state;
    int n = 0;

    translate_kind_refs(f->a, &f->tenant, rules(),
                        volume_of(f, "csi: {driver: csi.example, volumeHandle: whole, "
                                     "nodeStageSecret" REF "}" CLAIM),
                        on_secret, &n);
    assert_int_equal(n, 1);
    translate_kind_refs(f->a, &f->tenant, rules(),
                        volume_of(f, "csi: {driver: other.example, volumeHandle: whole, "
                                     "nodeStageSecret" REF "}" CLAIM),
                        on_secret, &n);
    assert_int_equal(n, 1);
}

#define UNLISTED ": is not listed in sync.toHost.persistentVolumes for this driver"
#define VALUE    ": is a value that the administrator of the host does not permit"
#define SECRET   "Ref: needs name and namespace of a Secret of this cluster"
#define WITH(it) "csi: {driver: csi.example, volumeHandle: whole, " it "}" CLAIM
#define TERM     "spec.nodeAffinity.required.nodeSelectorTerms[0]."
#define ON(term) CSI ", nodeAffinity: {required: {nodeSelectorTerms: [{" term "}]}}"
#define ZONES                                                                                      \
    "is not one of topology.kubernetes.io/zone, topology.kubernetes.io/region, "                   \
    "nor of topologyKeys of its driver"

static void refused(void **state)
{
    static const struct {
        const char *spec, *why;
    } cases[] = {
        {"csi: {driver: csi.example, volumeHandle: other}", "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: csi.example, volumeHandle: 'fs-1::'}", "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: csi.example, volumeHandle: 'fs-1::..'}", "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: csi.example, volumeHandle: 'fs-1::.a'}", "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: csi.example, volumeHandle: 'fs-1::a/../b'}",
         "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: bare.example, volumeHandle: whole}", "spec.csi.volumeHandle" UNLISTED},
        {"csi: {driver: csi.example, volumeHandle: [whole]}", "spec.csi.volumeHandle" UNLISTED},
        {WITH("fsType: ../x"), "spec.csi.fsType: is not one of ext3, ext4, xfs, btrfs"},
        {WITH("volumeAttributes: {server: x}"), "spec.csi.volumeAttributes.server" UNLISTED},
        {WITH("volumeAttributes: {tier: slow}"), "spec.csi.volumeAttributes.tier" VALUE},
        {WITH("nodeStageSecretRef: {name: s}"), "spec.csi.nodeStageSecret" SECRET},
        {WITH("nodePublishSecretRef: {namespace: s}"), "spec.csi.nodePublishSecret" SECRET},
        {WITH("controllerExpandSecretRef: x"), "spec.csi.controllerExpandSecret" SECRET},
        {WITH("controllerPublishSecretRef: {namespace: a, name: b/c}"),
         "spec.csi.controllerPublishSecret" SECRET},
        {CSI ", mountOptions: [noatime, suid]", "spec.mountOptions[1]" UNLISTED},
        {CSI ", persistentVolumeReclaimPolicy: Delete",
         "spec.persistentVolumeReclaimPolicy: can only be Retain on the host"},
        {CSI ", persistentVolumeReclaimPolicy: Recycle",
         "spec.persistentVolumeReclaimPolicy: can only be Retain on the host"},
        {CSI ", volumeAttributesClassName: x",
         "spec.volumeAttributesClassName: is not supported by this version"},
        {ON("matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]"),
         TERM "matchExpressions[0].key: " ZONES},
        {ON("matchExpressions: [{key: topology.bare.example/rack, operator: In, values: [r]}]"),
         TERM "matchExpressions[0].key: " ZONES},
        {ON("matchFields: [{key: metadata.name, operator: In, values: [n]}]"),
         TERM "matchFields: names nodes of the host"},
    };
    struct fixture *f = *state;
    cJSON *ret = NULL;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(
            translate_kind(f->a, &f->tenant, rules(), volume_of(f, cases[i].spec), &ret, &f->err),
            arena_printf(f->a, "persistentvolumes \"v\" is forbidden: %s", cases[i].why).p);
}

static void other_sources_are_refused(void **state)
{
    static const char *const sources[] = {"hostPath", "local", "nfs", "iscsi", "flexVolume"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(sources); i++)
        assert_error(
            translate_check_volume(&f->tenant,
                                   volume_of(f, arena_printf(f->a, CSI ", %s: {}", sources[i]).p),
                                   &f->err),
            arena_printf(f->a,
                         "persistentvolumes \"v\" is forbidden: spec.%s: only volumes of the CSI "
                         "drivers in sync.toHost.persistentVolumes are accepted",
                         sources[i])
                .p);
    assert_error(translate_check_volume(&f->tenant, volume_of(f, "csi: {driver: x}"), &f->err),
                 "persistentvolumes \"v\" is forbidden: spec.csi.driver: \"x\" is not a driver in "
                 "sync.toHost.persistentVolumes");
    assert_ok(translate_check_volume(&f->tenant, volume_of(f, CSI CLAIM), &f->err));
    assert_true(translate_volume_is_listed(&f->tenant, volume_of(f, CSI)));
    assert_false(translate_volume_is_listed(&f->tenant, volume_of(f, "nfs: {}")));
    assert_false(translate_volume_is_listed(&f->tenant, NULL));
}

static void the_status_comes_up(void **state)
{
    struct fixture *f = *state;
    const char *own = host_name(f, "", "v");
    cJSON *host = doc(f, arena_printf(f->a,
                                      "{metadata: {name: %s}, status: {phase: Failed, reason: R, "
                                      "message: 'volume %s', odd: 1}}",
                                      own, own)
                             .p);

    assert_json(translate_kind_status_up(f->a, &f->tenant, rules(), host, volume_of(f, CSI)),
                "{phase: Failed, reason: R, message: volume v}");
}

/* ---- claims ---- */

static bool is_down(void *ctx, struct str volume)
{
    (void)ctx;
    return str_eqc(volume, "v");
}

static cJSON *claim_of(struct fixture *f, const char *spec)
{
    return doc(
        f, arena_printf(f->a, "{metadata: {name: c, namespace: ml, uid: u}, spec: {%s}}", spec).p);
}

static void claims_name_it(void **state)
{
    struct fixture *f = *state;
    cJSON *host = NULL, *v = claim_of(f, "volumeName: v, storageClassName: efs");

    assert_error(translate_check_pvc(f->a, &f->tenant, v, &f->err),
                 "persistentvolumeclaims \"c\" is forbidden: spec.volumeName: picking a volume is "
                 "not allowed");
    f->tenant.volume_down = is_down;
    assert_ok(translate_pvc(f->a, &f->tenant, v, NULL, &host, &f->err));
    assert_json(
        json_get(host, "spec"),
        arena_printf(f->a, "{storageClassName: '', volumeName: %s}", host_name(f, "", "v")).p);
    assert_true(translate_pvc_has_volume(&f->tenant, host, v));
    /* Its volume and its class are the tenant's, in the virtual cluster. */
    assert_null(translate_pvc_spec_up(f->a, &f->tenant, host, v));
    assert_error(translate_check_pvc(f->a, &f->tenant, claim_of(f, "volumeName: pvc-1"), &f->err),
                 "persistentvolumeclaims \"c\" is forbidden: spec.volumeName: names no "
                 "PersistentVolume of this virtual cluster that is for the host");
    /* A claim that the host bound is not one that names a volume. */
    host = doc(f, "{spec: {storageClassName: standard, volumeName: pvc-1}}");
    assert_json(translate_pvc_spec_up(f->a, &f->tenant, host, claim_of(f, "volumeName: pvc-1")),
                "{storageClassName: standard, volumeName: pvc-1}");
    assert_false(translate_pvc_has_volume(&f->tenant, host, claim_of(f, "accessModes: []")));
}

#define SIZE(n) "resources: {requests: {storage: " n "}}, accessModes: [ReadWriteOnce]"

static void what_a_claim_can_have(void **state)
{
    struct fixture *f = *state;
    cJSON *v = volume_of(f, CSI ", capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], "
                                "volumeMode: Filesystem, storageClassName: efs");
    const struct {
        const char *claim, *why;
    } cases[] = {
        {SIZE("5Gi") ", storageClassName: efs, volumeMode: Filesystem", NULL},
        {SIZE("5Gi") ", storageClassName: efs", NULL},
        {SIZE("6Gi") ", storageClassName: efs", "requested PV is too small"},
        {SIZE("5Gi") ", storageClassName: ''", "storageClassName does not match"},
        {SIZE("5Gi") ", storageClassName: efs, volumeMode: Block", "incompatible volumeMode"},
        {"resources: {requests: {storage: 1Gi}}, storageClassName: efs, accessModes: "
         "[ReadWriteOnce, ReadWriteMany]",
         "incompatible accessMode"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *why = translate_volume_mismatch(v, claim_of(f, cases[i].claim));

        assert_string_equal(why ? why : "", cases[i].why ? cases[i].why : "");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_volume_goes_down),
        TEST(a_place_of_its_driver_goes_down),
        TEST(others_stay),
        TEST(its_secrets_go_down),
        TEST(refused),
        TEST(other_sources_are_refused),
        TEST(the_status_comes_up),
        TEST(claims_name_it),
        TEST(what_a_claim_can_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
