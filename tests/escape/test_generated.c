/* SPDX-License-Identifier: Apache-2.0 */
/* 100,000 objects of a hostile tenant through translate, under pools of every mode and none: each
 * is refused in words, or what would go to the host is allowed by allowed.rules.
 *
 *   test_generated [SEED [COUNT [FIRST]]]      the seed is printed when something is let through */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <sublet/clock.h>
#include <sublet/schema.h>
#include <sublet/translate.h>
#include <sublet/yaml.h>

#include "allowed.h"
#include "generate.h"

enum { COUNT = 100000, FINDINGS_MAX = 20 };

#define POOL(name, more)                                                                           \
    "{name: " name ", nodeSelector: {sublet.dev/pool: " name "}, tolerations: [{key: sublet.dev/"  \
    "pool, operator: Equal, value: " name ", effect: NoSchedule}], " more "}"

static const char *const CONFIGS[] = {
    "{}",
    "{policy: {podSecurity: restricted, storageClasses: [standard], cpuNodes: [tier=shared]}, "
    "sync: "
    "{toHost: {pods: {enforceTolerations: ['dedicated=ml:NoSchedule', edge.example/site]}}}}",
    "{policy: {podSecurity: privileged}}",
    "{pools: [" POOL("h100", "products: [H100], trust: adversarial, caps: {maxLifetime: 1h}, "
                             "runtimeClass: nvidia, priorityTiers: {high: gpu-high}, scheduler: "
                             "{name: gpu-scheduler}") "], bindings: [{pool: h100, guarantee: 80}]}",
    "{pools: [" POOL(
        "mig",
        "mode: mig, products: [A100], profiles: {1g.10gb: {gpuEq: '1/7'}}") "], bindings: [{pool: "
                                                                            "mig, burst: 20}]}",
    "{pools: [" POOL(
        "t4", "mode: mps, products: [T4], resources: {nvidia.com/gpu: {gpuEq: '1/4'}}, "
              "rename: {nvidia.com/gpu: nvidia.com/gpu.shared}") "], bindings: [{pool: t4, burst: "
                                                                 "10}], policy: {labels: {allow: "
                                                                 "[team.example/, note]}, "
                                                                 "annotations: {allow: [note, "
                                                                 "team.example/]}}}",
    "{pools: [" POOL(
        "ts",
        "mode: time-slicing, kind: shared, products: [L4], resources: "
        "{nvidia.com/gpu: {gpuEq: '1/4'}}") ", " POOL("h100",
                                                      "products: [H100], scheduler: {kind: kueue, "
                                                      "queueTemplate: gpu}") "], bindings: [{pool: "
                                                                             "ts, burst: 10, "
                                                                             "default: "
                                                                             "true}, {pool: "
                                                                             "h100, guarantee: "
                                                                             "10}]}",
    "{pools: [" POOL("kai", "products: [L4], scheduler: {kind: kai, queueTemplate: gpu}") ", " POOL(
        "h100",
        "products: [H100], scheduler: {kind: volcano, queueTemplate: gpu}") "], bindings: "
                                                                            "[{pool: kai, burst: "
                                                                            "10, default: true}, "
                                                                            "{pool: h100, "
                                                                            "guarantee: 10}]}",
    "{pools: [" POOL(
        "parts",
        "mode: kai-fraction, products: [L4], scheduler: {kind: kai, "
        "queueTemplate: gpu}") ", " POOL("h100",
                                         "products: [H100]") "], "
                                                             "bindings: [{pool: parts, burst: 10}, "
                                                             "{pool: h100, guarantee: 10}]}",
    "{pools: [" POOL("hami", "mode: hami, products: [L4], gpuMemoryMiB: 24576, scheduler: {kind: "
                             "hami}") "], bindings: [{pool: hami, burst: 10}]}",
    "{pools: [" POOL("vgpu", "mode: volcano-vgpu, gpuMemoryMiB: 81920, scheduler: {kind: volcano, "
                             "queueTemplate: gpu}") "], bindings: [{pool: vgpu, burst: 10}]}",
};
enum { N_CONFIGS = COUNT(CONFIGS) };

