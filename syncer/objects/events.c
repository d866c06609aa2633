/* SPDX-License-Identifier: Apache-2.0 */
/* Host Events about the tenant's pods, claims, Services and configured kinds, copied up with names
 * translated back. Their rate is bounded, since a tenant can provoke any number. Events and objects
 * arrive by separate watches, in any order: an Event ahead of its object is held until the object
 * is known, and the owner of a deleted object is remembered for the Events that come after it. Both
 * are bounded in number and time. Must never copy an Event unless the host uid of its object proves
 * it this tenant's. */

#include "objects/objects.h"
#include "nodes/nodes.h"
#include "pods/pods.h"
#include <string.h>
#include <sys/queue.h>

#include <sublet/token_bucket.h>

#define PER_SECOND   20
#define AT_ONCE      200
#define HELD_MAX     128
#define DEPARTED_MAX 1024 /* about 250 bytes each */
#define KEPT_MS      30000

struct kept {
    TAILQ_ENTRY(kept) place;
    int64_t until_ms;
    char *host_uid; /* of the involvedObject */
    char *text;
};

struct kept_list {
    TAILQ_HEAD(, kept) items; /* oldest first */
    size_t n, max;
};

struct events_up {
    struct syncer *syncer;
    struct token_bucket tokens;
    struct kept_list held;     /* Events ahead of their objects: JSON */
    struct kept_list departed; /* deleted objects: namespace/name/uid for the tenant */
    bool armed;                /* on_forget() is deferred */
};

/* The tenant's object behind a host object. */
struct owner {
    struct str ns, name, uid;
};

static bool take_token(struct events_up *e)
{
    static const struct token_rate rate = {.burst = AT_ONCE, .n = PER_SECOND, .period = 1000};

    return token_bucket_take(&e->tokens, &rate, clock_mono_ms(vapi_clock(e->syncer->api)));
}

/* --- the involved object --- */

/* Of the core group. Which of them are synced is the configuration's. */
static const struct {
    const char *kind, *record;
    /* The host's own are many there, and the tenant's change at its will: Events of them are not
     * held, which would push out those of pods. */
    bool at_once;
} INVOLVED[] = {
    {"Pod", "pods"},
    {"PersistentVolumeClaim", "persistentvolumeclaims"},
    {"Service", "services"},
    {"ConfigMap", "configmaps", true},
    {"Secret", "secrets", true},
    {"ServiceAccount", "serviceaccounts"},
};

static const struct host_object *find_object(struct syncer *s, size_t id, const cJSON *event)
{
    const struct host_object *o =
        reflector_get(s->watches[id].reflector, json_str_at(event, "involvedObject.name"));

    return o && str_eq(o->uid, json_str_at(event, "involvedObject.uid")) ? o : NULL;
}

/* Is it about a synced kind of the core group, and to be held, if need be? *ret: its host object,
 * NULL while not known. */
static bool find_core(struct syncer *s, const cJSON *event, const struct host_object **ret)
{
    struct str kind = json_str_at(event, "involvedObject.kind");
    enum sync_id id = SYNC_NONE;
    bool at_once = false;

    for (size_t i = 0; i < COUNT(INVOLVED); i++) {
        if (!str_eqc(kind, INVOLVED[i].kind))
            continue;
        id = sync_kind_of_record(s, str_c(INVOLVED[i].record));
        at_once = INVOLVED[i].at_once;
    }
    if (id == SYNC_NONE)
        return false;
    *ret = find_object(s, (size_t)id, event);
    return *ret || !at_once;
}

/* Of a group that sync.toHost sends kinds of down: its host uid proves the object, whatever its
 * kind. */
static bool find_configured(struct syncer *s, struct str group, const cJSON *event,
                            const struct host_object **ret)
{
    bool synced = false;

    for (size_t id = N_SYNC_FIXED; id < s->n_kinds && !*ret; id++) {
        if (!str_eqc(group, s->kinds[id].group))
            continue;
        synced = true;
        *ret = find_object(s, id, event);
    }
    return synced;
}

