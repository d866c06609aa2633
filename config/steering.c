/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of labels and annotations by which queueing systems and GPU schedulers take orders: whose
 * quota a pod uses, with whom it is admitted, whom it preempts, which devices it was given. Why a
 * list beside the allow-lists of the admin: one entry there too many, and a tenant runs in the
 * queue of another. Must never hold a key that only describes. */

#include <string.h>

#include "impl.h"

/* Domains of keys, with those below them. */
static const char *const DOMAINS[] = {
    "hami.io", "kai-resource-isolator.io", "kai.scheduler", "kueue.x-k8s.io", "run.ai",
    "runai",   "runai-gpu-group",          "volcano.sh",
};

/* Of domains that have other keys as well, or of none. */
static const char *const KEYS[] = {
    "gpu-fraction",
    "gpu-fraction-container-name",
    "gpu-fraction-num-devices",
    "gpu-memory",
    "mps",
    "nvidia.com/nouse-gputype",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/numa-bind",
    "nvidia.com/use-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/vgpu-mode",
    "pod-group-name",
    "priorityClassName",
    "received-resource-type",
    "runai-gpu-group",
    "scheduling.k8s.io/group-name",
};

/* A kind without a key has no queues. */
static const struct queue_system SYSTEMS[] = {
    [SCHEDULER_KUEUE] = {.key = "kueue.x-k8s.io/queue-name"},
    [SCHEDULER_KAI] = {.key = "kai.scheduler/queue", .scheduler = "kai-scheduler"},
    [SCHEDULER_VOLCANO] = {.key = "scheduling.volcano.sh/queue-name",
                           .by_annotation = true,
                           .scheduler = "volcano"},
};

const struct queue_system *config_queue_system(enum pool_scheduler kind)
{
    return (size_t)kind < COUNT(SYSTEMS) && SYSTEMS[kind].key ? &SYSTEMS[kind] : NULL;
}

static bool in_domain(struct str domain, struct str of)
{
    if (!str_has_suffix(domain, of))
        return false;
    return domain.n == of.n || domain.p[domain.n - of.n - 1] == '.';
}

/* KAI counts nothing of a pod with one of these, wherever it is: its devices are free to it. */
static const char *const UTILITY_APPS[] = {"kai-resource-reservation", "scaling-pod"};

bool config_value_steers(struct str key, struct str value)
{
    for (size_t i = 0; str_eqc(key, "app") && i < COUNT(UTILITY_APPS); i++) {
        if (str_eqc(value, UTILITY_APPS[i]))
            return true;
    }
    return false;
}

/* Such a tool of a tenant would take an object that the host's own has made for its own, and delete
 * it, or the tenant's copy of it. */
bool config_key_installs(struct str key)
{
    static const char *const domains[] = {
        "meta.helm.sh/",           "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/",
        "helm.toolkit.fluxcd.io/", "kapp.k14s.io/",       "objectset.rio.cattle.io/"};

    for (size_t i = 0; i < COUNT(domains); i++) {
        if (str_has_prefix(key, str_c(domains[i])))
            return true;
    }
    return false;
}

bool config_key_steers(struct str key)
{
    size_t slash = str_find(key, '/');
    struct str domain = slash < key.n ? str_sub(key, 0, slash) : STR("");

    for (size_t i = 0; i < COUNT(DOMAINS); i++) {
        if (in_domain(domain, str_c(DOMAINS[i])))
            return true;
    }
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (str_eqc(key, KEYS[i]))
            return true;
    }
    return false;
}
