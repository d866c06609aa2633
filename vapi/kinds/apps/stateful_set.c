/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSets of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static const struct default_rule STATEFUL_SET[] = {
    SET_TEXT_Z("spec.podManagementPolicy", "OrderedReady"),
    SET_NUMBER("spec.updateStrategy.rollingUpdate.partition", 0),
    SET_TEXT_Z("spec.persistentVolumeClaimRetentionPolicy+.whenDeleted", "Retain"),
    SET_TEXT_Z("spec.persistentVolumeClaimRetentionPolicy+.whenScaled", "Retain"),
    SET_NUMBER("spec.replicas", 1),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
};

static void stateful_set_defaults(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec"), *strategy;

    if (!json_is_object(spec))
        return;
    strategy = json_ensure_object(a, spec, "updateStrategy");
    if (!json_str(json_get(strategy, "type")).n) {
        json_set_str(a, strategy, "type", STR("RollingUpdate"));
        json_ensure_object(a, strategy, "rollingUpdate");
    }
    defaults_apply(a, object, STATEFUL_SET, COUNT(STATEFUL_SET));
    defaults_pod_template(a, json_path(object, "spec.template"));
    json_each(claim, json_get(spec, "volumeClaimTemplates"))
    {
        json_set_str(a, claim, "apiVersion", STR("v1"));
        json_set_str(a, claim, "kind", STR("PersistentVolumeClaim"));
        defaults_claim(a, claim);
    }
}

/* maxUnavailable belongs to a feature that is off upstream too: only what is there stays. */
static void stateful_set_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    (void)a;
    if (!json_path(old, "spec.updateStrategy.rollingUpdate.maxUnavailable"))
        json_remove(json_path(object, "spec.updateStrategy.rollingUpdate"), "maxUnavailable");
}

static void stateful_set_prepare_create(struct arena *a, cJSON *object)
{
    stateful_set_prepare_update(a, object, NULL);
}

/* ---- validation ---- */

static void check_not_zero(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (!kinds_int_or_percent(value))
        field_invalid(e, p, value, "cannot be 0");
}

static void check_type(const struct check *c)
{
    const cJSON *rolling = json_get(c->value, "rollingUpdate");

    if (kinds_text_is(c->value, "type", "OnDelete") && rolling)
        field_invalid(c->e, FIELD(c->at, "rollingUpdate"), rolling,
                      "only allowed for updateStrategy 'RollingUpdate'");
    else if (!json_str_at(c->value, "type").n)
        field_required(c->e, c->at, "");
    else if (!kinds_one_of(json_str_at(c->value, "type"), ENUM_STATEFUL_SET_UPDATE_STRATEGY_TYPE))
        field_invalid(c->e, c->at, c->value, "must be 'RollingUpdate' or 'OnDelete'");
}

/* The template as its pods get it: named by the set, with the claims of the set as volumes. */
static cJSON *template_with_claims(struct arena *a, const cJSON *spec)
{
    cJSON *template_ = json_copy(a, json_get(spec, "template"));
    cJSON *pod = json_ensure_object(a, template_, "spec"), *volumes = json_new_array(a);
    struct names claims = {.arena = a};

    json_remove(pod, "hostname");
    json_remove(pod, "subdomain");
    json_each(claim, json_get(spec, "volumeClaimTemplates"))
    {
        struct str name = json_str_at(claim, "metadata.name");
        cJSON *volume;

        if (!names_add(&claims, name, claim))
            continue;
        volume = json_append(volumes, json_new_object(a));
        json_set_str(a, volume, "name", name);
        json_set_str(a, json_ensure_object(a, volume, "persistentVolumeClaim"), "claimName", name);
    }
    if (!claims.n)
        return template_;
    json_each(volume, json_get(pod, "volumes"))
    {
        if (!names_has(&claims, json_str(json_get(volume, "name"))))
            json_append(volumes, json_copy(a, volume));
    }
    json_set(a, pod, "volumes", volumes);
    return template_;
}

