/* SPDX-License-Identifier: Apache-2.0 */
/* Patches for living host objects: only ours, only what differs, and an end to it. And what a pod
 * needs before it starts. */

#include "test.h"

static int setup(void **state)
{
    *state = fixture_new("");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static void pods(void **state)
{
    struct fixture *f = *state;
    cJSON *now =
        doc(f, "{metadata: {resourceVersion: '9'}, spec: {nodeName: node, schedulingGates: [{name: "
               "kueue.x-k8s.io/admission}], containers: [{name: main, image: a:1, resources: "
               "{limits: {cpu: '1'}}}, "
               "{name: istio-proxy, image: proxy}], initContainers: [{name: init, image: b:1}], "
               "tolerations: [{key: "
               "added}], activeDeadlineSeconds: 100, nodeSelector: {flavor: x}}}");
    cJSON *wanted = doc(
        f, "{metadata: {}, spec: {containers: [{name: main, image: a:2, resources: {limits: {cpu: "
           "'2'}}}], "
           "initContainers: [{name: init, image: b:1}], tolerations: [{key: added}, {key: new}], "
           "activeDeadlineSeconds: 50}}");

    assert_json(translate_pod_update(f->a, now, wanted, true),
                "{metadata: {resourceVersion: '9'}, spec: {containers: [{name: main, image: a:2, "
                "resources: {limits: {cpu: "
                "'1'}}}, {name: istio-proxy, image: proxy}], activeDeadlineSeconds: 50, "
                "tolerations: [{key: added}, {key: "
                "new}]}}");
    assert_json(translate_pod_resize(f->a, now, wanted, true),
                "{spec: {containers: [{name: main, resources: {limits: {cpu: '2'}}}]}}");
    assert_false(translate_pod_is_applied(f->a, now, wanted, true));
}

static void resizes(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(f, "{spec: {resources: {limits: {cpu: '4', memory: 8Gi}}, initContainers: "
                        "[{name: side, resources: {requests: {cpu: 100m}}}], containers: [{name: "
                        "main}, {name: added, resources: {limits: {cpu: '1'}}}]}}");
    cJSON *wanted =
        doc(f, "{spec: {resources: {limits: {cpu: 4000m, memory: 9Gi}}, initContainers: [{name: "
               "side, resources: {requests: {cpu: 200m, ephemeral-storage: 1Gi}}}], containers: "
               "[{name: main, resources: {requests: {cpu: 1}}}, {name: gone, resources: {limits: "
               "{cpu: '1'}}}]}}");

    assert_json(translate_pod_resize(f->a, now, wanted, true),
                "{spec: {initContainers: [{name: side, resources: {requests: {cpu: 200m}}}], "
                "containers: [{name: main, resources: {requests: {cpu: 1}}}], resources: {limits: "
                "{memory: 9Gi}}}}");
    assert_null(translate_pod_resize(f->a, now, NULL, true));
    assert_false(translate_pod_is_applied(f->a, now, wanted, true));
}

static void pods_at_rest(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(
        f,
        "{metadata: {resourceVersion: '9'}, spec: {containers: [{name: main, image: a, resources: "
        "{limits: "
        "{cpu: '1', nvidia.com/gpu: '1'}}}], activeDeadlineSeconds: 50, tolerations: [{key: a}]}}");
    cJSON *wanted = doc(f, "{spec: {containers: [{name: main, image: a, resources: {limits: {cpu: "
                           "1000m, nvidia.com/gpu: "
                           "2}}}], activeDeadlineSeconds: 60}}");

    /* A deadline never grows, a toleration never goes, a device is not resized, 1000m is 1. */
    assert_null(translate_pod_update(f->a, now, wanted, true));
    assert_null(translate_pod_resize(f->a, now, wanted, true));
    assert_true(translate_pod_is_applied(f->a, now, wanted, true));
    assert_null(translate_pod_update(f->a, now, now, true));
    assert_null(translate_pod_update(f->a, NULL, NULL, true));
}

/* ---- what the host changes after it was sent ---- */

#define SENT(images, resources)                                                                    \
    "metadata: {annotations: {sublet.dev/sent-images: '" images                                    \
    "', sublet.dev/sent-resources: '" resources "'}}"
#define SENT_ONE SENT("{\"main\":\"a:1\",\"init\":\"b:1\"}", "{}")

static void rewritten_images_stay(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(f, "{" SENT_ONE ", spec: {initContainers: [{name: init, image: mirror/b:1}], "
                        "containers: [{name: main, image: mirror/a:1}, {name: proxy, image: p}]}}");
    cJSON *same = doc(f, "{" SENT_ONE ", spec: {initContainers: [{name: init, image: b:1}], "
                         "containers: [{name: main, image: a:1}]}}");
    cJSON *other = doc(
        f, "{" SENT("{\"main\":\"a:2\",\"init\":\"b:1\"}",
                    "{}") ", spec: "
                          "{initContainers: [{name: init, image: b:1}], containers: [{name: main, "
                          "image: a:2}]}}");

    assert_null(translate_pod_update(f->a, now, same, true));
    assert_true(translate_pod_is_applied(f->a, now, same, true));
    assert_false(translate_pod_is_applied(f->a, now, other, true));
    assert_json(translate_pod_update(f->a, now, other, true),
                "{metadata: {annotations: {sublet.dev/sent-images: "
                "'{\"main\":\"a:2\",\"init\":\"b:1\"}'}}, spec: {containers: [{name: main, image: "
                "a:2}, {name: proxy, image: p}]}}");
    /* The host has what the tenant changed it to: only the record is written. */
    now = doc(f, "{" SENT_ONE ", spec: {containers: [{name: main, image: a:2}]}}");
    assert_true(translate_pod_is_applied(f->a, now, other, true));
    assert_json(translate_pod_update(f->a, now, other, true),
                "{metadata: {annotations: {sublet.dev/sent-images: "
                "'{\"main\":\"a:2\",\"init\":\"b:1\"}'}}}");
}

/* ---- images by another name on the host ---- */

static const char MAPPED[] = "sync: {toHost: {pods: {translateImage: {a:1: m/a:1, a:2: m/a:2}}}}\n";

static cJSON *translated(struct fixture *f, const char *image)
{
    struct pool_choice choice = {0};
    cJSON *host = NULL;
    const char *pod = arena_printf(f->a,
                                   "{metadata: {name: p, namespace: ml, uid: u}, spec: {volumes: "
                                   "[{name: v, image: {reference: a:1}}], initContainers: [{name: "
                                   "init, image: a:1}], containers: [{name: main, image: %s}], "
                                   "ephemeralContainers: [{name: debug, image: a:2}]}}",
                                   image)
                          .p;

    assert_ok(translate_pod(f->a, &f->tenant, &choice, doc(f, pod), NULL, &host, &f->err));
    return host;
}

static struct str image_at(const cJSON *host, const char *list)
{
    return json_str(json_get(json_at(json_path(host, list), 0), "image"));
}

static void images_are_mapped_by_prefix(void **state)
{
    static const char map[] =
        "sync: {toHost: {pods: {translateImage: {docker.io/: h.example/d/, docker.io/library/: "
        "h.example/l/, team/: 'h.example:5000/', quay.io/a/: q/, 'reg:5000/': r/, localhost/: o/, "
        "'nginx:1': 'exact:1'}}}}\n";
    static const char *const cases[][2] = {
        {"nginx", "h.example/l/nginx"},
        {"nginx:1", "exact:1"},
        {"nginx:2", "h.example/l/nginx:2"},
        {"nginx@sha256:ab", "h.example/l/nginx@sha256:ab"},
        {"docker.io/nginx:1", "h.example/l/nginx:1"},
        {"docker.io/library/nginx:1", "h.example/l/nginx:1"},
        {"index.docker.io/library/nginx", "h.example/l/nginx"},
        {"Docker.IO/x/y", "h.example/d/x/y"},
        {"team/app:1", "h.example:5000/app:1"},
        {"docker.io/team/app", "h.example:5000/app"},
        {"teams/app", "h.example/d/teams/app"},
        {"quay.io/a/b", "q/b"},
        {"quay.io/ab/b", "quay.io/ab/b"},
        {"quay.io/a/", "quay.io/a/"},
        {"quay.io/a", "quay.io/a"},
        {"quay.io.example/a/b", "quay.io.example/a/b"},
        {"reg:5000/a", "r/a"},
        {"reg:50001/a", "reg:50001/a"},
        {"localhost/a", "o/a"},
        {"quay.io/a/../../evil", "q/../../evil"},
        {"/", "/"},
    };
    struct fixture *f = *state;

    use_config(f, map);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(
            image_at(translated(f, arena_printf(f->a, "'%s'", cases[i][0]).p), "spec.containers"),
            cases[i][1]);
}

static void images_are_mapped(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice = {0};
    cJSON *host, *ephemeral = NULL;

    use_config(f, MAPPED);
    host = translated(f, "a:2");
    assert_str(image_at(host, "spec.containers"), "m/a:2");
    assert_str(image_at(host, "spec.initContainers"), "m/a:1");
    assert_str(json_str_at(json_at(json_path(host, "spec.volumes"), 0), "image.reference"),
               "m/a:1");
    /* exactly these */
    assert_str(image_at(translated(f, "a:1@sha256:x"), "spec.containers"), "a:1@sha256:x");
    assert_str(image_at(translated(f, "x/a:1"), "spec.containers"), "x/a:1");
    assert_str(image_at(translated(f, "m/a:1"), "spec.containers"), "m/a:1");
    assert_ok(translate_ephemeral(f->a, &f->tenant, &choice,
                                  doc(f, "{metadata: {name: p, namespace: ml, uid: u}, spec: "
                                         "{containers: [{name: main, image: x}], "
                                         "ephemeralContainers: [{name: debug, image: a:2}]}}"),
                                  host, &ephemeral, &f->err));
    assert_str(image_at(ephemeral, "spec.ephemeralContainers"), "m/a:2");
}

/* The map changes what is created, and what the tenant changes: no container that runs. */
static void a_changed_map_replaces_no_image(void **state)
{
    struct fixture *f = *state;
    cJSON *plain = translated(f, "a:1"), *mapped;

    assert_str(image_at(plain, "spec.containers"), "a:1");
    use_config(f, MAPPED);
    mapped = translated(f, "a:1");
    assert_str(image_at(mapped, "spec.containers"), "m/a:1");
    assert_null(translate_pod_update(f->a, plain, mapped, true));
    assert_null(translate_pod_update(f->a, mapped, plain, true));
    assert_true(translate_pod_is_applied(f->a, plain, mapped, true));
    assert_str(
        image_at(translate_pod_update(f->a, plain, translated(f, "a:2"), true), "spec.containers"),
        "m/a:2");
    assert_str(
        image_at(translate_pod_update(f->a, plain, translated(f, "b:1"), true), "spec.containers"),
        "b:1");
    use_config(f, "");
}

/* Created by a version that kept no record: what the tenant never changed was not changed by it. */
static void pods_without_a_record(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(f, "{spec: {containers: [{name: main, image: mirror/a:1, resources: {limits: "
                        "{cpu: '2'}}}]}}");
    cJSON *wanted = doc(f, "{" SENT("{}", "{}") ", spec: {containers: [{name: main, image: a:1, "
                                                "resources: {limits: {cpu: '1'}}}]}}");

    assert_json(translate_pod_update(f->a, now, wanted, false),
                "{metadata: {annotations: {sublet.dev/sent-images: '{}', "
                "sublet.dev/sent-resources: '{}'}}}");
    assert_null(translate_pod_resize(f->a, now, wanted, false));
    assert_true(translate_pod_is_applied(f->a, now, wanted, false));
    assert_json(translate_pod_update(f->a, now, wanted, true),
                "{metadata: {annotations: {sublet.dev/sent-images: '{}'}}, spec: {containers: "
                "[{name: main, image: a:1, resources: {limits: {cpu: '2'}}}]}}");
    assert_json(translate_pod_resize(f->a, now, wanted, true),
                "{spec: {containers: [{name: main, resources: {limits: {cpu: '1'}}}]}}");
}

#define SENT_CPU                                                                                   \
    "{\"main\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}},\"/"                              \
    "\":{\"limits\":{\"cpu\":\"4\"}}}"
#define SENT_MEMORY                                                                                \
    "{\"main\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}},\"/"                              \
    "\":{\"limits\":{\"cpu\":\"4\"}}}"

/* A vertical autoscaler of the host raised cpu; the tenant changes memory. */
static void resized_quantities_stay(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(
        f, "{" SENT("{}",
                    SENT_CPU) ", spec: {resources: {limits: {cpu: '8'}}, "
                              "containers: [{name: main, resources: {requests: {cpu: '3', memory: "
                              "1Gi}}}]}}");
    cJSON *same = doc(
        f,
        "{" SENT("{}",
                 SENT_CPU) ", spec: {resources: {limits: {cpu: 4000m}}, "
                           "containers: [{name: main, resources: {requests: {cpu: 1000m, memory: "
                           "1024Mi}}}]}}");
    cJSON *other = doc(
        f,
        "{" SENT("{}",
                 SENT_MEMORY) ", spec: {resources: {limits: {cpu: '4'}}, "
                              "containers: [{name: main, resources: {requests: {cpu: '1', memory: "
                              "2Gi}}}]}}");

    assert_null(translate_pod_update(f->a, now, same, true));
    assert_null(translate_pod_resize(f->a, now, same, true));
    assert_true(translate_pod_is_applied(f->a, now, same, true));
    assert_false(translate_pod_is_applied(f->a, now, other, true));
    assert_json(translate_pod_resize(f->a, now, other, true),
                "{spec: {containers: [{name: main, resources: {requests: {memory: 2Gi}}}]}}");
    /* The record follows the resize, which is a request of its own. */
    assert_null(translate_pod_update(f->a, now, other, true));
    assert_json(translate_pod_resized(f->a, other),
                "{metadata: {annotations: {sublet.dev/sent-resources: '" SENT_MEMORY "'}}}");
    json_set_str(f->a,
                 json_path(json_first(json_path(now, "spec.containers")), "resources.requests"),
                 "memory", STR("2Gi"));
    assert_null(translate_pod_resize(f->a, now, other, true));
    assert_json(translate_pod_update(f->a, now, other, true),
                "{metadata: {annotations: {sublet.dev/sent-resources: '" SENT_MEMORY "'}}}");
}

static void every_pod_has_a_record(void **state)
{
    struct fixture *f = *state;
    struct pool_choice none = {0};
    cJSON *host;

    assert_ok(translate_pod(
        f->a, &f->tenant, &none,
        doc(f, "{metadata: {name: p, namespace: ml}, spec: {resources: {limits: {cpu: '4'}}, "
               "initContainers: [{name: init, image: b}], containers: [{name: main, image: a:1, "
               "resources: {limits: {cpu: '2', ephemeral-storage: 1Gi}, requests: {memory: "
               "1Gi}}}]}}"),
        NULL, &host, &f->err));
    assert_str(
        json_str(json_get(json_path(host, "metadata.annotations"), "sublet.dev/sent-images")),
        "{\"init\":\"b\",\"main\":\"a:1\"}");
    assert_str(
        json_str(json_get(json_path(host, "metadata.annotations"), "sublet.dev/sent-resources")),
        "{\"main\":{\"limits\":{\"cpu\":\"2\"},\"requests\":{\"memory\":\"1Gi\"}},"
        "\"/\":{\"limits\":{\"cpu\":\"4\"}}}");
}

static void services(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(f, "{spec: {type: NodePort, clusterIP: 10.0.0.1, sessionAffinity: None, "
                        "internalTrafficPolicy: Cluster, "
                        "selector: {a: b, old: x}, trafficDistribution: PreferClose, ports: "
                        "[{name: h, port: 80, protocol: "
                        "TCP, targetPort: 8080, nodePort: 30001}]}}");
    cJSON *same = doc(f, "{spec: {type: NodePort, selector: {a: b, old: x}, trafficDistribution: "
                         "PreferClose, ports: [{name: "
                         "h, port: 80, protocol: TCP, targetPort: 8080}]}}");
    cJSON *other = doc(f, "{spec: {type: NodePort, selector: {a: c}, ports: [{name: h, port: 80, "
                          "protocol: TCP, targetPort: "
                          "9090}, {port: 81, name: x}]}}");
    cJSON *plain = doc(f, "{spec: {type: ClusterIP, trafficDistribution: PreferClose, ports: "
                          "[{port: 80, protocol: TCP, "
                          "targetPort: 8080}]}}");

    assert_null(translate_service_update(f->a, now, same));
    assert_json(translate_service_update(f->a, now, other),
                "{spec: {selector: {a: c, old: null}, trafficDistribution: null, ports: [{name: h, "
                "port: 80, protocol: TCP, "
                "targetPort: 9090, nodePort: 30001}, {port: 81, name: x}]}}");
    assert_json(translate_service_update(f->a, now, plain),
                "{spec: {type: ClusterIP, selector: null, ports: [{port: 80, protocol: TCP, "
                "targetPort: 8080}]}}");
}

static void claims(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(
        f, "{spec: {storageClassName: a, volumeName: pv, resources: {requests: {storage: 1Gi}}}}");

    assert_null(translate_pvc_update(f->a, now,
                                     doc(f, "{spec: {resources: {requests: {storage: 1024Mi}}}}")));
    assert_json(translate_pvc_update(
                    f->a, now,
                    doc(f, "{spec: {storageClassName: b, resources: {requests: {storage: 2Gi}}}}")),
                "{spec: {resources: {requests: {storage: 2Gi}}}}");
}

/* The host may have grown a claim: less than it has is the tenant's only if it lowered the size. */
static void claims_grown_by_the_host(void **state)
{
    static const struct {
        const char *sent, *now, *wanted;
        bool goes_down;
    } cases[] = {
        {"2Gi", "5Gi", "2Gi", false}, {"2Gi", "5Gi", "3Gi", false},    {"2Gi", "5Gi", "6Gi", true},
        {"2Gi", "2Gi", "1Gi", true},  {"2Gi", "5Gi", "1Gi", true},     {NULL, "5Gi", "2Gi", false},
        {NULL, "5Gi", "6Gi", true},   {"2Gi", "2Gi", "2048Mi", false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *now = json_new_object(f->a), *wanted = json_new_object(f->a), *patch;

        json_set_str(f->a, json_ensure_path(f->a, now, "spec.resources.requests"), "storage",
                     str_c(cases[i].now));
        json_set_str(f->a, json_ensure_path(f->a, wanted, "spec.resources.requests"), "storage",
                     str_c(cases[i].wanted));
        if (cases[i].sent)
            json_set_str(f->a, json_ensure_path(f->a, now, "metadata.annotations"),
                         "sublet.dev/sent-resources",
                         arena_printf(f->a, "{\"storage\":\"%s\"}", cases[i].sent));
        patch = translate_pvc_update(f->a, now, wanted);
        if ((json_get(patch, "spec") != NULL) != cases[i].goes_down)
            fail_msg("case %zu: %s", i, json_text(f->a, patch).p);
    }
}

static void resizes_by_the_host_are_named(void **state)
{
    struct fixture *f = *state;
    cJSON *v = doc(f, "{spec: {resources: {limits: {cpu: '4'}}, containers: [{name: main, "
                      "resources: {requests: {cpu: '1', memory: 1Gi}}}]}}");
    cJSON *was = doc(f, "{spec: {resources: {limits: {cpu: '4'}}, containers: [{name: main, "
                        "resources: {requests: {cpu: '1', memory: 1Gi}}}]}}");
    cJSON *is = doc(f, "{spec: {resources: {limits: {cpu: '8'}}, containers: [{name: main, "
                       "resources: {limits: {memory: 4Gi, nvidia.com/gpu: 1}, requests: {cpu: "
                       "1000m, memory: 2Gi}}}, {name: injected, resources: {limits: {cpu: "
                       "'1'}}}]}}");

    assert_str(translate_resized_by_host(f->a, was, is, v),
               "limits.cpu from 4 to 8, limits.memory of container main from none to 4Gi, "
               "requests.memory of container main from 1Gi to 2Gi");
    assert_null(translate_resized_by_host(f->a, was, was, v).p);
    assert_null(translate_resized_by_host(f->a, is, is, v).p);  /* seen before */
    assert_null(translate_resized_by_host(f->a, is, was, v).p); /* the tenant's own */
    assert_null(translate_resized_by_host(f->a, NULL, NULL, NULL).p);
}

/* ---- what a pod names ---- */

struct seen {
    struct arena *a;
    struct str text;
};

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    static const char *const kinds[] = {"configmap", "secret", "pvc", "sa"};
    struct seen *s = ctx;

    s->text = arena_printf(s->a, "%.*s%s/%.*s%s ", STR_F(s->text), kinds[kind], STR_F(name),
                           optional ? "?" : "");
}

static void on_token(void *ctx, struct str key, struct str audience, int64_t seconds)
{
    struct seen *s = ctx;

    s->text = arena_printf(s->a, "%.*s%.*s(%.*s,%lld) ", STR_F(s->text), STR_F(key),
                           STR_F(audience), (long long)seconds);
}

static const char NEEDY[] = "{metadata: {name: p, namespace: ml}, spec: {serviceAccountName: sa1, "
                            "imagePullSecrets: [{name: pull}], volumes: [{name: "
                            "a, configMap: {name: cm1, optional: true}}, {name: b, secret: "
                            "{secretName: s1}}, {name: c, persistentVolumeClaim: "
                            "{claimName: claim}}, {name: d, ephemeral: {}}, {name: e, projected: "
                            "{sources: [{serviceAccountToken: {path: t}}, "
                            "{configMap: {name: cm2}}, {secret: {name: s2}}, {serviceAccountToken: "
                            "{path: v, audience: vault, expirationSeconds: "
                            "600}}]}}], initContainers: [{name: i, env: [{name: A, valueFrom: "
                            "{configMapKeyRef: {name: cm3, key: k}}}]}], containers: "
                            "[{name: c, env: [{name: B, valueFrom: {secretKeyRef: {name: s3, key: "
                            "k, optional: true}}}], envFrom: [{configMapRef: "
                            "{name: cm4}}, {secretRef: {name: s4}}]}]}}";

static void references(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {f->a, STR("")};

    translate_pod_refs(doc(f, NEEDY), on_ref, &seen);
    assert_str(seen.text, "sa/sa1 configmap/cm3 configmap/cm4 secret/s4 secret/s3? configmap/cm1? "
                          "secret/s1 pvc/claim "
                          "pvc/p-d configmap/cm2 secret/s2 secret/pull? ");
    seen.text = STR("");
    translate_pod_tokens(f->a, doc(f, NEEDY), on_token, &seen);
    assert_str(seen.text, "e-0(,3600) e-3(vault,600) ");
}

struct expected {
    struct fixture *f;
    struct str host;
};

static void is_in_the_host_pod(void *ctx, enum translate_ref_kind kind, struct str name,
                               bool optional)
{
    struct expected *e = ctx;
    char host[64];

    (void)optional;
    translate_name(&e->f->tenant, STR("ml"), name, host);
    if (kind != REF_SERVICE_ACCOUNT)
        assert_has(e->host, host);
}

static void token_is_in_the_host_pod(void *ctx, struct str key, struct str audience,
                                     int64_t seconds)
{
    struct expected *e = ctx;

    (void)audience;
    (void)seconds;
    assert_has(e->host, arena_cstr(e->f->a, arena_printf(e->f->a, "\"key\":\"%.*s\"", STR_F(key))));
}

/* What is reported as needed is exactly what the host pod names. */
static void references_agree_with_the_host_pod(void **state)
{
    struct fixture *f = *state;
    struct pool_choice none = {0};
    struct expected e = {f, STR_NULL};
    cJSON *host;

    assert_ok(translate_pod(f->a, &f->tenant, &none, doc(f, NEEDY), NULL, &host, &f->err));
    e.host = json_text(f->a, host);
    translate_pod_refs(doc(f, NEEDY), is_in_the_host_pod, &e);
    translate_pod_tokens(f->a, doc(f, NEEDY), token_is_in_the_host_pod, &e);
    assert_false(str_contains(e.host, STR("\"sa1\"")));
}

static void ephemeral_containers(void **state)
{
    struct fixture *f = *state;
    struct pool_choice none = {0};
    cJSON *v = doc(f, "{metadata: {name: p, namespace: ml}, spec: {containers: [{name: c}], "
                      "ephemeralContainers: [{name: old}, "
                      "{name: debug, image: busybox, targetContainerName: c, stdin: true}]}}");
    cJSON *host = doc(f, "{spec: {ephemeralContainers: [{name: old}]}}"), *patch;
    const cJSON *list;

    assert_ok(translate_ephemeral(f->a, &f->tenant, &none, v, host, &patch, &f->err));
    list = json_path(patch, "spec.ephemeralContainers");
    assert_int_equal(json_count(list), 1);
    assert_str(json_str(json_get(json_at(list, 0), "name")), "debug");
    assert_str(json_str(json_get(json_at(list, 0), "targetContainerName")), "c");
    assert_str(json_str(json_get(json_at(json_get(json_at(list, 0), "env"), 0), "value")), "void");
    assert_ok(translate_ephemeral(
        f->a, &f->tenant, &none, v,
        doc(f, "{spec: {ephemeralContainers: [{name: old}, {name: debug}]}}"), &patch, &f->err));
    assert_null(patch);
}

static void same_input_same_bytes(void **state)
{
    struct fixture *f = *state;
    struct pool_choice none = {0};
    cJSON *one, *two;

    assert_ok(translate_pod(f->a, &f->tenant, &none, doc(f, NEEDY), NULL, &one, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, &none, doc(f, NEEDY), NULL, &two, &f->err));
    assert_true(str_eq(json_text(f->a, one), json_text(f->a, two)));
    assert_null(translate_pod_update(f->a, one, two, true));
}

/* Which of the host's pods stands for another one of the same name. */
static void the_same_pod(void **state)
{
    struct fixture *f = *state;
    static const char wanted[] =
        "{spec: {containers: [{name: c, image: a, args: [x], resources: {limits: {cpu: '1'}}}]}}";
    static const struct {
        const char *host;
        bool same;
    } cases[] = {
        {"{spec: {containers: [{name: c, image: b, args: [x], resources: {limits: {cpu: '1', "
         "memory: 1Gi}}}, {name: sidecar}], initContainers: [{name: injected}]}}",
         true},
        {"{spec: {containers: [{name: c, args: [y], resources: {limits: {cpu: '1'}}}]}}", false},
        {"{spec: {containers: [{name: c, resources: {limits: {cpu: '1'}}}]}}", false},
        {"{spec: {containers: [{name: c, args: [x], command: [z], resources: {limits: {cpu: "
         "'1'}}}]}}",
         false},
        {"{spec: {containers: [{name: c, args: [x], resources: {limits: {cpu: '2'}}}]}}", false},
        {"{spec: {containers: [{name: other, args: [x], resources: {limits: {cpu: '1'}}}]}}",
         false},
        {"{spec: {}}", false},
        {"{}", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(translate_pod_is_made_of(doc(f, cases[i].host), doc(f, wanted)),
                         cases[i].same);
}

/* ---- the host's cluster-autoscaler ---- */

#define SAFE "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define OWNER(api, kind)                                                                           \
    "ownerReferences: [{apiVersion: " api ", kind: " kind ", controller: true, name: o, uid: o}]"
#define REPLICA_SET OWNER("apps/v1", "ReplicaSet")
#define KEEP        "annotations: {" SAFE ": 'false'}"

static cJSON *host_pod(struct fixture *f, const char *ns, const char *meta, const char *spec)
{
    static const struct pool_choice none;
    cJSON *ret = NULL;

    assert_ok(translate_pod(
        f->a, &f->tenant, &none,
        doc(f, arena_printf(f->a,
                            "{metadata: {name: p, namespace: %s, uid: u%s%s}, spec: {%s%s"
                            "containers: [{name: c, image: i}]}}",
                            ns, *meta ? ", " : "", meta, spec, *spec ? ", " : "")
                   .p),
        NULL, &ret, &f->err));
    return ret;
}

static struct str safe_of(const cJSON *host)
{
    return json_str(json_get(json_path(host, "metadata.annotations"), SAFE));
}

static void what_the_autoscaler_may_evict(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *ns, *meta, *spec, *want;
    } cases[] = {
        {"ml", REPLICA_SET, "", "true"},
        {"ml", OWNER("apps/v1", "StatefulSet"), "", "true"},
        {"ml", OWNER("batch/v1", "Job"), "", "true"},
        {"ml", OWNER("v1", "ReplicationController"), "", "true"},
        {"ml", REPLICA_SET, "volumes: [{name: v, emptyDir: {medium: Memory}}]", "true"},
        {"ml", REPLICA_SET, "volumes: [{name: v, configMap: {name: m}}]", "true"},
        /* a tenant's word is none */
        {"ml", REPLICA_SET ", " KEEP, "", "true"},
        {"ml", KEEP, "", ""},
        {"ml", "annotations: {" SAFE ": 'true'}", "", ""},
        /* what it would keep in a cluster of its own */
        {"ml", "", "", ""},
        {"ml", "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: o, uid: o}]", "",
         ""},
        {"ml", OWNER("apps/v1", "DaemonSet"), "", ""},
        {"ml", OWNER("team.example/v1", "ReplicaSet"), "", ""},
        {"ml", OWNER("kubeflow.org/v1", "PyTorchJob"), "", ""},
        {"kube-system", REPLICA_SET, "", ""},
        {"ml", REPLICA_SET, "volumes: [{name: v, emptyDir: {}}]", ""},
        {"ml", OWNER("apps/v1", "StatefulSet"), "volumes: [{name: v, emptyDir: {}}]", ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(safe_of(host_pod(f, cases[i].ns, cases[i].meta, cases[i].spec)), cases[i].want);
    use_config(f, "policy: {annotations: {allow: [" SAFE "]}}\n");
    assert_str(safe_of(host_pod(f, "ml", REPLICA_SET ", " KEEP, "")), "false");
    assert_str(safe_of(host_pod(f, "ml", REPLICA_SET, "")), "true");
}

static void the_autoscaler_follows_the_controller(void **state)
{
    struct fixture *f = *state;
    cJSON *kept = host_pod(f, "ml", REPLICA_SET, ""), *bare = host_pod(f, "ml", "", ""), *patch;

    patch = translate_pod_update(f->a, bare, kept, true);
    assert_str(safe_of(patch), "true");
    assert_null(translate_pod_update(f->a, kept, kept, true));
    /* orphaned: no controller makes it again */
    patch = translate_pod_update(f->a, kept, bare, true);
    assert_true(json_is_null(json_get(json_path(patch, "metadata.annotations"), SAFE)));
    /* an admin's word on the host pod stays */
    json_set_str(f->a, json_path(kept, "metadata.annotations"), SAFE, STR("false"));
    assert_null(translate_pod_update(f->a, kept, host_pod(f, "ml", REPLICA_SET, ""), true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods, setup, teardown),
        cmocka_unit_test_setup_teardown(resizes, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_at_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(rewritten_images_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(images_are_mapped, setup, teardown),
        cmocka_unit_test_setup_teardown(images_are_mapped_by_prefix, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_map_replaces_no_image, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_without_a_record, setup, teardown),
        cmocka_unit_test_setup_teardown(resized_quantities_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(every_pod_has_a_record, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_autoscaler_may_evict, setup, teardown),
        cmocka_unit_test_setup_teardown(the_autoscaler_follows_the_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(services, setup, teardown),
        cmocka_unit_test_setup_teardown(claims, setup, teardown),
        cmocka_unit_test_setup_teardown(claims_grown_by_the_host, setup, teardown),
        cmocka_unit_test_setup_teardown(resizes_by_the_host_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(references, setup, teardown),
        cmocka_unit_test_setup_teardown(references_agree_with_the_host_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(ephemeral_containers, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(same_input_same_bytes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
