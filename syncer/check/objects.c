/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that the namespace, the nodes and the classes of the host must have, and GPUBindings. */
#include "objects/objects.h"

#include "check.h"

#include <sublet/config_sync.h>
#include <sublet/pool.h>

void host_check_namespace(struct host_check *c, const cJSON *namespace)
{
    struct str level = json_str(
        json_get(json_path(namespace, "metadata.labels"), "pod-security.kubernetes.io/enforce"));

    c->namespace = namespace;
    host_check_report(c, HOST_FINDING_OK, "namespace", STR("exists"));
    if (!level.n || str_eqc(level, "privileged"))
        host_check_report(
            c, HOST_FINDING_WARNING, "pod security",
            STR("the namespace has no label pod-security.kubernetes.io/enforce with baseline or "
                "restricted: the host's own admission stops no pod"));
    else
        host_check_report(c, HOST_FINDING_OK, "pod security", level);
}

void host_check_quota(struct host_check *c, const cJSON *list)
{
    if (json_count(json_get(list, "items")))
        host_check_report(c, HOST_FINDING_OK, "resource quota", STR("exists"));
    else
        host_check_report(c, HOST_FINDING_WARNING, "resource quota",
                          STR("none in the namespace: the host bounds nothing by itself"));
}

void host_check_limits(struct host_check *c, const cJSON *list)
{
    bool has_default = false;

    json_each(range, json_get(list, "items"))
    {
        json_each(limit, json_path(range, "spec.limits"))
        {
            has_default |= str_eqc(json_str(json_get(limit, "type")), "Container") &&
                           json_path(limit, "default.memory");
        }
    }
    if (has_default)
        host_check_report(c, HOST_FINDING_OK, "limit range", STR("sets a default memory limit"));
    else
        host_check_report(
            c, HOST_FINDING_WARNING, "limit range",
            STR("no default memory limit: a container that sets none may use all of a node's"));
}

static void judge_pool(struct host_check *c, const struct config_pool *pool, const cJSON *nodes)
{
    const char *what = arena_printf(c->arena, "pool %.*s", STR_F(pool->name)).p;
    struct pool_problem problem;
    size_t n = 0;

    if (!pool_check_nodes(c->arena, pool, nodes, &problem)) {
        host_check_report(c, HOST_FINDING_WARNING, what,
                          problem.detail.n
                              ? arena_printf(c->arena, "%.*s: %.*s", STR_F(problem.message),
                                             STR_F(problem.detail))
                              : problem.message);
        return;
    }
    json_each(node, nodes) n += pool_has_node(pool, node);
    host_check_report(c, HOST_FINDING_OK, what,
                      arena_printf(c->arena, "%zu nodes with its taint", n));
}

void host_check_nodes(struct host_check *c, const cJSON *list)
{
    for (size_t i = 0; i < c->config->n_pools; i++)
        judge_pool(c, &c->config->pools[i], json_get(list, "items"));
}

static void judge_default_class(struct host_check *c, const cJSON *list)
{
    json_each(class, json_get(list, "items"))
    {
        if (sync_class_is_default(class)) {
            host_check_report(c, HOST_FINDING_OK, "storage class",
                              arena_printf(c->arena, "%.*s is the host's default",
                                           STR_F(json_str_at(class, "metadata.name"))));
            return;
        }
    }
    host_check_report(c, HOST_FINDING_WARNING, "storage class",
                      STR("the host has no default class: claims that name none are refused"));
}

void host_check_classes(struct host_check *c, const cJSON *list)
{
    const struct str_list *wanted = &c->config->storage_classes;

    for (size_t i = 0; i < wanted->n; i++) {
        bool there = false;

        json_each(class, json_get(list, "items")) there |=
            str_eq(json_str_at(class, "metadata.name"), wanted->items[i]);
        host_check_report(
            c, there ? HOST_FINDING_OK : HOST_FINDING_MISSING, "storage class",
            arena_printf(c->arena, "%.*s %s", STR_F(wanted->items[i]),
                         there ? "exists" : "of policy.storageClasses does not exist"));
    }
    if (!wanted->n)
        judge_default_class(c, list);
}

/* --- GPUBindings: what they grant is checked like what the file binds --- */

cJSON *host_check_named_bindings(struct host_check *c)
{
    cJSON *ret = json_new_object(c->arena);

    if (c->config->fleet_bindings)
        json_set_bool(c->arena, ret, "fleet.bindings", true);
    return ret;
}

