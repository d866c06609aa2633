/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: what the host holds, and what the ledger charges. */
#include "judge_impl.h"

#include <string.h>

#include "engine.h"

static bool counts(struct world *w, enum judge_pods which, const cJSON *pod)
{
    const struct note *late = note_get(&judge_notes(w)->late, host_virtual_uid(pod));

    if (which == PODS_ALL)
        return true;
    return judge_knows(w, &judge_notes(w)->seen, json_str_at(pod, "metadata.uid")) &&
           (which == PODS_SEEN || !late || late->value != judge_age(w));
}

int64_t judge_gpus_on_host(struct world *w, enum judge_pods which)
{
    struct arena *a = arena_new(0);
    int64_t sum = 0;

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);

        if (pod && host_is_ours(pod) && !host_pod_is_finished(pod) && counts(w, which, pod))
            sum += host_pod_gpus(pod);
    }
    arena_free(a);
    return sum;
}

static bool trace_row(void *ctx, struct str key, struct str value)
{
    world_trace("process %d charges %.*s: %.*s", *(const int *)ctx, STR_F(key), STR_F(value));
    return true;
}

void judge_trace_gpus(struct world *w)
{
    struct arena *a = arena_new(0);

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);
        struct str uid = json_str_at(pod, "metadata.uid");

        if (pod && host_is_ours(pod) && !host_pod_is_finished(pod) && host_pod_gpus(pod))
            world_trace("%s uid %.*s of virtual uid %.*s holds %lld%s", o->name, STR_F(uid),
                        STR_F(host_virtual_uid(pod)), (long long)host_pod_gpus(pod),
                        judge_knows(w, &judge_notes(w)->seen, uid) ? ""
                                                                   : ", not seen by the sender");
    }
    for (int i = 0; i < MAX_LIVES; i++)
        if (life_serves(w->lives[i]))
            store_record_each(w->lives[i]->store, RECORD_LEDGER, STR("gpu/"), trace_row, &i);
    arena_free(a);
}

/* Before anything was put back, and before a second process created anything, a process has made
 * all that is there, and must know of it whether it was reported or not. What its request created
 * on a host that was put back since, it could not prevent: that counts against what it creates with
 * GPUs later. */
void judge_gpus(struct world *w, const cJSON *created)
{
    bool all = judge_age(w) == 1 && !judge_notes(w)->second_created;
    int64_t gpus = host_pod_gpus(created);
    int64_t sum = gpus + judge_gpus_on_host(w, all    ? PODS_ALL
                                               : gpus ? PODS_SEEN
                                                      : PODS_SEEN_IN_TIME);

    if (sum <= LIMIT)
        return;
    judge_trace_gpus(w);
    world_fail("%lld GPUs on the host, where the limit is %d", (long long)sum, LIMIT);
}

/* --- at every step --- */

bool judge_knows_host(struct life *l)
{
    struct world *w = l->world;
    struct arena *a = arena_new(0);
    struct map *lives = &judge_notes(w)->lives;
    struct str key =
        arena_printf(a, "%.*s/%lld", STR_F(l->syncer->tenant.epoch), (long long)l->syncer->life);
    const struct note *n = note_get(lives, key);
    bool knows = !n || n->value == w->host_generation;

    if (!n)
        note_put(lives, key, w->host_generation);
    arena_free(a);
    return knows;
}

static int64_t charge_of(struct life *l, struct str uid)
{
    struct arena *a = arena_new(0);
    struct str value;
    int64_t n = 0;

    if (store_record_get(l->store, RECORD_LEDGER, arena_printf(a, "gpu/p/%.*s", STR_F(uid)),
                         &value) &&
        !str_to_i64(value, &n))
        world_fail("process %u charges %.*s for %.*s", l->number, STR_F(value), STR_F(uid));
    arena_free(a);
    return n;
}

static bool was_shown(struct life *l, struct arena *a, struct str host_uid)
{
    const struct note *n = note_get(&judge_notes(l->world)->shown,
                                    arena_printf(a, "%u/%.*s", l->number, STR_F(host_uid)));

    return n && n->value == judge_age(l->world);
}

/* A pod that the process was shown, and that holds GPUs, is charged, once and with what it holds:
 * by its virtual uid, or in quarantine by its own. */
