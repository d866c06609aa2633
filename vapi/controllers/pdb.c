/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets: how many of the selected pods are healthy, how many should be, and so how
 * many may be evicted now. Evictions trust disruptionsAllowed: when the count fails it must become
 * 0, never stay. */
#include "selector_index.h"
#include "util.h"

#define CONDITION       "DisruptionAllowed"
#define DELETION_WAIT_S 120
#define MAX_OWNERS      1000u

struct budget {
    struct reconcile *run;
    const struct resource *res;
    cJSON *pdb;
    const cJSON *as_read;
    const cJSON *pods;
    int64_t expected, desired, healthy;
    cJSON *disrupted; /* {pod: time} of granted evictions */
};

/* --- expected pods --- */

struct scale {
    struct str uid;
    int64_t replicas;
};

struct scales {
    struct scale *list;
    size_t n;
};

static cJSON *owner_object(struct budget *b, const cJSON *ref, const struct resource **ret_res)
{
    const struct resource *res = registry_find_reference(vapi_registry(reconcile_api(b->run)), ref);
    cJSON *owner = NULL;

    if (res)
        owner = reconcile_get(b->run, res, resource_namespaced(res) ? meta_ns(b->pdb) : STR(""),
                              json_str_at(ref, "name"));
    *ret_res = res;
    return owner && str_eq(meta_uid(owner), json_str_at(ref, "uid")) ? owner : NULL;
}

/* The scalable controller of a pod; a ReplicaSet's Deployment takes precedence. */
static bool find_scale(struct budget *b, const cJSON *ref, struct scale *ret)
{
    const struct resource *res;
    const cJSON *owner = owner_object(b, ref, &res), *above;

    if (owner && (above = owner_controller(owner)) && str_eqc(res->kind, "ReplicaSet") &&
        str_eqc(json_str_at(above, "kind"), "Deployment"))
        owner = owner_object(b, above, &res);
    if (!owner || !resource_sub(res, STR("scale")))
        return false;
    *ret = (struct scale){meta_uid(owner), json_i64_at(owner, "spec.replicas", res->crd ? 0 : 1)};
    return true;
}

static bool known(const struct scales *s, struct str uid)
{
    for (size_t i = 0; i < s->n; i++) {
        if (str_eq(s->list[i].uid, uid))
            return true;
    }
    return false;
}

/* The sum of replicas of the pods' controllers. Pods without a controller do not count; a
 * controller without scale is an error. */
static int expected_scale(struct budget *b, int64_t *ret, struct err *err)
{
    struct arena *a = reconcile_arena(b->run);
    struct scales refs = {.list = arena_alloc(a, MAX_OWNERS * sizeof(struct scale))};
    struct scales owners = {.list = arena_alloc(a, MAX_OWNERS * sizeof(struct scale))};

    *ret = 0;
    json_each(pod, b->pods)
    {
        const cJSON *ref = owner_controller(pod);
        struct str uid = json_str_at(ref, "uid");
        struct scale scale;

        if (!ref || known(&refs, uid))
            continue;
        if (refs.n == MAX_OWNERS)
            return err_set(err, &ERR_INTERNAL, "more than %u controllers own the pods", MAX_OWNERS);
        if (!find_scale(b, ref, &scale))
            return err_set(err, &ERR_INTERNAL, "found no controllers for pod \"%.*s\"",
                           STR_F(meta_name(pod)));
        refs.list[refs.n++].uid = uid;
        if (known(&owners, scale.uid))
            continue;
        owners.list[owners.n++] = scale;
        *ret += scale.replicas;
    }
    return 0;
}

static int expect(struct budget *b, struct err *err)
{
    const cJSON *max = json_path(b->pdb, "spec.maxUnavailable"),
                *min = json_path(b->pdb, "spec.minAvailable");

    b->expected = (int64_t)json_count(b->pods);
    if (max) {
        if (expected_scale(b, &b->expected, err))
            return -1;
        b->desired = b->expected - controller_scaled_value(max, b->expected, true, 0);
    } else if (json_is_string(min)) {
        if (expected_scale(b, &b->expected, err))
            return -1;
        b->desired = controller_scaled_value(min, b->expected, true, b->expected);
    } else {
        b->desired = controller_scaled_value(min, b->expected, true, 0);
        if (!min)
            b->expected = 0;
    }
    if (b->desired < 0)
        b->desired = 0;
    return 0;
}

/* --- current pods --- */

/* Granted evictions, until the pod is deleted or two minutes have passed. */
static void sort_disrupted(struct budget *b)
{
    struct arena *a = reconcile_arena(b->run);
    const cJSON *granted = json_path(b->pdb, "status.disruptedPods");

    b->disrupted = json_new_object(a);
    if (!json_count(granted))
        return;
    json_each(pod, b->pods)
    {
        const cJSON *at = json_get_str(granted, meta_name(pod));
        int64_t us;

        if (!at || object_is_terminating(pod) || !time_parse(json_str(at), &us))
            continue;
        int64_t left = us / 1000000 + DELETION_WAIT_S - reconcile_now_s(b->run);
        if (left < 0) {
            reconcile_event(b->run, pod, "Warning", "NotDeleted",
                            "Pod was expected by PDB %.*s/%.*s to be deleted but it wasn't",
                            STR_F(meta_ns(b->pdb)), STR_F(meta_name(b->pdb)));
            continue;
        }
        json_set_str(a, b->disrupted, at->string, json_str(at));
        reconcile_again_after(b->run, (left + 1) * 1000);
    }
}

