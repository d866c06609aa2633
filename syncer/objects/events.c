/* SPDX-License-Identifier: Apache-2.0 */
/* Host Events about the tenant's pods, claims, Services and configured kinds, copied up with names translated back.
 * Their rate is bounded, since a tenant can provoke any number. Events and objects arrive by
 * separate watches, in any order: an Event ahead of its object is held until the object is known,
 * bounded in number and time. Must never copy an Event unless the host uid of its object proves it
 * this tenant's. */

#include "objects/objects.h"
#include "nodes/nodes.h"
#include "pods/pods.h"
#include <string.h>
#include <sys/queue.h>

#define PER_SECOND 20
#define AT_ONCE    200
#define HELD_MAX   128
#define HELD_MS    30000

struct held {
    TAILQ_ENTRY(held) place;
    int64_t until_ms;
    char *uid; /* of its involvedObject, on the host */
    char *bytes;
};
TAILQ_HEAD(held_list, held);

struct events_up {
    struct syncer *syncer;
    double tokens;
    int64_t tokens_ms;
    struct held_list held; /* oldest first */
    size_t n_held;
    bool armed; /* on_forget() is deferred */
};

/* Token bucket. */
static bool take_token(struct events_up *e)
{
    int64_t now = clock_mono_ms(vapi_clock(e->syncer->api));

    e->tokens += (double)(now - e->tokens_ms) * PER_SECOND / 1000.0;
    e->tokens_ms = now;
    if (e->tokens > AT_ONCE)
        e->tokens = AT_ONCE;
    if (e->tokens < 1)
        return false;
    e->tokens -= 1;
    return true;
}

/* --- the involved object --- */

static const struct {
    const char *kind;
    enum sync_id id;
} INVOLVED[] = {
    {"Pod", SYNC_PODS},
    {"PersistentVolumeClaim", SYNC_CLAIMS},
    {"Service", SYNC_SERVICES},
};

static const struct host_object *find_object(struct syncer *s, size_t id, const cJSON *event)
{
    const struct host_object *o =
        reflector_get(s->watches[id].reflector, json_str_at(event, "involvedObject.name"));

    return o && str_eq(o->uid, json_str_at(event, "involvedObject.uid")) ? o : NULL;
}

/* Of a kind that sync.toHost sends down: its host uid proves the object, whatever its kind. */
static bool find_configured(struct syncer *s, const cJSON *event, const struct host_object **ret)
{
    struct str version = json_str_at(event, "involvedObject.apiVersion");
    struct str group = str_cut(&version, '/');
    bool synced = false;

    for (size_t id = N_SYNC_FIXED; version.p && id < s->n_kinds && !*ret; id++) {
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
    struct str kind = json_str_at(event, "involvedObject.kind");

    *ret = NULL;
    for (size_t i = 0; i < COUNT(INVOLVED); i++) {
        if (!str_eqc(kind, INVOLVED[i].kind))
            continue;
        *ret = find_object(s, (size_t)INVOLVED[i].id, event);
        return true;
    }
    return find_configured(s, event, ret);
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

static void report(struct syncer *s, struct arena *a, const cJSON *host,
                   const struct host_object *about)
{
    struct str ns, name, uid;
    cJSON *object = NULL, *event;

    if (json_parse(a, about->bytes, &object, NULL) ||
        !translate_owner(&s->tenant, object, &ns, &name, &uid))
        return;
    sync_nodes_count(s);
    event = translate_event_up(a, &s->tenant, host, ns, name, uid);
    if (event)
        write_event(s, a, event);
}

/* --- Events ahead of their objects --- */

static void forget(struct events_up *e, struct held *h)
{
    TAILQ_REMOVE(&e->held, h, place);
    e->n_held--;
    mem_free(h->uid);
    mem_free(h->bytes);
    mem_free(h);
}

static void on_forget(void *ctx)
{
    struct events_up *e = ctx;
    int64_t now = clock_mono_ms(vapi_clock(e->syncer->api));
    struct held *h;

    e->armed = false;
    while ((h = TAILQ_FIRST(&e->held)) && (h->until_ms <= now || e->syncer->closing))
        forget(e, h);
    if (!h)
        return;
    e->armed = true;
    syncer_defer_for(e->syncer, on_forget, e, h->until_ms - now);
}

static void hold(struct events_up *e, struct str uid, struct str bytes)
{
    struct held *h = NEW(struct held);

    if (e->n_held == HELD_MAX)
        forget(e, TAILQ_FIRST(&e->held));
    *h = (struct held){.until_ms = clock_mono_ms(vapi_clock(e->syncer->api)) + HELD_MS,
                       .uid = mem_strdup(uid),
                       .bytes = mem_strdup(bytes)};
    TAILQ_INSERT_TAIL(&e->held, h, place);
    e->n_held++;
    if (!e->armed)
        syncer_defer_for(e->syncer, on_forget, e, HELD_MS);
    e->armed = true;
}

static void report_held(struct syncer *s, const struct held *h, const struct host_object *about)
{
    struct arena *a = arena_new(0);
    cJSON *host = NULL;

    if (!json_parse(a, str_c(h->bytes), &host, NULL))
        report(s, a, host, about);
    arena_free(a);
}

void sync_events_object_known(struct syncer *s, const struct host_object *now)
{
    struct events_up *e = s->events;

    if (!now || s->closing)
        return;
    for (struct held *h = TAILQ_FIRST(&e->held), *next; h; h = next) {
        next = TAILQ_NEXT(h, place);
        if (!str_eqc(now->uid, h->uid))
            continue;
        report_held(s, h, now);
        forget(e, h);
    }
}

/* --- the watch --- */

void sync_events_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                         const struct host_object *before)
{
    const struct host_object *about;
    struct arena *a;
    cJSON *host = NULL;

    (void)id;
    (void)before;
    if (!now || s->closing)
        return; /* the tenant's copy expires by itself */
    a = arena_new(0);
    if (json_parse(a, now->bytes, &host, NULL) || !find_involved(s, host, &about))
        about = NULL;
    else if (!about)
        hold(s->events, json_str_at(host, "involvedObject.uid"), now->bytes);
    if (about)
        report(s, a, host, about);
    arena_free(a);
}

struct events_up *sync_events_up_new(struct syncer *s)
{
    struct events_up *e = NEW(struct events_up);

    e->syncer = s;
    TAILQ_INIT(&e->held);
    e->tokens = AT_ONCE;
    e->tokens_ms = clock_mono_ms(vapi_clock(s->api));
    return e;
}

struct events_up *sync_events_up_free(struct events_up *e)
{
    while (e && !TAILQ_EMPTY(&e->held))
        forget(e, TAILQ_FIRST(&e->held));
    mem_free(e);
    return NULL;
}
