/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"

#include <sublet/encode.h>

static const struct default_rule DAEMON_SET[] = {
    SET_TEXT_Z("spec.updateStrategy+.type", "RollingUpdate"),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
};

static const struct default_rule DAEMON_SET_ROLLING[] = {
    SET_NUMBER("spec.updateStrategy.rollingUpdate+.maxUnavailable", 1),
    SET_NUMBER("spec.updateStrategy.rollingUpdate+.maxSurge", 0),
};

/* No defaults: what Go prints of numbers that are not set. */
static const struct default_rule DAEMON_SET_OTHER[] = {
    SET_NUMBER("spec.updateStrategy.rollingUpdate.maxUnavailable", 0),
    SET_NUMBER("spec.updateStrategy.rollingUpdate.maxSurge", 0),
};

/* A field of the internal type that v1 shows as an annotation. */
#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static const cJSON *template_generation(const cJSON *object)
{
    return json_get(json_path(object, "metadata.annotations"), TEMPLATE_GENERATION);
}

/* Upstream reads the number when it reads the object. */
static const char *daemon_set_unreadable(struct arena *a, const cJSON *object)
{
    const cJSON *text = template_generation(object);
    struct str number = json_str(text), digits = number;
    int64_t n;

    if (!json_is_string(text))
        return NULL;
    if (digits.n && (digits.p[0] == '+' || digits.p[0] == '-'))
        digits = str_from(digits, 1);
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            digits.n = 0;
    }
    if (digits.n && str_to_i64(number.p[0] == '+' ? digits : number, &n))
        return NULL;
    return problem_printf(a, "strconv.ParseInt: parsing %.*s: %s", STR_F(go_quote(a, number)),
                          digits.n ? "value out of range" : "invalid syntax");
}

static void set_template_generation(struct arena *a, cJSON *object, int64_t generation)
{
    json_set_str(a, json_ensure_path(a, object, "metadata.annotations"), TEMPLATE_GENERATION,
                 arena_printf(a, "%lld", (long long)generation));
}

static void daemon_set_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, DAEMON_SET, COUNT(DAEMON_SET));
    if (kinds_text_is(object, "spec.updateStrategy.type", "RollingUpdate"))
        defaults_apply(a, object, DAEMON_SET_ROLLING, COUNT(DAEMON_SET_ROLLING));
    else
        defaults_apply(a, object, DAEMON_SET_OTHER, COUNT(DAEMON_SET_OTHER));
    defaults_pod_template(a, json_path(object, "spec.template"));
    /* The zero of the field: its manager is who creates the object. */
    if (!template_generation(object))
        set_template_generation(a, object, 0);
}

static void daemon_set_prepare_create(struct arena *a, cJSON *object)
{
    int64_t generation = 0;

    str_to_i64(json_str(template_generation(object)), &generation);
    set_template_generation(a, object, generation < 1 ? 1 : generation);
}

static void daemon_set_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    int64_t generation = 0;

    str_to_i64(json_str(template_generation(old)), &generation);
    set_template_generation(a, object, generation + !kinds_same_at(object, old, "spec.template"));
}

/* ---- validation ---- */

static void check_one_way(const struct check *c)
{
    const cJSON *surge = json_get(c->value, "maxSurge");
    bool may_miss = kinds_int_or_percent(json_get(c->value, "maxUnavailable")) != 0;
    bool may_add = kinds_int_or_percent(surge) != 0;

    if (may_miss && may_add)
        field_invalid(c->e, FIELD(c->at, "maxSurge"), surge,
                      "may not be set when maxUnavailable is non-zero");
    else if (!may_miss && !may_add)
        field_required(c->e, FIELD(c->at, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

static void check_match(const struct check *c)
{
    struct selector selector;
    struct err err;

    err_init(&err, c->e->arena);
    if (selector_from_json(c->e->arena, c->value, &selector, &err) == 0)
        check_owner_match(c->e, json_get(c->object, "spec"), &selector);
    if (c->value && kinds_selector_is_empty(c->value))
        field_invalid(c->e, c->at, c->value, "empty selector is invalid for daemonset");
}

static void check_template(const struct check *c)
{
    check_owner_template(c->e, c->value, "DaemonSet");
}

static const struct rule SET_RULES[] = {
    FIXED("spec.selector"),
    LABEL_SELECTOR("spec.selector"),
    CALL("spec.selector", check_match),
    CALL("spec", check_template),
    NONNEGATIVE("spec.minReadySeconds"),
    WHEN("spec.updateStrategy", "type", "RollingUpdate",
         INSIDE("rollingUpdate", INT_OR_PERCENT("maxUnavailable"), INT_OR_PERCENT("maxSurge"),
                AT_MOST_100_PERCENT("maxUnavailable"), AT_MOST_100_PERCENT("maxSurge"),
                CALL(NULL, check_one_way))),
    ENUM_TYPE("spec.updateStrategy", ENUM_DAEMON_SET_UPDATE_STRATEGY_TYPE_DECLARED),
    NONNEGATIVE("spec.revisionHistoryLimit"),
};

static const struct rule STATUS_RULES[] = {
    NONNEGATIVES("status", "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                 "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable",
                 "numberUnavailable", "collisionCount"),
    NOT_DECREASED("status.collisionCount"),
};

/* ---- the kind ---- */

const struct kind KIND_DAEMON_SET = {
    RESOURCE("apps", "v1", "DaemonSet", "daemonsets", "daemonset"),
    .resource.short_names = NAMES("ds"),
    .resource.categories = NAMES("all"),
    .resource.converted_annotation = TEMPLATE_GENERATION,
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
    COLUMNS(
        {"Desired", "integer", .cell = show_number, .path = "status.desiredNumberScheduled"},
        {"Current", "integer", .cell = show_number, .path = "status.currentNumberScheduled"},
        {"Ready", "integer", .cell = show_number, .path = "status.numberReady"},
        {"Up-to-date", "integer", .cell = show_number, .path = "status.updatedNumberScheduled"},
        {"Available", "integer", .cell = show_number, .path = "status.numberAvailable"},
        {"Node Selector", "string", .cell = show_map, .path = "spec.template.spec.nodeSelector"},
        {"Age", "string", .cell = show_age}, TEMPLATE_COLUMNS("spec.template"),
        {"Selector", "string", .priority = 1, .cell = show_selector, .path = "spec.selector",
         .otherwise = "<none>"}),
    SUBRESOURCES(STATUS_OF("DaemonSet")),
    .defaults = daemon_set_defaults,
    .new_status = "{\"currentNumberScheduled\":0,\"desiredNumberScheduled\":0,"
                  "\"numberMisscheduled\":0,\"numberReady\":0}",
    .prepare_create = daemon_set_prepare_create,
    .prepare_update = daemon_set_prepare_update,
    .rules = RULES(SET_RULES),
    .status_rules = RULES(STATUS_RULES),
    .warnings = warn_template,
    .unreadable = daemon_set_unreadable,
};
