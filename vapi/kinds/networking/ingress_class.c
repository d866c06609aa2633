/* SPDX-License-Identifier: Apache-2.0 */
/* IngressClasses. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"
#include "reference.h"

static void ingress_class_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {SET_TEXT("spec.parameters.scope", "Cluster")};

    defaults_apply(a, class, rules, COUNT(rules));
}

#define MAX_CONTROLLER 250

static void check_scope(struct field_errors *e, const struct field_path *p, const cJSON *parameters)
{
    static const char *const scopes[] = {"Cluster", "Namespace", NULL};
    const cJSON *scope = given(parameters, "scope"), *ns = given(parameters, "namespace");
    AT(at, p, "namespace");

    if (!scope) {
        field_required(e, FIELD(p, "scope"), "");
    } else if (!one_of(json_str(scope), scopes)) {
        field_not_supported(e, FIELD(p, "scope"), json_str(scope), scopes);
    } else if (str_eqc(json_str(scope), "Cluster")) {
        if (ns)
            field_forbidden(e, at, "`parameters.scope` is set to 'Cluster'");
    } else if (!ns) {
        field_required(e, at, "`parameters.scope` is set to 'Namespace'");
    } else {
        check_rule(e, at, NAME_DNS1123_LABEL, json_str(ns));
    }
}

static void validate_ingress_class(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *parameters = given(spec, "parameters");
    struct str controller = json_str(json_get(spec, "controller"));
    AT(p, NULL, "spec");

    if (old)
        check_immutable_text(e, FIELD(p, "controller"), json_get(spec, "controller"),
                             json_path(old, "spec.controller"));
    if (controller.n > MAX_CONTROLLER)
        field_too_long(e, FIELD(p, "controller"), MAX_CONTROLLER);
    check_domain_prefixed_path(e, FIELD(p, "controller"), controller);
    if (!parameters)
        return;
    check_typed_reference(e, FIELD(p, "parameters"), parameters);
    check_scope(e, FIELD(p, "parameters"), parameters);
}

static ROW_CELLS(cells_ingress_class)
{
    struct row r = {a, object, now, cells};
    const cJSON *p = json_path(object, "spec.parameters");
    struct str group = json_str(json_get(p, "apiGroup"));

    if (annotated_true(object, "ingressclass.kubernetes.io/is-default-class"))
        cell_mark_default(&r);
    cell_text_at(&r, "spec.controller");
    if (p)
        cell_text(&r, arena_printf(a, "%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "kind"))),
                                   json_get(p, "apiGroup") ? "." : "", STR_F(group),
                                   STR_F(json_str(json_get(p, "name")))));
    else
        cell_text(&r, STR("<none>"));
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Controller", "string", "", "", 0},
    {"Parameters", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_INGRESS_CLASS = {
    .resource =
        {
            RESOURCE("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "ingressclass"),
            .verbs = VERBS_ALL,
            .flags = RES_GENERATION | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .defaults = ingress_class_defaults,
    .validate = validate_ingress_class,
    .cells = cells_ingress_class,
};
