/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants. What a process requests from the host is judged before it is done; what the
 * tenant was promised, and what a watcher sees, after every step; that both worlds are the same,
 * when it is quiet. Must never hold a process to more than what its clients and its host can rely
 * on. */
#include "world.h"

#include <stdarg.h>
#include <string.h>

#include <sublet/schema.h>
#include <sublet/store_admin.h>
#include <sublet/store_disk.h>
#include <sublet/store_quarantine.h>

#include "engine.h"
#include <sublet/hash.h>

/* --- notes: sets of strings with a number --- */

struct note {
    struct map_entry entry;
    char *key;
    uint64_t value;
    int64_t at_us;
    bool recorded; /* it outlived the process that received it */
};

struct notes {
    struct map excused; /* virtual uids of pods that others removed */
    struct map told;    /* process and virtual uid of pods on the host that it knows of */
    struct map seen;    /* process and host uid of all pods of ours that it was shown */
    struct map content; /* revision -> what was seen under it */
    struct map mirror;  /* resource, namespace and name -> revision, as a watcher has it */
    int64_t position;   /* of that watcher */
    char epoch[40];     /* of the store that the tenant's process serves */
    int64_t failed_us;  /* when the disk of the tenant's process failed last */
    unsigned generation;
};

static struct notes *notes_of(struct world *w)
{
    if (!w->notes) {
        w->notes = NEW(struct notes);
    }
    return w->notes;
}

static struct note *note_get(struct map *m, struct str key)
{
    struct map_entry *e = map_get(m, key);

    return e ? CONTAINER(e, struct note, entry) : NULL;
}

static void note_put(struct map *m, struct str key, uint64_t value)
{
    struct note *n = note_get(m, key);

    if (!n) {
        n = NEW(struct note);
        n->key = mem_strdup(key);
        map_put(m, &n->entry, str_c(n->key));
    }
    n->recorded = n->recorded && n->value == value;
    n->value = value;
    n->at_us = WORLD->moment.now_us;
}

static void note_drop(struct map *m, struct str key)
{
    struct note *n = note_get(m, key);

    if (!n)
        return;
    map_remove(m, &n->entry);
    mem_free(n->key);
    mem_free(n);
}

/* --- the host --- */

void judge_left(void *ctx, const char *plural, struct str uid)
{
    if (!strcmp(plural, "pods"))
        note_put(&notes_of(ctx)->excused, uid, 1);
}

static uint64_t age_of(const struct world *w)
{
    return w->generation + w->host_generation + 1;
}

/* The events that a process, or an earlier one on its disk, received. A copy of the disk is
 * another. */
static void knows_put(struct world *w, struct map *m, struct str uid)
{
    struct arena *a = arena_new(0);

    note_put(m, arena_printf(a, "%u/%.*s", wires_sender(w->wires), STR_F(uid)), age_of(w));
    arena_free(a);
}

static bool knows(struct world *w, struct map *m, struct str uid)
{
    struct arena *a = arena_new(0);
    const struct note *n =
        note_get(m, arena_printf(a, "%u/%.*s", wires_sender(w->wires), STR_F(uid)));

    arena_free(a);
    return n && n->value == age_of(w);
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
    knows_put(w, &notes_of(w)->seen, json_str_at(object, "metadata.uid"));
    if (str_eqc(epoch, w->epoch))
        knows_put(w, &notes_of(w)->told, host_virtual_uid(object));
}

static bool disk_fails(const struct life *l)
{
    const struct disk_faults *f = disk_faults(l->disk);

    if (f->full || f->write_errors || f->sync_errors)
        return true;
    return l->store && !l->closing &&
           (store_disk(l->store) != STORE_DISK_WRITABLE || (l->syncer && l->syncer->rescan_due));
}

static void look_at_disk(struct life *l)
{
    if (disk_fails(l))
        notes_of(l->world)->failed_us = l->world->moment.now_us;
}

void judge_died(struct life *l)
{
    look_at_disk(l);
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
        note_drop(&notes_of(WORLD)->told, str_c(n->key));
    else
        n->recorded = true;
}

