/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs: which group on the host the pods of one virtual owner are in, and of how many. Why: the
 * schedulers derive groups from owners of pods or from keys, and neither of a tenant's reaches the
 * host; so both are made here, from what the owner is in the virtual cluster. Must never take a
 * name of a group from a tenant, nor require more pods at once than the owner still creates:
 * those that there are would wait for ever. */

#include <stdio.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/translate_gang.h>

#include "pod_marks.h"
#include "shape.h"

enum { NAMESPACE_CHARS = 10, OWNER_CHARS = 64 };

static const char KUEUE_GROUP[] = "kueue.x-k8s.io/pod-group-name";
static const char KUEUE_TOTAL[] = "kueue.x-k8s.io/pod-group-total-count";
static const char KUEUE_RETRIED[] = "kueue.x-k8s.io/retriable-in-group";
static const char KUEUE_FINALIZER[] = "kueue.x-k8s.io/managed";

/* How a scheduler reads the gang of a pod, and where it keeps PodGroups. KAI's own controller
 * leaves pods with the annotation alone that have no owner (pkg/podgrouper), later versions those
 * that say so. Kubernetes reads spec.schedulingGroup; before v1beta1 (1.37) the size of its groups
 * never changes, and those that are done would be waited for. */
static const struct {
    const char *annotation, *root, *version, *skip;
} SYSTEMS[] = {
    [SCHEDULER_KAI] = {"pod-group-name", "/apis/scheduling.run.ai/v2alpha2",
                       "scheduling.run.ai/v2alpha2", "kai.scheduler/skip-podgrouper"},
    [SCHEDULER_VOLCANO] = {"scheduling.k8s.io/group-name", "/apis/scheduling.volcano.sh/v1beta1",
                           "scheduling.volcano.sh/v1beta1", NULL},
    [SCHEDULER_NATIVE] = {NULL, "/apis/scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1beta1",
                          NULL},
};

/* ---- whose, and how many ---- */

