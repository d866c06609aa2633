/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps and Secrets: copies of those that pods refer to, of those that carry the annotation
 * sublet.dev/sync, and, where the configuration has it, of all. The host is watched by metadata
 * only; an annotation carries the digest of what was written, so that their data is not kept in
 * memory. An object of another revision than the one that we wrote or compared is read and compared
 * once. Must never copy one that is none of these, nor a token that no pod refers to, nor remove
 * the copy of one that a hidden object may refer to. */

#include "objects/objects.h"
#include <sublet/config_sync.h>
#include <sublet/encode.h>
#include <sublet/translate_from_host.h>

#define ANNOTATION_DIGEST "sublet.dev/digest"
#define NOTE_SYNC         "sublet.dev/sync" /* of the tenant's object */

static cJSON *translated(const struct syncer *s, struct arena *a, enum sync_id id,
                         const cJSON *object)
{
    return id == SYNC_SECRETS ? translate_secret(a, &s->tenant, object)
                              : translate_config_map(a, &s->tenant, object);
}

static cJSON *wanted(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *object = translated(run->syncer, a, run->id, run->virtual_), *notes;
    unsigned char digest[32];
    char encoded[27];

    if (!object)
        return NULL;
    sha256(json_text(a, object), digest);
    base32_lower(digest, sizeof(digest), encoded, sizeof(encoded) - 1);
    encoded[sizeof(encoded) - 1] = 0;
    notes = json_ensure_path(a, object, "metadata.annotations");
    json_set_str(a, notes, ANNOTATION_DIGEST, str_c(encoded));
    return object;
}

static struct str digest_of(const cJSON *object)
{
    return json_str(
        json_get(json_get(json_get(object, "metadata"), "annotations"), ANNOTATION_DIGEST));
}

static uint64_t revision_of(const cJSON *object)
{
    uint64_t revision = 0;

    str_to_u64(json_str_at(object, "metadata.resourceVersion"), &revision);
    return revision;
}

/* Is the cached object the answer to a write of ours? The watch sends metadata only. */
static bool is_answer(const cJSON *host)
{
    struct str kind = json_str(json_get(host, "kind"));

    return str_eqc(kind, "ConfigMap") || str_eqc(kind, "Secret");
}

static struct ref_copy *copy_of(const struct sync_run *run)
{
    return sync_refs_copy(run->syncer->refs, run->id, run->ns, run->name);
}

/* Another client changed the content: written back once, and then after a while. */
static bool is_fought(const struct sync_run *run, struct ref_copy *copy)
{
    int64_t now = syncer_mono_ms(run->syncer), before = copy->written_back;

    if (before && now - before < SYNC_FOUGHT_MS)
        return true;
    copy->written_back = now;
    return false;
}

/* Read from the host to compare its content, and to find the keys that the patch removes. */
static void on_current(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct ref_copy *copy = copy_of(run);
    cJSON *now = NULL, *object = wanted(run), *patch;

    if (err) {
        if (err->kind != &ERR_NOT_FOUND)
            reconcile_fail(run->reconcile, err);
        return;
    }
    if (!copy || json_parse(run->arena, answer->body, &now, NULL) ||
        !str_eq(sync_uid(now), run->host_uid))
        return;
    patch = translate_data_update(run->arena, now, object);
    if (!patch) {
        copy->revision = revision_of(now);
        return;
    }
    if (str_eq(digest_of(now), digest_of(object)) && is_fought(run, copy)) {
        sync_fought(run);
        return;
    }
    json_set_str(run->arena, json_ensure_object(run->arena, patch, "metadata"), "resourceVersion",
                 json_str_at(now, "metadata.resourceVersion"));
    sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", NULL, NULL, NULL});
}

/* The digest says what was written last; the revision, whether it is still there. */
static void update(struct sync_run *run)
{
    struct host_request q = {.method = "GET"};
    struct ref_copy *copy = copy_of(run);
    cJSON *object = wanted(run);
    bool written = object && str_eq(digest_of(object), digest_of(run->host));

    if (written && is_answer(run->host))
        copy->revision = revision_of(run->host);
    if (!object || (written && copy->revision == revision_of(run->host)))
        return;
    q.path = sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), "");
    sync_send(run, &q, on_current);
}

static void create(struct sync_run *run)
{
    cJSON *object = wanted(run);

    if (object)
        sync_create(run, object);
}