enum { LIMIT = 4 }; /* of the GPUs, in world.c */

static int64_t gpus_on_host(struct world *w, bool only_seen)
{
    struct arena *a = arena_new(0);
    int64_t sum = 0;

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);

        if (pod && host_is_ours(pod) && !host_pod_is_finished(pod) &&
            (!only_seen || knows(w, &notes_of(w)->seen, json_str_at(pod, "metadata.uid"))))
            sum += host_pod_gpus(pod);
    }
    arena_free(a);
    return sum;
}

static bool trace_row(void *ctx, struct str key, struct str value)
{
    world_trace("process %d charges %.*s: %.*s", *(const int *)ctx, STR_F(key), STR_F(value));
    return true;
}

static void trace_gpus(struct world *w)
{
    struct arena *a = arena_new(0);

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);
        struct str uid = json_str_at(pod, "metadata.uid");

        if (pod && host_is_ours(pod) && !host_pod_is_finished(pod) && host_pod_gpus(pod))
            world_trace("%s uid %.*s of virtual uid %.*s holds %lld%s", o->name, STR_F(uid),
                        STR_F(host_virtual_uid(pod)), (long long)host_pod_gpus(pod),
                        knows(w, &notes_of(w)->seen, uid) ? "" : ", not seen by the sender");
    }
    for (int i = 0; i < MAX_LIVES; i++)
        if (life_serves(w->lives[i]))
            store_record_each(w->lives[i]->store, RECORD_LEDGER, STR("gpu/"), trace_row, &i);
    arena_free(a);
}

/* Before anything was put back, a process has made all that is there, and must know of it whether
 * it was reported or not. */
static void judge_gpus(struct world *w, const cJSON *created)
{
    int64_t sum = gpus_on_host(w, age_of(w) > 1) + host_pod_gpus(created);

    if (sum <= LIMIT)
        return;
    trace_gpus(w);
    world_fail("%lld GPUs on the host, where the limit is %d", (long long)sum, LIMIT);
}

static void judge_created(struct world *w, const char *plural, const cJSON *after)
{
    struct str uid = host_virtual_uid(after);

    if (strcmp(plural, "pods") != 0 || !uid.n || wires_is_of_earlier_age(w->wires))
        return;
    if (knows(w, &notes_of(w)->told, uid) && !wires_is_late(w->wires))
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
    for (size_t i = 0; i < w->model.n_slots; i++) {
        const struct slot *s = &w->model.slots[i];

        if (s->there && str_eqc(uid, s->uid))
            return !s->deleting && !s->asked_deletion && !s->excused && !s->unsure;
    }
    return false;
}

