/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet explain`: what becomes of one object, step by step as it would in earnest. Why: an admin
 * sees what a tenant's manifest turns into before anything runs. Must never store or create
 * anything, nor wait without a deadline.
 *
 *   dry run in the virtual cluster --> translated, compared --> dry run on the host --> answer
 *        '-- not admitted: as stored, or as written              '-- no host object --^ */
#include "engine.h"

#include "core/compare.h"
#include "core/dry_run.h"
#include "objects/down.h"

#include <assert.h>
#include <string.h>

#include <sublet/api_version.h>
#include <sublet/json_build.h>

#define EXPLAIN_MAGIC   0x6578706cu
#define HOST_TIMEOUT_MS 10000

struct explain {
    unsigned magic;
    struct syncer *syncer;
    struct arena *arena;
    const struct resource *resource;
    enum sync_id id; /* of the subject */
    struct str ns, name;
    cJSON *object;  /* as written, as stored or as admitted */
    cJSON *subject; /* what is translated: the object, or the pod of its template */
    cJSON *host;    /* NULL: there is none */
    bool waits;     /* in the line, for GPUs to come free */
    cJSON *answer;
    struct err err;
    syncer_answer_cb done;
    void *ctx;
};

static void finish(struct explain *e)
{
    bool failed = e->err.kind != NULL;
    struct syncer *s = e->syncer;

    e->done(e->ctx, failed ? STR("") : json_text(e->arena, e->answer), failed ? &e->err : NULL);
    e->magic = 0;
    arena_free(e->arena);
    syncer_release(s);
}

static void on_deferred(void *ctx)
{
    struct explain *e = ctx;

    assert(e->magic == EXPLAIN_MAGIC);
    finish(e);
}

/* --- the host's verdict --- */

/* Does the host's Kueue hold pods of this queue by its gate? Its webhook answers dry runs too. */
static void show_gate(struct explain *e, struct str body)
{
    cJSON *queue = json_get(e->answer, "queue"), *pod = NULL;
    bool gated = false;

    if (!queue || !body.n || json_parse(e->arena, body, &pod, NULL))
        return;
    json_each(gate, json_path(pod, "spec.schedulingGates")) gated |=
        str_has_prefix(json_str(json_get(gate, "name")), STR("kueue.x-k8s.io/"));
    json_set_bool(e->arena, queue, "gated", gated);
}

/* A dry run has a name of its own. */
static struct str under_its_name(const struct explain *e, struct str text, struct str dry_run)
{
    const char *at = dry_run.n ? memmem(text.p, text.n, dry_run.p, dry_run.n) : NULL;
    size_t before = at ? (size_t)(at - text.p) : 0;

    if (!at)
        return text;
    return arena_printf(e->arena, "%.*s%.*s%.*s", STR_F(str_sub(text, 0, before)),
                        STR_F(json_str_at(e->host, "metadata.name")),
                        STR_F(str_from(text, before + dry_run.n)));
}

static void on_verdict(void *ctx, const struct dry_result *result, const struct err *err)
{
    struct explain *e = ctx;

    assert(e->magic == EXPLAIN_MAGIC);
    if (!err)
        show_gate(e, result->body);
    if (result->dropped.n)
        json_set_str(e->arena, e->answer, "without", result->dropped);
    if (err && e->waits && sync_verdict_is_of_devices(err))
        json_set_bool(e->arena, e->answer, "waits", true);
    else if (err && sync_dry_run_refused(err))
        json_set_str(e->arena, e->answer, "verdict",
                     under_its_name(e, err->message, result->host_name));
    else if (err)
        json_set_str(e->arena, e->answer, "verdict",
                     arena_printf(e->arena, "not judged: %.*s", STR_F(err->message)));
    finish(e);
}

static enum sync_id kind_of(const struct explain *e)
{
    static const struct {
        const char *plural;
        enum sync_id id;
    } core[] = {{"pods", SYNC_PODS},
                {"services", SYNC_SERVICES},
                {"persistentvolumeclaims", SYNC_CLAIMS},
                {"configmaps", SYNC_CONFIG_MAPS},
                {"secrets", SYNC_SECRETS}};

    for (size_t i = 0; !e->resource->group.n && i < COUNT(core); i++)
        if (str_eqc(e->resource->plural, core[i].plural))
            return core[i].id;
    if (sync_verdict_pod(e->arena, e->resource, e->object))
        return SYNC_PODS;
    return sync_down_kind(e->syncer, e->resource);
}

static void request_verdict(struct explain *e)
{
    struct dry_run q = {
        .id = e->id, .object = e->host, .patience = DRY_RUN_PATIENT, .timeout_ms = HOST_TIMEOUT_MS};
    char tokens[64];

    if (q.id == SYNC_PODS) {
        translate_token_secret_name(&e->syncer->tenant, e->ns, e->name, tokens);
        q.also_named = arena_str(e->arena, str_c(tokens));
        q.object = sync_pod_to_judge(e->syncer, e->arena, e->host);
    }
    sync_dry_run_send(e->syncer, e->arena, &q, on_verdict, e);
}

/* --- the translation --- */

/* Whose pool it goes to, and what may be held of that now. */
static void show_pool(struct explain *e, const struct pool_choice *choice)
{
    const struct config_binding *b = choice->binding;
    struct arena *a = e->arena;

    if (!b)
        return;
    e->waits = b->over_quota == OVER_QUOTA_QUEUE && !choice->by_claims &&
               !sync_ledger_charged(e->syncer->ledger, sync_uid(e->subject)).n &&
               !sync_ledger_has_room(e->syncer->ledger, choice);
    json_set(
        a, e->answer, "pool",
        json_object(a, JSON("name", b->pool->name), JSON_NONEMPTY("binding", b->object),
                    JSON("requested", rational_format(a, choice->gpu_eq)),
                    JSON("used", rational_format(a, sync_ledger_used(e->syncer->ledger, b->pool))),
                    JSON("limit", rational_format(a, b->limit)),
                    JSON("most", rational_format(a, b->most))));
    if (b->pool->scheduler_kind == SCHEDULER_KUEUE)
        json_set_str(a, json_ensure_object(a, e->answer, "queue"), "name", b->pool->queue);
}

/* Of a workload all of its pods. */
static void show_price(struct explain *e, const struct pool_choice *choice)
{
    struct ledger *ledger = e->syncer->ledger;
    struct pool_price_facts facts = {0};
    struct rational used = RATIONAL_ZERO;
    struct str text;

    if (choice->binding)
        used = sync_ledger_used(ledger, choice->binding->pool);
    if (!str_eqc(e->resource->kind, "Pod"))
        facts = (struct pool_price_facts){.kind = e->resource->kind,
                                          .copies = vapi_template_copies(e->object)};
    else if (!sync_ledger_charged(ledger, sync_uid(e->subject)).n)
        facts.used = &used;
    text = pool_price(e->arena, choice, &facts);
    if (text.n)
        json_set_str(e->arena, e->answer, "price", text);
}

static int translate_pod_down(struct explain *e, struct err *err)
{
    struct pool_choice choice;

    if (sync_pod_choose(e->syncer, e->arena, e->subject, &choice, err))
        return -1;
    show_pool(e, &choice);
    show_price(e, &choice);
    return sync_pod_translate(e->syncer, e->arena, e->subject, &choice, true, &e->host, err);
}

static int translate(struct explain *e, struct err *err)
{
    struct syncer *s = e->syncer;
    struct arena *a = e->arena;
    cJSON *left_out;

    switch (e->id) {
    case SYNC_PODS:
        return translate_pod_down(e, err);
    case SYNC_SERVICES:
        return translate_service(a, &s->tenant, e->subject, &e->host, err);
    case SYNC_CLAIMS:
        return translate_pvc(a, &s->tenant, e->subject, NULL, &e->host, err);
    case SYNC_CONFIG_MAPS:
        e->host = translate_config_map(a, &s->tenant, e->subject);
        return 0;
    case SYNC_SECRETS:
        e->host = translate_secret(a, &s->tenant, e->subject);
        return 0;
    default:
        left_out = json_new_array(a);
        json_set(a, e->answer, "leftOut", left_out);
        return sync_down_translate(s, a, e->id, e->subject, left_out, &e->host, err);
    }
}

static void on_change(void *ctx, const struct compare_change *c)
{
    struct explain *e = ctx;
    struct arena *a = e->arena;

    json_append(json_get(e->answer, "changes"),
                json_object(a, JSON("op", sync_compare_word(c->op)), JSON("path", c->path),
                            JSON("from", c->from ? json_copy(a, c->from) : NULL),
                            JSON("to", c->to ? json_copy(a, c->to) : NULL),
                            JSON_NONEMPTY("reason", c->reason)));
}

static void explain_subject(struct explain *e)
{
    struct err err;

    err_init(&err, e->arena);
    e->name = json_str_at(e->subject, "metadata.name");
    e->ns = json_str_at(e->subject, "metadata.namespace");
    if (translate(e, &err) && !json_get(e->answer, "refusal"))
        json_set_str(e->arena, e->answer, "refusal", err.message);
    if (!e->host) {
        syncer_defer(e->syncer, on_deferred, e);
        return;
    }
    json_set(e->arena, e->answer, "host", e->host);
    json_set(e->arena, e->answer, "changes", json_new_array(e->arena));
    if (!sync_compare(e->arena, json_str(json_get(e->subject, "kind")), e->subject, e->host,
                      on_change, e))
        json_set_bool(e->arena, e->answer, "incomplete", true);
    request_verdict(e);
}

/* --- the virtual cluster --- */

static void on_admitted(void *ctx, const cJSON *object)
{
    struct explain *e = ctx;

    assert(e->magic == EXPLAIN_MAGIC);
    e->object = json_copy(e->arena, object);
}

static void take_stored(struct explain *e)
{
    const struct store_object *o = store_latest(e->syncer->store, e->resource->storage, e->ns,
                                                json_str_at(e->object, "metadata.name"));

    if (o)
        e->object = vapi_tree(e->arena, o);
}

static void on_tried(void *ctx, const struct err *err, const struct store_object *object)
{
    struct explain *e = ctx;
    cJSON *pod;

    (void)object;
    assert(e->magic == EXPLAIN_MAGIC);
    e->answer = json_new_object(e->arena);
    if (err && err->kind == &ERR_ALREADY_EXISTS)
        take_stored(e);
    else if (err)
        json_set_str(e->arena, e->answer, "refusal", err->message);
    pod = sync_verdict_pod(e->arena, e->resource, e->object);
    e->subject = pod ? pod : e->object;
    explain_subject(e);
}

static int read_object(struct explain *e, struct str json)
{
    struct api_version v;
    struct str kind;

    if (json_parse(e->arena, json, &e->object, &e->err))
        return -1;
    v = api_version_read(json_str(json_get(e->object, "apiVersion")));
    kind = json_str(json_get(e->object, "kind"));
    e->resource = registry_find_kind(vapi_registry(e->syncer->api), v.group, v.version, kind);
    e->id = e->resource ? kind_of(e) : SYNC_NONE;
    if (e->id == SYNC_NONE)
        return err_set(&e->err, &ERR_BAD_REQUEST,
                       "kind \"%.*s\" has no host object: explain takes Pods, workloads with a pod "
                       "template, Services, PersistentVolumeClaims, ConfigMaps, Secrets and what "
                       "sync.toHost enables",
                       STR_F(kind));
    e->ns = json_str_at(e->object, "metadata.namespace");
    return 0;
}

void syncer_explain(struct syncer *s, struct str json, syncer_answer_cb done, void *ctx)
{
    struct arena *a = arena_new(0);
    struct explain *e = ARENA_NEW(a, struct explain);

    *e =
        (struct explain){.magic = EXPLAIN_MAGIC, .syncer = s, .arena = a, .done = done, .ctx = ctx};
    err_init(&e->err, a);
    syncer_hold(s);
    if (read_object(e, json))
        syncer_defer(s, on_deferred, e);
    else
        vapi_try_create(s->api, e->resource, e->ns, e->object, on_admitted, on_tried, e);
}
