/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs: a quantity of the tenant's becomes the keys by which KAI gives it, and nothing a
 * tenant writes does. */

#include <sublet/translate_pool_node.h>
#include <sublet/fraction.h>

#include "allowed.h"
#include "test.h"

static const char CONFIG[] =
    "name: research\n"
    "policy: {annotations: {allow: [team.example/]}}\n"
    "pools:\n"
    "- {name: parts, mode: kai-fraction, nodeSelector: {sublet.dev/pool: parts}, products: [A100], "
    "tolerations: [{key: sublet.dev/pool, value: parts}], scheduler: {kind: kai, queueTemplate: "
    "'t-{tenant}'}}\n"
    "- {name: whole, nodeSelector: {sublet.dev/pool: whole}}\n"
    "bindings: [{pool: parts, guarantee: '1.5'}, {pool: whole, guarantee: 8}]\n";

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

#define PART(n) "resources: {limits: {sublet.dev/gpu-percent: '" n "'}}"

static cJSON *pod(struct fixture *f, const char *meta, const char *spec)
{
    return doc(f, arena_printf(f->a, "{metadata: {name: p, namespace: ml, uid: u, %s}, spec: {%s}}",
                               meta, spec)
                      .p);
}

static cJSON *down(struct fixture *f, const cJSON *vpod, struct pool_choice *choice)
{
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, choice, vpod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static struct str note(const cJSON *host, const char *key)
{
    return json_str(json_get(json_path(host, "metadata.annotations"), key));
}

static const cJSON *variable(const cJSON *container)
{
    const cJSON *found = NULL;

    json_each(one, json_get(container, "env"))
    {
        if (!str_eqc(json_str(json_get(one, "name")), "NVIDIA_VISIBLE_DEVICES"))
            continue;
        assert_null(found);
        found = one;
    }
    return found;
}

static void a_quantity_becomes_the_keys_of_kai(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice, held;
    cJSON *host = down(f,
                       pod(f, "labels: {x: y}",
                           "initContainers: [{name: i, image: i}], containers: [{name: a, image: "
                           "i}, {name: b, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: "
                           "void}], " PART("5") "}]"),
                       &choice);
    const cJSON *containers = json_path(host, "spec.containers"), *b = json_at(containers, 1);
    struct str name = json_str_at(host, "metadata.name");
    struct str maps = arena_printf(f->a, "%.*s-shared-gpu", STR_F(str_from(name, name.n - 16)));

    assert_str(note(host, "gpu-fraction"), "0.05");
    assert_str(note(host, "gpu-fraction-container-name"), "b");
    assert_true(str_eq(note(host, "runai/shared-gpu-configmap"), maps));
    assert_str(json_str_at(host, "spec.schedulerName"), "kai-scheduler");
    assert_str(json_str(json_get(json_path(host, "metadata.labels"), "kai.scheduler/queue")),
               "t-research");
    assert_false(str_contains(json_text(f->a, json_path(host, "spec")), STR("gpu-percent")));
    assert_json(variable(b), arena_printf(f->a,
                                          "{name: NVIDIA_VISIBLE_DEVICES, valueFrom: "
                                          "{configMapKeyRef: {name: %.*s-1, key: "
                                          "NVIDIA_VISIBLE_DEVICES}}}",
                                          STR_F(maps))
                                 .p);
    assert_str(json_str(json_get(variable(json_at(containers, 0)), "value")), "void");
    assert_str(
        json_str(json_get(variable(json_at(json_path(host, "spec.initContainers"), 0)), "value")),
        "void");
    /* What is charged is what the host pod has, exactly. */
    assert_int_equal(choice.gpu_eq.num, 1);
    assert_int_equal(choice.gpu_eq.den, 20);
    assert_true(pool_of_host_pod(f->a, &f->config, host, &held));
    assert_int_equal(rational_cmp(held.gpu_eq, choice.gpu_eq), 0);
    assert_ptr_equal(held.binding, choice.binding);
    assert_true(str_contains(json_text(f->a, json_path(host, "spec.affinity")),
                             STR("nvidia.com/gpu.sharing-strategy")) ||
                str_contains(json_text(f->a, json_path(host, "spec.affinity")), STR("A100")));
    assert_false(str_contains(json_text(f->a, host), STR("SHARED")));
}

/* Every hundredth that can be requested is charged as it is, and is what KAI reads. */
static void every_part_is_charged_exactly(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i < 100; i++) {
        struct pool_choice choice, held;
        cJSON *host =
            down(f,
                 pod(f, "labels: {x: y}",
                     arena_printf(f->a, "containers: [{name: c, image: i, " PART("%d") "}]", i).p),
                 &choice);

        assert_int_equal(rational_cmp(choice.gpu_eq, (struct rational){i, 100}), 0);
        assert_int_equal(fraction_of_pod(host), i);
        assert_true(pool_of_host_pod(f->a, &f->config, host, &held));
        assert_int_equal(rational_cmp(held.gpu_eq, choice.gpu_eq), 0);
    }
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"containers: [{name: c, image: i, " PART("100") "}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent=100 of container \"c\": pool \"parts\" "
         "has parts of GPUs, 1 to 99"},
        {"containers: [{name: c, image: i, " PART("50") "}, {name: d, image: i, " PART("1") "}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent: only one container of a pod can have a "
         "part of a GPU"},
        {"initContainers: [{name: j, image: i, " PART(
             "5") "}], containers: [{name: c, image: i, " PART("50") "}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent of init container \"j\": a part of a GPU "
         "is for a container"},
        {"initContainers: [{name: j, image: i, restartPolicy: Always, " PART(
             "5") "}], containers: "
                  "[{name: c, image: i}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent of init container \"j\": a part of a GPU "
         "is for a container"},
        {"containers: [{name: c, image: i, " PART("500m") "}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent must be a whole number"},
        {"containers: [{name: c, image: i, resources: {limits: {sublet.dev/gpu-percent: 50, "
         "nvidia.com/gpu: 1}}}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent and nvidia.com/gpu are not offered "
         "together by any pool of this virtual cluster"},
        {"resources: {limits: {sublet.dev/gpu-percent: 50}}, containers: [{name: c, image: i}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent must be asked for by a container or init "
         "container"},
        {"containers: [{name: c, image: i, env: [{name: CUDA_DEVICE_MEMORY_LIMIT, value: "
         "'0'}], " PART("50") "}]",
         "pods \"p\" is forbidden: env CUDA_DEVICE_MEMORY_LIMIT of container \"c\" is not allowed: "
         "devices are given by the scheduler, not by variables"},
    };
    struct fixture *f = *state;
    struct pool_choice choice;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(pool_resolve(f->a, &f->config, STR("ml"),
                                  pod(f, "labels: {x: y}", cases[i].spec), NULL, &choice, &f->err),
                     cases[i].message);
    use_config(f, "{pools: [{name: whole, nodeSelector: {p: w}}], bindings: [{pool: whole, "
                  "guarantee: 1}]}");
    assert_error(
        pool_resolve(f->a, &f->config, STR("ml"),
                     pod(f, "labels: {x: y}", "containers: [{name: c, image: i, " PART("50") "}]"),
                     NULL, &choice, &f->err),
        "pods \"p\" is forbidden: sublet.dev/gpu-percent is not offered by any pool of "
        "this virtual cluster: offered nvidia.com/gpu");
}

