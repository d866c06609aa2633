/* SPDX-License-Identifier: Apache-2.0 */
/* PodGroups of the host for gangs of KAI, Volcano and Kubernetes itself: made before the first pod
 * of an owner is, of the size its owner has, and deleted after the last. The scheduler has their
 * status. Must never write to or delete one that neither its record nor its marks prove ours, nor
 * delete one while a pod of it may be on the host or in the virtual cluster.
 *
 *   record RECORD_META "gang/<host name>": "<kind>/<pool>/<ns>/<owner uid> <as mapping.c has it>"
 *     no host uid: its creation was requested, and not answered yet
 *
 *   pod waits --record durable, POST--> no host uid --answered or seen--> host uid, pods go on
 *                                          |                                |
 *       no record <-- refused, or lost ----'      no pod: DELETE, gone -----'
 */
#include "pods/gangs.h"
#include "core/leader.h"
#include "core/life.h"
#include "pods/pods.h"

#include <assert.h>
#include <string.h>

#include <sublet/store_quarantine.h>
#include <sublet/translate_gang.h>

#define PREFIX   "gang/"
#define TAKEN_MS 60000

static const struct {
    const char *word;
    enum pool_scheduler kind;
} KINDS[] = {{"kai", SCHEDULER_KAI}, {"volcano", SCHEDULER_VOLCANO}, {"native", SCHEDULER_NATIVE}};

struct group_watch {
    struct gangs *gangs;
    struct reflector *reflector; /* NULL: not open yet */
    bool unserved;               /* of those refused: the host has no such API */
};

struct gangs {
    struct syncer *syncer;
    struct controller *controller;
    struct group_watch watches[COUNT(KINDS)];
};

/* One group, and what is known of it. */
struct gang {
    struct syncer *syncer;
    struct arena *arena;
    struct str host_name, pool, ns, owner; /* owner: a virtual uid */
    size_t kind;
    struct mapping record;
    cJSON *host, *wanted; /* wanted NULL: it stays as it is, or goes */
    bool ours;            /* host carries our marks, under this name */
    /* One that is of the group and not finished, its host pod, and whether it is of it now. */
    const cJSON *pod, *host_pod;
    struct pool_choice choice;
    int64_t succeeded, outside; /* outside: on the host without the group */
    bool used;                  /* a pod of the owner exists, somewhere */
};

/* --- records --- */

static struct str record_key(struct arena *a, struct str host_name)
{
    return arena_printf(a, PREFIX "%.*s", STR_F(host_name));
}

/* A name of another is no record of ours. */
static bool is_sane(const struct gang *x)
{
    char name[64];

    if (x->kind == COUNT(KINDS) || !translate_gang_is_owner(x->owner))
        return false;
    translate_gang_name(&x->syncer->tenant, x->pool, KINDS[x->kind].kind, x->ns, x->owner, 0, name);
    return str_eqc(x->host_name, name);
}

static bool record_get(struct gang *x)
{
    struct str rest, word;

    if (!store_record_get(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name), &rest))
        return false;
    rest = arena_str(x->arena, rest);
    word = str_cut(&rest, '/');
    x->pool = str_cut(&rest, '/');
    x->ns = str_cut(&rest, '/');
    x->owner = str_cut(&rest, ' ');
    x->record = sync_mapping_parse(x->arena, rest);
    for (x->kind = 0; x->kind < COUNT(KINDS); x->kind++) {
        if (str_eqc(word, KINDS[x->kind].word))
            break;
    }
    return is_sane(x);
}

static void record_put(const struct gang *x)
{
    assert(is_sane(x));
    store_record_put(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name),
                     arena_printf(x->arena, "%s/%.*s/%.*s/%.*s %.*s", KINDS[x->kind].word,
                                  STR_F(x->pool), STR_F(x->ns), STR_F(x->owner),
                                  STR_F(sync_mapping_text(x->arena, &x->record))));
}

static void record_drop(struct gang *x)
{
    x->record = (struct mapping){0};
    store_record_delete(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name));
}

static bool is_open(const struct gang *x)
{
    return sync_mapping_lost_left_s(x->syncer, &x->record) > 0;
}

/* --- which groups there are --- */

static void again(struct gangs *all, struct str host_name)
{
    if (all->controller)
        controller_add_name(all->controller, STR(""), host_name);
}

