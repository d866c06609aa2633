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

static void daemon_set_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, DAEMON_SET, COUNT(DAEMON_SET));
    if (text_is(object, "spec.updateStrategy.type", "RollingUpdate"))
        defaults_apply(a, object, DAEMON_SET_ROLLING, COUNT(DAEMON_SET_ROLLING));
    else
        defaults_apply(a, object, DAEMON_SET_OTHER, COUNT(DAEMON_SET_OTHER));
    defaults_pod_template(a, json_path(object, "spec.template"));
}

/* A field of the internal type that v1 shows as an annotation. */
#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static int64_t template_generation(const cJSON *object)
{
    int64_t generation = 0;
    const cJSON *annotations = json_path(object, "metadata.annotations");

    str_to_i64(json_str(json_get(annotations, TEMPLATE_GENERATION)), &generation);
    return generation;
}

/* Upstream reads the number when it reads the object. */
static const char *daemon_set_unreadable(struct arena *a, const cJSON *object)
{
    const cJSON *text = json_get(json_path(object, "metadata.annotations"), TEMPLATE_GENERATION);
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
    return arena_printf(a, "strconv.ParseInt: parsing %.*s: %s", STR_F(go_quote(a, number)),
                        digits.n ? "value out of range" : "invalid syntax")
        .p;
}

static void set_template_generation(struct arena *a, cJSON *object, int64_t generation)
{
    json_set_str(a, json_ensure_path(a, object, "metadata.annotations"), TEMPLATE_GENERATION,
                 arena_printf(a, "%lld", (long long)generation));
}

static void daemon_set_prepare_create(struct arena *a, cJSON *object)
{
    int64_t generation = template_generation(object);

    set_status(a, object,
               "{\"currentNumberScheduled\":0,\"desiredNumberScheduled\":0,"
               "\"numberMisscheduled\":0,\"numberReady\":0}");
    set_template_generation(a, object, generation < 1 ? 1 : generation);
}

static void daemon_set_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    int64_t generation = template_generation(old);

    if (!same_at(object, old, "spec.template"))
        generation++;
    set_template_generation(a, object, generation);
}

static void check_daemon_rolling(struct field_errors *e, const struct field_path *p,
                                 const cJSON *rolling)
{
    const cJSON *unavailable = json_get(rolling, "maxUnavailable");
    const cJSON *surge = json_get(rolling, "maxSurge");
    bool may_miss, may_add;

    check_int_or_percent(e, FIELD(p, "maxUnavailable"), unavailable);
    check_int_or_percent(e, FIELD(p, "maxSurge"), surge);
    check_not_over_100(e, FIELD(p, "maxUnavailable"), unavailable);
    check_not_over_100(e, FIELD(p, "maxSurge"), surge);
    may_miss = int_or_percent(unavailable) != 0;
    may_add = int_or_percent(surge) != 0;
    if (may_miss && may_add)
        field_invalid(e, FIELD(p, "maxSurge"), surge,
                      "may not be set when maxUnavailable is non-zero");
    else if (!may_miss && !may_add)
        field_required(e, FIELD(p, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

static void check_daemon_strategy(struct field_errors *e, const cJSON *strategy)
{
    static const char *const types[] = {"RollingUpdate", "OnDelete", NULL};
    const struct field_path *p = FIELD(&SPEC, "updateStrategy");
    struct str type = json_str(json_get(strategy, "type"));

    if (str_eqc(type, "RollingUpdate"))
        check_daemon_rolling(e, FIELD(p, "rollingUpdate"), json_get(strategy, "rollingUpdate"));
    else if (!str_eqc(type, "OnDelete"))
        field_not_supported_value(e, p, strategy, types);
}

static void validate_daemon_set(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", NULL};
    const cJSON *spec = json_get(object, "spec"), *selector = given(spec, "selector");
    const struct field_path *p = FIELD(&SPEC, "selector");
    struct selector s;
    struct err err;

    err_init(&err, e->arena);
    if (old)
        check_immutable(e, p, selector, given(old, "spec.selector"));
    validate_label_selector(e, p, selector);
    if (selector_from_json(e->arena, selector, &s, &err) == 0)
        owner_check_match(e, spec, &s);
    if (selector && owner_selector_is_empty(selector))
        field_invalid(e, p, selector, "empty selector is invalid for daemonset");
    owner_check_template(e, spec, "DaemonSet");
    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_daemon_strategy(e, json_get(spec, "updateStrategy"));
    check_nonnegative(e, FIELD(&SPEC, "revisionHistoryLimit"),
                      json_get(spec, "revisionHistoryLimit"));
}

static void validate_daemon_set_status(struct field_errors *e, const cJSON *object,
                                       const cJSON *old)
{
    static const char *const numbers[] = {
        "currentNumberScheduled", "numberMisscheduled",
        "desiredNumberScheduled", "numberReady",
        "observedGeneration",     "updatedNumberScheduled",
        "numberAvailable",        "numberUnavailable",
        "collisionCount",         NULL,
    };
    const cJSON *status = json_get(object, "status");

    check_all_nonnegative(e, &STATUS, status, numbers);
    owner_check_collisions(e, status, json_get(old, "status"));
}

static ROW_CELLS(cells_daemon_set)
{
    static const char *const numbers[] = {
        "status.desiredNumberScheduled", "status.currentNumberScheduled", "status.numberReady",
        "status.updatedNumberScheduled", "status.numberAvailable",
    };
    struct row r = {a, object, now, cells};

    for (size_t i = 0; i < COUNT(numbers); i++)
        cell_number_at(&r, numbers[i]);
    cell_map(&r, json_path(object, "spec.template.spec.nodeSelector"));
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.selector"), "<none>");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Up-to-date", "integer", "", "", 0},
    {"Available", "integer", "", "", 0}, {"Node Selector", "string", "", "", 0},
    {"Age", "string", "", "", 0},        {"Containers", "string", "", "", 1},
    {"Images", "string", "", "", 1},     {"Selector", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_DAEMON_SET = {
    .resource =
        {
            RESOURCE("apps", "v1", "DaemonSet", "daemonsets", "daemonset"),
            .short_names = NAMES("ds"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("DaemonSet")),
        },
    .defaults = daemon_set_defaults,
    .prepare_create = daemon_set_prepare_create,
    .prepare_update = daemon_set_prepare_update,
    .validate = validate_daemon_set,
    .validate_status = validate_daemon_set_status,
    .warnings = warn_template,
    .unreadable = daemon_set_unreadable,
    .cells = cells_daemon_set,
};
