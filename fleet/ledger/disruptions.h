/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Pods that held GPUs and that the host ended, or is about to: by their condition DisruptionTarget;
 * and those that their virtual cluster deletes because the fleet takes GPUs back. Counted since the
 * process began. Pure. */
#pragma once

#include <sublet/buf.h>
#include <sublet/fleet_usage.h>
#include <sublet/json.h>

enum fleet_disruption {
    FLEET_EVICTED,   /* EvictionByEvictionAPI: a drain, or an administrator */
    FLEET_PREEMPTED, /* PreemptionByScheduler */
    FLEET_RECLAIMED, /* ReclaimedByFleet, see disrupted of struct fact_pod */
    FLEET_NODE_LOST, /* DeletionByTaintManager, DeletionByPodGC */
    FLEET_KUBELET,   /* TerminationByKubelet: the node was short of something, or was shut down */
    FLEET_OTHER,     /* of a controller that is not Kubernetes' own */
    N_FLEET_DISRUPTIONS
};
struct fleet_disruptions;
struct fleet_disruptions *fleet_disruptions_new(void);
struct fleet_disruptions *fleet_disruptions_free(struct fleet_disruptions *d); /* takes NULL */
/* A change of a pod that held this until then; trees, NULL: there is none. Without one before the
 * process began while the pod ends: the process before it has counted that. */
void fleet_disruptions_pod(struct fleet_disruptions *d, const cJSON *before, const cJSON *now,
                           const struct fleet_hold *hold);
void fleet_disruptions_metrics(const struct fleet_disruptions *d, struct buf *out);
#define FLEET_DISRUPTIONS_LINES 10000 /* tenants and pools; more are not counted */
