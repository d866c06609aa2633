/* SPDX-License-Identifier: Apache-2.0 */
/* What sets each built-in kind apart, one row of functions each; defined beside the kind's code.
 * Internal to vapi/kinds. */
#pragma once

#include <sublet/resource.h>

extern const struct kind_ops CONFIG_MAP_OPS;
extern const struct kind_ops ENDPOINTS_OPS;
extern const struct kind_ops EVENT_OPS;
extern const struct kind_ops STRICT_EVENT_OPS; /* of events.k8s.io */
extern const struct kind_ops LIMIT_RANGE_OPS;
extern const struct kind_ops NAMESPACE_OPS;
extern const struct kind_ops NODE_OPS;
extern const struct kind_ops PERSISTENT_VOLUME_CLAIM_OPS;
extern const struct kind_ops PERSISTENT_VOLUME_OPS;
extern const struct kind_ops POD_OPS;
extern const struct kind_ops POD_TEMPLATE_OPS;
extern const struct kind_ops REPLICATION_CONTROLLER_OPS;
extern const struct kind_ops RESOURCE_QUOTA_OPS;
extern const struct kind_ops SECRET_OPS;
extern const struct kind_ops SERVICE_ACCOUNT_OPS;
extern const struct kind_ops SERVICE_OPS;
extern const struct kind_ops APISERVICE_OPS;
extern const struct kind_ops CONTROLLER_REVISION_OPS;
extern const struct kind_ops DAEMON_SET_OPS;
extern const struct kind_ops DEPLOYMENT_OPS;
extern const struct kind_ops REPLICA_SET_OPS;
extern const struct kind_ops STATEFUL_SET_OPS;
extern const struct kind_ops HORIZONTAL_POD_AUTOSCALER_OPS;
extern const struct kind_ops CRON_JOB_OPS;
extern const struct kind_ops JOB_OPS;
extern const struct kind_ops CERTIFICATE_SIGNING_REQUEST_OPS;
extern const struct kind_ops INGRESS_CLASS_OPS;
extern const struct kind_ops INGRESS_OPS;
extern const struct kind_ops IPADDRESS_OPS;
extern const struct kind_ops NETWORK_POLICY_OPS;
extern const struct kind_ops SERVICE_CIDR_OPS;
extern const struct kind_ops POD_DISRUPTION_BUDGET_OPS;
extern const struct kind_ops CLUSTER_ROLE_BINDING_OPS;
extern const struct kind_ops CLUSTER_ROLE_OPS;
extern const struct kind_ops ROLE_BINDING_OPS;
extern const struct kind_ops ROLE_OPS;
extern const struct kind_ops CSIDRIVER_OPS;
extern const struct kind_ops CSINODE_OPS;
extern const struct kind_ops CSISTORAGE_CAPACITY_OPS;
extern const struct kind_ops STORAGE_CLASS_OPS;
extern const struct kind_ops VOLUME_ATTACHMENT_OPS;
extern const struct kind_ops VOLUME_ATTRIBUTES_CLASS_OPS;
extern const struct kind_ops MUTATING_ADMISSION_POLICY_OPS;
extern const struct kind_ops MUTATING_ADMISSION_POLICY_BINDING_OPS;
extern const struct kind_ops MUTATING_WEBHOOK_CONFIGURATION_OPS;
extern const struct kind_ops VALIDATING_ADMISSION_POLICY_OPS;
extern const struct kind_ops VALIDATING_ADMISSION_POLICY_BINDING_OPS;
extern const struct kind_ops VALIDATING_WEBHOOK_CONFIGURATION_OPS;
extern const struct kind_ops PRIORITY_CLASS_OPS;
extern const struct kind_ops LEASE_OPS;
extern const struct kind_ops RUNTIME_CLASS_OPS;
extern const struct kind_ops ENDPOINT_SLICE_OPS;
extern const struct kind_ops DEVICE_CLASS_OPS;
extern const struct kind_ops RESOURCE_CLAIM_OPS;
extern const struct kind_ops RESOURCE_CLAIM_TEMPLATE_OPS;
extern const struct kind_ops RESOURCE_SLICE_OPS;
extern const struct kind_ops FLOW_SCHEMA_OPS;
extern const struct kind_ops PRIORITY_LEVEL_CONFIGURATION_OPS;
