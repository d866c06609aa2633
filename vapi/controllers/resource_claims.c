/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the ResourceClaims of pods from their templates, names them in the pod's status, and
 * deletes them when the pod has finished. Who holds devices is the host's to say: must never write
 * the status of a claim. Source: pkg/controller/resourceclaim of Kubernetes 1.36. */
#include "util.h"

#include <sublet/json_build.h>

#define GROUP       "resource.k8s.io"
#define POD_ENTRY   "resource.kubernetes.io/pod-claim-name"
#define IN_TEMPLATE "\"resourceClaimTemplateName\""

static struct str entry_of(const cJSON *claim)
{
    return json_str(json_get(json_path(claim, "metadata.annotations"), POD_ENTRY));
}

static const cJSON *claim_for(const cJSON *claims, struct str entry)
{
    json_each(claim, claims)
    {
        if (str_eq(entry_of(claim), entry))
            return claim;
    }
    return NULL;
}

/* --- from a template --- */

static cJSON *make_claim(struct reconcile *r, const cJSON *pod, struct str entry,
                         const cJSON *template_)
{
    struct arena *a = reconcile_arena(r);
    const cJSON *from = json_path(template_, "spec.metadata");
    cJSON *metadata = json_object(
        a, JSON("generateName", arena_printf(a, "%.*s-%.*s-", STR_F(meta_name(pod)), STR_F(entry))),
        JSON("namespace", meta_ns(pod)),
        JSON("ownerReferences",
             json_array(a, metadata_owner_ref(a, reconcile_resource(r, "", "pods"), pod))));
    cJSON *notes = json_get(from, "annotations") ? json_copy(a, json_get(from, "annotations"))
                                                 : json_new_object(a);

    json_set_str(a, notes, POD_ENTRY, entry);
    json_set(a, metadata, "annotations", notes);
    if (json_get(from, "labels"))
        json_set(a, metadata, "labels", json_copy(a, json_get(from, "labels")));
    return json_object(a, JSON("apiVersion", GROUP "/v1"), JSON("kind", "ResourceClaim"),
                       JSON("metadata", metadata),
                       JSON("spec", json_copy(a, json_path(template_, "spec.spec"))));
}

/* A quota that is used up is tried again, with backoff. */
static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    const cJSON *pod = ctx;

    (void)object;
    if (!err)
        return;
    reconcile_event(r, pod, "Warning", "FailedResourceClaimCreation", "%.*s", STR_F(err->message));
    reconcile_take(r, err);
}

static void create(struct reconcile *r, const cJSON *pod, const cJSON *entry)
{
    struct str name = json_str_at(entry, "resourceClaimTemplateName");
    const cJSON *template_ = reconcile_get(
        r, reconcile_resource(r, GROUP, "resourceclaimtemplates"), meta_ns(pod), name);
    struct err err;

    err_init(&err, reconcile_arena(r));
    if (!template_) {
        err_not_found(&err, STR(GROUP), STR("resourceclaimtemplates"), name);
        reconcile_event(r, pod, "Warning", "FailedResourceClaimCreation", "%.*s",
                        STR_F(err.message));
        reconcile_fail(r, &err);
        return;
    }
    reconcile_create(r, reconcile_resource(r, GROUP, "resourceclaims"), meta_ns(pod),
                     make_claim(r, pod, json_str_at(entry, "name"), template_));
    reconcile_then(r, on_created, (void *)(uintptr_t)pod);
}

/* --- of a pod --- */

static void name_in_status(struct reconcile *r, const cJSON *pod, cJSON *statuses)
{
    cJSON *now;

    if (json_equal(json_path(pod, "status.resourceClaimStatuses"), statuses))
        return;
    now = json_copy(reconcile_arena(r), pod);
    json_set(reconcile_arena(r), json_ensure_object(reconcile_arena(r), now, "status"),
             "resourceClaimStatuses", statuses);
    reconcile_update_status(r, reconcile_resource(r, "", "pods"), now);
}

static void provide(struct reconcile *r, const cJSON *pod, const cJSON *claims)
{
    struct arena *a = reconcile_arena(r);
    cJSON *statuses = json_new_array(a);
    bool complete = true;

    json_each(entry, json_path(pod, "spec.resourceClaims"))
    {
        struct str name = json_str_at(entry, "name");
        const cJSON *claim = claim_for(claims, name);

        if (!json_str_at(entry, "resourceClaimTemplateName").n)
            continue;
        if (claim) {
            json_append(statuses, json_object(a, JSON("name", name),
                                              JSON("resourceClaimName", meta_name(claim))));
            continue;
        }
        complete = false;
        create(r, pod, entry);
    }
    if (complete) /* else a new claim adds the pod again */
        name_in_status(r, pod, statuses);
}

static void pod_reconcile(struct reconcile *r)
{
    struct str ns, name;
    const cJSON *pod, *claims;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    pod = reconcile_get(r, reconcile_resource(r, "", "pods"), ns, name);
    if (!pod)
        return; /* the garbage collector deletes its claims */
    claims = objects_owned(r, reconcile_resource(r, GROUP, "resourceclaims"), ns, meta_uid(pod));
    if (!pod_is_finished(pod)) {
        if (!object_is_terminating(pod))
            provide(r, pod, claims);
        return;
    }
    json_each(claim, claims)
    {
        if (entry_of(claim).n && !object_is_terminating(claim))
            reconcile_delete(r, reconcile_resource(r, GROUP, "resourceclaims"), meta_ns(claim),
                             meta_name(claim), meta_uid(claim), NULL);
    }
}

/* --- events --- */

static void map_pod(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED && str_contains(e->object->bytes, STR(IN_TEMPLATE)))
        controller_map_self(c, e);
}

static void map_claim(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("Pod"));
}

static const struct controller_source SOURCES[] = {
    {"", "pods", map_pod},
    {GROUP, "resourceclaims", map_claim},
    {0},
};

const struct controller_def RESOURCE_CLAIM_CONTROLLER = {
    .name = "resourceclaim-controller",
    .account = "resource-claim-controller",
    .retries = "Pod",
    .sources = SOURCES,
    .reconcile = pod_reconcile,
};
