/* SPDX-License-Identifier: Apache-2.0 */
/* Events on GPUBindings and GPUPools. They follow from the conditions that a write changes, so that
 * a process which starts anew repeats none. A reason of an object is one Event of the host: what
 * repeats within ten minutes raises its count, with the message of the last time. Must never name a
 * tenant in an Event of another's namespace: a message is that of a condition of the object, or
 * made of its own quantities. */
#include "events.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/token_bucket.h>

#define BOOK_MAGIC   0x65766274u
#define MOST_OBJECTS 2000
#define MOST_REASONS 16
#define REPEAT_US    INT64_C(600000000)
#define REASON_BURST 20
#define REASON_US    INT64_C(60000000) /* for one more */
#define ALL_BURST    1000
#define ALL_US       INT64_C(100000)
#define MESSAGE_MOST 1000
#define NAME_MOST    200
#define COMPONENT    "sublet-fleet"
#define API_VERSION  "sublet.dev/v1alpha1"

/* --- what is worth one --- */

/* A condition whose change is an Event. */
static const struct rule {
    const char *kind, *condition, *good; /* good: the status of a healthy object */
    const char *when_bad;                /* the reason; NULL: that of the condition */
    const char *when_good, *text;        /* NULL: no Event */
    const char *hidden; /* a reason whose message names a tenant, or NULL; and what is said */
    const char *instead;
} RULES[] = {
    {"GPUBinding", "Ready", "True", "Refused", "Granted", "its guarantee counts"},
    {"GPUBinding", "Reclaiming", "False", NULL, "Reclaimed", "nothing is left to be given back"},
    {"GPUBinding", "Bounded", "True", NULL, NULL, NULL},
    {"GPUBinding", "BudgetAccepted", "True", NULL, NULL, NULL},
    {"GPUBinding", "BudgetWarning", "False", NULL, NULL, NULL},
    {"GPUBinding", "BudgetExceeded", "False", NULL, "WithinBudget",
     "less than the budget is spent"},
    {"GPUBinding", "BudgetForecastExceeded", "False", NULL, "ForecastWithinBudget",
     "at the rate of the last 24 hours the month costs no more than the budget"},
    {"GPUPool", "Ready", "True", NULL, "Served", "nodes of it have GPUs"},
    {"GPUPool", "Overcommitted", "False", "Overcommitted", "WithinCapacity", "guarantees fit",
     "Refused", "a guarantee does not fit beside older ones: the GPUPool's status says whose"},
    {"GPUPool", "Fenced", "True", NULL, NULL, NULL, "WriteRefused",
     "the host refuses a write for a binding: the GPUPool's status says which"},
    {"GPUPool", "NodesHealthy", "True", "NodesUnhealthy", "NodesRecovered", "all are healthy"},
    {"GPUPool", "Untainted", "False", "Untainted", "Tainted", "all nodes have a taint"},
    {"GPUPool", "Misused", "False", NULL, NULL, NULL},
    {"GPUPool", "Accepted", "True", NULL, "Accepted", "its maintenance is as specified"},
    {"GPUPool", "Maintenance", "False", NULL, "MaintenanceOver", "the pool is open"},
    {"GPUPool", "Converting", "False", "Converting", "Converted", "nodes have its devices"},
};

struct list {
    struct arena *a;
    struct fleet_event *events;
    size_t n;
};

static void add(struct list *l, const char *type, const char *reason, struct str message)
{
    if (l->n < FLEET_EVENTS_MOST)
        l->events[l->n++] =
            (struct fleet_event){type, reason, arena_str(l->a, str_clip(message, MESSAGE_MOST))};
}

/* Of a new object it is said that it is ready, and what is not as it should be. */
static void condition_event(struct list *l, const struct rule *r, const cJSON *before,
                            const cJSON *now)
{
    const cJSON *was = condition_of(before, r->condition), *is = condition_of(now, r->condition);
    struct str reason = json_str_at(is, "reason"), message = json_str_at(is, "message");
    bool good = str_eq(json_str_at(is, "status"), str_c(r->good));
    bool same = str_eq(json_str_at(was, "status"), json_str_at(is, "status"));

    if (!is)
        return;
    if (good) {
        if (!same && r->when_good && (was || !strcmp(r->condition, "Ready")))
            add(l, "Normal", r->when_good, str_c(r->text));
        return;
    }
    if (same && str_eq(json_str_at(was, "reason"), reason) &&
        str_eq(json_str_at(was, "message"), message))
        return;
    if (r->hidden && str_eqc(reason, r->hidden))
        message = str_c(r->instead);
    if (r->when_bad)
        message =
            arena_printf(l->a, "%.*s%s%.*s", STR_F(reason), message.n ? ": " : "", STR_F(message));
    add(l, "Warning", r->when_bad ? r->when_bad : arena_cstr(l->a, reason), message);
}

