/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the host that this process makes of itself, and that stand for no virtual
 * object: what kubeconfigs.c and demand.c report. Retried until they are written, and written
 * again when another client of the host deletes or changes them, ever more slowly where that goes
 * on. Must never overwrite one that is not this cluster's.
 *
 *   IDLE --GET, then POST or PATCH--> SENDING --current, or written--> DONE
 *     ^                                 | failed: timer; not ours       | other data, renewed, or
 *     '---------------------------------+-------------------------------' changed by another
 *   IDLE, DONE --sync_publisher_close()--> CLOSED */

#include "objects/objects.h"
#include "core/leader.h"
#include "core/life.h"
#include <assert.h>

#include <uv.h>

#define PUBLISHER_MAGIC 0x7075626cu
#define RETRY_MS        5000
#define MEND_MS         1000             /* from a change of another client to a look at it */
#define FIGHT_MS        (10 * 60 * 1000) /* mended twice in this time: the next look is later */
#define FIGHT_MOST      6                /* ... twice as late each time, up to a minute */
#define MANAGER         "sublet"
#define LABEL_MANAGER   "app.kubernetes.io/managed-by"
#define LABEL_INSTANCE  "app.kubernetes.io/instance"

enum publisher_state { PUBLISHER_IDLE, PUBLISHER_SENDING, PUBLISHER_DONE, PUBLISHER_CLOSED };

#define TO(state) (1u << PUBLISHER_##state)
static const unsigned TRANSITIONS[] = {
    [PUBLISHER_IDLE] = TO(SENDING) | TO(CLOSED),
    [PUBLISHER_SENDING] = TO(IDLE) | TO(DONE),
    [PUBLISHER_DONE] = TO(IDLE) | TO(CLOSED),
    [PUBLISHER_CLOSED] = 0,
};

struct publisher {
    unsigned magic;
    enum publisher_state state;
    struct syncer *syncer;
    const struct publication *what;
    void *ctx;
    uv_timer_t timer;
    struct str ns, name; /* heap */
    bool wanted;
    bool replaced;           /* since the pending requests were made */
    struct reflector *watch; /* of this object alone; NULL: it was never read */
    uint64_t revision;       /* of the object as it was read or written last; 0: unknown */
    bool mending;            /* what is written now, another client undid */
    uint64_t mended_ms;      /* of the loop */
    unsigned fights;
};

static void send_read(struct publisher *p);

static void move(struct publisher *p, enum publisher_state to)
{
    assert(TRANSITIONS[p->state] & (1u << to));
    p->state = to;
}

static void on_timer(uv_timer_t *timer)
{
    struct publisher *p = timer->data;

    assert(p->magic == PUBLISHER_MAGIC);
    send_read(p);
}

static void retry(struct publisher *p)
{
    move(p, PUBLISHER_IDLE);
    uv_timer_start(&p->timer, on_timer, RETRY_MS, 0);
}

static void note(struct publisher *p, const char *reason, const char *message, struct str detail)
{
    sync_dialogue_note(p->syncer, p->what->duty, reason, str_c(message), detail);
}

static struct str path_of(const struct publisher *p, struct arena *a, bool named)
{
    return sync_path_in(a, p->syncer, p->what->id, p->ns, named ? p->name : STR(""), "");
}

/* --- what other clients do to it --- */

static void on_mend(uv_timer_t *timer)
{
    struct publisher *p = timer->data;

    assert(p->magic == PUBLISHER_MAGIC);
    if (p->state == PUBLISHER_DONE) {
        move(p, PUBLISHER_IDLE);
        p->mending = true;
    }
    send_read(p);
}

/* A write of our own is seen before or after its answer. */
static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct publisher *p = ctx;

    if (!str_eq((now ? now : before)->name, p->name) || (now && now->revision == p->revision))
        return;
    if (p->state == PUBLISHER_SENDING)
        p->replaced = true;
    else
        uv_timer_start(&p->timer, on_mend, (uint64_t)MEND_MS << p->fights, 0);
}

static void on_went_back(void *ctx)
{
    reflector_restart(((struct publisher *)ctx)->watch);
}

/* Without the right to it, which an earlier chart did not give in other namespaces, it is mended
 * when it is renewed. */
