/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The roles and bindings every cluster has, as data. Source:
 * plugin/pkg/auth/authorizer/rbac/bootstrappolicy of Kubernetes 1.36, as a fresh cluster shows it.
 * BOOTSTRAP_ROLE(kind, namespace, name, labels, aggregation, rules)
 *   labels "k=v;k=v" beside the bootstrapping one; aggregation: matchLabels likewise, or ""
 *   rules: one line each, "verbs|groups|resources|resourceNames|nonResourceURLs", lists by comma,
 * the core group is "-" BOOTSTRAP_BINDING(kind, namespace, name, role kind, role, subjects)
 *   subjects: "kind:namespace:name;..." with "-" for no namespace */
BOOTSTRAP_ROLE("ClusterRole", "", "admin", "", "rbac.authorization.k8s.io/aggregate-to-admin=true",
               "")
BOOTSTRAP_ROLE("ClusterRole", "", "cluster-admin", "", "",
               "*|*|*||\n"
               "*||||*\n")
BOOTSTRAP_ROLE("ClusterRole", "", "edit", "rbac.authorization.k8s.io/aggregate-to-admin=true",
               "rbac.authorization.k8s.io/aggregate-to-edit=true", "")
BOOTSTRAP_ROLE("ClusterRole", "", "system:aggregate-to-admin",
               "rbac.authorization.k8s.io/aggregate-to-admin=true", "",
               "create|authorization.k8s.io|localsubjectaccessreviews||\n"
               "create,delete,deletecollection,get,list,patch,update,watch|rbac.authorization.k8s."
               "io|rolebindings,roles||\n")
BOOTSTRAP_ROLE(
    "ClusterRole", "", "system:aggregate-to-edit",
    "rbac.authorization.k8s.io/aggregate-to-edit=true", "",
    "get,list,watch|-|pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy||\n"
    "impersonate|-|serviceaccounts||\n"
    "create,delete,deletecollection,patch,update|-|pods,pods/attach,pods/exec,pods/"
    "portforward,pods/proxy||\n"
    "create|-|pods/eviction||\n"
    "create,delete,deletecollection,patch,update|-|configmaps,persistentvolumeclaims,"
    "replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/"
    "proxy||\n"
    "create|-|serviceaccounts/token||\n"
    "create,delete,deletecollection,patch,update|-,events.k8s.io|events||\n"
    "create,delete,deletecollection,patch,update|apps|daemonsets,deployments,deployments/"
    "rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale||\n"
    "create,delete,deletecollection,patch,update|autoscaling|horizontalpodautoscalers||\n"
    "create,delete,deletecollection,patch,update|batch|cronjobs,jobs||\n"
    "create,delete,deletecollection,patch,update|extensions|daemonsets,deployments,deployments/"
    "rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/"
    "scale,replicationcontrollers/scale||\n"
    "create,delete,deletecollection,patch,update|policy|poddisruptionbudgets||\n"
    "create,delete,deletecollection,patch,update|networking.k8s.io|ingresses,networkpolicies||\n"
    "create,delete,deletecollection,get,list,patch,update,watch|coordination.k8s.io|leases||\n"
    "create,delete,deletecollection,patch,update|resource.k8s.io|resourceclaims,"
    "resourceclaimtemplates||\n")
