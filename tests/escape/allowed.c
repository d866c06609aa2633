/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's configuration as the facts of the checker, which knows no struct of translate; see
 * allowed.h. */
#include "allowed.h"

#include <stdio.h>
#include <stdlib.h>

#include "checker.h"

#include <sublet/encode.h>
#include <sublet/config_sync.h>

static struct str read_rules(struct arena *a)
{
    FILE *f = fopen(ALLOWED_RULES, "rb");
    char *text = arena_alloc(a, 1 << 16);
    size_t n = f ? fread(text, 1, 1 << 16, f) : 0;

    if (!f || n == 1 << 16) {
        fprintf(stderr, "%s: cannot be read, or has grown\n", ALLOWED_RULES);
        abort();
    }
    fclose(f);
    return (struct str){text, n};
}

/* Read once; the arena lives as long as the process. */
static const struct rules *the_rules(void)
{
    static struct arena *arena;
    static const struct rules *rules;
    const char *why = NULL;

    if (rules)
        return rules;
    arena = arena_new(0);
    rules = rules_load(arena, read_rules(arena), &why);
    if (!rules) {
        fprintf(stderr, "%s: %s\n", ALLOWED_RULES, why);
        abort();
    }
    return rules;
}

/* ---- facts ---- */

static void add_list(struct arena *a, cJSON *to, const char *key, struct str_list list)
{
    cJSON *array = json_set(a, to, key, json_new_array(a));

    for (size_t i = 0; i < list.n; i++)
        json_append(array, json_new_string(a, list.items[i]));
}

static const char *mode_word(enum pool_mode mode)
{
    static const char *const words[] = {"exclusive",    "mig",  "time-slicing", "mps",
                                        "kai-fraction", "hami", "volcano-vgpu", "dra"};

    return words[mode];
}

static void add_resource(struct arena *a, cJSON *to, const struct pool_resource *resource)
{
    cJSON *one = json_append(to, json_new_object(a));

    json_set_str(a, one, "name", resource->host_name);
    add_list(a, one, "variables", resource->variables);
}

