/* SPDX-License-Identifier: Apache-2.0 */
/* APIServices. Source: kube-aggregator pkg/apis/apiregistration/validation. */
#include "../rules/kind.h"

#include <sublet/encode.h>

static void service_defaults(struct arena *a, cJSON *service)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.service.port", 443)};

    defaults_apply(a, service, rules, COUNT(rules));
}

static void service_prepare_create(struct arena *a, cJSON *service)
{
    cJSON *condition;

    set_status(a, service, "{}");
    if (json_is_object(json_path(service, "spec.service")))
        return;
    set_status(a, service,
               "{\"conditions\":[{\"message\":\"Local APIServices are always available\","
               "\"reason\":\"Local\",\"status\":\"True\",\"type\":\"Available\"}]}");
    condition = json_at(json_path(service, "status.conditions"), 0);
    json_set_str(a, condition, "lastTransitionTime",
                 json_str_at(service, "metadata.creationTimestamp"));
}

static void check_service(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *service = json_get(spec, "service");
    struct str bundle = json_str(json_get(spec, "caBundle"));
    int64_t port = json_i64_at(service, "port", 0);
    AT(at, p, "service");

    check_given(e, FIELD(at, "namespace"), json_str(json_get(service, "namespace")));
    check_given(e, FIELD(at, "name"), json_str(json_get(service, "name")));
    if (port < 1 || port > 65535)
        field_invalid(e, FIELD(at, "port"), json_new_i64(e->arena, port),
                      "port is not valid: must be between 1 and 65535, inclusive");
    if (bundle.n && json_true(json_get(spec, "insecureSkipTLSVerify")))
        field_invalid(e, FIELD(p, "insecureSkipTLSVerify"), json_get(spec, "insecureSkipTLSVerify"),
                      "may not be true if caBundle is present");
}

static void check_local_service(struct field_errors *e, const struct field_path *p,
                                const cJSON *spec)
{
    struct str bundle;

    if (json_str(json_get(spec, "caBundle")).n &&
        base64_decode(e->arena, json_str(json_get(spec, "caBundle")), &bundle))
        field_invalid_str(e, FIELD(p, "caBundle"), arena_printf(e->arena, "%zu bytes", bundle.n),
                          "local APIServices may not have a caBundle");
    if (json_true(json_get(spec, "insecureSkipTLSVerify")))
        field_invalid(e, FIELD(p, "insecureSkipTLSVerify"), json_get(spec, "insecureSkipTLSVerify"),
                      "local APIServices may not have insecureSkipTLSVerify");
}

static void check_service_name(struct field_errors *e, const struct field_path *p,
                               const cJSON *object, struct str wanted)
{
    for (size_t i = 0; i < 2; i++) {
        const char *key = i ? "name" : "generateName";
        struct str name = json_str(json_get(json_get(object, "metadata"), key));

        if (name.n && !name_check_path_segment(name) && !str_eq(name, wanted))
            field_invalid_str(e, FIELD(p, key), name,
                              arena_printf(e->arena,
                                           "must be `spec.version+\".\"+spec.group`: %.*s",
                                           STR_F(go_quote(e->arena, wanted)))
                                  .p);
    }
}

static void check_priority(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                           const char *key, int64_t most)
{
    int64_t value = json_i64_at(spec, key, 0);

    if (value <= 0 || value > most)
        field_invalid(
            e, FIELD(p, key), json_new_i64(e->arena, value),
            arena_printf(e->arena, "must be positive and less than %lld", (long long)most).p);
}

static void validate_api_service(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    struct str group = json_str(json_get(spec, "group")),
               version = json_str(json_get(spec, "version"));
    AT(p, NULL, "spec");

    (void)old;
    check_service_name(e, FIELD(NULL, "metadata"), object,
                       arena_printf(e->arena, "%.*s.%.*s", STR_F(version), STR_F(group)));
    if (!group.n && !str_eqc(version, "v1"))
        field_required(e, FIELD(p, "group"),
                       "only v1 may have an empty group and it better be legacy kube");
    if (group.n)
        check_rule(e, FIELD(p, "group"), NAME_DNS1123_SUBDOMAIN, group);
    check_rule(e, FIELD(p, "version"), NAME_DNS1035_LABEL, version);
    check_priority(e, p, spec, "groupPriorityMinimum", 20000);
    check_priority(e, p, spec, "versionPriority", 1000);
    if (given(spec, "service"))
        check_service(e, p, spec);
    else
        check_local_service(e, p, spec);
}

static void validate_api_service_status(struct field_errors *e, const cJSON *object,
                                        const cJSON *old)
{
    static const char *const states[] = {"True", "False", "Unknown", NULL};
    const struct field_path *p = FIELD(FIELD(NULL, "status"), "conditions");
    size_t i = 0;

    (void)old;
    json_each(condition, json_path(object, "status.conditions"))
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "status");
        struct str status = json_str(json_get(condition, "status"));

        if (!one_of(status, states))
            field_not_supported(e, at, status, states);
    }
}

static ROW_CELLS(cells_api_service)
{
    struct row r = {a, object, now, cells};
    const cJSON *service = json_path(object, "spec.service");
    struct str available = STR("Unknown");

    if (json_is_object(service))
        cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(json_str(json_get(service, "namespace"))),
                                   STR_F(json_str(json_get(service, "name")))));
    else
        cell_text(&r, STR("Local"));
    json_each(c, json_path(object, "status.conditions"))
    {
        struct str status = json_str(json_get(c, "status"));
        struct str reason = json_str(json_get(c, "reason"));

        if (!str_eqc(json_str(json_get(c, "type")), "Available"))
            continue;
        available = str_eqc(status, "True") || !reason.n
                        ? status
                        : arena_printf(a, "%.*s (%.*s)", STR_F(status), STR_F(reason));
        break;
    }
    cell_text(&r, available);
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Service", "string", "", "", 0},
    {"Available", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_API_SERVICE = {
    .resource =
        {
            RESOURCE("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice"),
            .categories = NAMES("api-extensions"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER |
                     RES_STATUS_KEEPS_META | RES_SYSTEM_NAME,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("APIService")),
        },
    .defaults = service_defaults,
    .prepare_create = service_prepare_create,
    .validate = validate_api_service,
    .validate_status = validate_api_service_status,
    .cells = cells_api_service,
};
