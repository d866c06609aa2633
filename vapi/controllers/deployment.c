/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment: one ReplicaSet per version of the template, and the rollout from previous sets to the
 * current one. Must never have fewer available pods than maxUnavailable allows nor more in all than
 * maxSurge allows, judged by committed state.
 *
 *   read, adopt -> annotate the current set | scale | roll | recreate -> writes answered -> status
 */
#include "deployment.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/spelling.h>

#define HISTORY_BYTES 2000

/* --- replica sets --- */

cJSON *rollout_set(const struct rollout *o, size_t i)
{
    return i < o->n_old ? o->old[i] : o->new_rs;
}

int64_t rollout_rs_wanted(const cJSON *rs)
{
    return rs ? json_i64_at(rs, "spec.replicas", 1) : 0;
}

int64_t rollout_rs_count(const cJSON *rs, const char *field)
{
    return json_i64_at(json_get(rs, "status"), field, 0);
}

int64_t rollout_wanted(const struct rollout *o)
{
    int64_t sum = 0;

    for (size_t i = 0; i <= o->n_old; i++)
        sum += rollout_rs_wanted(rollout_set(o, i));
    return sum;
}

int64_t rollout_total(const struct rollout *o, const char *field)
{
    int64_t sum = 0;

    for (size_t i = 0; i <= o->n_old; i++)
        sum += rollout_rs_count(rollout_set(o, i), field);
    return sum;
}

int64_t rollout_annotation(const cJSON *rs, const char *key)
{
    struct str text = json_str(json_get(json_path(rs, "metadata.annotations"), key));
    int64_t n;

    return str_to_i64(text, &n) && n >= 0 && n <= INT32_MAX ? n : -1;
}

static cJSON *template_without_hash(struct arena *a, const cJSON *owner)
{
    const cJSON *from = json_path(owner, "spec.template");
    cJSON *copy = from ? json_copy(a, from) : json_new_object(a);
    cJSON *labels = json_path(copy, "metadata.labels");

    if (labels)
        json_remove(labels, POD_TEMPLATE_HASH);
    return copy;
}

/* Equal except for the hash; another spelling of a quantity is the same template. */
static bool same_template(const struct rollout *o, const cJSON *set, const cJSON *wanted)
{
    uint32_t template_of = schema_builtin_root(STR(""), STR("v1"), STR("PodTemplate"));
    uint32_t node = schema_child(&SCHEMA_BUILTIN, template_of, STR("template"));
    const cJSON *has = template_without_hash(o->arena, set);

    return json_equal(has, wanted) ||
           json_equal(schema_respell(o->arena, &SCHEMA_BUILTIN, node, has, wanted), wanted);
}

static int by_creation(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;
    int order = str_cmp(json_str_at(a, "metadata.creationTimestamp"),
                        json_str_at(b, "metadata.creationTimestamp"));

    return order ? order : str_cmp(meta_name(a), meta_name(b));
}

/* Of several sets with the current template the oldest is used. */
static void collect(struct rollout *o, const struct selector *selector)
{
    cJSON *all = objects_claim(o->run, o->rs_res, o->res, o->deployment, selector);
    const cJSON *wanted = template_without_hash(o->arena, o->deployment);

    o->old = controller_items(o->arena, all, &o->n_old);
    qsort(o->old, o->n_old, sizeof(*o->old), by_creation);
    for (size_t i = 0; i < o->n_old; i++) {
        if (!same_template(o, o->old[i], wanted))
            continue;
        o->new_rs = o->old[i];
        memmove(&o->old[i], &o->old[i + 1], (o->n_old - i - 1) * sizeof(*o->old));
        o->n_old--;
        break;
    }
}

/* --- annotations --- */

static int64_t revision_of(const cJSON *object)
{
    int64_t n = 0;

    str_to_i64(json_str(json_get(json_path(object, "metadata.annotations"), REVISION)), &n);
    return n;
}

static int64_t next_revision(const struct rollout *o)
{
    int64_t most = 0;

    for (size_t i = 0; i < o->n_old; i++) {
        int64_t n = revision_of(o->old[i]);

        most = n > most ? n : most;
    }
    return most + 1;
}

static bool annotation_stays(const char *key)
{
    static const char *const stays[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                        REVISION,
                                        REVISION_HISTORY,
                                        DESIRED_REPLICAS,
                                        MAX_REPLICAS,
                                        "deprecated.deployment.rollback.to"};

    for (size_t i = 0; i < COUNT(stays); i++) {
        if (!strcmp(key, stays[i]))
            return true;
    }
    return false;
}

static struct str number(struct rollout *o, int64_t n)
{
    return arena_printf(o->arena, "%lld", (long long)n);
}

