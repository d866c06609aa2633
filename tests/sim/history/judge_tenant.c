/* SPDX-License-Identifier: Apache-2.0 */
/* What the tenant was promised, and what a watcher sees: judged after every step, through the calls
 * that clients use. Must never forgive an answered write that is missing. */
#include "judge_impl.h"

#include <string.h>

#include <sublet/schema.h>
#include <sublet/store_admin.h>
#include <sublet/store_disk.h>
#include <sublet/store_quarantine.h>

#include "engine.h"

/* --- what the tenant was promised --- */

static int64_t mark_of(const cJSON *tree)
{
    int64_t n = -1;

    str_to_i64(json_str(json_get(json_path(tree, "metadata.annotations"), "sim")), &n);
    return n;
}

/* The first process, or the tenant of it, may have removed the pod that the second one has. */
static bool was_removed(struct life *l, const struct slot *s)
{
    return l->index ? judge_was_removed(l->world, str_c(s->uid))
                    : judge_is_excused(l->world, str_c(s->uid));
}

static bool may_be_gone(struct life *l, const struct slot *s)
{
    return s->deleting || s->asked_deletion || was_removed(l, s);
}

static void judge_absent(struct life *l, struct slot *s)
{
    if (s->there && !may_be_gone(l, s))
        world_fail("%s %s of uid %s was answered and is gone", s->resource, s->name, s->uid);
    s->there = s->deleting = s->asked_deletion = false;
}

static void judge_new(struct life *l, struct slot *s, const cJSON *tree)
{
    if (s->there && !may_be_gone(l, s))
        world_fail("%s %s of uid %s was answered, and another one is there", s->resource, s->name,
                   s->uid);
    if (s->writing != WRITE_CREATE && !s->unsure)
        world_fail("%s %s is there, and was removed or never made", s->resource, s->name);
    s->there = true;
    s->deleting = s->asked_deletion = false;
    s->n = 0;
    snprintf(s->uid, sizeof(s->uid), "%.*s", STR_F(json_str_at(tree, "metadata.uid")));
}

/* Its data counts as lost from then on: only others can have removed it. */
static void judge_claim(struct life *l, const struct slot *s, const cJSON *tree)
{
    struct notes *n = judge_notes(l->world);

    if (str_eqc(json_str_at(tree, "status.phase"), "Lost") &&
        !note_get(l->index ? &n->removed : &n->lost, str_c(s->uid)))
        world_fail("%s %s of uid %s is Lost, and it was never removed from the host", s->resource,
                   s->name, s->uid);
}

static void judge_present(struct life *l, struct slot *s, const cJSON *tree)
{
    int64_t n = mark_of(tree);
    bool deleting = object_is_terminating(tree);

    if (!s->there || !str_eqc(json_str_at(tree, "metadata.uid"), s->uid))
        judge_new(l, s, tree);
    if (n < s->n || n > s->last)
        world_fail("%s %s carries mark %lld, where %lld was answered and %lld written", s->resource,
                   s->name, (long long)n, (long long)s->n, (long long)s->last);
    if (s->deleting && !deleting)
        world_fail("%s %s was deleted and is not", s->resource, s->name);
    if (deleting && !may_be_gone(l, s))
        world_fail("%s %s is being deleted without a request", s->resource, s->name);
    if (!strcmp(s->resource, "persistentvolumeclaims"))
        judge_claim(l, s, tree);
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
        judge_present(l, s, vapi_tree(a, o));
    else
        judge_absent(l, s);
    /* What the process that died had under way is decided: nothing of it comes later. */
    if (fresh && s->unsure) {
        if (unsure_delete)
            s->asked_deletion = s->deleting;
        s->unsure = false;
    }
    arena_free(a);
}

void judge_slots(struct life *l, bool fresh)
{
    struct model *m = &l->world->models[l->index];

    for (size_t i = 0; i < m->n_slots; i++)
        judge_slot(l, &m->slots[i], fresh);
}

/* --- a watcher --- */

static struct watcher *watcher_of(const struct life *l)
{
    return &judge_notes(l->world)->watchers[l->index];
}

void judge_copied(struct world *w)
{
    struct watcher *n = &judge_notes(w)->watchers[1];

    note_drop_all(&n->mirror);
    note_drop_all(&n->content);
    note_drop_all(&n->gone);
    n->position = 0;
}

static struct str key_of(struct arena *a, const struct store_object *o)
{
    return arena_printf(a, "%u/%.*s/%.*s", o->resource, STR_F(o->ns), STR_F(o->name));
}

const struct note *judge_gone(struct life *l, const struct slot *s)
{
    struct arena *a = arena_new(0);
    struct str key = arena_printf(a, "%u/default/%s", tenant_storage(l, s->resource), s->name);
    const struct note *n = note_get(&watcher_of(l)->gone, key);

    arena_free(a);
    return n;
}

