/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/ephemeralcontainers: containers for debugging, added to a running pod. They can be added
 * only; nothing else of the pod changes here. Source: k8s.io/kubernetes pkg/apis/core/validation
 * (ValidatePodEphemeralContainersUpdate). */
#include "api.h"

#include <string.h>

static const char *const LISTS[] = {"spec.initContainers", "spec.containers",
                                    "spec.ephemeralContainers"};

static const cJSON *find_named(const cJSON *list, struct str name)
{
    json_each(item, list) if (str_eq(json_str(json_get(item, "name")), name)) return item;
    return NULL;
}

static size_t count_name(const cJSON *pod, struct str name)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof(LISTS) / sizeof(LISTS[0]); i++)
        json_each(item, json_path(pod, LISTS[i])) n +=
            str_eq(json_str(json_get(item, "name")), name);
    return n;
}

static void check_container(struct field_errors *e, const struct field_path *p, const cJSON *pod,
                            const cJSON *container)
{
    static const char *const forbidden[] = {"ports",        "livenessProbe", "readinessProbe",
                                            "startupProbe", "lifecycle",     "resources",
                                            "resizePolicy"};
    struct str name = json_str(json_get(container, "name"));
    struct str target = json_str(json_get(container, "targetContainerName"));
    const char *why = name_check_dns1123_label(name);

    if (!name.n)
        field_required(e, FIELD(p, "name"), "");
    else if (why)
        field_invalid_str(e, FIELD(p, "name"), name, why);
    else if (count_name(pod, name) > 1)
        field_duplicate(e, FIELD(p, "name"), json_get(container, "name"));
    if (!str_trim(json_str(json_get(container, "image"))).n)
        field_required(e, FIELD(p, "image"), "");
    if (target.n && !find_named(json_path(pod, LISTS[0]), target) &&
        !find_named(json_path(pod, LISTS[1]), target))
        field_not_found(e, FIELD(p, "targetContainerName"),
                        json_get(container, "targetContainerName"));
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        if (json_count(json_get(container, forbidden[i])))
            field_forbidden(e, FIELD(p, forbidden[i]), "cannot be set for an Ephemeral Container");
}

static void check_kept(struct field_errors *e, const struct field_path *list, const cJSON *now,
                       const cJSON *before)
{
    json_each(old, before)
    {
        struct str name = json_str(json_get(old, "name"));
        const cJSON *same = find_named(now, name);

        if (!same)
            field_forbidden(
                e, list,
                arena_printf(e->arena,
                             "existing ephemeral containers \"%.*s\" may not be removed\n",
                             STR_F(name))
                    .p);
        else if (!json_equal(old, same))
            field_forbidden(
                e, list,
                arena_printf(e->arena,
                             "existing ephemeral containers \"%.*s\" may not be changed\n",
                             STR_F(name))
                    .p);
    }
}

static void validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *list = FIELD(FIELD(NULL, "spec"), "ephemeralContainers");
    const cJSON *now = json_path(object, LISTS[2]), *before = json_path(old, LISTS[2]);
    size_t i = 0;

    json_each(container, now)
    {
        if (!find_named(before, json_str(json_get(container, "name"))))
            check_container(e, FIELD_INDEX(list, i), object, container);
        i++;
    }
    check_kept(e, list, now, before);
}

static int make(struct call *c, cJSON *base, cJSON **ret, struct err *err)
{
    cJSON *wanted, *spec;
    const cJSON *list;

    if (write_apply_body(c, json_copy(c->arena, base), &wanted, err))
        return -1;
    list = json_path(wanted, LISTS[2]);
    spec = json_ensure_object(c->arena, base, "spec");
    if (json_count(list) > 256)
        return err_set(err, &ERR_BAD_REQUEST, "too many ephemeral containers");
    if (json_count(list))
        json_set(c->arena, spec, "ephemeralContainers", json_copy(c->arena, list));
    else
        json_remove(spec, "ephemeralContainers");
    json_set(c->arena, base, "metadata", json_copy(c->arena, json_get(wanted, "metadata")));
    *ret = base;
    return 0;
}

void sub_ephemeral_containers(struct call *c)
{
    static const struct write_plan plan = {.make = make, .validate = validate, .whole = true};

    if (c->verb == CALL_GET)
        call_get(c);
    else
        write_start(c, &plan);
}
