/* SPDX-License-Identifier: Apache-2.0 */
/* Why a pod waits in its queue, in words of its tenant. Kueue says it in condition QuotaReserved of
 * the Workload it makes of a pod (pkg/scheduler/flavorassigner, pkg/controller/core), KAI
 * (pkg/scheduler/api/unschedule_info.go) and Volcano (pkg/scheduler/api) in condition PodScheduled.
 * There they also name flavors, queues and what those use, nodes, and the workloads of others that
 * preempt this one. Must never let a text through that was not understood: an unknown one is a
 * fixed sentence. */

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

struct words {
    const char *part, *text;
};

static const struct words OF_KUEUE[] = {
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

/* Of KAI and Volcano, which are schedulers: limits of the queue before nodes. */
static const struct words OF_SCHEDULERS[] = {
    {"quota has reached the allowable limit", "the queue has reached its limit"},
    {"Non-preemptible workload is over quota",
     "a pod of its priority may not exceed the quota of the queue"},
    {"resource quota insufficient", "the queue has reached its limit"},
    {"queue is overused", "the queue has reached its share"},
    {"required for gang scheduling", "not all pods of its gang fit at once"},
    {"have enough", "no node has enough free resources"},
    {"with enough resources", "no node has enough free resources"},
    {"Insufficient ", "no node has enough free resources"},
    {"affinity", "no nodes of the queue match its node selector and affinity"},
    {"taint", "no nodes of the queue match its tolerations"},
    {", 1 minAvailable", TURN},
    {"pod group is not ready", "not all pods of its gang fit at once"},
};

/* p NULL: none of them. */
static struct str in_words(const struct words *words, size_t n, struct str text)
{
    for (size_t i = 0; i < n; i++) {
        if (find(text, str_c(words[i].part)) < text.n)
            return str_c(words[i].text);
    }
    return STR_NULL;
}

static struct str waits(struct arena *a, struct str queue, struct str why)
{
    return arena_printf(a, "waiting in queue \"%.*s\": %.*s", STR_F(queue),
                        STR_F(why.n ? why : STR(TURN)));
}

static bool holds_true(const cJSON *condition)
{
    return str_eqc(json_str(json_get(condition, "status")), "True");
}

static bool holds(const cJSON *conditions, const char *type)
{
    return holds_true(condition_find(conditions, str_c(type)));
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
    if (holds(conditions, "QuotaReserved"))
        return waits(a, queue, STR("its quota is reserved, other checks are not done"));
    why = lacking(a, binding->pool, json_str(json_get(reserved, "message")));
    if (!why.n)
        why = in_words(OF_KUEUE, COUNT(OF_KUEUE), json_str(json_get(reserved, "message")));
    return waits(a, queue, why);
}

/* ---- Events and the end of a pod ---- */

/* Of KAI and Volcano, beside the schedulers, which have their usual names or those of pools. */
static const char *const REPORTERS[] = {"binder", "pod-grouper", "vc-controller-manager"};

static bool reports(const struct config *config, struct str component)
{
    if (str_contains(component, STR("kueue")))
        return true;
    for (int kind = SCHEDULER_NONE; kind <= SCHEDULER_HAMI; kind++) {
        const struct queue_system *system = config_queue_system((enum pool_scheduler)kind);

        if (system && system->scheduler && str_has_prefix(component, str_c(system->scheduler)))
            return true;
    }
    for (size_t i = 0; i < config->n_pools; i++) {
        const struct config_pool *pool = &config->pools[i];
        const struct queue_system *system = config_queue_system(pool->scheduler_kind);

        if (system && system->scheduler && str_has_prefix(component, pool->scheduler))
            return true;
    }
    for (size_t i = 0; i < COUNT(REPORTERS); i++) {
        if (str_eqc(component, REPORTERS[i]))
            return true;
    }
    return false;
}

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
    {"PodGrouperWarning", "Its queue cannot take it"},
    {"Scheduled", "Its queue has found a node for it"},
    {"Bound", "It is bound to its node"},
    {"Pipelined", "Its queue has found a node for it, where others end first"},
    {"Unschedulable", "Its queue cannot run it yet"},
    {"FailedScheduling", "Its queue cannot run it yet"},
    {"FailedBinding", "It could not be bound to its node"},
    {"BindingError", "It could not be bound to its node"},
    {"Evict", "Its queue has ended it"},
};

/* HAMi reports its choice beside the scheduler that it extends, with the names of all nodes. */
static const struct {
    const char *reason, *text;
} OF_HAMI[] = {
    {"FilteringFailed", "No node has room for its part of a GPU yet"},
    {"FilteringSucceed", "A node has room for its part of a GPU"},
    {"BindingFailed", "It could not be bound to its node"},
    {"BindingSucceed", "It is bound to its node"},
};

static bool hami_event_up(struct str reason, struct str *ret)
{
    for (size_t i = 0; i < COUNT(OF_HAMI); i++) {
        if (!str_eqc(reason, OF_HAMI[i].reason))
            continue;
        *ret = str_c(OF_HAMI[i].text);
        return true;
    }
    return false;
}

bool translate_queue_event_up(const struct config *config, struct str component, struct str reason,
                              struct str *ret)
{
    if (hami_event_up(reason, ret))
        return true;
    if (!reports(config, component))
        return false;
    *ret = STR("Its queue has changed it");
    for (size_t i = 0; i < COUNT(EVENTS); i++) {
        if (str_eqc(reason, EVENTS[i].reason))
            *ret = str_c(EVENTS[i].text);
    }
    return true;
}

static bool is_end(const struct queue_system *system, struct str type, struct str reason)
{
    if (str_eqc(type, "TerminationTarget") || str_eqc(reason, "Evict")) /* Kueue's, Volcano's */
        return true;
    return system && system->scheduler && str_eqc(reason, "PreemptionByScheduler");
}

bool translate_queue_condition_up(struct arena *a, const struct config_pool *pool,
                                  const cJSON *condition, struct str *ret)
{
    const struct queue_system *system = pool ? config_queue_system(pool->scheduler_kind) : NULL;
    struct str type = json_str(json_get(condition, "type"));
    struct str message = json_str(json_get(condition, "message"));

    if (is_end(system, type, json_str(json_get(condition, "reason")))) {
        *ret = STR("Its queue has ended it");
        return true;
    }
    if (str_eqc(type, "PodBound")) { /* KAI's */
        *ret = holds_true(condition) ? STR("It is bound to its node")
                                     : STR("It could not be bound to its node");
        return true;
    }
    if (!system || !system->scheduler || !message.n || !str_eqc(type, "PodScheduled") ||
        holds_true(condition))
        return false;
    *ret = waits(a, pool->queue, in_words(OF_SCHEDULERS, COUNT(OF_SCHEDULERS), message));
    return true;
}
