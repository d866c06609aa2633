/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSet, and ReplicationController, which differs only in its selector: keeps the requested
 * number of pods, and counts them in status. Must never create more pods than are missing: a run
 * does not start before the previous one's writes are visible, which replaces upstream's
 * expectations. */
#include "pod_facts.h"

#define BURST 500

struct flavour {
    const char *group, *plural, *kind;
    bool plain_selector;
};
static const struct flavour REPLICA_SETS = {"apps", "replicasets", "ReplicaSet", false};
static const struct flavour REPLICATION_CONTROLLERS = {"", "replicationcontrollers",
                                                       "ReplicationController", true};

struct counts {
    int64_t active, terminating, ready, available, labelled;
};

struct replicas {
    struct reconcile *run;
    const struct flavour *flavour;
    const struct resource *res, *pods_res;
    cJSON *owner, *as_read;
    cJSON *pod;     /* template of the pods to create */
    cJSON **active; /* of its pods, those that are active */
    size_t n_active;
    struct counts counts;
    int64_t wanted;
    bool moved;
    struct pod_batch batch;
};

/* --- creating and deleting --- */

/* Active pods of all sets of the same owner: those of a Deployment's other versions share the
 * nodes. */
static cJSON **relatives(struct replicas *s, size_t *ret_n)
{
    struct arena *a = reconcile_arena(s->run);
    struct str ns = meta_ns(s->owner), uid = json_str_at(owner_controller(s->owner), "uid");
    cJSON *found = json_new_array(a);

    *ret_n = s->n_active;
    if (!uid.n)
        return s->active;
    json_each(set, objects_owned(s->run, s->res, ns, uid))
    {
        size_t n;
        cJSON *list = objects_owned(s->run, s->pods_res, ns, meta_uid(set));
        cJSON **pods = controller_items(a, list, &n);

        for (size_t i = 0; i < n; i++) {
            json_detach(list, pods[i]);
            if (pod_is_active(pods[i]))
                json_append(found, pods[i]);
        }
    }
    return controller_items(a, found, ret_n);
}

static cJSON *make_pod(void *ctx, size_t i)
{
    (void)i;
    return ((struct replicas *)ctx)->pod;
}

/* --- status --- */

static void count_available(struct replicas *s, bool available, int64_t wait_s)
{
    s->counts.available += available;
    if (!available && wait_s)
        reconcile_again_after(s->run, wait_s * 1000);
}

static void count_active(struct replicas *s, const cJSON *pod)
{
    const cJSON *labels = json_path(s->owner, "spec.template.metadata.labels");
    int64_t min = json_i64_at(s->owner, "spec.minReadySeconds", 0), wait;
    bool available = controller_pod_is_available(pod, min, reconcile_now_s(s->run), &wait);

    s->counts.active++;
    s->counts.labelled += labels_cover(labels, json_path(pod, "metadata.labels"));
    s->counts.ready += pod_is_ready(pod);
    count_available(s, available, wait);
}

static void update_status(struct reconcile *r, void *ctx)
{
    struct replicas *s = ctx;
    struct arena *a = reconcile_arena(r);
    cJSON *status = json_ensure_object(a, s->owner, "status");
    const struct err *err;
    bool missing;

    /* The pods' events requeue the set; the next run sees the changes. */
    if (s->moved && !reconcile_error(r))
        return;
    controller_status_set(a, status, "replicas", s->counts.active, true);
    controller_status_set(a, status, "fullyLabeledReplicas", s->counts.labelled, false);
    controller_status_set(a, status, "readyReplicas", s->counts.ready, false);
    controller_status_set(a, status, "availableReplicas", s->counts.available, false);
    if (!s->flavour->plain_selector)
        controller_status_set(a, status, "terminatingReplicas", s->counts.terminating, true);
    controller_status_set(a, status, "observedGeneration",
                          json_i64_at(s->owner, "metadata.generation", 0), false);

    /* Errors of this run; an older failure's message stays while it lasts. */
    err = reconcile_error(s->run);
    missing = s->counts.active < s->wanted;
    if (!err)
        condition_remove(s->owner, "ReplicaFailure");
    else if (!condition_of(s->owner, "ReplicaFailure"))
        condition_set(reconcile_arena(s->run), s->owner, "ReplicaFailure", "True",
                      missing ? "FailedCreate" : "FailedDelete", err->message,
                      reconcile_now_s(s->run));

    controller_status_commit(r, s->res, s->owner, s->as_read);
}