BOOTSTRAP_ROLE(
    "ClusterRole", "", "system:aggregate-to-view",
    "rbac.authorization.k8s.io/aggregate-to-view=true", "",
    "get,list,watch|-|configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/"
    "status,pods,replicationcontrollers,replicationcontrollers/"
    "scale,serviceaccounts,services,services/status||\n"
    "get,list,watch|-|bindings,limitranges,namespaces/status,pods/log,pods/"
    "status,replicationcontrollers/status,resourcequotas,resourcequotas/status||\n"
    "get,list,watch|-|namespaces||\n"
    "get,list,watch|-,events.k8s.io|events||\n"
    "get,list,watch|discovery.k8s.io|endpointslices||\n"
    "get,list,watch|apps|controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/"
    "scale,deployments/status,replicasets,replicasets/scale,replicasets/"
    "status,statefulsets,statefulsets/scale,statefulsets/status||\n"
    "get,list,watch|autoscaling|horizontalpodautoscalers,horizontalpodautoscalers/status||\n"
    "get,list,watch|batch|cronjobs,cronjobs/status,jobs,jobs/status||\n"
    "get,list,watch|extensions|daemonsets,daemonsets/status,deployments,deployments/"
    "scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/"
    "scale,replicasets/status,replicationcontrollers/scale||\n"
    "get,list,watch|policy|poddisruptionbudgets,poddisruptionbudgets/status||\n"
    "get,list,watch|networking.k8s.io|ingresses,ingresses/status,networkpolicies||\n"
    "get,list,watch|resource.k8s.io|resourceclaims,resourceclaims/"
    "status,resourceclaimtemplates||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:auth-delegator", "", "",
               "create|authentication.k8s.io|tokenreviews||\n"
               "create|authorization.k8s.io|subjectaccessreviews||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:basic-user", "", "",
               "create|authorization.k8s.io|selfsubjectaccessreviews,selfsubjectrulesreviews||\n"
               "create|authentication.k8s.io|selfsubjectreviews||\n")
BOOTSTRAP_ROLE("ClusterRole", "",
               "system:certificates.k8s.io:certificatesigningrequests:nodeclient", "", "",
               "create|certificates.k8s.io|certificatesigningrequests/nodeclient||\n")
BOOTSTRAP_ROLE("ClusterRole", "",
               "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "", "",
               "create|certificates.k8s.io|certificatesigningrequests/selfnodeclient||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:certificates.k8s.io:kube-apiserver-client-approver", "",
               "", "approve|certificates.k8s.io|signers|kubernetes.io/kube-apiserver-client|\n")
BOOTSTRAP_ROLE("ClusterRole", "",
               "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", "", "",
               "approve|certificates.k8s.io|signers|kubernetes.io/kube-apiserver-client-kubelet|\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:certificates.k8s.io:kubelet-serving-approver", "", "",
               "approve|certificates.k8s.io|signers|kubernetes.io/kubelet-serving|\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:certificates.k8s.io:legacy-unknown-approver", "", "",
               "approve|certificates.k8s.io|signers|kubernetes.io/legacy-unknown|\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:attachdetach-controller", "", "",
               "list,watch|-|persistentvolumeclaims,persistentvolumes||\n"
               "get,list,watch|-|nodes||\n"
               "patch,update|-|nodes/status||\n"
               "list,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n"
               "create,delete,get,list,watch|storage.k8s.io|volumeattachments||\n"
               "get,list,watch|storage.k8s.io|csidrivers||\n"
               "get,list,watch|storage.k8s.io|csinodes||\n")