static void reconcile(struct reconcile *r, enum sync_id id)
{
    struct sync_run run;

    if (!sync_run_init(&run, r, id))
        return;
    if (!run.virtual_) /* a pod does not wait for what the tenant does not have */
        sync_refs_wake(run.syncer->refs, id, run.ns, run.name);
    bool needed = run.virtual_ && sync_refs_wanted(run.syncer->refs, id, run.ns, run.name);
    if (!needed && !run.mapping.exists)
        return; /* the common case: it never goes to the host */
    if (!syncer_ready(run.syncer, id, id, id) || !sync_run_init(&run, r, id))
        return;
    if (!needed) {
        /* Unreferenced, treated as deleted: the record proves the copy ours. */
        if (run.virtual_ && !sync_refs_are_whole(run.syncer->refs, run.ns))
            reconcile_spare(r);
        sync_finish_gone(&run, -1);
        return;
    }
    if (sync_settle_owner(&run))
        return;
    if (!run.host) {
        create(&run);
        return;
    }
    sync_refs_wake(run.syncer->refs, id, run.ns, run.name);
    update(&run);
}

/* --- both sides compared --- */

bool sync_data_is_wanted(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object)
{
    (void)a;
    return sync_refs_wanted(s->refs, id, json_str_at(object, "metadata.namespace"),
                            json_str_at(object, "metadata.name"));
}

/* Without the digest, which is of what was written, not of what is there. */
cJSON *sync_data_difference(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                            const cJSON *host)
{
    cJSON *wants = translated(s, a, id, object);
    struct str digest = digest_of(host);

    if (digest.n)
        json_set_str(a, json_ensure_path(a, wants, "metadata.annotations"), ANNOTATION_DIGEST,
                     digest);
    return translate_data_update(a, host, wants);
}

static void reconcile_config_map(struct reconcile *r)
{
    reconcile(r, SYNC_CONFIG_MAPS);
}

static void reconcile_secret(struct reconcile *r)
{
    reconcile(r, SYNC_SECRETS);
}

/* --- what goes down by itself --- */

/* What such a Secret holds admits to this API: it goes down only where a pod mounts it. */
static bool is_token(const cJSON *object)
{
    static const char *const types[] = {"kubernetes.io/service-account-token",
                                        "bootstrap.kubernetes.io/token"};

    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eqc(json_str(json_get(object, "type")), types[i]))
            return true;
    return false;
}

/* all: of its kind. The host has the original of what sync.fromHost shows. The bytes are searched
 * first: few objects have one of the annotations. */
static bool goes_by_itself(struct arena *a, const struct store_object *o, enum sync_id id, bool all)
{
    bool noted = str_contains(o->bytes, STR(NOTE_SYNC)), shown;
    const cJSON *object, *notes;

    if (!noted && !all)
        return false;
    shown = str_contains(o->bytes, STR(ANNOTATION_FROM_HOST));
    if (!noted && !shown && id == SYNC_CONFIG_MAPS)
        return true;
    object = vapi_tree(a, o);
    notes = json_path(object, "metadata.annotations");
    if (id == SYNC_SECRETS && is_token(object))
        return false;
    return str_eqc(json_str(json_get(notes, NOTE_SYNC)), "true") ||
           (all && !json_get(notes, ANNOTATION_FROM_HOST));
}

static void map_data(struct controller *c, const struct store_event *e, enum sync_id id, bool all)
{
    struct syncer *s = vapi_get_hooks(controller_api(c))->ctx;
    struct arena *a = arena_new(0);

    sync_refs_self(s->refs, id, key_join(a, e->object->ns, e->object->name),
                   e->type != STORE_DELETED && goes_by_itself(a, e->object, id, all));
    arena_free(a);
    controller_map_self(c, e);
}

static void map_config_map(struct controller *c, const struct store_event *e)
{
    const struct syncer *s = vapi_get_hooks(controller_api(c))->ctx;

    map_data(c, e, SYNC_CONFIG_MAPS, s->config->to_host->all_config_maps);
}

static void map_secret(struct controller *c, const struct store_event *e)
{
    const struct syncer *s = vapi_get_hooks(controller_api(c))->ctx;

    map_data(c, e, SYNC_SECRETS, s->config->to_host->all_secrets);
}

static const struct controller_source CONFIG_MAP_SOURCES[] = {{"", "configmaps", map_config_map},
                                                              {0}};
static const struct controller_source SECRET_SOURCES[] = {{"", "secrets", map_secret}, {0}};

const struct controller_def SYNC_CONFIG_MAP_CONTROLLER = {
    .name = "sublet-configmaps", .sources = CONFIG_MAP_SOURCES, .reconcile = reconcile_config_map};
const struct controller_def SYNC_SECRET_CONTROLLER = {
    .name = "sublet-secrets", .sources = SECRET_SOURCES, .reconcile = reconcile_secret};