/* Annotations the current set copies from the deployment, and its revision: the highest of all. */
static bool annotate_new(struct rollout *o, cJSON *rs)
{
    cJSON *to = json_ensure_path(o->arena, rs, "metadata.annotations");
    int64_t had = revision_of(rs), next = next_revision(o);
    struct str before = json_str(json_get(to, REVISION));
    bool changed = false;

    json_each(item, json_path(o->deployment, "metadata.annotations"))
    {
        if (!annotation_stays(item->string))
            changed |= controller_set_str(o->arena, to, item->string, json_str(item));
    }
    if (had >= next)
        return changed;
    if (before.n) {
        struct str revision = arena_str(o->arena, before);
        struct str history = json_str(json_get(to, REVISION_HISTORY));

        /* The revisions a set had before rollbacks to it; the oldest are dropped. */
        if (history.n)
            history = arena_concat(o->arena, 3, (struct str[]){history, STR(","), revision});
        else
            history = revision;
        while (history.n > HISTORY_BYTES && str_find(history, ',') < history.n)
            str_cut(&history, ',');
        json_set_str(o->arena, to, REVISION_HISTORY, history);
    }
    json_set_str(o->arena, to, REVISION, number(o, next));
    return true;
}

static bool annotate_sizes(struct rollout *o, cJSON *rs)
{
    cJSON *to = json_ensure_path(o->arena, rs, "metadata.annotations");
    bool changed = controller_set_str(o->arena, to, DESIRED_REPLICAS, number(o, o->wanted));

    return controller_set_str(o->arena, to, MAX_REPLICAS, number(o, o->wanted + o->surge)) ||
           changed;
}

/* --- the current set --- */

static cJSON *set_spec(struct rollout *o, cJSON *rs, cJSON *template_, struct str hash,
                       int64_t replicas)
{
    struct arena *a = o->arena;
    cJSON *spec = json_ensure_object(a, rs, "spec"), *selector;
    int64_t min_ready = json_i64_at(o->deployment, "spec.minReadySeconds", 0);

    json_set_i64(a, spec, "replicas", replicas);
    if (min_ready)
        json_set_i64(a, spec, "minReadySeconds", min_ready);
    selector =
        json_set(a, spec, "selector", json_copy(a, json_path(o->deployment, "spec.selector")));
    json_set_str(a, json_ensure_object(a, selector, "matchLabels"), POD_TEMPLATE_HASH, hash);
    json_set(a, spec, "template", template_);
    return spec;
}

/* The name is in use: by our own set, which the next run sees, or by one of another template; then
 * the next run uses another hash. */
static void on_collision(struct rollout *o, const cJSON *made)
{
    const cJSON *there = reconcile_get(o->run, o->rs_res, meta_ns(o->deployment), meta_name(made));
    cJSON *status = json_ensure_object(o->arena, o->deployment, "status");

    if (metadata_owner_is(there, meta_uid(o->deployment)) &&
        same_template(o, there, template_without_hash(o->arena, made)))
        return;
    json_set_i64(o->arena, status, "collisionCount", json_i64_at(status, "collisionCount", 0) + 1);
}

static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    struct rollout *o = ctx;
    cJSON *made = o->new_rs;

    if (!err) {
        if (rollout_rs_wanted(made))
            reconcile_event(r, o->deployment, "Normal", "ScalingReplicaSet",
                            "Scaled up replica set %.*s from 0 to %lld", STR_F(object->name),
                            (long long)rollout_rs_wanted(made));
        if (o->deadline >= 0)
            rollout_condition(
                o, "Progressing", "True", "NewReplicaSetCreated",
                arena_printf(o->arena, "Created new replica set \"%.*s\"", STR_F(object->name)));
        return;
    }
    o->new_rs = NULL;
    reconcile_take(r, err);
    if (err->kind == &ERR_ALREADY_EXISTS)
        on_collision(o, made);
    if (!reconcile_error(r))
        return;
    struct str why = arena_printf(o->arena, "Failed to create new replica set \"%.*s\": %.*s",
                                  STR_F(meta_name(made)), STR_F(err->message));
    if (o->deadline >= 0)
        rollout_condition(o, "Progressing", "False", "ReplicaSetCreateError", why);
    reconcile_event(r, o->deployment, "Warning", "ReplicaSetCreateError", "%.*s", STR_F(why));
}

