/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSet, and ReplicationController, which is the same with a plainer selector: keeps as many
 * pods as asked for, and counts them in status. Must never have more under way than are missing: a
 * run does not start before the last one's writes are visible, which stands for upstream's
 * expectations. */
#include "util.h"

#include <stdlib.h>
#include <string.h>

#define BURST 500

struct flavour {
    const char *group, *plural, *kind;
    bool plain_selector;
};
static const struct flavour REPLICA_SETS = {"apps", "replicasets", "ReplicaSet", false};
static const struct flavour CONTROLLERS_OF_OLD = {"", "replicationcontrollers",
                                                  "ReplicationController", true};

struct replicas {
    struct reconcile *run;
    const struct flavour *flavour;
    const struct resource *res, *pods_res;
    cJSON *owner;
    cJSON *pods;    /* all that are owned */
    cJSON **active; /* of them those that count */
    size_t n_active, n_terminating;
    int64_t wanted;
};

/* --- which pod goes first --- */

struct ranked {
    cJSON *pod;
    int key[4]; /* lower goes first */
    int64_t ready_since, restarts, created;
    size_t crowd; /* pods of this owner on its node */
};

static int phase_rank(const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    return str_eqc(phase, "Pending") ? 0 : str_eqc(phase, "Running") ? 2 : 1;
}

static int64_t ready_since(const cJSON *pod)
{
    int64_t us = 0;
    const cJSON *ready = condition_get(json_path(pod, "status.conditions"), "Ready");

    return time_parse(json_str_at(ready, "lastTransitionTime"), &us) ? us : 0;
}

static int64_t restarts_of(const cJSON *pod)
{
    int64_t most = 0;

    json_each(s, json_path(pod, "status.containerStatuses"))
    {
        int64_t n = json_i64_at(s, "restartCount", 0);

        most = n > most ? n : most;
    }
    return most;
}

static int64_t deletion_cost(const cJSON *pod)
{
    struct str text = json_str(json_get(json_path(pod, "metadata.annotations"),
                                        "controller.kubernetes.io/pod-deletion-cost"));
    int64_t cost = 0;

    str_to_i64(text, &cost);
    return cost < INT32_MIN ? INT32_MIN : cost > INT32_MAX ? INT32_MAX : cost;
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Unassigned, pending, unready, cheaper, crowded, younger ready, more restarts, younger. */
static int compare_ranked(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    for (size_t i = 0; i < 4; i++) {
        if (a->key[i] != b->key[i])
            return a->key[i] < b->key[i] ? -1 : 1;
    }
    if (a->crowd != b->crowd)
        return a->crowd > b->crowd ? -1 : 1;
    int order = -compare_i64(a->ready_since, b->ready_since);
    order = order ? order : -compare_i64(a->restarts, b->restarts);
    return order ? order : -compare_i64(a->created, b->created);
}

static size_t crowd_of(const struct replicas *s, const cJSON *pod)
{
    struct str node = json_str_at(pod, "spec.nodeName");
    size_t n = 0;

    for (size_t i = 0; i < s->n_active; i++)
        n += node.n && str_eq(json_str_at(s->active[i], "spec.nodeName"), node);
    return n;
}

static struct ranked *rank(struct replicas *s)
{
    struct ranked *ranked = arena_alloc(reconcile_arena(s->run), s->n_active * sizeof(*ranked));

    for (size_t i = 0; i < s->n_active; i++) {
        cJSON *pod = s->active[i];

        ranked[i] = (struct ranked){.pod = pod};
        ranked[i].key[0] = json_str_at(pod, "spec.nodeName").n > 0;
        ranked[i].key[1] = phase_rank(pod);
        ranked[i].key[2] = pod_is_ready(pod);
        ranked[i].key[3] = (int)deletion_cost(pod);
        ranked[i].ready_since = ready_since(pod);
        ranked[i].restarts = restarts_of(pod);
        ranked[i].created = meta_created_s(pod);
        ranked[i].crowd = crowd_of(s, pod);
    }
    qsort(ranked, s->n_active, sizeof(*ranked), compare_ranked);
    return ranked;
}

/* --- creating and deleting --- */

static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *pod)
{
    struct replicas *s = ctx;

    if (!err) {
        reconcile_event(r, s->owner, "Normal", "SuccessfulCreate", "Created pod: %.*s",
                        STR_F(pod->name));
        return;
    }
    reconcile_event(r, s->owner, "Warning", "FailedCreate", "Error creating: %.*s",
                    STR_F(err->message));
    reconcile_fail(r, err);
}

static void create_pods(struct replicas *s, size_t n)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *pod = pod_from_template(a, s->res, s->owner, json_path(s->owner, "spec.template"));

    /* What was refused last time is tried with one pod before with many. */
    if (reconcile_failures(s->run))
        n = 1;
    for (size_t i = 0; i < n && i < BURST; i++) {
        reconcile_create(s->run, s->pods_res, meta_ns(s->owner), pod);
        reconcile_then(s->run, on_created, s);
    }
}