/* Keys of KAI that a tenant writes change neither the part nor its container. */
static void keys_of_a_tenant_have_no_effect(void **state)
{
    static const char theirs[] =
        "annotations: {gpu-fraction: '0.99', gpu-memory: '1', gpu-fraction-num-devices: '8', "
        "gpu-fraction-container-name: other, runai/shared-gpu-configmap: theirs, mps: 'true', "
        "received-resource-type: Regular, pod-group-name: g}, labels: {runai-gpu-group: x, "
        "runai-gpu-group/x: x, kai.scheduler/queue: theirs, project: theirs, "
        "kai-resource-isolator.io/webhook: ignore}";
    struct fixture *f = *state;
    struct pool_choice choice;
    cJSON *host =
        down(f, pod(f, theirs, "containers: [{name: c, image: i, " PART("25") "}]"), &choice);

    assert_str(note(host, "gpu-fraction"), "0.25");
    assert_str(note(host, "gpu-fraction-container-name"), "c");
    assert_true(str_has_suffix(note(host, "runai/shared-gpu-configmap"), STR("-shared-gpu")));
    assert_false(str_contains(note(host, "runai/shared-gpu-configmap"), STR("theirs")));
    assert_null(json_get(json_path(host, "metadata.annotations"), "gpu-memory"));
    assert_null(json_get(json_path(host, "metadata.annotations"), "gpu-fraction-num-devices"));
    assert_null(json_get(json_path(host, "metadata.annotations"), "received-resource-type"));
    assert_null(json_get(json_path(host, "metadata.labels"), "runai-gpu-group"));
    assert_int_equal(fraction_of_pod(host), 25);

    host = down(f, pod(f, theirs, "containers: [{name: c, image: i}]"), &choice);
    assert_int_equal(fraction_of_pod(host), 0);
    assert_null(choice.binding);
    host = down(f,
                pod(f, theirs,
                    "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]"),
                &choice);
    assert_int_equal(fraction_of_pod(host), 0);
    assert_str(choice.binding->pool->name, "whole");
}

