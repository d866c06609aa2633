/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and pods as a host shows them, a pool, and a ledger in a directory of its own. */
#pragma once

#include "test.h"

#include <sublet/clock.h>
#include <sublet/fleet_ledger.h>
#include <sublet/json.h>

#include "ledger/observe.h"

#define BEGIN (INT64_C(1790000000) * SECOND) /* a whole second of 2026 */

struct world {
    struct arena *a;
    struct err err;
    char directory[64];
    struct str location; /* of the ledger: the directory, unless the world has a server */
    struct config_pool pool;
    struct pool_resource resource;
    struct ledger *ledger;
    struct observer *observer;
};

static inline void world_open(struct world *w)
{
    *w = (struct world){.a = arena_new(0)};
    err_init(&w->err, w->a);
    snprintf(w->directory, sizeof(w->directory), "/tmp/sublet-fleet-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    w->location = str_c(w->directory);
    w->resource = (struct pool_resource){
        .name = STR("nvidia.com/gpu"), .host_name = STR("nvidia.com/gpu"), .gpu_eq = {1, 1}};
    w->pool = (struct config_pool){.name = STR("a100"),
                                   .resources = &w->resource,
                                   .n_resources = 1,
                                   .price = STR("2.50"),
                                   .currency = STR("USD")};
    cJSON *selector = json_new_object(w->a);
    json_set_str(w->a, selector, "sublet.dev/pool", STR("a100"));
    w->pool.node_selector = selector;
}

/* A process starts: it reads the ledger back. */
static inline void world_start(struct world *w, int64_t now_us)
{
    struct observer_options o = {.pools = &w->pool, .n_pools = 1};
    struct fleet_records records;

    if (open_ledger(w->location, now_us, &w->ledger, &w->err) ||
        ledger_read(w->a, w->location, LEDGER_OPEN, INT64_MAX, &records, &w->err))
        fail_msg("%.*s", STR_F(w->err.message));
    o.ledger = w->ledger;
    o.records = &records;
    w->observer = observer_new(&o);
    assert_int_equal(observer_prices(w->observer, now_us, &w->err), 0);
}

/* It is killed: what was not committed is lost. */
static inline void world_kill(struct world *w)
{
    w->observer = observer_free(w->observer);
    w->ledger = ledger_close(w->ledger);
}

static inline void world_close(struct world *w)
{
    world_kill(w);
    arena_free(w->a);
    remove_directory(w->directory);
}

/* As cmocka calls them: a world without a process, or with one; *state is the world. */
static inline int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    world_open(w);
    *state = w;
    return 0;
}

static inline int world_setup_started(void **state)
{
    world_setup(state);
    world_start(*state, BEGIN);
    return 0;
}

static inline int world_teardown(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

static inline struct str world_time(struct world *w, int64_t us)
{
    return time_format_s(w->a, us / SECOND);
}

static inline cJSON *world_parse(struct world *w, struct str text)
{
    cJSON *tree = NULL;

    if (json_parse(w->a, text, &tree, &w->err))
        fail_msg("%.*s: %.*s", STR_F(text), STR_F(w->err.message));
    return tree;
}

static inline cJSON *world_node(struct world *w, const char *name, int gpus, int usable, bool ready,
                                int64_t ready_us)
{
    return world_parse(
        w, arena_printf(w->a,
                        "{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":\"%.*s\",\"labels\":{"
                        "\"sublet.dev/pool\":\"a100\",\"nvidia.com/gpu.product\":\"A100-SHARED\"}},"
                        "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"%d\"},\"allocatable\":{"
                        "\"nvidia.com/gpu\":\"%d\"},\"conditions\":[{\"type\":\"Ready\","
                        "\"status\":\"%s\",\"lastTransitionTime\":\"%.*s\"}]}}",
                        name, STR_F(world_time(w, ready_us)), gpus, usable,
                        ready ? "True" : "Unknown", STR_F(world_time(w, ready_us))));
}

/* end_us 0: it runs. */
static inline cJSON *world_pod(struct world *w, const char *uid, const char *node, int gpus,
                               int64_t begin_us, int64_t end_us)
{
    struct str end = end_us ? arena_printf(w->a, "{\"terminated\":{\"finishedAt\":\"%.*s\"}}",
                                           STR_F(world_time(w, end_us)))
                            : STR("{\"running\":{}}");

    return world_parse(
        w,
        arena_printf(
            w->a,
            "{\"metadata\":{\"uid\":\"%s\",\"name\":\"h-%s\",\"namespace\":\"team-a\",\"labels\":{"
            "\"sublet.dev/cluster\":\"c\"},\"annotations\":{\"sublet.dev/name\":\"%s\","
            "\"sublet.dev/namespace\":\"default\"}},\"spec\":{\"nodeName\":\"%s\",\"containers\":["
            "{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"%d\"}}}]},\"status\":{\"phase\":"
            "\"%s\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
            "\"lastTransitionTime\":\"%.*s\"}],\"containerStatuses\":[{\"state\":%.*s}]}}",
            uid, uid, uid, node, gpus, end_us ? "Succeeded" : "Running",
            STR_F(world_time(w, begin_us)), STR_F(end)));
}
