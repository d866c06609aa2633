/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one ControllerRevision for each template an owner had, numbered in the order they were
 * current. Must never change the contents of a revision, nor delete one that a pod was created
 * from. */
#include "revisions.h"

#include <stdlib.h>

#include "../types/tree.h"

#include <sublet/json_build.h>

static int64_t number_of(const cJSON *revision)
{
    return json_i64_at(revision, "revision", 0);
}

static int compare(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;

    if (number_of(a) != number_of(b))
        return number_of(a) < number_of(b) ? -1 : 1;
    int64_t created_a = meta_created_s(a), created_b = meta_created_s(b);
    if (created_a != created_b)
        return created_a < created_b ? -1 : 1;
    return str_cmp(meta_name(a), meta_name(b));
}

const cJSON *revision_find(const struct revisions *v, struct str name)
{
    for (size_t i = 0; i < v->n; i++) {
        if (str_eq(meta_name(v->all[i]), name))
            return v->all[i];
    }
    return NULL;
}

struct str revision_hash(const struct revisions *v, const cJSON *revision)
{
    return json_str(json_get(json_path(revision, "metadata.labels"), v->hash_label));
}

const cJSON *revision_template(const cJSON *revision)
{
    return json_path(revision, "data.spec.template");
}

/* A strategic merge patch that replaces any template by this one: `kubectl rollout undo` sends
 * it. */
static cJSON *data_of(struct arena *a, const cJSON *owner)
{
    cJSON *data = json_new_object(a), *spec = json_ensure_object(a, data, "spec");
    cJSON *template_ =
        json_set(a, spec, "template", json_copy(a, json_path(owner, "spec.template")));

    json_set_str(a, template_, "$patch", STR("replace"));
    tree_sort(a, data);
    return data;
}

/* Another template with the same hash may have the name, or the same one under a label that the
 * selector no longer matches: both are a collision. */
static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    (void)object;
    if (!err) {
        reconcile_again_after(r, 0);
    } else if (err->kind == &ERR_ALREADY_EXISTS) {
        struct revisions *v = ctx;
        struct arena *a = reconcile_arena(v->run);
        cJSON *owner = json_copy(a, v->owner), *status = json_ensure_object(a, owner, "status");

        json_set_i64(a, status, "collisionCount", json_i64_at(status, "collisionCount", 0) + 1);
        reconcile_update_status(v->run, v->owner_res, owner);
        reconcile_again_after(v->run, 0);
    } else {
        reconcile_take(r, err);
    }
}

static void make(struct revisions *v, cJSON *data, int64_t number)
{
    struct arena *a = reconcile_arena(v->run);
    cJSON *labels = json_copy(a, json_path(v->owner, "spec.template.metadata.labels"));
    struct str hash = controller_template_hash(a, json_path(v->owner, "spec.template"),
                                               json_i64_at(v->owner, "status.collisionCount", 0));
    struct str name = arena_concat(a, 3, (struct str[]){meta_name(v->owner), STR("-"), hash});
    cJSON *metadata, *made;

    labels = labels ? labels : json_new_object(a);
    json_set_str(a, labels, v->hash_label, hash);
    metadata = json_object(
        a, JSON("name", name), JSON("namespace", meta_ns(v->owner)), JSON("labels", labels),
        JSON("annotations", json_copy(a, json_path(v->owner, "metadata.annotations"))),
        JSON("ownerReferences", json_array(a, metadata_owner_ref(a, v->owner_res, v->owner))));
    made =
        json_object(a, JSON("apiVersion", v->res->api_version), JSON("kind", v->res->kind),
                    JSON("metadata", metadata), JSON("data", data), JSON_I64("revision", number));
    reconcile_create(v->run, v->res, meta_ns(v->owner), made);
    reconcile_then(v->run, on_created, v);
}

static bool find_update(struct revisions *v, const struct selector *selector)
{
    struct arena *a = reconcile_arena(v->run);
    cJSON *data = data_of(a, v->owner);

    v->res = reconcile_resource(v->run, "apps", "controllerrevisions");
    v->all =
        controller_items(a, objects_claim(v->run, v->res, v->owner_res, v->owner, selector), &v->n);
    if (reconcile_error(v->run))
        return false;
    if (v->n)
        qsort(v->all, v->n, sizeof(*v->all), compare);
    int64_t last = v->n ? number_of(v->all[v->n - 1]) : 0;
    for (size_t i = v->n; i-- > 0;) {
        if (!json_equal(json_get(v->all[i], "data"), data))
            continue;
        v->update = v->all[i];
        /* An older template is current again: it becomes the newest. */
        if (number_of(v->update) < last)
            reconcile_patch(v->run, v->res, STR_NULL, meta_ns(v->update), meta_name(v->update),
                            json_object(a, JSON_I64("revision", last + 1)));
        return true;
    }
    make(v, data, last + 1);
    return false;
}

bool revisions_load(struct revisions *v, struct reconcile *r, const char *plural,
                    const char *hash_label, struct selector *selector)
{
    struct str ns, name;
    struct err err;

    *v = (struct revisions){.run = r, .hash_label = hash_label};
    v->owner_res = reconcile_resource(r, "apps", plural);
    if (!key_split(reconcile_key(r), &ns, &name) ||
        !(v->owner = reconcile_get(r, v->owner_res, ns, name)) || object_is_terminating(v->owner))
        return false;
    err_init(&err, reconcile_arena(r));
    if (selector_from_json(reconcile_arena(r), json_path(v->owner, "spec.selector"), selector,
                           &err)) {
        reconcile_fail(r, &err);
        return false;
    }
    v->as_read = json_copy(reconcile_arena(r), v->owner);
    return find_update(v, selector);
}

struct str revision_of_pod(const cJSON *pod)
{
    return json_str(json_get(json_path(pod, "metadata.labels"), REVISION_LABEL));
}

void revisions_prune(struct revisions *v, const cJSON *kept, cJSON *const *pods, size_t n_pods)
{
    int64_t limit = json_i64_at(v->owner, "spec.revisionHistoryLimit", 10), idle = 0;
    bool *gone = arena_alloc(reconcile_arena(v->run), v->n + 1);

    if ((int64_t)v->n <= limit)
        return;
    for (size_t i = 0; i < v->n; i++) {
        bool live = v->all[i] == v->update || v->all[i] == kept;
        struct str name = meta_name(v->all[i]), hash = revision_hash(v, v->all[i]);

        for (size_t p = 0; p < n_pods && !live; p++) {
            struct str label = revision_of_pod(pods[p]);

            live = str_eq(label, name) || str_eq(label, hash);
        }
        gone[i] = !live;
        idle += !live;
    }
    for (size_t i = 0; i < v->n && idle > limit; i++) {
        if (!gone[i])
            continue;
        reconcile_delete(v->run, v->res, meta_ns(v->owner), meta_name(v->all[i]),
                         meta_uid(v->all[i]), NULL);
        idle--;
    }
}
