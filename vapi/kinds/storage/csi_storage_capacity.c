/* SPDX-License-Identifier: Apache-2.0 */
/* CSIStorageCapacities. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"

static const struct rule CAPACITY_RULES[] = {
    FIXED("nodeTopology"),
    FIXED("storageClassName"),
    LABEL_SELECTOR("nodeTopology"),
    NAME_ALWAYS("storageClassName", DNS1123_SUBDOMAIN),
    CHECK("capacity", check_not_negative),
};

/* ---- the kind ---- */

const struct kind KIND_CSI_STORAGE_CAPACITY = {
    RESOURCE("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities",
             "csistoragecapacity"),
    .resource.flags = RES_NAMESPACED | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE,
    .resource.columns = COLUMNS_CREATED,
    .rules = RULES(CAPACITY_RULES),
};
