/* SPDX-License-Identifier: Apache-2.0 */
/* CSIStorageCapacities. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"

#include <sublet/quantity.h>

static void capacity_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *capacity = given(object, "capacity");
    AT(topology, NULL, "nodeTopology");
    AT(class_, NULL, "storageClassName");
    struct quantity q;

    if (old) {
        check_immutable(e, topology, json_get(object, "nodeTopology"),
                        json_get(old, "nodeTopology"));
        check_immutable(e, class_, json_get(object, "storageClassName"),
                        json_get(old, "storageClassName"));
    }
    validate_label_selector(e, topology, given(object, "nodeTopology"));
    check_rule(e, class_, NAME_DNS1123_SUBDOMAIN, json_str(json_get(object, "storageClassName")));
    if (quantity_parse(json_str(capacity), &q) && q.nano < 0)
        field_invalid(e, FIELD(NULL, "capacity"), capacity, NEGATIVE);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CSI_STORAGE_CAPACITY = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities",
                     "csistoragecapacity"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = capacity_validate,
    .cells = kinds_cells_created_at,
};