static struct life *sender_of(struct world *w)
{
    for (int i = 0; i < MAX_LIVES; i++)
        if (w->lives[i] && (i ? w->lives[i]->number : 0) == wires_sender(w->wires))
            return w->lives[i];
    return NULL;
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

static void judge_removed(struct world *w, const char *plural, const cJSON *before)
{
    struct str uid = host_virtual_uid(before);
    bool is_pod = !strcmp(plural, "pods");
    bool alive = false;

    if (!is_pod && strcmp(plural, "persistentvolumeclaims") != 0)
        return;
    if (is_pod && (note_get(&notes_of(w)->excused, uid) || host_pod_is_finished(before)))
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
    if (alive || is_promised(w, uid))
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

/* --- what the tenant was promised --- */

static int64_t mark_of(const cJSON *tree)
{
    int64_t n = -1;

    str_to_i64(json_str(json_get(json_path(tree, "metadata.annotations"), "sim")), &n);
    return n;
}

static bool may_be_gone(struct world *w, const struct slot *s)
{
    return s->deleting || s->asked_deletion ||
           note_get(&notes_of(w)->excused, str_c(s->uid)) != NULL;
}

static void judge_absent(struct world *w, struct slot *s)
{
    if (s->there && !may_be_gone(w, s))
        world_fail("%s %s of uid %s was answered and is gone", s->resource, s->name, s->uid);
    s->there = s->deleting = s->asked_deletion = s->excused = false;
}

static void judge_new(struct world *w, struct slot *s, const cJSON *tree)
{
    if (s->there && !may_be_gone(w, s))
        world_fail("%s %s of uid %s was answered, and another one is there", s->resource, s->name,
                   s->uid);
    if (s->writing != WRITE_CREATE && !s->unsure)
        world_fail("%s %s is there, and was removed or never made", s->resource, s->name);
    s->there = true;
    s->deleting = s->asked_deletion = s->excused = false;
    s->n = 0;
    snprintf(s->uid, sizeof(s->uid), "%.*s", STR_F(json_str_at(tree, "metadata.uid")));
}

static void judge_present(struct world *w, struct slot *s, const cJSON *tree)
{
    int64_t n = mark_of(tree);
    bool deleting = object_is_terminating(tree);

    if (!s->there || !str_eqc(json_str_at(tree, "metadata.uid"), s->uid))
        judge_new(w, s, tree);
    if (n < s->n || n > s->last)
        world_fail("%s %s carries mark %lld, where %lld was answered and %lld written", s->resource,
                   s->name, (long long)n, (long long)s->n, (long long)s->last);
    if (s->deleting && !deleting)
        world_fail("%s %s was deleted and is not", s->resource, s->name);
    if (deleting && !may_be_gone(w, s))
        world_fail("%s %s is being deleted, and nobody asked for it", s->resource, s->name);
    s->n = n;
    s->deleting = deleting;
}

static void judge_slot(struct life *l, struct slot *s, bool fresh)
{
    const struct store_object *o =
        store_get(l->store, tenant_storage(l, s->resource), STR("default"), str_c(s->name));
    struct arena *a = arena_new(0);
    bool unsure_delete = s->unsure && s->asked_deletion;

    if (o)
        judge_present(l->world, s, vapi_tree(a, o));
    else
        judge_absent(l->world, s);
    /* What the process that died had under way is decided: nothing of it comes later. */
    if (fresh && s->unsure) {
        if (unsure_delete)
            s->asked_deletion = s->deleting;
        s->unsure = false;
    }
    arena_free(a);
}

static void judge_slots(struct life *l, bool fresh)
{
    for (size_t i = 0; i < l->world->model.n_slots; i++)
        judge_slot(l, &l->world->model.slots[i], fresh);
}

/* --- a watcher --- */

static struct str key_of(struct arena *a, const struct store_object *o)
{
    return arena_printf(a, "%u/%.*s/%.*s", o->resource, STR_F(o->ns), STR_F(o->name));
}

/* One revision is one change of one object, for ever. */
static void judge_content(struct notes *n, struct arena *a, const struct store_object *o, int type)
{
    struct str revision = arena_printf(a, "%lld", (long long)o->revision);
    uint64_t hash = str_hash(o->bytes, str_hash(o->uid, (uint64_t)type + 1));
    struct note *known = note_get(&n->content, revision);

    if (known && known->value != hash)
        world_fail("revision %.*s was given to two changes", STR_F(revision));
    note_put(&n->content, revision, hash);
}

static void judge_event(struct notes *n, const struct store_event *e)
{
    struct arena *a = arena_new(0);
    struct str key = key_of(a, e->object);
    struct note *known = note_get(&n->mirror, key);

    if (e->revision <= n->position)
        world_fail("an event of revision %lld after one of %lld", (long long)e->revision,
                   (long long)n->position);
    if (!known != !e->previous || (known && (int64_t)known->value != e->previous->revision))
        world_fail("a watch misses a change of %.*s before revision %lld", STR_F(key),
                   (long long)e->revision);
    judge_content(n, a, e->object, (int)e->type);
    if (e->type == STORE_DELETED)
        note_drop(&n->mirror, key);
    else
        note_put(&n->mirror, key, (uint64_t)e->revision);
    n->position = e->revision;
    arena_free(a);
}

static bool on_listed(void *ctx, const struct store_object *o)
{
    struct notes *n = ctx;
    struct arena *a = arena_new(0);

    note_put(&n->mirror, key_of(a, o), (uint64_t)o->revision);
    arena_free(a);
    return true;
}

static void forget_one(void *ctx, struct map_entry *e)
{
    struct note *n = CONTAINER(e, struct note, entry);

    map_remove(ctx, e);
    mem_free(n->key);
    mem_free(n);
}

static void list_again(struct life *l, struct notes *n)
{
    map_each(&n->mirror, forget_one, &n->mirror);
    for (unsigned id = 1; id < 1000; id++)
        if (registry_by_storage(vapi_registry(l->api), id) &&
            store_scan(l->store, id, STR_NULL, STR_NULL, STR_NULL, 0, on_listed, n, NULL))
            world_fail("a list of now fails");
    n->position = store_revision(l->store);
}

static void on_wake(void *ctx)
{
    (void)ctx; /* every step looks */
}

static bool watch_on(struct life *l, struct notes *n)
{
    return !store_watch_open(l->store, STORE_ALL_RESOURCES, n->position, on_wake, l, &l->watch,
                             NULL);
}

/* As a client does when it hears 410. */
static void watch_anew(struct life *l, struct notes *n)
{
    l->watch = store_watch_close(l->watch);
    list_again(l, n);
    if (!watch_on(l, n))
        world_fail("a watch from now on fails");
}

static bool has_caught_up(const struct life *l)
{
    return store_watch_position(l->watch) >= store_revision(l->store);
}

/* Only the clock makes events too old for a watch that is read at every step, and only the disk
 * loses them: one without room keeps seconds of them. After a restart they are read back, which
 * takes time. */
static void take_events(struct life *l)
{
    struct notes *n = notes_of(l->world);
    const struct store_event *e;
    struct store_stats stats;
    bool expired = false;

    l->disk_was_full |= store_disk(l->store) != STORE_DISK_WRITABLE;
    while ((e = store_watch_next(l->watch, &expired)))
        judge_event(n, e);
    store_stats(l->store, &stats);
    if (expired && !l->world->moment.jump_us && !stats.read_failures && !l->disk_was_full)
        world_fail("a watcher that reads at every step is too slow");
    if (expired)
        watch_anew(l, n);
    l->disk_was_full = store_disk(l->store) != STORE_DISK_WRITABLE;
}

struct comparing {
    struct life *life;
    struct arena *arena;
};

static void compare_one(void *ctx, struct map_entry *e)
{
    struct comparing *c = ctx;
    struct note *n = CONTAINER(e, struct note, entry);
    struct str rest = str_c(n->key), ns, id = str_cut(&rest, '/');
    uint64_t resource = 0;
    const struct store_object *o;

    ns = str_cut(&rest, '/');
    str_to_u64(id, &resource);
    o = store_get(c->life->store, (unsigned)resource, ns, rest);
    if (!o || o->revision != (int64_t)n->value)
        world_fail("a watcher has %s at revision %lld, and the store at %lld", n->key,
                   (long long)n->value, o ? (long long)o->revision : 0);
}

/* No disk of a history loses what it synced: damage that a process reports is none. */
static void judge_damage(const struct life *l)
{
    struct store_damage d;

    store_damage(l->store, &d);
    if (d.objects || d.nameless || d.superseded || d.records || d.unattributed || d.history ||
        d.salvaged || d.log || d.own_account)
        world_fail("life %u reports damage of a disk that lost nothing:%s%s%s%s", l->number,
                   d.log ? " log" : "", d.own_account ? " own account" : "",
                   d.salvaged ? " structure" : "", d.history ? " history" : "");
}

void judge_life(struct life *l)
{
    struct world *w = l->world;
    struct notes *n = notes_of(w);

    judge_damage(l);
    if (l->index)
        return;
    if (n->generation == w->generation && store_revision(l->store) < n->position)
        world_fail("a watcher has seen revision %lld, and the store is at %lld",
                   (long long)n->position, (long long)store_revision(l->store));
    if (n->generation != w->generation || !n->position || !watch_on(l, n))
        watch_anew(l, n);
    n->generation = w->generation;
    map_each(&n->told, forget_unrecorded, n);
    snprintf(n->epoch, sizeof(n->epoch), "%s", w->epoch);
    judge_slots(l, true);
}

/* The committed state is read through the same calls as by clients, and at no cost but theirs. */
void judge_step(struct world *w)
{
    struct life *l = w->lives[0];
    struct comparing c = {l, NULL};

    if (l)
        look_at_disk(l);
    if (!life_serves(l) || !l->watch)
        return;
    take_events(l);
    if (has_caught_up(l))
        map_each(&notes_of(w)->mirror, compare_one, &c);
    judge_slots(l, false);
}

/* --- both worlds --- */

static char difference[400];

__attribute__((format(printf, 1, 2))) static bool differ(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(difference, sizeof(difference), format, args);
    va_end(args);
    return false;
}

const char *judge_difference(struct world *w)
{
    trace_gpus(w);
    return difference;
}

struct agreeing {
    struct world *world;
    struct arena *arena;
    const char *plural;
    size_t with_host;
    const cJSON *waiting; /* the pod that is the first in line */
    bool same;
};

static cJSON *host_of(struct agreeing *g, struct str uid)
{
    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next) {
        cJSON *tree = strcmp(o->plural, g->plural) ? NULL : host_parse(g->arena, o->bytes);

        if (tree && host_is_ours(tree) && str_eq(host_virtual_uid(tree), uid))
            return tree;
    }
    return NULL;
}

static bool pod_agrees(const cJSON *pod, const cJSON *host)
{
    if (!host)
        return host_pod_is_finished(pod);
    return str_eq(json_str_at(pod, "status.phase"), json_str_at(host, "status.phase")) &&
           !str_eqc(json_str_at(pod, "status.phase"), "Pending") &&
           str_eq(json_str_at(pod, "spec.nodeName"), json_str_at(host, "spec.nodeName")) &&
           !object_is_terminating(pod);
}

static bool agrees(const struct agreeing *g, const cJSON *tree, const cJSON *host)
{
    if (!strcmp(g->plural, "pods"))
        return pod_agrees(tree, host);
    if (!strcmp(g->plural, "persistentvolumeclaims") && !host)
        return str_eqc(json_str_at(tree, "status.phase"), "Lost");
    return host != NULL;
}

/* A pod that is created again has no claim to the GPUs it had: it waits when others have them. */
static bool may_wait(struct agreeing *g, const cJSON *pod)
{
    const struct world *w = g->world;
    int order;

    if (strcmp(g->plural, "pods") != 0 || age_of(w) == 1 || !host_pod_gpus(pod) ||
        !str_eqc(json_str_at(pod, "status.phase"), "Pending") || object_is_terminating(pod))
        return false;
    order = g->waiting ? str_cmp(json_str_at(pod, "metadata.creationTimestamp"),
                                 json_str_at(g->waiting, "metadata.creationTimestamp"))
                       : -1;
    if (order < 0 || (!order && str_cmp(sync_uid(pod), sync_uid(g->waiting)) < 0))
        g->waiting = pod;
    return true;
}

static bool on_virtual(void *ctx, const struct store_object *o)
{
    struct agreeing *g = ctx;
    const cJSON *tree = vapi_tree(g->arena, o), *host = host_of(g, o->uid);

    if (str_eqc(o->name, "kubernetes") && !strcmp(g->plural, "services"))
        return true;
    if (!host && may_wait(g, tree))
        return true;
    g->with_host += host != NULL;
    g->same = agrees(g, tree, host) ||
              differ("%s %.*s (uid %.*s, %.*s) has %s on the host", g->plural, STR_F(o->name),
                     STR_F(o->uid), STR_F(json_str_at(tree, "status.phase")),
                     host ? "another state" : "nothing");
    return g->same;
}

static size_t count_host(struct agreeing *g)
{
    size_t n = 0;

    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next)
        n += !strcmp(o->plural, g->plural) && host_is_ours(host_parse(g->arena, o->bytes));
    return n;
}

