/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * What becomes of every field of a synced object. `sublet explain`, the Warnings of a dry run and
 * docs/fields.md follow from here; tests/unit/translate/test_fields.c holds each row against the
 * built-in types (no field without a row, no row without a field) and against the translation.
 *
 * FIELD(section, field, treatment, reason): a section is a type, or types that are treated alike.
 * FIELD_SAID is the same for a change that a dry run reports in a Warning.
 *
 *   INSIDE      its fields have rows of their own: the reason is their section
 *   PASS        goes down as it is
 *   PRIVILEGED  goes down with policy.podSecurity privileged, else refused or left out
 *   REWRITE     goes down as something else, in its place
 *   MOVE        goes down as another field
 *   OWN         set by Sublet or the pool, whatever the tenant wrote
 *   DROP        does not go down
 *   REFUSE      refused at apply time
 *   UP          comes up from the host as it is
 *   UP_REWRITE  comes up translated
 *   UP_OWN      the virtual cluster's own
 *   UP_NONE     does not come up
 *
 * reason: as a reader of a change needs it; empty: the change needs none. */

/* ---- kinds ---- */

FIELD("Pod", "metadata", INSIDE, "ObjectMeta")
FIELD("Pod", "spec", INSIDE, "PodSpec")
FIELD("Pod", "status", INSIDE, "PodStatus")
FIELD("Service", "metadata", INSIDE, "ObjectMeta")
FIELD("Service", "spec", INSIDE, "ServiceSpec")
FIELD("Service", "status", INSIDE, "ServiceStatus")
FIELD("PersistentVolumeClaim", "metadata", INSIDE, "ObjectMeta")
FIELD("PersistentVolumeClaim", "spec", INSIDE, "PersistentVolumeClaimSpec")
FIELD("PersistentVolumeClaim", "status", INSIDE, "PersistentVolumeClaimStatus")
FIELD("ConfigMap", "metadata", INSIDE, "ObjectMeta")
FIELD("ConfigMap", "data", PASS, "keys that envFrom would turn into device variables stay back")
FIELD("ConfigMap", "binaryData", PASS,
      "keys that envFrom would turn into device variables stay back")
FIELD("ConfigMap", "immutable", DROP, "a re-created object is an update on the host")
FIELD("Secret", "metadata", INSIDE, "ObjectMeta")
FIELD("Secret", "data", PASS, "keys that envFrom would turn into device variables stay back")
FIELD("Secret", "stringData", DROP, "the API turns it into data")
FIELD("Secret", "immutable", DROP, "a re-created object is an update on the host")
FIELD("Secret", "type", REWRITE, "Opaque where a host controller acts on the type")

FIELD("ObjectMeta", "name", REWRITE,
      "the host name: the name and a hash of cluster, namespace and name")
FIELD("ObjectMeta", "namespace", REWRITE,
      "all objects of a virtual cluster are in one host namespace")
FIELD("ObjectMeta", "labels", REWRITE,
      "keys that policy.labels.allow does not list go down under a hash, and ours are added")
FIELD("ObjectMeta", "annotations", REWRITE, "those that policy.annotations.allow lists, and ours")
FIELD("ObjectMeta", "finalizers", DROP, "the tenant's controllers hold the virtual object")
FIELD("ObjectMeta", "ownerReferences", DROP, "owners are objects of the virtual cluster")
FIELD("ObjectMeta", "generateName", DROP, "")
FIELD("ObjectMeta", "uid", MOVE, "")
FIELD("ObjectMeta", "creationTimestamp", DROP, "")
FIELD("ObjectMeta", "deletionTimestamp", DROP, "")
FIELD("ObjectMeta", "deletionGracePeriodSeconds", DROP, "")
FIELD("ObjectMeta", "generation", DROP, "")
FIELD("ObjectMeta", "managedFields", DROP, "")
FIELD("ObjectMeta", "resourceVersion", DROP, "")
FIELD("ObjectMeta", "selfLink", DROP, "")

/* ---- PodSpec ---- */

FIELD_SAID("PodSpec", "activeDeadlineSeconds", PASS, "at most the pool's maxLifetime")
FIELD("PodSpec", "affinity", INSIDE, "Affinity")
FIELD("PodSpec", "automountServiceAccountToken", OWN,
      "false: the host mints no token; the tenant's comes in a Secret")
FIELD("PodSpec", "containers", INSIDE, "Container")
FIELD("PodSpec", "dnsConfig", REWRITE, "names resolve by the virtual cluster's DNS and domain")
FIELD("PodSpec", "dnsPolicy", REWRITE,
      "ClusterFirst is written out as dnsConfig of the virtual cluster's DNS")
