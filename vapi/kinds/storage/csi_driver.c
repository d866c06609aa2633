/* SPDX-License-Identifier: Apache-2.0 */
/* CSIDrivers. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"

static const struct default_rule DRIVER[] = {
    SET_BOOL("spec.attachRequired", true),
    SET_BOOL("spec.podInfoOnMount", false),
    SET_BOOL("spec.storageCapacity", false),
    SET_TEXT("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
    SET_BOOL("spec.requiresRepublish", false),
    SET_BOOL("spec.seLinuxMount", false),
    DROPPED("spec.preventPodSchedulingIfMissing"),
};

static void driver_defaults(struct arena *a, cJSON *driver)
{
    cJSON *spec = json_get(driver, "spec");

    if (json_is_object(spec) && !json_count(json_get(spec, "volumeLifecycleModes")))
        json_append(json_set(a, spec, "volumeLifecycleModes", json_new_array(a)),
                    json_new_string(a, STR("Persistent")));
}

/* Counted from 0, unlike elsewhere. */
static void driver_prepare_update(struct arena *a, cJSON *driver, const cJSON *old)
{
    if (!json_equal(json_get(driver, "spec"), json_get(old, "spec")))
        json_set_i64(a, json_get(driver, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

/* ---- validation ---- */

static void check_audience(const struct check *c)
{
    struct names audiences = {.arena = c->e->arena};

    field_each(token, at, c->at, c->value)
    {
        struct str audience = json_str(json_get(token, "audience"));

        if (!names_add(&audiences, audience, token))
            field_duplicate(c->e, FIELD(at, "audience"), json_new_string(c->e->arena, audience));
        else
            check_token_lifetime(c->e, FIELD(at, "expirationSeconds"),
                                 kinds_given(token, "expirationSeconds"));
    }
}

static void check_kept(const struct check *c)
{
    check_immutable(c->e, FIELD(c->at, "attachedRequired"), json_get(c->value, "attachRequired"),
                    json_get(c->old, "attachRequired")); /* upstream's own path */
}

static const struct rule DRIVER_RULES[] = {
    ENUM_IF_GIVEN("spec.fsGroupPolicy", ENUM_FS_GROUP_POLICY),
    CALL("spec.tokenRequests", check_audience),
    EACH_ENUM_LIST("spec.volumeLifecycleModes", ENUM_VOLUME_LIFECYCLE_MODE_DECLARED),
    AT_LEAST("spec.nodeAllocatableUpdatePeriodSeconds", 10,
             "must be greater than or equal to 10 seconds"),
    UNLESS_GIVEN("spec", "tokenRequests",
                 INVALID("serviceAccountTokenInSecrets",
                         "serviceAccountTokenInSecrets is set but no tokenRequests are specified")),
    ON_UPDATE(CALL("spec", check_kept), FIXED("spec.volumeLifecycleModes")),
};

/* ---- warnings, cells ---- */

static WARNS(warn_csi_driver)
{
    (void)a;
    if (json_count(json_path(object, "spec.tokenRequests")) &&
        !kinds_given(object, "spec.serviceAccountTokenInSecrets"))
        warn(ctx,
             STR("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
                 "set to true to prevent possible logging of tokens in volume attributes"));
}

CELL(cell_attach)
{
    const cJSON *attach = json_path(r->object, "spec.attachRequired");

    cell_bool(r, !attach || json_true(attach));
}

CELL(cell_tokens)
{
    const cJSON *requests = json_path(r->object, "spec.tokenRequests");
    struct buf b = BUF_INIT(0);

    json_each(t, requests)
    {
        buf_addc(&b, t == json_first(requests) ? "" : ",");
        buf_add(&b, json_str(json_get(t, "audience")));
    }
    cell_text(r, requests ? buf_str(&b) : STR("<unset>"));
    buf_fini(&b);
}

CELL(cell_modes)
{
    cell_or(r, kinds_join(r->a, json_path(r->object, "spec.volumeLifecycleModes"), ","), "<none>");
}

/* ---- the kind ---- */

const struct kind KIND_CSI_DRIVER = {
    RESOURCE("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver"),
    .resource.flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT,
    COLUMNS({"AttachRequired", "boolean", .cell = cell_attach},
            {"PodInfoOnMount", "boolean", .cell = show_bool, .path = "spec.podInfoOnMount"},
            {"StorageCapacity", "boolean", .cell = show_bool, .path = "spec.storageCapacity"},
            {"TokenRequests", "string", .cell = cell_tokens},
            {"RequiresRepublish", "boolean", .cell = show_bool, .path = "spec.requiresRepublish"},
            {"Modes", "string", .cell = cell_modes}, {"Age", "string", .cell = show_age}),
    .default_rules = DEFAULTS(DRIVER),
    .defaults = driver_defaults,
    .prepare_update = driver_prepare_update,
    .rules = RULES(DRIVER_RULES),
    .warnings = warn_csi_driver,
};
