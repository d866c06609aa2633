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
    if (text_is(object, "spec.strategy.type", "RollingUpdate"))
        defaults_apply(a, object, DEPLOYMENT_ROLLING, COUNT(DEPLOYMENT_ROLLING));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

static void deployment_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}

/* Annotations are copied to replica sets, so they count as a change to be observed. */
static void deployment_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    if (!same_at(object, old, "metadata.annotations"))
        json_set_i64(a, json_get(object, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static void deployment_prepare_status(struct arena *a, cJSON *object, const cJSON *old)
{
    keep_old(a, object, old, "metadata.labels");
}

static void check_rolling_update(struct field_errors *e, const struct field_path *p,
                                 const cJSON *rolling)
{
    const cJSON *unavailable = json_get(rolling, "maxUnavailable");
    const cJSON *surge = json_get(rolling, "maxSurge");

    check_int_or_percent(e, FIELD(p, "maxUnavailable"), unavailable);
    check_int_or_percent(e, FIELD(p, "maxSurge"), surge);
    if (!int_or_percent(unavailable) && !int_or_percent(surge))
        field_invalid(e, FIELD(p, "maxUnavailable"), unavailable,
                      "may not be 0 when `maxSurge` is 0");
    check_not_over_100(e, FIELD(p, "maxUnavailable"), unavailable);
}

static void check_strategy(struct field_errors *e, const struct field_path *p,
                           const cJSON *strategy)
{
    static const char *const types[] = {"Recreate", "RollingUpdate", NULL};
    struct str type = json_str(json_get(strategy, "type"));
    const cJSON *rolling = json_get(strategy, "rollingUpdate");

    if (str_eqc(type, "RollingUpdate"))
        check_rolling_update(e, FIELD(p, "rollingUpdate"), rolling);
    else if (!str_eqc(type, "Recreate"))
        field_not_supported_value(e, p, strategy, types);
    else if (rolling)
        field_forbidden(e, FIELD(p, "rollingUpdate"),
                        "may not be specified when strategy `type` is 'Recreate'");
}

static void check_progress(struct field_errors *e, const cJSON *spec)
{
    const cJSON *deadline = json_get(spec, "progressDeadlineSeconds");
    const struct field_path *p = FIELD(&SPEC, "progressDeadlineSeconds");
    int64_t seconds;

    if (!json_i64(deadline, &seconds))
        return;
    check_nonnegative(e, p, deadline);
    if (seconds <= json_i64_at(spec, "minReadySeconds", 0))
        field_invalid(e, p, deadline, "must be greater than minReadySeconds");
}

static void validate_deployment(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", "revisionHistoryLimit", NULL};
    const cJSON *spec = json_get(object, "spec");

    check_nonnegative(e, FIELD(&SPEC, "replicas"), json_get(spec, "replicas"));
    validate_owner(e, spec, "deployment", "ReplicaSet");
    check_strategy(e, FIELD(&SPEC, "strategy"), json_get(spec, "strategy"));
    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_progress(e, spec);
    if (old)
        check_immutable(e, FIELD(&SPEC, "selector"), given(spec, "selector"),
                        given(old, "spec.selector"));
}

static void validate_deployment_status(struct field_errors *e, const cJSON *object,
                                       const cJSON *old)
{
    static const struct owner_count counts[] = {
        {"observedGeneration", false},  {"replicas", false},         {"updatedReplicas", true},
        {"readyReplicas", true},        {"availableReplicas", true}, {"unavailableReplicas", false},
        {"terminatingReplicas", false}, {"collisionCount", false},
    };
    const cJSON *status = json_get(object, "status");

    owner_check_counts(e, status, counts, COUNT(counts));
    owner_check_available(e, status, "cannot be greater than readyReplicas");
    owner_check_collisions(e, status, json_get(old, "status"));
}

static ROW_CELLS(cells_deployment)
{
    struct row r = {a, object, now, cells};

    cell_ready(&r);
    cell_number_at(&r, "status.updatedReplicas");
    cell_number_at(&r, "status.availableReplicas");
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.selector"), "");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Ready", "string", "", "", 0},      {"Up-to-date", "string", "", "", 0},
    {"Available", "string", "", "", 0},  {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_DEPLOYMENT = {
    .resource =
        {
            RESOURCE("apps", "v1", "Deployment", "deployments", "deployment"),
            .short_names = NAMES("deploy"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
            .columns = COLUMNS,
            SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("Deployment")),
        },
    .defaults = deployment_defaults,
    .prepare_create = deployment_prepare_create,
    .prepare_update = deployment_prepare_update,
    .validate = validate_deployment,
    .validate_status = validate_deployment_status,
    .prepare_status = deployment_prepare_status,
    .warnings = warn_workload,
    .cells = cells_deployment,
};
