/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingAdmissionPolicies and their bindings. Source: pkg/apis/admissionregistration. */
#include "../rules/kind.h"
#include "policy.h"

/* The way a mutation is written must be the one that is there. */
static void check_mutation(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    static const char *const members[] = {"applyConfiguration", "jsonPatch"};
    struct str type = json_str(json_get(item, "patchType"));
    size_t wanted = str_eqc(type, "JSONPatch");

    if (!check_enum(e, FIELD(p, "patchType"), type, ENUM_PATCH_TYPE))
        return;
    if (!given(item, members[wanted]))
        field_required(e, FIELD(p, members[wanted]),
                       arena_printf(e->arena, "must be specified when patchType is %s",
                                    ENUM_PATCH_TYPE[wanted])
                           .p);
    else
        check_given(e, FIELD(FIELD(p, members[wanted]), "expression"),
                    trimmed(json_str(json_get(json_get(item, members[wanted]), "expression"))));
    if (given(item, members[!wanted]))
        field_invalid_str(e, FIELD(p, members[!wanted]),
                          arena_printf(e->arena, "{%s}", members[!wanted]),
                          arena_printf(e->arena, "must not be specified when patchType is %s",
                                       ENUM_PATCH_TYPE[wanted])
                              .p);
}

static void validate_mutating_policy(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *mutations = json_get(spec, "mutations");
    AT(p, NULL, "spec");
    size_t i = 0;

    check_policy_head(e, p, spec, json_get(old, "spec"), true);
    if (!json_count(mutations))
        field_required(e, FIELD(p, "mutations"), "mutations must contain at least one item");
    json_each(item, mutations) check_mutation(e, FIELD_INDEX(FIELD(p, "mutations"), i++), item);
    check_enum(e, FIELD(p, "reinvocationPolicy"), json_str(json_get(spec, "reinvocationPolicy")),
               ENUM_REINVOCATION_POLICY_TYPE);
}

static void validate_mutating_binding(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    (void)old;
    check_policy_binding(e, p, spec);
    check_mutable(e, FIELD(p, "matchResources"), given(spec, "matchResources"));
}

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Mutations", "integer", .cell = show_count, .path = "spec.mutations"},
    {"ParamKind", "string", .cell = cell_param_kind},
    {"Age", "string", .cell = show_age},
    {NULL},
};

static const struct column BINDING_COLUMNS[] = {
    {"PolicyName", "string", .cell = show_text, .path = "spec.policyName"},
    {"ParamRef", "string", .cell = cell_param_ref},
    {"Age", "string", .cell = show_age},
    {NULL},
};

const struct kind KIND_MUTATING_ADMISSION_POLICY = {
    .resource =
        {
            RESOURCE("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy",
                     "mutatingadmissionpolicies", "mutatingadmissionpolicy"),
            .categories = NAMES("api-extensions"),
            .verbs = VERBS_ALL,
            .flags =
                RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
            .columns = COLUMNS,
        },
    .defaults = policy_defaults,
    .validate = validate_mutating_policy,
};

const struct kind KIND_MUTATING_ADMISSION_POLICY_BINDING = {
    .resource =
        {
            RESOURCE("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
                     "mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding"),
            .categories = NAMES("api-extensions"),
            .verbs = VERBS_ALL,
            .flags =
                RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
            .columns = BINDING_COLUMNS,
        },
    .defaults = policy_binding_defaults,
    .validate = validate_mutating_binding,
};
