/* SPDX-License-Identifier: Apache-2.0 */
/* The host's verdict: what a tenant is about to create, and a resize of a pod, is translated and
 * sent to the host as a dry run, and the host's refusal becomes the tenant's own, at apply time. A
 * deadline decides: a host that is slow or unreachable never delays a request for longer, nor does
 * an exhausted rate of dry runs (dry_run.c): the host checks the real create anyway. A pod that the
 * tenant's own quota of GPUs holds back is not for the host's quota of them to refuse: it waits, or
 * the exact quota refuses it. Must never refuse a request because this process or the network
 * failed. */

#include "admission/admission.h"
#include "core/dry_run.h"
#include "core/kept.h"
#include "gpu/ledger.h"
#include "pods/pods.h"
#include <assert.h>
#include <string.h>

#include <sublet/object.h>

#define VERDICT_MAGIC 0x76657264u

struct verdict {
    unsigned magic;
    struct syncer *syncer;
    struct arena *arena;  /* the request's */
    const cJSON *creates; /* the pod; NULL: a resize */
    bool is_template, dry_run;
    struct str ns, name;
    void (*done)(void *ctx, const struct err *err);
    void *done_ctx;
};

/* --- which requests --- */

static const char *const TEMPLATES[] = {"spec.template", "spec.jobTemplate.spec.template"};

static bool is_pod(const struct resource *r)
{
    return !r->group.n && str_eqc(r->plural, "pods");
}

static bool is_workload(const struct resource *r)
{
    return !r->crd && (str_eqc(r->group, "apps") || str_eqc(r->group, "batch") ||
                       str_eqc(r->plural, "replicationcontrollers"));
}

static const cJSON *template_of(const struct resource *r, const cJSON *object)
{
    for (size_t i = 0; is_workload(r) && i < COUNT(TEMPLATES); i++) {
        const cJSON *found = json_path(object, TEMPLATES[i]);

        if (json_path(found, "spec.containers"))
            return found;
    }
    return NULL;
}

/* A controller's pods were judged when their template was written. */
static bool is_made_by_controller(const cJSON *object)
{
    return owner_controller(object) != NULL;
}

/* Only pods/resize changes the resources of a pod; other changes of its containers need no verdict
 * either (translate_pod_resize). */
static bool may_be_resize(const cJSON *object, const cJSON *old)
{
    static const char *const keys[] = {"spec.containers", "spec.initContainers", "spec.resources"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!json_equal(json_path(object, keys[i]), json_path(old, keys[i])))
            return true;
    }
    return false;
}

bool sync_verdict_wanted(const struct syncer *s, const struct resource *r, const cJSON *object,
                         const cJSON *old)
{
    const cJSON *template_;

    if (s->config->verdict == VERDICT_OFF || s->phase == SYNC_NEW || !host_is_up(s->host))
        return false;
    if (is_pod(r) && old)
        return may_be_resize(object, old);
    if (is_pod(r))
        return (s->config->verdict == VERDICT_ENFORCE || !is_made_by_controller(object));
    template_ = template_of(r, object);
    if (!template_ || is_made_by_controller(object))
        return false;
    return !old || !json_equal(template_, template_of(r, old));
}

static bool is_claimed(const cJSON *claims, struct str volume)
{
    json_each(claim, claims)
    {
        if (str_eq(json_str_at(claim, "metadata.name"), volume))
            return true;
    }
    return false;
}

/* The StatefulSet controller adds a volume for each claim template and replaces those of the same
 * name; mounts refer to them, but the pod template does not have them. */
static void mount_claims(struct arena *a, cJSON *pod, const cJSON *object)
{
    const cJSON *claims = json_path(object, "spec.volumeClaimTemplates");
    cJSON *spec = json_get(pod, "spec"), *volumes = json_new_array(a);

    if (!json_count(claims) || !json_is_object(spec))
        return;
    json_each(claim, claims)
    {
        cJSON *volume = json_append(volumes, json_new_object(a));
        struct str name = json_str_at(claim, "metadata.name");

        json_set_str(a, volume, "name", name);
        json_set_str(a, json_ensure_object(a, volume, "persistentVolumeClaim"), "claimName",
                     arena_printf(a, "%.*s-%.*s-0", STR_F(name),
                                  STR_F(json_str_at(object, "metadata.name"))));
    }
    json_each(volume, json_get(spec, "volumes"))
    {
        if (!is_claimed(claims, json_str_at(volume, "name")))
            json_append(volumes, json_copy(a, volume));
    }
    json_set(a, spec, "volumes", volumes);
}