static void judge_pod(struct life *l, struct arena *a, const cJSON *pod)
{
    struct str uid = json_str_at(pod, "metadata.uid");
    int64_t by_virtual, by_host, gpus = host_pod_gpus(pod);

    if (!host_is_ours(pod) || host_pod_is_finished(pod) || !gpus || !was_shown(l, a, uid))
        return;
    by_virtual = charge_of(l, host_virtual_uid(pod));
    by_host = charge_of(l, arena_printf(a, "host:%.*s", STR_F(uid)));
    if (by_virtual + by_host == gpus)
        return;
    judge_trace_gpus(l->world);
    world_fail("pod %.*s holds %lld GPUs, and is charged %lld and %lld",
               STR_F(json_str_at(pod, "metadata.name")), (long long)gpus, (long long)by_virtual,
               (long long)by_host);
}

struct charges {
    struct buf records; /* of pods: virtual uids, present and former, and uids in quarantine */
    int64_t sum;
};

static bool on_mapping(void *ctx, struct str key, struct str value)
{
    struct charges *c = ctx;

    (void)key;
    buf_add(&c->records, value);
    buf_char(&c->records, '\n');
    return true;
}

/* Rows are "gpu/pool/uid". Nothing would release one of which no record says whose it is. */
static bool on_charge(void *ctx, struct str key, struct str value)
{
    struct charges *c = ctx;
    struct str uid = str_from(key, str_rfind(key, '/') + 1);
    int64_t n = 0;

    if (str_has_prefix(uid, STR("host:")))
        uid = str_from(uid, 5);
    if (!str_contains(buf_str(&c->records), uid))
        world_fail("the ledger charges %.*s, which is not on record", STR_F(key));
    str_to_i64(value, &n);
    c->sum += n;
    return true;
}

/* Before anything was put back, nothing is charged but what fits. To the second process, what the
 * first one made since the copy is in quarantine, and charged as well. */
static void judge_rows(struct life *l)
{
    struct charges c = {.records = BUF_INIT(0)};

    store_record_each(l->store, RECORD_MAPPING, STR("pods/"), on_mapping, &c);
    store_record_each(l->store, RECORD_MAPPING, STR("quarantine/pods/"), on_mapping, &c);
    store_record_each(l->store, RECORD_LEDGER, STR("gpu/"), on_charge, &c);
    buf_fini(&c.records);
    if (l->index || judge_age(l->world) > 1 || judge_notes(l->world)->second_created ||
        c.sum <= LIMIT)
        return;
    judge_trace_gpus(l->world);
    world_fail("the ledger charges %lld GPUs, where the limit is %d", (long long)c.sum, LIMIT);
}

/* A failed transaction rolls charges back, until all keys are reconciled again. */
void judge_ledger(struct life *l)
{
    struct arena *a;

    if (!judge_knows_host(l) || l->syncer->rescan_due)
        return;
    judge_rows(l);
    if (!reflector_synced(l->syncer->watches[SYNC_PODS].reflector))
        return;
    a = arena_new(0);
    for (const struct host_object_model *o = host_model_first(l->world->host); o; o = o->next)
        if (!strcmp(o->plural, "pods"))
            judge_pod(l, a, host_parse(a, o->bytes));
    arena_free(a);
    if (!sync_ledger_adds_up(l->syncer->ledger))
        world_fail("process %u keeps a sum that is not that of its rows", l->number);
}

/* --- at the end --- */

/* What a row charges; a pod in quarantine is known by its uid on the host. */
static const cJSON *charged_pod(struct agreeing *g, struct str uid)
{
    if (!str_has_prefix(uid, STR("host:")))
        return judge_host_of(g, uid);
    uid = str_from(uid, 5);
    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(g->arena, o->bytes);

        if (pod && str_eq(json_str_at(pod, "metadata.uid"), uid))
            return pod;
    }
    return NULL;
}

/* Rows are "gpu/pool/uid". */
static bool on_row(void *ctx, struct str key, struct str value)
{
    struct agreeing *g = ctx;
    const cJSON *host = charged_pod(g, str_from(key, str_rfind(key, '/') + 1));

    (void)value;
    if (!host || host_pod_is_finished(host) || host_pod_gpus(host) == 0)
        g->same =
            judge_differ("the ledger charges %.*s, which holds no GPUs on the host", STR_F(key));
    g->with_host++;
    return g->same;
}

/* An orphan holds GPUs that no tenant is charged for. */
bool judge_ledger_agrees(struct world *w, struct arena *a)
{
    struct agreeing g = {w, a, "pods", 0, NULL, true};
    size_t charged = 0;

    store_record_each(w->lives[0]->store, RECORD_LEDGER, STR("gpu/"), on_row, &g);
    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);

        charged += pod && host_is_ours(pod) && !host_pod_is_finished(pod) && host_pod_gpus(pod) > 0;
    }
    return g.same &&
           (charged == g.with_host ||
            judge_differ("the ledger charges %zu pods, the host %zu", g.with_host, charged));
}
