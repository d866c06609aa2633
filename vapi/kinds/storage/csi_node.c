/* SPDX-License-Identifier: Apache-2.0 */
/* CSINodes. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"

static void check_topology_keys(const struct check *c)
{
    struct names keys = {.arena = c->e->arena};

    json_each(key, json_get(c->value, "topologyKeys"))
    {
        check_given(c->e, c->at, json_str(key));
        if (!names_add(&keys, json_str(key), key))
            field_duplicate(c->e, c->at, key);
        check_rule(c->e, c->at, NAME_QUALIFIED, json_str(key));
    }
}

static void check_node_id(struct field_errors *e, const struct field_path *p, const cJSON *id)
{
    if (json_str(id).n > 256)
        field_invalid(e, p, id, "must be 256 characters or less");
}

static const struct rule DRIVER[] = {
    DRIVER_NAME("name"),
    GIVEN("nodeID"),
    CHECK("nodeID", check_node_id),
    NONNEGATIVE("allocatable.count"),
    CALL(NULL, check_topology_keys),
};

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
    const cJSON *drivers = json_path(object, "spec.drivers");

    field_each(driver, at, FIELD(FIELD(NULL, "spec"), "drivers"), drivers)
    {
        rules_check_value(e, at, driver, NULL, DRIVER, COUNT(DRIVER));
        if (!names_add(&names, json_str(json_get(driver, "name")), driver))
            field_duplicate(e, FIELD(at, "name"), json_get(driver, "name"));
    }
    names_add_members(&before, json_path(old, "spec.drivers"), "name");
    if (!before.n)
        return;
    json_each(driver, drivers)
        check_driver_kept(e, driver, names_get(&before, json_str(json_get(driver, "name"))));
}

/* ---- the kind ---- */

const struct kind KIND_CSI_NODE = {
    RESOURCE("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode"),
    .resource.flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Drivers", "integer", .cell = show_count, .path = "spec.drivers"},
            {"Age", "string", .cell = show_age}),
    .validate = csi_node_validate,
};
