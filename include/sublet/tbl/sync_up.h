/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Kinds of the host that `sync.fromHost.<key>` shows. Custom resources have no row: the
 * configuration names them.
 *
 * SYNC_UP(id, key, group, version, plural, read)
 *   read   where they are read: CLUSTER, or NAMESPACE: in those of mappings.byName */
SYNC_UP(INGRESS_CLASSES, "ingressClasses", "networking.k8s.io", "v1", "ingressclasses", CLUSTER)
SYNC_UP(RUNTIME_CLASSES, "runtimeClasses", "node.k8s.io", "v1", "runtimeclasses", CLUSTER)
SYNC_UP(PRIORITY_CLASSES, "priorityClasses", "scheduling.k8s.io", "v1", "priorityclasses", CLUSTER)
SYNC_UP(STORAGE_CLASSES, "storageClasses", "storage.k8s.io", "v1", "storageclasses", CLUSTER)
SYNC_UP(DEVICE_CLASSES, "deviceClasses", "resource.k8s.io", "v1", "deviceclasses", CLUSTER)
SYNC_UP(GATEWAY_CLASSES, "gatewayClasses", "gateway.networking.k8s.io", "v1", "gatewayclasses",
        CLUSTER)
SYNC_UP(GATEWAYS, "gateways", "gateway.networking.k8s.io", "v1", "gateways", NAMESPACE)
SYNC_UP(CSI_DRIVERS, "csiDrivers", "storage.k8s.io", "v1", "csidrivers", CLUSTER)
SYNC_UP(CSI_NODES, "csiNodes", "storage.k8s.io", "v1", "csinodes", CLUSTER)
SYNC_UP(CSI_STORAGE_CAPACITIES, "csiStorageCapacities", "storage.k8s.io", "v1",
        "csistoragecapacities", CLUSTER)
SYNC_UP(CONFIG_MAPS, "configMaps", "", "v1", "configmaps", NAMESPACE)
SYNC_UP(SECRETS, "secrets", "", "v1", "secrets", NAMESPACE)
SYNC_UP(SERVICES, "services", "", "v1", "services", NAMESPACE)