/* Beside the compute of a GPU, which is the pool's resource: the GPU itself, and its memory. */
static void add_share(struct arena *a, cJSON *to, const struct config_pool *pool)
{
    static const char *const hami[] = {"nvidia.com/gpu", "nvidia.com/gpumem"};
    static const char *const volcano[] = {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"};

    for (size_t i = 0; i < 2; i++) {
        const char *name = pool->mode == POOL_HAMI      ? hami[i]
                           : pool->mode == POOL_VOLCANO ? volcano[i]
                                                        : NULL;

        if (name)
            json_set_str(a, json_append(to, json_new_object(a)), "name", str_c(name));
    }
}

static const char *queue_key(enum pool_scheduler kind)
{
    switch (kind) {
    case SCHEDULER_KUEUE:
        return "kueue.x-k8s.io/queue-name";
    case SCHEDULER_KAI:
        return "kai.scheduler/queue";
    case SCHEDULER_VOLCANO:
        return "scheduling.volcano.sh/queue-name";
    default:
        return "";
    }
}

static const char *gang_key(const struct config_pool *pool)
{
    switch (pool->gang ? pool->scheduler_kind : SCHEDULER_NONE) {
    case SCHEDULER_KUEUE:
        return "kueue.x-k8s.io/pod-group-name";
    case SCHEDULER_KAI:
        return "pod-group-name";
    case SCHEDULER_VOLCANO:
        return "scheduling.k8s.io/group-name";
    case SCHEDULER_NATIVE:
        return "podGroupName";
    default:
        return "";
    }
}

/* What names of groups of this host namespace begin with. */
static struct str gang_prefix(struct arena *a, struct str namespace)
{
    unsigned char digest[32];

    sha256(namespace, digest);
    return arena_printf(a, "g-%02x%02x%02x%02x%02x-", digest[0], digest[1], digest[2], digest[3],
                        digest[4]);
}

static cJSON *pool_facts(struct arena *a, const struct config_pool *pool)
{
    cJSON *ret = json_new_object(a), *names = json_new_array(a), *tiers = json_new_array(a);

    json_set_str(a, ret, "name", pool->name);
    json_set_str(a, ret, "mode", str_c(mode_word(pool->mode)));
    if (pool->node_selector)
        json_set(a, ret, "nodeSelector", json_copy(a, pool->node_selector));
    if (pool->tolerations)
        json_set(a, ret, "tolerations", json_copy(a, pool->tolerations));
    add_list(a, ret, "products", pool->products);
    for (size_t i = 0; i < pool->n_resources; i++)
        add_resource(a, names, &pool->resources[i]);
    add_share(a, names, pool);
    if (pool->gpu_memory_mib)
        json_set_str(a, ret, "gpuMemory", arena_printf(a, "%lld", (long long)pool->gpu_memory_mib));
    json_set(a, ret, "resources", names);
    json_set_str(a, ret, "runtimeClass", pool->runtime_class);
    json_set_str(a, ret, "scheduler", pool->scheduler);
    json_set_str(a, ret, "queue", pool->queue);
    json_set_str(a, ret, "queueKey", str_c(queue_key(pool->scheduler_kind)));
    json_set_str(a, ret, "gangKey", str_c(gang_key(pool)));
    json_each(tier, pool->priority_tiers)
    {
        json_append(tiers, json_copy(a, tier));
    }
    json_set(a, ret, "tiers", tiers);
    if (pool->max_lifetime_s)
        json_set_i64(a, ret, "maxLifetime", pool->max_lifetime_s);
    return ret;
}

/* Of the nodes an object names, those the tenant is shown. */
static void add_shown(struct arena *a, const struct translate_tenant *t, const cJSON *object,
                      cJSON *to)
{
    json_each(field, json_get(object, "matchFields"))
    {
        json_each(value, json_get(field, "values"))
        {
            if (t->node && t->node(t->node_ctx, json_str(value)) == NODE_SHOWN)
                json_append(to, json_copy(a, value));
        }
    }
    json_each(below, object)
    {
        add_shown(a, t, below, to);
    }
}

static const struct node *facts_of(struct arena *a, const struct translate_tenant *t,
                                   const cJSON *object, bool stored)
{
    static const char *const levels[] = {"privileged", "baseline", "restricted"};
    cJSON *facts = json_new_object(a), *pools = json_new_array(a);
    const char *why;

    json_set_str(a, facts, "cluster", t->cluster_uid);
    json_set_str(a, facts, "namespace", t->host_namespace);
    json_set_str(a, facts, "gangs", gang_prefix(a, t->host_namespace));
    json_set_str(a, facts, "podSecurity", str_c(levels[t->config->pod_security]));
    add_list(a, facts, "labels", t->config->labels_allow);
    add_list(a, facts, "annotations", t->config->annotations_allow);
    add_list(a, facts, "storageClasses", t->config->storage_classes);
    json_set_str(a, facts, "serviceAccount", t->config->pod_service_account);
    if (t->dns_ip.n)
        json_set_str(a, facts, "dns", t->dns_ip);
    json_set_bool(a, facts, "stored", stored);
    if (t->config->to_host->tolerations)
        json_set(a, facts, "tolerations", json_copy(a, t->config->to_host->tolerations));
    add_list(a, facts, "cpuNodes", t->config->cpu_nodes);
    add_shown(a, t, json_get(object, "spec"), json_set(a, facts, "nodesShown", json_new_array(a)));
    for (size_t i = 0; i < t->config->n_pools; i++)
        json_append(pools, pool_facts(a, &t->config->pools[i]));
    json_set(a, facts, "pools", pools);
    return node_read(a, json_text(a, facts), &why);
}

static const char *look_at(struct arena *a, const struct translate_tenant *t, const char *shape,
                           const cJSON *object, bool stored)
{
    const struct rules *rules = the_rules();
    const char *why = NULL;
    struct node *node = node_read(a, json_text(a, object), &why);

    return node ? rules_check(a, rules, facts_of(a, t, object, stored), shape, node) : why;
}

const char *allowed_object(struct arena *a, const struct translate_tenant *t, const char *shape,
                           const cJSON *object)
{
    return look_at(a, t, shape, object, false);
}

const char *allowed_stored_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod)
{
    return look_at(a, t, "pod", pod, true);
}

const char *allowed_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod)
{
    return allowed_object(a, t, "pod", pod);
}

const char *allowed_service(struct arena *a, const struct translate_tenant *t, const cJSON *service)
{
    return allowed_object(a, t, "service", service);
}
