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

static void level_defaults(struct arena *a, cJSON *level)
{
    defaults_apply(a, level, LEVEL, COUNT(LEVEL));
}

#define MAX_QUEUES 10000000

#define MAX_HASH_BITS 60

static void check_percent(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    int64_t percent;

    if (json_i64(value, &percent) && (percent < 0 || percent > 100))
        field_invalid(e, p, value, "must be between 0 and 100, inclusive");
}

static void check_shares(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    int64_t shares;

    if (json_i64(value, &shares) && shares < 0)
        field_invalid(e, p, value, "must be a non-negative integer");
}

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
        field_invalid(
            e, FIELD(p, "handSize"), cards,
            arena_printf(e->arena, "should not be greater than queues (%lld)", (long long)queues)
                .p);
    else if (ceil(log2((double)queues) * (double)hand) > MAX_HASH_BITS)
        field_invalid(e, FIELD(p, "handSize"), cards,
                      arena_printf(e->arena,
                                   "required entropy bits of deckSize %lld and handSize %lld "
                                   "should not be greater than 60",
                                   (long long)queues, (long long)hand)
                          .p);
}

static void check_response(struct field_errors *e, const struct field_path *p,
                           const cJSON *response)
{
    static const char *const types[] = {"Queue", "Reject", NULL};
    const cJSON *queuing = given(response, "queuing");
    struct str type = json_str(json_get(response, "type"));

    if (!check_enum(e, FIELD(p, "type"), type, types))
        return;
    if (str_eqc(type, "Queue") && queuing)
        check_queuing(e, FIELD(p, "queuing"), queuing);
    else if (str_eqc(type, "Queue"))
        field_required(e, FIELD(p, "queuing"),
                       "must not be empty if limited.limitResponse.type is Limited");
    else if (queuing)
        field_forbidden(e, FIELD(p, "queuing"),
                        "must be nil if limited.limitResponse.type is not Limited");
}

static void check_limited(struct field_errors *e, const struct field_path *p, const cJSON *limited)
{
    const cJSON *borrowing = given(limited, "borrowingLimitPercent");

    check_shares(e, FIELD(p, "nominalConcurrencyShares"),
                 given(limited, "nominalConcurrencyShares"));
    check_response(e, FIELD(p, "limitResponse"), json_get(limited, "limitResponse"));
    check_percent(e, FIELD(p, "lendablePercent"), given(limited, "lendablePercent"));
    if (borrowing && json_i64_at(limited, "borrowingLimitPercent", 0) < 0)
        field_invalid(e, FIELD(p, "borrowingLimitPercent"), borrowing,
                      "if specified, must be a non-negative integer");
}

static void validate_priority_level(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const types[] = {"Exempt", "Limited", NULL};
    const cJSON *spec = json_get(object, "spec");
    const cJSON *limited = given(spec, "limited"), *exempt = given(spec, "exempt");
    struct str type = json_str(json_get(spec, "type"));
    bool is_exempt = str_eqc(type, "Exempt");
    AT(p, NULL, "spec");

    if (str_eqc(json_str(json_path(object, "metadata.name")), "exempt") != is_exempt)
        field_invalid_str(e, FIELD(p, "type"), type,
                          "must be 'Exempt' if and only if `name` is 'exempt'");
    if (check_enum(e, FIELD(p, "type"), type, types) && is_exempt) {
        if (limited)
            field_forbidden(e, FIELD(p, "limited"), "must be nil if the type is not Limited");
        check_shares(e, FIELD(FIELD(p, "exempt"), "nominalConcurrencyShares"),
                     given(exempt, "nominalConcurrencyShares"));
        check_percent(e, FIELD(FIELD(p, "exempt"), "lendablePercent"),
                      given(exempt, "lendablePercent"));
    } else if (str_eqc(type, "Limited")) {
        if (exempt)
            field_forbidden(e, FIELD(p, "exempt"), "must be nil if the type is Limited");
        if (limited)
            check_limited(e, FIELD(p, "limited"), limited);
        else
            field_required(e, FIELD(p, "limited"), "must not be empty when type is Limited");
    }
    validate_flow_status(e, object, old);
}

static void cell_number_or_none(const struct row *r, const char *path)
{
    int64_t number;

    if (json_i64(json_path(r->object, path), &number))
        cell_number(r, number);
    else
        cell_text(r, STR("<none>"));
}

static ROW_CELLS(cells_priority_level)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.type");
    cell_number_or_none(&r, "spec.limited.nominalConcurrencyShares");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.queues");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.handSize");
    cell_number_or_none(&r, "spec.limited.limitResponse.queuing.queueLengthLimit");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Type", "string", "", "", 0},
    {"NominalConcurrencyShares", "string", "", "", 0},
    {"Queues", "string", "", "", 0},
    {"HandSize", "string", "", "", 0},
    {"QueueLengthLimit", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_PRIORITY_LEVEL_CONFIGURATION = {
    .resource =
        {
            RESOURCE("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
                     "prioritylevelconfigurations", "prioritylevelconfiguration"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("PriorityLevelConfiguration")),
        },
    .defaults = level_defaults,
    .prepare_create = flow_prepare_create,
    .validate = validate_priority_level,
    .validate_status = validate_flow_status,
    .cells = cells_priority_level,
};
