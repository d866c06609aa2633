/* SPDX-License-Identifier: Apache-2.0 */
/* Both worlds are the same: what holds when it is quiet, half an hour after the last fault at the
 * latest. Must never accept a difference that no later event mends. */
#include "judge_impl.h"

#include <stdarg.h>
#include <string.h>

#include <sublet/schema.h>
#include <sublet/store_admin.h>

#include "engine.h"

/* --- both worlds --- */

static char difference[400];

bool judge_differ(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(difference, sizeof(difference), format, args);
    va_end(args);
    return false;
}

const char *judge_difference(struct world *w)
{
    judge_trace_gpus(w);
    return difference;
}

cJSON *judge_host_of(struct agreeing *g, struct str uid)
{
    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next) {
        cJSON *tree = strcmp(o->plural, g->plural) ? NULL : host_parse(g->arena, o->bytes);

        if (tree && host_is_ours(tree) && str_eq(host_virtual_uid(tree), uid))
            return tree;
    }
    return NULL;
}

static bool same_at(const cJSON *one, const cJSON *other, const char *path)
{
    return str_eq(json_str_at(one, path), json_str_at(other, path));
}

static bool pod_agrees(const cJSON *pod, const cJSON *host)
{
    if (!host)
        return host_pod_is_finished(pod);
    return same_at(pod, host, "status.phase") &&
           !str_eqc(json_str_at(pod, "status.phase"), "Pending") &&
           same_at(pod, host, "spec.nodeName") && !object_is_terminating(pod);
}

/* One that others removed from the host is Lost and stays so, since an empty volume would hide the
 * loss. One that the host lacks because the store or the host was put back is created again. */
static bool claim_agrees(const struct agreeing *g, const cJSON *claim, const cJSON *host)
{
    const struct note *lost = note_get(&judge_notes(g->world)->lost, sync_uid(claim));

    if (object_is_terminating(claim))
        return false;
    if (!host)
        return lost && lost->value == judge_age(g->world) &&
               str_eqc(json_str_at(claim, "status.phase"), "Lost");
    return same_at(claim, host, "status.phase") && same_at(claim, host, "spec.volumeName");
}

static bool agrees(const struct agreeing *g, const cJSON *tree, const cJSON *host)
{
    if (!strcmp(g->plural, "pods"))
        return pod_agrees(tree, host);
    if (!strcmp(g->plural, "persistentvolumeclaims"))
        return claim_agrees(g, tree, host);
    return host != NULL;
}

/* A pod that is created again has no claim to the GPUs it had: it waits when others have them. */
static bool may_wait(struct agreeing *g, const cJSON *pod)
{
    struct world *w = g->world;
    bool only_one = judge_age(w) == 1 && !judge_notes(w)->second_created;
    int order;

    if (strcmp(g->plural, "pods") != 0 || only_one || !host_pod_gpus(pod) ||
        !str_eqc(json_str_at(pod, "status.phase"), "Pending") || object_is_terminating(pod))
        return false;
    order = g->waiting ? str_cmp(json_str_at(pod, "metadata.creationTimestamp"),
                                 json_str_at(g->waiting, "metadata.creationTimestamp"))
                       : -1;
    if (order < 0 || (!order && str_cmp(sync_uid(pod), sync_uid(g->waiting)) < 0))
        g->waiting = pod;
    return true;
}

static bool on_virtual(void *ctx, const struct store_object *o)
{
    struct agreeing *g = ctx;
    const cJSON *tree = vapi_tree(g->arena, o), *host = judge_host_of(g, o->uid);

    if (str_eqc(o->name, "kubernetes") && !strcmp(g->plural, "services"))
        return true;
    if (!host && may_wait(g, tree))
        return true;
    g->with_host += host != NULL;
    g->same = agrees(g, tree, host) ||
              judge_differ("%s %.*s (uid %.*s, %.*s) has %s on the host", g->plural, STR_F(o->name),
                           STR_F(o->uid), STR_F(json_str_at(tree, "status.phase")),
                           host ? "another state" : "nothing");
    return g->same;
}

static size_t count_host(struct agreeing *g)
{
    size_t n = 0;

    for (const struct host_object_model *o = host_model_first(g->world->host); o; o = o->next)
        n += !strcmp(o->plural, g->plural) && host_is_ours(host_parse(g->arena, o->bytes));
    return n;
}

static bool count_record(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

/* Of a life the store does not know: kept, and without an owner. */
static size_t count_quarantined(struct agreeing *g, struct life *l)
{
    size_t n = 0;

    store_record_each(l->store, RECORD_MAPPING, arena_printf(g->arena, "quarantine/%s/", g->plural),
                      count_record, &n);
    return n;
}

/* A watch opens when the tenant first uses a kind: until then nothing finds what was created while
 * a failing disk kept its record from being stored. */
bool judge_may_have_orphans(const struct world *w, const struct life *l, const char *plural)
{
    if (!w->with[CLASS_DISK_FULL] && !w->with[CLASS_DISK_ERROR] && !w->with[CLASS_DISK_READ])
        return false;
    for (size_t id = 0; id < l->syncer->n_kinds; id++)
        if (!strcmp(l->syncer->kinds[id].plural, plural))
            return !l->syncer->watches[id].reflector;
    return false;
}

static bool kind_agrees(struct world *w, struct arena *a, const char *plural)
{
    struct agreeing g = {w, a, plural, 0, NULL, true};
    struct life *l = w->lives[0];

    if (store_scan(l->store, tenant_storage(l, plural), STR_NULL, STR_NULL, STR_NULL, 0, on_virtual,
                   &g, NULL) ||
        !g.same)
        return false;
    if (g.waiting && judge_gpus_on_host(w, PODS_ALL) + host_pod_gpus(g.waiting) <= LIMIT)
        return judge_differ("pods %.*s waits, and there is room for it",
                            STR_F(json_str_at(g.waiting, "metadata.name")));
    return count_host(&g) == g.with_host + count_quarantined(&g, l) ||
           judge_may_have_orphans(w, l, plural) ||
           judge_differ("%zu %s on the host, where %zu are wanted", count_host(&g), plural,
                        g.with_host);
}

static bool nothing_under_way(struct world *w)
{
    for (size_t i = 0; i < w->models[0].n_slots; i++)
        if (w->models[0].slots[i].writing)
            return judge_differ("a write of %s has no answer", w->models[0].slots[i].name);
    return true;
}

bool judge_agree(struct world *w)
{
    struct arena *a;
    bool same;

    if (!life_serves(w->lives[0]))
        return judge_differ("no process serves");
    if (w->lives[0]->watch && !judge_has_caught_up(w->lives[0]))
        return judge_differ("a watcher waits for events");
    a = arena_new(0);
    same = nothing_under_way(w) && kind_agrees(w, a, "pods") &&
           kind_agrees(w, a, "persistentvolumeclaims") && kind_agrees(w, a, "services") &&
           judge_ledger_agrees(w, a) && judge_content_agrees(w, a) && judge_all_is_used(w, a);
    arena_free(a);
    return same;
}
