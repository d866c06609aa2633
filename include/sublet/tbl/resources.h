/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Short names, columns, selectable fields and subresources of every built-in resource, as a real
 * server of Kubernetes 1.36 publishes them. Included once, by vapi/kinds/resources.c, whose rows point
 * here. */
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
    {"source", "source.component|reportingComponent", ""},
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
    {NULL, NULL, NULL},
};
static const struct subresource SUBS_namespaces[] = {
    {"finalize", SUB_FINALIZE, VERB_UPDATE, "", "", "Namespace", NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Namespace", NULL},
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
    {"proxy", SUB_PROXY, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "NodeProxyOptions", NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Node", NULL},
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
     NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "PersistentVolume", NULL},
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
    {"attach", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodAttachOptions", NULL},
    {"binding", SUB_BINDING, VERB_CREATE, "", "", "Binding", NULL},
    {"ephemeralcontainers", SUB_EPHEMERAL_CONTAINERS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "",
     "Pod", NULL},
    {"eviction", SUB_EVICTION, VERB_CREATE, "policy", "v1", "Eviction", NULL},
    {"exec", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodExecOptions", NULL},
    {"log", SUB_PROXY, VERB_GET, "", "", "Pod", NULL},
    {"portforward", SUB_PROXY, VERB_GET | VERB_CREATE, "", "", "PodPortForwardOptions", NULL},
    {"proxy", SUB_PROXY, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "PodProxyOptions", NULL},
    {"resize", SUB_RESIZE, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Pod", NULL},
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
     &SCALE_MAP},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ReplicationController",
     NULL},
};
static const char *const SHORT_resourcequotas[] = {"quota", NULL};
static const struct column COLUMNS_resourcequotas[] = {
    {"Request", "string", "", "", 0},
    {"Limit", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_resourcequotas[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ResourceQuota", NULL},
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
    {"token", SUB_TOKEN, VERB_CREATE, "authentication.k8s.io", "v1", "TokenRequest", NULL},
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
    {"proxy", SUB_PROXY, VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
     "ServiceProxyOptions", NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Service", NULL},
};
static const struct column COLUMNS_apiservices[] = {
    {"Service", "string", "", "", 0},
    {"Available", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_apiservices[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "APIService", NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "DaemonSet", NULL},
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
     &SCALE_SELECTOR},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Deployment", NULL},
};
static const char *const SHORT_replicasets[] = {"rs", NULL};
static const struct column COLUMNS_replicasets[] = {
    {"Desired", "integer", "", "", 0},   {"Current", "integer", "", "", 0},
    {"Ready", "integer", "", "", 0},     {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {"Selector", "string", "", "", 1},   {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_replicasets[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_SELECTOR},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ReplicaSet", NULL},
};
static const char *const SHORT_statefulsets[] = {"sts", NULL};
static const struct column COLUMNS_statefulsets[] = {
    {"Ready", "string", "", "", 0},      {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};
static const struct subresource SUBS_statefulsets[] = {
    {"scale", SUB_SCALE, VERB_GET | VERB_UPDATE | VERB_PATCH, "autoscaling", "v1", "Scale",
     &SCALE_SELECTOR},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "StatefulSet", NULL},
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
     NULL},
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
     NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CronJob", NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Job", NULL},
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
    {"approval", SUB_APPROVAL, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "",
     "CertificateSigningRequest", NULL},
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CertificateSigningRequest",
     NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "Ingress", NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ServiceCIDR", NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "PodDisruptionBudget",
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "VolumeAttachment", NULL},
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
     NULL},
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
     NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "ResourceClaim", NULL},
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
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "FlowSchema", NULL},
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
     "PriorityLevelConfiguration", NULL},
};
