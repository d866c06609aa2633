/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The syncer's checks of pods and claims, and of their templates in other kinds. A pod or claim is
 * refused; a template only causes a warning, because its pods are checked again. It must find pod
 * templates by the type table, so that no kind with one is missed. */
#include "verbs.h"

#include <sublet/json_build.h>

#define TEMPLATE_TYPE "io.k8s.api.core.v1.PodTemplateSpec"

/* Paths of templates; a path counts when the type table has it. */
static const char *const PLACES[] = {"spec.template", "spec.jobTemplate.spec.template", "template"};

static uint32_t node_at(const struct schema *s, uint32_t node, const char *path)
{
    struct str rest = str_c(path);

    while (node && rest.p)
        node = schema_child(s, node, str_cut(&rest, '.'));
    return node;
}

static const cJSON *find_template(const struct resource *r, const cJSON *object)
{
    if (r->crd || !r->node)
        return NULL;
    for (size_t i = 0; i < COUNT(PLACES); i++) {
        uint32_t node = node_at(r->schema, r->node, PLACES[i]);

        if (node && str_eqc(str_c(schema_text(r->schema, schema_node(r->schema, node)->type_name)),
                            TEMPLATE_TYPE))
            return json_path(object, PLACES[i]);
    }
    return NULL;
}

/* Its pods are named after the object, as refusals of them are. */
static cJSON *pod_of_template(struct call *c, const cJSON *template_, struct str owner)
{
    struct arena *a = c->arena;
    const cJSON *from = json_get(template_, "metadata");
    cJSON *metadata = json_is_object(from) ? json_copy(a, from) : json_new_object(a);

    if (owner.n)
        json_set_str(a, metadata, "generateName", arena_printf(a, "%.*s-", STR_F(owner)));
    return json_object(a, JSON("kind", "Pod"), JSON("apiVersion", "v1"), JSON("metadata", metadata),
                       JSON("spec", json_copy(a, json_get(template_, "spec"))));
}

int64_t vapi_template_copies(const cJSON *object)
{
    const cJSON *spec = json_get(object, "spec"), *job = json_path(spec, "jobTemplate.spec");
    int64_t parallelism, completions;

    if (json_get(spec, "replicas"))
        return json_i64_at(spec, "replicas", 0);
    if (job)
        spec = job;
    parallelism = json_i64_at(spec, "parallelism", 0);
    completions = json_i64_at(spec, "completions", parallelism);
    return completions < parallelism ? completions : parallelism;
}

static void on_warning(void *ctx, struct str text)
{
    call_warn(ctx, text);
}

static int admit_claim_shape(struct call *c, const struct vapi_hooks *h, const cJSON *object,
                             const cJSON *old, struct err *err)
{
    if (!h->check_claim)
        return 0;
    if (c->resource->flags & RES_CLAIM)
        return h->check_claim(h->ctx, c->arena, object, old, err);
    if (c->resource->flags & RES_CLAIM_TEMPLATES) {
        json_each(template_, json_path(object, "spec.volumeClaimTemplates"))
        {
            struct err why;

            err_init(&why, c->arena);
            if (h->check_claim(h->ctx, c->arena, template_, NULL, &why))
                call_warn(c, why.message);
        }
    }
    return 0;
}

/* While scheduling gates hold a pod, its node selection may still change: it is checked like that
 * of a created pod. */
static const cJSON *pod_to_judge(struct call *c, const cJSON *object, const cJSON *old)
{
    static const char *const placement[] = {"spec.nodeSelector", "spec.affinity"};
    bool same = true;
    cJSON *copy;

    for (size_t i = 0; old && i < COUNT(placement); i++) {
        const cJSON *was = json_path(old, placement[i]), *is = json_path(object, placement[i]);

        same &= was && is ? json_equal(was, is) : !is;
    }
    if (!old || same)
        return object;
    copy = json_copy(c->arena, object);
    json_remove(json_get(copy, "metadata"), "resourceVersion");
    return copy;
}

int admit_shape(struct call *c, const cJSON *object, const cJSON *old, struct err *err)
{
    const struct vapi_hooks *h = vapi_get_hooks(c->api);
    const cJSON *template_;
    struct vapi_template of;
    struct err why;

    if (admit_claim_shape(c, h, object, old, err) ||
        (h->check_synced &&
         h->check_synced(h->ctx, c->arena, c->resource, object, old, on_warning, c, err)))
        return -1;
    if (!h->check_pod)
        return 0;
    if (resource_is_pod(c->resource))
        return h->check_pod(h->ctx, c->arena, c->ns, pod_to_judge(c, object, old), NULL,
                            c->options.dry_run, on_warning, c, err);
    template_ = find_template(c->resource, object);
    if (!template_)
        return 0;
    err_init(&why, c->arena);
    of = (struct vapi_template){.kind = c->resource->kind,
                                .name = json_str_at(object, "metadata.name"),
                                .copies = vapi_template_copies(object)};
    if (h->check_pod(h->ctx, c->arena, c->ns, pod_of_template(c, template_, of.name), &of,
                     c->options.dry_run, on_warning, c, &why))
        call_warn(c, why.message);
    return 0;
}
