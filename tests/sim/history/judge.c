/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of what a process requests from the host, judged before it is done, and what all
 * of them remember. What the tenant was promised, and what a watcher sees, is in judge_tenant.c;
 * GPUs in judge_ledger.c; that both worlds are the same when it is quiet, in judge_agree.c. Must
 * never hold a process to more than what its clients and its host can rely on. */
#include "judge_impl.h"

#include <string.h>

#include <sublet/store_disk.h>

#include "engine.h"

/* --- notes: sets of strings with a number --- */

struct notes *judge_notes(struct world *w)
{
    if (!w->notes) {
        w->notes = NEW(struct notes);
    }
    return w->notes;
}

struct note *note_get(struct map *m, struct str key)
{
    struct map_entry *e = map_get(m, key);

    return e ? CONTAINER(e, struct note, entry) : NULL;
}

void note_put(struct map *m, struct str key, uint64_t value)
{
    struct note *n = note_get(m, key);

    if (!n) {
        n = NEW(struct note);
        n->key = mem_strdup(key);
        map_put(m, &n->entry, str_c(n->key));
    }
    n->recorded = n->recorded && n->value == value;
    n->at_us = WORLD->moment.now_us;
    if (n->value != value || !n->since_us)
        n->since_us = n->at_us;
    n->value = value;
}

void note_drop(struct map *m, struct str key)
{
    struct note *n = note_get(m, key);

    if (!n)
        return;
    map_remove(m, &n->entry);
    mem_free(n->key);
    mem_free(n);
}

static void drop_one(void *ctx, struct map_entry *e)
{
    struct note *n = CONTAINER(e, struct note, entry);

    map_remove(ctx, e);
    mem_free(n->key);
    mem_free(n);
}

void note_drop_all(struct map *m)
{
    map_each(m, drop_one, m);
}

/* --- the host --- */

void judge_left(void *ctx, const char *plural, struct str uid)
{
    struct notes *n = judge_notes(ctx);

    note_put(&n->removed, uid, 1);
    if (!strcmp(plural, "pods"))
        note_put(&n->excused, uid, ((struct world *)ctx)->generation);
    else if (!strcmp(plural, "persistentvolumeclaims"))
        note_put(&n->lost, uid, judge_age(ctx));
}

/* A restored store must not know of removals that the backup does not have. */
bool judge_is_excused(struct world *w, struct str uid)
{
    const struct note *n = note_get(&judge_notes(w)->excused, uid);

    return n && n->value == w->generation;
}

bool judge_was_removed(struct world *w, struct str uid)
{
    return note_get(&judge_notes(w)->removed, uid) != NULL;
}

uint64_t judge_age(const struct world *w)
{
    return w->generation + w->host_generation + 1;
}

/* The events that a process, or an earlier one on its disk, received. A copy of the disk is
 * another. */
static void knows_put(struct world *w, struct map *m, struct str uid)
{
    struct arena *a = arena_new(0);

    note_put(m, arena_printf(a, "%u/%.*s", wires_sender(w->wires), STR_F(uid)), judge_age(w));
    arena_free(a);
}

static const struct note *known(struct world *w, struct map *m, struct str uid)
{
    struct arena *a = arena_new(0);
    const struct note *n =
        note_get(m, arena_printf(a, "%u/%.*s", wires_sender(w->wires), STR_F(uid)));

    arena_free(a);
    return n && n->value == judge_age(w) ? n : NULL;
}

bool judge_knows(struct world *w, struct map *m, struct str uid)
{
    return known(w, m, uid) != NULL;
}

/* Did the sender know it when it sent what is executed? */
static bool knew(struct world *w, struct map *m, struct str uid)
{
    const struct note *n = known(w, m, uid);

    return n && n->since_us <= wires_sent_us(w->wires);
}

static struct life *sender_of(struct world *w)
{
    for (int i = 0; i < MAX_LIVES; i++)
        if (w->lives[i] && (i ? w->lives[i]->number : 0) == wires_sender(w->wires))
            return w->lives[i];
    return NULL;
}

