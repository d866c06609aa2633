/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * The way up: what the host made of an object and what it says, as the tenant may read it. Pure
 * functions, as all of the room. */
#pragma once

#include <sublet/err.h>
#include <sublet/json.h>
#include <sublet/translate_from_host.h>

struct config;
struct translate_tenant;

/* Has the host pod all of what translate_pod_update() and translate_pod_resize() would change in
 * its spec? */
bool translate_pod_is_applied(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                              bool changed);

/* Status up: the virtual status that follows from the host's, field by field; the virtual object's
 * own readiness-gate conditions stay. applied: the host pod has all that the virtual pod's present
 * generation changed (translate_pod_is_applied), else that generation is not yet observed. Returns
 * NULL when it would not change. */
cJSON *translate_pod_status_up(struct arena *a, const struct translate_tenant *t,
                               const cJSON *host_pod, const cJSON *vpod, bool applied);
/* What the host changed of the quantities of a pod or a claim, other than to what the tenant wants:
 * "requests.cpu of container main from 1 to 2"; STR_NULL: nothing. before, now: two versions of the
 * host object, one after the other. */
struct str translate_resized_by_host(struct arena *a, const cJSON *before, const cJSON *now,
                                     const cJSON *v);
/* Of a virtual object: the keys of its labels and annotations that came from the host. */
#define ANNOTATION_HOST_KEYS "sublet.dev/host-keys"
/* Labels and annotations that the host wrote into its object, under the keys of policy.labels and
 * policy.annotations.fromHost: into the metadata of v, which keeps a record of them; those that the
 * host has no more are removed. A key of the tenant's stays, and a value that names another's
 * object does not come up. True: v changed. */
bool translate_host_keys_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                            cJSON *v);
/* Readiness gates are the tenant's to open, but the host's kubelet waits for them: a strategic
 * merge patch of the host pod's status with the gate conditions that the virtual pod has and that
 * differ; NULL when none does. Conditions of Kubernetes' own are never in it. */
cJSON *translate_pod_gates_down(struct arena *a, const cJSON *host_pod, const cJSON *vpod);
/* Why a host pod waits, by the Workload that Kueue made of it (NULL: none yet, and no reason):
 * `waiting in queue "t-a": insufficient unused quota for nvidia.com/gpu`. STR_NULL: it is admitted,
 * or its pool has no queue. */
struct str translate_queue_up(struct arena *a, const struct translate_tenant *t,
                              const cJSON *host_pod, const cJSON *workload);
cJSON *translate_service_status_up(struct arena *a, const cJSON *host, const cJSON *v);
/* The virtual spec with what the host allocated: cluster IP, IP families, node ports; for a claim
 * its volume and class. NULL when it would not change. */
cJSON *translate_service_spec_up(struct arena *a, const cJSON *host, const cJSON *v);
cJSON *translate_pvc_spec_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                             const cJSON *v);
cJSON *translate_pvc_status_up(struct arena *a, const struct translate_tenant *t, const cJSON *host,
                               const cJSON *v);
/* May pods without devices run on this host node? By its labels and what it has; where
 * policy.cpuNodes says which nodes those are, by labels alone. */
bool translate_node_open(struct arena *a, const struct config *config, const cJSON *host_node);
/* Has it devices, and no label that keeps other pods off? Only its name can: for
 * translate_tenant.unfenced. */
bool translate_node_unfenced(struct arena *a, const struct config *config, const cJSON *host_node);
/* A node as the tenant may see it: labels by allow-list, capacity, conditions, no other tenant's
 * trace. */
cJSON *translate_node_up(struct arena *a, const struct translate_tenant *t, const cJSON *host_node);
/* Its kubelet is at this address, not at the host's; empty: at none. */
void translate_node_address(struct arena *a, cJSON *node, struct str ip);
/* A host event about one of our objects as a virtual core/v1 Event; NULL when it is not ours. */
cJSON *translate_event_up(struct arena *a, const struct translate_tenant *t,
                          const cJSON *host_event, struct str ns, struct str name, struct str uid);

/* A message of the host about an object of the tenant's: host names and the host namespace are
 * written back; uids, accounts and addresses of the host are left out, and nodes are counted as the
 * tenant sees them. */
struct str translate_text_up(struct arena *a, const struct translate_tenant *t, struct str text,
                             struct str host_name, struct str ns, struct str name);
/* Names alone, in what is not the host's to say: a header of a program behind a proxy. */
struct str translate_names_up(struct arena *a, const struct translate_tenant *t, struct str text,
                              struct str host_name, struct str ns, struct str name);
#define TRANSLATE_NO_RIGHT "the host cluster does not let Sublet do this"
/* Does it only say that this client lacks a permission, nothing of the requested object? */
bool translate_refusal_is_of_rights(const struct err *refusal);
/* What the host's API answers to a request of ours, as the tenant may read it. That we lack a right
 * there, or that a webhook of the admin's is away, is a fixed sentence; the words of quotas,
 * policies and validation come through. */
struct str translate_refusal_up(struct arena *a, const struct translate_tenant *t,
                                const struct err *refusal, struct str host_name, struct str ns,
                                struct str name);