FIELD("PodSpec", "enableServiceLinks", OWN, "false: variables of the tenant's Services are in env")
FIELD("PodSpec", "ephemeralContainers", INSIDE, "Container")
FIELD("PodSpec", "hostAliases", INSIDE, "HostAlias")
FIELD("PodSpec", "hostIPC", PRIVILEGED, "namespaces of the node need policy.podSecurity privileged")
FIELD("PodSpec", "hostNetwork", PRIVILEGED,
      "namespaces of the node need policy.podSecurity privileged")
FIELD("PodSpec", "hostPID", PRIVILEGED, "namespaces of the node need policy.podSecurity privileged")
FIELD("PodSpec", "hostUsers", PASS, "")
FIELD("PodSpec", "hostname", PASS, "without one, the name of the virtual pod")
FIELD("PodSpec", "hostnameOverride", PASS, "")
FIELD("PodSpec", "imagePullSecrets", INSIDE, "LocalObjectReference")
FIELD("PodSpec", "initContainers", INSIDE, "Container")
FIELD_SAID("PodSpec", "nodeName", MOVE,
           "becomes an affinity to the node, or with sync.nodes perPool the fence of its pool: the "
           "host's scheduler decides")
FIELD_SAID("PodSpec", "nodeSelector", PASS,
           "the node selector of the pool, or of policy.cpuNodes, is added")
FIELD("PodSpec", "os", INSIDE, "PodOS")
FIELD_SAID("PodSpec", "overhead", DROP, "the host's own runtime class has its overhead")
FIELD("PodSpec", "preemptionPolicy", DROP, "follows from the host's priority class")
FIELD("PodSpec", "priority", DROP, "follows from the host's priority class")
FIELD_SAID("PodSpec", "priorityClassName", REWRITE,
           "the host class that the pool's priorityTiers, sync.toHost.priorityClasses or "
           "sync.toHost.pods give; none without any")
FIELD("PodSpec", "readinessGates", INSIDE, "PodReadinessGate")
FIELD("PodSpec", "resourceClaims", REFUSE,
      "unless sync.toHost.resourceClaims is on: then the host names of its claims go down, those "
      "made "
      "of templates too")
FIELD("PodSpec", "resources", INSIDE, "ResourceRequirements")
FIELD("PodSpec", "restartPolicy", PASS, "")
FIELD_SAID(
    "PodSpec", "runtimeClassName", OWN,
    "the runtime class of the pool, or sync.toHost.pods.runtimeClassName; none without either")
FIELD_SAID("PodSpec", "schedulerName", REFUSE,
           "the scheduler of the pool, or the host's default, places it; another is refused")
FIELD_SAID("PodSpec", "schedulingGates", DROP,
           "the pod stays in the virtual cluster until they are gone")
FIELD("PodSpec", "schedulingGroup", REFUSE, "pod groups are not supported by this version")
FIELD("PodSpec", "securityContext", INSIDE, "PodSecurityContext")
FIELD("PodSpec", "serviceAccount", DROP, "")
FIELD("PodSpec", "serviceAccountName", OWN,
      "with sync.toHost.serviceAccounts the tenant's own on the host, else host.podServiceAccount; its "
      "token no pod gets")
FIELD_SAID("PodSpec", "setHostnameAsFQDN", DROP,
           "the kubelet would use the host's namespace and domain")
FIELD("PodSpec", "shareProcessNamespace", PASS, "")
FIELD_SAID("PodSpec", "subdomain", DROP,
           "the virtual cluster's DNS answers it; the kubelet would write the host's namespace and "
           "domain into /etc/hosts")
FIELD("PodSpec", "terminationGracePeriodSeconds", PASS, "")
FIELD("PodSpec", "tolerations", REWRITE,
      "those of the pool, and not-ready and unreachable with bounded seconds")
FIELD("PodSpec", "topologySpreadConstraints", INSIDE, "TopologySpreadConstraint")
FIELD("PodSpec", "volumes", INSIDE, "Volume")

FIELD("HostAlias", "hostnames", PASS, "the names of the tenant's API are added")
FIELD("HostAlias", "ip", PASS, "the address of the tenant's API is added")
FIELD("LocalObjectReference", "name", REWRITE, "the host name of the object")
FIELD("PodOS", "name", PASS, "")
FIELD("PodReadinessGate", "conditionType", PASS,
      "the condition goes down as the tenant sets it; types of Kubernetes' own are refused")

FIELD("TopologySpreadConstraint", "labelSelector", REWRITE,
      "narrowed to pods of the tenant's namespace")
FIELD("TopologySpreadConstraint", "matchLabelKeys", MOVE, "merged into labelSelector")
FIELD("TopologySpreadConstraint", "maxSkew", PASS, "")
FIELD("TopologySpreadConstraint", "minDomains", PASS, "")
FIELD("TopologySpreadConstraint", "nodeAffinityPolicy", PASS, "")
FIELD("TopologySpreadConstraint", "nodeTaintsPolicy", PASS, "")
FIELD("TopologySpreadConstraint", "topologyKey", PASS, "")
FIELD("TopologySpreadConstraint", "whenUnsatisfiable", PASS, "")

