/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps. Source: ValidateConfigMap in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "data.h"

static void config_map_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const members[] = {"data", "binaryData", NULL};
    const cJSON *data = json_get(object, "data"), *binary = json_get(object, "binaryData");
    struct names taken = {.arena = e->arena};
    size_t total = 0;

    check_frozen(e, object, old, members);
    names_add_keys(&taken, binary);
    json_each(item, data)
    {
        struct str key = str_c(item->string);
        const struct field_path *at = FIELD_KEY(FIELD(NULL, "data"), key);

        check_config_key(e, at, key);
        if (taken.n && names_has(&taken, key))
            field_invalid_str(e, at, key, "duplicate of key present in binaryData");
        total += json_str(item).n;
    }
    json_each(item, binary)
    {
        struct str key = str_c(item->string);

        check_config_key(e, FIELD_KEY(FIELD(NULL, "binaryData"), key), key);
        total += kinds_decoded_size(json_str(item));
    }
    if (total > MAX_DATA)
        field_too_long(e, FIELD_KEY(NULL, STR("")), MAX_DATA); /* as upstream: "[]" */
}

CELL(cell_data)
{
    cell_number(r, (int64_t)(json_count(json_get(r->object, "data")) +
                             json_count(json_get(r->object, "binaryData"))));
}

/* ---- the kind ---- */

const struct kind KIND_CONFIG_MAP = {
    RESOURCE("", "v1", "ConfigMap", "configmaps", "configmap"),
    .resource.short_names = NAMES("cm"),
    .resource.flags = RES_NAMESPACED | RES_NAME_ON_UPDATE,
    COLUMNS({"Data", "string", .cell = cell_data}, {"Age", "string", .cell = show_age}),
    .validate = config_map_validate,
};