/* Is the Event about a synced kind? *ret: its host object, NULL while it is not known. */
static bool find_involved(struct syncer *s, const cJSON *event, const struct host_object **ret)
{
    struct str version = json_str_at(event, "involvedObject.apiVersion");
    size_t slash = str_find(version, '/');

    *ret = NULL;
    return slash < version.n ? find_configured(s, str_sub(version, 0, slash), event, ret)
                             : find_core(s, event, ret);
}

/* --- writing --- */

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)err; /* Events are best effort */
    (void)object;
}

static bool says_the_same(const cJSON *now, const cJSON *event)
{
    static const char *const fields[] = {"count", "lastTimestamp", "message", "series"};

    for (size_t i = 0; i < COUNT(fields); i++) {
        const cJSON *a = json_get(now, fields[i]), *b = json_get(event, fields[i]);

        if (!a != !b || (a && !json_equal(a, b)))
            return false;
    }
    return true;
}

static void write_event(struct syncer *s, struct arena *a, cJSON *event)
{
    const struct resource *r = syncer_resource(s, "", "events");
    struct str ns = json_str_at(event, "metadata.namespace");
    struct str name = json_str_at(event, "metadata.name");
    const struct store_object *old = store_latest(s->store, r->storage, ns, name);
    const cJSON *now = old ? vapi_tree(a, old) : NULL;

    if (now && says_the_same(now, event))
        return; /* copied before a restart */
    if (!take_token(s->events))
        return;
    if (!now) {
        vapi_create(s->api, r, ns, event, on_written, NULL);
        return;
    }
    json_set_str(a, json_get(event, "metadata"), "resourceVersion",
                 json_str_at(now, "metadata.resourceVersion"));
    vapi_update(s->api, r, STR_NULL, event, on_written, NULL);
}

static void report(struct syncer *s, struct arena *a, const cJSON *host, const struct owner *owner)
{
    cJSON *event;

    sync_nodes_count(s);
    event = translate_event_up(a, &s->tenant, host, owner->ns, owner->name, owner->uid);
    if (event)
        write_event(s, a, event);
}

/* --- what is kept for a while --- */

static void forget(struct kept_list *list, struct kept *k)
{
    TAILQ_REMOVE(&list->items, k, place);
    list->n--;
    mem_free(k->host_uid);
    mem_free(k->text);
    mem_free(k);
}

/* The oldest that stays is the next to be forgotten; NULL: nothing is kept. */
static const struct kept *forget_until(struct kept_list *list, int64_t now_ms)
{
    struct kept *k;

    while ((k = TAILQ_FIRST(&list->items)) && k->until_ms <= now_ms)
        forget(list, k);
    return k;
}

static void on_forget(void *ctx)
{
    struct events_up *e = ctx;
    int64_t now = clock_mono_ms(vapi_clock(e->syncer->api));
    int64_t upto = syncer_is_closing(e->syncer) ? INT64_MAX : now;
    const struct kept *held = forget_until(&e->held, upto);
    const struct kept *departed = forget_until(&e->departed, upto);
    const struct kept *next = held;

    if (departed && (!held || departed->until_ms < held->until_ms))
        next = departed;
    e->armed = next;
    if (next)
        syncer_defer_for(e->syncer, on_forget, e, next->until_ms - now);
}

static void keep(struct events_up *e, struct kept_list *list, struct str host_uid, struct str text)
{
    struct kept *k = NEW(struct kept);

    if (list->n == list->max)
        forget(list, TAILQ_FIRST(&list->items));
    *k = (struct kept){.until_ms = clock_mono_ms(vapi_clock(e->syncer->api)) + KEPT_MS,
                       .host_uid = mem_strdup(host_uid),
                       .text = mem_strdup(text)};
    TAILQ_INSERT_TAIL(&list->items, k, place);
    list->n++;
    if (!e->armed)
        syncer_defer_for(e->syncer, on_forget, e, KEPT_MS);
    e->armed = true;
}

