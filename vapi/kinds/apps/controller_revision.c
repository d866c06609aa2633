/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerRevisions of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"

#include <ctype.h>

#include <sublet/api_version.h>

static void check_data(const struct check *c)
{
    if (!c->value)
        field_required(c->e, c->at, "data is mandatory");
    else if (!json_is_object(c->value))
        field_required(c->e, c->at, "data must be a valid JSON object");
}

static const struct rule REVISION_RULES[] = {
    NONNEGATIVE("revision"),
    FIXED("data"),
    ON_CREATE(CALL("data", check_data)),
};

/* "deployment.apps/name" of the owner that controls. */
static struct str controller_text(struct arena *a, const cJSON *object)
{
    json_each(owner, json_path(object, "metadata.ownerReferences"))
    {
        struct str group = api_version_read(json_str(json_get(owner, "apiVersion"))).group;
        struct str kind = json_str(json_get(owner, "kind"));
        char *text;

        if (!json_true(json_get(owner, "controller")))
            continue;
        kind = arena_printf(a, "%.*s%s%.*s", STR_F(kind), group.n ? "." : "", STR_F(group));
        text = arena_cstr(a, kind);
        for (size_t i = 0; i < kind.n; i++)
            text[i] = (char)tolower((unsigned char)text[i]);
        return arena_printf(a, "%s/%.*s", text, STR_F(json_str(json_get(owner, "name"))));
    }
    return STR("<none>");
}

CELL(cell_controller)
{
    cell_text(r, controller_text(r->a, r->object));
}

/* ---- the kind ---- */

const struct kind KIND_CONTROLLER_REVISION = {
    RESOURCE("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision"),
    .resource.flags = RES_NAMESPACED | RES_NAME_ON_UPDATE,
    COLUMNS({"Controller", "string", .cell = cell_controller},
            {"Revision", "string", .cell = show_number, .path = "revision"},
            {"Age", "string", .cell = show_age}),
    .rules = RULES(REVISION_RULES),
};