/* One revision is one change of one object, for ever. */
static void judge_content(struct watcher *n, struct arena *a, const struct store_object *o,
                          int type)
{
    struct str revision = arena_printf(a, "%lld", (long long)o->revision);
    uint64_t hash = str_hash(o->bytes, str_hash(o->uid, (uint64_t)type + 1));
    struct note *known = note_get(&n->content, revision);

    if (known && known->value != hash)
        world_fail("revision %.*s was given to two changes", STR_F(revision));
    note_put(&n->content, revision, hash);
}

static void judge_event(struct watcher *n, const struct store_event *e)
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
    if (e->type == STORE_DELETED)
        note_put(&n->gone, key, (uint64_t)e->revision);
    else
        note_drop(&n->gone, key);
    n->position = e->revision;
    arena_free(a);
}

static bool on_listed(void *ctx, const struct store_object *o)
{
    struct watcher *n = ctx;
    struct arena *a = arena_new(0);

    note_put(&n->mirror, key_of(a, o), (uint64_t)o->revision);
    arena_free(a);
    return true;
}

static void list_again(struct life *l, struct watcher *n)
{
    note_drop_all(&n->mirror);
    note_drop_all(&n->gone); /* what it misses now may be there again */
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

static bool watch_on(struct life *l, struct watcher *n)
{
    return !store_watch_open(l->store, STORE_ALL_RESOURCES, n->position, on_wake, l, &l->watch,
                             NULL);
}

/* As a client does when it hears 410. */
static void watch_anew(struct life *l, struct watcher *n)
{
    l->watch = store_watch_close(l->watch);
    list_again(l, n);
    if (!watch_on(l, n))
        world_fail("a watch from now on fails");
}

bool judge_has_caught_up(const struct life *l)
{
    return store_watch_position(l->watch) >= store_revision(l->store);
}

/* The store may notice within a step, and find room again. */
static bool has_no_room(const struct life *l)
{
    return disk_faults(l->disk)->full || store_disk(l->store) != STORE_DISK_WRITABLE;
}

/* Only the clock makes events too old for a watch that is read at every step, and only the disk
 * loses them: one without room keeps seconds of them. After a restart they are read back, which
 * takes time. */
static void take_events(struct life *l)
{
    struct watcher *n = watcher_of(l);
    const struct store_event *e;
    struct store_stats stats;
    bool expired = false;

    l->disk_was_full |= has_no_room(l);
    while ((e = store_watch_next(l->watch, &expired)))
        judge_event(n, e);
    store_stats(l->store, &stats);
    if (expired && !l->world->moment.jump_us && !stats.read_failures && !l->disk_was_full)
        world_fail("a watcher that reads at every step is too slow");
    if (expired)
        watch_anew(l, n);
    l->disk_was_full = has_no_room(l);
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
        d.salvaged || d.log || d.log_missing || d.own_account)
        world_fail("life %u reports damage of a disk that lost nothing:%s%s%s%s%s", l->number,
                   d.log ? " log" : "", d.log_missing ? " whole log" : "",
                   d.own_account ? " own account" : "", d.salvaged ? " structure" : "",
                   d.history ? " history" : "");
}

/* A copy of the data is another store for its watcher, as a restored store is. */
static unsigned generation_of(const struct life *l)
{
    return l->index ? l->world->n_copies : l->world->generation;
}

static void begin_watch(struct life *l)
{
    struct watcher *n = watcher_of(l);
    unsigned generation = generation_of(l);

    if (n->generation == generation && store_revision(l->store) < n->position)
        world_fail("a watcher has seen revision %lld, and the store is at %lld",
                   (long long)n->position, (long long)store_revision(l->store));
    if (n->generation != generation || !n->position || !watch_on(l, n))
        watch_anew(l, n);
    n->generation = generation;
}

void judge_life(struct life *l)
{
    judge_damage(l);
    judge_knows_host(l);
    begin_watch(l);
    if (!l->index)
        judge_begin(l->world);
    judge_slots(l, true);
}

/* The committed state is read through the same calls as by clients, and at no cost but theirs. */
static void judge_process(struct life *l)
{
    struct comparing c = {l, NULL};

    if (!life_serves(l) || !l->watch)
        return;
    take_events(l);
    if (judge_has_caught_up(l))
        map_each(&watcher_of(l)->mirror, compare_one, &c);
    judge_slots(l, false);
    judge_report(l);
    /* One that refuses writes charges nothing: another process acts, with other virtual uids. */
    if (l->index ? judge_leads(l) : !judge_refuses(l))
        judge_ledger(l);
}

void judge_step(struct world *w)
{
    if (w->lives[0])
        judge_look_at_disk(w->lives[0]);
    for (int i = 0; i < MAX_LIVES; i++)
        if (w->lives[i])
            judge_process(w->lives[i]);
    judge_one_acts(w);
}
