/* SPDX-License-Identifier: Apache-2.0 */
/* A control plane in the role of a host, for one test: see the header. */
#include "host_world.h"

#include <sublet/embedded.h>

static const char NODES[] =
    "nodes:\n"
    "- name: gpu-%d\n"
    "  count: 2\n"
    "  labels: {pool: a100}\n"
    "  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]\n"
    "  capacity: {cpu: 16, memory: 64Gi, pods: 20}\n"
    "  gpu: {model: a100, count: 4}\n"
    "- name: cpu-%d\n"
    "  count: 2\n"
    "  zone: r1b\n"
    "  capacity: {cpu: 4, memory: 16Gi, pods: 10}\n";

struct world *H;
static bool left_to_upstream;

static void *open_host(struct vapi *api)
{
    struct embedded_options options = {.nodes = str_c(NODES),
                                       .external_scheduler = left_to_upstream,
                                       .external_controllers = left_to_upstream};
    struct embedded *e;
    struct err err;

    err_init(&err, NULL);
    if (embedded_new(api, &options, &e, &err))
        fail_msg("%.*s", STR_F(err.message));
    return e;
}

static void start_host(void *guest)
{
    embedded_start(guest);
}

static void close_host(void *guest, void (*closed)(void *ctx), void *ctx)
{
    embedded_close(guest, closed, ctx);
}

static int64_t due_of_host(const void *guest)
{
    return embedded_next_due(guest);
}

static void wake_host(void *guest)
{
    embedded_wake(guest);
}

int host_set_up(void **state)
{
    static const struct world_guest guest = {open_host, start_host, close_host, due_of_host,
                                             wake_host};

    (void)state;
    H = world_new_with(1, &guest);
    world_create(H, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_settle(H);
    return 0;
}

int host_set_up_upstream(void **state)
{
    left_to_upstream = true;
    return host_set_up(state);
}

int host_tear_down(void **state)
{
    (void)state;
    world_free(H);
    left_to_upstream = false;
    return 0;
}

void host_pod_full(const char *name, const char *metadata, const char *spec, const char *container)
{
    const char *text = arena_printf(world_arena(H),
                                    "{'metadata':{'name':'%s'%s%s},'spec':{%s%s'containers':["
                                    "{'name':'main','image':'busybox:1'%s%s}]}}",
                                    name, *metadata ? "," : "", metadata, spec, *spec ? "," : "",
                                    *container ? "," : "", container)
                           .p;

    world_create(H, "pods", "n", text);
    world_settle(H);
}

void host_pod(const char *name, const char *spec, const char *resources)
{
    host_pod_full(name, "", spec, arena_printf(world_arena(H), "'resources':%s", resources).p);
}

cJSON *host_get(const char *name)
{
    return world_get(H, "pods", "n", name);
}

static const char *text_at(const cJSON *object, const char *path)
{
    return arena_cstr(world_arena(H), json_str_at(object, path));
}

const char *host_node_of(const char *name)
{
    return text_at(host_get(name), "spec.nodeName");
}

const char *host_phase_of(const char *name)
{
    return text_at(host_get(name), "status.phase");
}

const char *host_words_of(const char *name)
{
    const cJSON *conditions = json_path(host_get(name), "status.conditions");

    return text_at(condition_get(conditions, "PodScheduled"), "message");
}