FIELD("PodSecurityContext", "appArmorProfile", INSIDE, "Profile")
FIELD("PodSecurityContext", "fsGroup", PASS, "")
FIELD("PodSecurityContext", "fsGroupChangePolicy", PASS, "")
FIELD("PodSecurityContext", "runAsGroup", PASS, "")
FIELD("PodSecurityContext", "runAsNonRoot", PASS, "")
FIELD("PodSecurityContext", "runAsUser", PASS, "")
FIELD("PodSecurityContext", "seLinuxChangePolicy", PASS, "")
FIELD("PodSecurityContext", "seLinuxOptions", INSIDE, "SELinuxOptions")
FIELD("PodSecurityContext", "seccompProfile", INSIDE, "Profile")
FIELD("PodSecurityContext", "supplementalGroups", PASS, "")
FIELD("PodSecurityContext", "supplementalGroupsPolicy", PASS, "")
FIELD("PodSecurityContext", "sysctls", INSIDE, "Sysctl")
FIELD("PodSecurityContext", "windowsOptions", INSIDE, "WindowsOptions")
FIELD("Sysctl", "name", PASS, "")
FIELD("Sysctl", "value", PASS, "")

/* ---- affinity ---- */

FIELD("Affinity", "nodeAffinity", INSIDE, "NodeAffinity")
FIELD("Affinity", "podAffinity", INSIDE, "PodAffinity")
FIELD("Affinity", "podAntiAffinity", INSIDE, "PodAffinity")
FIELD("NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", REWRITE,
      "the fence of the pool, or the one that keeps pods without devices off accelerators, is in "
      "every term")
FIELD("NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", INSIDE,
      "PreferredSchedulingTerm")
FIELD("PreferredSchedulingTerm", "preference", INSIDE, "NodeSelectorTerm")
FIELD("PreferredSchedulingTerm", "weight", PASS, "")
FIELD("NodeSelectorTerm", "matchExpressions", PASS, "products as the nodes of the pool spell them")
FIELD("NodeSelectorTerm", "matchFields", PASS, "")
FIELD("PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution", INSIDE,
      "WeightedPodAffinityTerm")
FIELD("PodAffinity", "requiredDuringSchedulingIgnoredDuringExecution", INSIDE, "PodAffinityTerm")
FIELD("WeightedPodAffinityTerm", "podAffinityTerm", INSIDE, "PodAffinityTerm")
FIELD("WeightedPodAffinityTerm", "weight", PASS, "")
FIELD("PodAffinityTerm", "labelSelector", REWRITE, "narrowed to pods of the tenant")
FIELD("PodAffinityTerm", "matchLabelKeys", MOVE, "merged into labelSelector")
FIELD("PodAffinityTerm", "mismatchLabelKeys", MOVE, "merged into labelSelector")
FIELD("PodAffinityTerm", "namespaceSelector", MOVE,
      "virtual namespaces are an expression of labelSelector")
FIELD("PodAffinityTerm", "namespaces", MOVE,
      "virtual namespaces are an expression of labelSelector")
FIELD("PodAffinityTerm", "topologyKey", PASS, "")

/* ---- containers ---- */

FIELD("Container", "args", PASS, "")
FIELD("Container", "command", PASS, "")
FIELD("Container", "env", INSIDE, "EnvVar")
FIELD("Container", "envFrom", INSIDE, "EnvFromSource")
FIELD("Container", "image", PASS,
      "or what sync.toHost.pods.translateImage has for it or its prefix; what a policy of the host "
      "makes of it stays until the tenant changes it")
FIELD("Container", "imagePullPolicy", PASS, "or Always, by policy.imagePullPolicy")
FIELD("Container", "lifecycle", INSIDE, "Lifecycle")
FIELD("Container", "livenessProbe", INSIDE, "Probe")
FIELD("Container", "name", PASS, "")
FIELD("Container", "ports", INSIDE, "ContainerPort")
FIELD("Container", "readinessProbe", INSIDE, "Probe")
FIELD("Container", "resizePolicy", INSIDE, "ContainerResizePolicy")
FIELD("Container", "resources", INSIDE, "ResourceRequirements")
FIELD("Container", "restartPolicy", PASS, "")
FIELD("Container", "restartPolicyRules", INSIDE, "ContainerRestartRule")
FIELD("Container", "securityContext", INSIDE, "SecurityContext")
FIELD("Container", "startupProbe", INSIDE, "Probe")
FIELD("Container", "stdin", PASS, "")
FIELD("Container", "stdinOnce", PASS, "")
FIELD("Container", "targetContainerName", PASS, "")
FIELD("Container", "terminationMessagePath", PASS, "")
FIELD("Container", "terminationMessagePolicy", PASS, "")
FIELD("Container", "tty", PASS, "")
FIELD("Container", "volumeDevices", INSIDE, "VolumeDevice")
FIELD("Container", "volumeMounts", INSIDE, "VolumeMount")
FIELD("Container", "workingDir", PASS, "")

