/* SPDX-License-Identifier: Apache-2.0 */
/* RuntimeClasses. Source: pkg/apis/node/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static void check_scheduling(struct field_errors *e, const struct field_path *p,
                             const cJSON *scheduling)
{
    static const char *const parts[] = {"key", "operator", "value", "effect"};
    const cJSON *tolerations = json_get(scheduling, "tolerations");
    struct names seen = {.arena = e->arena};
    AT(list, p, "tolerations");
    size_t i = 0;

    validate_labels(e, FIELD(p, "nodeSelector"), json_get(scheduling, "nodeSelector"));
    validate_tolerations(e, list, tolerations);
    json_each(toleration, tolerations)
    {
        const struct field_path *at = FIELD_INDEX(list, i++);
        cJSON *key = json_new_array(e->arena);

        for (size_t k = 0; k < COUNT(parts); k++)
            json_append(key, json_new_string(e->arena, json_str(json_get(toleration, parts[k]))));
        if (!names_add(&seen, json_text(e->arena, key), toleration))
            field_duplicate(e, at, toleration);
    }
}

static void runtime_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    struct str handler = json_str(json_get(object, "handler"));
    const cJSON *overhead = given(object, "overhead");
    AT(p, NULL, "handler");

    if (old)
        check_immutable(e, p, json_get(object, "handler"), json_get(old, "handler"));
    if (check_given(e, p, handler))
        check_rule(e, p, NAME_DNS1123_LABEL, handler);
    if (overhead) {
        cJSON *requirements = json_new_object(e->arena);

        if (json_get(overhead, "podFixed"))
            json_set(e->arena, requirements, "limits",
                     json_copy(e->arena, json_get(overhead, "podFixed")));
        validate_requirements(e, FIELD(NULL, "overhead"), requirements, NULL, false);
    }
    if (given(object, "scheduling"))
        check_scheduling(e, FIELD(NULL, "scheduling"), given(object, "scheduling"));
}

static ROW_CELLS(cells_runtime_class)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "handler");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Handler", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_RUNTIME_CLASS = {
    .resource =
        {
            RESOURCE("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass"),
            .verbs = VERBS_ALL,
            .flags = RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE |
                     RES_ANY_FINALIZER,
            .columns = COLUMNS,
        },
    .validate = runtime_validate,
    .cells = cells_runtime_class,
};