static bool on_record(void *ctx, struct str key, struct str value)
{
    (void)value;
    again(ctx, str_from(key, sizeof(PREFIX) - 1));
    return true;
}

void sync_gangs_rescan(struct gangs *all)
{
    if (all)
        store_record_each(all->syncer->store, RECORD_META, STR(PREFIX), on_record, all);
}

/* The groups that this owner may have, one for each pool. */
static void add_groups_of(struct gangs *all, struct str ns, struct str owner)
{
    const struct config *config = all->syncer->config;
    struct arena *a = arena_new(0);
    struct str unused;
    char name[64];

    for (size_t i = 0; i < config->n_pools && translate_gang_is_owner(owner); i++) {
        translate_gang_name(&all->syncer->tenant, config->pools[i].name,
                            config->pools[i].scheduler_kind, ns, owner, 0, name);
        if (store_record_get(all->syncer->store, RECORD_META, record_key(a, str_c(name)), &unused))
            again(all, str_c(name));
    }
    arena_free(a);
}

void sync_gangs_host_pod_gone(struct gangs *all, const cJSON *host_pod)
{
    for (size_t i = 0; all && i < COUNT(KINDS); i++) {
        struct str group = translate_gang_of_host_pod(host_pod, KINDS[i].kind);

        if (group.n)
            again(all, group);
    }
}

/* --- their watches --- */

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    again(((struct group_watch *)ctx)->gangs, now ? now->name : before->name);
}

static const char *duty(const struct group_watch *w)
{
    static const char *const duties[] = {"keep PodGroups of KAI", "keep PodGroups of Volcano",
                                         "keep PodGroups of Kubernetes"};

    return duties[w - w->gangs->watches];
}

static void on_current(void *ctx, bool listed)
{
    struct gangs *all = ((struct group_watch *)ctx)->gangs;

    (void)listed;
    sync_dialogue_note(all->syncer, duty(ctx), NULL, STR_NULL, STR_NULL);
    sync_gangs_rescan(all);
}

/* Pods that wait say so. */
static void on_refused(void *ctx, const struct err *err)
{
    struct group_watch *w = ctx;
    struct gangs *all = w->gangs;

    w->unserved = err->kind == &ERR_NOT_FOUND;
    sync_dialogue_note(all->syncer, duty(ctx), "PodGroupsNotReadable",
                       w->unserved ? STR("the host cluster does not serve the PodGroups of this "
                                         "scheduler: pods of gangs wait")
                                   : STR("the host cluster does not let this virtual cluster read "
                                         "PodGroups: pods of gangs wait"),
                       err->message);
    sync_gangs_rescan(all);
}

static void on_went_back(void *ctx)
{
    reflector_restart(((struct group_watch *)ctx)->reflector);
}

static void reduce(struct arena *a, cJSON *group)
{
    (void)a;
    json_remove(group, "status");
}

static struct str path_of(struct arena *a, const struct syncer *s, size_t kind, struct str name)
{
    return arena_printf(a, "%.*s/namespaces/%.*s/podgroups%s%.*s",
                        STR_F(translate_gang_root(KINDS[kind].kind)),
                        STR_F(s->config->host_namespace), name.n ? "/" : "", STR_F(name));
}

static struct reflector *watch(struct gangs *all, size_t kind)
{
    struct group_watch *w = &all->watches[kind];
    struct syncer *s = all->syncer;
    struct reflector_options o = {.host = s->host,
                                  .reduce = reduce,
                                  .changed = on_changed,
                                  .current = on_current,
                                  .refused = on_refused,
                                  .went_back = on_went_back,
                                  .ctx = w};
    struct arena *a;

    if (w->reflector || !syncer_is_running(s))
        return w->reflector;
    a = arena_new(0);
    o.path = path_of(a, s, kind, STR(""));
    o.label_selector = arena_printf(a, LABEL_CLUSTER "=%.*s", STR_F(s->tenant.cluster_uid));
    w->reflector = reflector_open(&o);
    arena_free(a);
    return w->reflector;
}

/* --- the pods of an owner --- */

struct members {
    struct syncer *syncer;
    struct arena *arena;
    struct str owner;
    void (*each)(void *ctx, const cJSON *pod);
    void *ctx;
};

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct members *m = ctx;
    const cJSON *pod;

    if (!str_contains(o->bytes, m->owner))
        return true;
    pod = vapi_tree(m->arena, o);
    if (pod && str_eq(json_str(json_get(owner_controller(pod), "uid")), m->owner))
        m->each(m->ctx, pod);
    return true;
}

