/* SPDX-License-Identifier: Apache-2.0 */
/* The host's verdict: what a tenant is about to create is translated and sent to the host as a dry
 * run, and the host's refusal becomes the tenant's own, at apply time. A deadline decides: a host
 * that is slow or away never holds a request up. Pods of one shape are asked about once in a while:
 * a verdict is no reservation. Must never refuse for a reason of ours or of the network's. */
#include "engine.h"

#include <assert.h>

#include <sublet/encode.h>
#include <sublet/object.h>

#define VERDICT_MAGIC 0x76657264u
#define FRESH_MS      10000
#define CACHE_MAX     128

struct verdict {
    struct map_entry entry; /* digest of the shape */
    struct verdict *next;   /* by age, oldest first */
    int64_t until_ms;
    char digest[53];
};

struct verdicts {
    struct syncer *syncer;
    struct map map;
    struct verdict *first, *last;
};

struct question {
    unsigned magic;
    struct syncer *syncer;
    struct arena *arena; /* the request's */
    bool is_template;
    struct str ns, name;
    char host_name[64], digest[53];
    void (*done)(void *ctx, const struct err *err);
    void *done_ctx;
};

/* --- what was asked lately --- */

static void forget_first(struct verdicts *v)
{
    struct verdict *old = v->first;

    v->first = old->next;
    if (!v->first)
        v->last = NULL;
    map_remove(&v->map, &old->entry);
    mem_free(old);
}

static int64_t now_ms(const struct verdicts *v)
{
    return clock_mono_ms(vapi_clock(v->syncer->api));
}

static bool is_fresh(struct verdicts *v, const char *digest)
{
    while (v->first && (v->first->until_ms <= now_ms(v) || v->map.n > CACHE_MAX))
        forget_first(v);
    return map_get(&v->map, str_c(digest)) != NULL;
}

static void remember(struct verdicts *v, const char *digest)
{
    struct verdict *new;

    if (is_fresh(v, digest))
        return;
    new = NEW(struct verdict);
    new->until_ms = now_ms(v) + FRESH_MS;
    for (size_t i = 0; i < sizeof(new->digest); i++)
        new->digest[i] = digest[i];
    map_put(&v->map, &new->entry, str_c(new->digest));
    if (v->last)
        v->last->next = new;
    else
        v->first = new;
    v->last = new;
}

/* The shape: the pod without what makes it this one. */
static void digest_of(struct arena *a, const cJSON *pod, char out[53])
{
    cJSON *shape = json_copy(a, pod), *metadata = json_get(shape, "metadata");
    unsigned char digest[32];

    json_remove(metadata, "name");
    json_remove(metadata, "annotations");
    json_remove(json_get(shape, "spec"), "hostname");
    sha256(json_text(a, shape), digest);
    base32_lower(digest, sizeof(digest), out, 52);
    out[52] = 0;
}

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

/* That we lack the right to ask says nothing of the pod. */
static bool is_refusal(const struct err *err)
{
    if (translate_refusal_is_of_rights(err))
        return false;
    return err->kind == &ERR_FORBIDDEN || err->kind == &ERR_INVALID ||
           err->kind == &ERR_BAD_REQUEST;
}

static void judge(struct question *q, const struct err *err)
{
    struct syncer *s = q->syncer;
    struct str text =
        translate_refusal_up(q->arena, &s->tenant, err, str_c(q->host_name), q->ns, q->name);
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

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct question *q = ctx;

    (void)answer;
    assert(q->magic == VERDICT_MAGIC);
    if (err && is_refusal(err)) {
        judge(q, err);
        return;
    }
    if (!err)
        remember(q->syncer->verdicts, q->digest);
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

static void ask(struct question *q, cJSON *pod)
{
    struct syncer *s = q->syncer;
    struct host_request request = {
        .method = "POST", .timeout_ms = s->config->verdict_timeout_ms, .urgent = true};
    cJSON *metadata = json_get(pod, "metadata");
    char suffix[11];
    struct str name;

    /* Its own name may still be held by a predecessor on its way out. */
    rng_suffix(vapi_rng(s->api), suffix, sizeof(suffix) - 1);
    name = arena_printf(q->arena, "verdict-%s", suffix);
    json_set_str(q->arena, metadata, "name", name);
    for (size_t i = 0; i < name.n; i++)
        q->host_name[i] = name.p[i];
    request.path = sync_path(q->arena, s, SYNC_PODS, STR(""), "?dryRun=All");
    request.body = json_text(q->arena, pod);
    host_send(s->host, &request, on_answer, q);
}

void verdict_ask(struct syncer *s, struct arena *a, const struct resource *r, const cJSON *object,
                 void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct question *q = ARENA_NEW(a, struct question);
    cJSON *pod = pod_of(a, r, object), *host = NULL;

    *q = (struct question){.magic = VERDICT_MAGIC,
                           .syncer = s,
                           .arena = a,
                           .is_template = !is_pod(r),
                           .ns = json_str_at(pod, "metadata.namespace"),
                           .name = json_str_at(pod, "metadata.name"),
                           .done = done,
                           .done_ctx = ctx};
    if (!translate(q, pod, &host)) {
        syncer_defer(s, on_deferred, q);
        return;
    }
    digest_of(a, host, q->digest);
    if (is_fresh(s->verdicts, q->digest))
        syncer_defer(s, on_deferred, q);
    else
        ask(q, host);
}

/* --- life --- */

struct verdicts *verdicts_new(struct syncer *s)
{
    struct verdicts *v = NEW(struct verdicts);

    v->syncer = s;
    map_init(&v->map, rng_u64(vapi_rng(s->api)));
    return v;
}

struct verdicts *verdicts_free(struct verdicts *v)
{
    if (!v)
        return NULL;
    while (v->first)
        forget_first(v);
    map_fini(&v->map);
    mem_free(v);
    return NULL;
}
