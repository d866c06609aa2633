/* SPDX-License-Identifier: Apache-2.0 */
/* pods/resize: what such a write may change, which is CPU and memory of containers and of the pod,
 * and what it may not. Must never let another part of a pod through: a list of containers that is
 * not the previous list is left as it came, to be refused. Source:
 * pkg/registry/core/pod/strategy.go (podResizeStrategy), ValidatePodResize in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

static const char *const RESIZABLE[] = {"cpu", "memory", NULL};
static const char *const AMOUNTS[] = {"requests", "limits"};

static const struct list {
    const char *name, *added_or_removed, *renamed;
} LISTS[] = {
    {"containers", "containers may not be added or removed on resize",
     "containers may not be renamed or reordered on resize"},
    {"initContainers", "initContainers may not be added or removed on resize",
     "initContainers may not be renamed or reordered on resize"},
};

static const cJSON *list_of(const cJSON *pod, const char *list)
{
    return json_get(json_get(pod, "spec"), list);
}

static bool same_names(const cJSON *list, const cJSON *old)
{
    const cJSON *before = json_first(old);

    json_each(container, list)
    {
        if (!before ||
            !str_eq(json_str(json_get(container, "name")), json_str(json_get(before, "name"))))
            return false;
        before = before->next;
    }
    return !before;
}

/* ---- what is left of a change ---- */

/* Resources and their policies go into the old list; other containers come as they are. */
static void take_list(struct arena *a, cJSON *spec, const cJSON *wanted, const char *list)
{
    const cJSON *from = json_get(wanted, list), *other = json_first(from);

    if (!same_names(from, json_get(spec, list))) {
        defaults_keep_old(a, spec, wanted, list);
        return;
    }
    json_each(container, json_get(spec, list))
    {
        defaults_keep_old(a, container, other, "resources");
        defaults_keep_old(a, container, other, "resizePolicy");
        other = other->next;
    }
}

cJSON *prepare_pod_resize(struct arena *a, cJSON *pod, const cJSON *old)
{
    const cJSON *wanted = json_get(pod, "spec");
    cJSON *made = json_copy(a, old), *spec = json_ensure_object(a, made, "spec");

    for (size_t i = 0; i < COUNT(LISTS); i++) {
        if (json_count(json_get(wanted, LISTS[i].name)) !=
            json_count(json_get(spec, LISTS[i].name)))
            return pod;
    }
    defaults_keep_old(a, made, pod, "metadata.managedFields");
    defaults_keep_old(a, spec, wanted, "resources");
    for (size_t i = 0; i < COUNT(LISTS); i++)
        take_list(a, spec, wanted, LISTS[i].name);
    return made;
}

/* ---- ResourceLists ---- */

static bool same_amount(const cJSON *x, const cJSON *y)
{
    struct quantity a, b;

    if (x && y && quantity_parse(json_str(x), &a) && quantity_parse(json_str(y), &b))
        return quantity_cmp(a, b) == 0;
    return kinds_same_value(x, y);
}

static struct names names_of(struct arena *a, const cJSON *list)
{
    struct names names = {.arena = a};

    names_add_keys(&names, list);
    return names;
}

/* Whether all quantities of one list, but those of `without`, are in the other. */
static bool covers(struct arena *a, const cJSON *list, const cJSON *other,
                   const char *const *without)
{
    struct names known = names_of(a, other);

    json_each(amount, list)
    {
        struct str name = str_c(amount->string);

        if (!(without && kinds_one_of(name, without)) &&
            !same_amount(amount, names_get(&known, name)))
            return false;
    }
    return true;
}

static bool same_resources(struct arena *a, const cJSON *now, const cJSON *before,
                           const char *const *without)
{
    for (size_t i = 0; i < COUNT(AMOUNTS); i++) {
        const cJSON *x = json_get(now, AMOUNTS[i]), *y = json_get(before, AMOUNTS[i]);

        if (!covers(a, x, y, without) || !covers(a, y, x, without))
            return false;
    }
    return true;
}

static bool some_removed(struct arena *a, const cJSON *now, const cJSON *before)
{
    struct names left = names_of(a, now);

    json_each(amount, before)
    {
        if (!names_has(&left, str_c(amount->string)))
            return true;
    }
    return false;
}

static bool same_claims(const cJSON *now, const cJSON *before)
{
    const cJSON *x = json_get(now, "claims"), *y = json_get(before, "claims");

    return (!json_count(x) && !json_count(y)) || kinds_same_value(x, y);
}

static void check_removed(struct field_errors *e, const struct field_path *p, const cJSON *now,
                          const cJSON *before, const char *what)
{
    for (size_t i = 0; i < COUNT(AMOUNTS); i++) {
        if (some_removed(e->arena, json_get(now, AMOUNTS[i]), json_get(before, AMOUNTS[i])))
            field_forbidden_printf(e, FIELD(p, AMOUNTS[i]), "%s %s cannot be removed", what,
                                   AMOUNTS[i]);
    }
}

/* ---- the whole pod's ---- */

static bool some_set(const cJSON *resources)
{
    return json_count(json_get(resources, "requests")) || json_count(json_get(resources, "limits"));
}

static void check_pod_level(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    const struct field_path *p = FIELD(&KINDS_SPEC, "resources");

    if (before && !now) {
        field_forbidden(e, p, "pod-level resources cannot be removed");
        return;
    }
    check_removed(e, p, now, before, "pod-level resource");
    if (!same_resources(e->arena, now, before, RESIZABLE) || !same_claims(now, before))
        field_forbidden(e, &KINDS_SPEC, "only cpu and memory resources are mutable at pod-level");
}

