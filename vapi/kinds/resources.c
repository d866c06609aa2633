/* SPDX-License-Identifier: Apache-2.0 */
/* Every built-in resource of Kubernetes 1.36, in discovery order: names, verbs, subresources,
 * columns and selectable fields as a real server tells them. Must hold facts only: what a kind does
 * is in its ops. */
#include <sublet/auth.h>
#include <sublet/call.h>
#include <sublet/crd.h>
#include <sublet/kinds.h>

#include "ops.h"

#define S(text)                                                                                    \
    {                                                                                              \
        ("" text), sizeof(text) - 1                                                                \
    }
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct scale_paths SCALE_SELECTOR = {"spec.replicas", "status.replicas", NULL};
static const struct scale_paths SCALE_MAP = {"spec.replicas", "status.replicas", "spec.selector"};

static const struct column COLUMNS_AGE[] = {
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

static const char *const IN_ALL[] = {"all", NULL};
static const char *const IN_API_EXTENSIONS[] = {"api-extensions", NULL};

/* Where upstream's discovery lists its groups and their versions. */
static const char *const SHORT_componentstatuses[] = {"cs", NULL};
static const char *const SHORT_configmaps[] = {"cm", NULL};
static const struct column COLUMNS_configmaps[] = {
    {"Data", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_endpoints[] = {"ep", NULL};
static const struct column COLUMNS_endpoints[] = {
    {"Endpoints", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column LAST_SEEN = {"Last Seen", "string", "", "", 0};
static const char *const SHORT_events[] = {"ev", NULL};
static const struct column COLUMNS_events[] = {
    {"Type", "string", "", "", 0},       {"Reason", "string", "", "", 0},
    {"Object", "string", "", "", 0},     {"Subobject", "string", "", "", 1},
    {"Source", "string", "", "", 1},     {"Message", "string", "", "", 0},
    {"First Seen", "string", "", "", 1}, {"Count", "string", "", "", 1},
    {"Name", "string", "name", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_events[] = {
    {"involvedObject.kind", "involvedObject.kind", ""},
    {"involvedObject.namespace", "involvedObject.namespace", ""},
    {"involvedObject.name", "involvedObject.name", ""},
    {"involvedObject.uid", "involvedObject.uid", ""},
    {"involvedObject.apiVersion", "involvedObject.apiVersion", ""},
    {"involvedObject.resourceVersion", "involvedObject.resourceVersion", ""},
    {"involvedObject.fieldPath", "involvedObject.fieldPath", ""},
    {"reason", "reason", ""},
    {"reportingComponent", "reportingComponent", ""},
    {"source", "source.component", ""},
    {"type", "type", ""},
    {NULL, NULL, NULL},
};
static const char *const SHORT_limitranges[] = {"limits", NULL};
static const struct column COLUMNS_limitranges[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_namespaces[] = {"ns", NULL};
static const struct column COLUMNS_namespaces[] = {
    {"Status", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_namespaces[] = {
    {"status.phase", "status.phase", ""},
    {"name", "metadata.name", ""},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_namespaces[] = {
    {"finalize", SUB_HANDLER, VERB_UPDATE, "", "", "Namespace", NULL, sub_finalize},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Namespace", NULL, NULL},
};
static const char *const SHORT_nodes[] = {"no", NULL};
static const struct column COLUMNS_nodes[] = {
    {"Status", "string", "", "", 0},
    {"Roles", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {"Version", "string", "", "", 0},
    {"Internal-IP", "string", "", "", 1},
    {"External-IP", "string", "", "", 1},
    {"OS-Image", "string", "", "", 1},
    {"Kernel-Version", "string", "", "", 1},
    {"Container-Runtime", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_nodes[] = {
    {"spec.unschedulable", "spec.unschedulable", "false"},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_nodes[] = {
    {"proxy", SUB_HANDLER, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "NodeProxyOptions", NULL, sub_proxy},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Node", NULL, NULL},
};
static const char *const SHORT_persistentvolumeclaims[] = {"pvc", NULL};
static const struct column COLUMNS_persistentvolumeclaims[] = {
    {"Status", "string", "", "", 0},       {"Volume", "string", "", "", 0},
    {"Capacity", "string", "", "", 0},     {"Access Modes", "string", "", "", 0},
    {"StorageClass", "string", "", "", 0}, {"VolumeAttributesClass", "string", "", "", 0},
    {"Age", "string", "", "", 0},          {"VolumeMode", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_persistentvolumeclaims[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "PersistentVolumeClaim",
     NULL, NULL},
};
static const char *const SHORT_persistentvolumes[] = {"pv", NULL};
static const struct column COLUMNS_persistentvolumes[] = {
    {"Capacity", "string", "", "", 0},
    {"Access Modes", "string", "", "", 0},
    {"Reclaim Policy", "string", "", "", 0},
    {"Status", "string", "", "", 0},
    {"Claim", "string", "", "", 0},
    {"StorageClass", "string", "", "", 0},
    {"VolumeAttributesClass", "string", "", "", 0},
    {"Reason", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {"VolumeMode", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_persistentvolumes[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "PersistentVolume", NULL,
     NULL},
};
static const char *const SHORT_pods[] = {"po", NULL};
static const struct column COLUMNS_pods[] = {
    {"Ready", "string", "", "", 0},
    {"Status", "string", "", "", 0},
    {"Restarts", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {"IP", "string", "", "", 1},
    {"Node", "string", "", "", 1},
    {"Nominated Node", "string", "", "", 1},
    {"Readiness Gates", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_pods[] = {
    {"spec.nodeName", "spec.nodeName", ""},
    {"spec.restartPolicy", "spec.restartPolicy", ""},
    {"spec.schedulerName", "spec.schedulerName", ""},
    {"spec.serviceAccountName", "spec.serviceAccountName", ""},
    {"spec.hostNetwork", "spec.hostNetwork", "false"},
    {"status.phase", "status.phase", ""},
    {"status.podIP", "status.podIP", ""},
    {"status.podIPs", "status.podIPs", ""},
    {"status.nominatedNodeName", "status.nominatedNodeName", ""},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_pods[] = {
    {"attach", SUB_HANDLER, VERB_GET | VERB_CREATE, "", "", "PodAttachOptions", NULL, sub_proxy},
    {"binding", SUB_HANDLER, VERB_CREATE, "", "", "Binding", NULL, sub_binding},
    {"ephemeralcontainers", SUB_HANDLER, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL,
     sub_ephemeral_containers},
    {"eviction", SUB_HANDLER, VERB_CREATE, "policy", "v1", "Eviction", NULL, sub_eviction},
    {"exec", SUB_HANDLER, VERB_GET | VERB_CREATE, "", "", "PodExecOptions", NULL, sub_proxy},
    {"log", SUB_HANDLER, VERB_GET, "", "", "Pod", NULL, sub_proxy},
    {"portforward", SUB_HANDLER, VERB_GET | VERB_CREATE, "", "", "PodPortForwardOptions", NULL,
     sub_proxy},
    {"proxy", SUB_HANDLER, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "PodProxyOptions", NULL, sub_proxy},
    {"resize", SUB_HANDLER, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL, sub_resize},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL, NULL},
};
static const struct column COLUMNS_podtemplates[] = {
    {"Containers", "string", "", "", 0},
    {"Images", "string", "", "", 0},
    {"Pod Labels", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_replicationcontrollers[] = {"rc", NULL};
static const struct column COLUMNS_replicationcontrollers[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_replicationcontrollers[] = {
    {"status.replicas", "status.replicas", "0"},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_replicationcontrollers[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_MAP, NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ReplicationController",
     NULL, NULL},
};
static const char *const SHORT_resourcequotas[] = {"quota", NULL};
static const struct column COLUMNS_resourcequotas[] = {
    {"Request", "string", "", "", 0},
    {"Limit", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_resourcequotas[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ResourceQuota", NULL,
     NULL},
};
static const struct column COLUMNS_secrets[] = {
    {"Type", "string", "", "", 0},
    {"Data", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_secrets[] = {
    {"type", "type", ""},
    {NULL, NULL, NULL},
};
static const char *const SHORT_serviceaccounts[] = {"sa", NULL};
static const struct subresource SUBS_serviceaccounts[] = {
    {"token", SUB_HANDLER, VERB_CREATE, "authentication.k8s.io", "v1", "TokenRequest", NULL,
     auth_handle_token_request},
};
static const char *const SHORT_services[] = {"svc", NULL};
static const struct column COLUMNS_services[] = {
    {"Type", "string", "", "", 0},        {"Cluster-IP", "string", "", "", 0},
    {"External-IP", "string", "", "", 0}, {"Port(s)", "string", "", "", 0},
    {"Age", "string", "", "", 0},         {"Selector", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_services[] = {
    {"spec.clusterIP", "spec.clusterIP", ""},
    {"spec.type", "spec.type", ""},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_services[] = {
    {"proxy", SUB_HANDLER, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "ServiceProxyOptions", NULL, sub_proxy},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Service", NULL, NULL},
};
static const struct column COLUMNS_apiservices[] = {
    {"Service", "string", "", "", 0},
    {"Available", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_apiservices[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "APIService", NULL, NULL},
};
static const struct column COLUMNS_controllerrevisions[] = {
    {"Controller", "string", "", "", 0},
    {"Revision", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_daemonsets[] = {"ds", NULL};
static const struct column COLUMNS_daemonsets[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Up-to-date", "integer", "", "", 0},
    {"Available", "integer", "", "", 0}, {"Node Selector", "string", "", "", 0},
    {"Age", "string", "", "", 0},        {"Containers", "string", "", "", 1},
    {"Images", "string", "", "", 1},     {"Selector", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_daemonsets[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "DaemonSet", NULL, NULL},
};
static const char *const SHORT_deployments[] = {"deploy", NULL};
static const struct column COLUMNS_deployments[] = {
    {"Ready", "string", "", "", 0},      {"Up-to-date", "string", "", "", 0},
    {"Available", "string", "", "", 0},  {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_deployments[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_SELECTOR, NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Deployment", NULL, NULL},
};
static const char *const SHORT_replicasets[] = {"rs", NULL};
static const struct column COLUMNS_replicasets[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_replicasets[] = {
    {"status.replicas", "status.replicas", "0"},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_replicasets[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_SELECTOR, NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ReplicaSet", NULL, NULL},
};
static const char *const SHORT_statefulsets[] = {"sts", NULL};
static const struct column COLUMNS_statefulsets[] = {
    {"Ready", "string", "", "", 0},      {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_statefulsets[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_SELECTOR, NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "StatefulSet", NULL, NULL},
};
static const char *const SHORT_events_events[] = {"ev", NULL};
static const struct column COLUMNS_events_events[] = {
    {"Type", "string", "", "", 0},       {"Reason", "string", "", "", 0},
    {"Object", "string", "", "", 0},     {"Subobject", "string", "", "", 1},
    {"Source", "string", "", "", 1},     {"Message", "string", "", "", 0},
    {"First Seen", "string", "", "", 1}, {"Count", "string", "", "", 1},
    {"Name", "string", "name", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_events_events[] = {
    {"reason", "reason", ""},
    {"reportingController", "reportingComponent", ""},
    {"regarding.kind", "involvedObject.kind", ""},
    {"regarding.namespace", "involvedObject.namespace", ""},
    {"regarding.name", "involvedObject.name", ""},
    {"regarding.uid", "involvedObject.uid", ""},
    {"regarding.apiVersion", "involvedObject.apiVersion", ""},
    {"regarding.resourceVersion", "involvedObject.resourceVersion", ""},
    {"regarding.fieldPath", "involvedObject.fieldPath", ""},
    {"type", "type", ""},
    {NULL, NULL, NULL},
};
static const char *const SHORT_horizontalpodautoscalers_v2[] = {"hpa", NULL};
static const struct column COLUMNS_horizontalpodautoscalers_v2[] = {
    {"Reference", "string", "", "", 0}, {"Targets", "string", "", "", 0},
    {"MinPods", "string", "", "", 0},   {"MaxPods", "string", "", "", 0},
    {"Replicas", "string", "", "", 0},  {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_horizontalpodautoscalers_v2[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "HorizontalPodAutoscaler",
     NULL, NULL},
};
static const char *const SHORT_horizontalpodautoscalers_v1[] = {"hpa", NULL};
static const struct column COLUMNS_horizontalpodautoscalers_v1[] = {
    {"Reference", "string", "", "", 0}, {"Targets", "string", "", "", 0},
    {"MinPods", "string", "", "", 0},   {"MaxPods", "string", "", "", 0},
    {"Replicas", "string", "", "", 0},  {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_horizontalpodautoscalers_v1[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "HorizontalPodAutoscaler",
     NULL, NULL},
};
static const char *const SHORT_cronjobs[] = {"cj", NULL};
static const struct column COLUMNS_cronjobs[] = {
    {"Schedule", "string", "", "", 0},      {"Timezone", "string", "", "", 0},
    {"Suspend", "boolean", "", "", 0},      {"Active", "integer", "", "", 0},
    {"Last Schedule", "string", "", "", 0}, {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1},    {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},      {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_cronjobs[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CronJob", NULL, NULL},
};
static const struct column COLUMNS_jobs[] = {
    {"Status", "string", "", "", 0},     {"Completions", "string", "", "", 0},
    {"Duration", "string", "", "", 0},   {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_jobs[] = {
    {"status.successful", "status.succeeded", "0"},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_jobs[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Job", NULL, NULL},
};
static const char *const SHORT_certificatesigningrequests[] = {"csr", NULL};
static const struct column COLUMNS_certificatesigningrequests[] = {
    {"Age", "string", "", "", 0},       {"SignerName", "string", "", "", 0},
    {"Requestor", "string", "", "", 0}, {"RequestedDuration", "string", "", "", 0},
    {"Condition", "string", "", "", 0}, {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_certificatesigningrequests[] = {
    {"spec.signerName", "spec.signerName", ""},
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_certificatesigningrequests[] = {
    {"approval", SUB_HANDLER, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "",
     "CertificateSigningRequest", NULL, sub_approval},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CertificateSigningRequest",
     NULL, NULL},
};
static const struct column COLUMNS_ingressclasses[] = {
    {"Controller", "string", "", "", 0},
    {"Parameters", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_ingresses[] = {"ing", NULL};
static const struct column COLUMNS_ingresses[] = {
    {"Class", "string", "", "", 0},   {"Hosts", "string", "", "", 0},
    {"Address", "string", "", "", 0}, {"Ports", "string", "", "", 0},
    {"Age", "string", "", "", 0},     {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_ingresses[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Ingress", NULL, NULL},
};
static const char *const SHORT_ipaddresses[] = {"ip", NULL};
static const struct column COLUMNS_ipaddresses[] = {
    {"ParentRef", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_networkpolicies[] = {"netpol", NULL};
static const struct column COLUMNS_networkpolicies[] = {
    {"Pod-Selector", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_servicecidrs[] = {
    {"CIDRs", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_servicecidrs[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ServiceCIDR", NULL, NULL},
};
static const char *const SHORT_poddisruptionbudgets[] = {"pdb", NULL};
static const struct column COLUMNS_poddisruptionbudgets[] = {
    {"Min Available", "string", "", "", 0},
    {"Max Unavailable", "string", "", "", 0},
    {"Allowed Disruptions", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_poddisruptionbudgets[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "PodDisruptionBudget", NULL,
     NULL},
};
static const struct column COLUMNS_clusterrolebindings[] = {
    {"Role", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {"Users", "string", "", "", 1},
    {"Groups", "string", "", "", 1},
    {"ServiceAccounts", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_clusterroles[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_rolebindings[] = {
    {"Role", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {"Users", "string", "", "", 1},
    {"Groups", "string", "", "", 1},
    {"ServiceAccounts", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_roles[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_csidrivers[] = {
    {"AttachRequired", "boolean", "", "", 0},
    {"PodInfoOnMount", "boolean", "", "", 0},
    {"StorageCapacity", "boolean", "", "", 0},
    {"TokenRequests", "string", "", "", 0},
    {"RequiresRepublish", "boolean", "", "", 0},
    {"Modes", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_csinodes[] = {
    {"Drivers", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_csistoragecapacities[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_storageclasses[] = {"sc", NULL};
static const struct column COLUMNS_storageclasses[] = {
    {"Provisioner", "string", "", "", 0},
    {"ReclaimPolicy", "string", "", "", 0},
    {"VolumeBindingMode", "string", "", "", 0},
    {"AllowVolumeExpansion", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_volumeattachments[] = {
    {"Attacher", "string", "name", "", 0}, {"PV", "string", "", "", 0},
    {"Node", "string", "", "", 0},         {"Attached", "boolean", "", "", 0},
    {"Age", "string", "", "", 0},          {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_volumeattachments[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "VolumeAttachment", NULL,
     NULL},
};
static const char *const SHORT_volumeattributesclasses[] = {"vac", NULL};
static const struct column COLUMNS_volumeattributesclasses[] = {
    {"DriverName", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_mutatingadmissionpolicies[] = {
    {"Mutations", "integer", "", "", 0},
    {"ParamKind", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_mutatingadmissionpolicybindings[] = {
    {"PolicyName", "string", "", "", 0},
    {"ParamRef", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_mutatingwebhookconfigurations[] = {
    {"Webhooks", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_validatingadmissionpolicies[] = {
    {"Validations", "integer", "", "", 0},
    {"ParamKind", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_validatingadmissionpolicies[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ValidatingAdmissionPolicy",
     NULL, NULL},
};
static const struct column COLUMNS_validatingadmissionpolicybindings[] = {
    {"PolicyName", "string", "", "", 0},
    {"ParamRef", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_validatingwebhookconfigurations[] = {
    {"Webhooks", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const char *const SHORT_customresourcedefinitions[] = {"crd", "crds", NULL};
static const struct column COLUMNS_customresourcedefinitions[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_customresourcedefinitions[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CustomResourceDefinition",
     NULL, NULL},
};
static const char *const SHORT_priorityclasses[] = {"pc", NULL};
static const struct column COLUMNS_priorityclasses[] = {
    {"Value", "integer", "", "", 0}, {"Global-Default", "boolean", "", "", 0},
    {"Age", "string", "", "", 0},    {"PreemptionPolicy", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_leases[] = {
    {"Holder", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_runtimeclasses[] = {
    {"Handler", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_endpointslices[] = {
    {"AddressType", "string", "", "", 0}, {"Ports", "string", "", "", 0},
    {"Endpoints", "string", "", "", 0},   {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct column COLUMNS_resourceclaims[] = {
    {"State", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_resourceclaims[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ResourceClaim", NULL,
     NULL},
};
static const struct column COLUMNS_resourceslices[] = {
    {"Node", "string", "", "", 0}, {"Driver", "string", "", "", 0}, {"Pool", "string", "", "", 0},
    {"Age", "string", "", "", 0},  {NULL, NULL, NULL, NULL, 0},
};
static const struct selectable_field FIELDS_resourceslices[] = {
    {"spec.nodeName", "spec.nodeName", ""},
    {"spec.driver", "spec.driver", ""},
    {NULL, NULL, NULL},
};
static const struct column COLUMNS_flowschemas[] = {
    {"PriorityLevel", "string", "", "", 0},       {"MatchingPrecedence", "string", "", "", 0},
    {"DistinguisherMethod", "string", "", "", 0}, {"Age", "string", "", "", 0},
    {"MissingPL", "string", "", "", 0},           {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_flowschemas[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "FlowSchema", NULL, NULL},
};
static const struct column COLUMNS_prioritylevelconfigurations[] = {
    {"Type", "string", "", "", 0},
    {"NominalConcurrencyShares", "string", "", "", 0},
    {"Queues", "string", "", "", 0},
    {"HandSize", "string", "", "", 0},
    {"QueueLengthLimit", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_prioritylevelconfigurations[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "",
     "PriorityLevelConfiguration", NULL, NULL},
};

const struct resource BUILTIN_RESOURCES[] = {
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Binding"),
        .list_kind = S("BindingList"),
        .plural = S("bindings"),
        .singular = S("binding"),
        .verbs = VERB_CREATE,
        .flags = RES_NAMESPACED | RES_REVIEW,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("ComponentStatus"),
        .list_kind = S("ComponentStatusList"),
        .plural = S("componentstatuses"),
        .singular = S("componentstatus"),
        .short_names = SHORT_componentstatuses,
        .verbs = VERB_GET | VERB_LIST,
        .flags = 0,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("ConfigMap"),
        .list_kind = S("ConfigMapList"),
        .plural = S("configmaps"),
        .singular = S("configmap"),
        .short_names = SHORT_configmaps,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED,
        .ops = &CONFIG_MAP_OPS,
        .columns = COLUMNS_configmaps,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Endpoints"),
        .list_kind = S("EndpointsList"),
        .plural = S("endpoints"),
        .singular = S("endpoints"),
        .short_names = SHORT_endpoints,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE,
        .ops = &ENDPOINTS_OPS,
        .columns = COLUMNS_endpoints,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Event"),
        .list_kind = S("EventList"),
        .plural = S("events"),
        .singular = S("event"),
        .short_names = SHORT_events,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE,
        .ops = &EVENT_OPS,
        .columns = COLUMNS_events,
        .first_column = &LAST_SEEN,
        .fields = FIELDS_events,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("LimitRange"),
        .list_kind = S("LimitRangeList"),
        .plural = S("limitranges"),
        .singular = S("limitrange"),
        .short_names = SHORT_limitranges,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE,
        .ops = &LIMIT_RANGE_OPS,
        .columns = COLUMNS_limitranges,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Namespace"),
        .list_kind = S("NamespaceList"),
        .plural = S("namespaces"),
        .singular = S("namespace"),
        .short_names = SHORT_namespaces,
        .verbs = VERB_GET | VERB_LIST | VERB_WATCH | VERB_CREATE | VERB_UPDATE | VERB_PATCH |
                 VERB_DELETE,
        .flags = RES_STATUS | RES_DELETE_RETURNS_OBJECT,
        .ops = &NAMESPACE_OPS,
        .columns = COLUMNS_namespaces,
        .fields = FIELDS_namespaces,
        .subresources = SUBS_namespaces,
        .n_subresources = COUNT(SUBS_namespaces),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Node"),
        .list_kind = S("NodeList"),
        .plural = S("nodes"),
        .singular = S("node"),
        .short_names = SHORT_nodes,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_STATUS_ON_CREATE,
        .ops = &NODE_OPS,
        .columns = COLUMNS_nodes,
        .fields = FIELDS_nodes,
        .subresources = SUBS_nodes,
        .n_subresources = COUNT(SUBS_nodes),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("PersistentVolumeClaim"),
        .list_kind = S("PersistentVolumeClaimList"),
        .plural = S("persistentvolumeclaims"),
        .singular = S("persistentvolumeclaim"),
        .short_names = SHORT_persistentvolumeclaims,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT,
        .ops = &PERSISTENT_VOLUME_CLAIM_OPS,
        .columns = COLUMNS_persistentvolumeclaims,
        .subresources = SUBS_persistentvolumeclaims,
        .n_subresources = COUNT(SUBS_persistentvolumeclaims),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("PersistentVolume"),
        .list_kind = S("PersistentVolumeList"),
        .plural = S("persistentvolumes"),
        .singular = S("persistentvolume"),
        .short_names = SHORT_persistentvolumes,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_DELETE_RETURNS_OBJECT,
        .ops = &PERSISTENT_VOLUME_OPS,
        .columns = COLUMNS_persistentvolumes,
        .subresources = SUBS_persistentvolumes,
        .n_subresources = COUNT(SUBS_persistentvolumes),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Pod"),
        .list_kind = S("PodList"),
        .plural = S("pods"),
        .singular = S("pod"),
        .short_names = SHORT_pods,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags =
            RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_GRACEFUL | RES_DELETE_RETURNS_OBJECT,
        .ops = &POD_OPS,
        .columns = COLUMNS_pods,
        .fields = FIELDS_pods,
        .subresources = SUBS_pods,
        .n_subresources = COUNT(SUBS_pods),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("PodTemplate"),
        .list_kind = S("PodTemplateList"),
        .plural = S("podtemplates"),
        .singular = S("podtemplate"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_GENERATION | RES_DELETE_RETURNS_OBJECT,
        .ops = &POD_TEMPLATE_OPS,
        .columns = COLUMNS_podtemplates,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("ReplicationController"),
        .list_kind = S("ReplicationControllerList"),
        .plural = S("replicationcontrollers"),
        .singular = S("replicationcontroller"),
        .short_names = SHORT_replicationcontrollers,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT,
        .ops = &REPLICATION_CONTROLLER_OPS,
        .columns = COLUMNS_replicationcontrollers,
        .fields = FIELDS_replicationcontrollers,
        .subresources = SUBS_replicationcontrollers,
        .n_subresources = COUNT(SUBS_replicationcontrollers),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("ResourceQuota"),
        .list_kind = S("ResourceQuotaList"),
        .plural = S("resourcequotas"),
        .singular = S("resourcequota"),
        .short_names = SHORT_resourcequotas,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT,
        .ops = &RESOURCE_QUOTA_OPS,
        .columns = COLUMNS_resourcequotas,
        .subresources = SUBS_resourcequotas,
        .n_subresources = COUNT(SUBS_resourcequotas),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Secret"),
        .list_kind = S("SecretList"),
        .plural = S("secrets"),
        .singular = S("secret"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED,
        .ops = &SECRET_OPS,
        .columns = COLUMNS_secrets,
        .fields = FIELDS_secrets,
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("ServiceAccount"),
        .list_kind = S("ServiceAccountList"),
        .plural = S("serviceaccounts"),
        .singular = S("serviceaccount"),
        .short_names = SHORT_serviceaccounts,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_DELETE_RETURNS_OBJECT,
        .ops = &SERVICE_ACCOUNT_OPS,
        .columns = COLUMNS_AGE,
        .subresources = SUBS_serviceaccounts,
        .n_subresources = COUNT(SUBS_serviceaccounts),
    },
    {
        .group = S(""),
        .version = S("v1"),
        .kind = S("Service"),
        .list_kind = S("ServiceList"),
        .plural = S("services"),
        .singular = S("service"),
        .short_names = SHORT_services,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_CREATE_ON_UPDATE | RES_DELETE_RETURNS_OBJECT,
        .ops = &SERVICE_OPS,
        .columns = COLUMNS_services,
        .fields = FIELDS_services,
        .subresources = SUBS_services,
        .n_subresources = COUNT(SUBS_services),
    },
    {
        .group = S("apiregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("APIService"),
        .list_kind = S("APIServiceList"),
        .plural = S("apiservices"),
        .singular = S("apiservice"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_CONDITIONAL_UPDATE,
        .ops = &APISERVICE_OPS,
        .columns = COLUMNS_apiservices,
        .subresources = SUBS_apiservices,
        .n_subresources = COUNT(SUBS_apiservices),
    },
    {
        .group = S("apps"),
        .version = S("v1"),
        .kind = S("ControllerRevision"),
        .list_kind = S("ControllerRevisionList"),
        .plural = S("controllerrevisions"),
        .singular = S("controllerrevision"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED,
        .ops = &CONTROLLER_REVISION_OPS,
        .columns = COLUMNS_controllerrevisions,
    },
    {
        .group = S("apps"),
        .version = S("v1"),
        .kind = S("DaemonSet"),
        .list_kind = S("DaemonSetList"),
        .plural = S("daemonsets"),
        .singular = S("daemonset"),
        .short_names = SHORT_daemonsets,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &DAEMON_SET_OPS,
        .columns = COLUMNS_daemonsets,
        .subresources = SUBS_daemonsets,
        .n_subresources = COUNT(SUBS_daemonsets),
    },
    {
        .group = S("apps"),
        .version = S("v1"),
        .kind = S("Deployment"),
        .list_kind = S("DeploymentList"),
        .plural = S("deployments"),
        .singular = S("deployment"),
        .short_names = SHORT_deployments,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &DEPLOYMENT_OPS,
        .columns = COLUMNS_deployments,
        .subresources = SUBS_deployments,
        .n_subresources = COUNT(SUBS_deployments),
    },
    {
        .group = S("apps"),
        .version = S("v1"),
        .kind = S("ReplicaSet"),
        .list_kind = S("ReplicaSetList"),
        .plural = S("replicasets"),
        .singular = S("replicaset"),
        .short_names = SHORT_replicasets,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &REPLICA_SET_OPS,
        .columns = COLUMNS_replicasets,
        .fields = FIELDS_replicasets,
        .subresources = SUBS_replicasets,
        .n_subresources = COUNT(SUBS_replicasets),
    },
    {
        .group = S("apps"),
        .version = S("v1"),
        .kind = S("StatefulSet"),
        .list_kind = S("StatefulSetList"),
        .plural = S("statefulsets"),
        .singular = S("statefulset"),
        .short_names = SHORT_statefulsets,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &STATEFUL_SET_OPS,
        .columns = COLUMNS_statefulsets,
        .subresources = SUBS_statefulsets,
        .n_subresources = COUNT(SUBS_statefulsets),
    },
    {
        .group = S("events.k8s.io"),
        .version = S("v1"),
        .kind = S("Event"),
        .list_kind = S("EventList"),
        .plural = S("events"),
        .singular = S("event"),
        .short_names = SHORT_events_events,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE,
        .storage_version = S("v1"),
        .ops = &EVENT_OPS,
        .columns = COLUMNS_events_events,
        .first_column = &LAST_SEEN,
        .fields = FIELDS_events_events,
    },
    {
        .group = S("authentication.k8s.io"),
        .version = S("v1"),
        .kind = S("SelfSubjectReview"),
        .list_kind = S("SelfSubjectReviewList"),
        .plural = S("selfsubjectreviews"),
        .singular = S("selfsubjectreview"),
        .verbs = VERB_CREATE,
        .flags = RES_REVIEW,
    },
    {
        .group = S("authentication.k8s.io"),
        .version = S("v1"),
        .kind = S("TokenReview"),
        .list_kind = S("TokenReviewList"),
        .plural = S("tokenreviews"),
        .singular = S("tokenreview"),
        .verbs = VERB_CREATE,
        .flags = RES_REVIEW,
    },
    {
        .group = S("authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("LocalSubjectAccessReview"),
        .list_kind = S("LocalSubjectAccessReviewList"),
        .plural = S("localsubjectaccessreviews"),
        .singular = S("localsubjectaccessreview"),
        .verbs = VERB_CREATE,
        .flags = RES_NAMESPACED | RES_REVIEW,
    },
    {
        .group = S("authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("SelfSubjectAccessReview"),
        .list_kind = S("SelfSubjectAccessReviewList"),
        .plural = S("selfsubjectaccessreviews"),
        .singular = S("selfsubjectaccessreview"),
        .verbs = VERB_CREATE,
        .flags = RES_REVIEW,
    },
    {
        .group = S("authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("SelfSubjectRulesReview"),
        .list_kind = S("SelfSubjectRulesReviewList"),
        .plural = S("selfsubjectrulesreviews"),
        .singular = S("selfsubjectrulesreview"),
        .verbs = VERB_CREATE,
        .flags = RES_REVIEW,
    },
    {
        .group = S("authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("SubjectAccessReview"),
        .list_kind = S("SubjectAccessReviewList"),
        .plural = S("subjectaccessreviews"),
        .singular = S("subjectaccessreview"),
        .verbs = VERB_CREATE,
        .flags = RES_REVIEW,
    },
    {
        .group = S("autoscaling"),
        .version = S("v2"),
        .kind = S("HorizontalPodAutoscaler"),
        .list_kind = S("HorizontalPodAutoscalerList"),
        .plural = S("horizontalpodautoscalers"),
        .singular = S("horizontalpodautoscaler"),
        .short_names = SHORT_horizontalpodautoscalers_v2,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS,
        .ops = &HORIZONTAL_POD_AUTOSCALER_OPS,
        .columns = COLUMNS_horizontalpodautoscalers_v2,
        .subresources = SUBS_horizontalpodautoscalers_v2,
        .n_subresources = COUNT(SUBS_horizontalpodautoscalers_v2),
    },
    {
        .group = S("autoscaling"),
        .version = S("v1"),
        .kind = S("HorizontalPodAutoscaler"),
        .list_kind = S("HorizontalPodAutoscalerList"),
        .plural = S("horizontalpodautoscalers"),
        .singular = S("horizontalpodautoscaler"),
        .short_names = SHORT_horizontalpodautoscalers_v1,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS,
        .storage_version = S("autoscaling/v2"),
        .ops = &HORIZONTAL_POD_AUTOSCALER_OPS,
        .columns = COLUMNS_horizontalpodautoscalers_v1,
        .subresources = SUBS_horizontalpodautoscalers_v1,
        .n_subresources = COUNT(SUBS_horizontalpodautoscalers_v1),
    },
    {
        .group = S("batch"),
        .version = S("v1"),
        .kind = S("CronJob"),
        .list_kind = S("CronJobList"),
        .plural = S("cronjobs"),
        .singular = S("cronjob"),
        .short_names = SHORT_cronjobs,
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &CRON_JOB_OPS,
        .columns = COLUMNS_cronjobs,
        .subresources = SUBS_cronjobs,
        .n_subresources = COUNT(SUBS_cronjobs),
    },
    {
        .group = S("batch"),
        .version = S("v1"),
        .kind = S("Job"),
        .list_kind = S("JobList"),
        .plural = S("jobs"),
        .singular = S("job"),
        .categories = IN_ALL,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT,
        .ops = &JOB_OPS,
        .columns = COLUMNS_jobs,
        .fields = FIELDS_jobs,
        .subresources = SUBS_jobs,
        .n_subresources = COUNT(SUBS_jobs),
    },
    {
        .group = S("certificates.k8s.io"),
        .version = S("v1"),
        .kind = S("CertificateSigningRequest"),
        .list_kind = S("CertificateSigningRequestList"),
        .plural = S("certificatesigningrequests"),
        .singular = S("certificatesigningrequest"),
        .short_names = SHORT_certificatesigningrequests,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS,
        .ops = &CERTIFICATE_SIGNING_REQUEST_OPS,
        .columns = COLUMNS_certificatesigningrequests,
        .fields = FIELDS_certificatesigningrequests,
        .subresources = SUBS_certificatesigningrequests,
        .n_subresources = COUNT(SUBS_certificatesigningrequests),
    },
    {
        .group = S("networking.k8s.io"),
        .version = S("v1"),
        .kind = S("IngressClass"),
        .list_kind = S("IngressClassList"),
        .plural = S("ingressclasses"),
        .singular = S("ingressclass"),
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION,
        .ops = &INGRESS_CLASS_OPS,
        .columns = COLUMNS_ingressclasses,
    },
    {
        .group = S("networking.k8s.io"),
        .version = S("v1"),
        .kind = S("Ingress"),
        .list_kind = S("IngressList"),
        .plural = S("ingresses"),
        .singular = S("ingress"),
        .short_names = SHORT_ingresses,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
        .ops = &INGRESS_OPS,
        .columns = COLUMNS_ingresses,
        .subresources = SUBS_ingresses,
        .n_subresources = COUNT(SUBS_ingresses),
    },
    {
        .group = S("networking.k8s.io"),
        .version = S("v1"),
        .kind = S("IPAddress"),
        .list_kind = S("IPAddressList"),
        .plural = S("ipaddresses"),
        .singular = S("ipaddress"),
        .short_names = SHORT_ipaddresses,
        .verbs = VERBS_ALL,
        .flags = 0,
        .ops = &IPADDRESS_OPS,
        .columns = COLUMNS_ipaddresses,
    },
    {
        .group = S("networking.k8s.io"),
        .version = S("v1"),
        .kind = S("NetworkPolicy"),
        .list_kind = S("NetworkPolicyList"),
        .plural = S("networkpolicies"),
        .singular = S("networkpolicy"),
        .short_names = SHORT_networkpolicies,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_GENERATION,
        .ops = &NETWORK_POLICY_OPS,
        .columns = COLUMNS_networkpolicies,
    },
    {
        .group = S("networking.k8s.io"),
        .version = S("v1"),
        .kind = S("ServiceCIDR"),
        .list_kind = S("ServiceCIDRList"),
        .plural = S("servicecidrs"),
        .singular = S("servicecidr"),
        .verbs = VERBS_ALL,
        .flags = RES_STATUS,
        .ops = &SERVICE_CIDR_OPS,
        .columns = COLUMNS_servicecidrs,
        .subresources = SUBS_servicecidrs,
        .n_subresources = COUNT(SUBS_servicecidrs),
    },
    {
        .group = S("policy"),
        .version = S("v1"),
        .kind = S("PodDisruptionBudget"),
        .list_kind = S("PodDisruptionBudgetList"),
        .plural = S("poddisruptionbudgets"),
        .singular = S("poddisruptionbudget"),
        .short_names = SHORT_poddisruptionbudgets,
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &POD_DISRUPTION_BUDGET_OPS,
        .columns = COLUMNS_poddisruptionbudgets,
        .subresources = SUBS_poddisruptionbudgets,
        .n_subresources = COUNT(SUBS_poddisruptionbudgets),
    },
    {
        .group = S("rbac.authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("ClusterRoleBinding"),
        .list_kind = S("ClusterRoleBindingList"),
        .plural = S("clusterrolebindings"),
        .singular = S("clusterrolebinding"),
        .verbs = VERBS_ALL,
        .flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
        .ops = &CLUSTER_ROLE_BINDING_OPS,
        .columns = COLUMNS_clusterrolebindings,
    },
    {
        .group = S("rbac.authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("ClusterRole"),
        .list_kind = S("ClusterRoleList"),
        .plural = S("clusterroles"),
        .singular = S("clusterrole"),
        .verbs = VERBS_ALL,
        .flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
        .ops = &CLUSTER_ROLE_OPS,
        .columns = COLUMNS_clusterroles,
    },
    {
        .group = S("rbac.authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("RoleBinding"),
        .list_kind = S("RoleBindingList"),
        .plural = S("rolebindings"),
        .singular = S("rolebinding"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
        .ops = &ROLE_BINDING_OPS,
        .columns = COLUMNS_rolebindings,
    },
    {
        .group = S("rbac.authorization.k8s.io"),
        .version = S("v1"),
        .kind = S("Role"),
        .list_kind = S("RoleList"),
        .plural = S("roles"),
        .singular = S("role"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
        .ops = &ROLE_OPS,
        .columns = COLUMNS_roles,
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("CSIDriver"),
        .list_kind = S("CSIDriverList"),
        .plural = S("csidrivers"),
        .singular = S("csidriver"),
        .verbs = VERBS_ALL,
        .flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT,
        .ops = &CSIDRIVER_OPS,
        .columns = COLUMNS_csidrivers,
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("CSINode"),
        .list_kind = S("CSINodeList"),
        .plural = S("csinodes"),
        .singular = S("csinode"),
        .verbs = VERBS_ALL,
        .flags = RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT,
        .ops = &CSINODE_OPS,
        .columns = COLUMNS_csinodes,
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("CSIStorageCapacity"),
        .list_kind = S("CSIStorageCapacityList"),
        .plural = S("csistoragecapacities"),
        .singular = S("csistoragecapacity"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CONDITIONAL_UPDATE,
        .ops = &CSISTORAGE_CAPACITY_OPS,
        .columns = COLUMNS_csistoragecapacities,
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("StorageClass"),
        .list_kind = S("StorageClassList"),
        .plural = S("storageclasses"),
        .singular = S("storageclass"),
        .short_names = SHORT_storageclasses,
        .verbs = VERBS_ALL,
        .flags = RES_DELETE_RETURNS_OBJECT,
        .ops = &STORAGE_CLASS_OPS,
        .columns = COLUMNS_storageclasses,
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("VolumeAttachment"),
        .list_kind = S("VolumeAttachmentList"),
        .plural = S("volumeattachments"),
        .singular = S("volumeattachment"),
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_CONDITIONAL_UPDATE | RES_DELETE_RETURNS_OBJECT,
        .ops = &VOLUME_ATTACHMENT_OPS,
        .columns = COLUMNS_volumeattachments,
        .subresources = SUBS_volumeattachments,
        .n_subresources = COUNT(SUBS_volumeattachments),
    },
    {
        .group = S("storage.k8s.io"),
        .version = S("v1"),
        .kind = S("VolumeAttributesClass"),
        .list_kind = S("VolumeAttributesClassList"),
        .plural = S("volumeattributesclasses"),
        .singular = S("volumeattributesclass"),
        .short_names = SHORT_volumeattributesclasses,
        .verbs = VERBS_ALL,
        .flags = RES_DELETE_RETURNS_OBJECT,
        .ops = &VOLUME_ATTRIBUTES_CLASS_OPS,
        .columns = COLUMNS_volumeattributesclasses,
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("MutatingAdmissionPolicy"),
        .list_kind = S("MutatingAdmissionPolicyList"),
        .plural = S("mutatingadmissionpolicies"),
        .singular = S("mutatingadmissionpolicy"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &MUTATING_ADMISSION_POLICY_OPS,
        .columns = COLUMNS_mutatingadmissionpolicies,
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("MutatingAdmissionPolicyBinding"),
        .list_kind = S("MutatingAdmissionPolicyBindingList"),
        .plural = S("mutatingadmissionpolicybindings"),
        .singular = S("mutatingadmissionpolicybinding"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &MUTATING_ADMISSION_POLICY_BINDING_OPS,
        .columns = COLUMNS_mutatingadmissionpolicybindings,
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("MutatingWebhookConfiguration"),
        .list_kind = S("MutatingWebhookConfigurationList"),
        .plural = S("mutatingwebhookconfigurations"),
        .singular = S("mutatingwebhookconfiguration"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &MUTATING_WEBHOOK_CONFIGURATION_OPS,
        .columns = COLUMNS_mutatingwebhookconfigurations,
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("ValidatingAdmissionPolicy"),
        .list_kind = S("ValidatingAdmissionPolicyList"),
        .plural = S("validatingadmissionpolicies"),
        .singular = S("validatingadmissionpolicy"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &VALIDATING_ADMISSION_POLICY_OPS,
        .columns = COLUMNS_validatingadmissionpolicies,
        .subresources = SUBS_validatingadmissionpolicies,
        .n_subresources = COUNT(SUBS_validatingadmissionpolicies),
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("ValidatingAdmissionPolicyBinding"),
        .list_kind = S("ValidatingAdmissionPolicyBindingList"),
        .plural = S("validatingadmissionpolicybindings"),
        .singular = S("validatingadmissionpolicybinding"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &VALIDATING_ADMISSION_POLICY_BINDING_OPS,
        .columns = COLUMNS_validatingadmissionpolicybindings,
    },
    {
        .group = S("admissionregistration.k8s.io"),
        .version = S("v1"),
        .kind = S("ValidatingWebhookConfiguration"),
        .list_kind = S("ValidatingWebhookConfigurationList"),
        .plural = S("validatingwebhookconfigurations"),
        .singular = S("validatingwebhookconfiguration"),
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &VALIDATING_WEBHOOK_CONFIGURATION_OPS,
        .columns = COLUMNS_validatingwebhookconfigurations,
    },
    {
        .group = S("apiextensions.k8s.io"),
        .version = S("v1"),
        .kind = S("CustomResourceDefinition"),
        .list_kind = S("CustomResourceDefinitionList"),
        .plural = S("customresourcedefinitions"),
        .singular = S("customresourcedefinition"),
        .short_names = SHORT_customresourcedefinitions,
        .categories = IN_API_EXTENSIONS,
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE,
        .ops = &CRD_OPS,
        .columns = COLUMNS_customresourcedefinitions,
        .subresources = SUBS_customresourcedefinitions,
        .n_subresources = COUNT(SUBS_customresourcedefinitions),
    },
    {
        .group = S("scheduling.k8s.io"),
        .version = S("v1"),
        .kind = S("PriorityClass"),
        .list_kind = S("PriorityClassList"),
        .plural = S("priorityclasses"),
        .singular = S("priorityclass"),
        .short_names = SHORT_priorityclasses,
        .verbs = VERBS_ALL,
        .flags = 0,
        .ops = &PRIORITY_CLASS_OPS,
        .columns = COLUMNS_priorityclasses,
    },
    {
        .group = S("coordination.k8s.io"),
        .version = S("v1"),
        .kind = S("Lease"),
        .list_kind = S("LeaseList"),
        .plural = S("leases"),
        .singular = S("lease"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE,
        .ops = &LEASE_OPS,
        .columns = COLUMNS_leases,
    },
    {
        .group = S("node.k8s.io"),
        .version = S("v1"),
        .kind = S("RuntimeClass"),
        .list_kind = S("RuntimeClassList"),
        .plural = S("runtimeclasses"),
        .singular = S("runtimeclass"),
        .verbs = VERBS_ALL,
        .flags = RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE,
        .ops = &RUNTIME_CLASS_OPS,
        .columns = COLUMNS_runtimeclasses,
    },
    {
        .group = S("discovery.k8s.io"),
        .version = S("v1"),
        .kind = S("EndpointSlice"),
        .list_kind = S("EndpointSliceList"),
        .plural = S("endpointslices"),
        .singular = S("endpointslice"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_GENERATION,
        .ops = &ENDPOINT_SLICE_OPS,
        .columns = COLUMNS_endpointslices,
    },
    {
        .group = S("resource.k8s.io"),
        .version = S("v1"),
        .kind = S("DeviceClass"),
        .list_kind = S("DeviceClassList"),
        .plural = S("deviceclasses"),
        .singular = S("deviceclass"),
        .verbs = VERBS_ALL,
        .flags = RES_DELETE_RETURNS_OBJECT | RES_GENERATION,
        .ops = &DEVICE_CLASS_OPS,
        .columns = COLUMNS_AGE,
    },
    {
        .group = S("resource.k8s.io"),
        .version = S("v1"),
        .kind = S("ResourceClaim"),
        .list_kind = S("ResourceClaimList"),
        .plural = S("resourceclaims"),
        .singular = S("resourceclaim"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT,
        .ops = &RESOURCE_CLAIM_OPS,
        .columns = COLUMNS_resourceclaims,
        .subresources = SUBS_resourceclaims,
        .n_subresources = COUNT(SUBS_resourceclaims),
    },
    {
        .group = S("resource.k8s.io"),
        .version = S("v1"),
        .kind = S("ResourceClaimTemplate"),
        .list_kind = S("ResourceClaimTemplateList"),
        .plural = S("resourceclaimtemplates"),
        .singular = S("resourceclaimtemplate"),
        .verbs = VERBS_ALL,
        .flags = RES_NAMESPACED | RES_DELETE_RETURNS_OBJECT,
        .ops = &RESOURCE_CLAIM_TEMPLATE_OPS,
        .columns = COLUMNS_AGE,
    },
    {
        .group = S("resource.k8s.io"),
        .version = S("v1"),
        .kind = S("ResourceSlice"),
        .list_kind = S("ResourceSliceList"),
        .plural = S("resourceslices"),
        .singular = S("resourceslice"),
        .verbs = VERBS_ALL,
        .flags = RES_GENERATION | RES_DELETE_RETURNS_OBJECT,
        .ops = &RESOURCE_SLICE_OPS,
        .columns = COLUMNS_resourceslices,
        .fields = FIELDS_resourceslices,
    },
    {
        .group = S("flowcontrol.apiserver.k8s.io"),
        .version = S("v1"),
        .kind = S("FlowSchema"),
        .list_kind = S("FlowSchemaList"),
        .plural = S("flowschemas"),
        .singular = S("flowschema"),
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_GENERATION,
        .ops = &FLOW_SCHEMA_OPS,
        .columns = COLUMNS_flowschemas,
        .subresources = SUBS_flowschemas,
        .n_subresources = COUNT(SUBS_flowschemas),
    },
    {
        .group = S("flowcontrol.apiserver.k8s.io"),
        .version = S("v1"),
        .kind = S("PriorityLevelConfiguration"),
        .list_kind = S("PriorityLevelConfigurationList"),
        .plural = S("prioritylevelconfigurations"),
        .singular = S("prioritylevelconfiguration"),
        .verbs = VERBS_ALL,
        .flags = RES_STATUS | RES_GENERATION,
        .ops = &PRIORITY_LEVEL_CONFIGURATION_OPS,
        .columns = COLUMNS_prioritylevelconfigurations,
        .subresources = SUBS_prioritylevelconfigurations,
        .n_subresources = COUNT(SUBS_prioritylevelconfigurations),
    },
};
const size_t N_BUILTIN_RESOURCES = COUNT(BUILTIN_RESOURCES);