static void each_member(struct members *m, struct str ns)
{
    if (store_scan(m->syncer->store, syncer_storage(m->syncer, SYNC_PODS), ns, STR_NULL, STR_NULL,
                   0, on_pod, m, NULL))
        return;
}

/* Of the same owner, and in the same pool: those of others are in no group, or in another. */
static void take_member(void *ctx, const cJSON *pod)
{
    struct gang *x = ctx;
    struct syncer *s = x->syncer;
    struct pool_choice choice;
    const cJSON *host;
    cJSON *host_pod;
    struct err err;

    x->used = true;
    err_init(&err, x->arena);
    if (sync_pod_choose(s, x->arena, pod, &choice, &err) || !choice.binding ||
        !str_eq(choice.binding->pool->name, x->pool) || !choice.gang_size)
        return;
    if (pod_is_finished(pod)) {
        x->succeeded += str_eqc(json_str_at(pod, "status.phase"), "Succeeded");
        return;
    }
    host = sync_pod_on_host(s, x->arena, pod);
    if (host && !str_eq(choice.gang, x->host_name)) {
        x->outside += !object_is_terminating(host);
        return;
    }
    if (x->pod && !object_is_terminating(x->pod))
        return;
    if (sync_pod_translate(s, x->arena, pod, &choice, false, &host_pod, &err))
        return; /* its own run says so */
    x->pod = pod;
    x->host_pod = host_pod;
    x->choice = choice;
}

static bool on_latest(void *ctx, const struct store_object *o)
{
    struct gang *x = ctx;

    x->used |= str_contains(o->bytes, x->owner);
    return !x->used;
}

static void on_host_pod(void *ctx, const struct host_object *o)
{
    struct gang *x = ctx;

    x->used |= str_contains(o->bytes, x->host_name);
}

static void wake_member(void *ctx, const cJSON *pod)
{
    const struct gang *x = ctx;

    if (!pod_is_finished(pod) && !sync_pod_on_host(x->syncer, x->arena, pod))
        syncer_add(x->syncer, SYNC_PODS, x->ns, json_str_at(pod, "metadata.name"));
}

static void wake_members(struct gang *x)
{
    struct members m = {x->syncer, x->arena, x->owner, wake_member, x};

    each_member(&m, x->ns);
}

/* --- what is known --- */

/* The owner of a pod, if that is a Job. */
static const cJSON *job_of(struct syncer *s, struct arena *a, const cJSON *pod)
{
    const cJSON *owner = owner_controller(pod);
    const struct resource *r = syncer_resource(s, "batch", "jobs");
    const struct store_object *o;

    if (!str_eqc(json_str(json_get(owner, "kind")), "Job") ||
        !str_has_prefix(json_str(json_get(owner, "apiVersion")), STR("batch/")))
        return NULL;
    o = store_get(s->store, r->storage, json_str_at(pod, "metadata.namespace"),
                  json_str(json_get(owner, "name")));
    return o && str_eq(o->uid, json_str(json_get(owner, "uid"))) ? vapi_tree(a, o) : NULL;
}

static void want(struct gang *x)
{
    const struct config_pool *pool = x->choice.binding->pool;
    int64_t size =
        translate_gang_size(pool, x->pod, job_of(x->syncer, x->arena, x->pod), x->succeeded);

    if (pool->scheduler_kind != KINDS[x->kind].kind || !size)
        return;
    size = size - x->outside < 1 ? 1 : size - x->outside;
    x->wanted = translate_gang_group(x->arena, &x->syncer->tenant, pool, x->pod, x->host_name, size,
                                     json_str_at(x->host_pod, "spec.priorityClassName"));
}

static bool read_host(struct gang *x, struct reflector *groups)
{
    const struct host_object *o = reflector_get(groups, x->host_name);
    struct str ns, uid;

    if (!o)
        return true;
    if (json_parse(x->arena, o->bytes, &x->host, NULL))
        return false;
    x->ours = translate_gang_owner(&x->syncer->tenant, KINDS[x->kind].kind, x->host, &ns, &uid) &&
              str_eq(ns, x->ns) && str_eq(uid, x->owner) && sync_life_owns(x->syncer, x->host);
    return true;
}

