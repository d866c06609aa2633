/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/eviction: a deletion that the pod's disruption budget must allow. The budget is charged
 * before the pod is deleted, so that two evictions cannot share one allowance.
 *
 *   FIND pod and budget -> CHARGE the budget (retried on conflict) -> MARK the pod with the
 *   condition DisruptionTarget, which Job policies match -> DELETE it -> answered
 *
 * Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go. */
#include "verbs.h"

#include "../request/request.h"
#include "../review/review.h"

#include <assert.h>

#include <sublet/json_build.h>
#include <sublet/object.h>

#define MAX_DISRUPTED 2000
#define MAX_RETRIES   5
#define CANNOT        "Cannot evict pod as it would violate the pod's disruption budget."

struct eviction {
    struct call *call;
    const struct resource *budgets;
    const cJSON *pod;
    struct str uid;
    unsigned tries;
    bool charged; /* the budget was charged: not again */
    struct err err;
};

static void evict(struct eviction *v);

/* ---- the budget that covers the pod ---- */

struct search {
    struct eviction *eviction;
    struct str labels;
    const struct store_object *found;
    size_t n;
};

static bool on_budget(void *ctx, const struct store_object *o)
{
    struct search *s = ctx;
    struct arena *a = s->eviction->call->arena;
    const cJSON *budget = vapi_tree(a, o);
    struct selector selector;

    if (selector_from_json(a, json_path(budget, "spec.selector"), &selector, NULL) ||
        !selector_match(&selector, s->labels))
        return true;
    s->found = o;
    s->n++;
    return s->n < 2;
}

/* -1: more than one budget covers the pod, which is an error. *ret NULL: none. */
static int find_budget(struct eviction *v, const struct store_object **ret)
{
    struct call *c = v->call;
    struct search s = {.eviction = v, .labels = index_labels(c->arena, v->pod)};

    *ret = NULL;
    if (!v->budgets)
        return 0;
    store_scan_latest(vapi_store(c->api), v->budgets->storage, c->ns, on_budget, &s);
    if (s.n > 1)
        return err_set(&v->err, &ERR_INTERNAL,
                       "This pod has more than one PodDisruptionBudget, which the eviction "
                       "subresource does not support.");
    *ret = s.found;
    return 0;
}

/* ---- evictable pods ---- */

/* Pending, finished and terminating pods need no disruption budget. */
static bool needs_no_budget(const cJSON *pod)
{
    return pod_is_finished(pod) || str_eqc(json_str_at(pod, "status.phase"), "Pending") ||
           object_is_terminating(pod);
}

/* By the budget's unhealthyPodEvictionPolicy, a pod that is not ready may be evicted without a
 * charge. */
static bool unhealthy_may_go(const cJSON *pod, const cJSON *budget)
{
    int64_t healthy = json_i64_at(budget, "status.currentHealthy", 0);
    int64_t desired = json_i64_at(budget, "status.desiredHealthy", 0);

    if (condition_is_true(json_path(pod, "status.conditions"), "Ready"))
        return false;
    if (str_eqc(json_str_at(budget, "spec.unhealthyPodEvictionPolicy"), "AlwaysAllow"))
        return true;
    return healthy >= desired && desired > 0;
}

static int refuse(struct eviction *v, struct str cause, int64_t retry_after)
{
    err_set(&v->err, &ERR_TOO_MANY_REQUESTS, CANNOT);
    err_cause(&v->err, STR("DisruptionBudget"), STR_NULL, cause);
    v->err.retry_after = retry_after;
    return -1;
}

static int check_budget(struct eviction *v, const cJSON *budget)
{
    struct arena *a = v->call->arena;
    struct str name = json_str_at(budget, "metadata.name");
    int64_t allowed = json_i64_at(budget, "status.disruptionsAllowed", 0);

    if (json_i64_at(budget, "status.observedGeneration", 0) <
        json_i64_at(budget, "metadata.generation", 0))
        return refuse(v,
                      arena_printf(a,
                                   "The disruption budget %.*s is still being processed by the "
                                   "server.",
                                   STR_F(name)),
                      10);
    if (allowed < 0)
        return err_forbidden(&v->err, STR("policy"), STR("poddisruptionbudget"), name,
                             "pdb disruptions allowed is negative");
    if (json_count(json_path(budget, "status.disruptedPods")) > MAX_DISRUPTED)
        return err_forbidden(&v->err, STR("policy"), STR("poddisruptionbudget"), name,
                             "DisruptedPods map too big - too many evictions not confirmed by PDB "
                             "controller");
    if (allowed == 0)
        return refuse(v,
                      arena_printf(a,
                                   "The disruption budget %.*s needs %lld healthy pods and has "
                                   "%lld currently",
                                   STR_F(name),
                                   (long long)json_i64_at(budget, "status.desiredHealthy", 0),
                                   (long long)json_i64_at(budget, "status.currentHealthy", 0)),
                      0);
    return 0;
}

/* ---- charge, then delete ---- */

static void fail(struct eviction *v, const struct err *err)
{
    call_error(v->call, err);
}

static void on_deleted(void *ctx, const struct err *err, const struct store_object *object)
{
    struct eviction *v = ctx;

    (void)object;
    if (err)
        fail(v, err);
    else
        sub_answer_status(v->call);
}

