/* SPDX-License-Identifier: Apache-2.0 */
/* The pod controller. One run reads the virtual pod, the host pod and the mapping between them, and
 * takes the next step. Must never create a pod twice, nor create one again that was deleted on the
 * host.
 *
 *   virtual | host | on record |
 *   --------+------+-----------+------------------------------------------------------------------
 *      -    |  x   |     x     | delete the host pod
 *      -    |  -   |     x     | delete its token Secret, release its GPUs, remove the record
 *      x    |  -   |     -     | wait for gates, quota, references, tokens; then create
 *      x    |  -   |     x     | deleted on the host: last status up, delete the virtual pod,
 *           |      |           | unless it is finished; of another life: create it again
 *      x    |  x   |     x     | of another uid: delete the host pod; else deletion down, status
 *           |      |           | up, deletion up, changes down
 *
 * "On record": the mapping record has the host pod's uid. */
#include "core/life.h"
#include "gpu/ledger.h"
#include "nodes/nodes.h"
#include "objects/objects.h"
#include "pods/gangs.h"
#include "pods/pods.h"

/* For a pod deleted without a grace period: its kubelet confirms that it was killed before its GPUs
 * are released. */
#define FORCED_GRACE_S 1

/* --- without a virtual pod --- */

static void pod_gone(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    bool scheduled = json_str_at(run->host, "spec.nodeName").n > 0;

    sync_failed_note(s->failed, reconcile_key(run->reconcile), false);
    sync_last_status_drop(s, reconcile_key(run->reconcile));
    if (!run->mapping.exists)
        return;
    struct str uid = run->mapping.uid;
    if ((!run->host && !sync_tokens_remove(run)) || sync_gang_end(run))
        return;
    if (!sync_finish_gone(run, scheduled ? FORCED_GRACE_S : 0))
        return;
    sync_ledger_release(s->ledger, uid);
    for (size_t i = 0; i < run->mapping.n_old; i++)
        sync_ledger_release(s->ledger, run->mapping.old[i]);
}

/* --- without a host pod --- */

static void pod_lost(struct sync_run *run)
{
    bool deleting = object_is_terminating(run->virtual_);

    if (!sync_create_may_come(run))
        sync_ledger_release(run->syncer->ledger, run->uid);
    if (sync_pod_last_up(run))
        return;
    if (pod_is_finished(run->virtual_) && !deleting && !sync_last_was_deleted(run)) {
        /* The host's garbage collector deletes finished pods; the tenant keeps its own. */
        sync_last_status_drop(run->syncer, reconcile_key(run->reconcile));
        (void)sync_tokens_remove(run);
        return;
    }
    if (!deleting)
        reconcile_event(run->reconcile, run->virtual_, "Warning", "PodRemoved",
                        "the host cluster removed it");
    sync_pod_remove_virtual(run, 0);
}

/* The record is of another life: this host never had the pod, or lost it in a restore. */
static void pod_again(struct sync_run *run)
{
    if (sync_run_settle(run) != SETTLE_CREATE) {
        if (pod_is_finished(run->virtual_))
            sync_ledger_release(run->syncer->ledger, run->uid);
        else
            sync_pod_remove_virtual(run, 0);
        return;
    }
    if (json_str_at(run->virtual_, "spec.nodeName").n) {
        sync_pod_unbind(run);
        return;
    }
    sync_recreate(run);
    sync_pod_create(run);
}

static void pod_missing(struct sync_run *run)
{
    switch (sync_life_absence(run->syncer, SYNC_PODS, &run->mapping)) {
    case ABSENCE_PROVEN:
        if (sync_last_was_deleted(run))
            pod_lost(run);
        else
            sync_unlisted(run, pod_lost);
        break;
    case ABSENCE_OF_ANOTHER_LIFE:
        pod_again(run);
        break;
    case ABSENCE_OPEN:
        break;
    }
}

static void pod_absent(struct sync_run *run)
{
    bool known = run->mapping.exists && str_eq(run->mapping.uid, run->uid);

    sync_take_mapping(run);
    if (!sync_create_may_come(run)) /* of a predecessor as well */
        sync_forget_old(run);
    if (known && run->mapping.host_uid.n)
        pod_missing(run);
    else if (object_is_terminating(run->virtual_))
        sync_pod_remove_virtual(run, 0);
    else if (!pod_is_finished(run->virtual_))
        sync_pod_create(run);
}

/* --- with both --- */

static int64_t grace_of(const cJSON *object)
{
    return json_i64_at(object, "metadata.deletionGracePeriodSeconds", 0);
}

static int64_t grace_down(const struct sync_run *run)
{
    int64_t grace = grace_of(run->virtual_);

    if (grace == 0 && json_str_at(run->host, "spec.nodeName").n)
        return FORCED_GRACE_S;
    return grace;
}

