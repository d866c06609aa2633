/* SPDX-License-Identifier: Apache-2.0 */
/* IngressClasses. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"
#include "reference.h"

static const struct default_rule DEFAULT_RULES[] = {SET_TEXT("spec.parameters.scope", "Cluster")};

static const struct rule CLASS_RULES[] = {
    FIXED_TEXT("spec.controller"),
    MAX_LENGTH("spec.controller", 250),
    TEST_STR("spec.controller", check_domain_prefixed_path),
    WITHIN("spec.parameters", TYPED_REFERENCE, REQUIRED("scope", ""),
           ENUM_IF_GIVEN("scope", NAMES("Cluster", "Namespace")),
           WHEN(NULL, "scope", "Cluster",
                FORBIDDEN("namespace", "`parameters.scope` is set to 'Cluster'")),
           WHEN(NULL, "scope", "Namespace",
                REQUIRED("namespace", "`parameters.scope` is set to 'Namespace'"),
                NAME_IF_GIVEN("namespace", DNS1123_LABEL))),
};

/* ---- cells ---- */

static struct str class_name(const struct row *r)
{
    return names_of_class(
        r, kinds_annotated_true(r->object, "ingressclass.kubernetes.io/is-default-class"));
}

CELL(cell_parameters)
{
    const cJSON *p = json_path(r->object, "spec.parameters");

    if (p)
        cell_printf(r, "%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "kind"))),
                    json_get(p, "apiGroup") ? "." : "", STR_F(json_str(json_get(p, "apiGroup"))),
                    STR_F(json_str(json_get(p, "name"))));
    else
        cell_text(r, STR("<none>"));
}

/* ---- the kind ---- */

const struct kind KIND_INGRESS_CLASS = {
    RESOURCE("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "ingressclass"),
    .resource.flags = RES_GENERATION | RES_NAME_ON_UPDATE,
    COLUMNS({"Controller", "string", .cell = show_text, .path = "spec.controller"},
            {"Parameters", "string", .cell = cell_parameters}, {"Age", "string", .cell = show_age}),
    .first_cell = class_name,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .rules = RULES(CLASS_RULES),
};