static void judge_binding(struct host_check *c, const cJSON *binding)
{
    const char *what =
        arena_printf(c->arena, "GPUBinding %.*s", STR_F(json_str_at(binding, "metadata.name"))).p;
    const cJSON *ready = condition_get(json_path(binding, "status.conditions"), "Ready");
    struct str grant = json_str_at(binding, "status.grant");
    bool unused;
    struct err err;

    err_init(&err, c->arena);
    if (str_eqc(json_str(json_get(ready, "status")), "False"))
        host_check_report(c, HOST_FINDING_WARNING, what,
                          arena_printf(c->arena, "grants nothing: %.*s: %.*s",
                                       STR_F(json_str(json_get(ready, "reason"))),
                                       STR_F(json_str(json_get(ready, "message")))));
    else if (!json_path(binding, "status.pool"))
        host_check_report(c, HOST_FINDING_WARNING, what,
                          STR("grants nothing yet: sublet fleet has not written its status"));
    else if (config_bound_add(c->bound, binding, false, &unused, &err))
        host_check_report(c, HOST_FINDING_MISSING, what,
                          arena_printf(c->arena, "cannot be followed: %.*s", STR_F(err.message)));
    else
        host_check_report(c, HOST_FINDING_OK, what,
                          arena_printf(c->arena, "grants %.*s GPU of pool %.*s",
                                       STR_F(grant.n ? grant : STR("0")),
                                       STR_F(json_str_at(binding, "status.pool.name"))));
}

void host_check_bindings(struct host_check *c, const cJSON *list)
{
    if (!json_count(json_get(list, "items")))
        host_check_report(c, HOST_FINDING_WARNING, "GPUBindings",
                          STR("none in the namespace: the fleet grants nothing"));
    c->bound = config_bound_new(c->config);
    json_each(binding, json_get(list, "items")) judge_binding(c, binding);
    c->live = *c->config;
    config_bound_install(c->bound, &c->live);
    c->config = &c->live;
}

/* --- classes that pods get --- */

static void name_classes(struct host_check *c, cJSON *to, const cJSON *map, struct str by)
{
    json_each(class, map) host_check_name(c, to, json_str(class), by);
}

cJSON *host_check_named_priorities(struct host_check *c)
{
    const struct config_to_host *down = c->config->to_host;
    struct str by = STR("sync.toHost.priorityClasses");
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        name_classes(c, ret, c->config->pools[i].priority_tiers,
                     arena_printf(c->arena, "priorityTiers of pool \"%.*s\"",
                                  STR_F(c->config->pools[i].name)));
    host_check_name(c, ret, down->pod_priority_class, STR("sync.toHost.pods.priorityClassName"));
    if (!down->priorities)
        return ret;
    name_classes(c, ret, down->priority_names, by);
    for (size_t i = 0; i < down->n_ranges; i++)
        host_check_name(c, ret, down->ranges[i].host_class, by);
    return ret;
}

cJSON *host_check_named_runtimes(struct host_check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        host_check_name(c, ret, c->config->pools[i].runtime_class,
                        arena_printf(c->arena, "runtimeClass of pool \"%.*s\"",
                                     STR_F(c->config->pools[i].name)));
    host_check_name(c, ret, c->config->to_host->pod_runtime_class,
                    STR("sync.toHost.pods.runtimeClassName"));
    return ret;
}

/* The host refuses every pod that gets a class which it lacks. */
static void judge_named(struct host_check *c, const char *kind, const cJSON *named,
                        const cJSON *list)
{
    json_each(by, named)
    {
        const char *what = arena_printf(c->arena, "%s %s", kind, by->string).p;
        bool there = false;

        json_each(class, json_get(list, "items")) there |=
            str_eqc(json_str_at(class, "metadata.name"), by->string);
        if (there)
            host_check_report(c, HOST_FINDING_OK, what, STR("exists"));
        else
            host_check_report(
                c, HOST_FINDING_MISSING, what,
                arena_printf(c->arena, "does not exist; named by %.*s", STR_F(json_str(by))));
    }
}

void host_check_priorities(struct host_check *c, const cJSON *list)
{
    judge_named(c, "priority class", host_check_named_priorities(c), list);
}

void host_check_runtimes(struct host_check *c, const cJSON *list)
{
    judge_named(c, "runtime class", host_check_named_runtimes(c), list);
}
