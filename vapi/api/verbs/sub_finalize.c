/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * namespaces/finalize: the only way to change spec.finalizers of a namespace. Removing the last one
 * from a terminating namespace deletes it (in write.c). Source: k8s.io/kubernetes
 * pkg/registry/core/namespace/strategy.go. */
#include "verbs.h"

static int make_finalized(struct call *c, cJSON *base, cJSON **ret, struct err *err)
{
    cJSON *wanted;
    const cJSON *finalizers;
    cJSON *spec = json_ensure_object(c->arena, base, "spec");

    if (write_apply_body(c, json_copy(c->arena, base), &wanted, err))
        return -1;
    finalizers = json_path(wanted, "spec.finalizers");
    if (json_count(finalizers))
        json_set(c->arena, spec, "finalizers", json_copy(c->arena, finalizers));
    else
        json_remove(spec, "finalizers");
    json_set(c->arena, base, "metadata", json_copy(c->arena, json_get(wanted, "metadata")));
    *ret = base;
    return 0;
}

void sub_finalize(struct call *c)
{
    static const struct write_plan plan = {.make = make_finalized, .whole = true};

    write_start(c, &plan);
}