static void show(struct world *w, const cJSON *pod)
{
    const struct life *l = sender_of(w);
    struct arena *a = arena_new(0);

    if (l)
        note_put(&judge_notes(w)->shown,
                 arena_printf(a, "%u/%.*s", l->number, STR_F(json_str_at(pod, "metadata.uid"))),
                 judge_age(w));
    arena_free(a);
}

/* A pod of the life that goes on, of which a process received an event, is known to have been there
 * until the store or the host is put back. What is of an earlier life may have been removed by its
 * order.
 */
void judge_told(void *ctx, const char *plural, const cJSON *object)
{
    struct world *w = ctx;
    struct str epoch =
        json_str(json_get(json_path(object, "metadata.annotations"), "sublet.dev/epoch"));

    if (strcmp(plural, "pods") != 0 || !host_is_ours(object))
        return;
    knows_put(w, &judge_notes(w)->seen, json_str_at(object, "metadata.uid"));
    show(w, object);
    if (str_eqc(epoch, w->epoch))
        knows_put(w, &judge_notes(w)->told, host_virtual_uid(object));
}

static bool disk_fails(const struct life *l)
{
    const struct disk_faults *f = disk_faults(l->disk);

    if (f->full || f->write_errors || f->sync_errors || f->read_errors)
        return true;
    return l->store && !l->closing &&
           (store_disk(l->store) != STORE_DISK_WRITABLE || (l->syncer && l->syncer->rescan_due));
}

void judge_look_at_disk(struct life *l)
{
    if (disk_fails(l))
        judge_notes(l->world)->failed_us = l->world->moment.now_us;
}

void judge_died(struct life *l)
{
    judge_look_at_disk(l);
    if (l->syncer && !l->closing)
        judge_knows_host(l);
    l->world->died_us = l->world->moment.now_us;
}

enum { COMMIT_US = 100000 }; /* so long it may take until what a process received is on record */

/* What the tenant's process received in its life ends with it where it had no time to record it, or
 * could not because its disk failed then or afterwards; and all of it where the store is of another
 * epoch now, since its log was damaged: absence proves nothing there. */
static void forget_unrecorded(void *ctx, struct map_entry *e)
{
    const struct notes *notes = ctx;
    struct note *n = CONTAINER(e, struct note, entry);

    bool is_over = strcmp(notes->epoch, WORLD->epoch) != 0;

    if (!str_has_prefix(str_c(n->key), STR("0/")) || (n->recorded && !is_over))
        return;
    if (is_over || n->at_us <= notes->failed_us || n->at_us > WORLD->died_us - COMMIT_US)
        note_drop(&judge_notes(WORLD)->told, str_c(n->key));
    else
        n->recorded = true;
}

void judge_begin(struct world *w)
{
    struct notes *n = judge_notes(w);

    map_each(&n->told, forget_unrecorded, n);
    snprintf(n->epoch, sizeof(n->epoch), "%s", w->epoch);
}

static void judge_created(struct world *w, const char *plural, const cJSON *after)
{
    struct str uid = host_virtual_uid(after);

    judge_notes(w)->second_created |= wires_sender(w->wires) != 0;
    if (strcmp(plural, "pods") != 0 || !uid.n)
        return;
    if (wires_is_of_earlier_age(w->wires)) {
        note_put(&judge_notes(w)->late, uid, judge_age(w));
        return;
    }
    if (knew(w, &judge_notes(w)->told, uid))
        world_fail("the pod of virtual uid %.*s is created a second time", STR_F(uid));
    judge_gpus(w, after);
}

/* Does a process have it, alive? Its committed state is what its clients see. */
/* The virtual object that a host object was made from, if that life has it. */
static const cJSON *virtual_of(struct arena *a, struct life *l, const char *plural,
                               const cJSON *host)
{
    const cJSON *notes = json_path(host, "metadata.annotations");
    const struct store_object *o = store_get(l->store, tenant_storage(l, plural),
                                             json_str(json_get(notes, "sublet.dev/namespace")),
                                             json_str(json_get(notes, "sublet.dev/name")));

    return o && str_eq(o->uid, host_virtual_uid(host)) ? vapi_tree(a, o) : NULL;
}