/* As ourselves: policies judged the eviction, and upstream does not judge the deletion again. */
static void delete_pod(struct eviction *v)
{
    struct call *c = v->call;
    struct call *child = call_inside(c->api, &USER_INTERNAL, CALL_DELETE, c->resource, NULL, c->ns,
                                     c->name, on_deleted, v);

    child->options = c->options;
    if (!child->options.uid.n)
        child->options.uid = v->uid;
    call_run(child);
}

static void on_marked(void *ctx, const struct err *err, const struct store_object *object)
{
    struct eviction *v = ctx;

    if (!err) {
        /* The client's revision matched, and our own write made the next one. */
        if (v->call->options.delete_rv)
            v->call->options.delete_rv = object->revision;
        delete_pod(v);
    } else if (err->kind == &ERR_CONFLICT && ++v->tries < MAX_RETRIES) {
        evict(v);
    } else {
        fail(v, err);
    }
}

/* Requires the revision that was checked: a concurrent change is a conflict, and the pod is checked
 * again. */
static void mark_pod(struct eviction *v, const struct store_object *pod)
{
    struct call *c = v->call, *child;
    cJSON *marked;

    if (c->options.dry_run) {
        delete_pod(v);
        return;
    }
    if (v->charged && !c->options.uid.n)
        c->options.uid = v->uid;
    if (delete_preconditions(c, pod, &v->err)) {
        fail(v, &v->err);
        return;
    }
    child = call_inside(c->api, &USER_INTERNAL, CALL_UPDATE, c->resource,
                        resource_sub(c->resource, STR("status")), c->ns, c->name, on_marked, v);
    marked = json_copy(child->arena, v->pod);
    sub_pod_condition(child, marked, "DisruptionTarget", STR("EvictionByEvictionAPI"),
                      STR("Eviction API: evicting"));
    child->body = marked;
    call_run(child);
}

static void on_charged(void *ctx, const struct err *err, const struct store_object *object)
{
    struct eviction *v = ctx;

    (void)object;
    v->charged = !err;
    if (!err)
        evict(v);
    else if (err->kind == &ERR_CONFLICT && ++v->tries < MAX_RETRIES)
        evict(v);
    else
        fail(v, err);
}

static void charge(struct eviction *v, cJSON *budget)
{
    struct call *c = v->call, *child;
    struct arena *a = c->arena;
    cJSON *status = json_ensure_object(a, budget, "status");
    int64_t allowed = json_i64_at(status, "disruptionsAllowed", 0);

    json_set_i64(a, status, "disruptionsAllowed", allowed - 1);
    json_set_str(a, json_ensure_object(a, status, "disruptedPods"), arena_cstr(a, c->name),
                 time_format_s(a, clock_wall_s(vapi_clock(c->api))));
    child = call_inside(c->api, &USER_INTERNAL, CALL_UPDATE, v->budgets,
                        resource_sub(v->budgets, STR("status")), c->ns,
                        json_str_at(budget, "metadata.name"), on_charged, v);
    child->body = json_copy(child->arena, budget);
    child->options.dry_run = c->options.dry_run;
    call_run(child);
}

static void evict(struct eviction *v)
{
    struct call *c = v->call;
    const struct store_object *pod =
        store_latest(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    const struct store_object *found;
    cJSON *budget;

    err_clear(&v->err);
    if (!pod) {
        if (commit_not_found(c, &v->err))
            fail(v, &v->err);
        return;
    }
    v->pod = vapi_tree(c->arena, pod);
    /* The charge was for this pod, not for another of the same name. */
    if (!v->charged)
        v->uid = arena_str(c->arena, pod->uid);
    if (find_budget(v, &found)) {
        fail(v, &v->err);
        return;
    }
    if (v->charged || !found || needs_no_budget(v->pod)) {
        mark_pod(v, pod);
        return;
    }
    budget = vapi_tree(c->arena, found);
    if (unhealthy_may_go(v->pod, budget))
        mark_pod(v, pod);
    else if (check_budget(v, budget))
        fail(v, &v->err);
    else
        charge(v, budget);
}

/* A dry run by the query alone becomes one by the options, which admission sees. */
static int check(struct call *c, struct err *err)
{
    struct arena *a = c->arena;
    cJSON *options;

    if (!str_eq(json_str_at(c->body, "metadata.name"), c->name))
        return err_set(err, &ERR_BAD_REQUEST, "name in URL does not match name in Eviction object");
    options = json_get(c->body, "deleteOptions");
    if (json_is_object(options) && c->options.dry_run && !json_count(json_get(options, "dryRun")))
        json_set(a, options, "dryRun", json_array(a, json_new_string(a, STR("All"))));
    return 0;
}

static void run(struct call *c)
{
    struct eviction *v = ARENA_NEW(c->arena, struct eviction);
    const cJSON *options = json_get(c->body, "deleteOptions");
    bool dry_run = c->options.dry_run;

    v->call = c;
    err_init(&v->err, c->arena);
    v->budgets = registry_find_group_resource(vapi_registry(c->api), STR("policy"),
                                              STR("poddisruptionbudgets"));
    if (options && options_from_body(c, options, &v->err)) {
        fail(v, &v->err);
        return;
    }
    c->options.dry_run |= dry_run;
    evict(v);
}

void sub_eviction(struct call *c)
{
    static const struct reviewed_plan plan = {
        .operation = ADMISSION_CREATE, .check = check, .run = run};

    reviewed_start(c, &plan);
}
