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

static const struct rule DRIVER[] = {
    DRIVER_NAME("name"),
    GIVEN("nodeID"),
    MAX_LENGTH_ELSE("nodeID", 256, "must be 256 characters or less"),
    NONNEGATIVE("allocatable.count"),
    CALL(NULL, check_topology_keys),
    ONCE("name"),
};

/* Of a driver that stays, only how many volumes it takes may change. */
static void check_kept(const struct check *c)
{
    struct names before = {.arena = c->e->arena};

    names_add_members(&before, c->old, "name");
    json_each(driver, c->value)
    {
        const cJSON *old = names_get(&before, json_str(json_get(driver, "name")));
        cJSON *now, *was;

        if (!old)
            continue;
        now = json_copy(c->e->arena, driver);
        was = json_copy(c->e->arena, old);
        json_remove(now, "allocatable");
        json_remove(was, "allocatable");
        check_immutable(c->e, c->at, now, was);
    }
}

static const struct rule NODE_RULES[] = {
    EACH("spec.drivers", ALL(DRIVER)),
    CALL("spec.drivers", check_kept),
};

/* ---- the kind ---- */

const struct kind KIND_CSI_NODE = {
    RESOURCE("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode"),
    .resource.flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Drivers", "integer", .cell = show_count, .path = "spec.drivers"},
            {"Age", "string", .cell = show_age}),
    .rules = RULES(NODE_RULES),
};
