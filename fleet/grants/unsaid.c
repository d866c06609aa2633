/* SPDX-License-Identifier: Apache-2.0 */
/* Events of writes whose answer was lost. Why: a request that timed out may have been executed, and
 * whoever is granted or refused by it should read so. Must never say what did not happen, nor
 * anything twice: a write replaces one version of an object, so of all that were sent for a version
 * one happened at most, and the next version shows which. */
#include "unsaid.h"

#include <sys/queue.h>

#include <sublet/object.h>

enum { UNSAID_MOST = 1024 };

struct entry {
    TAILQ_ENTRY(entry) place;
    struct unsaid_events events;
};

struct unsaid {
    TAILQ_HEAD(, entry) entries;
    size_t n;
};

static struct str version_of(const cJSON *object)
{
    return json_str_at(object, "metadata.resourceVersion");
}

static void forget(struct unsaid *u, struct entry *e)
{
    TAILQ_REMOVE(&u->entries, e, place);
    u->n--;
    arena_free(e->events.a);
    mem_free(e);
}

static bool is_of_version(const struct entry *e, const cJSON *object)
{
    return str_eq(meta_uid(e->events.object), meta_uid(object)) &&
           str_eq(version_of(e->events.object), version_of(object));
}

static bool has_status(const cJSON *object, const cJSON *other)
{
    return json_equal(json_get(object, "status"), json_get(other, "status"));
}

bool fleet_unsaid_keep(struct unsaid *u, const struct unsaid_events *events)
{
    struct entry *e;

    TAILQ_FOREACH(e, &u->entries, place)
    {
        if (is_of_version(e, events->object) && has_status(e->events.object, events->object))
            break;
    }
    if (e || u->n >= UNSAID_MOST) {
        arena_free(events->a);
        return e != NULL;
    }
    e = NEW(struct entry);
    e->events = *events;
    TAILQ_INSERT_TAIL(&u->entries, e, place);
    u->n++;
    return true;
}

void fleet_unsaid_drop(struct unsaid *u, const cJSON *object)
{
    struct entry *next;

    for (struct entry *e = TAILQ_FIRST(&u->entries); e; e = next) {
        next = TAILQ_NEXT(e, place);
        if (is_of_version(e, object))
            forget(u, e);
    }
}

/* True: nothing more is to be learnt of it. */
static bool settle(const struct entry *e, struct arena *a, const struct unsaid_look *look)
{
    const cJSON *now;

    if (look->under_way(look->ctx, e->events.object))
        return false;
    now = look->see(look->ctx, a, e->events.kind, e->events.object);
    if (now && is_of_version(e, now))
        return false;
    if (now && str_eq(meta_uid(now), meta_uid(e->events.object)) &&
        has_status(now, e->events.object))
        look->say(look->ctx, &e->events);
    return true;
}

void fleet_unsaid_settle(struct unsaid *u, const struct unsaid_look *look)
{
    struct entry *next;

    for (struct entry *e = TAILQ_FIRST(&u->entries); e; e = next) {
        struct arena *a = arena_new(0);

        next = TAILQ_NEXT(e, place);
        if (settle(e, a, look))
            forget(u, e);
        arena_free(a);
    }
}

struct unsaid *fleet_unsaid_new(void)
{
    struct unsaid *u = NEW(struct unsaid);

    TAILQ_INIT(&u->entries);
    return u;
}

struct unsaid *fleet_unsaid_free(struct unsaid *u)
{
    while (u && !TAILQ_EMPTY(&u->entries))
        forget(u, TAILQ_FIRST(&u->entries));
    mem_free(u);
    return NULL;
}
