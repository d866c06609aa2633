/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and claims of a StatefulSet: their ownership, creation, and the owner that deletes the
 * claims. Must never create a pod before its claims exist, nor delete a claim itself: the garbage
 * collector does, by the owners written here. */
#include "statefulset.h"

#include <stdlib.h>

#include <sublet/json_build.h>

#define POD_NAME_LABEL  "statefulset.kubernetes.io/pod-name"
#define POD_INDEX_LABEL "apps.kubernetes.io/pod-index"

/* --- ownership of pods --- */

bool sts_in_range(const struct sts *s, int64_t ordinal)
{
    return ordinal >= s->start && ordinal - s->start < s->wanted;
}

bool sts_ordinal(const struct sts *s, struct str pod_name, int64_t *ret)
{
    struct str name = meta_name(s->owner), digits = str_from(pod_name, name.n + 1);

    if (!str_has_prefix(pod_name, name) || pod_name.n < name.n + 2 || pod_name.p[name.n] != '-')
        return false;
    if (digits.p[0] < '0' || digits.p[0] > '9' || (digits.p[0] == '0' && digits.n > 1))
        return false;
    return str_to_i64(digits, ret) && *ret <= INT32_MAX;
}

static int by_ordinal(const void *pa, const void *pb)
{
    const struct sts_pod *a = pa, *b = pb;

    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

static void adopt(struct sts *s, cJSON *pod)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *refs = owner_refs_copy(a, pod);

    json_append(refs, metadata_owner_ref(a, s->res, s->owner));
    owner_refs_write(s->run, s->pods_res, pod, refs);
}

void sts_find_pods(struct sts *s, const struct selector *selector)
{
    struct arena *a = reconcile_arena(s->run);
    struct str ns = meta_ns(s->owner);
    size_t n_owned, n_all;
    cJSON **owned =
        controller_items(a, objects_owned(s->run, s->pods_res, ns, meta_uid(s->owner)), &n_owned);
    cJSON **all = controller_items(a, reconcile_list(s->run, s->pods_res, ns, selector), &n_all);
    int64_t ordinal;

    s->pods = arena_alloc(a, (n_owned + n_all + 1) * sizeof(*s->pods));
    for (size_t i = 0; i < n_owned; i++) {
        if (!selector_match(selector, labels_flatten(a, json_path(owned[i], "metadata.labels"))) ||
            !sts_ordinal(s, meta_name(owned[i]), &ordinal)) {
            if (!object_is_terminating(owned[i])) {
                const cJSON *pod = owned[i];
                cJSON *refs = owner_refs_copy(reconcile_arena(s->run), pod);

                owner_refs_drop(refs, meta_uid(s->owner));
                owner_refs_write(s->run, s->pods_res, pod, refs);
            }
            continue;
        }
        s->pods[s->n_pods++] = (struct sts_pod){owned[i], ordinal};
    }
    for (size_t i = 0; i < n_all; i++) {
        if (owner_controller(all[i]) || object_is_terminating(all[i]) ||
            !sts_ordinal(s, meta_name(all[i]), &ordinal))
            continue;
        adopt(s, all[i]);
        s->pods[s->n_pods++] = (struct sts_pod){all[i], ordinal};
    }
    if (s->n_pods)
        qsort(s->pods, s->n_pods, sizeof(*s->pods), by_ordinal);
}

/* --- claims --- */

static struct str pod_name(struct sts *s, int64_t ordinal)
{
    return arena_printf(reconcile_arena(s->run), "%.*s-%lld", STR_F(meta_name(s->owner)),
                        (long long)ordinal);
}

static struct str claim_name(struct sts *s, const cJSON *template_, struct str pod)
{
    return arena_concat(reconcile_arena(s->run), 3,
                        (struct str[]){meta_name(template_), STR("-"), pod});
}

/* The owner whose deletion deletes a claim: the pod (scaled down), the set, or none. */
static cJSON *claim_owner(struct sts *s, int64_t ordinal, const cJSON *pod)
{
    const cJSON *policy = json_path(s->owner, "spec.persistentVolumeClaimRetentionPolicy");

    if (!sts_in_range(s, ordinal) && str_eqc(json_str_at(policy, "whenScaled"), "Delete"))
        return pod ? metadata_owner_ref(reconcile_arena(s->run), s->pods_res, pod) : NULL;
    if (str_eqc(json_str_at(policy, "whenDeleted"), "Delete"))
        return metadata_owner_ref(reconcile_arena(s->run), s->res, s->owner);
    return NULL;
}

