/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static const struct default_rule DEPLOYMENT[] = {
    SET_NUMBER("spec.replicas", 1),
    SET_TEXT_Z("spec.strategy+.type", "RollingUpdate"),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
    SET_NUMBER("spec.progressDeadlineSeconds", 600),
};

static const struct default_rule DEPLOYMENT_ROLLING[] = {
    SET_TEXT("spec.strategy.rollingUpdate+.maxUnavailable", "25%"),
    SET_TEXT("spec.strategy.rollingUpdate+.maxSurge", "25%"),
};

static void deployment_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, DEPLOYMENT, COUNT(DEPLOYMENT));
    if (kinds_text_is(object, "spec.strategy.type", "RollingUpdate"))
        defaults_apply(a, object, DEPLOYMENT_ROLLING, COUNT(DEPLOYMENT_ROLLING));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

/* Annotations are copied to replica sets, so they count as a change to be observed. */
static void deployment_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    if (!kinds_same_at(object, old, "metadata.annotations"))
        json_set_i64(a, json_get(object, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static void deployment_prepare_status(struct arena *a, cJSON *object, const cJSON *old)
{
    defaults_keep_old(a, object, old, "metadata.labels");
}

/* ---- validation ---- */

static void check_progress_possible(const struct check *c)
{
    const cJSON *unavailable = json_get(c->value, "maxUnavailable");

    if (!kinds_int_or_percent(unavailable) && !kinds_int_or_percent(json_get(c->value, "maxSurge")))
        field_invalid(c->e, FIELD(c->at, "maxUnavailable"), unavailable,
                      "may not be 0 when `maxSurge` is 0");
}

static void check_deadline(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *deadline = json_get(spec, "progressDeadlineSeconds");
    int64_t seconds;

    if (json_i64(deadline, &seconds) && seconds <= json_i64_at(spec, "minReadySeconds", 0))
        field_invalid(e, FIELD(p, "progressDeadlineSeconds"), deadline,
                      "must be greater than minReadySeconds");
}

static const struct rule DEPLOYMENT_RULES[] = {
    NONNEGATIVE("spec.replicas"),
    CALL("spec", validate_owner),
    WHEN("spec.strategy", "type", "RollingUpdate",
         INSIDE("rollingUpdate", INT_OR_PERCENT("maxUnavailable"), INT_OR_PERCENT("maxSurge"),
                CALL(NULL, check_progress_possible), AT_MOST_100_PERCENT("maxUnavailable"))),
    WHEN("spec.strategy", "type", "Recreate",
         FORBIDDEN("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")),
    ENUM_TYPE("spec.strategy", ENUM_DEPLOYMENT_STRATEGY_TYPE),
    NONNEGATIVES("spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
    CHECK("spec", check_deadline),
    FIXED("spec.selector"),
};

static const struct rule STATUS_RULES[] = {
    NONNEGATIVES("status", "observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                 "availableReplicas", "unavailableReplicas", "terminatingReplicas",
                 "collisionCount"),
    ALL_AT_MOST("status", "status.replicas", "updatedReplicas", "readyReplicas",
                "availableReplicas"),
    AT_MOST_ELSE("status.availableReplicas", "status.readyReplicas",
                 "cannot be greater than readyReplicas"),
    NOT_DECREASED("status.collisionCount"),
};

/* ---- the kind ---- */

const struct kind KIND_DEPLOYMENT = {
    RESOURCE("apps", "v1", "Deployment", "deployments", "deployment"),
    .resource.short_names = NAMES("deploy"),
    .resource.categories = NAMES("all"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
    COLUMNS({"Ready", "string", .cell = cell_ready},
            {"Up-to-date", "string", .cell = show_number, .path = "status.updatedReplicas"},
            {"Available", "string", .cell = show_number, .path = "status.availableReplicas"},
            {"Age", "string", .cell = show_age}, TEMPLATE_COLUMNS("spec.template"),
            {"Selector", "string", .priority = 1, .cell = show_selector, .path = "spec.selector",
             .otherwise = ""}),
    SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("Deployment", "metadata.labels", "spec")),
    .defaults = deployment_defaults,
    .new_status = "{}",
    .prepare_update = deployment_prepare_update,
    .rules = RULES(DEPLOYMENT_RULES),
    .status_rules = RULES(STATUS_RULES),
    .prepare_status = deployment_prepare_status,
    .warnings = warn_workload,
};
