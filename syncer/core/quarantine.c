/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects that carry this virtual cluster's uid and that no record proves to be ours to
 * change: objects newer than the backup the store was restored from, creates that were executed
 * long after they were given up. They are kept, reported, and charged to the quota until a virtual
 * object of their name adopts them (exchange.c) or the host's admin removes them. Must never delete
 * one.
 *
 *   record RECORD_MAPPING "quarantine/<plural>/<host name>": "host-uid uid ns name" */

#include "core/life.h"
#include "core/run.h"
#include "gpu/ledger.h"
#include <sublet/host_quarantine.h>
#include <sublet/log.h>
#include <sublet/notice.h>
#include <sublet/store.h>
#include <sublet/store_quarantine.h>

/* What a host object says of itself. */
struct origin {
    enum sync_id id;
    struct str host_name, host_uid; /* on the host */
    struct str ns, name, uid;       /* of the virtual object it was made for */
};

static struct str record_key(struct arena *a, enum sync_id id, struct str host_name)
{
    return arena_printf(a, "quarantine/%s/%.*s", SYNC_KINDS[id].plural, STR_F(host_name));
}

/* The ledger knows pods by uid; that of a host pod is none of a virtual pod. */
static struct str ledger_uid(struct arena *a, struct str host_uid)
{
    return arena_printf(a, "host:%.*s", STR_F(host_uid));
}

static struct str subject_of(struct arena *a, enum sync_id id, struct str ns, struct str name)
{
    return arena_printf(a, "%s %.*s/%.*s", SYNC_KINDS[id].plural, STR_F(ns), STR_F(name));
}

/* --- reports --- */

static void report(struct syncer *s, struct arena *a, const struct origin *o)
{
    struct vapi_notice n = {
        .topic = NOTICE_HOST_OBJECT,
        .subject = subject_of(a, o->id, o->ns, o->name),
        .reason = "Quarantined",
        .message = arena_printf(a,
                                "the host cluster has %s %.*s/%.*s of this virtual cluster, and no "
                                "record here proves it: it is kept, counts against the quota, and "
                                "is never deleted",
                                SYNC_KINDS[o->id].plural, STR_F(o->ns), STR_F(o->name)),
        .detail = arena_printf(a, "%.*s, uid %.*s", STR_F(o->host_name), STR_F(o->host_uid))};

    vapi_notice(s->api, &n);
}

/* --- in and out --- */

static void charge(struct syncer *s, struct arena *a, const struct origin *o, const cJSON *host)
{
    struct pool_choice choice;

    if (o->id != SYNC_PODS)
        return;
    if (!pod_is_finished(host) && pool_of_host_pod(a, s->config, host, &choice))
        ledger_force(s->ledger, &choice, ledger_uid(a, o->host_uid));
    else
        ledger_release(s->ledger, ledger_uid(a, o->host_uid));
}

static void add(struct syncer *s, struct arena *a, const struct origin *o, const cJSON *host)
{
    struct str key = record_key(a, o->id, o->host_name), before;
    struct str value = arena_printf(a, "%.*s %.*s %.*s %.*s", STR_F(o->host_uid), STR_F(o->uid),
                                    STR_F(o->ns), STR_F(o->name));

    bool known = store_record_get(s->store, RECORD_MAPPING, key, &before) && str_eq(before, value);

    if (!known)
        quarantine_end(s, o->id, o->host_name); /* of another one of this name */
    charge(s, a, o, host);
    if (known)
        return;
    store_record_put(s->store, RECORD_MAPPING, key, value);
    report(s, a, o);
}

void quarantine_end(struct syncer *s, enum sync_id id, struct str host_name)
{
    struct arena *a = arena_new(0);
    struct str key = record_key(a, id, host_name), value, rest, host_uid, ns;

    if (store_record_get(s->store, RECORD_MAPPING, key, &value)) {
        rest = arena_str(a, value);
        host_uid = str_cut(&rest, ' ');
        str_cut(&rest, ' ');
        ns = str_cut(&rest, ' ');
        ledger_release(s->ledger, ledger_uid(a, host_uid));
        vapi_notice_over(s->api, NOTICE_HOST_OBJECT, subject_of(a, id, ns, rest));
        store_record_delete(s->store, RECORD_MAPPING, key);
    }
    arena_free(a);
}

/* --- what is proven --- */

/* Ours by record: the virtual object it was made for is, or was, one of this key. */
static bool is_proven(struct syncer *s, struct arena *a, const struct origin *o)
{
    struct mapping m = mapping_get(s, a, o->id, o->ns, o->name);

    return mapping_proves(s, o->id, &m, o->uid) ||
           (mapping_knows(&m, o->uid) && syncer_has_virtual(s, o->id, o->ns, o->name));
}

/* A pod that is on the host holds its GPUs before its own run finds it there: another pod's run,
 * which needs them, may come first. */
