/* SPDX-License-Identifier: Apache-2.0 */
/* CSINodes. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"

static void check_node_driver(struct field_errors *e, const struct field_path *p,
                              const cJSON *driver)
{
    struct names keys = {.arena = e->arena};
    const cJSON *id = json_get(driver, "nodeID");

    check_driver_name(e, FIELD(p, "name"), json_str(json_get(driver, "name")));
    check_given(e, FIELD(p, "nodeID"), json_str(id));
    if (json_str(id).n > 256)
        field_invalid(e, FIELD(p, "nodeID"), id, "must be 256 characters or less");
    check_nonnegative(e, FIELD(FIELD(p, "allocatable"), "count"),
                      given(driver, "allocatable.count"));
    json_each(key, json_get(driver, "topologyKeys"))
    {
        check_given(e, p, json_str(key));
        if (!names_add(&keys, json_str(key), key))
            field_duplicate(e, p, key);
        check_rule(e, p, NAME_QUALIFIED, json_str(key));
    }
}

/* Of a driver that stays, only how many volumes it takes may change. */
static void check_driver_kept(struct field_errors *e, const cJSON *driver, const cJSON *old)
{
    cJSON *now, *before;

    if (!old)
        return;
    now = json_copy(e->arena, driver);
    before = json_copy(e->arena, old);
    json_remove(now, "allocatable");
    json_remove(before, "allocatable");
    check_immutable(e, FIELD(FIELD(NULL, "spec"), "drivers"), now, before);
}

static void csi_node_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    struct names names = {.arena = e->arena}, before = {.arena = e->arena};
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "drivers");
    const cJSON *drivers = json_path(object, "spec.drivers");
    size_t i = 0;

    json_each(driver, drivers)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_node_driver(e, at, driver);
        if (!names_add(&names, json_str(json_get(driver, "name")), driver))
            field_duplicate(e, FIELD(at, "name"), json_get(driver, "name"));
    }
    names_add_members(&before, json_path(old, "spec.drivers"), "name");
    if (!before.n)
        return;
    json_each(driver, drivers)
        check_driver_kept(e, driver, names_get(&before, json_str(json_get(driver, "name"))));
}

static ROW_CELLS(cells_csi_node)
{
    struct row r = {a, object, now, cells};

    cell_count(&r, "spec.drivers");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Drivers", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CSI_NODE = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode"),
            .verbs = VERBS_ALL,
            .flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = csi_node_validate,
    .cells = cells_csi_node,
};