static struct str quantity(const cJSON *object, const char *path)
{
    struct str text = json_str_at(object, path);

    return text.n ? text : STR("0");
}

static void grant_events(struct list *l, const cJSON *before, const cJSON *now)
{
    struct str was = quantity(before, "status.grant"), is = quantity(now, "status.grant");
    struct str pool = json_str_at(now, "spec.pool");

    if (!str_eq(was, is))
        add(l, "Normal", "GrantChanged",
            arena_printf(l->a, "%.*s GPUs of GPUPool \"%.*s\" are granted, before %.*s", STR_F(is),
                         STR_F(pool), STR_F(was)));
}

/* The notice, and each one that is for more. */
static void notice_events(struct list *l, const cJSON *before, const cJSON *now)
{
    struct str at = json_str_at(now, "status.reclaim.notBefore");

    if (at.n && !str_eq(at, json_str_at(before, "status.reclaim.notBefore")))
        add(l, "Warning", "Reclaiming",
            arena_printf(l->a, "%.*s GPUs are to be given back: pods are ended from %.*s on",
                         STR_F(quantity(now, "status.reclaim.gpus")), STR_F(at)));
}

static void lending_events(struct list *l, const cJSON *before, const cJSON *now)
{
    struct str was = quantity(before, "status.lent"), is = quantity(now, "status.lent");
    struct str until = json_str_at(now, "status.lendPause.until");

    if (until.n && !str_eq(until, json_str_at(before, "status.lendPause.until")))
        add(l, "Normal", "LentTakenBack",
            arena_printf(l->a,
                         "of its guarantee %.*s GPUs are lent, before %.*s; until %.*s at "
                         "most %.*s",
                         STR_F(is), STR_F(was), STR_F(until),
                         STR_F(quantity(now, "status.lendPause.lend"))));
    else if (!str_eq(was, is))
        add(l, "Normal", "Lent",
            arena_printf(l->a, "of its guarantee %.*s GPUs are lent, before %.*s", STR_F(is),
                         STR_F(was)));
}

size_t fleet_events_of(struct arena *a, const char *kind, const cJSON *before, const cJSON *now,
                       struct fleet_event *ret)
{
    struct list l = {a, ret, 0};
    bool binding = !strcmp(kind, "GPUBinding");

    for (size_t i = 0; i < COUNT(RULES); i++) {
        bool notice = !strcmp(RULES[i].condition, "Reclaiming") && json_path(now, "status.reclaim");

        if (!strcmp(RULES[i].kind, kind) && !notice)
            condition_event(&l, &RULES[i], before, now);
    }
    if (binding) {
        grant_events(&l, before, now);
        notice_events(&l, before, now);
        lending_events(&l, before, now);
    }
    return l.n;
}

/* --- how often --- */

static const struct token_rate OF_REASON = {.burst = REASON_BURST, .n = 1, .period = REASON_US};
static const struct token_rate OF_ALL = {.burst = ALL_BURST, .n = 1, .period = ALL_US};

struct said {
    char reason[64];
    struct str path; /* of the Event; heap */
    int64_t first_us, last_us, count;
    struct token_bucket bucket; /* of its own: what a tenant can provoke uses up no other's */
};
struct said_of {
    TAILQ_ENTRY(said_of) all; /* the one that was used last is the last */
    struct map_entry by_uid;
    struct str uid;
    struct said said[MOST_REASONS];
    size_t n;
};
struct event_book {
    unsigned magic;
    TAILQ_HEAD(said_list, said_of) objects;
    struct map by_uid;
    struct token_bucket bucket;
    uint64_t dropped, number;
};

static void forget(struct event_book *b, struct said_of *o)
{
    TAILQ_REMOVE(&b->objects, o, all);
    map_remove(&b->by_uid, &o->by_uid);
    for (size_t i = 0; i < o->n; i++)
        mem_free(o->said[i].path.p);
    mem_free(o->uid.p);
    mem_free(o);
}

static struct said_of *object_of(struct event_book *b, struct str uid)
{
    struct map_entry *e = map_get(&b->by_uid, uid);
    struct said_of *o = e ? CONTAINER(e, struct said_of, by_uid) : NULL;

    if (o) {
        TAILQ_REMOVE(&b->objects, o, all);
    } else {
        if (map_count(&b->by_uid) >= MOST_OBJECTS)
            forget(b, TAILQ_FIRST(&b->objects));
        o = NEW(struct said_of);
        o->uid = mem_str(uid);
        map_put(&b->by_uid, &o->by_uid, o->uid);
    }
    TAILQ_INSERT_TAIL(&b->objects, o, all);
    return o;
}

/* The place of a reason: its own, an unused one, or that of the oldest. */
static struct said *place_of(struct said_of *o, const char *reason)
{
    struct said *oldest = &o->said[0];