/* What KAI wrote since, and an edit of the tenant's, send nothing of it again. */
static void an_update_leaves_what_kai_wrote(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice;
    const char *spec = "containers: [{name: c, image: i, " PART("25") "}]";
    cJSON *now = down(f, pod(f, "labels: {x: y}", spec), &choice);
    cJSON *wanted =
        down(f, pod(f, "labels: {x: z}, annotations: {gpu-fraction: '0.01'}", spec), &choice);
    cJSON *patch;

    json_set_str(f->a, json_path(now, "metadata.labels"), "runai-gpu-group", STR("g"));
    json_set_str(f->a, json_path(now, "metadata.annotations"), "received-resource-type",
                 STR("Fraction"));
    json_set_str(f->a, json_path(now, "metadata.annotations"), "runai/shared-gpu-configmap",
                 STR("another"));
    patch = translate_pod_update(f->a, now, wanted, true);
    assert_non_null(patch);
    assert_false(str_contains(json_text(f->a, patch), STR("gpu-fraction")));
    assert_false(str_contains(json_text(f->a, patch), STR("runai")));
    assert_false(str_contains(json_text(f->a, patch), STR("received")));
}

static void nodes_show_parts(void **state)
{
    struct fixture *f = *state;
    const cJSON *host = doc(f, "{metadata: {name: n, labels: {sublet.dev/pool: parts, "
                               "nvidia.com/gpu.product: A100}}, status: {capacity: "
                               "{nvidia.com/gpu: '4'}, allocatable: {nvidia.com/gpu: '4'}}}");
    struct pod_requests requests;
    struct pool_choice choice;
    cJSON *node = translate_node_up(f->a, &f->tenant, host);

    assert_json(json_path(node, "status.capacity"), "{sublet.dev/gpu-percent: '400'}");
    assert_json(json_path(node, "status.allocatable"), "{sublet.dev/gpu-percent: '150'}");
    translate_pod_requests(
        f->a,
        down(f, pod(f, "labels: {x: y}", "containers: [{name: c, image: i, " PART("25") "}]"),
             &choice),
        &requests);
    assert_int_equal(requests.n, 1);
    assert_str(requests.items[0].resource, "sublet.dev/gpu-percent");
    assert_true(requests.items[0].nano == (__int128)25 * 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_quantity_becomes_the_keys_of_kai, setup, teardown),
        cmocka_unit_test_setup_teardown(every_part_is_charged_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_of_a_tenant_have_no_effect, setup, teardown),
        cmocka_unit_test_setup_teardown(an_update_leaves_what_kai_wrote, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_show_parts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
