/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSets of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static void replica_set_defaults(struct arena *a, cJSON *object)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.replicas", 1)};

    defaults_apply(a, object, rules, COUNT(rules));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

static void validate_replica_set(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"replicas", "minReadySeconds", NULL};
    const cJSON *spec = json_get(object, "spec");

    check_all_nonnegative(e, &SPEC, spec, numbers);
    validate_owner(e, spec, "deployment", "ReplicaSet");
    if (old)
        check_immutable(e, FIELD(&SPEC, "selector"), given(spec, "selector"),
                        given(old, "spec.selector"));
}

static ROW_CELLS(cells_replicas)
{
    struct row r = {a, object, now, cells};

    cell_replicas(&r);
    cell_selector(&r, json_path(object, "spec.selector"), "<none>");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_REPLICA_SET = {
    .resource =
        {
            RESOURCE("apps", "v1", "ReplicaSet", "replicasets", "replicaset"),
            .short_names = NAMES("rs"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
            .columns = COLUMNS,
            SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("ReplicaSet")),
        },
    .defaults = replica_set_defaults,
    .prepare_create = replicas_prepare_create,
    .validate = validate_replica_set,
    .validate_status = validate_replicas_status,
    .warnings = warn_workload,
    .cells = cells_replicas,
};