/* ---- containers ---- */

static bool check_order(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    size_t n = e->n;

    for (size_t i = 0; i < COUNT(LISTS); i++) {
        const struct field_path *p = FIELD(&KINDS_SPEC, LISTS[i].name);
        const cJSON *list = list_of(pod, LISTS[i].name), *before = list_of(old, LISTS[i].name);
        size_t at = 0;

        if (json_count(list) != json_count(before)) {
            field_forbidden(e, p, LISTS[i].added_or_removed);
            continue;
        }
        before = json_first(before);
        json_each(container, list)
        {
            if (!kinds_same_value(json_get(container, "name"), json_get(before, "name")))
                field_forbidden(e, FIELD(FIELD_INDEX(p, at), "name"), LISTS[i].renamed);
            before = before->next;
            at++;
        }
    }
    return e->n == n;
}

/* What a claim gives a container is no quantity: upstream refuses those that had any. */
static bool only_amounts(struct arena *a, const cJSON *now, const cJSON *before)
{
    const cJSON *resources = json_get(before, "resources");

    return same_resources(a, json_get(now, "resources"), resources, RESIZABLE) &&
           !json_count(json_get(resources, "claims")) &&
           kinds_same_value(json_get(now, "resizePolicy"), json_get(before, "resizePolicy"));
}

static bool changed(struct arena *a, const cJSON *now, const cJSON *before)
{
    const cJSON *resources = json_get(now, "resources"), *had = json_get(before, "resources");

    return !same_resources(a, resources, had, NULL) || !same_claims(resources, had) ||
           !kinds_same_value(json_get(now, "resizePolicy"), json_get(before, "resizePolicy"));
}

static void check_init(struct field_errors *e, const struct field_path *p, const cJSON *now,
                       const cJSON *before)
{
    if (!only_amounts(e->arena, now, before))
        field_forbidden(e, p,
                        "only cpu and memory resources for init or sidecar containers are mutable");
    if (str_eqc(json_str(json_get(now, "restartPolicy")), "Always") ||
        !changed(e->arena, now, before))
        return;
    json_each(policy, json_get(now, "resizePolicy"))
    {
        if (str_eqc(json_str(json_get(policy, "restartPolicy")), "RestartContainer"))
            field_forbidden(e, p,
                            "non-sidecar init containers with a resize policy of RestartContainer "
                            "cannot be resized");
    }
}

static void check_containers(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    for (size_t i = COUNT(LISTS); i-- > 0;) {
        const cJSON *before = json_first(list_of(old, LISTS[i].name));
        size_t at = 0;

        json_each(container, list_of(pod, LISTS[i].name))
        {
            check_removed(e, FIELD(FIELD_INDEX(FIELD(&KINDS_SPEC, LISTS[i].name), at), "resources"),
                          json_get(container, "resources"), json_get(before, "resources"),
                          "resource");
            before = before->next;
            at++;
        }
    }
    const cJSON *before = json_first(list_of(old, "containers"));
    json_each(container, list_of(pod, "containers"))
    {
        if (!only_amounts(e->arena, container, before))
            field_forbidden(e, &KINDS_SPEC, "only cpu and memory resources are mutable");
        before = before->next;
    }
    before = json_first(list_of(old, "initContainers"));
    size_t at = 0;
    json_each(container, list_of(pod, "initContainers"))
    {
        check_init(e, FIELD_INDEX(FIELD(&KINDS_SPEC, "initContainers"), at++), container, before);
        before = before->next;
    }
}

/* ---- all of it ---- */

/* A kubelet that can resize reports what a running container was given. */
static bool node_resizes(const cJSON *pod)
{
    json_each(status, json_path(pod, "status.containerStatuses"))
    {
        if (kinds_given(status, "state.running"))
            return kinds_given(status, "resources");
    }
    return true;
}

static bool is_resizable(struct field_errors *e, const cJSON *old)
{
    const struct field_path *nowhere = FIELD_KEY(NULL, STR("")); /* upstream prints it as [] */

    if (json_get(json_path(old, "metadata.annotations"), "kubernetes.io/config.mirror"))
        field_forbidden(e, nowhere, "static pods cannot be resized");
    else if (str_eqc(json_str_at(old, "spec.os.name"), "windows"))
        field_forbidden(e, nowhere, "windows pods cannot be resized");
    else
        return true;
    return false;
}

void validate_pod_resize(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    const cJSON *now = kinds_given(pod, "spec.resources"),
                *before = kinds_given(old, "spec.resources");
    struct str told = json_str_at(old, "status.qosClass");
    size_t n = e->n;

    if (!is_resizable(e, old))
        return;
    validate_whole_pod(e, pod);
    if (!str_eq(told.n ? told : kinds_pod_qos(old), kinds_pod_qos(pod)))
        field_invalid_str(e, &KINDS_SPEC, json_str_at(pod, "status.qosClass"),
                          "Pod QOS Class may not change as a result of resizing");
    if (!node_resizes(old))
        field_forbidden(e, &KINDS_SPEC, "Pod running on node without support for resize");
    if (some_set(now) || some_set(before))
        check_pod_level(e, now, before);
    if (!check_order(e, pod, old))
        return;
    check_containers(e, pod, old);
    if (e->n == n && !some_set(now) && !some_set(before) && !now != !before)
        field_forbidden(e, &KINDS_SPEC, "only cpu and memory resources are mutable");
}