FIELD("EnvVar", "name", PASS,
      "the variables of the tenant's API and Services are added; those that name devices are void")
FIELD("EnvVar", "value", PASS, "")
FIELD("EnvVar", "valueFrom", INSIDE, "EnvVarSource")
FIELD("EnvVarSource", "configMapKeyRef", INSIDE, "KeySelector")
FIELD("EnvVarSource", "fieldRef", MOVE,
      "what the virtual pod knows of itself is a literal value; addresses and the node stay a "
      "reference; with sync.nodes perPool the node is a literal and its address empty")
FIELD("EnvVarSource", "fileKeyRef", INSIDE, "FileKeySelector")
FIELD("EnvVarSource", "resourceFieldRef", INSIDE, "ResourceFieldSelector")
FIELD("EnvVarSource", "secretKeyRef", INSIDE, "KeySelector")
FIELD("KeySelector", "key", PASS, "")
FIELD("KeySelector", "name", REWRITE, "the host name of the object")
FIELD("KeySelector", "optional", PASS, "")
FIELD("FileKeySelector", "key", PASS, "")
FIELD("FileKeySelector", "optional", PASS, "")
FIELD("FileKeySelector", "path", PASS, "")
FIELD("FileKeySelector", "volumeName", PASS, "")
FIELD("ResourceFieldSelector", "containerName", PASS, "")
FIELD("ResourceFieldSelector", "divisor", PASS, "")
FIELD("ResourceFieldSelector", "resource", PASS, "")
FIELD("EnvFromSource", "configMapRef", INSIDE, "EnvSource")
FIELD("EnvFromSource", "prefix", PASS, "refused where it could name a variable that gives devices")
FIELD("EnvFromSource", "secretRef", INSIDE, "EnvSource")
FIELD("EnvSource", "name", REWRITE, "the host name of the object")
FIELD("EnvSource", "optional", PASS, "")

FIELD("Lifecycle", "postStart", INSIDE, "LifecycleHandler")
FIELD("Lifecycle", "preStop", INSIDE, "LifecycleHandler")
FIELD("Lifecycle", "stopSignal", PASS, "")
FIELD("LifecycleHandler", "exec", INSIDE, "ExecAction")
FIELD("LifecycleHandler", "httpGet", INSIDE, "HTTPGetAction")
FIELD("LifecycleHandler", "sleep", INSIDE, "SleepAction")
FIELD("LifecycleHandler", "tcpSocket", INSIDE, "TCPSocketAction")
FIELD("ExecAction", "command", PASS, "")
FIELD("HTTPGetAction", "host", PRIVILEGED,
      "the kubelet would send requests for the tenant to any address")
FIELD("HTTPGetAction", "httpHeaders", INSIDE, "HTTPHeader")
FIELD("HTTPGetAction", "path", PASS, "")
FIELD("HTTPGetAction", "port", PASS, "")
FIELD("HTTPGetAction", "scheme", PASS, "")
FIELD("HTTPHeader", "name", PASS, "")
FIELD("HTTPHeader", "value", PASS, "")
FIELD("SleepAction", "seconds", PASS, "")
FIELD("TCPSocketAction", "host", PRIVILEGED,
      "the kubelet would send requests for the tenant to any address")
FIELD("TCPSocketAction", "port", PASS, "")
FIELD("GRPCAction", "port", PASS, "")
FIELD("GRPCAction", "service", PASS, "")
FIELD("Probe", "exec", INSIDE, "ExecAction")
FIELD("Probe", "failureThreshold", PASS, "")
FIELD("Probe", "grpc", INSIDE, "GRPCAction")
FIELD("Probe", "httpGet", INSIDE, "HTTPGetAction")
FIELD("Probe", "initialDelaySeconds", PASS, "")
FIELD("Probe", "periodSeconds", PASS, "")
FIELD("Probe", "successThreshold", PASS, "")
FIELD("Probe", "tcpSocket", INSIDE, "TCPSocketAction")
FIELD("Probe", "terminationGracePeriodSeconds", PASS, "")
FIELD("Probe", "timeoutSeconds", PASS, "")

FIELD("ContainerPort", "containerPort", PASS, "")
FIELD_SAID("ContainerPort", "hostIP", PRIVILEGED,
           "ports of the node need policy.podSecurity privileged")
FIELD_SAID("ContainerPort", "hostPort", PRIVILEGED,
           "ports of the node need policy.podSecurity privileged")
FIELD("ContainerPort", "name", PASS, "")
FIELD("ContainerPort", "protocol", PASS, "")
FIELD("ContainerResizePolicy", "resourceName", PASS, "")
FIELD("ContainerResizePolicy", "restartPolicy", PASS, "")
FIELD("ResourceRequirements", "claims", REFUSE,
      "unless sync.toHost.resourceClaims is on: then those of containers go down, not of ephemeral "
      "ones")
