/* SPDX-License-Identifier: Apache-2.0 */
/* The synced kinds and their host resources. Must be the only place with these, and hold facts
 * only: the functions of each kind are in changes.c. */
#include "core/core.h"

#define CORE   "/api/v1"
#define OURS   .namespaced = true, .labelled = true, .maps = true
#define GLOBAL .namespaced = false

const struct sync_kind SYNC_KINDS[N_SYNC] = {
    [SYNC_PODS] = {"pods", "", CORE, OURS},
    [SYNC_CONFIG_MAPS] = {"configmaps", "", CORE, OURS, .metadata_only = true},
    [SYNC_SECRETS] = {"secrets", "", CORE, OURS, .metadata_only = true},
    [SYNC_SERVICES] = {"services", "", CORE, OURS},
    [SYNC_CLAIMS] = {"persistentvolumeclaims", "", CORE, OURS},
    [SYNC_NODES] = {"nodes", "", CORE, GLOBAL},
    [SYNC_STORAGE_CLASSES] = {"storageclasses", "storage.k8s.io", "/apis/storage.k8s.io/v1",
                              GLOBAL},
    [SYNC_PRIORITY_CLASSES] = {"priorityclasses", "scheduling.k8s.io", "/apis/scheduling.k8s.io/v1",
                               GLOBAL},
    [SYNC_EVENTS] = {"events", "", CORE, .namespaced = true},
};

enum sync_id sync_kind_of_ref(enum translate_ref_kind kind)
{
    switch (kind) {
    case REF_CONFIG_MAP:
        return SYNC_CONFIG_MAPS;
    case REF_SECRET:
        return SYNC_SECRETS;
    case REF_PVC:
        return SYNC_CLAIMS;
    case REF_SERVICE_ACCOUNT:
    default:
        return N_SYNC;
    }
}