/* --- status --- */

static void set_condition(struct budget *b, bool allowed, const char *reason, struct str message)
{
    struct arena *a = reconcile_arena(b->run);

    condition_set(a, b->pdb, CONDITION, allowed ? "True" : "False", reason, message,
                  reconcile_now_s(b->run));
    json_set_i64(a, condition_get(json_path(b->pdb, "status.conditions"), CONDITION),
                 "observedGeneration", json_i64_at(b->pdb, "status.observedGeneration", 0));
}

static void write_status(struct budget *b)
{
    struct arena *a = reconcile_arena(b->run);
    cJSON *status = json_ensure_object(a, b->pdb, "status");
    int64_t allowed = b->healthy - b->desired;

    if (b->expected <= 0 || allowed < 0)
        allowed = 0;
    controller_status_set(a, status, "currentHealthy", b->healthy, true);
    controller_status_set(a, status, "desiredHealthy", b->desired, true);
    controller_status_set(a, status, "expectedPods", b->expected, true);
    controller_status_set(a, status, "disruptionsAllowed", allowed, true);
    controller_status_set(a, status, "observedGeneration",
                          json_i64_at(b->pdb, "metadata.generation", 0), false);
    if (json_count(b->disrupted))
        json_set(a, status, "disruptedPods", b->disrupted);
    else
        json_remove(status, "disruptedPods");
    set_condition(b, allowed > 0, allowed > 0 ? "SufficientPods" : "InsufficientPods", STR(""));
    controller_status_commit(b->run, b->res, b->pdb, b->as_read);
}

static void fail_safe(struct budget *b, const struct err *err)
{
    struct arena *a = reconcile_arena(b->run);
    cJSON *status = json_ensure_object(a, b->pdb, "status");

    controller_status_set(a, status, "disruptionsAllowed", 0, true);
    controller_status_set(a, status, "currentHealthy", json_i64_at(status, "currentHealthy", 0),
                          true);
    controller_status_set(a, status, "desiredHealthy", json_i64_at(status, "desiredHealthy", 0),
                          true);
    controller_status_set(a, status, "expectedPods", json_i64_at(status, "expectedPods", 0), true);
    set_condition(b, false, "SyncFailed", err->message);
    if (!json_equal(b->pdb, b->as_read))
        reconcile_event(b->run, b->pdb, "Warning", "CalculateExpectedPodCountFailed",
                        "Failed to calculate the number of expected pods: %.*s",
                        STR_F(err->message));
    controller_status_commit(b->run, b->res, b->pdb, b->as_read);
    reconcile_fail(b->run, err);
}

static void pdb_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct budget b = {.run = r, .res = reconcile_resource(r, "policy", "poddisruptionbudgets")};
    struct selector selector;
    struct str ns, name;
    struct err err;

    if (!key_split(reconcile_key(r), &ns, &name) || !(b.pdb = reconcile_get(r, b.res, ns, name)) ||
        object_is_terminating(b.pdb))
        return;
    b.as_read = json_copy(a, b.pdb);
    err_init(&err, a);
    if (selector_from_json(a, json_path(b.pdb, "spec.selector"), &selector, &err)) {
        fail_safe(&b, &err);
        return;
    }
    b.pods = reconcile_list(r, reconcile_resource(r, "", "pods"), ns, &selector);
    if (expect(&b, &err)) {
        fail_safe(&b, &err);
        return;
    }
    if (!json_count(b.pods) && json_i64_at(b.pdb, "status.observedGeneration", 0) !=
                                   json_i64_at(b.pdb, "metadata.generation", 0))
        reconcile_event(r, b.pdb, "Normal", "NoPods", "No matching pods found");
    sort_disrupted(&b);

    json_each(pod, b.pods)
    {
        b.healthy += !object_is_terminating(pod) && !json_get_str(b.disrupted, meta_name(pod)) &&
                     pod_is_ready(pod);
    }

    write_status(&b);
}

/* --- sources --- */

static void map_budget(struct controller *c, const struct store_event *e)
{
    selector_index_apply(controller_state(c), e);
    controller_map_self(c, e);
}

static void on_selecting(void *ctx, struct str ns, struct str name)
{
    controller_add_name(ctx, ns, name);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    selector_index_event(controller_state(c), e, on_selecting, c);
}

static void *start(struct controller *c)
{
    (void)c;
    return selector_index_new(SELECTOR_LABELS);
}

static const struct controller_source SOURCES[] = {
    {"policy", "poddisruptionbudgets", map_budget},
    {"", "pods", map_pod},
    {NULL, NULL, NULL},
};

const struct controller_def DISRUPTION_CONTROLLER = {
    .name = "disruption-controller",
    .sources = SOURCES,
    .reconcile = pdb_reconcile,
    .start = start,
    .stop = selector_index_stop,
};