static void check_pods(const struct check *c)
{
    struct field_errors *e = c->e;
    const cJSON *spec = c->value;
    struct selector selector;
    cJSON *made;

    if (!check_owner_selector(e, spec, "statefulset", &selector)) {
        check_owner_endless(e, spec, "StatefulSet");
        return;
    }
    made = json_new_object(e->arena);
    json_set(e->arena, made, "template", template_with_claims(e->arena, spec));
    if (selector.n || selector.nothing)
        check_owner_match(e, made, &selector);
    check_owner_template(e, made, "StatefulSet");
}

static void check_fixed(const struct check *c)
{
    static const char *const movable[] = {"replicas",
                                          "template",
                                          "updateStrategy",
                                          "minReadySeconds",
                                          "ordinals",
                                          "revisionHistoryLimit",
                                          "persistentVolumeClaimRetentionPolicy"};
    cJSON *a = json_copy(c->e->arena, c->value), *b = json_copy(c->e->arena, c->old);

    for (size_t i = 0; i < COUNT(movable); i++) {
        json_remove(a, movable[i]);
        json_remove(b, movable[i]);
    }
    if (!json_equal(a, b))
        field_forbidden(c->e, c->at,
                        "updates to statefulset spec for fields other than 'replicas', "
                        "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                        "forbidden");
}

static void check_claim(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    validate_claim_spec(e, p, spec, false);
}

#define RETENTION ENUM_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY_TYPE_DECLARED
static const struct rule SET_RULES[] = {
    GIVEN("spec.podManagementPolicy"),
    IN_IF_SET("spec.podManagementPolicy", ENUM_POD_MANAGEMENT_POLICY_TYPE,
              "must be 'OrderedReady' or 'Parallel'"),
    CALL("spec.updateStrategy", check_type),
    WHEN("spec.updateStrategy", "type", "RollingUpdate",
         WITHIN("rollingUpdate", NONNEGATIVE("partition"),
                WITHIN("maxUnavailable", INT_OR_PERCENT(NULL), CHECK(NULL, check_not_zero),
                       AT_MOST_100_PERCENT(NULL)))),
    WITHIN("spec.persistentVolumeClaimRetentionPolicy", ENUM_ALWAYS("whenDeleted", RETENTION),
           ENUM_ALWAYS("whenScaled", RETENTION)),
    ON_CREATE(EACH("spec.volumeClaimTemplates", CHECK_ALWAYS("spec", check_claim))),
    NONNEGATIVES("spec", "replicas", "minReadySeconds"),
    NONNEGATIVE("spec.ordinals.start"),
    ON_CREATE(NAME_IF_SET("spec.serviceName", DNS1123_LABEL)),
    CALL("spec", check_pods),
    ON_UPDATE(CALL("spec", check_fixed)),
};

static const struct rule STATUS_RULES[] = {
    NONNEGATIVES("status", "replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                 "availableReplicas", "observedGeneration", "collisionCount"),
    ALL_AT_MOST("status", "status.replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                "availableReplicas"),
    AT_MOST("status.availableReplicas", "status.readyReplicas"),
    NOT_DECREASED("status.collisionCount"),
};

/* ---- warnings ---- */

static WARNS(warn_stateful_set)
{
    WARNER(w);

    warn_workload(a, object, warn, ctx);
    member_each(claim, at, FIELD(NULL, "spec"), json_get(object, "spec"), "volumeClaimTemplates")
        warn_claim_spec(&w, at, json_get(claim, "spec"));
}

/* ---- the kind ---- */

const struct kind KIND_STATEFUL_SET = {
    RESOURCE("apps", "v1", "StatefulSet", "statefulsets", "statefulset"),
    .resource.short_names = NAMES("sts"),
    .resource.categories = NAMES("all"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_CLAIM_TEMPLATES,
    COLUMNS({"Ready", "string", .cell = cell_ready}, {"Age", "string", .cell = show_age},
            TEMPLATE_COLUMNS("spec.template")),
    SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("StatefulSet")),
    .defaults = stateful_set_defaults,
    .new_status = "{\"availableReplicas\":0,\"replicas\":0}",
    .prepare_create = stateful_set_prepare_create,
    .prepare_update = stateful_set_prepare_update,
    .rules = RULES(SET_RULES),
    .status_rules = RULES(STATUS_RULES),
    .check_name = name_check_dns1123_label,
    .warnings = warn_stateful_set,
};
