/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of pools that a queueing system admits. Why: Kueue reads queue and group from labels of the
 * pod, so the pool alone sets the queue, and a tenant's group gets a name that only this tenant's
 * pods of that namespace have. What the queueing system adds to a host pod (gates, finalizers,
 * labels, node selector, tolerations) is its own. Must never send such a key as a tenant wrote
 * it. */

#include <string.h>

#include "shape.h"

static const char QUEUE[] = "kueue.x-k8s.io/queue-name";
static const char GROUP[] = "kueue.x-k8s.io/pod-group-name";
static const char TOTAL[] = "kueue.x-k8s.io/pod-group-total-count";
static const char RETRIABLE[] = "kueue.x-k8s.io/retriable-in-group";

enum { TOTAL_MAX = 10000 };

/* ---- what a tenant may say ---- */

static struct str label_of(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.labels"), key));
}

static struct str note_of(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.annotations"), key));
}

static bool is_said(const struct config_pool *pool, const char *key)
{
    return pool && pool->scheduler_kind == SCHEDULER_KUEUE &&
           (!strcmp(key, GROUP) || !strcmp(key, TOTAL));
}

/* Kueue counts the pods of a group before it admits the first. */
static bool total_of(const cJSON *pod, int64_t *ret)
{
    return str_to_i64(note_of(pod, TOTAL), ret) && *ret >= 1 && *ret <= TOTAL_MAX;
}

int pool_guard_queue(const struct resolve *r)
{
    struct str group = label_of(r->pod, GROUP);
    int64_t total;

    if (r->pool->scheduler_kind != SCHEDULER_KUEUE || (!group.n && !note_of(r->pod, TOTAL).n))
        return 0;
    if (!group.n)
        return pool_refuse(r, "annotation %s needs label %s", TOTAL, GROUP);
    if (!total_of(r->pod, &total))
        return pool_refuse(r, "label %s needs annotation %s, a number from 1 to %d", GROUP, TOTAL,
                           TOTAL_MAX);
    return 0;
}

/* ---- down ---- */

/* Its Workload on the host has this name, too. Kueue keeps the pods of a retriable group until
 * others replace them or the Workload is deleted, which a tenant cannot do: it would never go. */
static void add_group(struct down *d, cJSON *labels, cJSON *notes)
{
    struct str group = label_of(d->object, GROUP);
    int64_t total;
    char name[64];

    if (!group.n || !total_of(d->object, &total))
        return;
    translate_group_name(d->tenant, d->ns, group, name);
    add_str(d->arena, labels, GROUP, str_c(name));
    add_str(d->arena, notes, TOTAL, arena_printf(d->arena, "%lld", (long long)total));
    add_str(d->arena, notes, RETRIABLE, STR("false"));
}

void translate_pod_queue_down(struct down *d, cJSON *labels, cJSON *notes)
{
    if (d->pool->scheduler_kind != SCHEDULER_KUEUE)
        return;
    add_str(d->arena, labels, QUEUE, d->pool->queue);
    add_group(d, labels, notes);
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

void pool_queue_warnings(const struct resolve *r, void (*warn)(void *ctx, struct str text),
                         void *ctx)
{
    static const char *const maps[] = {"labels", "annotations"};
    const cJSON *meta = json_get(r->pod, "metadata");
    size_t said = 0;

    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *map = json_get(meta, maps[i]);

        json_each(member, json_is_object(map) ? map : NULL)
        {
            if (!config_key_steers(json_key(member)) || is_said(r->pool, member->string) ||
                said++ >= POOL_WARNINGS_MAX)
                continue;
            warn(ctx, arena_printf(r->arena,
                                   "metadata.%s[%.*s] has no effect: the pool decides queues, "
                                   "groups and shares of GPUs",
                                   maps[i], STR_F(json_key(member))));
        }
    }
}
