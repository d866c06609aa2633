/* SPDX-License-Identifier: Apache-2.0 */
/* The chain: the plug-ins a request passes, in upstream's order. Must stay a table: a plug-in that
 * is not in it does not run. */
#include "plugins.h"

struct plugin {
    const char *name;
    int (*run)(const struct admission_call *c, cJSON *object, const cJSON *old, struct err *err);
};

static const struct plugin MUTATING[] = {
    {"NamespaceLifecycle", lifecycle_admit},
    {"LimitRanger", limit_ranger_default},
    {"ServiceAccount", service_account_admit},
    {"TaintNodesByCondition", node_taint_admit},
    {"Priority", priority_admit},
    {"DefaultTolerationSeconds", toleration_seconds_admit},
    {"DefaultStorageClass", storage_class_admit},
    {"StorageObjectInUseProtection", storage_protection_admit},
    {"RuntimeClass", runtime_class_admit},
    {"CertificateRequester", certificate_request_admit},
    {"DefaultIngressClass", ingress_class_admit},
    {"PodTopologyLabels", topology_labels_admit},
    {"MutatingAdmissionPolicy", mutating_policy_admit}, /* of the tenant: the last */
    {"RoleEscalation", escalation_admit}, /* in upstream's storage, after all mutating plug-ins */
};

static const struct plugin VALIDATING[] = {
    {"PolicyParameters", policy_rights_validate}, /* in upstream's storage, with its validation */
    {"LimitRanger", limit_ranger_validate},
    {"PodSecurity", pod_security_validate},
    {"Priority", priority_class_validate},
    {"OwnerReferencesPermissionEnforcement", owner_references_validate},
    {"PersistentVolumeClaimResize", claim_resize_validate},
    {"RuntimeClass", runtime_class_validate},
    {"CertificateApprovalSigningSubject", certificate_request_validate},
    {"NodeDeclaredFeatureValidator", node_features_validate},
    {"PodResizeValidator", pod_resize_validate},
    {"ValidatingAdmissionPolicy", validating_policy_validate}, /* of the tenant: the last */
};

/* What sees a body of the subresource's own kind (admission_call.apart). NamespaceLifecycle is
 * admission_lifecycle(): the process's own Bindings do not pass it. */
static const struct plugin MUTATING_APART[] = {
    {"PodTopologyLabels", topology_labels_admit},
    {"MutatingAdmissionPolicy", mutating_policy_admit},
};

static const struct plugin VALIDATING_APART[] = {
    {"ValidatingAdmissionPolicy", validating_policy_validate},
};

static int run(const struct plugin *plugins, size_t n, const struct admission_call *c,
               cJSON *object, const cJSON *old, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (plugins[i].run(c, object, old, err))
            return -1;
    }
    return 0;
}

static int run_mutating(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    return c->apart ? run(MUTATING_APART, COUNT(MUTATING_APART), c, object, old, err)
                    : run(MUTATING, COUNT(MUTATING), c, object, old, err);
}

/* A policy changed the object: all plug-ins see it once more, and policies that want to. */
static int mutate_again(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    struct admission_call again = *c;

    again.again = true;
    return run_mutating(&again, object, old, err);
}

int admission_mutate(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err)
{
    if (run_mutating(c, object, old, err))
        return -1;
    return !c->again && c->replaced && *c->replaced ? mutate_again(c, object, old, err) : 0;
}

int admission_validate(const struct admission_call *c, const cJSON *object, const cJSON *old,
                       struct err *err)
{
    /* Validators share the table's type and must not change the tree. */
    cJSON *tree = (cJSON *)(uintptr_t)object;

    return c->apart ? run(VALIDATING_APART, COUNT(VALIDATING_APART), c, tree, old, err)
                    : run(VALIDATING, COUNT(VALIDATING), c, tree, old, err);
}

int admission_lifecycle(const struct admission_call *c, cJSON *object, struct err *err)
{
    return lifecycle_admit(c, object, NULL, err);
}