FIELD("ResourceRequirements", "limits", PASS,
      "devices of the pool, by the names the host has for them")
FIELD("ResourceRequirements", "requests", PASS,
      "devices of the pool, by the names the host has for them")
FIELD("ContainerRestartRule", "action", PASS, "")
FIELD("ContainerRestartRule", "exitCodes", INSIDE, "ContainerRestartRuleOnExitCodes")
FIELD("ContainerRestartRuleOnExitCodes", "operator", PASS, "")
FIELD("ContainerRestartRuleOnExitCodes", "values", PASS, "")
FIELD("VolumeDevice", "devicePath", PASS, "")
FIELD("VolumeDevice", "name", PASS, "")
FIELD("VolumeMount", "mountPath", PASS, "refused where mounts give devices")
FIELD("VolumeMount", "mountPropagation", PRIVILEGED,
      "mounts that reach the node need policy.podSecurity privileged")
FIELD("VolumeMount", "name", PASS, "")
FIELD("VolumeMount", "readOnly", PASS, "")
FIELD("VolumeMount", "recursiveReadOnly", PASS, "")
FIELD("VolumeMount", "subPath", PASS, "")
FIELD("VolumeMount", "subPathExpr", PASS, "")

FIELD("SecurityContext", "allowPrivilegeEscalation", PASS, "")
FIELD("SecurityContext", "appArmorProfile", INSIDE, "Profile")
FIELD("SecurityContext", "capabilities", INSIDE, "Capabilities")
FIELD("SecurityContext", "privileged", PRIVILEGED,
      "privileged containers need policy.podSecurity privileged")
FIELD("SecurityContext", "procMount", PRIVILEGED,
      "an unmasked /proc needs policy.podSecurity privileged")
FIELD("SecurityContext", "readOnlyRootFilesystem", PASS, "")
FIELD("SecurityContext", "runAsGroup", PASS, "")
FIELD("SecurityContext", "runAsNonRoot", PASS, "")
FIELD("SecurityContext", "runAsUser", PASS, "")
FIELD("SecurityContext", "seLinuxOptions", INSIDE, "SELinuxOptions")
FIELD("SecurityContext", "seccompProfile", INSIDE, "Profile")
FIELD("SecurityContext", "windowsOptions", INSIDE, "WindowsOptions")
FIELD("Capabilities", "add", PASS, "those that policy.podSecurity permits")
FIELD("Capabilities", "drop", PASS, "")
FIELD_SAID("Profile", "localhostProfile", PRIVILEGED,
           "profiles of the node need policy.podSecurity privileged")
FIELD("Profile", "type", PASS, "those that policy.podSecurity permits")
FIELD("SELinuxOptions", "level", PASS, "")
FIELD("SELinuxOptions", "role", PRIVILEGED,
      "SELinux users and roles need policy.podSecurity privileged")
FIELD("SELinuxOptions", "type", PASS, "those that policy.podSecurity permits")
FIELD("SELinuxOptions", "user", PRIVILEGED,
      "SELinux users and roles need policy.podSecurity privileged")
FIELD_SAID("WindowsOptions", "gmsaCredentialSpec", PRIVILEGED,
           "credentials of the node need policy.podSecurity privileged")
FIELD_SAID("WindowsOptions", "gmsaCredentialSpecName", PRIVILEGED,
           "credentials of the node need policy.podSecurity privileged")
FIELD("WindowsOptions", "hostProcess", PRIVILEGED,
      "processes of the node need policy.podSecurity privileged")
FIELD("WindowsOptions", "runAsUserName", PASS, "")

/* ---- volumes ---- */

FIELD("Volume", "name", PASS, "")
FIELD("Volume", "awsElasticBlockStore", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "azureDisk", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "azureFile", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "cephfs", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "cinder", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "configMap", INSIDE, "ConfigMapVolumeSource")
FIELD("Volume", "csi", INSIDE, "CSIVolumeSource")
FIELD("Volume", "downwardAPI", INSIDE, "DownwardAPIVolumeSource")
FIELD("Volume", "emptyDir", INSIDE, "EmptyDirVolumeSource")
FIELD("Volume", "ephemeral", MOVE, "a claim: the virtual cluster's own controller makes it")
FIELD("Volume", "fc", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "flexVolume", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "flocker", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "gcePersistentDisk", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "gitRepo", REFUSE, "it runs programs on the node")
FIELD("Volume", "glusterfs", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "hostPath", INSIDE, "HostPathVolumeSource")
FIELD("Volume", "image", INSIDE, "ImageVolumeSource")
FIELD("Volume", "iscsi", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "nfs", INSIDE, "NFSVolumeSource")
FIELD("Volume", "persistentVolumeClaim", INSIDE, "ClaimVolumeSource")
FIELD("Volume", "photonPersistentDisk", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "portworxVolume", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "projected", INSIDE, "ProjectedVolumeSource")
FIELD("Volume", "quobyte", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "rbd", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "scaleIO", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "secret", INSIDE, "SecretVolumeSource")
FIELD("Volume", "storageos", REFUSE, "volumes of the host go by claims")
FIELD("Volume", "vsphereVolume", REFUSE, "volumes of the host go by claims")

