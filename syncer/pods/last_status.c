/* SPDX-License-Identifier: Apache-2.0 */
/* The last status of pods that were deleted on the host. An eviction, a preemption and the loss of
 * a node write their condition, and the kubelet its final phase, right before the deletion: a run
 * that finds the host pod deleted already would never show them, and a Job could not count such a
 * pod. Must never delay the deletion of a virtual pod by more than one write. */
#include "pods/pods.h"

#include <sublet/hash.h>
#include <sublet/json_build.h>

struct last_status {
    struct map_entry entry; /* "ns/name" */
    char *key;
    struct str uid, bytes; /* of the virtual pod; the host pod as it was last seen; heap */
    bool was_deleted;      /* its deletion was requested, or its node is gone */
    bool written;
};

struct last_statuses {
    struct map map;
};

static void forget(void *ctx, struct map_entry *e)
{
    struct last_statuses *l = ctx;
    struct last_status *last = CONTAINER(e, struct last_status, entry);

    map_remove(&l->map, e);
    mem_free(last->key);
    mem_free(last->uid.p);
    mem_free(last->bytes.p);
    mem_free(last);
}

void sync_last_status_drop(struct syncer *s, struct str key)
{
    struct map_entry *e = map_get(&s->last->map, key);

    if (e)
        forget(s->last, e);
}

static struct last_status *find(const struct sync_run *run)
{
    struct map_entry *e = map_get(&run->syncer->last->map, reconcile_key(run->reconcile));
    struct last_status *last = e ? CONTAINER(e, struct last_status, entry) : NULL;

    return last && str_eq(last->uid, run->uid) ? last : NULL;
}

static struct last_status *add(struct syncer *s, struct str key, struct str uid, struct str bytes)
{
    struct last_status *last = NEW(struct last_status);

    sync_last_status_drop(s, key);
    last->key = mem_strdup(key);
    last->uid = mem_str(uid);
    last->bytes = mem_str(bytes);
    map_put(&s->last->map, &last->entry, str_c(last->key));
    return last;
}

/* The garbage collector of pods gives no grace period to those whose node is gone. */
static bool is_deletion(const cJSON *host)
{
    const cJSON *target =
        condition_find(json_path(host, "status.conditions"), STR("DisruptionTarget"));

    return object_is_terminating(host) ||
           str_eqc(json_str(json_get(target, "reason")), "DeletionByPodGC");
}

void sync_last_status_note(struct syncer *s, const struct host_object *before, const cJSON *host)
{
    struct arena *a = arena_new(0);
    struct str ns, name, uid;

    if (translate_owner(&s->tenant, host, &ns, &name, &uid) &&
        str_eq(sync_uid(syncer_virtual(s, a, SYNC_PODS, ns, name)), uid))
        add(s, key_join(a, ns, name), uid, before->bytes)->was_deleted = is_deletion(host);
    arena_free(a);
}

bool sync_last_was_deleted(const struct sync_run *run)
{
    const struct last_status *last = find(run);

    return last && last->was_deleted;
}

void sync_last_status_written(struct sync_run *run)
{
    struct last_status *last = find(run);

    if (last)
        last->written = true;
}

/* The containers of a pod that the host no longer has do not run, and kubelets report such a pod as
 * Failed. Only a pod that finalizers keep is still there for its owner to read. */
static cJSON *failed(struct sync_run *run, cJSON *status)
{
    if (!json_count(json_path(run->virtual_, "metadata.finalizers")) ||
        !object_is_terminating(run->virtual_) || pod_is_finished(run->virtual_) ||
        !json_str_at(run->virtual_, "spec.nodeName").n)
        return status;
    if (!status)
        status = json_copy(run->arena, json_get(run->virtual_, "status"));
    if (!str_eqc(json_str(json_get(status, "phase")), "Succeeded"))
        json_set_str(run->arena, status, "phase", STR("Failed"));
    return status;
}

cJSON *sync_last_status(struct sync_run *run)
{
    const struct last_status *last = find(run);
    cJSON *status = NULL;

    if (last && !last->written && !json_parse(run->arena, last->bytes, &run->host, NULL))
        status = translate_pod_status_up(run->arena, &run->syncer->tenant, run->host, run->virtual_,
                                         sync_pod_is_applied(run));
    run->host = NULL;
    return failed(run, status);
}

/* --- life --- */

struct last_statuses *sync_last_statuses_new(void)
{
    return NEW(struct last_statuses);
}

struct last_statuses *sync_last_statuses_free(struct last_statuses *l)
{
    if (!l)
        return NULL;
    map_each(&l->map, forget, l);
    mem_free(l);
    return NULL;
}
