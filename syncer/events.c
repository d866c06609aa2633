/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the host about the tenant's pods, claims and services, told to the tenant under its own
 * names. Nothing is kept of them here; how many are written is bounded, since a tenant can provoke
 * any number. Must never pass on an event about an object that is not this tenant's by its host
 * uid. */
#include "engine.h"

#include <string.h>

#define PER_SECOND 20
#define AT_ONCE    200

struct events_up {
    struct syncer *syncer;
    double tokens;
    int64_t tokens_ms;
};

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

/* --- whose is it --- */

static const struct {
    const char *kind;
    enum sync_id id;
} INVOLVED[] = {
    {"Pod", SYNC_PODS},
    {"PersistentVolumeClaim", SYNC_CLAIMS},
    {"Service", SYNC_SERVICES},
};

/* The host object it is about, as a tree, or NULL. */
static cJSON *involved_object(struct syncer *s, struct arena *a, const cJSON *event)
{
    const cJSON *involved = json_get(event, "involvedObject");
    struct str kind = json_str(json_get(involved, "kind"));
    struct str uid = json_str(json_get(involved, "uid"));

    for (size_t i = 0; i < sizeof(INVOLVED) / sizeof(*INVOLVED); i++) {
        const struct host_object *o;
        cJSON *tree = NULL;

        if (!str_eqc(kind, INVOLVED[i].kind))
            continue;
        o = reflector_get(s->watches[INVOLVED[i].id].reflector,
                          json_str(json_get(involved, "name")));
        if (o && str_eq(o->uid, uid) && !json_parse(a, o->bytes, &tree, NULL))
            return tree;
    }
    return NULL;
}

/* --- writing --- */

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)err; /* an event that cannot be written is no reason to do anything */
    (void)object;
}

static bool says_the_same(const cJSON *now, const cJSON *event)
{
    static const char *const fields[] = {"count", "lastTimestamp", "message", "series"};

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
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
        return; /* told before we were restarted */
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

static void tell(struct syncer *s, struct arena *a, const struct host_object *now)
{
    struct str ns, name, uid;
    cJSON *host = NULL, *object, *event;

    if (json_parse(a, now->bytes, &host, NULL))
        return;
    object = involved_object(s, a, host);
    if (!object || !translate_owner(&s->tenant, object, &ns, &name, &uid))
        return;
    event = translate_event_up(a, &s->tenant, host, ns, name, uid);
    if (event)
        write_event(s, a, event);
}

void events_changed(struct syncer *s, const struct host_object *now,
                    const struct host_object *before)
{
    struct arena *a;

    (void)before;
    if (!now || s->closing)
        return; /* the tenant's copy has a life of its own */
    a = arena_new(0);
    tell(s, a, now);
    arena_free(a);
}

struct events_up *events_up_new(struct syncer *s)
{
    struct events_up *e = NEW(struct events_up);

    e->syncer = s;
    e->tokens = AT_ONCE;
    e->tokens_ms = clock_mono_ms(vapi_clock(s->api));
    return e;
}

struct events_up *events_up_free(struct events_up *e)
{
    mem_free(e);
    return NULL;
}
