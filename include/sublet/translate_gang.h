/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * Gangs: pods of one owner that the host's scheduler starts together, or not at all
 * (scheduler.gang of a pool). Pure functions, as all of the room. KAI, Volcano
 * and Kubernetes itself read a gang from a PodGroup that the syncer keeps, Kueue from keys of its
 * pods. No tenant writes a name of one. */
#pragma once

#include <sublet/translate.h>

/* Of a virtual pod, by the template of a workload: how many of its owner's pods are a gang. */
#define GANG_SIZE_KEY "sublet.dev/gang-size"
enum { GANG_SIZE_MAX = 10000 };

/* May an owner of this uid have a gang? A pod may name any: 64 letters, digits and dashes. */
bool translate_gang_is_owner(struct str uid);
/* The name of the group of an owner's pods in one pool: `g-<10 of sha256(host namespace)>-<16 of
 * base32>`, so that the host's policies know whose it is; KAI looks for it in all namespaces.
 * generation: of Kueue, whose groups never change their size; 0 otherwise. */
void translate_gang_name(const struct translate_tenant *t, struct str pool,
                         enum pool_scheduler kind, struct str ns, struct str owner_uid,
                         int64_t generation, char out[64]);
/* How many pods of this pod's owner run together now: by the annotation, or of a Job what still has
 * to run at once. job: the pod's owner, NULL if that is none; succeeded: pods of another owner that
 * are done. 0: they start one by one. */
int64_t translate_gang_size(const struct config_pool *pool, const cJSON *pod, const cJSON *job,
                            int64_t succeeded);
/* Is the annotation, if the pod has it, a number of pods? */
bool translate_gang_size_is_valid(const cJSON *pod);

/* Where PodGroups are kept: "/apis/scheduling.run.ai/v2alpha2". p NULL: this kind needs none. */
struct str translate_gang_root(enum pool_scheduler kind);
/* The PodGroup of a pod's gang; host_class: the PriorityClass of its host pods, or empty. */
cJSON *translate_gang_group(struct arena *a, const struct translate_tenant *t,
                            const struct config_pool *pool, const cJSON *pod, struct str host_name,
                            int64_t size, struct str host_class);
/* A merge patch of the fields that are ours, NULL when they are as wanted: what the scheduler adds
 * stays. */
cJSON *translate_gang_update(struct arena *a, const cJSON *host_now, const cJSON *wanted);
/* Is it a PodGroup of ours for this kind, under its own name? Then whose pods are in it. */
bool translate_gang_owner(const struct translate_tenant *t, enum pool_scheduler kind,
                          const cJSON *host_object, struct str *ret_ns, struct str *ret_uid);
/* The group that a host pod is in; empty: none of ours. */
struct str translate_gang_of_host_pod(const cJSON *host_pod, enum pool_scheduler kind);
/* Of a host pod that Kueue admits: how many the group is of; 0: it is in none. */
int64_t translate_gang_total(const cJSON *host_pod);
/* Does Kueue hold the host pod until its group has ended? */
bool translate_gang_is_held(const cJSON *host_pod);
/* A merge patch by which the group ends without replacements for what failed; NULL: it is so. */
cJSON *translate_gang_final(struct arena *a, const cJSON *host_pod);
/* Has the owner of a gang's pods ended, as far as pods are concerned? job: as above. */
bool translate_gang_is_over(const cJSON *job);