static cJSON *pod_of(struct arena *a, const struct resource *r, const cJSON *object)
{
    const cJSON *from = template_of(r, object);
    cJSON *pod, *metadata;

    if (is_pod(r))
        return json_copy(a, object);
    pod = json_copy(a, from);
    json_set_str(a, pod, "apiVersion", STR("v1"));
    json_set_str(a, pod, "kind", STR("Pod"));
    metadata = json_ensure_object(a, pod, "metadata");
    json_set_str(a, metadata, "name", json_str_at(object, "metadata.name"));
    json_set_str(a, metadata, "namespace", json_str_at(object, "metadata.namespace"));
    json_set_str(a, metadata, "uid", json_str_at(object, "metadata.uid"));
    mount_claims(a, pod, object);
    return pod;
}

cJSON *sync_verdict_pod(struct arena *a, const struct resource *r, const cJSON *object)
{
    return is_pod(r) || template_of(r, object) ? pod_of(a, r, object) : NULL;
}

static void finish(struct verdict *v, const struct err *err)
{
    void (*done)(void *ctx, const struct err *err) = v->done;
    void *ctx = v->done_ctx;

    if (err)
        (void)sync_rejected(v->syncer, REJECTED_HOST, v->dry_run, err);
    v->magic = 0;
    done(ctx, err);
}

static void on_deferred(void *ctx)
{
    finish(ctx, NULL);
}

bool sync_verdict_is_of_devices(const struct err *refusal)
{
    static const char QUOTA[] = "exceeded quota: ", LIST[] = ", requested: ";
    struct str text = refusal->message;
    const char *at = memmem(text.p, text.n, QUOTA, strlen(QUOTA));
    struct str rest, name, amounts;

    rest = at ? str_from(text, (size_t)(at - text.p)) : STR("");
    at = memmem(rest.p, rest.n, LIST, strlen(LIST));
    rest = at ? str_from(rest, (size_t)(at - rest.p) + strlen(LIST)) : STR("");
    do {
        amounts = str_cut(&rest, ',');
        name = str_cut(&amounts, '=');
        if (!str_has_prefix(name, STR("requests.")) || !str_contains(name, STR("/")))
            return false;
    } while (rest.n && rest.p[0] != ' ');
    return true;
}

/* Then the host does not get it now. A workload that is refused pod by pod is warned of. */
static bool is_held_back(const struct verdict *v, const struct err *err)
{
    struct pool_choice choice;
    struct err other;

    err_init(&other, v->arena);
    return v->creates && sync_verdict_is_of_devices(err) &&
           !sync_pod_choose(v->syncer, v->arena, v->creates, &choice, &other) && choice.binding &&
           !choice.by_claims && !sync_ledger_has_room(v->syncer->ledger, &choice) &&
           (!v->is_template || choice.binding->over_quota == OVER_QUOTA_QUEUE);
}

static void judge(struct verdict *v, struct str host_name, const struct err *err)
{
    struct syncer *s = v->syncer;
    struct str text = translate_refusal_up(v->arena, &s->tenant, err, host_name, v->ns, v->name);
    struct err refusal;

    if (v->is_template || s->config->verdict == VERDICT_WARN) {
        vapi_admit_warn(
            v->done_ctx,
            arena_printf(v->arena, "the host cluster would refuse it: %.*s", STR_F(text)));
        finish(v, NULL);
        return;
    }
    err_init(&refusal, v->arena);
    err_set(&refusal, err->kind, "%.*s", STR_F(text));
    refusal.name = v->name;
    finish(v, &refusal);
}

/* The host admits it, and would not keep all of it: where its verdict binds, a pod that would be
 * another one is refused. */