static bool is_alive_in(struct life *l, const char *plural, const cJSON *host)
{
    struct arena *a = arena_new(0);
    const cJSON *tree = virtual_of(a, l, plural, host);
    bool alive = tree && !object_is_terminating(tree) && !host_pod_is_finished(tree);

    arena_free(a);
    return alive;
}

static bool is_promised(struct world *w, struct str uid)
{
    for (size_t i = 0; i < w->models[0].n_slots; i++) {
        const struct slot *s = &w->models[0].slots[i];

        if (s->there && str_eqc(uid, s->uid))
            return !s->deleting && !s->asked_deletion && !s->unsure;
    }
    return false;
}

/* A copy of the data from before a restore leads while the restored process has not reached the
 * host, so that neither can know of the other. What the tenant deleted there is deleted by the
 * tenant: the copy has the object, terminating. */
static bool is_deleted_in_earlier_epoch(struct world *w, const char *plural, const cJSON *host)
{
    struct life *l = sender_of(w);
    const cJSON *tree;
    struct arena *a;
    bool deleted;

    if (!l || !life_serves(l) || str_eqc(l->syncer->tenant.epoch, w->epoch))
        return false;
    a = arena_new(0);
    tree = virtual_of(a, l, plural, host);
    deleted = tree && object_is_terminating(tree);
    arena_free(a);
    return deleted;
}

/* By the tenant of the second process while that one led. */
static bool is_deleted_at_second(struct world *w, struct str uid)
{
    return wires_sender(w->wires) && note_get(&judge_notes(w)->deleted, uid);
}

static void judge_removed(struct world *w, const char *plural, const cJSON *before)
{
    struct str uid = host_virtual_uid(before);
    bool is_pod = !strcmp(plural, "pods");
    bool alive = false, ordered;

    if (!is_pod && strcmp(plural, "persistentvolumeclaims") != 0)
        return;
    note_put(&judge_notes(w)->removed, uid, 1);
    if (is_pod && (judge_is_excused(w, uid) || host_pod_is_finished(before)))
        return;
    /* A request of the life before, which no restore stops. */
    if (wires_is_of_earlier_age(w->wires) || is_deleted_in_earlier_epoch(w, plural, before)) {
        judge_left(w, plural, uid);
        return;
    }
    /* What a process that does not lead still has is what the leader may delete. */
    for (int i = 0; i < MAX_LIVES; i++)
        alive |= life_serves(w->lives[i]) && sync_lease_may_act(w->lives[i]->syncer->lease) &&
                 !sync_lease_is_doubted(w->lives[i]->syncer->lease) &&
                 is_alive_in(w->lives[i], plural, before);
    ordered = is_deleted_at_second(w, uid);
    if (ordered)
        judge_left(w, plural, uid);
    if (alive || (is_promised(w, uid) && !ordered))
        world_fail("%s %.*s is removed from the host while its virtual object %.*s lives", plural,
                   STR_F(json_str_at(before, "metadata.name")), STR_F(uid));
}

void judge_request(void *ctx, const char *plural, const cJSON *before, const cJSON *after)
{
    struct world *w = ctx;
    struct str name = json_str_at(before ? before : after, "metadata.name");
    bool own = str_has_suffix(name, STR("-kubeconfig")) || !strcmp(plural, "leases");

    world_trace("%s %s %.*s of virtual uid %.*s, by process %u%s",
                !before ? "create"
                : after ? "change"
                        : "remove",
                plural, STR_F(name), STR_F(host_virtual_uid(before ? before : after)),
                wires_sender(w->wires),
                wires_is_of_earlier_age(w->wires) ? " of an earlier age" : "");
    if (before && !own && !host_is_ours(before))
        world_fail("%s %.*s of others is touched", plural, STR_F(name));
    if (!before)
        judge_created(w, plural, after);
    else if (!after)
        judge_removed(w, plural, before);
}