static bool count_record(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

/* Of a life the store does not know: kept, and without an owner. */
static size_t count_quarantined(struct agreeing *g, struct life *l)
{
    size_t n = 0;

    store_record_each(l->store, RECORD_MAPPING, arena_printf(g->arena, "quarantine/%s/", g->plural),
                      count_record, &n);
    return n;
}

/* A watch opens when the tenant first uses a kind: until then nothing finds what was created while
 * a failing disk kept its record from being stored. */
static bool may_have_orphans(const struct world *w, const struct life *l, const char *plural)
{
    if (!w->with[CLASS_DISK_FULL] && !w->with[CLASS_DISK_ERROR])
        return false;
    for (size_t id = 0; id < l->syncer->n_kinds; id++)
        if (!strcmp(l->syncer->kinds[id].plural, plural))
            return !l->syncer->watches[id].reflector;
    return false;
}

static bool kind_agrees(struct world *w, struct arena *a, const char *plural)
{
    struct agreeing g = {w, a, plural, 0, NULL, true};
    struct life *l = w->lives[0];

    if (store_scan(l->store, tenant_storage(l, plural), STR_NULL, STR_NULL, STR_NULL, 0, on_virtual,
                   &g, NULL) ||
        !g.same)
        return false;
    if (g.waiting && gpus_on_host(w, false) + host_pod_gpus(g.waiting) <= LIMIT)
        return differ("pods %.*s waits, and there is room for it",
                      STR_F(json_str_at(g.waiting, "metadata.name")));
    return count_host(&g) == g.with_host + count_quarantined(&g, l) ||
           may_have_orphans(w, l, plural) ||
           differ("%zu %s on the host, where %zu are wanted", count_host(&g), plural, g.with_host);
}

/* What a row charges; a pod in quarantine is known by its uid on the host. */
static const cJSON *charged_pod(struct agreeing *g, struct str uid)
{
    if (!str_has_prefix(uid, STR("host:")))
        return host_of(g, uid);
    uid = str_from(uid, 5);
    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(g->arena, o->bytes);

        if (pod && str_eq(json_str_at(pod, "metadata.uid"), uid))
            return pod;
    }
    return NULL;
}