static void watch(struct publisher *p)
{
    struct reflector_options o = {.host = p->syncer->host,
                                  .metadata_only = true,
                                  .changed = on_changed,
                                  .went_back = on_went_back,
                                  .ctx = p};
    struct arena *a;

    if (p->watch)
        return;
    a = arena_new(0);
    o.path = path_of(p, a, false);
    o.field_selector = arena_printf(a, "metadata.name=%.*s", STR_F(p->name));
    p->watch = reflector_open(&o);
    arena_free(a);
}

static void count_fight(struct publisher *p)
{
    uint64_t now = uv_now(vapi_loop(p->syncer->api));

    if (!p->mending)
        return;
    if (p->mended_ms && now - p->mended_ms < FIGHT_MS)
        p->fights += p->fights < FIGHT_MOST;
    else
        p->fights = 0;
    p->mended_ms = now;
    p->mending = false;
}

static void note_revision(struct publisher *p, const cJSON *object)
{
    p->revision = 0;
    (void)str_to_u64(json_str_at(object, "metadata.resourceVersion"), &p->revision);
}

/* --- requests --- */

static void published(struct publisher *p)
{
    note(p, NULL, "", STR_NULL);
    p->mending = false;
    move(p, p->replaced ? PUBLISHER_IDLE : PUBLISHER_DONE);
    send_read(p);
}

static void failed(struct publisher *p, const struct err *err)
{
    note(p, p->what->failed, p->what->failed_message, err->message);
    retry(p);
}

static void on_written(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct publisher *p = ctx;
    struct arena *a = arena_new(0);
    cJSON *object = NULL;

    if (!err && !json_parse(a, answer->body, &object, NULL))
        note_revision(p, object);
    arena_free(a);
    if (err && (err->kind == &ERR_CONFLICT || err->kind == &ERR_ALREADY_EXISTS))
        retry(p); /* written concurrently: whose it is by now is to be read */
    else if (err)
        failed(p, err);
    else
        published(p);
}

/* Only this version of one that exists: another may be of another owner. */
static void name_version(struct arena *a, cJSON *metadata, const cJSON *existing)
{
    json_set_str(a, metadata, "uid", sync_uid(existing));
    json_set_str(a, metadata, "resourceVersion", json_str_at(existing, "metadata.resourceVersion"));
}

/* In a merge patch null removes a key. */
static void remove_others(struct arena *a, cJSON *data, const cJSON *existing)
{
    json_each(one, json_get(existing, "data"))
    {
        if (!json_get(data, one->string))
            json_set(a, data, one->string, json_new_null(a));
    }
}

static struct str note_of(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), key));
}

/* Made for this cluster to fill in, by whoever gave it the labels that it has. */
static bool is_given(const struct publisher *p, const cJSON *object)
{
    return p->what->mark && str_eq(note_of(object, p->what->mark), p->syncer->config->name);
}

/* existing: NULL for none. */
static void write_object(struct publisher *p, cJSON *data, const cJSON *existing)
{
    bool exists = existing != NULL;
    struct arena *a = arena_new(0);
    struct host_request q = {.method = exists ? "PATCH" : "POST"};
    cJSON *object = json_new_object(a), *metadata = json_ensure_object(a, object, "metadata");
    cJSON *notes = json_ensure_object(a, metadata, "annotations");

    count_fight(p);
    json_set_str(a, object, "apiVersion", STR("v1"));
    json_set_str(a, object, "kind", str_c(p->what->kind));
    json_set_str(a, metadata, "name", p->name);
    if (!is_given(p, existing)) {
        cJSON *labels = json_ensure_object(a, metadata, "labels");

        json_set_str(a, labels, LABEL_MANAGER, STR(MANAGER));
        json_set_str(a, labels, LABEL_INSTANCE, p->syncer->config->name);
    }
    json_set_str(a, notes, NOTE_CLUSTER, p->syncer->tenant.cluster_uid);
    json_set_str(a, notes, ANNOTATION_EPOCH, p->syncer->tenant.epoch);
    if (exists)
        name_version(a, metadata, existing);
    data = json_copy(a, data);
    if (exists && p->what->whole)
        remove_others(a, data, existing);
    json_set(a, object, "data", data);
    if (exists)
        q.content_type = "application/merge-patch+json";
    q.path = path_of(p, a, exists);
    q.body = json_text(a, object);
    host_send(p->syncer->host, &q, on_written, p);
    arena_free(a);
}

/* A later epoch's is not. Another cluster's, of an earlier epoch, is from one that had this name
 * before, if the Lease of the name is ours; the Lease says nothing of other namespaces, where a
 * cluster of this name may be of another one. Earlier versions wrote no annotations. */
