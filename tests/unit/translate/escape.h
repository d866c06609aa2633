/* SPDX-License-Identifier: Apache-2.0
 *
 * The tenant and the pods of the tests of escapes: a pod is given by what its spec holds. */
#pragma once

#include "allowed.h"
#include "test.h"

static const char CONFIG[] =
    "pools: [{name: h100, nodeSelector: {sublet.dev/pool: h100}, products: [H100],\n"
    "  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}], runtimeClass: "
    "nvidia,\n"
    "  priorityTiers: {high: gpu-high}}]\n"
    "bindings: [{pool: h100, guarantee: 8}]\n";

static inline int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static inline int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static inline const cJSON *pod_of(struct fixture *f, const char *spec)
{
    return doc(
        f, arena_cstr(f->a,
                      arena_printf(f->a, "{metadata: {name: p, namespace: ml, uid: u}, spec: {%s}}",
                                   spec)));
}

static inline int check(struct fixture *f, const char *spec)
{
    return translate_check_pod(f->a, &f->tenant, STR("ml"), pod_of(f, spec), &f->err);
}

/* The host pod of a spec that is let through; every emitted pod is held against the walker. */
static inline cJSON *emit(struct fixture *f, const cJSON *pod)
{
    struct pool_choice choice;
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), pod, NULL, &choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static inline cJSON *emit_spec(struct fixture *f, const char *spec)
{
    return json_get(emit(f, pod_of(f, spec)), "spec");
}

#define C "containers: [{name: c, image: i"

/* At apply time, and by translation. */
static inline void check_refused(struct fixture *f, const char *spec, const char *message)
{
    const char *text = arena_cstr(f->a, arena_printf(f->a, "pods \"p\" is forbidden: %s", message));
    struct pool_choice none = {0};
    int rc = check(f, spec);
    cJSON *ret;

    assert_true(rc && f->err.kind == &ERR_FORBIDDEN);
    assert_error(rc, text);
    assert_error(translate_pod(f->a, &f->tenant, &none, pod_of(f, spec), NULL, &ret, &f->err),
                 text);
}