FIELD("ConfigMapVolumeSource", "defaultMode", PASS, "")
FIELD("ConfigMapVolumeSource", "items", INSIDE, "KeyToPath")
FIELD("ConfigMapVolumeSource", "name", REWRITE, "the host name of the object")
FIELD("ConfigMapVolumeSource", "optional", PASS, "")
FIELD("KeyToPath", "key", PASS, "")
FIELD("KeyToPath", "mode", PASS, "")
FIELD("KeyToPath", "path", PASS, "")
FIELD("SecretVolumeSource", "defaultMode", PASS, "")
FIELD("SecretVolumeSource", "items", INSIDE, "KeyToPath")
FIELD("SecretVolumeSource", "optional", PASS, "")
FIELD("SecretVolumeSource", "secretName", REWRITE, "the host name of the object")
FIELD("EmptyDirVolumeSource", "medium", PASS, "")
FIELD("EmptyDirVolumeSource", "sizeLimit", PASS, "")
FIELD("ClaimVolumeSource", "claimName", REWRITE, "the host name of the object")
FIELD("ClaimVolumeSource", "readOnly", PASS, "")
FIELD("ImageVolumeSource", "pullPolicy", PASS, "or Always, by policy.imagePullPolicy")
FIELD("ImageVolumeSource", "reference", PASS,
      "or what sync.toHost.pods.translateImage has for it or its prefix")
FIELD("DownwardAPIVolumeSource", "defaultMode", PASS, "")
FIELD("DownwardAPIVolumeSource", "items", INSIDE, "DownwardAPIVolumeFile")
FIELD("DownwardAPIVolumeFile", "fieldRef", REWRITE,
      "annotations of the host pod hold what the virtual pod says of itself")
FIELD("DownwardAPIVolumeFile", "mode", PASS, "")
FIELD("DownwardAPIVolumeFile", "path", PASS, "")
FIELD("DownwardAPIVolumeFile", "resourceFieldRef", INSIDE, "ResourceFieldSelector")
FIELD("ProjectedVolumeSource", "defaultMode", PASS, "")
FIELD("ProjectedVolumeSource", "sources", INSIDE, "VolumeProjection")
FIELD("VolumeProjection", "clusterTrustBundle", REFUSE, "trust bundles would be the host's")
FIELD("VolumeProjection", "configMap", INSIDE, "ObjectProjection")
FIELD("VolumeProjection", "downwardAPI", INSIDE, "DownwardAPIProjection")
FIELD("VolumeProjection", "podCertificate", REFUSE, "certificates would be the host's")
FIELD("VolumeProjection", "secret", INSIDE, "ObjectProjection")
FIELD("VolumeProjection", "serviceAccountToken", MOVE,
      "the tenant's API issues the token, which a Secret carries")
FIELD("ObjectProjection", "items", INSIDE, "KeyToPath")
FIELD("ObjectProjection", "name", REWRITE, "the host name of the object")
FIELD("ObjectProjection", "optional", PASS, "")
FIELD("DownwardAPIProjection", "items", INSIDE, "DownwardAPIVolumeFile")
FIELD("HostPathVolumeSource", "path", PRIVILEGED,
      "paths of the node need policy.podSecurity privileged")
FIELD("HostPathVolumeSource", "type", PRIVILEGED,
      "paths of the node need policy.podSecurity privileged")
FIELD("NFSVolumeSource", "path", PRIVILEGED, "shares by address need policy.podSecurity privileged")
FIELD("NFSVolumeSource", "readOnly", PRIVILEGED,
      "shares by address need policy.podSecurity privileged")
FIELD("NFSVolumeSource", "server", PRIVILEGED,
      "shares by address need policy.podSecurity privileged")
FIELD("CSIVolumeSource", "driver", PRIVILEGED,
      "drivers of the host need policy.podSecurity privileged")
FIELD("CSIVolumeSource", "fsType", PRIVILEGED,
      "drivers of the host need policy.podSecurity privileged")
FIELD("CSIVolumeSource", "nodePublishSecretRef", PRIVILEGED,
      "drivers of the host need policy.podSecurity privileged; the host name of the Secret")
FIELD("CSIVolumeSource", "readOnly", PRIVILEGED,
      "drivers of the host need policy.podSecurity privileged")
FIELD("CSIVolumeSource", "volumeAttributes", PRIVILEGED,
      "drivers of the host need policy.podSecurity privileged")

/* ---- PodStatus ---- */

