/* SPDX-License-Identifier: Apache-2.0 */
/* RuntimeClasses. Source: pkg/apis/node/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"

/* Tolerations that differ in their seconds only are the same. */
static void check_tolerations(struct field_errors *e, const struct field_path *p,
                              const cJSON *tolerations)
{
    struct names seen = {.arena = e->arena};

    rules_check_value(e, p, tolerations, NULL, RULES_TOLERATIONS, COUNT(RULES_TOLERATIONS));
    field_each(toleration, at, p, tolerations)
    {
        if (!names_add(&seen, kinds_toleration_key(e->arena, toleration), toleration))
            field_duplicate(e, at, toleration);
    }
}

static void check_overhead(struct field_errors *e, const struct field_path *p,
                           const cJSON *overhead)
{
    if (json_get(overhead, "podFixed"))
        validate_overhead(e, p, json_get(overhead, "podFixed"));
}

static const struct rule CLASS_RULES[] = {
    FIXED("handler"),
    NAME("handler", DNS1123_LABEL),
    CHECK("overhead", check_overhead),
    LABELS("scheduling.nodeSelector"),
    CHECK("scheduling.tolerations", check_tolerations),
};

/* ---- the kind ---- */

const struct kind KIND_RUNTIME_CLASS = {
    RESOURCE("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass"),
    .resource.flags =
        RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    COLUMNS({"Handler", "string", .cell = show_text, .path = "handler"},
            {"Age", "string", .cell = show_age}),
    .rules = RULES(CLASS_RULES),
};
