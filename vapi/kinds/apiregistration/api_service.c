/* SPDX-License-Identifier: Apache-2.0 */
/* APIServices. Source: kube-aggregator pkg/apis/apiregistration/validation. */
#include "../rules/kind.h"

#include <sublet/encode.h>

static const struct default_rule DEFAULT_RULES[] = {SET_NUMBER("spec.service.port", 443)};

static void service_prepare_create(struct arena *a, cJSON *service)
{
    cJSON *condition;

    defaults_set_status(a, service, "{}");
    if (json_is_object(json_path(service, "spec.service")))
        return;
    defaults_set_status(a, service,
                        "{\"conditions\":[{\"message\":\"Local APIServices are always available\","
                        "\"reason\":\"Local\",\"status\":\"True\",\"type\":\"Available\"}]}");
    condition = json_at(json_path(service, "status.conditions"), 0);
    json_set_str(a, condition, "lastTransitionTime",
                 json_str_at(service, "metadata.creationTimestamp"));
}

static const struct rule REMOTE[] = {
    ALL_GIVEN("service", "namespace", "name"),
    RANGE_ELSE("service.port", 1, 65535,
               "port is not valid: must be between 1 and 65535, inclusive"),
    WHEN_SET(NULL, "caBundle",
             NOT_TRUE("insecureSkipTLSVerify", "may not be true if caBundle is present")),
};

static void check_no_bundle(struct field_errors *e, const struct field_path *p, const cJSON *bundle)
{
    struct str bytes;

    if (json_str(bundle).n && base64_decode(e->arena, json_str(bundle), &bytes))
        field_invalid_str(e, p, arena_printf(e->arena, "%zu bytes", bytes.n),
                          "local APIServices may not have a caBundle");
}

static const struct rule LOCAL[] = {
    CHECK("caBundle", check_no_bundle),
    NOT_TRUE("insecureSkipTLSVerify", "local APIServices may not have insecureSkipTLSVerify"),
};

static void check_service_name(const struct check *c)
{
    struct arena *a = c->e->arena;
    struct str wanted = arena_printf(a, "%.*s.%.*s", STR_F(json_str_at(c->object, "spec.version")),
                                     STR_F(json_str_at(c->object, "spec.group")));

    for (size_t i = 0; i < 2; i++) {
        const char *key = i ? "name" : "generateName";
        struct str name = json_str(json_get(c->value, key));

        if (name.n && !name_check_path_segment(name) && !str_eq(name, wanted))
            field_invalid_str_printf(c->e, FIELD(c->at, key), name,
                                     "must be `spec.version+\".\"+spec.group`: %.*s",
                                     STR_F(go_quote(a, wanted)));
    }
}

static const struct rule RULES_SERVICE[] = {
    CALL("metadata", check_service_name),
    UNLESS("spec", "version", "v1",
           GIVEN_ELSE("group", "only v1 may have an empty group and it better be legacy kube")),
    NAME_IF_SET("spec.group", DNS1123_SUBDOMAIN),
    NAME_ALWAYS("spec.version", DNS1035_LABEL),
    RANGE_ELSE("spec.groupPriorityMinimum", 1, 20000, "must be positive and less than 20000"),
    RANGE_ELSE("spec.versionPriority", 1, 1000, "must be positive and less than 1000"),
    WHEN_GIVEN("spec", "service", ALL(REMOTE)),
    UNLESS_GIVEN("spec", "service", ALL(LOCAL)),
};

static const struct rule STATUS_RULES[] = {
    EACH("status.conditions", ENUM_ALWAYS("status", ENUM_CONDITION_STATUS_DECLARED))};

CELL(cell_service)
{
    const cJSON *service = json_path(r->object, "spec.service");

    cell_pair(r, json_is_object(service) ? service : NULL, "namespace", "name", "Local");
}

CELL(cell_available)
{
    const cJSON *condition =
        condition_find(json_path(r->object, "status.conditions"), STR("Available"));
    struct str status = json_str(json_get(condition, "status"));
    struct str reason = json_str(json_get(condition, "reason"));

    if (!condition)
        cell_text(r, STR("Unknown"));
    else if (str_eqc(status, "True") || !reason.n)
        cell_text(r, status);
    else
        cell_printf(r, "%.*s (%.*s)", STR_F(status), STR_F(reason));
}

/* ---- the kind ---- */

const struct kind KIND_API_SERVICE = {
    RESOURCE("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags = RES_STATUS | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER |
                      RES_STATUS_KEEPS_META | RES_SYSTEM_NAME,
    COLUMNS({"Service", "string", .cell = cell_service},
            {"Available", "string", .cell = cell_available}, {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("APIService")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .prepare_create = service_prepare_create,
    .rules = RULES(RULES_SERVICE),
    .status_rules = RULES(STATUS_RULES),
};
