/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of pools that a queueing system admits. Why: it reads queue and group from labels and
 * annotations of the pod, so the pool alone sets the queue. What the queueing system adds to a host
 * pod (gates, finalizers, labels, node selector, tolerations) is its own. Must never send a key of
 * it that a tenant wrote.
 *
 * Kueue admits no groups of pods: it keeps pods of a group that ended while others of it run, and
 * its Workload of a group that failed for pods that replace them; a tenant can delete neither. */

#include <string.h>

#include <sublet/translate_gang.h>

#include "pod_marks.h"
#include "shape.h"

static const char GROUP[] = "kueue.x-k8s.io/pod-group-name";
static const char TOTAL[] = "kueue.x-k8s.io/pod-group-total-count";

/* ---- what a tenant may say ---- */

static struct str label_of(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.labels"), key));
}

static struct str note_of(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.annotations"), key));
}

int pool_guard_queue(const struct resolve *r)
{
    const char *key = label_of(r->pod, GROUP).n ? GROUP : note_of(r->pod, TOTAL).n ? TOTAL : NULL;

    if (r->pool->gang && !translate_gang_size_is_valid(r->pod))
        return pool_refuse(r, GANG_SIZE_KEY ": \"%.*s\" is not a number of pods from 1 to %d",
                           STR_F(str_clip(note_of(r->pod, GANG_SIZE_KEY), 64)), GANG_SIZE_MAX);
    if (r->pool->scheduler_kind != SCHEDULER_KUEUE || r->pool->gang || !key)
        return 0;
    return pool_refuse(r, "%s asks for a group, and pods of this pool are admitted one by one",
                       key);
}

/* ---- down ---- */

void translate_pod_queue_down(struct down *d, cJSON *labels, cJSON *annotations)
{
    const struct queue_system *system = config_queue_system(d->pool->scheduler_kind);

    if (system)
        add_str(d->arena, system->by_annotation ? annotations : labels, system->key,
                d->pool->queue);
}

/* ---- later ---- */

static bool steers(const cJSON *map)
{
    json_each(member, json_is_object(map) ? map : NULL)
    {
        if (config_key_steers(json_key(member)))
            return true;
    }
    return false;
}

static cJSON *without(struct arena *a, const cJSON *map)
{
    cJSON *ret = json_new_object(a);

    json_each(member, json_is_object(map) ? map : NULL)
    {
        if (!config_key_steers(json_key(member)))
            object_add(a, ret, json_key(member), json_copy(a, member));
    }
    return ret;
}

const cJSON *translate_pod_without_queue(struct arena *a, const cJSON *host_wanted)
{
    static const char *const maps[] = {"labels", "annotations"};
    const cJSON *meta = json_get(host_wanted, "metadata");
    cJSON *ret, *copy;

    if (!steers(json_get(meta, maps[0])) && !steers(json_get(meta, maps[1])))
        return host_wanted;
    ret = json_new_object(a);
    copy = json_set(a, ret, "metadata", json_copy(a, meta));
    for (size_t i = 0; i < COUNT(maps); i++)
        json_set(a, copy, maps[i], without(a, json_get(meta, maps[i])));
    return ret;
}

/* ---- warnings ---- */

/* Of an annotation that is listed, and stays all the same; NULL: none. */
static const char *why_kept(const struct resolve *r, const cJSON *note)
{
    struct translate_tenant t = {.config = r->config};
    struct str key = json_key(note);

    return translate_annotation_listed(&t, key) ? translate_note_of_dns(&t, key, json_str(note))
                                                : NULL;
}

static void warn_of_dns(const struct resolve *r, void (*warn)(void *ctx, struct str text),
                        void *ctx)
{
    const cJSON *notes = json_path(r->pod, "metadata.annotations");
    size_t said = 0;

    json_each(note, json_is_object(notes) ? notes : NULL)
    {
        const char *why = why_kept(r, note);

        if (why && said++ < POOL_WARNINGS_MAX)
            warn(ctx, arena_printf(r->arena, "metadata.annotations[%s] has no effect: it %s",
                                   note->string, why));
    }
}

void pool_queue_warnings(const struct resolve *r, void (*warn)(void *ctx, struct str text),
                         void *ctx)
{
    static const char *const maps[] = {"labels", "annotations"};
    const cJSON *meta = json_get(r->pod, "metadata");
    size_t said = 0;

    warn_of_dns(r, warn, ctx);
    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *map = json_get(meta, maps[i]);

        json_each(member, json_is_object(map) ? map : NULL)
        {
            if (!config_key_steers(json_key(member)) || said++ >= POOL_WARNINGS_MAX)
                continue;
            warn(ctx, arena_printf(r->arena,
                                   "metadata.%s[%.*s] has no effect: the pool decides queues, "
                                   "groups and shares of GPUs",
                                   maps[i], STR_F(json_key(member))));
        }
    }
}