FIELD("PodStatus", "allocatedResources", UP, "devices by the tenant's names")
FIELD("PodStatus", "conditions", INSIDE, "PodCondition")
FIELD("PodStatus", "containerStatuses", INSIDE, "ContainerStatus")
FIELD("PodStatus", "ephemeralContainerStatuses", INSIDE, "ContainerStatus")
FIELD("PodStatus", "extendedResourceClaimStatus", UP_NONE, "names claims of the host")
FIELD("PodStatus", "hostIP", UP, "not with sync.nodes perPool, which shows no machine")
FIELD("PodStatus", "hostIPs", UP, "not with sync.nodes perPool")
FIELD("PodStatus", "initContainerStatuses", INSIDE, "ContainerStatus")
FIELD("PodStatus", "message", UP_REWRITE, "names of the host are written back")
FIELD("PodStatus", "nodeAllocatableResourceClaimStatuses", UP_NONE, "names claims of the host")
FIELD("PodStatus", "nominatedNodeName", UP_NONE,
      "a plan of the host's scheduler that may name a node of another tenant")
FIELD("PodStatus", "observedGeneration", UP_OWN, "the virtual generation it is of")
FIELD("PodStatus", "phase", UP, "")
FIELD("PodStatus", "podIP", UP, "")
FIELD("PodStatus", "podIPs", UP, "")
FIELD("PodStatus", "qosClass", UP_OWN, "computed from the virtual pod")
FIELD("PodStatus", "reason", UP, "")
FIELD("PodStatus", "resize", UP, "")
FIELD("PodStatus", "resourceClaimStatuses", UP_OWN, "claims are made of templates here")
FIELD("PodStatus", "resources", UP, "devices by the tenant's names")
FIELD("PodStatus", "startTime", UP, "")
FIELD("PodCondition", "lastProbeTime", UP, "")
FIELD("PodCondition", "lastTransitionTime", UP, "")
FIELD("PodCondition", "message", UP_REWRITE, "names of the host are written back")
FIELD("PodCondition", "observedGeneration", UP_OWN, "the virtual generation it is of")
FIELD("PodCondition", "reason", UP, "")
FIELD("PodCondition", "status", UP, "")
FIELD("PodCondition", "type", UP, "conditions of the tenant's own readiness gates stay")
FIELD("ContainerStatus", "allocatedResources", UP, "devices by the tenant's names")
FIELD("ContainerStatus", "allocatedResourcesStatus", UP_NONE, "names devices of the node")
FIELD("ContainerStatus", "containerID", UP, "")
FIELD("ContainerStatus", "image", UP, "")
FIELD("ContainerStatus", "imageID", UP, "")
FIELD("ContainerStatus", "lastState", INSIDE, "ContainerState")
FIELD("ContainerStatus", "name", UP, "containers that the host injected do not come up")
FIELD("ContainerStatus", "ready", UP, "")
FIELD("ContainerStatus", "resources", UP, "devices by the tenant's names")
FIELD("ContainerStatus", "restartCount", UP, "")
FIELD("ContainerStatus", "started", UP, "")
FIELD("ContainerStatus", "state", INSIDE, "ContainerState")
FIELD("ContainerStatus", "stopSignal", UP, "")
FIELD("ContainerStatus", "user", UP, "")
FIELD("ContainerStatus", "volumeMounts", UP, "")
FIELD("ContainerState", "running", UP, "")
FIELD("ContainerState", "terminated", INSIDE, "ContainerStateTerminated")
FIELD("ContainerState", "waiting", INSIDE, "ContainerStateWaiting")
FIELD("ContainerStateTerminated", "containerID", UP, "")
FIELD("ContainerStateTerminated", "exitCode", UP, "")
FIELD("ContainerStateTerminated", "finishedAt", UP, "")
FIELD("ContainerStateTerminated", "message", UP_REWRITE, "names of the host are written back")
FIELD("ContainerStateTerminated", "reason", UP, "")
FIELD("ContainerStateTerminated", "signal", UP, "")
FIELD("ContainerStateTerminated", "startedAt", UP, "")
FIELD("ContainerStateWaiting", "message", UP_REWRITE, "names of the host are written back")
FIELD("ContainerStateWaiting", "reason", UP, "")

/* ---- Services ---- */

FIELD("ServiceSpec", "allocateLoadBalancerNodePorts", PASS, "")
FIELD("ServiceSpec", "clusterIP", REFUSE, "the host allocates it; None is a headless Service")
FIELD("ServiceSpec", "clusterIPs", DROP, "the host allocates them")
FIELD("ServiceSpec", "externalIPs", REFUSE, "they take over other tenants' traffic")
FIELD("ServiceSpec", "externalName", DROP,
      "the virtual cluster's DNS answers it: no host Service is made")