static void delete_pods(struct replicas *s, size_t n)
{
    struct ranked *ranked = rank(s);

    for (size_t i = 0; i < n && i < BURST; i++) {
        const cJSON *pod = ranked[i].pod;

        reconcile_delete(s->run, s->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
        reconcile_event(s->run, s->owner, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                        STR_F(meta_name(pod)));
    }
}

/* --- status --- */

static bool labels_cover(const cJSON *wanted, const cJSON *labels)
{
    json_each(item, wanted)
    {
        if (!str_eq(json_str(json_get(labels, item->string)), json_str(item)))
            return false;
    }
    return true;
}

struct counts {
    int64_t ready, available, labelled;
};

static struct counts count(struct replicas *s)
{
    int64_t min = json_i64_at(s->owner, "spec.minReadySeconds", 0), wait,
            now = reconcile_now_s(s->run);
    const cJSON *labels = json_path(s->owner, "spec.template.metadata.labels");
    struct counts c = {0};

    for (size_t i = 0; i < s->n_active; i++) {
        const cJSON *pod = s->active[i];

        c.labelled += labels_cover(labels, json_path(pod, "metadata.labels"));
        c.ready += pod_is_ready(pod);
        if (pod_is_available(pod, min, now, &wait))
            c.available++;
        else if (wait)
            reconcile_again_after(s->run, wait * 1000);
    }
    return c;
}

static bool set_count(struct arena *a, cJSON *status, const char *key, int64_t value,
                      bool keep_zero)
{
    if (json_i64_at(status, key, 0) == value && (json_get(status, key) || !keep_zero))
        return false;
    if (value || keep_zero)
        json_set_i64(a, status, key, value);
    else
        json_remove(status, key);
    return true;
}

static void update_status(struct replicas *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *status = json_ensure_object(a, s->owner, "status");
    struct counts c = count(s);
    bool changed = false;
    bool failing = reconcile_failures(s->run) && (int64_t)s->n_active < s->wanted;

    changed |= set_count(a, status, "replicas", (int64_t)s->n_active, true);
    changed |= set_count(a, status, "fullyLabeledReplicas", c.labelled, false);
    changed |= set_count(a, status, "readyReplicas", c.ready, false);
    changed |= set_count(a, status, "availableReplicas", c.available, false);
    if (!s->flavour->plain_selector)
        changed |= set_count(a, status, "terminatingReplicas", (int64_t)s->n_terminating, true);
    changed |= set_count(a, status, "observedGeneration",
                         json_i64_at(s->owner, "metadata.generation", 0), false);
    if (failing)
        changed |=
            condition_set(a, s->owner, "ReplicaFailure", "True", "FailedCreate",
                          STR("pods could not be created: see events"), reconcile_now_s(s->run));
    else
        changed |= condition_remove(s->owner, "ReplicaFailure");
    if (changed)
        reconcile_update_status(s->run, s->res, s->owner);
}

/* --- reconcile --- */

static int read_selector(struct replicas *s, struct selector *selector, struct err *err)
{
    const cJSON *spec = json_path(s->owner, "spec.selector");

    if (!s->flavour->plain_selector)
        return selector_from_json(reconcile_arena(s->run), spec, selector, err);
    selector_from_map(reconcile_arena(s->run), spec, selector);
    return 0;
}

static void sort_out(struct replicas *s)
{
    s->active = arena_alloc(reconcile_arena(s->run), (json_count(s->pods) + 1) * sizeof(cJSON *));
    json_each(pod, s->pods)
    {
        if (pod_is_active(pod))
            s->active[s->n_active++] = pod;
        else if (pod_is_terminating(pod) && !pod_is_finished(pod))
            s->n_terminating++;
    }
}

static void replicas_reconcile(struct reconcile *r, const struct flavour *flavour)
{
    struct arena *a = reconcile_arena(r);
    struct replicas *s = ARENA_NEW(a, struct replicas);
    struct selector selector;
    struct str ns, name;
    struct err err;

    *s = (struct replicas){.run = r, .flavour = flavour};
    s->res = reconcile_resource(r, flavour->group, flavour->plural);
    s->pods_res = reconcile_resource(r, "", "pods");
    if (!key_split(reconcile_key(r), &ns, &name) ||
        !(s->owner = reconcile_get(r, s->res, ns, name)))
        return;
    err_init(&err, a);
    if (read_selector(s, &selector, &err)) {
        reconcile_fail(r, &err);
        return;
    }
    s->pods = pods_claim(r, s->res, s->owner, &selector);
    sort_out(s);
    s->wanted = json_i64_at(s->owner, "spec.replicas", 1);
    if (!json_path(s->owner, "metadata.deletionTimestamp")) {
        int64_t missing = s->wanted - (int64_t)s->n_active;

        if (missing > 0)
            create_pods(s, (size_t)missing);
        else if (missing < 0)
            delete_pods(s, (size_t)-missing);
    }
    update_status(s);
}

static void replica_set_reconcile(struct reconcile *r)
{
    replicas_reconcile(r, &REPLICA_SETS);
}

static void old_reconcile(struct reconcile *r)
{
    replicas_reconcile(r, &CONTROLLERS_OF_OLD);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    map_pod_to_owner(c, e, "apps", "replicasets", STR("ReplicaSet"));
}

static void map_old_pod(struct controller *c, const struct store_event *e)
{
    map_pod_to_owner(c, e, "", "replicationcontrollers", STR("ReplicationController"));
}

static const struct controller_source SOURCES[] = {
    {"apps", "replicasets", controller_map_self}, {"", "pods", map_pod}, {NULL, NULL, NULL}};
static const struct controller_source OLD_SOURCES[] = {
    {"", "replicationcontrollers", controller_map_self},
    {"", "pods", map_old_pod},
    {NULL, NULL, NULL}};

const struct controller_def REPLICA_SET_CONTROLLER = {
    .name = "replicaset-controller",
    .sources = SOURCES,
    .reconcile = replica_set_reconcile,
};
const struct controller_def REPLICATION_CONTROLLER_CONTROLLER = {
    .name = "replication-controller",
    .sources = OLD_SOURCES,
    .reconcile = old_reconcile,
};
