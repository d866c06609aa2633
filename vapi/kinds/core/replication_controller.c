/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicationControllers. Source: pkg/apis/core/v1/defaults.go,
 * ValidateReplicationController in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "../pod/replicas.h"

static const struct default_rule DEFAULT_RULES[] = {SET_NUMBER("spec.replicas", 1)};

static void controller_defaults(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec");
    const cJSON *labels = json_path(json_path(object, "spec.template"), "metadata.labels");

    if (labels && !json_count(json_get(spec, "selector")))
        json_set(a, spec, "selector", json_copy(a, labels));
    if (labels && !json_count(json_path(object, "metadata.labels")))
        json_set(a, json_ensure_object(a, object, "metadata"), "labels", json_copy(a, labels));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

static void check_pods(const struct check *c)
{
    const cJSON *selector = kinds_given(c->value, "selector");
    struct selector s;

    if (!kinds_given(c->value, "template"))
        return;
    selector_from_map(c->e->arena, selector, &s);
    if (json_count(selector))
        check_owner_match(c->e, c->value, &s);
    check_owner_template(c->e, c->value, "ReplicationController");
}

static const struct rule CONTROLLER_RULES[] = {
    NONNEGATIVE("spec.minReadySeconds"), NONNEGATIVE("spec.replicas"), SOME("spec.selector", ""),
    REQUIRED("spec.template", ""),       CALL("spec", check_pods),
};

/* ---- the kind ---- */

const struct kind KIND_REPLICATION_CONTROLLER = {
    RESOURCE("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller"),
    .resource.short_names = NAMES("rc"),
    .resource.categories = NAMES("all"),
    .resource.flags =
        RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT | RES_ANY_PREFIX,
    COLUMNS({"Desired", "integer", .cell = show_number, .path = "spec.replicas"},
            {"Current", "integer", .cell = show_number, .path = "status.replicas"},
            {"Ready", "integer", .cell = show_number, .path = "status.readyReplicas"},
            {"Age", "string", .cell = show_age}, TEMPLATE_COLUMNS("spec.template"),
            {"Selector", "string", .priority = 1, .cell = show_map, .path = "spec.selector"}),
    FIELDS({"status.replicas", "status.replicas", "0"}),
    SUBRESOURCES(SCALE_BY(SCALE_MAP), STATUS_OF("ReplicationController")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = controller_defaults,
    .new_status = "{\"replicas\":0}",
    .rules = RULES(CONTROLLER_RULES),
    .status_rules = RULES(REPLICAS_STATUS_RULES),
    .warnings_before_create = warn_new_owner,
    .warnings = warn_template,
};
