/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of ReplicaSets and ReplicationControllers, as rows. Internal to vapi/kinds. */
#pragma once

#include "pod.h"

static const struct rule REPLICAS_STATUS_RULES[] = {
    NONNEGATIVES("status", "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                 "observedGeneration", "terminatingReplicas"),
    ALL_AT_MOST("status", "status.replicas", "fullyLabeledReplicas", "readyReplicas",
                "availableReplicas"),
    AT_MOST_ELSE("status.availableReplicas", "status.readyReplicas",
                 "cannot be greater than readyReplicas"),
};
