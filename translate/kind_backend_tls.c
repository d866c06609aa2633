/* SPDX-License-Identifier: Apache-2.0 */
/* BackendTLSPolicies: how Gateways reach the tenant's Services. Must never name a target or an
 * authority that is not the tenant's, nor what configures a controller of the host. */

#include "kind_impl.h"

static int check_target(const struct kind_call *c, const cJSON *target, cJSON **ret)
{
    (void)ret;
    if (!json_str(json_get(target, "group")).n &&
        str_eqc(json_str(json_get(target, "kind")), "Service"))
        return 0;
    return translate_kind_refuse(c, "only Services go down as targets");
}

#define CA "spec.validation.caCertificateRefs[*]."

static const struct kind_rule DOWN[] = {
    {"spec.targetRefs[*]", KIND_CHECK, .call = check_target},
    {"spec.targetRefs[*].group", KIND_KEEP},
    {"spec.targetRefs[*].kind", KIND_KEEP},
    {"spec.targetRefs[*].name", KIND_REFERENCE, .what = "Service"},
    {"spec.targetRefs[*].sectionName", KIND_KEEP},
    {CA "group", KIND_KEEP},
    {CA "kind", KIND_KEEP},
    {CA "name", KIND_CALL, .what = "ConfigMap", .call = gateway_reference_down},
    {"spec.validation.hostname", KIND_KEEP},
    {"spec.validation.wellKnownCACertificates", KIND_KEEP},
    {"spec.validation.subjectAltNames[*].type", KIND_KEEP},
    {"spec.validation.subjectAltNames[*].hostname", KIND_KEEP},
    {"spec.validation.subjectAltNames[*].uri", KIND_KEEP},
    {"spec.options", KIND_REFUSE, .what = "configures a controller of the host"},
    {0},
};

static const struct kind_rule UP[] = {
    {"status.ancestors", KIND_CALL, .call = gateway_ancestors_up},
    {0},
};

const struct kind_rules TRANSLATE_RULES_BACKEND_TLS = {.api_version = GATEWAY_GROUP "/v1",
                                                       .kind = "BackendTLSPolicy",
                                                       .group = GATEWAY_GROUP,
                                                       .plural = "backendtlspolicies",
                                                       .down = DOWN,
                                                       .up = UP,
                                                       .annotations = translate_kind_notes,
                                                       .reads_gateways = true};