/* Rows are "gpu/pool/uid". */
static bool on_row(void *ctx, struct str key, struct str value)
{
    struct agreeing *g = ctx;
    const cJSON *host = charged_pod(g, str_from(key, str_rfind(key, '/') + 1));

    (void)value;
    if (!host || host_pod_is_finished(host) || host_pod_gpus(host) == 0)
        g->same = differ("the ledger charges %.*s, which holds no GPUs on the host", STR_F(key));
    g->with_host++;
    return g->same;
}

/* An orphan holds GPUs that no tenant is charged for. */
static bool ledger_agrees(struct world *w, struct arena *a)
{
    struct agreeing g = {w, a, "pods", 0, NULL, true};
    size_t charged = 0;

    store_record_each(w->lives[0]->store, RECORD_LEDGER, STR("gpu/"), on_row, &g);
    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);

        charged += pod && host_is_ours(pod) && !host_pod_is_finished(pod) && host_pod_gpus(pod) > 0;
    }
    return g.same && (charged == g.with_host ||
                      differ("the ledger charges %zu pods, the host %zu", g.with_host, charged));
}

static bool nothing_under_way(struct world *w)
{
    for (size_t i = 0; i < w->model.n_slots; i++)
        if (w->model.slots[i].writing)
            return differ("a write of %s has no answer", w->model.slots[i].name);
    return true;
}

bool judge_agree(struct world *w)
{
    struct arena *a;
    bool same;

    if (!life_serves(w->lives[0]))
        return differ("no process serves");
    if (w->lives[0]->watch && !has_caught_up(w->lives[0]))
        return differ("a watcher waits for events");
    a = arena_new(0);
    same = nothing_under_way(w) && kind_agrees(w, a, "pods") &&
           kind_agrees(w, a, "persistentvolumeclaims") && kind_agrees(w, a, "services") &&
           ledger_agrees(w, a);
    arena_free(a);
    return same;
}