BOOTSTRAP_ROLE(
    "ClusterRole", "", "system:controller:certificate-controller", "", "",
    "delete,get,list,watch|certificates.k8s.io|certificatesigningrequests||\n"
    "update|certificates.k8s.io|certificatesigningrequests/approval,certificatesigningrequests/"
    "status||\n"
    "approve|certificates.k8s.io|signers|kubernetes.io/kube-apiserver-client-kubelet|\n"
    "sign|certificates.k8s.io|signers|kubernetes.io/kube-apiserver-client,kubernetes.io/"
    "kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown|\n"
    "create|authorization.k8s.io|subjectaccessreviews||\n"
    "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:clusterrole-aggregation-controller", "", "",
               "escalate,get,list,patch,update,watch|rbac.authorization.k8s.io|clusterroles||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:cronjob-controller", "", "",
               "get,list,update,watch|batch|cronjobs||\n"
               "create,delete,get,list,patch,update,watch|batch|jobs||\n"
               "update|batch|cronjobs/status||\n"
               "update|batch|cronjobs/finalizers||\n"
               "delete,list,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:daemon-set-controller", "", "",
               "get,list,watch|apps,extensions|daemonsets||\n"
               "update|apps,extensions|daemonsets/status||\n"
               "update|apps,extensions|daemonsets/finalizers||\n"
               "list,watch|-|nodes||\n"
               "create,delete,list,patch,watch|-|pods||\n"
               "create|-|pods/binding||\n"
               "create,delete,get,list,patch,update,watch|apps|controllerrevisions||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:deployment-controller", "", "",
               "get,list,update,watch|apps,extensions|deployments||\n"
               "update|apps,extensions|deployments/status||\n"
               "update|apps,extensions|deployments/finalizers||\n"
               "create,delete,get,list,patch,update,watch|apps,extensions|replicasets||\n"
               "get,list,update,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:device-taint-eviction-controller", "", "",
               "delete,get,list,watch|-|pods||\n"
               "patch,update|-|pods/status||\n"
               "get,list,watch|resource.k8s.io|resourceclaims||\n"
               "get,list,watch|resource.k8s.io|resourceslices||\n"
               "get,list,watch|resource.k8s.io|deviceclasses||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:disruption-controller", "", "",
               "get,list,watch|apps,extensions|deployments||\n"
               "get,list,watch|apps,extensions|replicasets||\n"
               "get,list,watch|-|replicationcontrollers||\n"
               "get,list,watch|policy|poddisruptionbudgets||\n"
               "get,list,watch|apps|statefulsets||\n"
               "update|policy|poddisruptionbudgets/status||\n"
               "patch,update|-|pods/status||\n"
               "get|*|*/scale||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:endpoint-controller", "", "",
               "get,list,watch|-|pods,services||\n"
               "create,delete,get,list,update,watch|-|endpoints||\n"
               "create|-|endpoints/restricted||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:endpointslice-controller", "", "",
               "get,list,watch|-|nodes,pods,services||\n"
               "update|-|services/finalizers||\n"
               "create,delete,get,list,update,watch|discovery.k8s.io|endpointslices||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:endpointslicemirroring-controller", "", "",
               "get,list,watch|-|endpoints,services||\n"
               "update|-|services/finalizers||\n"
               "update|-|endpoints/finalizers||\n"
               "create,delete,get,list,update,watch|discovery.k8s.io|endpointslices||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:ephemeral-volume-controller", "", "",
               "get,list,watch|-|pods||\n"
               "update|-|pods/finalizers||\n"
               "create,get,list,watch|-|persistentvolumeclaims||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:expand-controller", "", "",
               "get,list,patch,update,watch|-|persistentvolumes||\n"
               "patch,update|-|persistentvolumeclaims/status||\n"
               "get,list,watch|-|persistentvolumeclaims||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:generic-garbage-collector", "", "",
               "delete,get,list,patch,update,watch|*|*||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:horizontal-pod-autoscaler", "", "",
               "get,list,watch|autoscaling|horizontalpodautoscalers||\n"
               "update|autoscaling|horizontalpodautoscalers/status||\n"
               "get,update|*|*/scale||\n"
               "list,watch|-|pods||\n"
               "list,watch|metrics.k8s.io|pods||\n"
               "get,list,watch|custom.metrics.k8s.io|*||\n"
               "get,list,watch|external.metrics.k8s.io|*||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:job-controller", "", "",
               "get,list,patch,update,watch|batch|jobs||\n"
               "update|batch|jobs/status||\n"
               "update|batch|jobs/finalizers||\n"
               "create,delete,list,patch,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:legacy-service-account-token-cleaner", "", "",
               "get|-|configmaps|kube-apiserver-legacy-service-account-token-tracking|\n"
               "delete,patch|-|secrets||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:namespace-controller", "", "",
               "delete,get,list,watch|-|namespaces||\n"
               "update|-|namespaces/finalize,namespaces/status||\n"
               "delete,deletecollection,get,list,watch|*|*||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:node-controller", "", "",
               "delete,get,list,patch,update,watch|-|nodes||\n"
               "patch,update|-|nodes/status||\n"
               "patch,update|-|pods/status||\n"
               "delete,get,list,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:persistent-volume-binder", "", "",
               "create,delete,get,list,update,watch|-|persistentvolumes||\n"
               "update|-|persistentvolumes/status||\n"
               "get,list,update,watch|-|persistentvolumeclaims||\n"
               "update|-|persistentvolumeclaims/status||\n"
               "create,delete,get,list,watch|-|pods||\n"
               "get,list,watch|storage.k8s.io|storageclasses||\n"
               "list,watch|-|nodes||\n"
               "create,patch,update|-,events.k8s.io|events||\n"
               "watch|-|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:pod-garbage-collector", "", "",
               "delete,list,watch|-|pods||\n"
               "get,list,watch|-|nodes||\n"
               "patch|-|pods/status||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:pv-protection-controller", "", "",
               "get,list,update,watch|-|persistentvolumes||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:pvc-protection-controller", "", "",
               "get,list,update,watch|-|persistentvolumeclaims||\n"
               "update|-|persistentvolumeclaims/status||\n"
               "get,list,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:replicaset-controller", "", "",
               "get,list,update,watch|apps,extensions|replicasets||\n"
               "update|apps,extensions|replicasets/status||\n"
               "update|apps,extensions|replicasets/finalizers||\n"
               "create,delete,list,patch,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:replication-controller", "", "",
               "get,list,update,watch|-|replicationcontrollers||\n"
               "update|-|replicationcontrollers/status||\n"
               "update|-|replicationcontrollers/finalizers||\n"
               "create,delete,list,patch,watch|-|pods||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:resource-claim-controller", "", "",
               "get,list,watch|-|pods||\n"
               "update|-|pods/finalizers||\n"
               "create,delete,get,list,watch|resource.k8s.io|resourceclaims||\n"
               "patch,update|resource.k8s.io|resourceclaims,resourceclaims/status||\n"
               "patch,update|-|pods/status||\n"
               "create,patch,update|-,events.k8s.io|events||\n"
               "patch,update|resource.k8s.io|resourceclaims/binding||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:resourcequota-controller", "", "",
               "list,watch|*|*||\n"
               "update|-|resourcequotas/status||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:root-ca-cert-publisher", "", "",
               "create,update|-|configmaps||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:route-controller", "", "",
               "list,watch|-|nodes||\n"
               "patch|-|nodes/status||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:selinux-warning-controller", "", "",
               "create,patch,update|-,events.k8s.io|events||\n"
               "get,list,watch|-|persistentvolumes||\n"
               "get,list,watch|-|persistentvolumeclaims||\n"
               "get,list,watch|-|pods||\n"
               "get,list,watch|storage.k8s.io|csidrivers||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:service-account-controller", "", "",
               "create|-|serviceaccounts||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:service-cidrs-controller", "", "",
               "get,list,patch,update,watch|networking.k8s.io|servicecidrs||\n"
               "patch,update|networking.k8s.io|servicecidrs/finalizers||\n"
               "patch,update|networking.k8s.io|servicecidrs/status||\n"
               "get,list,watch|networking.k8s.io|ipaddresses||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:service-controller", "", "",
               "get,list,watch|-|services||\n"
               "patch,update|-|services/status||\n"
               "list,watch|-|nodes||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:statefulset-controller", "", "",
               "list,watch|-|pods||\n"
               "get,list,watch|apps|statefulsets||\n"
               "update|apps|statefulsets/status||\n"
               "update|apps|statefulsets/finalizers||\n"
               "create,delete,get,patch,update|-|pods||\n"
               "create,delete,get,list,patch,update,watch|apps|controllerrevisions||\n"
               "create,get,list,watch|-|persistentvolumeclaims||\n"
               "delete,update|-|persistentvolumeclaims||\n"
               "update|-|pods/finalizers||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:ttl-after-finished-controller", "", "",
               "delete,get,list,watch|batch|jobs||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:ttl-controller", "", "",
               "list,patch,update,watch|-|nodes||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE(
    "ClusterRole", "", "system:controller:validatingadmissionpolicy-status-controller", "", "",
    "get,list,watch|admissionregistration.k8s.io|validatingadmissionpolicies||\n"
    "get,patch,update|admissionregistration.k8s.io|validatingadmissionpolicies/status||\n"
    "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:controller:volumeattributesclass-protection-controller",
               "", "",
               "get,list,watch|-|persistentvolumeclaims||\n"
               "get,list,watch|-|persistentvolumes||\n"
               "get,list,update,watch|storage.k8s.io|volumeattributesclasses||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:discovery", "", "",
               "get||||/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/"
               "version,/version/\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:heapster", "", "",
               "get,list,watch|-|events,namespaces,nodes,pods||\n"
               "get,list,watch|extensions|deployments||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:kube-aggregator", "", "",
               "get,list,watch|-|endpoints,services||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:kube-controller-manager", "", "",
               "create,patch,update|-,events.k8s.io|events||\n"
               "create|coordination.k8s.io|leases||\n"
               "get,update|coordination.k8s.io|leases|kube-controller-manager|\n"
               "create|-|secrets,serviceaccounts||\n"
               "delete|-|secrets||\n"
               "get|-|configmaps,namespaces,secrets,serviceaccounts||\n"
               "update|-|secrets,serviceaccounts||\n"
               "create|authentication.k8s.io|tokenreviews||\n"
               "create|authorization.k8s.io|subjectaccessreviews||\n"
               "list,watch|*|*||\n"
               "create|-|serviceaccounts/token||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:kube-dns", "", "", "list,watch|-|endpoints,services||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:kube-scheduler", "", "",
               "create,patch,update|-,events.k8s.io|events||\n"
               "create|coordination.k8s.io|leases||\n"
               "get,list,update,watch|coordination.k8s.io|leases|kube-scheduler|\n"
               "create,delete,deletecollection,get,list,patch,update,watch|coordination.k8s.io|"
               "leasecandidates||\n"
               "get,list,watch|-|nodes||\n"
               "delete,get,list,watch|-|pods||\n"
               "create|-|bindings,pods/binding||\n"
               "patch,update|-|pods/status||\n"
               "get,list,watch|-|replicationcontrollers,services||\n"
               "get,list,watch|apps,extensions|replicasets||\n"
               "get,list,watch|apps|statefulsets||\n"
               "get,list,watch|policy|poddisruptionbudgets||\n"
               "get,list,watch|-|persistentvolumeclaims,persistentvolumes||\n"
               "create|authentication.k8s.io|tokenreviews||\n"
               "create|authorization.k8s.io|subjectaccessreviews||\n"
               "get,list,watch|storage.k8s.io|csinodes||\n"
               "get,list,watch|storage.k8s.io|volumeattachments||\n"
               "get,list,watch|-|namespaces||\n"
               "get,list,watch|storage.k8s.io|csidrivers||\n"
               "get,list,watch|storage.k8s.io|csistoragecapacities||\n"
               "get,list,watch|resource.k8s.io|deviceclasses||\n"
               "get,list,patch,update,watch|resource.k8s.io|resourceclaims||\n"
               "get,list,patch,update,watch|resource.k8s.io|resourceclaims/status||\n"
               "update|-|pods/finalizers||\n"
               "get,list,watch|resource.k8s.io|resourceslices||\n"
               "create,delete|resource.k8s.io|resourceclaims||\n"
               "patch,update|resource.k8s.io|resourceclaims/binding||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:kubelet-api-admin", "", "",
               "get,list,watch|-|nodes||\n"
               "proxy|-|nodes||\n"
               "*|-|nodes/log,nodes/metrics,nodes/proxy,nodes/stats||\n"
               "*|-|nodes/configz,nodes/healthz,nodes/pods||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:monitoring", "", "",
               "get||||/flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/"
               "readyz/*,/statusz\n"
               "get|-|nodes/metrics||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:node", "", "",
               "create|authentication.k8s.io|tokenreviews||\n"
               "create|authorization.k8s.io|localsubjectaccessreviews,subjectaccessreviews||\n"
               "get,list,watch|-|services||\n"
               "create,get,list,watch|-|nodes||\n"
               "patch,update|-|nodes/status||\n"
               "patch,update|-|nodes||\n"
               "create,patch,update|-,events.k8s.io|events||\n"
               "get,list,watch|-|pods||\n"
               "create,delete|-|pods||\n"
               "patch,update|-|pods/status||\n"
               "create|-|pods/eviction||\n"
               "get,list,watch|-|configmaps,secrets||\n"
               "get|-|persistentvolumeclaims,persistentvolumes||\n"
               "get|-|endpoints||\n"
               "create,get,list,watch|certificates.k8s.io|certificatesigningrequests||\n"
               "create,delete,get,patch,update|coordination.k8s.io|leases||\n"
               "get|storage.k8s.io|volumeattachments||\n"
               "create|-|serviceaccounts/token||\n"
               "get,patch,update|-|persistentvolumeclaims/status||\n"
               "get,list,watch|storage.k8s.io|csidrivers||\n"
               "create,delete,get,patch,update|storage.k8s.io|csinodes||\n"
               "get,list,watch|node.k8s.io|runtimeclasses||\n"
               "get|resource.k8s.io|resourceclaims||\n"
               "deletecollection|resource.k8s.io|resourceslices||\n"
               "get|-|serviceaccounts||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:node-bootstrapper", "", "",
               "create,get,list,watch|certificates.k8s.io|certificatesigningrequests||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:node-problem-detector", "", "",
               "get|-|nodes||\n"
               "patch|-|nodes/status||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:node-proxier", "", "",
               "list,watch|-|endpoints,services||\n"
               "get,list,watch|-|nodes||\n"
               "create,patch,update|-,events.k8s.io|events||\n"
               "list,watch|networking.k8s.io|servicecidrs||\n"
               "list,watch|discovery.k8s.io|endpointslices||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:persistent-volume-provisioner", "", "",
               "create,delete,get,list,watch|-|persistentvolumes||\n"
               "get,list,update,watch|-|persistentvolumeclaims||\n"
               "get,list,watch|storage.k8s.io|storageclasses||\n"
               "watch|-|events||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:public-info-viewer", "", "",
               "get||||/healthz,/livez,/readyz,/version,/version/\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:service-account-issuer-discovery", "", "",
               "get||||/.well-known/openid-configuration,/.well-known/openid-configuration/,/"
               "openid/v1/jwks,/openid/v1/jwks/\n")
