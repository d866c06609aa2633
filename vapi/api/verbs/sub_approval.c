/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * certificatesigningrequests/approval: the decision on a request. Only conditions change; a
 * decision cannot be reverted. Source: k8s.io/kubernetes
 * pkg/registry/certificates/certificates/strategy.go, its validation in
 * pkg/apis/certificates/validation. */
#include "verbs.h"

#include <sublet/object.h>

static const struct field_path STATUS = {.name = "status"};
static const char *const DECISIONS[] = {"Approved", "Denied", "Failed"};

static void check_condition(struct field_errors *e, const struct field_path *p, const cJSON *list,
                            const cJSON *condition)
{
    const cJSON *type = json_get(condition, "type");
    struct str status = json_str(json_get(condition, "status"));
    static const char *const statuses[] = {"False", "True", "Unknown", NULL};
    bool decides = str_eqc(json_str(type), DECISIONS[0]) || str_eqc(json_str(type), DECISIONS[1]) ||
                   str_eqc(json_str(type), DECISIONS[2]);

    if (!json_str(type).n)
        field_required(e, FIELD(p, "type"), "");
    else if (condition_find(list, json_str(type)) != condition)
        field_duplicate(e, FIELD(p, "type"), type);
    if (!status.n)
        field_required(e, FIELD(p, "status"), "");
    else if (decides && !str_eqc(status, "True"))
        field_not_supported(e, FIELD(p, "status"), status, (const char *const[]){"True", NULL});
    else if (!str_eqc(status, "True") && !str_eqc(status, "False") && !str_eqc(status, "Unknown"))
        field_not_supported(e, FIELD(p, "status"), status, statuses);
}

static bool comes_after(const cJSON *first, const cJSON *second)
{
    while (first && first != second)
        first = first->next;
    return first != NULL;
}

static void check_decisions_stay(struct field_errors *e, const struct field_path *p,
                                 const cJSON *now, const cJSON *before)
{
    for (size_t i = 0; i < COUNT(DECISIONS); i++) {
        struct str type = str_c(DECISIONS[i]);
        const cJSON *had = condition_find(before, type), *has = condition_find(now, type);

        if (had && !has)
            field_forbidden(e, p,
                            arena_printf(e->arena,
                                         "updates may not remove a condition of type \"%s\"",
                                         DECISIONS[i])
                                .p);
    }
}

static void validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(&STATUS, "conditions");
    const cJSON *now = json_path(object, "status.conditions");
    size_t i = 0;

    const cJSON *yes = condition_find(now, STR("Approved")),
                *no = condition_find(now, STR("Denied"));

    json_each(condition, now)
    {
        check_condition(e, FIELD_INDEX(p, i++), now, condition);
        /* Reported at the second one. */
        if (yes && no &&
            ((condition == no && comes_after(yes, no)) ||
             (condition == yes && comes_after(no, yes))))
            field_invalid(e, p, json_get(condition, "type"),
                          "Approved and Denied conditions are mutually exclusive");
    }
    check_decisions_stay(e, p, now, json_path(old, "status.conditions"));
}

static int make(struct call *c, cJSON *base, cJSON **ret, struct err *err)
{
    cJSON *wanted, *status = json_ensure_object(c->arena, base, "status"), *conditions;
    const cJSON *before = json_get(status, "conditions");
    struct str now;

    if (write_apply_body(c, json_copy(c->arena, base), &wanted, err))
        return -1;
    conditions = json_path(wanted, "status.conditions");
    if (json_count(conditions) > 256)
        return err_set(err, &ERR_BAD_REQUEST, "too many conditions");
    if (json_count(conditions)) {
        conditions = json_copy(c->arena, conditions);

        /* Sets timestamps the client omitted. */
        now = time_format_s(c->arena, clock_wall_s(vapi_clock(c->api)));
        json_each(condition, conditions)
        {
            const cJSON *old = condition_find(before, json_str(json_get(condition, "type")));
            struct str since = json_str(json_get(old, "lastTransitionTime"));
            bool same = old && str_eq(json_str(json_get(old, "status")),
                                      json_str(json_get(condition, "status")));

            if (!json_str(json_get(condition, "lastUpdateTime")).n)
                json_set_str(c->arena, condition, "lastUpdateTime", now);
            if (!json_str(json_get(condition, "lastTransitionTime")).n)
                json_set_str(c->arena, condition, "lastTransitionTime",
                             same && since.n ? since : now);
        }

        json_set(c->arena, status, "conditions", conditions);
    } else {
        json_remove(status, "conditions");
    }
    json_set(c->arena, base, "metadata", json_copy(c->arena, json_get(wanted, "metadata")));
    *ret = base;
    return 0;
}

void sub_approval(struct call *c)
{
    static const struct write_plan plan = {.make = make, .validate = validate, .whole = true};

    if (c->verb == CALL_GET)
        call_get(c);
    else
        write_start(c, &plan);
}
