/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of Kueue that pools name, and what gangs need of their scheduler. */
#include "check.h"

#include <sublet/object.h>
#include <sublet/pool.h>
#include <sublet/selector.h>

/* --- queues of Kueue --- */

static bool is_queued(const struct config_pool *pool)
{
    return pool->scheduler_kind == SCHEDULER_KUEUE;
}

/* `queue`: the pool. */
cJSON *host_check_named_queues(struct host_check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        if (is_queued(&c->config->pools[i]))
            host_check_name(c, ret, c->config->pools[i].queue, c->config->pools[i].name);
    return ret;
}

/* "False: reason: message" of Kueue's condition; empty where it is True, or not said yet. */
static struct str why_inactive(struct host_check *c, const cJSON *object)
{
    const cJSON *active = condition_get(json_path(object, "status.conditions"), "Active");

    if (!str_eqc(json_str(json_get(active, "status")), "False"))
        return STR("");
    return arena_printf(c->arena, "%.*s: %.*s", STR_F(json_str(json_get(active, "reason"))),
                        STR_F(str_clip(json_str(json_get(active, "message")), 256)));
}

static void judge_queue(struct host_check *c, const cJSON *list, struct str name, struct str pool)
{
    const char *what = arena_printf(c->arena, "queue %.*s", STR_F(name)).p;
    const cJSON *queue = host_check_item(list, name);
    struct str cluster_queue = json_str_at(queue, "spec.clusterQueue");
    struct str policy = json_str_at(queue, "spec.stopPolicy"), why = why_inactive(c, queue);

    if (!queue)
        host_check_report(
            c, HOST_FINDING_MISSING, what,
            arena_printf(c->arena,
                         "no LocalQueue of this name in the namespace: pods of pool %.*s are "
                         "never admitted",
                         STR_F(pool)));
    else if (why.n)
        host_check_report(
            c, HOST_FINDING_WARNING, what,
            arena_printf(c->arena, "admits no pod of pool %.*s: %.*s", STR_F(pool), STR_F(why)));
    else if (policy.n && !str_eqc(policy, "None"))
        host_check_report(c, HOST_FINDING_WARNING, what,
                          arena_printf(c->arena,
                                       "admits no pod of pool %.*s: its stopPolicy is %.*s",
                                       STR_F(pool), STR_F(policy)));
    else
        host_check_report(
            c, HOST_FINDING_OK, what,
            arena_printf(c->arena,
                         "of ClusterQueue %.*s, for pool %.*s; `sublet explain` shows "
                         "whether Kueue holds its pods",
                         STR_F(cluster_queue), STR_F(pool)));
    if (cluster_queue.n)
        json_set_str(c->arena, c->cluster_queues, arena_cstr(c->arena, cluster_queue), name);
}

void host_check_queues(struct host_check *c, const cJSON *list)
{
    c->cluster_queues = json_new_object(c->arena);
    json_each(pool, host_check_named_queues(c))
        judge_queue(c, list, json_key(pool), json_str(pool));
}

/* Those that our LocalQueues name. */
cJSON *host_check_named_cluster_queues(struct host_check *c)
{
    return c->cluster_queues;
}

static bool selects_namespace(struct host_check *c, const cJSON *queue)
{
    const cJSON *labels = json_path(c->namespace, "metadata.labels");
    struct selector selector;
    struct err err;

    err_init(&err, c->arena);
    return selector_from_json(c->arena, json_path(queue, "spec.namespaceSelector"), &selector,
                              &err) ||
           selector_match(&selector, labels_flatten(c->arena, labels));
}

static void judge_cluster_queue(struct host_check *c, const cJSON *list, struct str name,
                                struct str queue)
{
    const char *what = arena_printf(c->arena, "cluster queue %.*s", STR_F(name)).p;
    const cJSON *found = host_check_item(list, name);
    struct str why = why_inactive(c, found);

    if (!found)
        host_check_report(
            c, HOST_FINDING_WARNING, what,
            arena_printf(c->arena, "does not exist; named by LocalQueue %.*s", STR_F(queue)));
    else if (why.n)
        host_check_report(c, HOST_FINDING_WARNING, what,
                          arena_printf(c->arena, "is not active: %.*s", STR_F(why)));
    else if (c->namespace && !selects_namespace(c, found))
        host_check_report(
            c, HOST_FINDING_WARNING, what,
            arena_printf(c->arena,
                         "its namespaceSelector leaves %.*s out: no pod there is admitted",
                         STR_F(c->config->host_namespace)));
    else
        host_check_report(c, HOST_FINDING_OK, what,
                          c->namespace ? STR("active, and selects the namespace")
                                       : STR("active; the namespace's labels may not be read"));
}

void host_check_cluster_queues(struct host_check *c, const cJSON *list)
{
    json_each(queue, c->cluster_queues)
        judge_cluster_queue(c, list, json_key(queue), json_str(queue));
}

/* --- groups of pods --- */

static cJSON *grouped_pools(struct host_check *c, enum pool_scheduler kind)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++) {
        const struct config_pool *pool = &c->config->pools[i];

        if (pool->gang && pool->scheduler_kind == kind)
            host_check_name(c, ret, pool->name, pool->name);
    }
    return ret;
}

cJSON *host_check_grouped_by_kai(struct host_check *c)
{
    return grouped_pools(c, SCHEDULER_KAI);
}

cJSON *host_check_grouped_by_volcano(struct host_check *c)
{
    return grouped_pools(c, SCHEDULER_VOLCANO);
}

cJSON *host_check_grouped_natively(struct host_check *c)
{
    return grouped_pools(c, SCHEDULER_NATIVE);
}

void host_check_groups(struct host_check *c, const cJSON *list)
{
    (void)list;
    host_check_report(c, HOST_FINDING_OK, "pod groups",
                      STR("served: pods of gangs start together"));
}
