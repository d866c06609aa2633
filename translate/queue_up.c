/* SPDX-License-Identifier: Apache-2.0 */
/* Why a pod waits in its queue, in words of its tenant. Kueue says it in condition QuotaReserved of
 * the Workload it makes of a pod (pkg/scheduler/flavorassigner, pkg/controller/core), and there it
 * also names flavors, cluster queues, and the workloads of others that preempt this one. Must never
 * let a text through that was not understood: an unknown one is a fixed sentence. */

#include <string.h>

#include "shape.h"

#define TURN "its turn has not come"

enum { REASONS_MAX = 4 };

/* ---- what is lacking ---- */

/* The resource under the name the tenant wrote; p NULL: it is none of a pod of the pool. */
static struct str resource_up(const struct config_pool *pool, struct str host_name)
{
    for (size_t i = 0; i < pool->n_resources; i++) {
        if (str_eq(pool->resources[i].host_name, host_name))
            return pool->resources[i].name;
    }
    return name_has_domain(host_name) ? STR_NULL : host_name;
}

static size_t find(struct str text, struct str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++) {
        if (str_has_prefix(str_from(text, i), part))
            return i;
    }
    return text.n;
}

/* Takes what stands before `stop`, and that; false: it is not there. */
static bool take_until(struct str *text, struct str stop, struct str *ret)
{
    size_t n = find(*text, stop);

    if (n == text->n)
        return false;
    *ret = str_sub(*text, 0, n);
    *text = str_from(*text, n + stop.n);
    return true;
}

/* "insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed": without the number,
 * from which a tenant could compute the free quota of a shared queue. */
static struct str lacking(struct arena *a, const struct config_pool *pool, struct str text)
{
    struct str ret = STR(""), skipped, resource, one;

    for (size_t n = 0; n < REASONS_MAX; n++) {
        if (!take_until(&text, STR("insufficient unused quota for "), &skipped) ||
            !take_until(&text, STR(" in flavor "), &resource) ||
            !take_until(&text, STR(" more needed"), &skipped))
            break;
        resource = resource_up(pool, resource);
        if (!resource.p)
            continue;
        one = arena_printf(a, "insufficient unused quota for %.*s", STR_F(resource));
        if (find(ret, one) == ret.n)
            ret = arena_printf(a, "%.*s%s%.*s", STR_F(ret), ret.n ? ", " : "", STR_F(one));
    }
    return ret;
}

/* ---- other reasons, by words that each has ---- */

static const struct {
    const char *part, *text;
} REASONS[] = {
    {"> maximum capacity", "it requests more than the queue ever has"},
    {"is not available", "it requests a resource that the queue does not offer"},
    {"unavailable in ClusterQueue", "it requests a resource that the queue does not offer"},
    {"doesn't match node affinity", "no nodes of the queue match its node selector and affinity"},
    {"untolerated taint", "no nodes of the queue match its tolerations"},
    {"namespace doesn't match", "the queue does not take pods of this virtual cluster"},
    {"LocalQueue is stopped", "the queue is stopped"},
    {"is stopped", "the queue is stopped"},
    {"is terminating or missing", "the queue does not exist"},
    {"doesn't exist", "the queue does not exist"},
    {"is inactive", "the queue is not active"},
};

static struct str reason_of(struct arena *a, const struct config_pool *pool, struct str text)
{
    struct str ret = lacking(a, pool, text);

    for (size_t i = 0; !ret.n && i < COUNT(REASONS); i++) {
        if (find(text, str_c(REASONS[i].part)) < text.n)
            ret = str_c(REASONS[i].text);
    }
    return ret.n ? ret : STR(TURN);
}

static bool holds(const cJSON *conditions, const char *type)
{
    return str_eqc(json_str(json_get(condition_find(conditions, str_c(type)), "status")), "True");
}

struct str translate_queue_up(struct arena *a, const struct translate_tenant *t,
                              const cJSON *host_pod, const cJSON *workload)
{
    const cJSON *labels = json_path(host_pod, "metadata.labels");
    const struct config_binding *binding =
        config_binding_of(t->config, json_str(json_get(labels, LABEL_POOL)));
    struct str queue = json_str(json_get(labels, "kueue.x-k8s.io/queue-name"));
    const cJSON *conditions = json_path(workload, "status.conditions");
    const cJSON *reserved = condition_find(conditions, STR("QuotaReserved"));
    struct str why;

    if (!binding || binding->pool->scheduler_kind != SCHEDULER_KUEUE ||
        holds(conditions, "Admitted"))
        return STR_NULL;
    if (!workload)
        return arena_printf(a, "waiting in queue \"%.*s\"", STR_F(queue));
    why = holds(conditions, "QuotaReserved")
              ? STR("its quota is reserved, other checks are not done")
              : reason_of(a, binding->pool, json_str(json_get(reserved, "message")));
    return arena_printf(a, "waiting in queue \"%.*s\": %.*s", STR_F(queue), STR_F(why));
}

/* ---- Events and the end of a pod ---- */

static const struct {
    const char *reason, *text;
} EVENTS[] = {
    {"CreatedWorkload", "It joined its queue"},
    {"UpdatedWorkload", "Its place in the queue was made anew"},
    {"DeletedWorkload", "It left its queue"},
    {"FinishedWorkload", "Its queue counts it as finished"},
    {"Started", "Its queue has admitted it"},
    {"Stopped", "Its queue has ended it"},
    {"Deleted", "Its queue has ended it"},
    {"ErrWorkloadCompose", "Its queue cannot take it"},
};

bool translate_queue_event_up(struct str component, struct str reason, struct str *ret)
{
    if (!str_contains(component, STR("kueue")))
        return false;
    *ret = STR("Its queue has changed it");
    for (size_t i = 0; i < COUNT(EVENTS); i++) {
        if (str_eqc(reason, EVENTS[i].reason))
            *ret = str_c(EVENTS[i].text);
    }
    return true;
}

bool translate_queue_condition_up(struct str type, struct str *ret)
{
    if (!str_eqc(type, "TerminationTarget"))
        return false;
    *ret = STR("Its queue has ended it");
    return true;
}