static cJSON *make_claim(struct sts *s, const cJSON *template_, int64_t ordinal, struct str name)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *claim = json_copy(a, template_), *meta = json_ensure_object(a, claim, "metadata");
    cJSON *labels = json_ensure_object(a, meta, "labels");

    json_remove(claim, "status");
    json_put(a, claim, JSON("apiVersion", "v1"), JSON("kind", "PersistentVolumeClaim"));
    json_put(a, meta, JSON("name", name), JSON("namespace", meta_ns(s->owner)));
    json_each(label, json_path(s->owner, "spec.selector.matchLabels"))
        json_set_str(a, labels, label->string, json_str(label));
    owner_set(a, claim, claim_owner(s, ordinal, NULL));
    return claim;
}

static void on_claim(struct reconcile *r, void *ctx, const struct err *err,
                     const struct store_object *claim)
{
    struct sts *s = ctx;

    if (!err)
        reconcile_event(r, s->owner, "Normal", "SuccessfulCreate",
                        "create Claim %.*s in StatefulSet %.*s success", STR_F(claim->name),
                        STR_F(meta_name(s->owner)));
    else
        reconcile_take(r, err);
    if (err && reconcile_error(r))
        reconcile_event(r, s->owner, "Warning", "FailedCreate",
                        "create Claim in StatefulSet %.*s failed error: %.*s",
                        STR_F(meta_name(s->owner)), STR_F(err->message));
}

/* Creates missing claims of the ordinal. False: one of them is terminating, and the pod has to
 * wait. */
static bool ensure_claims(struct sts *s, int64_t ordinal)
{
    bool usable = true;

    json_each(template_, json_path(s->owner, "spec.volumeClaimTemplates"))
    {
        struct str name = claim_name(s, template_, pod_name(s, ordinal));
        const cJSON *claim = reconcile_get(s->run, s->claims_res, meta_ns(s->owner), name);

        if (!claim) {
            reconcile_create(s->run, s->claims_res, meta_ns(s->owner),
                             make_claim(s, template_, ordinal, name));
            reconcile_then(s->run, on_claim, s);
        } else if (object_is_terminating(claim)) {
            usable = false;
        }
    }
    return usable;
}

/* Sets a claim's owners by the retention policy; a claim another controller owns stays
 * unchanged. */
static void sync_claim(struct sts *s, const struct sts_pod *p, const cJSON *claim)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *controller = owner_controller(claim);
    struct str has = json_str_at(controller, "uid"), set = meta_uid(s->owner),
               pod = meta_uid(p->pod);
    cJSON *wanted = claim_owner(s, p->ordinal, p->pod), *refs;

    if (str_eq(has, json_str_at(wanted, "uid")) || object_is_terminating(claim))
        return;
    if (has.n && !str_eq(has, set) && !str_eqc(json_str_at(controller, "kind"), "Pod"))
        return;
    refs = owner_refs_copy(a, claim);
    owner_refs_drop(refs, set);
    owner_refs_drop(refs, pod);
    owner_refs_drop(refs, has);
    if (wanted)
        json_append(refs, wanted);
    owner_refs_write(s->run, s->claims_res, claim, refs);
}

static void sync_claims(struct sts *s)
{
    const cJSON *templates = json_path(s->owner, "spec.volumeClaimTemplates");
    struct store *store = vapi_store(reconcile_api(s->run));

    for (size_t i = 0; i < s->n_pods; i++) {
        const struct sts_pod *p = &s->pods[i];

        json_each(template_, templates)
        {
            struct str name = claim_name(s, template_, meta_name(p->pod));
            const struct store_object *claim =
                store_get(store, s->claims_res->storage, meta_ns(s->owner), name);

            if (!claim || (s->retain && !str_contains(claim->bytes, STR("\"ownerReferences\""))))
                continue;
            sync_claim(s, p, vapi_tree(reconcile_arena(s->run), claim));
        }
    }
}

/* --- pods --- */