static bool is_ours(const struct publisher *p, const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata.labels");
    struct str cluster = note_of(object, NOTE_CLUSTER);

    bool labelled = str_eqc(json_str(json_get(labels, LABEL_MANAGER)), MANAGER) &&
                    str_eq(json_str(json_get(labels, LABEL_INSTANCE)), p->syncer->config->name);

    if ((!labelled && !is_given(p, object)) || !sync_life_owns(p->syncer, object))
        return false;
    return !cluster.n || str_eq(cluster, p->syncer->tenant.cluster_uid) ||
           (str_eq(p->ns, p->syncer->tenant.host_namespace) &&
            sync_lease_state(p->syncer->lease) == LEASE_HELD);
}

static bool is_current(const struct publisher *p, const cJSON *object, const cJSON *data)
{
    const cJSON *has = json_get(object, "data");

    json_each(one, data)
    {
        if (!json_equal(one, json_get(has, one->string)))
            return false;
    }
    return (!p->what->whole || json_count(has) == json_count(data)) &&
           str_eq(note_of(object, NOTE_CLUSTER), p->syncer->tenant.cluster_uid) &&
           str_eq(note_of(object, ANNOTATION_EPOCH), p->syncer->tenant.epoch);
}

static void take_existing(struct publisher *p, struct str body)
{
    struct arena *a = arena_new(0);
    cJSON *object = NULL, *data;

    if (json_parse(a, body, &object, NULL)) {
        retry(p);
        arena_free(a);
        return;
    }
    note_revision(p, object);
    if (!is_ours(p, object)) {
        note(p, p->what->foreign, p->what->foreign_message, p->name);
        move(p, PUBLISHER_IDLE);
    } else {
        data = p->what->data(p->ctx, a, json_get(object, "data"));
        if (is_current(p, object, data))
            published(p);
        else
            write_object(p, data, object);
    }
    arena_free(a);
}

static void create(struct publisher *p)
{
    struct arena *a = arena_new(0);

    write_object(p, p->what->data(p->ctx, a, NULL), NULL);
    arena_free(a);
}

static void on_read(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct publisher *p = ctx;

    assert(p->magic == PUBLISHER_MAGIC);
    if (!err || err->kind == &ERR_NOT_FOUND)
        watch(p);
    if (!err)
        take_existing(p, answer->body);
    else if (err->kind == &ERR_NOT_FOUND)
        create(p);
    else
        failed(p, err);
}

static void send_read(struct publisher *p)
{
    struct arena *a;
    struct host_request q = {.method = "GET"};

    if (p->state != PUBLISHER_IDLE || !p->wanted || !sync_lease_may_act(p->syncer->lease))
        return;
    move(p, PUBLISHER_SENDING);
    p->replaced = false;
    a = arena_new(0);
    q.path = path_of(p, a, true);
    host_send(p->syncer->host, &q, on_read, p);
    arena_free(a);
}

void sync_publisher_want(struct publisher *p)
{
    p->wanted = true;
    p->replaced = true;
    if (p->state == PUBLISHER_DONE)
        move(p, PUBLISHER_IDLE);
    send_read(p);
}

void sync_publisher_renew(struct publisher *p)
{
    p->revision = 0;
    if (p->wanted)
        sync_publisher_want(p);
}

void sync_publisher_kick(struct publisher *p)
{
    if (p->watch)
        reflector_kick(p->watch);
    send_read(p);
}

struct publisher *sync_publisher_new(struct syncer *s, const struct publication *what,
                                     struct str ns, struct str name, void *ctx)
{
    struct publisher *p = NEW(struct publisher);

    *p = (struct publisher){
        .magic = PUBLISHER_MAGIC,
        .syncer = s,
        .what = what,
        .ctx = ctx,
        .ns = mem_str(ns.n ? ns : s->tenant.host_namespace),
        .name = mem_str(name),
    };
    uv_timer_init(vapi_loop(s->api), &p->timer);
    p->timer.data = p;
    return p;
}

static void on_closed(uv_handle_t *handle)
{
    struct publisher *p = handle->data;

    mem_free(p->ns.p);
    mem_free(p->name.p);
    p->magic = 0;
    mem_free(p);
}

void sync_publisher_close(struct publisher *p)
{
    move(p, PUBLISHER_CLOSED); /* asserts that no request is pending */
    p->watch = reflector_close(p->watch);
    uv_close((uv_handle_t *)&p->timer, on_closed);
}
