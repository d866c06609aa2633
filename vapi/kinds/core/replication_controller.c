/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicationControllers. Source: pkg/apis/core/v1/defaults.go,
 * ValidateReplicationController in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static void controller_defaults(struct arena *a, cJSON *object)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.replicas", 1)};
    cJSON *spec = json_get(object, "spec");
    const cJSON *labels = json_path(json_path(object, "spec.template"), "metadata.labels");

    defaults_apply(a, object, rules, COUNT(rules));
    if (labels && !json_count(json_get(spec, "selector")))
        json_set(a, spec, "selector", json_copy(a, labels));
    if (labels && !json_count(json_path(object, "metadata.labels")))
        json_set(a, json_ensure_object(a, object, "metadata"), "labels", json_copy(a, labels));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

static void validate_replication_controller(struct field_errors *e, const cJSON *object,
                                            const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", "replicas", NULL};
    const cJSON *spec = json_get(object, "spec"), *selector = given(spec, "selector");
    struct selector s;

    (void)old;
    check_all_nonnegative(e, &SPEC, spec, numbers);
    if (!json_count(selector))
        field_required(e, FIELD(&SPEC, "selector"), "");
    if (!given(spec, "template")) {
        field_required(e, FIELD(&SPEC, "template"), "");
        return;
    }
    selector_from_map(e->arena, selector, &s);
    if (json_count(selector))
        owner_check_match(e, spec, &s);
    owner_check_template(e, spec, "ReplicationController");
}

static ROW_CELLS(cells_controller)
{
    struct row r = {a, object, now, cells};

    cell_replicas(&r);
    cell_map(&r, json_path(object, "spec.selector"));
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};

static const struct selectable_field FIELDS[] = {
    {"status.replicas", "status.replicas", "0"},
    {NULL, NULL, NULL},
};

const struct kind KIND_REPLICATION_CONTROLLER = {
    .resource =
        {
            RESOURCE("", "v1", "ReplicationController", "replicationcontrollers",
                     "replicationcontroller"),
            .short_names = NAMES("rc"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags =
                RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT | RES_ANY_PREFIX,
            .columns = COLUMNS,
            .fields = FIELDS,
            SUBRESOURCES(SCALE_BY(SCALE_MAP), STATUS_OF("ReplicationController")),
        },
    .defaults = controller_defaults,
    .prepare_create = replicas_prepare_create,
    .validate = validate_replication_controller,
    .validate_status = validate_replicas_status,
    .warnings_before_create = warn_new_owner,
    .warnings = warn_template,
    .cells = cells_controller,
};