/* False: there is no record, or nothing can be said yet. */
static bool gang_read(struct gang *x, struct gangs *all, struct arena *a, struct str host_name)
{
    struct reflector *groups;
    struct members m = {all->syncer, a, STR(""), take_member, x};

    *x = (struct gang){.syncer = all->syncer, .arena = a, .host_name = host_name};
    if (!record_get(x))
        return false;
    groups = watch(all, x->kind);
    if (reflector_refused(groups))
        wake_members(x); /* they say so, and wait for current() */
    if (!reflector_synced(groups) || !read_host(x, groups))
        return false;
    m.owner = x->owner;
    each_member(&m, x->ns);
    store_scan_latest(x->syncer->store, syncer_storage(x->syncer, SYNC_PODS), x->ns, on_latest, x);
    reflector_each(x->syncer->watches[SYNC_PODS].reflector, on_host_pod, x);
    if (x->pod)
        want(x);
    return true;
}

/* --- requests --- */

static struct sync_run *run_of(struct gang *x, struct reconcile *r)
{
    struct sync_run *run = ARENA_NEW(x->arena, struct sync_run);

    *run = (struct sync_run){.syncer = x->syncer,
                             .reconcile = r,
                             .arena = x->arena,
                             .id = SYNC_PODS,
                             .ns = x->ns,
                             .then_ctx = x};
    return run;
}

static void learn(struct gang *x, const struct host_answer *answer)
{
    reflector_learn(x->syncer->gangs->watches[x->kind].reflector, answer->body);
}

static void note_refusal(struct gang *x, struct reconcile *r, const struct err *err)
{
    if (x->pod && !sync_is_uncertain(err) && err->kind != &ERR_TOO_MANY_REQUESTS)
        reconcile_event(r, x->pod, "Warning", "SyncError",
                        "the host cluster refuses the PodGroup of its gang: %.*s",
                        STR_F(translate_refusal_up(x->arena, &x->syncer->tenant, err, x->host_name,
                                                   x->ns, json_str_at(x->pod, "metadata.name"))));
    reconcile_fail(r, err);
}

/* What the last create made is known. */
static void attempt_over(struct gang *x)
{
    (void)sync_mapping_try_over(&x->record);
    record_put(x);
}

static void on_created(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct gang *x = run->then_ctx;
    cJSON *host = NULL;

    if (!err && !json_parse(x->arena, answer->body, &host, NULL)) {
        sync_mapping_set_host(x->syncer, &x->record, meta_uid(host));
        record_put(x);
        learn(x, answer);
        wake_members(x);
    } else if (err && !sync_is_uncertain(err)) {
        attempt_over(x);
        if (err->kind == &ERR_ALREADY_EXISTS) /* the watch shows it, or another's has the name */
            reconcile_again_after(run->reconcile, 1000);
        else
            note_refusal(x, run->reconcile, err);
    } else {
        reconcile_again_after(run->reconcile, 1000);
    }
}

static void create(struct gang *x, struct reconcile *r)
{
    struct host_request q = {.method = "POST",
                             .path = path_of(x->arena, x->syncer, x->kind, STR("")),
                             .body = json_text(x->arena, x->wanted)};

    sync_mapping_begin(&x->record, x->owner);
    sync_mapping_try_alone(x->syncer, &x->record);
    record_put(x);
    sync_send_recorded(run_of(x, r), &q, on_created);
}

static void on_patched(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct gang *x = run->then_ctx;

    if (!err)
        learn(x, answer);
    else if (err->kind == &ERR_NOT_FOUND || err->kind == &ERR_CONFLICT)
        reconcile_again_after(run->reconcile, 200); /* replaced concurrently; the watch shows it */
    else
        note_refusal(x, run->reconcile, err);
}

static void keep(struct gang *x, struct reconcile *r)
{
    struct host_request q = {.method = "PATCH", .content_type = PATCH_MERGE};
    cJSON *patch = x->wanted ? translate_gang_update(x->arena, x->host, x->wanted) : NULL;

    if (!sync_mapping_has_host(x->syncer, &x->record) ||
        !str_eq(x->record.host_uid, meta_uid(x->host))) {
        sync_mapping_begin(&x->record, x->owner);
        sync_mapping_set_host(x->syncer, &x->record, meta_uid(x->host));
        record_put(x);
    }
    wake_members(x);
    if (!patch)
        return;
    json_set_str(x->arena, json_ensure_object(x->arena, patch, "metadata"), "uid",
                 meta_uid(x->host));
    q.path = path_of(x->arena, x->syncer, x->kind, x->host_name);
    q.body = json_text(x->arena, patch);
    sync_send(run_of(x, r), &q, on_patched);
}

