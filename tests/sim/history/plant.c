/* SPDX-License-Identifier: Apache-2.0 */
/* The planted defects, for plant.h: each is the smallest act that its judge must notice. Must never
 * report to a judge what it did. */
#include "plant.h"

#include <string.h>

#include <sublet/read_only.h>
#include <sublet/schema.h>

#include "core/lease.h"
#include "engine.h"

#include "foreign.h"
#include "history.h"
#include "judge.h"
#include "logless.h"

enum { FIRST_STEP = 12 };

/* --- what there is --- */

static bool leads(const struct life *l)
{
    return life_serves(l) && l->watch && sync_lease_state(l->syncer->lease) == LEASE_HELD &&
           !sync_lease_is_doubted(l->syncer->lease);
}

static bool is_quiet(const struct slot *s, const char *resource)
{
    return s->there && !s->deleting && !s->asked_deletion && !s->writing && !s->unsure &&
           !strcmp(s->resource, resource);
}

static struct slot *a_slot(struct world *w, unsigned index, const char *resource)
{
    struct model *m = &w->models[index];

    for (size_t i = 0; i < m->n_slots; i++)
        if (is_quiet(&m->slots[i], resource))
            return &m->slots[i];
    return NULL;
}

/* The host object of a promised one. */
static const struct host_object_model *on_host(struct world *w, struct arena *a, const char *plural)
{
    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *tree = strcmp(o->plural, plural) ? NULL : host_parse(a, o->bytes);

        for (size_t i = 0; tree && i < w->models[0].n_slots; i++)
            if (is_quiet(&w->models[0].slots[i], plural) &&
                str_eqc(host_virtual_uid(tree), w->models[0].slots[i].uid) &&
                !json_path(tree, "metadata.deletionTimestamp") && !host_pod_is_finished(tree))
                return o;
    }
    return NULL;
}

static const struct resource *core_resource(struct life *l, const char *plural)
{
    return registry_find_group_resource(vapi_registry(l->api), STR(""), str_c(plural));
}

/* --- requests to the host that no product may send --- */

static void on_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    (void)ctx;
    (void)answer;
    (void)err;
}

static void on_written(void *ctx, const struct err *err, const struct store_object *o)
{
    (void)ctx;
    (void)err;
    (void)o;
}

static void request(struct world *w, const char *method, const char *plural, const char *name,
                    struct str body)
{
    struct arena *a = arena_new(0);
    struct host_request q = {.method = method, .body = body};

    q.path = arena_printf(a, "/api/v1/namespaces/team/%s%s%s", plural, *name ? "/" : "", name);
    host_send(w->lives[0]->syncer->host, &q, on_done, NULL);
    arena_free(a);
}

static bool touch_a_stranger(struct world *w)
{
    if (!leads(w->lives[0]))
        return false;
    request(w, "DELETE", "pods", "stranger", STR(""));
    return true;
}

static bool touch_a_strange_claim(struct world *w)
{
    if (!leads(w->lives[0]))
        return false;
    request(w, "PATCH", "persistentvolumeclaims", "stranger",
            STR("{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"));
    return true;
}

static bool remove_one(struct world *w, const char *plural)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = leads(w->lives[0]) ? on_host(w, a, plural) : NULL;

    if (o)
        request(w, "DELETE", plural, o->name, STR(""));
    arena_free(a);
    return o != NULL;
}

static bool remove_a_pod(struct world *w)
{
    return remove_one(w, "pods");
}

static bool remove_a_claim(struct world *w)
{
    return remove_one(w, "persistentvolumeclaims");
}

static bool create_a_pod_twice(struct world *w)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = leads(w->lives[0]) ? on_host(w, a, "pods") : NULL;
    cJSON *tree = o ? host_parse(a, o->bytes) : NULL;

    if (tree) {
        json_set_str(a, json_get(tree, "metadata"), "name", STR("twice"));
        request(w, "POST", "pods", "", json_text(a, tree));
    }
    arena_free(a);
    return tree != NULL;
}

static bool exceed_the_limit(struct world *w)
{
    if (!leads(w->lives[0]))
        return false;
    request(w, "POST", "pods", "",
            STR("{\"metadata\":{\"name\":\"many\",\"labels\":{\"sublet.dev/cluster\":\"x\"},"
                "\"annotations\":{\"sublet.dev/uid\":\"many\"}},\"spec\":{\"containers\":[{"
                "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"5\"}}}]}}"));
    return true;
}

/* --- what the host has, and no event shows --- */

