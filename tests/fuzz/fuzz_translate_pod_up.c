/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a host says about a pod, a node, a Service or an event ({"host": ..., "virtual": ...}):
 * nothing fails, what goes up settles after one step, and what is shown of a node is by list. */

#include <assert.h>

#include <sublet/translate.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Taking over what came up leaves nothing more to take over. */
static void status_settles(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                           const cJSON *v, bool applied)
{
    cJSON *status = translate_pod_status_up(a, t, host, v, applied), *next;

    if (!status || !json_is_object(v))
        return;
    assert(!json_get(status, "nominatedNodeName") && !json_get(status, "resourceClaimStatuses"));
    next = json_copy(a, v);
    json_set(a, next, "status", status);
    assert(!translate_pod_status_up(a, t, host, next, applied));
}

static void spec_settles(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                         const cJSON *v)
{
    cJSON *spec = translate_service_spec_up(a, host, v), *next;

    if (spec) {
        next = json_copy(a, v);
        json_set(a, next, "spec", spec);
        assert(!translate_service_spec_up(a, host, next));
    }
    translate_pvc_spec_up(a, t, host, v);
    translate_service_status_up(a, host, v);
    translate_pvc_status_up(a, t, host, v);
}

static void check_node(struct arena *a, const struct translate_tenant *t, const cJSON *host)
{
    const cJSON *node = translate_node_up(a, t, host), *status = json_get(node, "status");

    assert(!json_get(json_get(node, "metadata"), "annotations"));
    assert(!json_get(status, "images") && !json_get(status, "volumesInUse"));
    assert(!json_str_at(node, "status.nodeInfo.machineID").n);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char config_text[] =
        "{pools: [{name: t4, nodeSelector: {p: t4}, mode: mps, resources: {nvidia.com/gpu: {gpuEq: "
        "'1/4'}}, rename: "
        "{nvidia.com/gpu: nvidia.com/gpu.shared}}], bindings: [{pool: t4, burst: 1}]}";
    struct arena *a = arena_new(0);
    const cJSON *host, *v;
    struct config config;
    struct err err;
    cJSON *input;

    err_init(&err, a);
    assert(config_load(a, str_c(config_text), 0, NULL, NULL, &config, &err) == 0);
    struct translate_tenant t = {.config = &config,
                                 .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
                                 .host_namespace = STR("team-research")};
    if (json_parse(a, (struct str){(const char *)data, size}, &input, &err) == 0) {
        struct str ns, name, uid;

        host = json_get(input, "host");
        v = json_get(input, "virtual");
        status_settles(a, &t, host, v, json_true(json_get(input, "applied")));
        spec_settles(a, &t, host, v);
        check_node(a, &t, host);
        assert(translate_pod_is_applied(a, host, host, true));
        assert(!translate_pod_update(a, host, host, true) && !translate_data_update(a, host, host));
        assert(!translate_service_update(a, host, host) && !translate_pvc_update(a, host, host));
        translate_pod_update(a, host, v, true);
        translate_resized_by_host(a, v, host, v);
        translate_pod_gates_down(a, host, v);
        translate_event_up(a, &t, host, json_str_at(v, "metadata.namespace"),
                           json_str_at(v, "metadata.name"), STR("u"));
        translate_owner(&t, host, &ns, &name, &uid);
    }
    arena_free(a);
    return 0;
}
