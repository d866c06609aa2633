/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Kinds that `sync.toHost.<key>` adds to what always goes down to the host. Custom resources have
 * no row: the configuration names them.
 *
 * SYNC_DOWN(id, key, group, version, plural) */
SYNC_DOWN(NETWORK_POLICIES, "networkPolicies", "networking.k8s.io", "v1", "networkpolicies")
SYNC_DOWN(INGRESSES, "ingresses", "networking.k8s.io", "v1", "ingresses")
SYNC_DOWN(DISRUPTION_BUDGETS, "podDisruptionBudgets", "policy", "v1", "poddisruptionbudgets")
SYNC_DOWN(ENDPOINT_SLICES, "endpointSlices", "discovery.k8s.io", "v1", "endpointslices")
SYNC_DOWN(GATEWAYS, "gateways", "gateway.networking.k8s.io", "v1", "gateways")
SYNC_DOWN(HTTP_ROUTES, "httpRoutes", "gateway.networking.k8s.io", "v1", "httproutes")
SYNC_DOWN(GRPC_ROUTES, "grpcRoutes", "gateway.networking.k8s.io", "v1", "grpcroutes")
SYNC_DOWN(TLS_ROUTES, "tlsRoutes", "gateway.networking.k8s.io", "v1", "tlsroutes")
SYNC_DOWN(BACKEND_TLS, "backendTLSPolicies", "gateway.networking.k8s.io", "v1",
          "backendtlspolicies")
SYNC_DOWN(RESOURCE_CLAIMS, "resourceClaims", "resource.k8s.io", "v1", "resourceclaims")
