/* SPDX-License-Identifier: Apache-2.0 */
/* A pod of any shape under several configurations: it is refused in words, or what comes of it is
 * an allowed host pod, the same each time, and a pod that needs no update of itself. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <allowed.h>

#include <sublet/selector.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *const CONFIGS[] = {
    "{pools: [{name: h100, trust: adversarial, nodeSelector: {sublet.dev/pool: h100}, products: "
    "[H100], tolerations: "
    "[{key: nvidia.com/gpu, operator: Exists}], caps: {maxLifetime: 1h}, priorityTiers: {high: "
    "gpu}, runtimeClass: "
    "nvidia}, {name: mig, nodeSelector: {gpus: mig}, mode: mig, products: [A100], profiles: "
    "{1g.10gb: {gpuEq: '1/7'}}, "
    "rename: "
    "{nvidia.com/mig-1g.10gb: nvidia.com/gpu}}], bindings: [{pool: h100, guarantee: 8, default: "
    "true}, {pool: mig, "
    "burst: 2}]}",
    "{policy: {podSecurity: restricted, cpuNodes: [tier=shared], labels: {allow: [team.example/]}, "
    "annotations: {allow: "
    "[note]}}}",
    "{policy: {podSecurity: privileged}, pools: [{name: t4, nodeSelector: {gpus: t4}, mode: mps, "
    "products: [T4], resources: "
    "{nvidia.com/gpu: "
    "{gpuEq: '1/4'}}, rename: {nvidia.com/gpu: nvidia.com/gpu.shared}}], bindings: [{pool: t4, "
    "burst: 1}]}",
};

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    (void)ctx;
    (void)kind;
    (void)optional;
    assert(name.n);
}

static void on_token(void *ctx, struct str key, struct str audience, int64_t seconds)
{
    (void)ctx;
    (void)audience;
    (void)seconds;
    assert(key.n);
}

static void must_be_allowed(const char *finding)
{
    if (!finding)
        return;
    fprintf(stderr, "a host object must not be like this: %s\n", finding);
    abort();
}

static enum translate_node node_by_name(void *ctx, struct str name)
{
    (void)ctx;
    return name.n % 3 == 0 ? NODE_SHOWN : name.n % 3 == 1 ? NODE_OWN : NODE_UNKNOWN;
}

static void translate_one(struct arena *a, const struct translate_tenant *t, const cJSON *pod)
{
    struct str ns = json_str_at(pod, "metadata.namespace");
    struct pool_choice choice;
    cJSON *one, *two, *service;
    struct err err;

    err_init(&err, a);
    if (translate_service(a, t, pod, &service, &err) == 0 && service && ns.n &&
        json_str_at(pod, "metadata.name").n)
        must_be_allowed(allowed_service(a, t, service));
    err_clear(&err);
    if (pool_resolve(a, t->config, ns, pod, NULL, &choice, &err) ||
        translate_pod(a, t, &choice, pod, json_get(pod, "services"), &one, &err)) {
        assert(err.kind && err.message.n && str_is_utf8(err.message));
        return;
    }
    must_be_allowed(json_str_at(pod, "metadata.resourceVersion").n ? allowed_stored_pod(a, t, one)
                                                                   : allowed_pod(a, t, one));
    err_clear(&err);
    assert(translate_pod(a, t, &choice, pod, json_get(pod, "services"), &two, &err) == 0);
    assert(str_eq(json_text(a, one), json_text(a, two)));
    assert(!translate_pod_update(a, one, two, true) && !translate_pod_resize(a, one, two, true));
    translate_pod_refs(pod, on_ref, NULL);
    translate_pod_tokens(a, pod, on_token, NULL);
}

static void with_config(struct arena *a, const char *yaml, const cJSON *pod)
{
    struct config config;
    struct err err;

    err_init(&err, a);
    assert(config_load(a, str_c(yaml), 0, NULL, NULL, &config, &err) == 0);
    struct translate_tenant t = {
        .config = &config,
        .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
        .host_namespace = STR("team-research"),
        .api_ip = STR("10.96.7.7"),
        .api_port = 443,
        .dns_ip = STR("10.96.7.8"),
        .namespaces = translate_namespaces_of(a, json_get(pod, "namespaces")),
        .node = node_by_name,
    };
    translate_one(a, &t, pod);
}

/* No API stores a pod in another namespace, and host objects are labelled with it. */
static bool is_storable(const cJSON *pod)
{
    struct str ns = json_str_at(pod, "metadata.namespace");

    return !ns.n || !name_check_dns1123_label(ns);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct err err;
    cJSON *pod;

    err_init(&err, a);
    if (json_parse(a, (struct str){(const char *)data, size}, &pod, &err) == 0 &&
        is_storable(pod)) {
        for (size_t i = 0; i < COUNT(CONFIGS); i++)
            with_config(a, CONFIGS[i], pod);
    }
    arena_free(a);
    return 0;
}
