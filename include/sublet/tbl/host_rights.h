/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * Every right the syncer uses on the host; `sublet check --host` checks each, and a test compares
 * the chart's Role and ClusterRole with it.
 *
 * HOST_RIGHT(scope, need, group, resource, verbs, without)
 *   scope    NAMESPACE (in host.namespace) or CLUSTER
 *   need     REQUIRED; else OPTIONAL, and `without` says what a tenant lacks without it */
HOST_RIGHT(NAMESPACE, REQUIRED, "", "pods", "get,list,watch,create,patch,delete", "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "configmaps", "get,list,watch,create,patch,delete", "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "secrets", "get,list,watch,create,patch,delete", "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "services", "get,list,watch,create,patch,delete", "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "persistentvolumeclaims", "get,list,watch,create,patch,delete",
           "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "pods/ephemeralcontainers", "patch", "")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "pods/resize", "patch", "")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/status", "patch",
           "pods with readiness gates of tenants are never ready")
HOST_RIGHT(NAMESPACE, REQUIRED, "", "events", "list,watch", "")
HOST_RIGHT(NAMESPACE, OPTIONAL, "coordination.k8s.io", "leases", "get,create,update",
           "two processes of this virtual cluster are not kept apart")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/log", "get", "tenants cannot read logs")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/exec", "get,create", "tenants cannot run exec")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/attach", "get,create", "tenants cannot attach")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/portforward", "get,create", "tenants cannot forward ports")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "pods/proxy", "get,create,update,patch,delete",
           "tenants cannot use the proxy to pods")
HOST_RIGHT(NAMESPACE, OPTIONAL, "", "services/proxy", "get,create,update,patch,delete",
           "tenants cannot use the proxy to services")
HOST_RIGHT(CLUSTER, OPTIONAL, "", "nodes", "list,watch",
           "tenants see the nodes of their pods by name only")
HOST_RIGHT(CLUSTER, OPTIONAL, "storage.k8s.io", "storageclasses", "list,watch",
           "tenants see the offered storage classes by name only")
HOST_RIGHT(CLUSTER, OPTIONAL, "scheduling.k8s.io", "priorityclasses", "list,watch",
           "priority tiers of pools have no value in tenants' pods")
