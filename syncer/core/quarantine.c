/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects that carry this virtual cluster's uid, but that no record proves ours to change:
 * they are newer than the backup the store was restored from, or come from a create that was
 * executed long after it was given up. They are kept, reported, and charged to the quota until a
 * virtual object of their name adopts them (exchange.c) or the host's admin removes them. Must
 * never delete one.
 *
 *   record RECORD_MAPPING "quarantine/<plural>/<host name>": "host-uid uid ns name[ tokens]";
 *   tokens: the Secret with the tokens of the pod of that name */

#include "core/life.h"
#include "core/run.h"
#include "gpu/ledger.h"

#include <stdio.h>

#include <sublet/host_quarantine.h>
#include <sublet/log.h>
#include <sublet/notice.h>
#include <sublet/store.h>
#include <sublet/store_quarantine.h>

#define TOKENS "tokens"

/* --- the record --- */

static struct str record_key(const struct syncer *s, struct arena *a, enum sync_id id,
                             struct str host_name)
{
    return arena_printf(a, "quarantine/%s/%.*s", s->kinds[id].record, STR_F(host_name));
}

static void parse_record(struct str key, struct str value, struct host_quarantine *ret)
{
    struct str kind;

    str_cut(&key, '/');
    kind = str_cut(&key, '/');
    *ret = (struct host_quarantine){.kind = kind, .host_name = key};
    ret->host_uid = str_cut(&value, ' ');
    ret->uid = str_cut(&value, ' ');
    ret->ns = str_cut(&value, ' ');
    ret->name = str_cut(&value, ' ');
    ret->tokens = str_eqc(value, TOKENS);
}

struct each {
    void (*call)(void *ctx, const struct host_quarantine *q);
    void *ctx;
};

static bool on_record(void *ctx, struct str key, struct str value)
{
    const struct each *each = ctx;
    struct host_quarantine q;

    parse_record(key, value, &q);
    each->call(each->ctx, &q);
    return true;
}

void host_quarantine_each(struct store *s, void (*call)(void *ctx, const struct host_quarantine *q),
                          void *ctx)
{
    struct each each = {call, ctx};

    store_record_each(s, RECORD_MAPPING, STR("quarantine/"), on_record, &each);
}

bool sync_quarantine_has(struct syncer *s, enum sync_id id, struct str host_name)
{
    struct arena *a = arena_new(0);
    struct str value;
    bool has = store_record_get(s->store, RECORD_MAPPING, record_key(s, a, id, host_name), &value);

    arena_free(a);
    return has;
}

static bool on_counted(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

size_t sync_quarantine_count(struct syncer *s, enum sync_id id)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    store_record_each(s->store, RECORD_MAPPING, record_key(s, a, id, STR("")), on_counted, &n);
    arena_free(a);
    return n;
}

/* --- its effects: a notice, and a charge of a pod's GPUs --- */

/* The ledger knows pods by the uid of the virtual pod; this host pod has none. */
static struct str ledger_uid(struct arena *a, struct str host_uid)
{
    return arena_printf(a, "host:%.*s", STR_F(host_uid));
}

static struct str subject_of(struct arena *a, const struct host_quarantine *q)
{
    return arena_printf(a, "%.*s %.*s/%.*s%s", STR_F(q->kind), STR_F(q->ns), STR_F(q->name),
                        q->tokens ? " " TOKENS : "");
}

static void report(struct syncer *s, struct arena *a, const struct host_quarantine *q)
{
    struct vapi_notice n = {
        .topic = NOTICE_HOST_OBJECT,
        .subject = subject_of(a, q),
        .reason = "Quarantined",
        .message =
            arena_printf(a,
                         "the host cluster has %.*s %.*s/%.*s%s of this virtual cluster, and no "
                         "record here proves it: it is kept, counts against the quota, and "
                         "is never deleted",
                         STR_F(q->kind), STR_F(q->ns), STR_F(q->name),
                         q->tokens ? " (the tokens of that pod)" : ""),
        .detail = arena_printf(a, "%.*s, uid %.*s", STR_F(q->host_name), STR_F(q->host_uid))};

    vapi_notice(s->api, &n);
}