struct run {
    struct arena *arena, *scratch;
    struct translate_tenant tenants[N_CONFIGS];
    struct config configs[N_CONFIGS];
    struct generator generator;
    uint64_t seed;
    size_t emitted, refused, findings;
};

/* node-1 is shown; own-1 is the tenant's. */
static enum translate_node node_by_name(void *ctx, struct str name)
{
    (void)ctx;
    return str_has_prefix(name, STR("node-"))  ? NODE_SHOWN
           : str_has_prefix(name, STR("own-")) ? NODE_OWN
                                               : NODE_UNKNOWN;
}

static void load(struct run *r)
{
    struct err err;
    cJSON *namespaces;

    err_init(&err, r->arena);
    if (yaml_parse(r->arena,
                   STR("[{metadata: {name: ml, labels: {x: all}}}, {metadata: {name: default}}]"),
                   NULL, NULL, &namespaces, &err))
        abort();
    for (size_t i = 0; i < N_CONFIGS; i++) {
        if (config_load(r->arena, str_c(CONFIGS[i]), 0, NULL, NULL, &r->configs[i], &err)) {
            fprintf(stderr, "%s: %.*s\n", CONFIGS[i], STR_F(err.message));
            abort();
        }
        r->tenants[i] = (struct translate_tenant){
            .config = &r->configs[i],
            .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
            .host_namespace = STR("team-research"),
            .api_ip = STR("10.96.7.7"),
            .api_port = i % 2 ? 443 : 6443,
            .dns_ip = i % 3 ? STR("10.96.7.8") : STR(""),
            .namespaces = translate_namespaces_of(r->arena, i % 2 ? namespaces : NULL),
            .node = node_by_name,
            .host_class = i % 4 ? STR("standard") : STR(""),
            .host_class_known = i % 4 != 0,
            .nodes_shown = 2,
        };
    }
}

/* shape NULL: a pod that was stored already. */
static void look(struct run *r, uint64_t number, const struct translate_tenant *t,
                 const char *shape, const cJSON *from, const cJSON *host)
{
    const char *bad = shape ? allowed_object(r->scratch, t, shape, host)
                            : allowed_stored_pod(r->scratch, t, host);

    r->emitted++;
    if (!bad)
        return;
    r->findings++;
    if (r->findings > FINDINGS_MAX)
        return;
    printf(
        "let through: %s\n  seed %llu, object %llu, configuration %s\n  from %.*s\n  made %.*s\n",
        bad, (unsigned long long)r->seed, (unsigned long long)number, CONFIGS[t - r->tenants],
        STR_F(json_text(r->scratch, from)), STR_F(json_text(r->scratch, host)));
}

static void note_refusal(struct run *r, const struct err *err)
{
    assert(err->kind && err->message.n && str_is_utf8(err->message));
    r->refused++;
}

static void try_pod(struct run *r, uint64_t number, const struct translate_tenant *t,
                    const cJSON *pod)
{
    struct str ns = json_str_at(pod, "metadata.namespace");
    struct pool_choice choice;
    cJSON *host, *patch;
    struct err err;

    err_init(&err, r->scratch);
    if (pool_resolve(r->scratch, t->config, ns, pod, NULL, &choice, &err) ||
        translate_pod(r->scratch, t, &choice, pod, NULL, &host, &err)) {
        note_refusal(r, &err);
        return;
    }
    look(r, number, t, json_str_at(pod, "metadata.resourceVersion").n ? NULL : "pod", pod, host);
    if (translate_ephemeral(r->scratch, t, &choice, pod, host, &patch, &err)) {
        note_refusal(r, &err);
        return;
    }
    json_each(container, json_path(patch, "spec.ephemeralContainers"))
    {
        look(r, number, t, "container", pod, container);
    }
}