/* The claims' volumes replace those of the same names in the template. */
static void mount_claims(struct sts *s, cJSON *spec, struct str pod)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *templates = json_path(s->owner, "spec.volumeClaimTemplates");
    cJSON *volumes = json_new_array(a);

    if (!json_count(templates))
        return;
    json_each(template_, templates)
    {
        cJSON *volume = json_append(volumes, json_new_object(a));

        json_set_str(a, volume, "name", meta_name(template_));
        json_set_str(a, json_ensure_object(a, volume, "persistentVolumeClaim"), "claimName",
                     claim_name(s, template_, pod));
    }
    json_each(volume, json_get(spec, "volumes"))
    {
        bool claimed = false;

        json_each(template_, templates) claimed |=
            str_eq(meta_name(template_), json_str_at(volume, "name"));
        if (!claimed)
            json_append(volumes, json_copy(a, volume));
    }
    json_set(a, spec, "volumes", volumes);
}

static cJSON *make_pod(struct sts *s, int64_t ordinal)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *rolling = json_path(s->owner, "spec.updateStrategy.rollingUpdate");
    int64_t below = rolling ? s->partition : json_i64_at(s->owner, "status.currentReplicas", 0);
    const cJSON *revision =
        !s->on_delete && ordinal < s->start + below ? s->current : s->revisions.update;
    cJSON *pod = controller_pod_from_template(a, s->res, s->owner, revision_template(revision));
    cJSON *meta = json_get(pod, "metadata"), *spec = json_get(pod, "spec");
    cJSON *labels = json_ensure_object(a, meta, "labels");
    struct str name = pod_name(s, ordinal);

    json_set_str(a, meta, "name", name);
    json_set_str(a, labels, POD_NAME_LABEL, name);
    json_set_str(a, labels, POD_INDEX_LABEL, arena_printf(a, "%lld", (long long)ordinal));
    json_set_str(a, labels, REVISION_LABEL, meta_name(revision));
    json_set_str(a, spec, "hostname", name);
    if (json_str_at(s->owner, "spec.serviceName").n)
        json_set_str(a, spec, "subdomain", json_str_at(s->owner, "spec.serviceName"));
    mount_claims(s, spec, name);
    return pod;
}

static void on_pod(struct reconcile *r, void *ctx, const struct err *err,
                   const struct store_object *pod)
{
    struct sts *s = ctx;

    if (!err) {
        reconcile_event(r, s->owner, "Normal", "SuccessfulCreate",
                        "create Pod %.*s in StatefulSet %.*s successful", STR_F(pod->name),
                        STR_F(meta_name(s->owner)));
        return;
    }
    reconcile_take(r, err);
    if (reconcile_error(r))
        reconcile_event(r, s->owner, "Warning", "FailedCreate",
                        "create Pod in StatefulSet %.*s failed error: %.*s",
                        STR_F(meta_name(s->owner)), STR_F(err->message));
}

/* In growing batches, none after a refusal. */
static void make_pods(struct reconcile *r, void *ctx)
{
    struct sts *s = ctx;

    if (s->made == s->n_make || reconcile_error(r)) {
        s->done(s);
        return;
    }
    s->batch = s->batch ? s->batch * 2 : 1;
    for (size_t i = 0; i < s->batch && s->made < s->n_make; i++) {
        reconcile_create(r, s->pods_res, meta_ns(s->owner), make_pod(s, s->make[s->made++]));
        reconcile_then(r, on_pod, s);
    }
    reconcile_next(r, make_pods, s);
}

static void on_dropped(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *pod)
{
    struct sts *s = ctx;

    if (err)
        reconcile_take(r, err);
    else if (pod)
        reconcile_event(r, s->owner, "Normal", "SuccessfulDelete",
                        "delete Pod %.*s in StatefulSet %.*s successful", STR_F(pod->name),
                        STR_F(meta_name(s->owner)));
}

static void drop_pods(struct reconcile *r, void *ctx)
{
    struct sts *s = ctx;

    for (size_t i = 0; i < s->n_drop && !reconcile_error(r); i++) {
        const cJSON *pod = s->drop[i];

        reconcile_delete(r, s->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
        reconcile_then(r, on_dropped, s);
    }
    reconcile_next(r, make_pods, s);
}

void sts_carry_out(struct sts *s)
{
    size_t n = 0;

    sync_claims(s);
    for (size_t i = 0; i < s->n_make; i++) {
        if (ensure_claims(s, s->make[i]))
            s->make[n++] = s->make[i];
        else
            reconcile_again_after(s->run, 1000);
    }
    s->n_make = n;
    reconcile_next(s->run, drop_pods, s);
}
