/* SPDX-License-Identifier: Apache-2.0 */
/* pods/ephemeralcontainers: containers for debugging, which can be added and nothing else. Must
 * never let another part of a pod through. Source: pkg/registry/core/pod/strategy.go
 * (podEphemeralContainersStrategy), ValidatePodEphemeralContainersUpdate in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/encode.h>

#define LIST "ephemeralContainers"

cJSON *prepare_pod_ephemeral(struct arena *a, cJSON *pod, const cJSON *old)
{
    cJSON *made = json_copy(a, old);

    defaults_keep_old(a, made, pod, "metadata.managedFields");
    defaults_keep_old(a, made, pod, "spec." LIST);
    return made;
}

static void refuse(struct field_errors *e, struct str name, const char *what)
{
    const struct field_path *spec = FIELD(NULL, "spec");

    field_forbidden_printf(e, FIELD(spec, LIST),
                           "existing ephemeral containers %.*s may not be %s\n",
                           STR_F(go_quote(e->arena, name)), what);
}

void validate_pod_ephemeral(struct field_errors *e, const cJSON *pod, const cJSON *old)
{
    struct names known = {.arena = e->arena};

    if (json_get(json_path(old, "metadata.annotations"), "kubernetes.io/config.mirror")) {
        /* Upstream prints the path as []. */
        field_forbidden(e, FIELD_KEY(NULL, STR("")),
                        "static pods do not support ephemeral containers");
        return;
    }
    validate_whole_pod(e, pod);
    /* Patches do not keep the order: each is looked up. */
    names_add_members(&known, json_path(pod, "spec." LIST), "name");
    json_each(had, json_path(old, "spec." LIST))
    {
        struct str name = json_str(json_get(had, "name"));
        const cJSON *same = names_get(&known, name);

        if (!same)
            refuse(e, name, "removed");
        else if (!json_equal(had, same))
            refuse(e, name, "changed");
    }
}