static void on_deleted(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    (void)answer;
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        reconcile_fail(run->reconcile, err);
    else if (err)
        reconcile_again_after(run->reconcile, 500);
}

/* No pod names it, here or on the host, and no one that is hidden may. */
static bool may_delete(const struct gang *x, const struct reconcile *r)
{
    const struct store *store = x->syncer->store;

    return !x->used && !reconcile_spares(r) && x->record.life == x->syncer->life &&
           sync_life_is_current(x->syncer, SYNC_PODS) &&
           store_is_whole(store, syncer_storage(x->syncer, SYNC_PODS), x->ns) &&
           !store_is_damaged(store);
}

static void delete_group(struct gang *x, struct reconcile *r)
{
    struct host_request q = {.method = "DELETE"};

    q.path = path_of(x->arena, x->syncer, x->kind, x->host_name);
    q.body = arena_printf(x->arena,
                          "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                          "\"preconditions\":{\"uid\":\"%.*s\"}}",
                          STR_F(meta_uid(x->host)));
    sync_send(run_of(x, r), &q, on_deleted);
}

static void report_taken(struct gang *x, struct reconcile *r)
{
    if (x->pod)
        reconcile_event(r, x->pod, "Warning", "SyncError",
                        "the name of its gang is taken on the host by a PodGroup that is not this "
                        "cluster's");
    reconcile_again_after(r, TAKEN_MS);
}

/* --- one key --- */

/* Gone from the host, or never there. */
static void absent(struct gang *x, struct reconcile *r)
{
    if (is_open(x))
        reconcile_again_after(r, sync_mapping_lost_left_s(x->syncer, &x->record) * 1000);
    if (x->wanted && (!x->record.tried || !is_open(x)))
        create(x, r);
    else if (!x->used && !is_open(x))
        record_drop(x);
}

static void reconcile_gang(struct reconcile *r)
{
    struct gangs *all = controller_state(reconcile_controller(r));
    struct gang *x = ARENA_NEW(reconcile_arena(r), struct gang);
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name) ||
        !syncer_ready(all->syncer, SYNC_PODS, SYNC_PODS, SYNC_PODS) ||
        !gang_read(x, all, reconcile_arena(r), name))
        return;
    if (!x->host)
        absent(x, r);
    else if (!x->ours)
        report_taken(x, r);
    else if (object_is_terminating(x->host))
        return; /* the watch reports its end */
    else if (may_delete(x, r))
        delete_group(x, r);
    else
        keep(x, r);
}

/* --- groups of Kueue --- */

/* The group that pods of an owner are in on the host, if one of it may still run or has succeeded:
 * Kueue never changes its size. */
struct group {
    struct syncer *syncer;
    struct arena *arena;
    struct str name; /* empty: none */
    int64_t total, n;
};

static void take_grouped(void *ctx, const cJSON *pod)
{
    struct group *g = ctx;
    const cJSON *host = sync_pod_on_host(g->syncer, g->arena, pod);
    int64_t total = host ? translate_gang_total(host) : 0;

    if (!total || object_is_terminating(host) ||
        str_eqc(json_str_at(host, "status.phase"), "Failed"))
        return;
    g->name = translate_gang_of_host_pod(host, SCHEDULER_KUEUE);
    g->total = total;
    g->n++;
}

/* What is created beyond a group's size is admitted alone: Kueue would delete it. */
static void choose_of_kueue(struct syncer *s, struct arena *a, const cJSON *pod, struct str owner,
                            struct pool_choice *choice)
{
    struct group g = {s, a, STR(""), 0, 0};
    struct members m = {s, a, owner, take_grouped, &g};
    struct str ns = json_str_at(pod, "metadata.namespace");
    char name[64];

    each_member(&m, ns);
    if (!g.name.n) {
        translate_gang_name(&s->tenant, choice->binding->pool->name, SCHEDULER_KUEUE, ns, owner,
                            choice->gang_size, name);
        choice->gang = arena_str(a, str_c(name));
    } else if (g.n < g.total) {
        choice->gang = arena_str(a, g.name);
        choice->gang_size = g.total;
    }
}

/* All host pods of a group. */
struct grouped {
    struct syncer *syncer;
    struct arena *arena;
    struct str name;
    size_t active, ended, terminating;
    bool foreign;
};

