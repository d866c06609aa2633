/* SPDX-License-Identifier: Apache-2.0 */
/* The highest resourceVersion of the host objects on record, of each kind. A host whose list is
 * older was restored to an earlier state, even if that happened while this process was not running.
 * Must be forgotten when another life begins.
 *
 *   record RECORD_META "host-revision/<plural>": a resourceVersion of the host */

#include "core/life.h"
#include <sublet/store.h>

static struct str key_of(const struct syncer *s, struct arena *a, enum sync_id id)
{
    return arena_printf(a, "host-revision/%s", s->kinds[id].record);
}

uint64_t sync_revision_on_record(struct syncer *s, enum sync_id id)
{
    struct arena *a = arena_new(0);
    struct str value;
    uint64_t revision = 0;

    if (store_record_get(s->store, RECORD_META, key_of(s, a, id), &value))
        str_to_u64(value, &revision);
    arena_free(a);
    return revision;
}

void sync_revision_note(struct syncer *s, enum sync_id id, const cJSON *host_object)
{
    struct str version = json_str_at(host_object, "metadata.resourceVersion");
    struct arena *a = arena_new(0);
    uint64_t revision;

    if (str_to_u64(version, &revision) && revision > sync_revision_on_record(s, id))
        store_record_put(s->store, RECORD_META, key_of(s, a, id), version);
    arena_free(a);
}

void sync_revisions_forget(struct syncer *s)
{
    struct arena *a = arena_new(0);

    for (size_t id = 0; id < s->n_kinds; id++)
        store_record_delete(s->store, RECORD_META, key_of(s, a, (enum sync_id)id));
    arena_free(a);
}
