/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment: one ReplicaSet per version of the template, and the way from the old to the new one.
 * Scaling is decided here; rolling.c says by how much. Must never have fewer available pods than
 * maxUnavailable allows nor more in all than maxSurge allows, judged by committed state. */
#include "deployment.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>

/* --- replica sets --- */

int64_t rs_wanted(const cJSON *rs)
{
    return json_i64_at(rs, "spec.replicas", 1);
}

int64_t rs_count(const cJSON *rs, const char *field)
{
    return json_i64_at(json_get(rs, "status"), field, 0);
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

/* The same template gives the same name, so that a run after a crash finds what the last one made.
 */
static struct str template_hash(struct rollout *o, int64_t collisions)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char digest[32];
    struct str text = json_text(o->arena, template_without_hash(o->arena, o->deployment));
    char *hash = arena_alloc(o->arena, 11);
    struct str parts[] = {text, arena_printf(o->arena, "%lld", (long long)collisions)};

    sha256_parts(2, parts, digest);
    for (size_t i = 0; i < 10; i++)
        hash[i] = alphabet[digest[i] % (sizeof(alphabet) - 1)];
    return str_c(hash);
}

static int by_creation(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;
    int order = str_cmp(json_str_at(a, "metadata.creationTimestamp"),
                        json_str_at(b, "metadata.creationTimestamp"));

    return order ? order : str_cmp(meta_name(a), meta_name(b));
}

int64_t revision_of(const cJSON *object)
{
    int64_t n = 0;

    str_to_i64(json_str(json_get(json_path(object, "metadata.annotations"), REVISION)), &n);
    return n;
}

static void collect(struct rollout *o)
{
    cJSON *all = reconcile_list(o->run, o->rs_res, meta_ns(o->deployment), NULL);
    const cJSON *wanted = template_without_hash(o->arena, o->deployment);
    struct str uid = meta_uid(o->deployment);

    o->old = arena_alloc(o->arena, (json_count(all) + 1) * sizeof(cJSON *));
    json_each(rs, all)
    {
        if (owner_is(rs, uid))
            o->old[o->n_old++] = rs;
    }
    qsort(o->old, o->n_old, sizeof(*o->old), by_creation);
    for (size_t i = 0; i < o->n_old; i++) {
        if (!json_equal(template_without_hash(o->arena, o->old[i]), wanted))
            continue;
        o->new_rs = o->old[i];
        memmove(&o->old[i], &o->old[i + 1], (o->n_old - i - 1) * sizeof(*o->old));
        o->n_old--;
        break;
    }
}

static int64_t next_revision(struct rollout *o)
{
    int64_t most = 0;

    for (size_t i = 0; i < o->n_old; i++) {
        int64_t n = revision_of(o->old[i]);

        most = n > most ? n : most;
    }
    return most + 1;
}

/* Annotations of the deployment that its replica sets carry as well. */
static bool annotation_travels(const char *key)
{
    static const char *const stays[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                        REVISION,
                                        "deployment.kubernetes.io/revision-history",
                                        "deployment.kubernetes.io/desired-replicas",
                                        "deployment.kubernetes.io/max-replicas",
                                        "deprecated.deployment.rollback.to"};

    for (size_t i = 0; i < sizeof(stays) / sizeof(*stays); i++) {
        if (!strcmp(key, stays[i]))
            return false;
    }
    return true;
}

static bool set_text(struct arena *a, cJSON *map, const char *key, struct str value)
{
    if (str_eq(json_str(json_get(map, key)), value))
        return false;
    json_set_str(a, map, key, value);
    return true;
}

/* Revision, desired and max replicas; true when anything changed. */
static bool annotate(struct rollout *o, cJSON *rs, int64_t revision)
{
    struct arena *a = o->arena;
    cJSON *to = json_ensure_path(a, rs, "metadata.annotations");
    bool changed = set_text(a, to, REVISION, arena_printf(a, "%lld", (long long)revision));

    json_each(item, json_path(o->deployment, "metadata.annotations"))
    {
        if (annotation_travels(item->string))
            changed |= set_text(a, to, item->string, json_str(item));
    }
    changed |= set_text(a, to, "deployment.kubernetes.io/desired-replicas",
                        arena_printf(a, "%lld", (long long)o->wanted));
    changed |= set_text(a, to, "deployment.kubernetes.io/max-replicas",
                        arena_printf(a, "%lld", (long long)(o->wanted + o->surge)));
    return changed;
}

static cJSON *replica_set_new(struct rollout *o, int64_t replicas)
{
    struct arena *a = o->arena;
    int64_t collisions = json_i64_at(o->deployment, "status.collisionCount", 0);
    struct str hash = template_hash(o, collisions);
    cJSON *rs = json_new_object(a), *meta, *spec, *template_, *selector;

    json_set_str(a, rs, "kind", STR("ReplicaSet"));
    json_set_str(a, rs, "apiVersion", STR("apps/v1"));
    meta = json_ensure_object(a, rs, "metadata");
    json_set_str(a, meta, "name",
                 arena_concat(a, 3, (struct str[]){meta_name(o->deployment), STR("-"), hash}));
    json_set_str(a, meta, "namespace", meta_ns(o->deployment));
    template_ = template_without_hash(a, o->deployment);
    cJSON *labels = json_ensure_path(a, template_, "metadata.labels");
    json_set_str(a, labels, POD_TEMPLATE_HASH, hash);
    json_set(a, meta, "labels", json_copy(a, labels));
    json_append(json_set(a, meta, "ownerReferences", json_new_array(a)),
                owner_ref(a, o->res, o->deployment));
    spec = json_ensure_object(a, rs, "spec");
    json_set_i64(a, spec, "replicas", replicas);
    int64_t min_ready = json_i64_at(o->deployment, "spec.minReadySeconds", 0);
    if (min_ready)
        json_set_i64(a, spec, "minReadySeconds", min_ready);
    selector =
        json_set(a, spec, "selector", json_copy(a, json_path(o->deployment, "spec.selector")));
    json_set_str(a, json_ensure_object(a, selector, "matchLabels"), POD_TEMPLATE_HASH, hash);
    json_set(a, spec, "template", template_);
    annotate(o, rs, next_revision(o));
    return rs;
}