static void count_grouped(void *ctx, const struct host_object *o)
{
    struct grouped *g = ctx;
    struct str ns, name, uid;
    cJSON *pod = NULL;

    if (!str_contains(o->bytes, g->name) || json_parse(g->arena, o->bytes, &pod, NULL) ||
        !str_eq(translate_gang_of_host_pod(pod, SCHEDULER_KUEUE), g->name))
        return;
    g->foreign |= !translate_owner(&g->syncer->tenant, pod, &ns, &name, &uid);
    if (object_is_terminating(pod))
        g->terminating++;
    else if (pod_is_finished(pod))
        g->ended++;
    else
        g->active++;
}

/* Conflict, not found: Kueue was first. */
static void on_ended(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    (void)answer;
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        reconcile_fail(run->reconcile, err);
    else
        reconcile_again_after(run->reconcile, 1000);
}

/* Every pod of it is to go: with its Workload, Kueue lets go of them. */
static bool end_workload(struct sync_run *run, struct str group)
{
    struct host_request q = {.method = "DELETE"};
    struct str uid = sync_queued_workload(run->syncer->queued, group);

    if (!uid.n)
        return false;
    q.path = arena_printf(run->arena, "/apis/kueue.x-k8s.io/v1beta2/namespaces/%.*s/workloads/%.*s",
                          STR_F(run->syncer->config->host_namespace), STR_F(group));
    q.body = arena_printf(run->arena,
                          "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                          "\"preconditions\":{\"uid\":\"%.*s\"}}",
                          STR_F(uid));
    sync_send(run, &q, on_ended);
    return true;
}

bool sync_gang_end(struct sync_run *run)
{
    struct grouped g = {.syncer = run->syncer, .arena = run->arena};
    const cJSON *job;
    cJSON *patch;

    if (!translate_gang_is_held(run->host) ||
        (!object_is_terminating(run->host) && !pod_is_finished(run->host)) ||
        !sync_life_is_current(run->syncer, SYNC_PODS))
        return false;
    g.name = translate_gang_of_host_pod(run->host, SCHEDULER_KUEUE);
    reflector_each(run->syncer->watches[SYNC_PODS].reflector, count_grouped, &g);
    if (g.active || g.foreign)
        return false;
    if (!g.ended)
        return end_workload(run, g.name);
    job = run->virtual_ ? job_of(run->syncer, run->arena, run->virtual_) : NULL;
    if (!job || !translate_gang_is_over(job))
        return false;
    patch = translate_gang_final(run->arena, run->host);
    return patch && sync_patch(run, &(struct sync_change){
                                        .patch = patch, .type = PATCH_MERGE, .subresource = ""});
}

/* --- of a pod --- */

static size_t kind_of(enum pool_scheduler kind)
{
    size_t i = 0;

    while (i < COUNT(KINDS) && KINDS[i].kind != kind)
        i++;
    return i;
}

void sync_gang_choose(struct syncer *s, struct arena *a, const cJSON *pod,
                      struct pool_choice *choice)
{
    const struct config_pool *pool = choice->binding ? choice->binding->pool : NULL;
    struct str owner = json_str(json_get(owner_controller(pod), "uid"));
    const cJSON *host;
    char name[64];

    if (!pool || !pool->gang || choice->by_claims || !translate_gang_is_owner(owner))
        return;
    choice->gang_size = translate_gang_size(pool, pod, job_of(s, a, pod), 0);
    host = sync_pod_on_host(s, a, pod);
    if (host) {
        choice->gang = translate_gang_of_host_pod(host, pool->scheduler_kind);
    } else if (choice->gang_size && pool->scheduler_kind == SCHEDULER_KUEUE) {
        choose_of_kueue(s, a, pod, owner, choice);
    } else if (choice->gang_size) {
        translate_gang_name(&s->tenant, pool->name, pool->scheduler_kind,
                            json_str_at(pod, "metadata.namespace"), owner, 0, name);
        choice->gang = arena_str(a, str_c(name));
    }
}