/* What a host pod or a ResourceClaim there holds of a pool. */
static bool holds(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *host,
                  struct pool_choice *ret)
{
    if (id == SYNC_PODS)
        return !pod_is_finished(host) && pool_of_host_pod(a, s->config, host, ret);
    return id == sync_kind_of_ref(s, REF_DEVICE_CLAIM) &&
           pool_of_host_claim(a, s->config, host, ret);
}

/* Does it name a pool, and may it run? Its pool need not be known: that it is not bound now is no
 * proof that nothing is held. */
static bool may_hold(enum sync_id id, const cJSON *host)
{
    return meta_label(host, LABEL_POOL).n && !(id == SYNC_PODS && pod_is_finished(host));
}

static void charge(struct syncer *s, struct arena *a, enum sync_id id,
                   const struct host_quarantine *q, const cJSON *host)
{
    struct pool_choice choice;

    if (holds(s, a, id, host, &choice))
        sync_ledger_force(s->ledger, &choice, q->ns, ledger_uid(a, q->host_uid));
    else if (!may_hold(id, host))
        sync_ledger_release(s->ledger, ledger_uid(a, q->host_uid));
}

/* --- in and out --- */

static void begin(struct syncer *s, struct arena *a, enum sync_id id,
                  const struct host_quarantine *q, const cJSON *host)
{
    struct str key = record_key(s, a, id, q->host_name), before;
    struct str value = arena_printf(a, "%.*s %.*s %.*s %.*s%s", STR_F(q->host_uid), STR_F(q->uid),
                                    STR_F(q->ns), STR_F(q->name), q->tokens ? " " TOKENS : "");
    bool known = store_record_get(s->store, RECORD_MAPPING, key, &before) && str_eq(before, value);

    if (!known)
        sync_quarantine_end(s, id, q->host_name); /* of another object of this name */
    charge(s, a, id, q, host);
    if (known)
        return;
    store_record_put(s->store, RECORD_MAPPING, key, value);
    report(s, a, q);
}

void sync_quarantine_end(struct syncer *s, enum sync_id id, struct str host_name)
{
    struct arena *a = arena_new(0);
    struct str key = record_key(s, a, id, host_name), value;
    struct host_quarantine q;

    if (store_record_get(s->store, RECORD_MAPPING, key, &value)) {
        parse_record(key, arena_str(a, value), &q);
        sync_ledger_release(s->ledger, ledger_uid(a, q.host_uid));
        vapi_notice_over(s->api, NOTICE_HOST_OBJECT, subject_of(a, &q));
        store_record_delete(s->store, RECORD_MAPPING, key);
    }
    arena_free(a);
}

/* --- what is proven --- */

/* Ours by record: the virtual object it was made for is, or was, one of this key. */
static bool is_proven(struct syncer *s, struct arena *a, enum sync_id id,
                      const struct host_quarantine *q)
{
    struct mapping m = sync_mapping_get(s, a, id, q->ns, q->name);
    struct sync_sides x = {.on_host = true,
                           .exists = syncer_has_virtual(s, id, q->ns, q->name),
                           .proven = sync_mapping_proves(s, id, &m, q->uid),
                           .known = sync_mapping_knows(&m, q->uid)};

    return sync_settle_is_ours(&x);
}

/* Charges a host object's GPUs as soon as it is seen: the run of another one, which needs them, may
 * come before its own. */
static void charge_proven(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                          struct str uid, const cJSON *host)
{
    struct pool_choice choice;

    if (holds(s, a, id, host, &choice) && !sync_ledger_charged(s->ledger, uid).n)
        sync_ledger_force(s->ledger, &choice, ns, uid);
}

