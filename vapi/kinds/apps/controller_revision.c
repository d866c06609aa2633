/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerRevisions of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"

#include <ctype.h>

static void validate_revision(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(NULL, "data");
    const cJSON *data = json_get(object, "data");

    check_nonnegative(e, FIELD(NULL, "revision"), json_get(object, "revision"));
    if (old)
        check_immutable(e, p, data, json_get(old, "data"));
    else if (!data || json_is_null(data))
        field_required(e, p, "data is mandatory");
    else if (!json_is_object(data))
        field_required(e, p, "data must be a valid JSON object");
}

/* "deployment.apps/name" of the owner that controls. */
static struct str controller_text(struct arena *a, const cJSON *object)
{
    json_each(owner, json_path(object, "metadata.ownerReferences"))
    {
        struct str version = json_str(json_get(owner, "apiVersion"));
        struct str kind = json_str(json_get(owner, "kind"));
        size_t slash = str_find(version, '/');
        bool grouped = slash < version.n;
        char *text;

        if (!json_true(json_get(owner, "controller")))
            continue;
        kind = arena_printf(a, "%.*s%s%.*s", STR_F(kind), grouped ? "." : "",
                            STR_F(grouped ? str_sub(version, 0, slash) : STR("")));
        text = arena_cstr(a, kind);
        for (size_t i = 0; i < kind.n; i++)
            text[i] = (char)tolower((unsigned char)text[i]);
        return arena_printf(a, "%s/%.*s", text, STR_F(json_str(json_get(owner, "name"))));
    }
    return STR("<none>");
}

static ROW_CELLS(cells_revision)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, controller_text(a, object));
    cell_number_at(&r, "revision");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Controller", "string", "", "", 0},
    {"Revision", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CONTROLLER_REVISION = {
    .resource =
        {
            RESOURCE("apps", "v1", "ControllerRevision", "controllerrevisions",
                     "controllerrevision"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = validate_revision,
    .cells = cells_revision,
};
