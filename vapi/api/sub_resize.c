/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/resize: CPU and memory of running containers. Names, other resources and the QoS class stay.
 * Source: k8s.io/kubernetes pkg/apis/core/validation (ValidatePodResize), pkg/apis/core/helper/qos.
 */
#include "api.h"

#include <string.h>

#include <sublet/quantity.h>

static const char *const LISTS[] = {"initContainers", "containers"};
static const char *const RESIZABLE[] = {"cpu", "memory"};

enum qos { QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED };

/* ---- QoS ---- */

static bool positive(const cJSON *value, struct quantity *ret)
{
    return quantity_parse(json_str(value), ret) && ret->nano > 0;
}

static void note_container(const cJSON *container, bool *any, bool *guaranteed)
{
    for (size_t i = 0; i < 2; i++) {
        struct quantity request, limit;
        bool has_request =
            positive(json_get(json_path(container, "resources.requests"), RESIZABLE[i]), &request);
        bool has_limit =
            positive(json_get(json_path(container, "resources.limits"), RESIZABLE[i]), &limit);

        *any |= has_request || has_limit;
        if (!has_limit || (has_request && quantity_cmp(request, limit) != 0))
            *guaranteed = false;
    }
}

static enum qos qos_of(const cJSON *pod)
{
    bool any = false, guaranteed = true;

    for (size_t i = 0; i < 2; i++)
        json_each(container, json_get(json_get(pod, "spec"), LISTS[i]))
            note_container(container, &any, &guaranteed);
    if (!any)
        return QOS_BEST_EFFORT;
    return guaranteed ? QOS_GUARANTEED : QOS_BURSTABLE;
}

/* ---- checks ---- */

static bool resizable(const char *name)
{
    return strcmp(name, RESIZABLE[0]) == 0 || strcmp(name, RESIZABLE[1]) == 0;
}

/* Everything but CPU and memory must be as it was. */
static bool others_equal(const cJSON *a, const cJSON *b)
{
    json_each(value, a) if (!resizable(value->string) &&
                            !json_equal(value, json_get(b, value->string))) return false;
    json_each(value, b) if (!resizable(value->string) && !json_get(a, value->string)) return false;
    return true;
}

static void check_removed(struct field_errors *e, const struct field_path *p, const cJSON *now,
                          const cJSON *before)
{
    json_each(value, before) if (resizable(value->string) && !json_get(now, value->string))
        field_forbidden(e, p, "resource limits cannot be removed");
}

static void check_container(struct field_errors *e, const struct field_path *p, const cJSON *now,
                            const cJSON *before)
{
    const struct field_path *resources = FIELD(p, "resources");
    const cJSON *limits = json_path(now, "resources.limits");
    const cJSON *requests = json_path(now, "resources.requests");

    if (!others_equal(limits, json_path(before, "resources.limits")) ||
        !others_equal(requests, json_path(before, "resources.requests")))
        field_forbidden(e, resources, "only cpu and memory resources are mutable");
    check_removed(e, FIELD(resources, "limits"), limits, json_path(before, "resources.limits"));
    json_each(limit, limits)
    {
        const cJSON *request = json_get(requests, limit->string);
        struct quantity have, most;

        if (request && quantity_parse(json_str(request), &have) &&
            quantity_parse(json_str(limit), &most) && quantity_cmp(have, most) > 0)
            field_invalid(e, FIELD(resources, "requests"), request,
                          arena_printf(e->arena, "must be less than or equal to %s limit of %.*s",
                                       limit->string, STR_F(json_str(limit)))
                              .p);
    }
}

static void validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *spec = FIELD(NULL, "spec");

    for (size_t i = 0; i < 2; i++) {
        const cJSON *before = json_get(json_get(old, "spec"), LISTS[i]);
        size_t at = 0;

        json_each(container, json_get(json_get(object, "spec"), LISTS[i]))
        {
            check_container(e, FIELD_INDEX(FIELD(spec, LISTS[i]), at), container,
                            json_at(before, at));
            at++;
        }
    }
    if (qos_of(object) != qos_of(old))
        field_invalid_str(e, spec, json_str_at(old, "status.qosClass"),
                          "Pod QOS Class may not change as a result of resizing");
}

/* ---- the change ---- */

static void take(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);

    if (value)
        json_set(a, to, key, json_copy(a, value));
    else
        json_remove(to, key);
}

static int take_list(struct call *c, cJSON *spec, const cJSON *wanted, const char *list,
                     struct err *err)
{
    cJSON *mine = json_get(spec, list);
    const cJSON *theirs = json_get(wanted, list);
    const cJSON *other = json_first(theirs);

    if (json_count(mine) != json_count(theirs))
        return err_set(err, &ERR_BAD_REQUEST,
                       "containers may not be added or removed on the resize subresource");
    json_each(container, mine)
    {
        if (!str_eq(json_str(json_get(container, "name")), json_str(json_get(other, "name"))))
            return err_set(err, &ERR_BAD_REQUEST,
                           "containers may not be renamed or reordered on resize");
        take(c->arena, container, other, "resources");
        take(c->arena, container, other, "resizePolicy");
        other = other->next;
    }
    return 0;
}

static int make(struct call *c, cJSON *base, cJSON **ret, struct err *err)
{
    cJSON *wanted, *spec = json_ensure_object(c->arena, base, "spec");

    if (write_apply_body(c, json_copy(c->arena, base), &wanted, err))
        return -1;
    for (size_t i = 0; i < 2; i++)
        if (take_list(c, spec, json_get(wanted, "spec"), LISTS[i], err))
            return -1;
    json_set(c->arena, base, "metadata", json_copy(c->arena, json_get(wanted, "metadata")));
    *ret = base;
    return 0;
}

void sub_resize(struct call *c)
{
    static const struct write_plan plan = {.make = make, .validate = validate, .whole = true};

    if (c->verb == CALL_GET)
        call_get(c);
    else
        write_start(c, &plan);
}
