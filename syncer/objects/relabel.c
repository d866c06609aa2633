/* SPDX-License-Identifier: Apache-2.0 */
/* Labels whose host keys changed, after an upgrade or when the admin changes policy.labels.allow.
 * Host pods are relabelled in place and Services select by the current keys, in an order that
 * leaves no Service without its pods:
 *
 *   pods get the current keys too -> Services select by those -> pods lose the previous keys
 *
 * Must never wait for longer than RELABEL_MS: a pod that cannot be changed must not keep a Service
 * from selecting the others. */
#include "objects/objects.h"

#define RELABEL_MS 300000
#define LOOK_MS    1000

/* Starts with the first object whose keys differ. */
static bool is_open(struct syncer *s)
{
    int64_t now = clock_mono_ms(vapi_clock(s->api));

    if (!s->relabel_until_ms)
        s->relabel_until_ms = now + RELABEL_MS;
    return now < s->relabel_until_ms;
}

/* The current key for one that an earlier translation wrote. */
static struct str key_now(struct sync_run *run, struct str key)
{
    return str_has_prefix(key, STR("sublet.dev/"))
               ? key
               : translate_label_key(run->arena, &run->syncer->tenant, key);
}

/* --- Services --- */

static bool is_renamed(struct sync_run *run, const cJSON *now, const cJSON *wanted)
{
    if (!json_is_object(now) || json_count(now) != json_count(wanted) || json_equal(now, wanted))
        return false;
    json_each(member, now)
    {
        if (!json_equal(json_get_str(wanted, key_now(run, str_c(member->string))), member))
            return false;
    }
    return true;
}

struct lagging {
    struct sync_run *run;
    const cJSON *now, *wanted;
    bool found;
};

static void on_pod(void *ctx, const struct host_object *o)
{
    struct lagging *l = ctx;
    const cJSON *labels;
    cJSON *pod = NULL;
    bool whole = true;

    if (l->found)
        return;
    json_each(want, l->wanted) whole &= str_contains(o->bytes, str_c(want->string));
    if (whole || json_parse(l->run->arena, o->bytes, &pod, NULL))
        return;
    labels = json_path(pod, "metadata.labels");
    l->found = !object_is_terminating(pod) && !pod_is_finished(pod) &&
               labels_cover(l->now, labels) && !labels_cover(l->wanted, labels);
}

bool sync_relabel_service_waits(struct sync_run *run, const cJSON *object)
{
    struct lagging l = {.run = run};
    struct reflector *pods;

    l.now = json_path(run->host, "spec.selector");
    l.wanted = json_path(object, "spec.selector");
    if (!is_renamed(run, l.now, l.wanted) || !is_open(run->syncer))
        return false;
    pods = syncer_watch(run->syncer, SYNC_PODS);
    l.found = !reflector_synced(pods);
    if (!l.found)
        reflector_each(pods, on_pod, &l);
    if (l.found)
        reconcile_again_after(run->reconcile, LOOK_MS);
    return l.found;
}

void sync_relabel_service_changed(struct syncer *s, const struct host_object *now,
                                  const struct host_object *before)
{
    struct arena *a;
    cJSON *x = NULL, *y = NULL;

    if (!s->relabel_until_ms || !now || !before || !is_open(s))
        return;
    a = arena_new(0);
    if (!json_parse(a, now->bytes, &x, NULL) && !json_parse(a, before->bytes, &y, NULL) &&
        !json_equal(json_path(x, "spec.selector"), json_path(y, "spec.selector")))
        syncer_rescan(s, SYNC_PODS);
    arena_free(a);
}

/* --- pods --- */

struct use {
    struct sync_run *run;
    struct str key;
    bool found;
};

static void on_service(void *ctx, const struct host_object *o)
{
    struct use *u = ctx;
    cJSON *service = NULL;

    if (u->found || !str_contains(o->bytes, u->key) ||
        json_parse(u->run->arena, o->bytes, &service, NULL))
        return;
    u->found = json_get_str(json_path(service, "spec.selector"), u->key) != NULL;
}

/* Does a Service still select by this previous key of a label that the pod keeps? */
static bool is_needed(struct sync_run *run, const cJSON *wanted, struct str key)
{
    struct use u = {run, key, false};
    struct reflector *services;

    if (str_has_prefix(key, STR("sublet.dev/")) ||
        !json_get_str(json_path(wanted, "metadata.labels"), key_now(run, key)))
        return false;
    services = syncer_watch(run->syncer, SYNC_SERVICES);
    if (reflector_synced(services))
        reflector_each(services, on_service, &u);
    else
        reconcile_again_after(run->reconcile, LOOK_MS);
    return u.found || !reflector_synced(services);
}

cJSON *sync_relabel_pod_keep(struct sync_run *run, const cJSON *wanted, cJSON *patch)
{
    cJSON *metadata = json_get(patch, "metadata"), *labels = json_get(metadata, "labels");
    cJSON *notes = json_get(metadata, "annotations"), *kept = json_new_object(run->arena);
    bool needed = false;

    json_each(member, labels)
    {
        if (json_is_null(member) && is_open(run->syncer) &&
            is_needed(run, wanted, str_c(member->string)))
            needed = true;
        else
            json_set(run->arena, kept, member->string, json_copy(run->arena, member));
    }
    if (!needed)
        return patch;
    /* The list of owned keys stays until the last of them can be removed. */
    json_remove(notes, "sublet.dev/owned");
    if (json_is_object(notes) && !json_count(notes))
        json_remove(metadata, "annotations");
    if (json_count(kept))
        json_set(run->arena, metadata, "labels", kept);
    else
        json_remove(metadata, "labels");
    reconcile_again_after(run->reconcile, RELABEL_MS);
    return json_count(metadata) || json_get(patch, "spec") ? patch : NULL;
}
