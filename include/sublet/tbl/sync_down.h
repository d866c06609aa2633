/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Kinds that `sync.toHost.<key>` adds to what always goes down to the host. Custom resources have
 * no row: the configuration names them. Objects of scope CLUSTER have no namespace on either side.
 *
 * SYNC_DOWN(id, key, group, version, plural, scope) */
SYNC_DOWN(NETWORK_POLICIES, "networkPolicies", "networking.k8s.io", "v1", "networkpolicies", NAMESPACE)
SYNC_DOWN(INGRESSES, "ingresses", "networking.k8s.io", "v1", "ingresses", NAMESPACE)
SYNC_DOWN(DISRUPTION_BUDGETS, "podDisruptionBudgets", "policy", "v1", "poddisruptionbudgets", NAMESPACE)
SYNC_DOWN(ENDPOINT_SLICES, "endpointSlices", "discovery.k8s.io", "v1", "endpointslices", NAMESPACE)
SYNC_DOWN(GATEWAYS, "gateways", "gateway.networking.k8s.io", "v1", "gateways", NAMESPACE)
SYNC_DOWN(HTTP_ROUTES, "httpRoutes", "gateway.networking.k8s.io", "v1", "httproutes", NAMESPACE)
SYNC_DOWN(GRPC_ROUTES, "grpcRoutes", "gateway.networking.k8s.io", "v1", "grpcroutes", NAMESPACE)
SYNC_DOWN(TLS_ROUTES, "tlsRoutes", "gateway.networking.k8s.io", "v1", "tlsroutes", NAMESPACE)
SYNC_DOWN(BACKEND_TLS, "backendTLSPolicies", "gateway.networking.k8s.io", "v1",
          "backendtlspolicies", NAMESPACE)
SYNC_DOWN(RESOURCE_CLAIMS, "resourceClaims", "resource.k8s.io", "v1", "resourceclaims", NAMESPACE)
SYNC_DOWN(SERVICE_ACCOUNTS, "serviceAccounts", "", "v1", "serviceaccounts", NAMESPACE)
SYNC_DOWN(STORAGE_CLASSES, "storageClasses", "storage.k8s.io", "v1", "storageclasses", CLUSTER)
SYNC_DOWN(VOLUMES, "persistentVolumes", "", "v1", "persistentvolumes", CLUSTER)