/* Once for each later epoch: newer data than this led, and wrote to the host. */
static void report_epoch(struct syncer *s, struct arena *a, const struct host_quarantine *q,
                         struct str epoch)
{
    struct vapi_notice n = {
        .topic = NOTICE_LEASE,
        .subject = STR("epoch"),
        .reason = "LaterEpochOnHost",
        .message = arena_printf(
            a,
            "the host cluster has %.*s of a later epoch of this virtual cluster: newer "
            "data than this has led; what carries that epoch is not deleted here",
            STR_F(subject_of(a, q))),
        .detail = arena_printf(a, "epoch %.*s, ours %.*s", STR_F(epoch), STR_F(s->tenant.epoch))};

    epoch = str_sub(epoch, 0, STORE_EPOCH_LEN);
    if (str_cmp(epoch, str_c(s->later_epoch)) <= 0)
        return;
    snprintf(s->later_epoch, sizeof(s->later_epoch), "%.*s", STR_F(epoch));
    vapi_notice(s->api, &n);
}

void sync_quarantine_judge(struct syncer *s, enum sync_id id, const cJSON *host)
{
    struct host_quarantine q = {.kind = str_c(s->kinds[id].record),
                                .host_name = json_str_at(host, "metadata.name"),
                                .host_uid = sync_uid(host)};
    struct arena *a = arena_new(0);
    char name[64];

    if (translate_owner(&s->tenant, host, &q.ns, &q.name, &q.uid)) {
        translate_name(&s->tenant, q.ns, q.name, name);
        q.tokens = !str_eqc(q.host_name, name); /* the only other name that is ours */
        if (!sync_life_owns(s, host))
            report_epoch(s, a, &q, sync_life_epoch(host));
        if (!q.tokens && sync_life_has_our_epoch(s, host))
            sync_mapping_note_host(s, id, q.ns, q.name, q.uid, host);
        if (is_proven(s, a, q.tokens ? SYNC_PODS : id, &q)) {
            charge_proven(s, a, id, q.ns, q.uid, host);
            sync_quarantine_end(s, id, q.host_name);
        } else {
            begin(s, a, id, &q, host);
        }
    }
    arena_free(a);
}

/* --- after a list, and at start --- */

struct compare {
    struct syncer *syncer;
    enum sync_id id;
};

static void on_host_object(void *ctx, const struct host_object *o)
{
    struct compare *c = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;

    if (!json_parse(a, o->bytes, &tree, NULL))
        sync_quarantine_judge(c->syncer, c->id, tree);
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
    struct host_quarantine q;

    parse_record(key, value, &q);
    if (!reflector_get(g->syncer->watches[g->id].reflector, q.host_name))
        g->names[g->n++] = arena_str(g->arena, q.host_name);
    return g->n < COUNT(g->names);
}

/* Those that are on record and no longer on the host; in batches, since records are not to be
 * deleted while they are read. */
static void end_gone(struct syncer *s, enum sync_id id)
{
    struct gone g = {.syncer = s, .arena = arena_new(0), .id = id};

    do {
        g.n = 0;
        store_record_each(s->store, RECORD_MAPPING, record_key(s, g.arena, id, STR("")), find_gone,
                          &g);
        for (size_t i = 0; i < g.n; i++)
            sync_quarantine_end(s, id, g.names[i]);
    } while (g.n);
    arena_free(g.arena);
}

void sync_quarantine_compare(struct syncer *s, enum sync_id id)
{
    struct compare c = {s, id};

    if (!s->kinds[id].maps)
        return;
    end_gone(s, id);
    reflector_each(s->watches[id].reflector, on_host_object, &c);
}

static bool on_recorded(void *ctx, struct str key, struct str value)
{
    struct syncer *s = ctx;
    struct arena *a = arena_new(0);
    struct host_quarantine q;
    enum sync_id id;

    parse_record(key, value, &q);
    id = sync_kind_of_record(s, q.kind);
    if (id != SYNC_NONE) {
        report(s, a, &q);
        syncer_watch(s, id);
    }
    arena_free(a);
    return true;
}

void sync_quarantine_start(struct syncer *s)
{
    store_record_each(s->store, RECORD_MAPPING, STR("quarantine/"), on_recorded, s);
}
