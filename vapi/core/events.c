/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Events about objects, recorded by the controllers. A repeated event increments the count of one
 * object. Each source has a burst and then a low rate per object. Both caches are tables of a fixed
 * size, where an entry replaces the one it collides with: the cost is a second Event object, never
 * memory. Losing an event is acceptable; delaying a controller is not. Source: client-go
 * tools/record/events_cache.go. */
#include "core.h"

#include <stdio.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/token_bucket.h>

#define SLOTS       256u
#define BURST       25
#define REFILL_MS   300000
#define MAX_MESSAGE 1024
#define FORGET_MS   (10 * 60 * 1000) /* upstream's aggregation window */

struct seen {
    uint64_t key;
    int64_t at_ms, count;
    char *ns, *name; /* of the Event */
};

struct bucket {
    uint64_t key;
    struct token_bucket tokens;
};

struct events {
    struct vapi *api;
    uint64_t seed;
    int64_t last_ns; /* timestamp in the newest name */
    struct seen seen[SLOTS];
    struct bucket buckets[SLOTS];
};

struct events *events_new(struct vapi *api)
{
    struct events *e = NEW(struct events);

    e->api = api;
    e->seed = rng_u64(vapi_rng(api));
    return e;
}

struct events *events_free(struct events *e)
{
    if (!e)
        return NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        mem_free(e->seen[i].ns);
        mem_free(e->seen[i].name);
    }
    return mem_free(e);
}

/* ---- keys ---- */

static uint64_t mix(const struct events *e, uint64_t so_far, struct str s)
{
    return str_hash(s, so_far ^ e->seed) * 0x9E3779B97F4A7C15u + s.n;
}

static uint64_t object_key(const struct events *e, const cJSON *reference, const char *component)
{
    static const char *const parts[] = {"kind", "apiVersion", "namespace", "name", "uid"};
    uint64_t key = mix(e, 1, str_c(component));

    for (size_t i = 0; i < COUNT(parts); i++)
        key = mix(e, key, json_str(json_get(reference, parts[i])));
    return key;
}

static bool take_token(struct events *e, uint64_t key, int64_t now)
{
    static const struct token_rate rate = {.burst = BURST, .n = 1, .period = REFILL_MS};
    struct bucket *b = &e->buckets[key % SLOTS];

    if (b->key != key)
        *b = (struct bucket){.key = key};
    return token_bucket_take(&b->tokens, &rate, now);
}

/* ---- the object ---- */

/* Accepts an object, or a reference to one. */
static cJSON *make_reference(struct arena *a, const cJSON *involved)
{
    const cJSON *metadata = json_get(involved, "metadata"), *from = metadata ? metadata : involved;

    return json_object(
        a, JSON_NONEMPTY("kind", json_str(json_get(involved, "kind"))),
        JSON_NONEMPTY("namespace", json_str(json_get(from, "namespace"))),
        JSON_NONEMPTY("name", json_str(json_get(from, "name"))),
        JSON_NONEMPTY("uid", json_str(json_get(from, "uid"))),
        JSON_NONEMPTY("apiVersion", json_str(json_get(involved, "apiVersion"))),
        JSON_NONEMPTY("resourceVersion", json_str(json_get(from, "resourceVersion"))),
        JSON_NONEMPTY("fieldPath", json_str(json_get(involved, "fieldPath"))));
}

struct occurrence {
    const cJSON *reference;
    const char *type, *reason, *component;
    struct str message, ns;
    int64_t now_us, name_ns;
};

static cJSON *make_event(struct arena *a, const struct occurrence *o)
{
    struct str at = time_format_s(a, o->now_us / 1000000);
    /* Nanoseconds, as upstream; ours only grow, so that no two names meet. */
    struct str name = arena_printf(a, "%.*s.%llx",
                                   STR_F(str_sub(json_str(json_get(o->reference, "name")), 0, 230)),
                                   (unsigned long long)o->name_ns);

    return json_object(
        a, JSON("kind", "Event"), JSON("apiVersion", "v1"),
        JSON("metadata", json_object(a, JSON("name", name), JSON("namespace", o->ns))),
        JSON("involvedObject", json_copy(a, o->reference)), JSON("reason", o->reason),
        JSON("message", o->message),
        JSON("source", json_object(a, JSON("component", o->component))), JSON("firstTimestamp", at),
        JSON("lastTimestamp", at), JSON_I64("count", 1), JSON("type", o->type),
        JSON("eventTime", json_new_null(a)), JSON("reportingComponent", o->component),
        JSON("reportingInstance", ""));
}

/* ---- recording ---- */

/* No caller waits for an event: it may be refused (its namespace is terminating) or deleted. */
static void on_recorded(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)err;
    (void)object;
}

static void record(struct events *e, struct arena *a, uint64_t key, const struct occurrence *o)
{
    struct vapi *api = e->api;
    const struct resource *r = registry_find(api->registry, STR(""), STR("v1"), STR("events"));
    struct seen *s = &e->seen[key % SLOTS];
    int64_t now_ms = clock_mono_ms(vapi_clock(api));
    cJSON *event;

    if (!r)
        return;
    if (s->name && s->key == key && now_ms - s->at_ms < FORGET_MS &&
        store_latest(api->o.store, r->storage, str_c(s->ns), str_c(s->name))) {
        s->at_ms = now_ms;
        s->count++;
        cJSON *count = json_object(a, JSON_I64("count", s->count),
                                   JSON("lastTimestamp", time_format_s(a, o->now_us / 1000000)));
        vapi_patch(api, r, STR_NULL, str_c(s->ns), str_c(s->name), count, on_recorded, NULL);
        return;
    }
    event = make_event(a, o);

    mem_free(s->ns);
    mem_free(s->name);
    *s = (struct seen){key, now_ms, 1, mem_strdup(json_str_at(event, "metadata.namespace")),
                       mem_strdup(json_str_at(event, "metadata.name"))};

    vapi_create(api, r, o->ns, event, on_recorded, NULL);
}

void vapi_event(struct vapi *api, const cJSON *involved, const char *type, const char *reason,
                struct str message, const char *component)
{
    struct events *e = api->events;
    struct arena *a;
    struct occurrence o = {.type = type, .reason = reason, .component = component};
    uint64_t key;

    if (api->state >= API_STOPPING)
        return;
    a = arena_new(0);
    o.reference = make_reference(a, involved);
    o.message = str_sub(message, 0, MAX_MESSAGE);
    o.ns = json_str(json_get(o.reference, "namespace"));
    if (!o.ns.n)
        o.ns = STR("default");
    o.now_us = clock_wall_us(vapi_clock(api));
    if (e->last_ns < o.now_us * 1000)
        e->last_ns = o.now_us * 1000;
    o.name_ns = e->last_ns++;

    key = object_key(e, o.reference, component);
    if (take_token(e, key, clock_mono_ms(vapi_clock(api)))) {
        key = mix(e, mix(e, mix(e, key, str_c(type)), str_c(reason)), o.message);
        record(e, a, key, &o);
    }
    arena_free(a);
}
