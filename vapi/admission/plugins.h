/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in admission plug-ins and their shared helpers. A plug-in returns 0, or -1 with err.
 * Internal to vapi/admission. */
#pragma once

#include <sublet/admission.h>

int lifecycle_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                    struct err *err);
int limit_ranger_default(const struct admission_call *c, cJSON *object, const cJSON *old,
                         struct err *err);
int limit_ranger_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int service_account_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int pod_security_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int node_taint_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err);
int node_features_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err);
int priority_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                   struct err *err);
int priority_class_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                            struct err *err);
int ingress_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err);
int topology_labels_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int claim_resize_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int pod_resize_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err);
int toleration_seconds_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                             struct err *err);
int storage_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err);
int storage_protection_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                             struct err *err);
int runtime_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err);
int runtime_class_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err);
int mutating_policy_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err);
int validating_policy_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                               struct err *err);
int policy_rights_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err);
int owner_references_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                              struct err *err);
int escalation_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err);
int certificate_request_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                              struct err *err);
int certificate_request_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                                 struct err *err);

/* The name of an object in a refusal; it may have none yet. */
struct str plugin_shown_name(struct str name);
bool plugin_admits(const struct admission_call *c, const char *group, const char *plural);
const char *plugin_operation(enum admission_operation operation); /* "CREATE", ... */
/* Does a rule of a webhook or of a policy name this operation on resource r? namespaced: the object
 * is in a namespace, and is none itself. */
bool plugin_rule_admits(const cJSON *rule, enum admission_operation operation, bool namespaced,
                        const struct resource *r, struct str subresource);
bool plugin_is_create(const struct admission_call *c);
bool plugin_is_new_pod(const struct admission_call *c);
/* Reads `latest`: writes in progress count. */
const struct store_object *plugin_stored(const struct admission_call *c, const char *group,
                                         const char *plural, struct str ns, struct str name);
void plugin_each_stored(const struct admission_call *c, const char *group, const char *plural,
                        struct str ns, store_scan_cb each, void *ctx);
/* Every container of a pod spec, init containers first; the path is for messages. */
#define each_container(item, spec, init)                                                           \
    json_each(item, json_get((spec), (init) ? "initContainers" : "containers"))
