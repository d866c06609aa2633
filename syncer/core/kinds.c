/* SPDX-License-Identifier: Apache-2.0 */
/* The table of synced kinds: the fixed ones and their host resources; configured kinds are added.
 * Must hold facts only: the functions of each kind are in changes.c. */
#include "core/core.h"

#include <assert.h>

#define CORE   "/api/v1"
#define OURS   .namespaced = true, .labelled = true, .maps = true
#define GLOBAL .namespaced = false

static const struct sync_kind FIXED[N_SYNC_FIXED] = {
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
    [SYNC_QUOTAS] = {"resourcequotas", "", CORE, .namespaced = true},
};

enum sync_id sync_kind_add(struct syncer *s, const struct sync_kind *kind)
{
    assert(!s->watches && kind->handlers);
    assert(sync_kind_of_record(s, str_c(kind->record)) == SYNC_NONE);
    ARENA_GROW(s->arena, s->kinds, s->n_kinds, s->cap_kinds);
    s->kinds[s->n_kinds] = *kind;
    return (enum sync_id)s->n_kinds++;
}

void sync_kinds_init(struct syncer *s, const struct sync_handlers *handlers)
{
    for (int id = 0; id < N_SYNC_FIXED; id++) {
        struct sync_kind kind = FIXED[id];

        kind.record = kind.plural;
        kind.handlers = &handlers[id];
        sync_kind_add(s, &kind);
    }
}

enum sync_id sync_kind_of_record(const struct syncer *s, struct str record)
{
    for (size_t id = 0; id < s->n_kinds; id++)
        if (str_eqc(record, s->kinds[id].record))
            return (enum sync_id)id;
    return SYNC_NONE;
}

enum sync_id sync_kind_of_ref(const struct syncer *s, enum translate_ref_kind kind)
{
    switch (kind) {
    case REF_CONFIG_MAP:
        return SYNC_CONFIG_MAPS;
    case REF_SECRET:
        return SYNC_SECRETS;
    case REF_PVC:
        return SYNC_CLAIMS;
    case REF_DEVICE_CLAIM:
        return sync_kind_of_record(s, STR("resourceclaims.resource.k8s.io"));
    case REF_SERVICE_ACCOUNT:
        return sync_kind_of_record(s, STR("serviceaccounts"));
    default:
        return SYNC_NONE;
    }
}