bool sync_gang_ready(struct sync_run *run, const struct pool_choice *choice, struct str *ret)
{
    struct gangs *all = run->syncer->gangs;
    enum pool_scheduler scheduler =
        choice->binding ? choice->binding->pool->scheduler_kind : SCHEDULER_NONE;
    struct gang x = {.syncer = run->syncer, .arena = run->arena, .host_name = choice->gang};
    struct reflector *groups;

    *ret = STR("");
    if (!choice->gang.n || kind_of(scheduler) == COUNT(KINDS))
        return true;
    if (!record_get(&x)) {
        x.kind = kind_of(scheduler);
        x.pool = choice->binding->pool->name;
        x.ns = run->ns;
        x.owner = json_str(json_get(owner_controller(run->virtual_), "uid"));
        x.record = (struct mapping){0};
        sync_mapping_begin(&x.record, x.owner);
        x.record.life = run->syncer->life;
        record_put(&x);
    }
    groups = watch(all, x.kind);
    if (reflector_refused(groups)) {
        *ret = all->watches[x.kind].unserved
                   ? STR("the host cluster does not serve the PodGroups that its gang needs")
                   : STR("the host cluster does not let this virtual cluster keep the PodGroup of "
                         "its gang");
        return false;
    }
    if (reflector_synced(groups) && read_host(&x, groups) && x.host && x.ours &&
        !object_is_terminating(x.host))
        return true;
    again(all, x.host_name);
    return false;
}

/* --- events of the virtual cluster --- */

static void wake_ended(void *ctx, const cJSON *pod)
{
    if (pod_is_finished(pod))
        syncer_add(ctx, SYNC_PODS, json_str_at(pod, "metadata.namespace"),
                   json_str_at(pod, "metadata.name"));
}

/* Those that Kueue holds, once their Job has ended. */
static void wake_held(struct gangs *all, struct arena *a, const struct store_event *e)
{
    struct members m = {all->syncer, a, e->object->uid, wake_ended, all->syncer};
    const struct config *config = all->syncer->config;
    bool any = false;

    for (size_t i = 0; i < config->n_pools; i++)
        any |= config->pools[i].gang && config->pools[i].scheduler_kind == SCHEDULER_KUEUE;
    if (any && e->type != STORE_DELETED && translate_gang_is_over(vapi_tree(a, e->object)))
        each_member(&m, e->object->ns);
}

static void map_job(struct controller *c, const struct store_event *e)
{
    struct gangs *all = controller_state(c);
    struct arena *a = arena_new(0);

    wake_held(all, a, e);
    arena_free(a);
    add_groups_of(all, e->object->ns, e->object->uid);
}

/* The last one of a group, and of owners that are no Jobs those that are done. */
static void map_pod(struct controller *c, const struct store_event *e)
{
    struct arena *a;

    if (e->type != STORE_DELETED && !str_contains(e->object->bytes, STR("\"Succeeded\"")))
        return;
    a = arena_new(0);
    add_groups_of(controller_state(c), e->object->ns,
                  json_str(json_get(owner_controller(vapi_tree(a, e->object)), "uid")));
    arena_free(a);
}

static const struct controller_source SOURCES[] = {
    {"batch", "jobs", map_job}, {"", "pods", map_pod}, {0}};
static const struct controller_def CONTROLLER = {
    .name = "sublet-gangs", .sources = SOURCES, .reconcile = reconcile_gang};

/* --- life --- */

struct gangs *sync_gangs_new(struct syncer *s)
{
    struct gangs *all = NEW(struct gangs);

    all->syncer = s;
    for (size_t i = 0; i < COUNT(KINDS); i++)
        all->watches[i].gangs = all;
    return all;
}

struct gangs *sync_gangs_free(struct gangs *all)
{
    return mem_free(all);
}

void sync_gangs_start(struct gangs *all)
{
    all->controller = controller_start_with(all->syncer->api, &CONTROLLER, all);
    sync_gangs_rescan(all);
}

void sync_gangs_restart(struct gangs *all)
{
    for (size_t i = 0; i < COUNT(KINDS); i++)
        reflector_restart(all->watches[i].reflector);
}

void sync_gangs_kick(struct gangs *all)
{
    for (size_t i = 0; i < COUNT(KINDS); i++)
        if (all->watches[i].reflector)
            reflector_kick(all->watches[i].reflector);
}

void sync_gangs_stop(struct gangs *all)
{
    for (size_t i = 0; i < COUNT(KINDS); i++)
        all->watches[i].reflector = reflector_close(all->watches[i].reflector);
}

size_t sync_gangs_close(struct gangs *all, void (*closed)(void *ctx), void *ctx)
{
    if (!all || !all->controller)
        return 0;
    controller_close(all->controller, closed, ctx);
    all->controller = NULL;
    return 1;
}