/* True: it is pending, as is that of the next. */
static bool deletion_down(struct sync_run *run)
{
    bool down = object_is_terminating(run->virtual_), up = object_is_terminating(run->host);

    if (!down || (up && grace_down(run) >= grace_of(run->host)))
        return false;
    sync_delete(run, grace_down(run));
    return true;
}

/* After the status, which has the reason: the condition DisruptionTarget is written before the pod
 * is deleted, and clients read it in that order. */
static bool deletion_up(struct sync_run *run)
{
    if (!object_is_terminating(run->host) || object_is_terminating(run->virtual_))
        return false;
    if (!sync_is_stale_deletion(run, run->host))
        sync_pod_remove_virtual(run, grace_of(run->host));
    return true;
}

void sync_pod_settled(struct sync_run *run)
{
    struct str key = reconcile_key(run->reconcile);
    bool failed = str_eqc(json_str_at(run->host, "status.phase"), "Failed");

    if (deletion_up(run) || sync_pod_reclaim(run))
        return;
    if (sync_failed_note(run->syncer->failed, key, failed) && pod_is_finished(run->virtual_)) {
        sync_delete(run, -1);
        return;
    }
    if (pod_is_finished(run->host))
        (void)sync_tokens_remove(run);
    else if (!object_is_terminating(run->host) && sync_tokens_ensure(run))
        sync_pod_update_down(run);
}

/* The host pod is of a predecessor of the same name: on a lost node it may stay for hours. */
static void show_predecessor(struct sync_run *run)
{
    struct str node = sync_nodes_of_pod(run->syncer, run->host, false);
    struct str message;

    if (!str_eqc(json_str_at(run->host, "status.reason"), POD_NODE_LOST))
        return;
    message = arena_printf(run->arena,
                           "the host cluster still has the deleted pod of this name: its node "
                           "%.*s does not answer, so it may still run",
                           STR_F(node));
    if (sync_pod_say_waiting(run, "PredecessorLost", message))
        reconcile_event(run->reconcile, run->virtual_, "Warning", "PredecessorLost", "%.*s",
                        STR_F(message));
}

static void pod_present(struct sync_run *run)
{
    if (sync_settle_owner(run)) {
        if (!str_eq(run->owner_uid, run->uid))
            show_predecessor(run);
        return;
    }
    if (deletion_down(run) || sync_gang_end(run))
        return;
    if (pod_is_finished(run->host))
        sync_ledger_release(run->syncer->ledger, run->uid);
    if (!sync_pod_update_up(run))
        sync_pod_settled(run);
}

static void reconcile_pod(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    struct sync_run run;

    if (!sync_run_init(&run, r, SYNC_PODS) || (!run.virtual_ && !run.mapping.exists))
        return;
    if (!syncer_ready(s, SYNC_PODS, SYNC_SECRETS, SYNC_CONFIG_MAPS) || !s->pools_known ||
        !sync_run_init(&run, r, SYNC_PODS) || (run.host && sync_pod_loss(&run)))
        return;
    if (!run.virtual_)
        pod_gone(&run);
    else if (!run.host)
        pod_absent(&run);
    else
        pod_present(&run);
}

/* --- events of the virtual cluster --- */

static bool may_be_finished(const struct store_object *o)
{
    return o && (str_contains(o->bytes, STR("\"Succeeded\"")) ||
                 str_contains(o->bytes, STR("\"Failed\"")));
}

/* Only ephemeral containers can add references to the spec of an existing pod, and claims made of
 * templates to its status. A finished pod needs
 * none, unless a restored host runs it again. */
static bool may_change_refs(const struct store_event *e)
{
    return e->type == STORE_ADDED || str_contains(e->object->bytes, STR("ephemeralContainers")) ||
           str_contains(e->object->bytes, STR("resourceClaimStatuses")) ||
           may_be_finished(e->object) || may_be_finished(e->previous);
}

static void count_refs(struct syncer *s, const struct store_event *e)
{
    struct arena *a = arena_new(0);
    struct str key = key_join(a, e->object->ns, e->object->name);
    cJSON *pod;

    if (e->type == STORE_DELETED) {
        sync_refs_object(s->refs, SYNC_PODS, key, NULL);
    } else if (may_change_refs(e)) {
        pod = vapi_tree(a, e->object);
        sync_refs_object(s->refs, SYNC_PODS, key, pod_is_finished(pod) ? NULL : pod);
    }
    arena_free(a);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    count_refs(vapi_get_hooks(controller_api(c))->ctx, e);
    controller_map_self(c, e);
}

static const struct controller_source SOURCES[] = {
    {"", "pods", map_pod}, {"", "nodes", sync_nodes_map_event}, {0}};

const struct controller_def SYNC_POD_CONTROLLER = {
    .name = "sublet-pods", .sources = SOURCES, .reconcile = reconcile_pod, .workers = 64};