static void judge_dropped(struct verdict *v, const struct dry_result *result)
{
    struct str text = arena_printf(v->arena, "the host cluster would run it without %.*s: %s",
                                   STR_F(result->dropped), DROPPED_WHY);
    struct err err;

    err_init(&err, v->arena);
    if (result->changes_pod && !v->is_template && v->syncer->config->verdict == VERDICT_ENFORCE) {
        (void)err_forbidden(&err, STR(""), STR("pods"), v->name, "%.*s", STR_F(text));
        finish(v, &err);
        return;
    }
    if (result->dropped.n)
        vapi_admit_warn(v->done_ctx, text);
    finish(v, NULL);
}

static void on_answer(void *ctx, const struct dry_result *result, const struct err *err)
{
    struct verdict *v = ctx;

    assert(v->magic == VERDICT_MAGIC);
    if (!err) {
        judge_dropped(v, result);
        return;
    }
    if (sync_dry_run_refused(err)) {
        if (is_held_back(v, err))
            finish(v, NULL);
        else
            judge(v, result->host_name, err);
        return;
    }
    if (v->dry_run)
        vapi_admit_warn(v->done_ctx,
                        STR("the host cluster has not judged it: it gave no answer in time"));
    finish(v, NULL);
}

/* False: no dry run; admission or the pod's reconcile reports why it cannot be translated. */
static bool translate(struct verdict *v, const cJSON *pod, cJSON **ret)
{
    struct pool_choice choice;
    struct err err;

    err_init(&err, v->arena);
    return !sync_pod_choose(v->syncer, v->arena, pod, &choice, &err) &&
           !sync_pod_translate(v->syncer, v->arena, pod, &choice, false, ret, &err);
}

/* Only `enforce` delays a write until the rate allows the dry run: the host checks the real create
 * anyway. */
static enum dry_run_patience patience_of(const struct verdict *v)
{
    if (v->dry_run)
        return DRY_RUN_PATIENT;
    return v->syncer->config->verdict == VERDICT_ENFORCE ? DRY_RUN_URGENT : DRY_RUN_NOW;
}

/* resizes: the host pod that the patch `pod` resizes; empty: it is to be created. */
static void send_dry_run(struct verdict *v, const cJSON *pod, struct str resizes)
{
    struct dry_run q = {.id = SYNC_PODS,
                        .object = pod,
                        .resizes = resizes,
                        .patience = patience_of(v),
                        .timeout_ms = v->syncer->config->verdict_timeout_ms};
    char tokens[64];

    translate_token_secret_name(&v->syncer->tenant, v->ns, v->name, tokens);
    q.also_named = str_c(tokens);
    sync_dry_run_send(v->syncer, v->arena, &q, on_answer, v);
}

/* False: no dry run; a pod that is not on the host yet is judged when it is created there. */
static bool dry_run_resize(struct verdict *v, const cJSON *pod)
{
    const cJSON *now = sync_pod_on_host(v->syncer, v->arena, pod);
    cJSON *wanted = NULL, *patch;

    if (!now || object_is_terminating(now) || !translate(v, pod, &wanted))
        return false;
    patch = translate_pod_resize(v->arena, now, wanted, true);
    if (!patch)
        return false;
    json_set_str(v->arena, json_ensure_object(v->arena, patch, "metadata"), "uid", sync_uid(now));
    send_dry_run(v, patch, json_str_at(now, "metadata.name"));
    return true;
}

static bool dry_run_create(struct verdict *v, const cJSON *pod)
{
    cJSON *host = NULL;

    if (!translate(v, pod, &host))
        return false;
    v->creates = pod;
    send_dry_run(v, sync_pod_to_judge(v->syncer, v->arena, host), STR(""));
    return true;
}

void sync_verdict_request(struct syncer *s, struct arena *a, const struct resource *r,
                          const cJSON *object, const cJSON *old, bool dry_run,
                          void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct verdict *v = ARENA_NEW(a, struct verdict);
    cJSON *pod = pod_of(a, r, object);

    *v = (struct verdict){.magic = VERDICT_MAGIC,
                          .syncer = s,
                          .arena = a,
                          .is_template = !is_pod(r),
                          .dry_run = dry_run,
                          .ns = json_str_at(pod, "metadata.namespace"),
                          .name = json_str_at(pod, "metadata.name"),
                          .done = done,
                          .done_ctx = ctx};
    if (!(is_pod(r) && old ? dry_run_resize(v, pod) : dry_run_create(v, pod)))
        syncer_defer(s, on_deferred, v);
}