FIELD("ServiceSpec", "externalTrafficPolicy", PASS, "")
FIELD("ServiceSpec", "healthCheckNodePort", REFUSE, "the host allocates it")
FIELD("ServiceSpec", "internalTrafficPolicy", PASS, "")
FIELD("ServiceSpec", "ipFamilies", PASS, "")
FIELD("ServiceSpec", "ipFamilyPolicy", PASS, "")
FIELD_SAID("ServiceSpec", "loadBalancerClass", DROP,
           "a class of the tenant's own controllers: the host gets a NodePort or ClusterIP Service")
FIELD("ServiceSpec", "loadBalancerIP", REFUSE, "the host chooses the address")
FIELD("ServiceSpec", "loadBalancerSourceRanges", PASS, "")
FIELD("ServiceSpec", "ports", INSIDE, "ServicePort")
FIELD("ServiceSpec", "publishNotReadyAddresses", PASS, "")
FIELD("ServiceSpec", "selector", REWRITE, "narrowed to pods of the tenant's namespace")
FIELD("ServiceSpec", "sessionAffinity", PASS, "")
FIELD("ServiceSpec", "sessionAffinityConfig", INSIDE, "SessionAffinityConfig")
FIELD("ServiceSpec", "trafficDistribution", PASS, "")
FIELD_SAID("ServiceSpec", "type", PASS,
           "with a loadBalancerClass the host gets a NodePort or ClusterIP Service")
FIELD("ServicePort", "appProtocol", PASS, "")
FIELD("ServicePort", "name", PASS, "")
FIELD("ServicePort", "nodePort", REFUSE, "the host allocates it")
FIELD("ServicePort", "port", PASS, "")
FIELD("ServicePort", "protocol", PASS, "")
FIELD("ServicePort", "targetPort", PASS, "")
FIELD("SessionAffinityConfig", "clientIP", INSIDE, "ClientIPConfig")
FIELD("ClientIPConfig", "timeoutSeconds", PASS, "")
FIELD("ServiceStatus", "conditions", UP, "")
FIELD("ServiceStatus", "loadBalancer", UP, "")

/* ---- claims ---- */

FIELD("PersistentVolumeClaimSpec", "accessModes", PASS, "")
FIELD("PersistentVolumeClaimSpec", "dataSource", INSIDE, "DataSource")
FIELD("PersistentVolumeClaimSpec", "dataSourceRef", INSIDE, "DataSource")
FIELD("PersistentVolumeClaimSpec", "resources", INSIDE, "VolumeResources")
FIELD("PersistentVolumeClaimSpec", "selector", REFUSE, "the volumes could be another tenant's")
FIELD("PersistentVolumeClaimSpec", "storageClassName", PASS,
      "one that is offered; the first of them where none is named; with sync.toHost.storageClasses one "
      "of the tenant's own by its name on the host")
FIELD("PersistentVolumeClaimSpec", "volumeAttributesClassName", REFUSE,
      "not supported by this version")
FIELD("PersistentVolumeClaimSpec", "volumeMode", PASS, "")
FIELD("PersistentVolumeClaimSpec", "volumeName", REFUSE,
      "the volume could be another tenant's; with sync.toHost.persistentVolumes one of the tenant's own "
      "goes down by its name on the host, without the class")
FIELD("DataSource", "apiGroup", REFUSE, "only a claim of the same namespace may be a source")
FIELD("DataSource", "kind", PASS, "only a claim of the same namespace may be a source")
FIELD("DataSource", "name", REWRITE, "the host name of the claim")
FIELD("DataSource", "namespace", REFUSE, "only a claim of the same namespace may be a source")
FIELD("VolumeResources", "limits", PASS, "")
FIELD("VolumeResources", "requests", PASS,
      "a size that the host grew stays until the tenant changes it")
FIELD("PersistentVolumeClaimStatus", "accessModes", UP, "")
FIELD("PersistentVolumeClaimStatus", "allocatedResourceStatuses", UP, "")
FIELD("PersistentVolumeClaimStatus", "allocatedResources", UP, "")
FIELD("PersistentVolumeClaimStatus", "capacity", UP, "")
FIELD("PersistentVolumeClaimStatus", "conditions", INSIDE, "PersistentVolumeClaimCondition")
FIELD("PersistentVolumeClaimStatus", "currentVolumeAttributesClassName", UP_NONE,
      "a class of the host")
FIELD("PersistentVolumeClaimStatus", "modifyVolumeStatus", UP_NONE, "names a class of the host")
FIELD("PersistentVolumeClaimStatus", "phase", UP, "")
FIELD("PersistentVolumeClaimCondition", "lastProbeTime", UP, "")
FIELD("PersistentVolumeClaimCondition", "lastTransitionTime", UP, "")
FIELD("PersistentVolumeClaimCondition", "message", UP_REWRITE, "names of the host are written back")
FIELD("PersistentVolumeClaimCondition", "reason", UP, "")
FIELD("PersistentVolumeClaimCondition", "status", UP, "")
FIELD("PersistentVolumeClaimCondition", "type", UP, "")