void rollout_create(struct rollout *o, int64_t replicas)
{
    struct arena *a = o->arena;
    cJSON *template_ = template_without_hash(a, o->deployment);
    struct str hash = controller_template_hash(
        a, template_, json_i64_at(o->deployment, "status.collisionCount", 0));
    cJSON *labels = json_ensure_path(a, template_, "metadata.labels"), *metadata, *rs;
    struct str name;

    /* The same template gives the same name, so that a run after a crash finds the set of the
     * previous run. */
    json_set_str(a, labels, POD_TEMPLATE_HASH, hash);
    name = str_sub(meta_name(o->deployment), 0, 253 - 1 - hash.n);
    metadata = json_object(
        a, JSON("name", arena_concat(o->arena, 3, (struct str[]){name, STR("-"), hash})),
        JSON("namespace", meta_ns(o->deployment)), JSON("labels", json_copy(a, labels)),
        JSON("ownerReferences", json_array(a, metadata_owner_ref(a, o->res, o->deployment))));
    rs = json_object(a, JSON("metadata", metadata));
    set_spec(o, rs, template_, hash, replicas);
    annotate_new(o, rs);
    annotate_sizes(o, rs);
    o->new_rs = rs;
    reconcile_create(o->run, o->rs_res, meta_ns(o->deployment), rs);
    reconcile_then(o->run, on_created, o);
}

bool rollout_scale(struct rollout *o, cJSON *rs, int64_t replicas)
{
    int64_t now = rollout_rs_wanted(rs);
    bool annotated = annotate_sizes(o, rs);

    if (now == replicas && !annotated)
        return false;
    json_set_i64(o->arena, json_get(rs, "spec"), "replicas", replicas);
    reconcile_update(o->run, o->rs_res, rs);
    if (now != replicas)
        reconcile_event(o->run, o->deployment, "Normal", "ScalingReplicaSet",
                        "Scaled %s replica set %.*s from %lld to %lld",
                        replicas > now ? "up" : "down", STR_F(meta_name(rs)), (long long)now,
                        (long long)replicas);
    return now != replicas;
}

/* --- the deployment --- */

/* True when the current set was written: the next step needs its next version. */
static bool sync_new_set(struct rollout *o)
{
    if (!o->new_rs)
        return false;
    int64_t min_ready = json_i64_at(o->deployment, "spec.minReadySeconds", 0);
    bool changed = annotate_new(o, o->new_rs);
    if (json_i64_at(o->new_rs, "spec.minReadySeconds", 0) != min_ready) {
        json_set_i64(o->arena, json_get(o->new_rs, "spec"), "minReadySeconds", min_ready);
        changed = true;
    }
    if (changed)
        reconcile_update(o->run, o->rs_res, o->new_rs);
    return changed;
}

/* Sets the revision of the current set on the deployment, and the start of the rollout. */
static void show_new_set(struct rollout *o)
{
    struct str revision =
        json_str(json_get(json_path(o->new_rs, "metadata.annotations"), REVISION));

    if (!o->new_rs || !revision.n)
        return;
    controller_set_str(o->arena, json_ensure_path(o->arena, o->deployment, "metadata.annotations"),
                       REVISION, revision);
    if (o->deadline >= 0 && !condition_of(o->deployment, "Progressing"))
        rollout_condition(
            o, "Progressing", "True", "FoundNewReplicaSet",
            arena_printf(o->arena, "Found new replica set \"%.*s\"", STR_F(meta_name(o->new_rs))));
}

static int by_revision(const void *pa, const void *pb)
{
    int64_t a = revision_of(*(cJSON *const *)pa), b = revision_of(*(cJSON *const *)pb);

    return a != b ? (a < b ? -1 : 1) : by_creation(pa, pb);
}

/* Deletes empty old sets beyond the history limit, the lowest revision first. */
static void clean_history(struct rollout *o)
{
    int64_t keep = json_i64_at(o->deployment, "spec.revisionHistoryLimit", INT32_MAX);
    cJSON **sets = arena_alloc(o->arena, (o->n_old + 1) * sizeof(*sets));
    size_t n = 0;

    for (size_t i = 0; i < o->n_old; i++) {
        if (!object_is_terminating(o->old[i]))
            sets[n++] = o->old[i];
    }
    qsort(sets, n, sizeof(*sets), by_revision);
    for (size_t i = 0; (int64_t)i < (int64_t)n - keep; i++) {
        const cJSON *rs = sets[i];

        if (rollout_rs_count(rs, "replicas") || rollout_rs_wanted(rs) ||
            json_i64_at(rs, "metadata.generation", 0) > rollout_rs_count(rs, "observedGeneration"))
            continue;
        reconcile_delete(o->run, o->rs_res, meta_ns(rs), meta_name(rs), meta_uid(rs), "Background");
    }
}

static void finish_plain(struct reconcile *r, void *ctx)
{
    (void)r;
    rollout_status(ctx, false);
}

