/* SPDX-License-Identifier: Apache-2.0 */
/* The host's verdict: what a tenant is about to create is translated and sent to the host as a dry
 * run, and the host's refusal becomes the tenant's own, at apply time. A deadline decides: a host
 * that is slow or away never holds a request up, nor does a rate of dry runs that is used up
 * (dry_run.c): a verdict is advice, the host judges every create itself. Must never refuse for a
 * reason of ours or of the network's. */

#include "admission/admission.h"
#include "pods/pods.h"
#include "core/dry_run.h"
#include <assert.h>

#include <sublet/object.h>

#define VERDICT_MAGIC 0x76657264u

struct question {
    unsigned magic;
    struct syncer *syncer;
    struct arena *arena; /* the request's */
    bool is_template, dry_run;
    struct str ns, name;
    void (*done)(void *ctx, const struct err *err);
    void *done_ctx;
};

/* --- asking --- */

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
    for (size_t i = 0; is_workload(r) && i < sizeof(TEMPLATES) / sizeof(*TEMPLATES); i++) {
        const cJSON *found = json_path(object, TEMPLATES[i]);

        if (json_path(found, "spec.containers"))
            return found;
    }
    return NULL;
}

/* What controllers make of a template was judged when the template was written. */
static bool is_made_by_controller(const cJSON *object)
{
    return owner_controller(object) != NULL;
}

bool verdict_wanted(const struct syncer *s, const struct resource *r, const cJSON *object,
                    const cJSON *old)
{
    const cJSON *template_;

    if (s->config->verdict == VERDICT_OFF || !s->started || !host_is_up(s->host))
        return false;
    if (is_pod(r))
        return !old && (s->config->verdict == VERDICT_ENFORCE || !is_made_by_controller(object));
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

/* A StatefulSet's pods get a volume for each claim template, in the place of one of that name: they
 * are in no template, and mounts name them. */
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

static void tell(struct question *q, const struct err *err)
{
    void (*done)(void *ctx, const struct err *err) = q->done;
    void *ctx = q->done_ctx;

    q->magic = 0;
    done(ctx, err);
}

static void on_deferred(void *ctx)
{
    tell(ctx, NULL);
}

static void judge(struct question *q, struct str host_name, const struct err *err)
{
    struct syncer *s = q->syncer;
    struct str text = translate_refusal_up(q->arena, &s->tenant, err, host_name, q->ns, q->name);
    struct err refusal;

    if (q->is_template || s->config->verdict == VERDICT_WARN) {
        vapi_admit_warn(
            q->done_ctx,
            arena_printf(q->arena, "the host cluster would refuse it: %.*s", STR_F(text)));
        tell(q, NULL);
        return;
    }
    err_init(&refusal, q->arena);
    err_set(&refusal, err->kind, "%.*s", STR_F(text));
    refusal.name = q->name;
    tell(q, &refusal);
}

static void on_answer(void *ctx, struct str host_name, struct str body, const struct err *err)
{
    struct question *q = ctx;

    (void)body;
    assert(q->magic == VERDICT_MAGIC);
    if (err && dry_run_refused(err)) {
        judge(q, host_name, err);
        return;
    }
    if (err && q->dry_run)
        vapi_admit_warn(q->done_ctx,
                        STR("the host cluster has not judged it: it gave no answer in time"));
    tell(q, NULL);
}

/* False: nothing to ask; what is wrong with it is said elsewhere. */
static bool translate(struct question *q, const cJSON *pod, cJSON **ret)
{
    struct pool_choice choice;
    struct err err;

    err_init(&err, q->arena);
    return !pod_choose(q->syncer, q->arena, pod, &choice, &err) &&
           !pod_translate(q->syncer, q->arena, pod, &choice, false, ret, &err);
}

/* A write that nothing depends on is not held up for its turn: the host judges the pod itself. */
static enum dry_run_patience patience_of(const struct question *q)
{
    if (q->dry_run)
        return DRY_RUN_PATIENT;
    return q->syncer->config->verdict == VERDICT_ENFORCE ? DRY_RUN_URGENT : DRY_RUN_NOW;
}

static void ask(struct question *q, const cJSON *pod)
{
    struct dry_run ask = {.id = SYNC_PODS,
                          .object = pod,
                          .patience = patience_of(q),
                          .timeout_ms = q->syncer->config->verdict_timeout_ms};
    char tokens[64];

    translate_token_secret_name(&q->syncer->tenant, q->ns, q->name, tokens);
    ask.also_named = str_c(tokens);
    dry_run_ask(q->syncer, q->arena, &ask, on_answer, q);
}

void verdict_ask(struct syncer *s, struct arena *a, const struct resource *r, const cJSON *object,
                 bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct question *q = ARENA_NEW(a, struct question);
    cJSON *pod = pod_of(a, r, object), *host = NULL;

    *q = (struct question){.magic = VERDICT_MAGIC,
                           .syncer = s,
                           .arena = a,
                           .is_template = !is_pod(r),
                           .dry_run = dry_run,
                           .ns = json_str_at(pod, "metadata.namespace"),
                           .name = json_str_at(pod, "metadata.name"),
                           .done = done,
                           .done_ctx = ctx};
    if (translate(q, pod, &host))
        ask(q, host);
    else
        syncer_defer(s, on_deferred, q);
}