/* --- objects that come and go --- */

static bool owner_of(struct syncer *s, struct arena *a, const struct host_object *o,
                     struct owner *ret)
{
    cJSON *object = NULL;

    return !json_parse(a, o->bytes, &object, NULL) &&
           translate_owner(&s->tenant, object, &ret->ns, &ret->name, &ret->uid);
}

static bool owner_of_departed(struct events_up *e, struct str host_uid, struct owner *ret)
{
    struct kept *k;

    TAILQ_FOREACH(k, &e->departed.items, place)
    {
        struct str rest = str_c(k->text);

        if (!str_eqc(host_uid, k->host_uid))
            continue;
        ret->ns = str_cut(&rest, '/');
        ret->name = str_cut(&rest, '/');
        ret->uid = rest;
        return true;
    }
    return false;
}

static void report_held(struct syncer *s, struct arena *a, struct str host_uid,
                        const struct owner *owner)
{
    struct kept_list *list = &s->events->held;

    for (struct kept *k = TAILQ_FIRST(&list->items), *next; k; k = next) {
        cJSON *host = NULL;

        next = TAILQ_NEXT(k, place);
        if (!str_eqc(host_uid, k->host_uid))
            continue;
        if (!json_parse(a, str_c(k->text), &host, NULL))
            report(s, a, host, owner);
        forget(list, k);
    }
}

static void remember(struct syncer *s, struct arena *a, const struct host_object *gone)
{
    struct owner owner;

    if (owner_of(s, a, gone, &owner))
        keep(s->events, &s->events->departed, gone->uid,
             arena_printf(a, "%.*s/%.*s/%.*s", STR_F(owner.ns), STR_F(owner.name),
                          STR_F(owner.uid)));
}

void sync_events_object_changed(struct syncer *s, const struct host_object *now,
                                const struct host_object *before)
{
    bool gone = before && (!now || !str_eq(now->uid, before->uid));
    bool awaited = now && !TAILQ_EMPTY(&s->events->held.items);
    struct arena *a;
    struct owner owner;

    if (syncer_is_closing(s) || (!gone && !awaited))
        return;
    a = arena_new(0);
    if (gone)
        remember(s, a, before);
    if (awaited && owner_of(s, a, now, &owner))
        report_held(s, a, now->uid, &owner);
    arena_free(a);
}

/* --- the watch --- */

void sync_events_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                         const struct host_object *before)
{
    const struct host_object *about;
    struct owner owner;
    struct arena *a;
    cJSON *host = NULL;

    (void)id;
    (void)before;
    if (!now || syncer_is_closing(s))
        return; /* the tenant's copy expires by itself */
    a = arena_new(0);
    if (!json_parse(a, now->bytes, &host, NULL) && find_involved(s, host, &about)) {
        struct str uid = json_str_at(host, "involvedObject.uid");

        if (about ? owner_of(s, a, about, &owner) : owner_of_departed(s->events, uid, &owner))
            report(s, a, host, &owner);
        else if (!about)
            keep(s->events, &s->events->held, uid, now->bytes);
    }
    arena_free(a);
}

struct events_up *sync_events_up_new(struct syncer *s)
{
    struct events_up *e = NEW(struct events_up);

    e->syncer = s;
    TAILQ_INIT(&e->held.items);
    TAILQ_INIT(&e->departed.items);
    e->held.max = HELD_MAX;
    e->departed.max = DEPARTED_MAX;
    return e;
}

struct events_up *sync_events_up_free(struct events_up *e)
{
    if (e) {
        forget_until(&e->held, INT64_MAX);
        forget_until(&e->departed, INT64_MAX);
    }
    mem_free(e);
    return NULL;
}