static void finish_rollout(struct reconcile *r, void *ctx)
{
    (void)r;
    show_new_set(ctx);
    rollout_status(ctx, true);
}

static void roll(struct rollout *o)
{
    reconcile_next(o->run, finish_rollout, o);
    if (sync_new_set(o))
        return;
    if (o->recreate)
        rollout_recreate(o);
    else
        rollout_rolling(o);
    if (rollout_complete(o))
        clean_history(o);
}

static void scale(struct rollout *o, bool paused)
{
    reconcile_next(o->run, finish_plain, o);
    if (sync_new_set(o))
        return;
    show_new_set(o);
    rollout_proportional(o);
    if (paused)
        clean_history(o);
}

/* --- reconcile --- */

static bool selects_all(const struct rollout *o)
{
    const cJSON *selector = json_path(o->deployment, "spec.selector");

    return !json_count(json_get(selector, "matchLabels")) &&
           !json_count(json_get(selector, "matchExpressions"));
}

static void refuse_all(struct rollout *o)
{
    reconcile_event(o->run, o->deployment, "Warning", "SelectingAll",
                    "This deployment is selecting all pods. A non-empty selector is required.");
    controller_status_set(o->arena, json_ensure_object(o->arena, o->deployment, "status"),
                          "observedGeneration",
                          json_i64_at(o->deployment, "metadata.generation", 0), false);
    controller_status_commit(o->run, o->res, o->deployment, o->as_read);
}

static bool read_deployment(struct rollout *o)
{
    struct str ns, name;

    o->arena = reconcile_arena(o->run);
    o->res = reconcile_resource(o->run, "apps", "deployments");
    o->rs_res = reconcile_resource(o->run, "apps", "replicasets");
    if (!key_split(reconcile_key(o->run), &ns, &name) ||
        !(o->deployment = reconcile_get(o->run, o->res, ns, name)))
        return false;
    o->as_read = json_copy(o->arena, o->deployment);
    o->wanted = json_i64_at(o->deployment, "spec.replicas", 1);
    o->recreate = str_eqc(json_str_at(o->deployment, "spec.strategy.type"), "Recreate");
    o->deadline = json_i64_at(o->deployment, "spec.progressDeadlineSeconds", -1);
    if (o->deadline == INT32_MAX)
        o->deadline = -1;
    rollout_bounds(o);
    return true;
}

static void deployment_reconcile(struct reconcile *r)
{
    struct rollout *o = ARENA_NEW(reconcile_arena(r), struct rollout);
    struct selector selector;
    struct err err;
    bool paused;

    o->run = r;
    if (!read_deployment(o))
        return;
    if (selects_all(o)) {
        refuse_all(o);
        return;
    }
    err_init(&err, o->arena);
    if (selector_from_json(o->arena, json_path(o->deployment, "spec.selector"), &selector, &err)) {
        reconcile_fail(r, &err);
        return;
    }
    collect(o, &selector);
    paused = json_true(json_path(o->deployment, "spec.paused"));
    if (object_is_terminating(o->deployment)) {
        rollout_status(o, false);
        return;
    }
    rollout_pause(o);
    if (paused || rollout_resized(o))
        scale(o, paused);
    else
        roll(o);
}

static void map_replica_set(struct controller *c, const struct store_event *e)
{
    controller_map_dependent(c, e, "apps", "deployments", STR("Deployment"));
}

/* Recreate waits until the last old pod is deleted. */
static void map_pod(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED || !str_contains(e->object->bytes, STR("\"kind\":\"ReplicaSet\"")))
        return;
    struct arena *a = arena_new(0);
    struct vapi *api = controller_api(c);
    const cJSON *owner = owner_controller(vapi_tree(a, e->object));
    const struct resource *sets =
        registry_find_group_resource(vapi_registry(api), STR("apps"), STR("replicasets"));
    const struct store_object *rs =
        store_get(vapi_store(api), sets->storage, e->object->ns, json_str_at(owner, "name"));
    if (rs) {
        struct store_event of_set = {.type = STORE_ADDED, .object = rs, .revision = rs->revision};

        controller_map_owner(c, &of_set, STR("Deployment"));
    }
    arena_free(a);
}

static const struct controller_source SOURCES[] = {
    {"apps", "deployments", controller_map_self},
    {"apps", "replicasets", map_replica_set},
    {"", "pods", map_pod},
    {NULL, NULL, NULL},
};

const struct controller_def DEPLOYMENT_CONTROLLER = {
    .name = "deployment-controller",
    .account = "deployment-controller",
    .sources = SOURCES,
    .reconcile = deployment_reconcile,
};
