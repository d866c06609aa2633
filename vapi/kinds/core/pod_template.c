/* SPDX-License-Identifier: Apache-2.0 */
/* PodTemplates: a pod template as an object of its own. Must hold nothing a template does not. */
#include "../rules/kind.h"
#include "../pod/pod.h"

static const struct default_rule DEFAULT_RULES[] = {SET_BY("template", defaults_pod_template)};

static const struct rule TEMPLATE_RULES[] = {CHECK_ALWAYS("template", validate_pod_template)};

/* ---- the kind ---- */

const struct kind KIND_POD_TEMPLATE = {
    RESOURCE("", "v1", "PodTemplate", "podtemplates", "podtemplate"),
    .resource.flags = RES_NAMESPACED | RES_GENERATION | RES_DELETE_RETURNS_OBJECT,
    COLUMNS({"Containers", "string", .cell = show_names, .path = "template.spec.containers"},
            {"Images", "string", .cell = show_images, .path = "template.spec.containers"},
            {"Pod Labels", "string", .cell = show_map, .path = "template.metadata.labels"}),
    .rules = RULES(TEMPLATE_RULES),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .warnings = warn_template_bare,
};