static void try_other(struct run *r, uint64_t number, const struct translate_tenant *t,
                      const char *kind, const cJSON *object)
{
    cJSON *host = NULL;
    struct err err;
    int rc = 0;

    err_init(&err, r->scratch);
    if (str_eqc(str_c(kind), "Service"))
        rc = translate_service(r->scratch, t, object, &host, &err);
    else if (str_eqc(str_c(kind), "PersistentVolumeClaim"))
        rc = translate_pvc(r->scratch, t, object, NULL, &host, &err);
    else if (str_eqc(str_c(kind), "Secret"))
        host = translate_secret(r->scratch, t, object);
    else
        host = translate_config_map(r->scratch, t, object);
    if (rc) {
        note_refusal(r, &err);
        return;
    }
    if (host)
        look(r, number, t,
             str_eqc(str_c(kind), "Service")                 ? "service"
             : str_eqc(str_c(kind), "PersistentVolumeClaim") ? "claim"
             : str_eqc(str_c(kind), "Secret")                ? "secret"
                                                             : "config-map",
             object, host);
}

/* One object, decoded as a body is, under one configuration. */
static void try_one(struct run *r, uint64_t number)
{
    static const char *const kinds[] = {"Pod",
                                        "Pod",
                                        "Pod",
                                        "Pod",
                                        "Pod",
                                        "Pod",
                                        "Service",
                                        "Service",
                                        "Service",
                                        "Pod",
                                        "Pod",
                                        "Pod",
                                        "PersistentVolumeClaim",
                                        "Secret",
                                        "ConfigMap"};
    const struct translate_tenant *t;
    struct strict_errors strict = {0};
    const char *kind;
    cJSON *object;
    struct err err;

    r->generator.arena = r->scratch;
    r->generator.state = r->seed + number * 0x632BE59BD9B4E019u;
    kind = kinds[generator_below(&r->generator, COUNT(kinds))];
    t = &r->tenants[generator_below(&r->generator, N_CONFIGS)];
    object = generate_object(&r->generator, kind);
    err_init(&err, r->scratch);
    strict.arena = r->scratch;
    if (schema_normalise(r->scratch, &SCHEMA_BUILTIN,
                         schema_builtin_root(STR(""), STR("v1"), str_c(kind)), object, &strict,
                         &err)) {
        note_refusal(r, &err);
    } else if (str_eqc(str_c(kind), "Pod")) {
        try_pod(r, number, t, object);
    } else {
        try_other(r, number, t, kind, object);
    }
    arena_reset(r->scratch);
}

/* Every field of the spec has been tried. */
static size_t report_missed(struct run *r)
{
    static const char *const kinds[] = {"Pod", "Service", "PersistentVolumeClaim"};
    struct buf b = BUF_INIT(0);
    size_t total = 0, missed = 0;

    for (size_t i = 0; i < COUNT(kinds); i++)
        total += generator_missed(&r->generator, kinds[i], &b);
    for (size_t i = 0; i < b.n; i++)
        missed += b.p[i] == '\n';
    printf("%zu of %zu fields written\n%.*s", total - missed, total, STR_F(buf_str(&b)));
    buf_fini(&b);
    return missed;
}

int main(int argc, char **argv)
{
    struct run r = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : rng_u64(&RNG_SYSTEM)};
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    size_t missed = 0;

    r.arena = arena_new(0);
    r.scratch = arena_new(0);
    r.generator.reached = mem_alloc(SCHEMA_BUILTIN.n_fields);
    load(&r);
    for (uint64_t i = first; i < first + count; i++)
        try_one(&r, i);
    if (count >= COUNT)
        missed = report_missed(&r);
    printf(
        "escape: %llu objects generated (seed %llu), %zu host objects made, %zu refused, %zu let "
        "through\n",
        (unsigned long long)count, (unsigned long long)r.seed, r.emitted, r.refused, r.findings);
    mem_free(r.generator.reached);
    arena_free(r.scratch);
    arena_free(r.arena);
    return r.findings || missed ? 1 : 0;
}
