/* SPDX-License-Identifier: Apache-2.0 */
/* NodeMetrics and PodMetrics: measured on the host when they are read, never stored. Source:
 * k8s.io/metrics pkg/apis/metrics/v1beta1. */
#include "../rules/kind.h"

const struct kind KIND_NODE_METRICS = {
    RESOURCE_OF(VERB_GET | VERB_LIST, "metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", "node"),
    .resource.flags = RES_REVIEW,
};

const struct kind KIND_POD_METRICS = {
    RESOURCE_OF(VERB_GET | VERB_LIST, "metrics.k8s.io", "v1beta1", "PodMetrics", "pods", "pod"),
    .resource.flags = RES_REVIEW | RES_NAMESPACED,
};

const struct kind *const METRICS_KINDS[] = {&KIND_NODE_METRICS, &KIND_POD_METRICS, NULL};
