/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: what the host holds, and what the ledger charges. */
#include "judge_impl.h"

#include <string.h>

#include "engine.h"

int64_t judge_gpus_on_host(struct world *w, bool only_seen)
{
    struct arena *a = arena_new(0);
    int64_t sum = 0;

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(a, o->bytes);

        if (pod && host_is_ours(pod) && !host_pod_is_finished(pod) &&
            (!only_seen || judge_knows(w, &judge_notes(w)->seen, json_str_at(pod, "metadata.uid"))))
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

/* Before anything was put back, a process has made all that is there, and must know of it whether
 * it was reported or not. */
void judge_gpus(struct world *w, const cJSON *created)
{
    int64_t sum = judge_gpus_on_host(w, judge_age(w) > 1) + host_pod_gpus(created);

    if (sum <= LIMIT)
        return;
    judge_trace_gpus(w);
    world_fail("%lld GPUs on the host, where the limit is %d", (long long)sum, LIMIT);
}

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
