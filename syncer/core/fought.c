/* SPDX-License-Identifier: Apache-2.0 */
/* Patches that the host undoes: a webhook drops what is written, a field is owned by another
 * controller there. Why: the next run would find the same difference and send the same patch, as
 * fast as the rate toward the host allows. So a patch that its own answer lacks is not sent again
 * for a while, unless the tenant wants something else by then. Must never hold up what the tenant
 * changed. */

#include "core/run.h"

#include <sublet/hash.h>
#include <sublet/log.h>

#define FOUGHT_MAX 4096 /* objects; beyond it the first is forgotten */

struct fought {
    struct map_entry entry; /* "plural[/subresource]/ns/name host-name": a Service may have two */
    char *key;
    uint64_t wanted; /* hash of what is undone */
    int64_t until_ms;
};

struct fights {
    struct map map;
};

static struct str key_of(struct sync_run *run, const struct sync_change *change)
{
    return arena_printf(run->arena, "%s%s/%.*s/%.*s %s", run->syncer->kinds[run->id].plural,
                        change->subresource, STR_F(run->ns), STR_F(run->name), run->host_name);
}

static struct fought *find(struct sync_run *run, const struct sync_change *change)
{
    struct map_entry *e = map_get(&run->syncer->fights->map, key_of(run, change));

    return e ? CONTAINER(e, struct fought, entry) : NULL;
}

static uint64_t hash_of(struct sync_run *run, const struct sync_change *change)
{
    return str_hash(json_text(run->arena, change->wanted), hash_seed());
}

static void forget(void *ctx, struct map_entry *e)
{
    struct fights *fights = ctx;
    struct fought *f = CONTAINER(e, struct fought, entry);

    map_remove(&fights->map, e);
    mem_free(f->key);
    mem_free(f);
}

static struct fought *add(struct sync_run *run, const struct sync_change *change)
{
    struct fights *fights = run->syncer->fights;
    struct fought *f = NEW(struct fought);

    if (map_count(&fights->map) >= FOUGHT_MAX)
        forget(fights, fights->map.first);
    f->key = mem_strdup(key_of(run, change));
    map_put(&fights->map, &f->entry, str_c(f->key));
    return f;
}

bool sync_fought_waits(struct sync_run *run, const struct sync_change *change)
{
    struct fought *f = find(run, change);
    int64_t left = f ? f->until_ms - syncer_mono_ms(run->syncer) : 0;

    if (left <= 0 || f->wanted != hash_of(run, change))
        return false;
    reconcile_again_after(run->reconcile, left);
    return true;
}

bool sync_fought_hold(struct sync_run *run, const struct sync_change *change)
{
    struct fought *f = find(run, change);
    uint64_t hash = hash_of(run, change);
    bool known = f && f->wanted == hash;

    f = f ? f : add(run, change);
    f->wanted = hash;
    f->until_ms = syncer_mono_ms(run->syncer) + SYNC_FOUGHT_MS;
    return !known;
}

void sync_fought_note(struct sync_run *run, const struct sync_change *change)
{
    if (!sync_fought_hold(run, change)) {
        reconcile_again_after(run->reconcile, SYNC_FOUGHT_MS);
        return;
    }
    log_warn("syncer: the host undoes what is written to it object=%s", find(run, change)->key);
    sync_fought(run);
}

void sync_fought_over(struct sync_run *run, const struct sync_change *change)
{
    struct fought *f = find(run, change);

    if (f)
        forget(run->syncer->fights, &f->entry);
}

struct fights *sync_fights_new(void)
{
    return NEW(struct fights);
}

void sync_fights_clear(struct fights *fights)
{
    map_each(&fights->map, forget, fights);
}

struct fights *sync_fights_free(struct fights *fights)
{
    if (!fights)
        return NULL;
    sync_fights_clear(fights);
    mem_free(fights);
    return NULL;
}
