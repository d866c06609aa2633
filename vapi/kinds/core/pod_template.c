/* SPDX-License-Identifier: Apache-2.0 */
/* PodTemplates: a pod template as an object of its own. Must hold nothing a template does not. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static void template_defaults(struct arena *a, cJSON *object)
{
    defaults_pod_template(a, json_get(object, "template"));
}

static void template_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    validate_pod_template(e, FIELD(NULL, "template"), json_get(object, "template"));
}

static ROW_CELLS(cells_pod_template)
{
    struct row r = {a, object, now, cells};

    cell_containers(&r, json_path(object, "template.spec.containers"));
    cell_map(&r, json_path(object, "template.metadata.labels"));
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Containers", "string", "", "", 0},
    {"Images", "string", "", "", 0},
    {"Pod Labels", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_POD_TEMPLATE = {
    .resource =
        {
            RESOURCE("", "v1", "PodTemplate", "podtemplates", "podtemplate"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_GENERATION | RES_DELETE_RETURNS_OBJECT,
            .columns = COLUMNS,
        },
    .validate = template_validate,
    .defaults = template_defaults,
    .warnings = warn_template_bare,
    .cells = cells_pod_template,
};
