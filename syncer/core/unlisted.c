/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects on record that no list has. Lists and watches select by a label, so an object whose
 * label another client of the host removed looks like one that was deleted, while its containers
 * run on and its data is there. Must never take it for deleted before a read by name says so, nor
 * write to another object than the one on record. */
#include "core/life.h"
#include "core/run.h"

struct look {
    void (*deleted)(struct sync_run *run);
};

/* By these an object is found, and known to be whose it is. */
static const char *const LABELS[] = {LABEL_CLUSTER, LABEL_NAMESPACE};
static const char *const NOTES[] = {ANNOTATION_NAME, ANNOTATION_NS, ANNOTATION_UID};

static void add_lacking(struct arena *a, const cJSON *host, const cJSON *wanted, const char *map,
                        const char *key, cJSON **patch)
{
    struct str is = json_str(json_get(json_path(host, map), key));
    struct str want = json_str(json_get(json_path(wanted, map), key));

    if (!want.p || str_eq(is, want))
        return;
    if (!*patch)
        *patch = json_new_object(a);
    json_set_str(a, json_ensure_path(a, *patch, map), key, want);
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    cJSON *patch = NULL;

    for (size_t i = 0; i < COUNT(LABELS); i++)
        add_lacking(run->arena, run->host, wanted, "metadata.labels", LABELS[i], &patch);
    for (size_t i = 0; i < COUNT(NOTES); i++)
        add_lacking(run->arena, run->host, wanted, "metadata.annotations", NOTES[i], &patch);
    return patch;
}

/* With them back, the watch shows it, and the next run goes on with what it finds. */
static void mark_again(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *wanted = json_new_object(a), *patch;

    json_set(a, wanted, "metadata",
             translate_metadata(a, &run->syncer->tenant, run->virtual_, str_c(run->host_name)));
    patch = lacks(run, wanted);
    if (patch)
        reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                        "a client of the host cluster removed the labels by which it is found "
                        "there; they are set again");
    if (!patch ||
        !sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", wanted, lacks, NULL}))
        reconcile_again_after(run->reconcile, SYNC_FOUGHT_MS);
}

static void on_read(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    const struct look *look = run->then_ctx;
    cJSON *object = NULL;

    if (err && err->kind != &ERR_NOT_FOUND) {
        reconcile_fail(run->reconcile, err);
        return;
    }
    if (!err && json_parse(run->arena, answer->body, &object, NULL)) {
        reconcile_again_after(run->reconcile, 1000);
        return;
    }
    if (object && str_eq(sync_uid(object), run->mapping.host_uid)) {
        run->host = object;
        run->host_uid = sync_uid(object);
        mark_again(run); /* also if the tenant deleted its own meanwhile: then it is deleted next */
    } else if (sync_create_is_outdated(run)) {
        syncer_add(run->syncer, run->id, run->ns, run->name);
    } else {
        look->deleted(run);
    }
}

void sync_unlisted(struct sync_run *run, void (*deleted)(struct sync_run *run))
{
    struct look *look = ARENA_NEW(run->arena, struct look);
    struct sync_run looking = *run;
    struct host_request q = {.method = "GET"};

    look->deleted = deleted;
    looking.then_ctx = look;
    q.path = sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), "");
    sync_send(&looking, &q, on_read);
}