BOOTSTRAP_ROLE("ClusterRole", "", "system:volume-scheduler", "", "",
               "get,list,patch,update,watch|-|persistentvolumes||\n"
               "get,list,watch|storage.k8s.io|storageclasses||\n"
               "get,list,patch,update,watch|-|persistentvolumeclaims||\n")
BOOTSTRAP_ROLE("ClusterRole", "", "view", "rbac.authorization.k8s.io/aggregate-to-edit=true",
               "rbac.authorization.k8s.io/aggregate-to-view=true", "")
/* Sublet's own: upstream's view role, and with it edit and admin, reads the usage of GPUs. */
BOOTSTRAP_ROLE("ClusterRole", "", "sublet:aggregate-gpu-usage-to-view",
               "rbac.authorization.k8s.io/aggregate-to-view=true", "",
               "get,list,watch|sublet.dev|clustergpuusages,gpuusages||\n")
BOOTSTRAP_ROLE("Role", "kube-public", "system:controller:bootstrap-signer", "", "",
               "get,list,watch|-|configmaps||\n"
               "update|-|configmaps|cluster-info|\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_ROLE("Role", "kube-system", "extension-apiserver-authentication-reader", "", "",
               "get,list,watch|-|configmaps|extension-apiserver-authentication|\n")
BOOTSTRAP_ROLE("Role", "kube-system", "system::leader-locking-kube-controller-manager", "", "",
               "create,get,list,update,watch|coordination.k8s.io|leases||\n"
               "create,get,list,update,watch|coordination.k8s.io|leasecandidates||\n")