static void charge_proven(struct syncer *s, struct arena *a, const struct origin *o,
                          const cJSON *host)
{
    struct pool_choice choice;

    if (o->id == SYNC_PODS && !pod_is_finished(host) && !ledger_charged(s->ledger, o->uid) &&
        pool_of_host_pod(a, s->config, host, &choice))
        ledger_force(s->ledger, &choice, o->uid);
}

void quarantine_judge(struct syncer *s, enum sync_id id, const cJSON *host)
{
    struct origin o = {
        .id = id, .host_name = json_str_at(host, "metadata.name"), .host_uid = sync_uid(host)};
    struct arena *a = arena_new(0);
    char name[64];

    if (translate_owner(&s->tenant, host, &o.ns, &o.name, &o.uid)) {
        translate_name(&s->tenant, o.ns, o.name, name);
        if (life_has_taken_up(s, host))
            mapping_note_host(s, id, o.ns, o.name, o.uid, host);
        if (is_proven(s, a, &o)) {
            charge_proven(s, a, &o, host);
            quarantine_end(s, id, o.host_name);
        } else if (str_eqc(o.host_name, name)) { /* else the Secret of a pod's token */
            add(s, a, &o, host);
        }
    }
    arena_free(a);
}

bool quarantine_has(struct syncer *s, enum sync_id id, struct str host_name)
{
    struct arena *a = arena_new(0);
    struct str value;
    bool has = store_record_get(s->store, RECORD_MAPPING, record_key(a, id, host_name), &value);

    arena_free(a);
    return has;
}

static bool count_one(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

size_t quarantine_count(struct syncer *s, enum sync_id id)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    store_record_each(s->store, RECORD_MAPPING, record_key(a, id, STR("")), count_one, &n);
    arena_free(a);
    return n;
}

/* --- at a list, at a start --- */

struct compare {
    struct syncer *syncer;
    enum sync_id id;
};

static void compare_one(void *ctx, const struct host_object *o)
{
    struct compare *c = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;

    if (!json_parse(a, o->bytes, &tree, NULL))
        quarantine_judge(c->syncer, c->id, tree);
    arena_free(a);
}

struct gone {
    struct syncer *syncer;
    struct arena *arena;
    enum sync_id id;
    struct str names[64];
    size_t n;
};

static bool find_gone(void *ctx, struct str key, struct str value)
{
    struct gone *g = ctx;
    struct str name = key;

    (void)value;
    str_cut(&name, '/');
    str_cut(&name, '/');
    if (!reflector_get(g->syncer->watches[g->id].reflector, name))
        g->names[g->n++] = arena_str(g->arena, name);
    return g->n < sizeof(g->names) / sizeof(*g->names);
}

/* Those that are on record and no longer on the host. */
static void end_gone(struct syncer *s, enum sync_id id)
{
    struct gone g = {.syncer = s, .arena = arena_new(0), .id = id};

    do {
        g.n = 0;
        store_record_each(s->store, RECORD_MAPPING, record_key(g.arena, id, STR("")), find_gone,
                          &g);
        for (size_t i = 0; i < g.n; i++)
            quarantine_end(s, id, g.names[i]);
    } while (g.n);
    arena_free(g.arena);
}

void quarantine_compare(struct syncer *s, enum sync_id id)
{
    struct compare c = {s, id};

    if (!SYNC_KINDS[id].maps)
        return;
    end_gone(s, id);
    reflector_each(s->watches[id].reflector, compare_one, &c);
}

struct each {
    void (*call)(void *ctx, const struct host_quarantine *q);
    void *ctx;
};

static bool read_one(void *ctx, struct str key, struct str value)
{
    const struct each *each = ctx;
    struct host_quarantine q = {0};
    struct str rest = key, plural;

    str_cut(&rest, '/');
    plural = str_cut(&rest, '/');
    q.host_name = rest;
    rest = value;
    q.host_uid = str_cut(&rest, ' ');
    q.uid = str_cut(&rest, ' ');
    q.ns = str_cut(&rest, ' ');
    q.name = rest;
    for (int id = 0; id < N_SYNC; id++)
        if (str_eqc(plural, SYNC_KINDS[id].plural))
            q.plural = SYNC_KINDS[id].plural;
    if (q.plural)
        each->call(each->ctx, &q);
    return true;
}

void host_quarantine_each(struct store *s, void (*call)(void *ctx, const struct host_quarantine *q),
                          void *ctx)
{
    struct each each = {call, ctx};

    store_record_each(s, RECORD_MAPPING, STR("quarantine/"), read_one, &each);
}

static void report_one(void *ctx, const struct host_quarantine *q)
{
    struct syncer *s = ctx;
    struct arena *a = arena_new(0);
    struct origin o = {.host_name = q->host_name,
                       .host_uid = q->host_uid,
                       .ns = q->ns,
                       .name = q->name,
                       .uid = q->uid};

    while (SYNC_KINDS[o.id].plural != q->plural)
        o.id++;
    report(s, a, &o);
    syncer_watch(s, o.id);
    arena_free(a);
}

void quarantine_start(struct syncer *s)
{
    host_quarantine_each(s->store, report_one, s);
}