static void on_created(struct reconcile *r, void *ctx)
{
    struct replicas *s = ctx;

    s->moved = s->batch.created > 0;
    update_status(r, s);
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

static void sort_out(struct replicas *s, const struct selector *selector)
{
    size_t n;
    cJSON **pods =
        controller_items(reconcile_arena(s->run),
                         objects_claim(s->run, s->pods_res, s->res, s->owner, selector), &n);

    s->active = pods;
    for (size_t i = 0; i < n; i++) {
        cJSON *pod = pods[i];

        if (pod_is_active(pod)) {
            s->active[s->n_active++] = pod;
            count_active(s, pod);
        } else if (object_is_terminating(pod) && !pod_is_finished(pod))
            s->counts.terminating++;
    }
}

/* --- runs that only update the status --- */

struct survey {
    struct replicas *set;
    struct pod_facts_table *facts;
    const struct selector *selector;
    struct str uid;
    bool claims; /* some must be adopted or released */
};

static bool labels_flat_cover(const cJSON *wanted, struct str labels)
{
    json_each(item, wanted)
    {
        struct str has;

        if (!labels_get(labels, str_c(item->string), &has) || !str_eq(has, json_str(item)))
            return false;
    }
    return true;
}

static void survey_own(struct survey *v, const struct store_object *o, const struct pod_facts *f)
{
    struct replicas *s = v->set;
    const cJSON *labels = json_path(s->owner, "spec.template.metadata.labels");
    int64_t min = json_i64_at(s->owner, "spec.minReadySeconds", 0), left = 0;

    if (f->finished)
        return;
    if (f->terminating) {
        s->counts.terminating++;
        return;
    }
    s->counts.active++;
    s->counts.labelled += labels_flat_cover(labels, o->labels);
    s->counts.ready += f->ready;
    if (!f->ready)
        return;
    if (min > 0 && f->ready_since_s)
        left = f->ready_since_s + min - reconcile_now_s(s->run);
    count_available(s, min <= 0 || (f->ready_since_s && left <= 0), left > 0 ? left : 0);
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct survey *v = ctx;
    bool matches = selector_match(v->selector, o->labels), owned;
    const struct pod_facts *f;

    if (!matches && !str_contains(o->bytes, v->uid))
        return true;
    f = pod_facts_of(v->facts, o);
    owned = str_eqc(v->uid, f->owner);
    if (owned && matches)
        survey_own(v, o, f);
    else if (!f->terminating && (owned || (!f->owned && matches)))
        v->claims = true;
    return !v->claims;
}

/* True when the set has its pods and no others to claim: only its counts may change. Of hundreds of
 * pods only changed ones are parsed. */
static bool is_steady(struct replicas *s, const struct selector *selector)
{
    struct survey v = {.set = s,
                       .facts = controller_state(reconcile_controller(s->run)),
                       .selector = selector,
                       .uid = meta_uid(s->owner)};
    struct err err;

    err_init(&err, reconcile_arena(s->run));
    if (object_is_terminating(s->owner) ||
        store_scan(vapi_store(reconcile_api(s->run)), s->pods_res->storage, meta_ns(s->owner),
                   STR_NULL, STR_NULL, 0, on_pod, &v, &err))
        return false;
    if (!v.claims && s->counts.active == s->wanted)
        return true;
    s->counts = (struct counts){0};
    return false;
}

/* Too few: creates pods and reports the result in the status. Too many: deletes pods. */
static void manage(struct replicas *s)
{
    int64_t missing = s->wanted - (int64_t)s->n_active;

    if (missing > 0) {
        s->pod = controller_pod_from_template(reconcile_arena(s->run), s->res, s->owner,
                                              json_path(s->owner, "spec.template"));
        s->batch = (struct pod_batch){.run = s->run,
                                      .owner = s->owner,
                                      .make = make_pod,
                                      .ctx = s,
                                      .wanted = missing < BURST ? (size_t)missing : BURST,
                                      .done = on_created};
        pods_create(&s->batch);
        return;
    }
    if (missing < 0) {
        size_t n = (size_t)-missing;
        size_t n_crowd;
        cJSON **crowd = relatives(s, &n_crowd);

        pods_rank(reconcile_arena(s->run), s->active, s->n_active, crowd, n_crowd,
                  reconcile_now_s(s->run));
        for (size_t i = 0; i < n && i < BURST; i++) {
            const cJSON *pod = s->active[i];

            reconcile_delete(s->run, s->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod),
                             NULL);
            reconcile_event(s->run, s->owner, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                            STR_F(meta_name(pod)));
        }

        s->moved = true;
        reconcile_next(s->run, update_status, s);
        return;
    }
    update_status(s->run, s);
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
    s->as_read = json_copy(a, s->owner);
    s->wanted = json_i64_at(s->owner, "spec.replicas", 1);
    if (is_steady(s, &selector)) {
        update_status(r, s);
        return;
    }
    sort_out(s, &selector);
    if (object_is_terminating(s->owner))
        update_status(r, s);
    else
        manage(s);
}

static void replica_set_reconcile(struct reconcile *r)
{
    replicas_reconcile(r, &REPLICA_SETS);
}

static void rc_reconcile(struct reconcile *r)
{
    replicas_reconcile(r, &REPLICATION_CONTROLLERS);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    controller_map_dependent(c, e, "apps", "replicasets", STR("ReplicaSet"));
}

static void map_rc_pod(struct controller *c, const struct store_event *e)
{
    controller_map_dependent(c, e, "", "replicationcontrollers", STR("ReplicationController"));
}

static const struct controller_source SOURCES[] = {
    {"apps", "replicasets", controller_map_self}, {"", "pods", map_pod}, {NULL, NULL, NULL}};
static const struct controller_source RC_SOURCES[] = {
    {"", "replicationcontrollers", controller_map_self},
    {"", "pods", map_rc_pod},
    {NULL, NULL, NULL}};

const struct controller_def REPLICA_SET_CONTROLLER = {
    .name = "replicaset-controller",
    .account = "replicaset-controller",
    .retries = "ReplicaSet",
    .sources = SOURCES,
    .reconcile = replica_set_reconcile,
    .start = pod_facts_start,
    .stop = pod_facts_stop,
};
const struct controller_def REPLICATION_CONTROLLER_CONTROLLER = {
    .name = "replication-controller",
    .account = "replication-controller",
    .retries = "ReplicationController",
    .sources = RC_SOURCES,
    .reconcile = rc_reconcile,
    .start = pod_facts_start,
    .stop = pod_facts_stop,
};