BOOTSTRAP_ROLE("Role", "kube-system", "system::leader-locking-kube-scheduler", "", "",
               "create,get,list,update,watch|coordination.k8s.io|leases||\n"
               "create,get,list,update,watch|coordination.k8s.io|leasecandidates||\n")
BOOTSTRAP_ROLE("Role", "kube-system", "system:controller:bootstrap-signer", "", "",
               "get,list,watch|-|secrets||\n")
BOOTSTRAP_ROLE("Role", "kube-system", "system:controller:cloud-provider", "", "",
               "create,get,list,watch|-|configmaps||\n")
BOOTSTRAP_ROLE("Role", "kube-system", "system:controller:token-cleaner", "", "",
               "delete,get,list,watch|-|secrets||\n"
               "create,patch,update|-,events.k8s.io|events||\n")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "cluster-admin", "ClusterRole", "cluster-admin",
                  "Group:-:system:masters")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:basic-user", "ClusterRole", "system:basic-user",
                  "Group:-:system:authenticated")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:attachdetach-controller",
                  "ClusterRole", "system:controller:attachdetach-controller",
                  "ServiceAccount:kube-system:attachdetach-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:certificate-controller",
                  "ClusterRole", "system:controller:certificate-controller",
                  "ServiceAccount:kube-system:certificate-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:clusterrole-aggregation-controller",
                  "ClusterRole", "system:controller:clusterrole-aggregation-controller",
                  "ServiceAccount:kube-system:clusterrole-aggregation-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:cronjob-controller", "ClusterRole",
                  "system:controller:cronjob-controller",
                  "ServiceAccount:kube-system:cronjob-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:daemon-set-controller",
                  "ClusterRole", "system:controller:daemon-set-controller",
                  "ServiceAccount:kube-system:daemon-set-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:deployment-controller",
                  "ClusterRole", "system:controller:deployment-controller",
                  "ServiceAccount:kube-system:deployment-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:device-taint-eviction-controller",
                  "ClusterRole", "system:controller:device-taint-eviction-controller",
                  "ServiceAccount:kube-system:device-taint-eviction-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:disruption-controller",
                  "ClusterRole", "system:controller:disruption-controller",
                  "ServiceAccount:kube-system:disruption-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:endpoint-controller", "ClusterRole",
                  "system:controller:endpoint-controller",
                  "ServiceAccount:kube-system:endpoint-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:endpointslice-controller",
                  "ClusterRole", "system:controller:endpointslice-controller",
                  "ServiceAccount:kube-system:endpointslice-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:endpointslicemirroring-controller",
                  "ClusterRole", "system:controller:endpointslicemirroring-controller",
                  "ServiceAccount:kube-system:endpointslicemirroring-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:ephemeral-volume-controller",
                  "ClusterRole", "system:controller:ephemeral-volume-controller",
                  "ServiceAccount:kube-system:ephemeral-volume-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:expand-controller", "ClusterRole",
                  "system:controller:expand-controller",
                  "ServiceAccount:kube-system:expand-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:generic-garbage-collector",
                  "ClusterRole", "system:controller:generic-garbage-collector",
                  "ServiceAccount:kube-system:generic-garbage-collector")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:horizontal-pod-autoscaler",
                  "ClusterRole", "system:controller:horizontal-pod-autoscaler",
                  "ServiceAccount:kube-system:horizontal-pod-autoscaler")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:job-controller", "ClusterRole",
                  "system:controller:job-controller", "ServiceAccount:kube-system:job-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "",
                  "system:controller:legacy-service-account-token-cleaner", "ClusterRole",
                  "system:controller:legacy-service-account-token-cleaner",
                  "ServiceAccount:kube-system:legacy-service-account-token-cleaner")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:namespace-controller", "ClusterRole",
                  "system:controller:namespace-controller",
                  "ServiceAccount:kube-system:namespace-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:node-controller", "ClusterRole",
                  "system:controller:node-controller", "ServiceAccount:kube-system:node-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:persistent-volume-binder",
                  "ClusterRole", "system:controller:persistent-volume-binder",
                  "ServiceAccount:kube-system:persistent-volume-binder")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:pod-garbage-collector",
                  "ClusterRole", "system:controller:pod-garbage-collector",
                  "ServiceAccount:kube-system:pod-garbage-collector")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:pv-protection-controller",
                  "ClusterRole", "system:controller:pv-protection-controller",
                  "ServiceAccount:kube-system:pv-protection-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:pvc-protection-controller",
                  "ClusterRole", "system:controller:pvc-protection-controller",
                  "ServiceAccount:kube-system:pvc-protection-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:replicaset-controller",
                  "ClusterRole", "system:controller:replicaset-controller",
                  "ServiceAccount:kube-system:replicaset-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:replication-controller",
                  "ClusterRole", "system:controller:replication-controller",
                  "ServiceAccount:kube-system:replication-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:resource-claim-controller",
                  "ClusterRole", "system:controller:resource-claim-controller",
                  "ServiceAccount:kube-system:resource-claim-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:resourcequota-controller",
                  "ClusterRole", "system:controller:resourcequota-controller",
                  "ServiceAccount:kube-system:resourcequota-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:root-ca-cert-publisher",
                  "ClusterRole", "system:controller:root-ca-cert-publisher",
                  "ServiceAccount:kube-system:root-ca-cert-publisher")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:route-controller", "ClusterRole",
                  "system:controller:route-controller",
                  "ServiceAccount:kube-system:route-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:selinux-warning-controller",
                  "ClusterRole", "system:controller:selinux-warning-controller",
                  "ServiceAccount:kube-system:selinux-warning-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:service-account-controller",
                  "ClusterRole", "system:controller:service-account-controller",
                  "ServiceAccount:kube-system:service-account-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:service-cidrs-controller",
                  "ClusterRole", "system:controller:service-cidrs-controller",
                  "ServiceAccount:kube-system:service-cidrs-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:service-controller", "ClusterRole",
                  "system:controller:service-controller",
                  "ServiceAccount:kube-system:service-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:statefulset-controller",
                  "ClusterRole", "system:controller:statefulset-controller",
                  "ServiceAccount:kube-system:statefulset-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:ttl-after-finished-controller",
                  "ClusterRole", "system:controller:ttl-after-finished-controller",
                  "ServiceAccount:kube-system:ttl-after-finished-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:controller:ttl-controller", "ClusterRole",
                  "system:controller:ttl-controller", "ServiceAccount:kube-system:ttl-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "",
                  "system:controller:validatingadmissionpolicy-status-controller", "ClusterRole",
                  "system:controller:validatingadmissionpolicy-status-controller",
                  "ServiceAccount:kube-system:validatingadmissionpolicy-status-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "",
                  "system:controller:volumeattributesclass-protection-controller", "ClusterRole",
                  "system:controller:volumeattributesclass-protection-controller",
                  "ServiceAccount:kube-system:volumeattributesclass-protection-controller")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:discovery", "ClusterRole", "system:discovery",
                  "Group:-:system:authenticated")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:kube-controller-manager", "ClusterRole",
                  "system:kube-controller-manager", "User:-:system:kube-controller-manager")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:kube-dns", "ClusterRole", "system:kube-dns",
                  "ServiceAccount:kube-system:kube-dns")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:kube-scheduler", "ClusterRole",
                  "system:kube-scheduler", "User:-:system:kube-scheduler")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:monitoring", "ClusterRole", "system:monitoring",
                  "Group:-:system:monitoring")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:node", "ClusterRole", "system:node", "")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:node-proxier", "ClusterRole",
                  "system:node-proxier", "User:-:system:kube-proxy")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:public-info-viewer", "ClusterRole",
                  "system:public-info-viewer",
                  "Group:-:system:authenticated;Group:-:system:unauthenticated")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:service-account-issuer-discovery",
                  "ClusterRole", "system:service-account-issuer-discovery",
                  "Group:-:system:serviceaccounts")