bool translate_gang_is_owner(struct str uid)
{
    for (size_t i = 0; i < uid.n; i++) {
        char c = uid.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    return uid.n > 0 && uid.n <= OWNER_CHARS;
}

void translate_gang_name(const struct translate_tenant *t, struct str pool,
                         enum pool_scheduler kind, struct str ns, struct str owner_uid,
                         int64_t generation, char out[64])
{
    static const char HEX[] = "0123456789abcdef";
    struct str parts[] = {t->cluster_uid, ns, owner_uid, STR("gang"), pool, {NULL, 0}};
    unsigned char digest[32];
    char number[48];
    size_t at = 0;

    snprintf(number, sizeof number, "%d %lld", (int)kind, (long long)generation);
    parts[COUNT(parts) - 1] = str_c(number);
    sha256(t->host_namespace, digest);
    out[at++] = 'g';
    out[at++] = '-';
    for (size_t i = 0; i < NAMESPACE_CHARS; i++)
        out[at++] = HEX[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
    out[at++] = '-';
    translate_hash(COUNT(parts), parts, out + at);
}

static const cJSON *annotation(const cJSON *pod)
{
    return json_get(json_path(pod, "metadata.annotations"), GANG_SIZE_KEY);
}

static bool read_size(const cJSON *pod, int64_t *ret)
{
    return str_to_i64(json_str(annotation(pod)), ret) && *ret >= 1 && *ret <= GANG_SIZE_MAX;
}

bool translate_gang_size_is_valid(const cJSON *pod)
{
    int64_t unused;

    return !annotation(pod) || read_size(pod, &unused);
}

/* "0-3,5": how many indexes. */
static int64_t count_indexes(struct str list)
{
    int64_t n = 0;

    while (list.n) {
        struct str range = str_cut(&list, ','), first = str_cut(&range, '-');
        int64_t from, to;

        if (!str_to_i64(first, &from) || from < 0)
            continue;
        to = range.n && str_to_i64(range, &to) && to >= from ? to : from;
        if (__builtin_add_overflow(n, to - from, &n) || __builtin_add_overflow(n, 1, &n))
            return INT64_MAX;
    }
    return n;
}

/* Kueue counts those that have succeeded in, and takes no others in their place: only a Job whose
 * pods all run at once is a gang there. */
static int64_t size_of_job(const cJSON *job, bool fixed)
{
    int64_t at_once = json_i64_at(job, "spec.parallelism", 1), left;
    struct str failed = json_str_at(job, "status.failedIndexes");

    if (at_once < 1)
        return 0;
    if (!json_path(job, "spec.completions"))
        return at_once;
    left = json_i64_at(job, "spec.completions", 0);
    if (fixed)
        return left <= at_once ? left : 0;
    if (__builtin_sub_overflow(left, json_i64_at(job, "status.succeeded", 0), &left) ||
        __builtin_sub_overflow(left, count_indexes(failed), &left) || left < 1)
        return 1;
    return left < at_once ? left : at_once;
}

int64_t translate_gang_size(const struct config_pool *pool, const cJSON *pod, const cJSON *job,
                            int64_t succeeded)
{
    bool fixed = pool->scheduler_kind == SCHEDULER_KUEUE;
    int64_t size = job ? size_of_job(job, fixed) : 0, said;

    if (!pool->gang || !translate_gang_is_owner(json_str(json_get(owner_controller(pod), "uid"))))
        return 0;
    if (annotation(pod) && read_size(pod, &said)) {
        if (!job && !fixed) /* those that are done need no others beside them */
            said = said - succeeded < 1 ? 1 : said - succeeded;
        size = !job || said < size ? said : size;
    }
    if (fixed && size == 1) /* alone */
        return 0;
    return size > INT32_MAX ? INT32_MAX : size;
}

/* ---- keys of a host pod ---- */

void translate_pod_gang_down(struct down *d, struct str gang, int64_t size, cJSON *labels,
                             cJSON *notes)
{
    enum pool_scheduler kind = d->pool->scheduler_kind;

    if (!gang.n)
        return;
    if (kind == SCHEDULER_KUEUE) {
        add_str(d->arena, labels, KUEUE_GROUP, gang);
        add_str(d->arena, notes, KUEUE_TOTAL, arena_printf(d->arena, "%lld", (long long)size));
        return;
    }
    if ((size_t)kind >= COUNT(SYSTEMS) || !SYSTEMS[kind].annotation)
        return;
    add_str(d->arena, notes, SYSTEMS[kind].annotation, gang);
    if (SYSTEMS[kind].skip)
        add_str(d->arena, notes, SYSTEMS[kind].skip, STR("true"));
}

void translate_pod_scheduling_group_down(struct down *d, struct str gang, cJSON *spec)
{
    if (gang.n && d->pool->scheduler_kind == SCHEDULER_NATIVE)
        object_add(d->arena, spec, STR("schedulingGroup"),
                   json_object(d->arena, JSON("podGroupName", gang)));
}

static bool is_gang_name(struct str name)
{
    return name.n == 2 + NAMESPACE_CHARS + 1 + HASH_CHARS && str_has_prefix(name, STR("g-"));
}

struct str translate_gang_of_host_pod(const cJSON *host_pod, enum pool_scheduler kind)
{
    const cJSON *meta = json_get(host_pod, "metadata");
    struct str name = STR("");

    if (kind == SCHEDULER_KUEUE)
        name = json_str(json_get(json_get(meta, "labels"), KUEUE_GROUP));
    else if (kind == SCHEDULER_NATIVE)
        name = json_str_at(host_pod, "spec.schedulingGroup.podGroupName");
    else if ((size_t)kind < COUNT(SYSTEMS) && SYSTEMS[kind].annotation)
        name = json_str(json_get(json_get(meta, "annotations"), SYSTEMS[kind].annotation));
    return is_gang_name(name) ? name : STR("");
}

/* ---- the end of a group of Kueue ---- */

/* Kueue keeps the pods of a group, and its quota, until all of it have succeeded, or have ended
 * where one says that none is replaced (pkg/controller/jobs/pod, Finished). */

int64_t translate_gang_total(const cJSON *host_pod)
{
    int64_t total;

    if (!translate_gang_of_host_pod(host_pod, SCHEDULER_KUEUE).n ||
        !str_to_i64(json_str(json_get(json_path(host_pod, "metadata.annotations"), KUEUE_TOTAL)),
                    &total))
        return 0;
    return total;
}

bool translate_gang_is_held(const cJSON *host_pod)
{
    if (!translate_gang_of_host_pod(host_pod, SCHEDULER_KUEUE).n)
        return false;
    json_each(finalizer, json_path(host_pod, "metadata.finalizers"))
    {
        if (str_eqc(json_str(finalizer), KUEUE_FINALIZER))
            return true;
    }
    return false;
}

cJSON *translate_gang_final(struct arena *a, const cJSON *host_pod)
{
    struct str now = json_str(json_get(json_path(host_pod, "metadata.annotations"), KUEUE_RETRIED));

    cJSON *patch;

    if (str_eqc(now, "false"))
        return NULL;
    patch = json_new_object(a);
    json_set_str(a, json_ensure_path(a, patch, "metadata.annotations"), KUEUE_RETRIED,
                 STR("false"));
    return patch;
}

bool translate_gang_is_over(const cJSON *job)
{
    static const char *const ends[] = {"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"};
    const cJSON *conditions = json_path(job, "status.conditions");

    for (size_t i = 0; i < COUNT(ends); i++) {
        if (condition_is_true(conditions, ends[i]))
            return true;
    }
    return object_is_terminating(job) || json_true(json_path(job, "spec.suspend"));
}

/* ---- the PodGroup ---- */

struct str translate_gang_root(enum pool_scheduler kind)
{
    return (size_t)kind < COUNT(SYSTEMS) && SYSTEMS[kind].root ? str_c(SYSTEMS[kind].root)
                                                               : STR_NULL;
}

cJSON *translate_gang_group(struct arena *a, const struct translate_tenant *t,
                            const struct config_pool *pool, const cJSON *pod, struct str host_name,
                            int64_t size, struct str host_class)
{
    const cJSON *owner = owner_controller(pod);
    cJSON *stands_for = json_object(
        a, JSON("metadata", json_object(a, JSON("name", json_str(json_get(owner, "name"))),
                                        JSON("namespace", json_str_at(pod, "metadata.namespace")),
                                        JSON("uid", json_str(json_get(owner, "uid"))))));
    cJSON *spec = json_object(a, JSON_NONEMPTY("queue", pool->queue),
                              JSON_NONEMPTY("priorityClassName", host_class));
    cJSON *metadata = translate_metadata(a, t, stands_for, host_name);

    json_set_str(a, json_get(metadata, "labels"), LABEL_POOL, pool->name);
    if (pool->scheduler_kind == SCHEDULER_NATIVE)
        json_set_i64(a, json_ensure_path(a, spec, "schedulingPolicy.gang"), "minCount", size);
    else
        json_set_i64(a, spec, "minMember", size);
    return json_object(a, JSON("apiVersion", SYSTEMS[pool->scheduler_kind].version),
                       JSON("kind", "PodGroup"), JSON("metadata", metadata), JSON("spec", spec));
}

/* Of a group of Kubernetes itself its size is all that may change. */
static cJSON *update_native(struct arena *a, const cJSON *is, const cJSON *to)
{
    int64_t size = json_i64_at(to, "schedulingPolicy.gang.minCount", 1);
    cJSON *patch;

    if (json_i64_at(is, "schedulingPolicy.gang.minCount", 0) == size)
        return NULL;
    patch = json_new_object(a);
    json_set_i64(a, json_ensure_path(a, patch, "spec.schedulingPolicy.gang"), "minCount", size);
    return patch;
}

cJSON *translate_gang_update(struct arena *a, const cJSON *host_now, const cJSON *wanted)
{
    const cJSON *is = json_get(host_now, "spec"), *to = json_get(wanted, "spec");
    cJSON *spec = NULL;

    if (json_get(to, "schedulingPolicy"))
        return update_native(a, is, to);
    json_each(field, to)
    {
        if (json_equal(field, json_get(is, field->string)))
            continue;
        spec = spec ? spec : json_new_object(a);
        json_set(a, spec, field->string, json_copy(a, field));
    }
    if (json_get(is, "priorityClassName") && !json_get(to, "priorityClassName")) {
        spec = spec ? spec : json_new_object(a);
        json_set(a, spec, "priorityClassName", json_new_null(a));
    }
    return spec ? json_object(a, JSON("spec", spec)) : NULL;
}

bool translate_gang_owner(const struct translate_tenant *t, enum pool_scheduler kind,
                          const cJSON *host_object, struct str *ret_ns, struct str *ret_uid)
{
    const cJSON *meta = json_get(host_object, "metadata");
    struct str pool = json_str(json_get(json_get(meta, "labels"), LABEL_POOL)), ns, name, uid;
    char expect[64];

    if (!translate_marks(t, meta, &ns, &name, &uid))
        return false;
    translate_gang_name(t, pool, kind, ns, uid, 0, expect);
    if (!str_eqc(json_str(json_get(meta, "name")), expect))
        return false;
    *ret_ns = ns;
    *ret_uid = uid;
    return true;
}
