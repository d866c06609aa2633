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
};

static void driver_defaults(struct arena *a, cJSON *driver)
{
    cJSON *spec = json_get(driver, "spec");

    defaults_apply(a, driver, DRIVER, COUNT(DRIVER));
    drop_member(driver, "spec.preventPodSchedulingIfMissing"); /* a feature upstream has off */
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

static void check_tokens(struct field_errors *e, const struct field_path *p, const cJSON *tokens)
{
    struct names audiences = {.arena = e->arena};
    size_t i = 0;

    json_each(token, tokens)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str audience = json_str(json_get(token, "audience"));
        const cJSON *seconds = given(token, "expirationSeconds");
        int64_t n;

        if (!names_add(&audiences, audience, token)) {
            field_duplicate(e, FIELD(at, "audience"), json_new_string(e->arena, audience));
            continue;
        }
        if (!json_i64(seconds, &n))
            continue;
        if (n < 600)
            field_invalid(e, FIELD(at, "expirationSeconds"), seconds,
                          "may not specify a duration less than 10 minutes");
        if (n > INT64_C(1) << 32)
            field_invalid(e, FIELD(at, "expirationSeconds"), seconds,
                          "may not specify a duration larger than 2^32 seconds");
    }
}

static void check_driver_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const policies[] = {"File", "None", "ReadWriteOnceWithFSType", NULL};
    static const char *const modes[] = {"Persistent", "Ephemeral", NULL};
    const cJSON *period = given(spec, "nodeAllocatableUpdatePeriodSeconds");
    const cJSON *in_secrets = given(spec, "serviceAccountTokenInSecrets");
    int64_t n;

    check_enum_if(e, FIELD(p, "fsGroupPolicy"), given(spec, "fsGroupPolicy"), policies);
    check_tokens(e, FIELD(p, "tokenRequests"), json_get(spec, "tokenRequests"));
    json_each(mode, json_get(spec, "volumeLifecycleModes"))
        check_enum_if(e, FIELD(p, "volumeLifecycleModes"), mode, modes);
    if (json_i64(period, &n) && n < 10)
        field_invalid(e, FIELD(p, "nodeAllocatableUpdatePeriodSeconds"), period,
                      "must be greater than or equal to 10 seconds");
    if (in_secrets && !json_count(json_get(spec, "tokenRequests")))
        field_invalid(e, FIELD(p, "serviceAccountTokenInSecrets"), in_secrets,
                      "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

static void driver_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *before = json_get(old, "spec");
    AT(p, NULL, "spec");

    check_driver_spec(e, p, spec);
    if (!old)
        return;
    check_immutable(e, FIELD(p, "attachedRequired"), json_get(spec, "attachRequired"),
                    json_get(before, "attachRequired"));
    check_immutable(e, FIELD(p, "volumeLifecycleModes"), json_get(spec, "volumeLifecycleModes"),
                    json_get(before, "volumeLifecycleModes"));
}

static WARNS(warn_csi_driver)
{
    (void)a;
    if (json_count(json_path(object, "spec.tokenRequests")) &&
        !given(object, "spec.serviceAccountTokenInSecrets"))
        warn(ctx,
             STR("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
                 "set to true to prevent possible logging of tokens in volume attributes"));
}

static ROW_CELLS(cells_csi_driver)
{
    struct row r = {a, object, now, cells};
    const cJSON *spec = json_get(object, "spec"), *attach = json_get(spec, "attachRequired");
    struct buf b = BUF_INIT(0);

    cell_bool(&r, !attach || json_true(attach));
    cell_bool(&r, json_true(json_get(spec, "podInfoOnMount")));
    cell_bool(&r, json_true(json_get(spec, "storageCapacity")));
    json_each(t, json_get(spec, "tokenRequests"))
    {
        buf_addc(&b, t == json_first(json_get(spec, "tokenRequests")) ? "" : ",");
        buf_add(&b, json_str(json_get(t, "audience")));
    }
    cell_text(&r, json_get(spec, "tokenRequests") ? buf_str(&b) : STR("<unset>"));
    buf_fini(&b);
    cell_bool(&r, json_true(json_get(spec, "requiresRepublish")));
    cell_or(&r, join(a, json_get(spec, "volumeLifecycleModes"), ","), "<none>");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"AttachRequired", "boolean", "", "", 0},
    {"PodInfoOnMount", "boolean", "", "", 0},
    {"StorageCapacity", "boolean", "", "", 0},
    {"TokenRequests", "string", "", "", 0},
    {"RequiresRepublish", "boolean", "", "", 0},
    {"Modes", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CSI_DRIVER = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver"),
            .verbs = VERBS_ALL,
            .flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT,
            .columns = COLUMNS,
        },
    .defaults = driver_defaults,
    .prepare_update = driver_prepare_update,
    .validate = driver_validate,
    .warnings = warn_csi_driver,
    .cells = cells_csi_driver,
};
