/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSets of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "../pod/replicas.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_NUMBER("spec.replicas", 1),
    SET_BY("spec.template", defaults_pod_template),
};

static const struct rule REPLICA_SET_RULES[] = {
    NONNEGATIVES("spec", "replicas", "minReadySeconds"),
    CALL("spec", validate_owner),
    FIXED("spec.selector"),
};

/* ---- the kind ---- */

const struct kind KIND_REPLICA_SET = {
    RESOURCE("apps", "v1", "ReplicaSet", "replicasets", "replicaset"),
    .resource.short_names = NAMES("rs"),
    .resource.categories = NAMES("all"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
    COLUMNS({"Desired", "integer", .cell = show_number, .path = "spec.replicas"},
            {"Current", "integer", .cell = show_number, .path = "status.replicas"},
            {"Ready", "integer", .cell = show_number, .path = "status.readyReplicas"},
            {"Age", "string", .cell = show_age}, TEMPLATE_COLUMNS("spec.template"),
            {"Selector", "string", .priority = 1, .cell = show_selector, .path = "spec.selector",
             .otherwise = "<none>"}),
    SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("ReplicaSet")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .new_status = "{\"replicas\":0}",
    .rules = RULES(REPLICA_SET_RULES),
    .status_rules = RULES(REPLICAS_STATUS_RULES),
    .warnings = warn_workload,
};
