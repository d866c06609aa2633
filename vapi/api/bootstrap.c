/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The objects every cluster is born with: its namespaces and the two system priority classes. What
 * is there already stays as it is. It must never overwrite what the tenant changed. Source:
 * k8s.io/kubernetes pkg/controlplane/controller/systemnamespaces, pkg/apis/scheduling/v1. */
#include "api.h"

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
#define N_SEEDS (sizeof(SEEDS) / sizeof(SEEDS[0]))

struct bootstrap {
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
    if (err && err->kind != &ERR_ALREADY_EXISTS)
        err_set(&b->err, err->kind, "%.*s", STR_F(err->message));
    one_less(b);
}

static void on_turn(void *ctx)
{
    one_less(ctx);
}

static void create_seed(struct vapi *api, struct bootstrap *b, const struct seed *s)
{
    const struct resource *r =
        registry_find(api->registry, str_c(s->group), str_c(s->version), str_c(s->resource));
    struct arena *a = arena_new(0);
    cJSON *object = NULL;
    int failed = json_parse(a, str_c(s->object), &object, NULL);

    assert(!failed);
    if (r &&
        !store_latest(api->o.store, r->storage, STR(""), json_str_at(object, "metadata.name"))) {
        b->under_way++;
        vapi_create(api, r, STR(""), object, on_created, b);
    }
    arena_free(a);
}

void bootstrap_objects(struct vapi *api, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct bootstrap *b = NEW(struct bootstrap);

    b->done = done;
    b->ctx = ctx;
    b->under_way = 1; /* ours, until the loop's next turn: done() is never called from here */
    err_init(&b->err, NULL);
    for (size_t i = 0; i < N_SEEDS; i++)
        create_seed(api, b, &SEEDS[i]);
    api_defer(api, on_turn, b);
}
