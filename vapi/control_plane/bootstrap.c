/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The objects every cluster has from the start: its namespaces, the two system priority classes,
 * the FlowSchemas and their priority levels. Existing objects stay unchanged. It must never
 * overwrite changes of the tenant. Source: k8s.io/kubernetes
 * pkg/controlplane/controller/systemnamespaces, pkg/apis/scheduling/v1. */
#include "control_plane.h"

#include "../api/flow/flow.h"

#include <assert.h>

static const struct seed {
    const char *group, *version, *resource, *object;
} SEEDS[] = {
    {"", "v1", "namespaces", "{\"metadata\":{\"name\":\"default\"}}"},
    {"", "v1", "namespaces", "{\"metadata\":{\"name\":\"kube-system\"}}"},
    {"", "v1", "namespaces", "{\"metadata\":{\"name\":\"kube-public\"}}"},
    {"", "v1", "namespaces", "{\"metadata\":{\"name\":\"kube-node-lease\"}}"},
    {"scheduling.k8s.io", "v1", "priorityclasses",
     "{\"metadata\":{\"name\":\"system-node-critical\"},\"value\":2000001000,"
     "\"description\":\"Used for system critical pods that must not be moved from their current "
     "node.\"}"},
    {"scheduling.k8s.io", "v1", "priorityclasses",
     "{\"metadata\":{\"name\":\"system-cluster-critical\"},\"value\":2000000000,"
     "\"description\":\"Used for system critical pods that must run in the cluster, but can be "
     "moved to another node if necessary.\"}"},
};
#define N_SEEDS COUNT(SEEDS)

struct bootstrap {
    struct vapi *api;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
    size_t under_way;
    struct err err;
};

static void one_less(struct bootstrap *b)
{
    if (--b->under_way)
        return;
    b->done(b->ctx, b->err.kind ? &b->err : NULL);
    mem_free(b);
}

static void on_created(void *ctx, const struct err *err, const struct store_object *object)
{
    struct bootstrap *b = ctx;

    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS && !auth_can_wait(b->api, err))
        err_set(&b->err, err->kind, "%.*s", STR_F(err->message));
    one_less(b);
}

static void on_turn(void *ctx)
{
    one_less(ctx);
}

static void create_missing(struct bootstrap *b, const struct resource *r, const cJSON *object)
{
    struct str name = json_str_at(object, "metadata.name");

    if (!r || store_latest(b->api->o.store, r->storage, STR(""), name))
        return;
    b->under_way++;
    vapi_create(b->api, r, STR(""), object, on_created, b);
}

static void on_flow_seed(void *ctx, const char *resource, cJSON *object)
{
    struct bootstrap *b = ctx;

    create_missing(b,
                   registry_find(b->api->registry, STR("flowcontrol.apiserver.k8s.io"), STR("v1"),
                                 str_c(resource)),
                   object);
}

void bootstrap_objects(struct vapi *api, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct bootstrap *b = NEW(struct bootstrap);

    b->api = api;
    b->done = done;
    b->ctx = ctx;
    b->under_way = 1; /* one count for this function: done() is never called from here */
    err_init(&b->err, NULL);
    for (size_t i = 0; i < N_SEEDS; i++) {
        struct registry *g = b->api->registry;
        struct arena *a = arena_new(0);
        cJSON *object = NULL;
        int failed = json_parse(a, str_c(SEEDS[i].object), &object, NULL);

        assert(!failed);
        create_missing(b,
                       registry_find(g, str_c(SEEDS[i].group), str_c(SEEDS[i].version),
                                     str_c(SEEDS[i].resource)),
                       object);
        arena_free(a);
    }
    flow_keep_seeds(on_flow_seed, b);
    api_defer(api, on_turn, b);
}