BOOTSTRAP_BINDING("ClusterRoleBinding", "", "system:volume-scheduler", "ClusterRole",
                  "system:volume-scheduler", "User:-:system:kube-scheduler")
BOOTSTRAP_BINDING("RoleBinding", "kube-public", "system:controller:bootstrap-signer", "Role",
                  "system:controller:bootstrap-signer",
                  "ServiceAccount:kube-system:bootstrap-signer")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system::extension-apiserver-authentication-reader",
                  "Role", "extension-apiserver-authentication-reader",
                  "User:-:system:kube-controller-manager;User:-:system:kube-scheduler")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system::leader-locking-kube-controller-manager",
                  "Role", "system::leader-locking-kube-controller-manager",
                  "User:-:system:kube-controller-manager;ServiceAccount:kube-system:kube-"
                  "controller-manager;ServiceAccount:kube-system:leader-election-controller")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system::leader-locking-kube-scheduler", "Role",
                  "system::leader-locking-kube-scheduler",
                  "User:-:system:kube-scheduler;ServiceAccount:kube-system:kube-scheduler")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system:controller:bootstrap-signer", "Role",
                  "system:controller:bootstrap-signer",
                  "ServiceAccount:kube-system:bootstrap-signer")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system:controller:cloud-provider", "Role",
                  "system:controller:cloud-provider", "ServiceAccount:kube-system:cloud-provider")
BOOTSTRAP_BINDING("RoleBinding", "kube-system", "system:controller:token-cleaner", "Role",
                  "system:controller:token-cleaner", "ServiceAccount:kube-system:token-cleaner")
