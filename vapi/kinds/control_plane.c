/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds about the API server itself: APIServices, certificate requests, flow control. Source:
 * pkg/apis/flowcontrol/v1/defaults.go, pkg/registry/certificates, kube-aggregator. */
#include "validate.h"

/* ---- APIService ---- */

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

const struct kind_ops APISERVICE_OPS = {
    .defaults = service_defaults,
    .prepare_create = service_prepare_create,
    .validate = validate_api_service,
    .validate_status = validate_api_service_status,
    .cells = cells_api_service,
};

/* ---- CertificateSigningRequest ---- */

static void request_prepare_create(struct arena *a, cJSON *request)
{
    set_status(a, request, "{}");
}

static void request_prepare_update(struct arena *a, cJSON *request, const cJSON *old)
{
    json_set(a, request, "spec", json_copy(a, json_get(old, "spec")));
}

/* Decisions are as they were unless their number changed, which validation refuses. */
static void request_prepare_status(struct arena *a, cJSON *request, const cJSON *old)
{
    static const char *const kept[] = {"Approved", "Denied"};
    cJSON *now = json_path(request, "status.conditions");
    cJSON *before = json_path(old, "status.conditions");

    for (size_t i = 0; i < COUNT(kept); i++) {
        cJSON *mine = condition_get(now, kept[i]);
        const cJSON *was = condition_get(before, kept[i]);

        if (mine && was)
            json_replace(now, mine, json_copy(a, was));
    }
}

const struct kind_ops CERTIFICATE_SIGNING_REQUEST_OPS = {
    .prepare_create = request_prepare_create,
    .prepare_update = request_prepare_update,
    .prepare_status = request_prepare_status,
    .validate = validate_certificate_request,
    .validate_status = validate_certificate_request_status,
    .cells = cells_certificate_request,
};

/* ---- flow control ---- */

static void schema_defaults(struct arena *a, cJSON *schema)
{
    static const struct default_rule rules[] = {SET_NUMBER_Z("spec.matchingPrecedence", 1000)};

    defaults_apply(a, schema, rules, COUNT(rules));
}

static void status_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}

const struct kind_ops FLOW_SCHEMA_OPS = {
    .defaults = schema_defaults,
    .prepare_create = status_prepare_create,
    .validate = validate_flow_schema,
    .validate_status = validate_flow_status,
    .cells = cells_flow_schema,
};

static const struct default_rule LEVEL[] = {
    SET_NUMBER("spec.limited.nominalConcurrencyShares", 30),
    SET_NUMBER("spec.limited.lendablePercent", 0),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.handSize", 8),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.queues", 64),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.queueLengthLimit", 50),
    SET_NUMBER("spec.exempt.nominalConcurrencyShares", 0),
    SET_NUMBER("spec.exempt.lendablePercent", 0),
};

static void level_defaults(struct arena *a, cJSON *level)
{
    defaults_apply(a, level, LEVEL, COUNT(LEVEL));
}

const struct kind_ops PRIORITY_LEVEL_CONFIGURATION_OPS = {
    .defaults = level_defaults,
    .prepare_create = status_prepare_create,
    .validate = validate_priority_level,
    .validate_status = validate_flow_status,
    .cells = cells_priority_level,
};
