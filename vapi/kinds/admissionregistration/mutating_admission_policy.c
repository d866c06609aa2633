/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingAdmissionPolicies and their bindings. Source: pkg/apis/admissionregistration. */
#include "../rules/kind.h"
#include "policy.h"

static const struct rule EXPRESSION[] = {NOT_BLANK("expression", "")};

/* The way a mutation is written must be the one that is there. Of the other, upstream shows the
 * name of the member instead of its value. */
static const struct rule BY_APPLY[] = {
    REQUIRED("applyConfiguration", "must be specified when patchType is ApplyConfiguration"),
    WITHIN("applyConfiguration", ALL(EXPRESSION)),
    INVALID_AS("jsonPatch", "{jsonPatch}",
               "must not be specified when patchType is ApplyConfiguration"),
};
static const struct rule BY_PATCH[] = {
    REQUIRED("jsonPatch", "must be specified when patchType is JSONPatch"),
    WITHIN("jsonPatch", ALL(EXPRESSION)),
    INVALID_AS("applyConfiguration", "{applyConfiguration}",
               "must not be specified when patchType is JSONPatch"),
};
static const struct rule MUTATION[] = {
    ENUM("patchType", ENUM_PATCH_TYPE),
    WHEN(NULL, "patchType", "ApplyConfiguration", ALL(BY_APPLY)),
    WHEN(NULL, "patchType", "JSONPatch", ALL(BY_PATCH)),
};

static const struct rule MUTATING_RULES[] = {
    ALL(RULES_POLICY_MATCH),
    WITHIN("spec.matchConstraints", ALL(RULES_MUTABLE_MATCH)),
    ALL(RULES_POLICY_CONDITIONS),
    SOME("spec.mutations", "mutations must contain at least one item"),
    EACH("spec.mutations", ALL(MUTATION)),
    ENUM("spec.reinvocationPolicy", ENUM_REINVOCATION_POLICY_TYPE),
    CALL("spec", validate_policy_expressions),
};

static const struct rule BINDING_RULES[] = {
    ALL(RULES_POLICY_BINDING),
    WITHIN("spec.matchResources", ALL(RULES_MUTABLE_MATCH)),
};

/* ---- the kinds ---- */

const struct kind KIND_MUTATING_ADMISSION_POLICY = {
    RESOURCE("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy",
             "mutatingadmissionpolicies", "mutatingadmissionpolicy"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags =
        RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    COLUMNS({"Mutations", "integer", .cell = show_count, .path = "spec.mutations"},
            {"ParamKind", "string", .cell = cell_param_kind}, {"Age", "string", .cell = show_age}),
    .defaults = defaults_policy,
    .rules = RULES(MUTATING_RULES),
};

const struct kind KIND_MUTATING_ADMISSION_POLICY_BINDING = {
    RESOURCE("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
             "mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags =
        RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    .resource.columns = COLUMNS_POLICY_BINDING,
    .defaults = defaults_policy_binding,
    .rules = RULES(BINDING_RULES),
};