    for (size_t i = 0; i < o->n; i++) {
        if (!strcmp(o->said[i].reason, reason))
            return &o->said[i];
        if (o->said[i].last_us < oldest->last_us)
            oldest = &o->said[i];
    }
    if (o->n < MOST_REASONS)
        oldest = &o->said[o->n++];
    mem_free(oldest->path.p);
    *oldest = (struct said){0};
    snprintf(oldest->reason, sizeof(oldest->reason), "%s", reason);
    return oldest;
}

/* --- requests --- */

static void repeat(struct arena *a, const struct said *s, const struct fleet_event *event,
                   struct fleet_event_request *ret)
{
    cJSON *patch = json_object(a, JSON_I64("count", s->count), JSON("message", event->message),
                               JSON("lastTimestamp", time_format_s(a, s->last_us / 1000000)));

    *ret = (struct fleet_event_request){.method = "PATCH",
                                        .content_type = "application/merge-patch+json",
                                        .path = arena_str(a, s->path),
                                        .event = arena_str(a, s->path),
                                        .body = json_text(a, patch)};
}

/* Events of cluster-scoped objects are in the namespace "default". */
static void create(struct event_book *b, struct arena *a, struct said *s, const char *kind,
                   const cJSON *object, const struct fleet_event *event,
                   struct fleet_event_request *ret)
{
    struct str own = meta_ns(object), ns = own.n ? own : STR("default");
    struct str at = time_format_s(a, s->last_us / 1000000);
    struct str collection = arena_printf(a, "/api/v1/namespaces/%.*s/events", STR_F(ns));
    struct str name = arena_printf(a, "%.*s.%llx", STR_F(str_clip(meta_name(object), NAME_MOST)),
                                   (unsigned long long)s->first_us * 1000 +
                                       (unsigned long long)(b->number++ % 1000));
    cJSON *involved = json_object(a, JSON("apiVersion", API_VERSION), JSON("kind", kind),
                                  JSON("name", meta_name(object)), JSON_NONEMPTY("namespace", own),
                                  JSON("uid", meta_uid(object)));
    cJSON *body =
        json_object(a, JSON("apiVersion", "v1"), JSON("kind", "Event"),
                    JSON("metadata", json_object(a, JSON("name", name), JSON("namespace", ns))),
                    JSON("involvedObject", involved), JSON("type", event->type),
                    JSON("reason", event->reason), JSON("message", event->message),
                    JSON("source", json_object(a, JSON("component", COMPONENT))),
                    JSON("reportingComponent", COMPONENT), JSON("firstTimestamp", at),
                    JSON("lastTimestamp", at), JSON_I64("count", s->count));

    s->path = mem_str(arena_printf(a, "%.*s/%.*s", STR_F(collection), STR_F(name)));
    *ret = (struct fleet_event_request){.method = "POST",
                                        .path = collection,
                                        .event = arena_str(a, s->path),
                                        .body = json_text(a, body)};
}

static bool drop(struct event_book *b)
{
    b->dropped++;
    return false;
}

bool fleet_event_request(struct event_book *b, struct arena *a, const char *kind,
                         const cJSON *object, const struct fleet_event *event, int64_t now_us,
                         struct fleet_event_request *ret)
{
    struct said *s = place_of(object_of(b, meta_uid(object)), event->reason);

    assert(b->magic == BOOK_MAGIC);
    if (!token_bucket_has(&b->bucket, &OF_ALL, now_us, 1) ||
        !token_bucket_take(&s->bucket, &OF_REASON, now_us) ||
        !token_bucket_take(&b->bucket, &OF_ALL, now_us))
        return drop(b);
    if (s->path.n && now_us - s->last_us < REPEAT_US) {
        s->count++;
        s->last_us = now_us;
        repeat(a, s, event, ret);
        return true;
    }
    s->path.p = mem_free(s->path.p);
    s->first_us = s->last_us = now_us;
    s->count = 1;
    create(b, a, s, kind, object, event, ret);
    return true;
}

void fleet_event_expired(struct event_book *b, struct str path)
{
    struct said_of *o;

    TAILQ_FOREACH(o, &b->objects, all)
    {
        for (size_t i = 0; i < o->n; i++)
            if (str_eq(o->said[i].path, path)) {
                mem_free(o->said[i].path.p);
                o->said[i].path = STR_NULL;
            }
    }
}

uint64_t fleet_event_book_dropped(const struct event_book *b)
{
    return b->dropped;
}

/* --- life --- */

struct event_book *fleet_event_book_new(void)
{
    struct event_book *b = NEW(struct event_book);

    b->magic = BOOK_MAGIC;
    TAILQ_INIT(&b->objects);
    return b;
}

struct event_book *fleet_event_book_free(struct event_book *b)
{
    if (!b)
        return NULL;
    assert(b->magic == BOOK_MAGIC);
    while (!TAILQ_EMPTY(&b->objects))
        forget(b, TAILQ_FIRST(&b->objects));
    b->magic = 0;
    return mem_free(b);
}