/* A name that is taken by a set of another template: hash again with a higher collision count. */
static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    struct rollout *o = ctx;

    if (!err) {
        reconcile_event(r, o->deployment, "Normal", "ScalingReplicaSet",
                        "Scaled up replica set %.*s from 0 to %lld", STR_F(object->name),
                        (long long)o->created_with);
        return;
    }
    if (err->kind == &ERR_ALREADY_EXISTS) {
        cJSON *status = json_ensure_object(o->arena, o->deployment, "status");

        json_set_i64(o->arena, status, "collisionCount",
                     json_i64_at(status, "collisionCount", 0) + 1);
        reconcile_update_status(r, o->res, o->deployment);
        return;
    }
    reconcile_event(r, o->deployment, "Warning", "ReplicaSetCreateError",
                    "Failed to create new replica set: %.*s", STR_F(err->message));
    reconcile_fail(r, err);
}

void rollout_create(struct rollout *o, int64_t replicas)
{
    o->created_with = replicas;
    reconcile_create(o->run, o->rs_res, meta_ns(o->deployment), replica_set_new(o, replicas));
    reconcile_then(o->run, on_created, o);
}

/* One write per set and run: the size, and annotations that go with it. */
bool rollout_scale(struct rollout *o, cJSON *rs, int64_t replicas)
{
    int64_t now = rs_wanted(rs);
    bool annotated = annotate(o, rs, rs == o->new_rs ? o->revision : revision_of(rs));

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

/* --- the deployment itself --- */

/* The new set always has the highest revision; the deployment shows it. */
static bool sync_revision(struct rollout *o)
{
    int64_t next = next_revision(o);

    if (!o->new_rs)
        return false;
    o->revision = revision_of(o->new_rs);
    if (o->revision < next)
        o->revision = next;
    struct str text = arena_printf(o->arena, "%lld", (long long)o->revision);
    if (revision_of(o->deployment) == o->revision)
        return false;
    cJSON *patch = json_new_object(o->arena);
    json_set_str(o->arena, json_ensure_path(o->arena, patch, "metadata.annotations"), REVISION,
                 text);
    reconcile_patch(o->run, o->res, STR_NULL, meta_ns(o->deployment), meta_name(o->deployment),
                    patch);
    return true;
}

static void clean_history(struct rollout *o)
{
    int64_t keep = json_i64_at(o->deployment, "spec.revisionHistoryLimit", 10);
    size_t done = 0;

    for (size_t i = 0; i < o->n_old && (int64_t)(o->n_old - done) > keep; i++) {
        const cJSON *rs = o->old[i];
        bool empty =
            rs_wanted(rs) == 0 && rs_count(rs, "replicas") == 0 &&
            json_i64_at(rs, "metadata.generation", 0) <= rs_count(rs, "observedGeneration");

        if (!empty || json_path(rs, "metadata.deletionTimestamp"))
            continue;
        reconcile_delete(o->run, o->rs_res, meta_ns(rs), meta_name(rs), meta_uid(rs), "Background");
        done++;
    }
}

static bool read_all(struct rollout *o)
{
    struct str ns, name;

    o->arena = reconcile_arena(o->run);
    o->res = reconcile_resource(o->run, "apps", "deployments");
    o->rs_res = reconcile_resource(o->run, "apps", "replicasets");
    if (!key_split(reconcile_key(o->run), &ns, &name))
        return false;
    o->deployment = reconcile_get(o->run, o->res, ns, name);
    if (!o->deployment)
        return false;
    o->wanted = json_i64_at(o->deployment, "spec.replicas", 1);
    o->recreate = str_eqc(json_str_at(o->deployment, "spec.strategy.type"), "Recreate");
    rollout_bounds(o);
    collect(o);
    return true;
}

static void deployment_reconcile(struct reconcile *r)
{
    struct rollout *o = ARENA_NEW(reconcile_arena(r), struct rollout);

    o->run = r;
    if (!read_all(o))
        return;
    if (json_path(o->deployment, "metadata.deletionTimestamp")) {
        rollout_status(o);
        return;
    }
    bool paused = json_true(json_path(o->deployment, "spec.paused"));
    bool renamed = sync_revision(o);
    if (paused || rollout_resized(o))
        rollout_proportional(o);
    else if (o->recreate)
        rollout_recreate(o);
    else
        rollout_rolling(o);
    if (!paused && rollout_complete(o))
        clean_history(o);
    /* The annotation's write has moved the deployment's resourceVersion: status follows in the next
     * run. */
    if (!renamed)
        rollout_status(o);
}

static void map_replica_set(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("Deployment"));
}

/* Recreate waits for the last old pod to be gone. */
static void map_pod(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED || !str_contains(e->object->bytes, STR("\"ReplicaSet\"")))
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
    .sources = SOURCES,
    .reconcile = deployment_reconcile,
};
