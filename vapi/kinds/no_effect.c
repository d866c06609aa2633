/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored and served but does nothing yet. Manifests that hold such objects install; whoever
 * writes one gets a Warning, so that a policy nobody enforces is not taken for protection. Must
 * never be silent about a kind of the table, nor speak of one that works. docs/concepts.md has the
 * same list. */
#include "rules/kind.h"

#define NO_ADMISSION "requests are admitted without it"

static bool always(const cJSON *object)
{
    (void)object;
    return true;
}

static bool is_remote(const cJSON *service)
{
    return json_is_object(json_path(service, "spec.service"));
}

static bool converts_by_webhook(const cJSON *crd)
{
    return str_eqc(json_str_at(crd, "spec.conversion.strategy"), "Webhook");
}

/* A property of this name would be an object. */
static bool has_rules(const cJSON *schema)
{
    json_each(child, schema)
    {
        if ((child->string && str_eqc(str_c(child->string), "x-kubernetes-validations") &&
             json_is_array(child) && json_count(child)) ||
            has_rules(child))
            return true;
    }
    return false;
}

static bool validates_by_rules(const cJSON *crd)
{
    return has_rules(json_path(crd, "spec.versions"));
}

static const struct {
    const char *group, *plural;
    bool (*applies)(const cJSON *object);
    const char *what, *instead;
} TABLE[] = {
    {"networking.k8s.io", "networkpolicies", always, "NetworkPolicy",
     "the traffic of pods is not restricted by it"},
    {"networking.k8s.io", "servicecidrs", always, "ServiceCIDR", "cluster IPs are the host's"},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", always,
     "ValidatingWebhookConfiguration", NO_ADMISSION},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", always,
     "MutatingWebhookConfiguration", NO_ADMISSION},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", always,
     "ValidatingAdmissionPolicy", NO_ADMISSION},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", always,
     "ValidatingAdmissionPolicyBinding", NO_ADMISSION},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", always, "MutatingAdmissionPolicy",
     NO_ADMISSION},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", always,
     "MutatingAdmissionPolicyBinding", NO_ADMISSION},
    {"apiregistration.k8s.io", "apiservices", is_remote, "spec.service of an APIService",
     "no request is sent to that service"},
    {"apiextensions.k8s.io", "customresourcedefinitions", converts_by_webhook,
     "spec.conversion.webhook of a CustomResourceDefinition",
     "between versions only apiVersion changes"},
    {"apiextensions.k8s.io", "customresourcedefinitions", validates_by_rules,
     "x-kubernetes-validations of a CustomResourceDefinition",
     "custom resources are stored without an evaluation of these rules"},
};

void kinds_warn_no_effect(struct arena *a, const struct resource *r, const cJSON *object,
                          void (*warn)(void *ctx, struct str text), void *ctx)
{
    for (size_t i = 0; i < COUNT(TABLE); i++) {
        if (str_eqc(r->group, TABLE[i].group) && str_eqc(r->plural, TABLE[i].plural) &&
            TABLE[i].applies(object))
            warn(ctx, arena_printf(a, "%s has no effect yet: %s", TABLE[i].what, TABLE[i].instead));
    }
}