/* The volume is gone, and no person removed it. */
static bool lose_a_claim(struct world *w)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o =
        leads(w->lives[0]) ? on_host(w, a, "persistentvolumeclaims") : NULL;

    if (o)
        host_model_drop(w->host, "persistentvolumeclaims", arena_cstr(a, str_c(o->name)), true);
    arena_free(a);
    return o != NULL;
}

static bool falsify_content(struct world *w)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = leads(w->lives[0]) ? on_host(w, a, "configmaps") : NULL;
    cJSON *tree = o ? host_parse(a, o->bytes) : NULL;

    if (tree) {
        json_set_str(a, json_get(tree, "data"), "k", STR("false"));
        host_model_put_unseen(w->host, a, "configmaps", tree);
    }
    arena_free(a);
    return tree != NULL;
}

static bool leave_a_secret(struct world *w)
{
    struct arena *a = arena_new(0);

    host_model_put_unseen(
        w->host, a, "secrets",
        host_parse(a, STR("{\"metadata\":{\"name\":\"left\",\"labels\":{\"sublet.dev/cluster\":"
                          "\"x\"},\"annotations\":{\"sublet.dev/uid\":\"left\"}}}")));
    arena_free(a);
    return true;
}

/* --- what the process has --- */

struct row {
    struct arena *arena;
    struct world *world;
    struct str key;
};

/* Of a pod that runs. */
static bool on_row(void *ctx, struct str key, struct str value)
{
    struct row *row = ctx;
    struct str uid = str_from(key, str_rfind(key, '/') + 1);

    (void)value;
    for (const struct host_object_model *o = host_model_first(row->world->host); o; o = o->next) {
        const cJSON *pod = strcmp(o->plural, "pods") ? NULL : host_parse(row->arena, o->bytes);

        if (pod && str_eq(host_virtual_uid(pod), uid) &&
            str_eqc(json_str_at(pod, "status.phase"), "Running"))
            row->key = arena_str(row->arena, key);
    }
    return !row->key.n;
}

static bool lose_a_charge(struct world *w)
{
    struct row row = {arena_new(0), w, STR_NULL};

    if (leads(w->lives[0]))
        store_record_each(w->lives[0]->store, RECORD_LEDGER, STR("gpu/"), on_row, &row);
    if (row.key.n)
        store_record_delete(w->lives[0]->store, RECORD_LEDGER, row.key);
    arena_free(row.arena);
    return row.key.n > 0;
}

static bool charge_without_a_pod(struct world *w)
{
    if (!leads(w->lives[0]))
        return false;
    store_record_put(w->lives[0]->store, RECORD_LEDGER, STR("gpu/p/no-pod"), STR("1"));
    return true;
}

static bool lose_a_write(struct world *w, unsigned index)
{
    struct vapi_delete options = {.grace_seconds = 0};
    struct life *l = w->lives[index];
    const struct slot *s =
        life_serves(l) && !judge_refuses(l) ? a_slot(w, index, "configmaps") : NULL;

    if (s)
        vapi_delete(l->api, core_resource(l, "configmaps"), STR("default"), str_c(s->name),
                    &options, on_written, NULL);
    return s != NULL;
}

static bool lose_a_write_of_first(struct world *w)
{
    return lose_a_write(w, 0);
}

static bool lose_a_write_of_second(struct world *w)
{
    return lose_a_write(w, 1);
}

static bool undo_a_write(struct world *w)
{
    struct life *l = w->lives[0];
    const struct slot *s = leads(l) ? a_slot(w, 0, "services") : NULL;
    struct arena *a = arena_new(0);

    if (s)
        vapi_patch(l->api, core_resource(l, "services"), STR_NULL, STR("default"), str_c(s->name),
                   host_parse(a, STR("{\"metadata\":{\"annotations\":{\"sim\":\"0\"}}}")),
                   on_written, NULL);
    arena_free(a);
    return s != NULL;
}

static bool has_answered_since(const struct model *m, int64_t us)
{
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].answered_us > us && is_quiet(&m->slots[i], m->slots[i].resource))
            return true;
    return false;
}

/* Goes on with the disk of some seconds ago. */
static bool go_back(struct world *w, unsigned index)
{
    struct disk **disk = index ? &w->copy : &w->disk;
    static struct disk *before, *of;
    static int64_t then_us;

    if (!life_serves(w->lives[index]))
        return false;
    if (!before || of != *disk) {
        of = *disk;
        before = history_next_disk(w, of);
        then_us = w->moment.now_us;
        return false;
    }
    if (!has_answered_since(&w->models[index], then_us))
        return false;
    life_kill(w->lives[index], false);
    *disk = before;
    return true;
}

static bool go_back_with_first(struct world *w)
{
    return go_back(w, 0);
}

static bool go_back_with_second(struct world *w)
{
    return go_back(w, 1);
}

