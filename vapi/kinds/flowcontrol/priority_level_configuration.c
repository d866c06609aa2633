/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityLevelConfigurations. Must never know who is served when: nothing here is obeyed. Source:
 * pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation. */
#include "../rules/kind.h"
#include "status.h"

#include <math.h>

static const struct default_rule LEVEL[] = {
    SET_NUMBER("spec.limited.nominalConcurrencyShares", 30),
    SET_NUMBER("spec.limited.lendablePercent", 0),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.handSize", 8),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.queues", 64),
    SET_NUMBER_Z("spec.limited.limitResponse.queuing.queueLengthLimit", 50),
    SET_NUMBER("spec.exempt.nominalConcurrencyShares", 0),
    SET_NUMBER("spec.exempt.lendablePercent", 0),
};

#define MAX_QUEUES 10000000

#define MAX_HASH_BITS 60

static void check_queuing(struct field_errors *e, const struct field_path *p, const cJSON *queuing)
{
    int64_t queues = json_i64_at(queuing, "queues", 0), hand = json_i64_at(queuing, "handSize", 0);
    const cJSON *many = json_new_i64(e->arena, queues), *cards = json_new_i64(e->arena, hand);
    int64_t length = json_i64_at(queuing, "queueLengthLimit", 0);

    if (length <= 0)
        field_invalid(e, FIELD(p, "queueLengthLimit"), json_new_i64(e->arena, length),
                      "must be positive");
    if (queues <= 0)
        field_invalid(e, FIELD(p, "queues"), many, "must be positive");
    else if (queues > MAX_QUEUES)
        field_invalid(e, FIELD(p, "queues"), many, "must not be greater than 10000000");
    if (hand <= 0)
        field_invalid(e, FIELD(p, "handSize"), cards, "must be positive");
    else if (hand > queues)
        field_invalid_printf(e, FIELD(p, "handSize"), cards,
                             "should not be greater than queues (%lld)", (long long)queues);
    else if (ceil(log2((double)queues) * (double)hand) > MAX_HASH_BITS)
        field_invalid_printf(e, FIELD(p, "handSize"), cards,
                             "required entropy bits of deckSize %lld and handSize %lld "
                             "should not be greater than 60",
                             (long long)queues, (long long)hand);
}

static const struct rule RESPONSE[] = {
    ENUM("type", ENUM_LIMIT_RESPONSE_TYPE),
    WHEN(NULL, "type", "Queue",
         REQUIRED("queuing", "must not be empty if limited.limitResponse.type is Limited"),
         CHECK("queuing", check_queuing)),
    WHEN(NULL, "type", "Reject",
         FORBIDDEN("queuing", "must be nil if limited.limitResponse.type is not Limited")),
};

#define SHARES           AT_LEAST("nominalConcurrencyShares", 0, "must be a non-negative integer")
#define LENDABLE_PERCENT RANGE("lendablePercent", 0, 100)

static void check_exempt(const struct check *c)
{
    if (kinds_text_is(c->object, "metadata.name", "exempt") !=
        str_eqc(json_str(c->value), "Exempt"))
        field_invalid_str(c->e, c->at, json_str(c->value),
                          "must be 'Exempt' if and only if `name` is 'exempt'");
}

static const struct rule LEVEL_RULES[] = {
    CALL("spec.type", check_exempt),
    ENUM("spec.type", ENUM_PRIORITY_LEVEL_ENABLEMENT),
    WHEN("spec", "type", "Exempt", FORBIDDEN("limited", "must be nil if the type is not Limited"),
         WITHIN("exempt", SHARES, LENDABLE_PERCENT)),
    WHEN("spec", "type", "Limited", FORBIDDEN("exempt", "must be nil if the type is Limited"),
         WITHIN(
             "limited", SHARES, INSIDE("limitResponse", ALL(RESPONSE)), LENDABLE_PERCENT,
             AT_LEAST("borrowingLimitPercent", 0, "if specified, must be a non-negative integer")),
         REQUIRED("limited", "must not be empty when type is Limited")),
    ALL(RULES_FLOW_STATUS),
};

/* ---- cells ---- */

static void cell_number_or_none(const struct row *r, const struct column *c)
{
    int64_t number;

    if (json_i64(json_path(r->object, c->path), &number))
        cell_number(r, number);
    else
        cell_text(r, STR("<none>"));
}

/* ---- the kind ---- */

const struct kind KIND_PRIORITY_LEVEL_CONFIGURATION = {
    RESOURCE("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
             "prioritylevelconfigurations", "prioritylevelconfiguration"),
    .resource.flags = RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
    COLUMNS({"Type", "string", .cell = show_text, .path = "spec.type"},
            {"NominalConcurrencyShares", "string", .cell = cell_number_or_none,
             .path = "spec.limited.nominalConcurrencyShares"},
            {"Queues", "string", .cell = cell_number_or_none,
             .path = "spec.limited.limitResponse.queuing.queues"},
            {"HandSize", "string", .cell = cell_number_or_none,
             .path = "spec.limited.limitResponse.queuing.handSize"},
            {"QueueLengthLimit", "string", .cell = cell_number_or_none,
             .path = "spec.limited.limitResponse.queuing.queueLengthLimit"},
            {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("PriorityLevelConfiguration")),
    .default_rules = DEFAULTS(LEVEL),
    .new_status = "{}",
    .rules = RULES(LEVEL_RULES),
    .status_rules = RULES(RULES_FLOW_STATUS),
};