/* --- watches --- */

static bool miss_an_event(struct world *w, unsigned index)
{
    bool expired = false;

    return life_serves(w->lives[index]) && w->lives[index]->watch &&
           store_watch_next(w->lives[index]->watch, &expired);
}

static bool miss_an_event_of_first(struct world *w)
{
    return miss_an_event(w, 0);
}

static bool miss_an_event_of_second(struct world *w)
{
    return miss_an_event(w, 1);
}

/* --- two processes --- */

static bool answer_without_leading(struct world *w)
{
    struct life *l = w->lives[1];

    if (life_serves(l) && judge_refuses(l))
        vapi_set_read_only(l->api, NULL);
    return false; /* again, should the process notice */
}

static bool release_a_live_lease(struct world *w)
{
    const struct host_object_model *o = host_model_find(w->host, "leases", "sim");
    struct arena *a;
    cJSON *lease;

    if (!o || !leads(w->lives[0]) || !life_serves(w->lives[1]) || !judge_refuses(w->lives[1]))
        return false;
    a = arena_new(0);
    lease = host_parse(a, o->bytes);
    json_set_str(a, json_get(lease, "spec"), "holderIdentity", STR(""));
    host_model_store(w->host, a, "leases", lease);
    arena_free(a);
    return true;
}

static bool report_nothing(struct world *w)
{
    char path[400];
    FILE *f;

    if (!life_serves(w->lives[1]) || !judge_refuses(w->lives[1]))
        return false;
    snprintf(path, sizeof(path), "%s/lacking.txt", disk_path(w->copy));
    f = fopen(path, "r+e");
    if (!f)
        return false;
    fclose(fopen(path, "we"));
    fclose(f);
    return false;
}

/* Of either process: deletions are rarer than writes. */
static bool report_no_deletion(struct world *w)
{
    for (int i = 0; i < MAX_LIVES; i++) {
        static char text[1 << 16];
        char path[400];
        FILE *f;

        if (!w->lives[i])
            continue;
        snprintf(path, sizeof(path), "%s/lacking.txt", disk_path(w->lives[i]->disk));
        f = fopen(path, "r+e");
        if (!f)
            continue;
        size_t n = fread(text, 1, sizeof(text), f);
        for (size_t at = 0; at + 8 < n; at++)
            if (!memcmp(text + at, "deleted ", 8))
                text[at] = '-';
        rewind(f);
        fwrite(text, 1, n, f);
        fclose(f);
    }
    return false;
}

#define SECOND .second = true
#define LATE   .late = true

const struct plant PLANTS[] = {
    {"stranger", touch_a_stranger, "of others is touched"},
    {"strange-claim", touch_a_strange_claim, "of others is touched"},
    {"pod-removed", remove_a_pod, "is removed from the host while"},
    {"claim-removed", remove_a_claim, "is removed from the host while"},
    {"claim-lost", lose_a_claim, "is Lost, and it was never removed"},
    {"pod-twice", create_a_pod_twice, "is created a second time"},
    {"gpus", exceed_the_limit, "GPUs on the host, where the limit"},
    {"charge-lost", lose_a_charge, "GPUs, and is charged"},
    {"charge-stray", charge_without_a_pod, "which is not on record"},
    {"write-lost", lose_a_write_of_first, "was answered and is gone"},
    {"write-undone", undo_a_write, "carries mark"},
    {"disk-back", go_back_with_first, "answered"},
    {"log-lost", logless_plant, "the log is lost with revision"},
    {"log-of-another-store", foreign_plant_store, "the log of another store is taken"},
    {"watch-gap", miss_an_event_of_first, "a watch"},
    {"content", falsify_content, "the worlds are apart", LATE},
    {"leftover", leave_a_secret, "the worlds are apart", LATE},
    {"second-write-lost", lose_a_write_of_second, "was answered and is gone", SECOND},
    {"second-disk-back", go_back_with_second, "answered", SECOND},
    {"second-watch-gap", miss_an_event_of_second, "a watch", SECOND},
    {"second-answers", answer_without_leading, "does not lead, and answers", SECOND},
    {"second-acts", release_a_live_lease, "both act on the host", SECOND},
    {"second-silent", report_nothing, "does not report the answered write", SECOND},
    {"second-no-deletion", report_no_deletion, "does not report the deletion", SECOND},
};
const size_t N_PLANTS = COUNT(PLANTS);

void plant_step(struct world *w, const struct plant *p, bool late)
{
    if (!p || w->planted || p->late != late || (!late && w->step < FIRST_STEP))
        return;
    w->planted = p->put(w);
    if (w->planted)
        world_trace("planted: %s", p->name);
}
