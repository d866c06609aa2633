/* SPDX-License-Identifier: Apache-2.0 */
/* Lives: periods in which our records and the host's objects share one history. A life ends when
 * the store is restored from a backup or loses records, and when the host is restored to an earlier
 * state or replaced by another cluster. A record of an earlier life proves nothing about the host:
 * a missing host object need not have been deleted, and one without a record may be newer than the
 * backup. Must never continue a life across either change.
 *
 *   record RECORD_META "life": "<number> <epoch of the store>[ compared]"; compared: the first list
 *   of host pods in this life is complete, so that the ledger has a charge for each of them. */

#include "core/leader.h"
#include "core/life.h"
#include <sublet/log.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#define LIFE_RECORD "life"

static void put_life(struct syncer *s)
{
    struct arena *a = arena_new(0);

    store_record_put(s->store, RECORD_META, STR(LIFE_RECORD),
                     arena_printf(a, "%lld %.*s%s", (long long)s->life, STR_F(s->tenant.epoch),
                                  s->compared ? " compared" : ""));
    arena_free(a);
}

/* Starts life n. The first one of a store begins with an empty host. */
static void begin(struct syncer *s, int64_t n)
{
    s->life = n;
    s->compared = n == LIFE_FIRST;
    put_life(s);
    sync_revisions_forget(s);
}

void sync_life_open(struct syncer *s)
{
    struct store_identity identity;
    struct store_damage damage;
    struct str value, epoch;
    int64_t n = LIFE_FIRST;

    store_identity(s->store, &identity);
    store_damage(s->store, &damage);
    s->tenant.epoch = arena_str(s->arena, str_c(identity.epoch));
    if (store_record_damaged(s->store, RECORD_META, STR(LIFE_RECORD))) {
        log_warn("syncer: the store's record of its life is damaged: records are compared with the "
                 "host");
        begin(s, syncer_now_s(s)); /* higher than any life before */
        return;
    }
    if (!store_record_get(s->store, RECORD_META, STR(LIFE_RECORD), &value)) {
        begin(s, identity.restored ? LIFE_FIRST + 1 : LIFE_FIRST);
        return;
    }
    if (!str_to_i64(str_cut(&value, ' '), &n))
        n = LIFE_FIRST;
    epoch = str_cut(&value, ' ');
    if (!str_eq(epoch, s->tenant.epoch)) {
        log_info("syncer: the store was restored: its records are compared with the host");
        begin(s, n + 1);
        return;
    }
    if (damage.records) {
        log_warn("syncer: the store lost records: the others are compared with the host");
        begin(s, n + 1);
        return;
    }
    s->life = n;
    s->compared = str_eqc(value, "compared");
}

void sync_life_keep(struct syncer *s)
{
    struct str value;
    int64_t n = 0;

    if (store_record_get(s->store, RECORD_META, STR(LIFE_RECORD), &value))
        str_to_i64(str_cut(&value, ' '), &n);
    if (n == s->life && str_has_suffix(value, STR(" compared")) == s->compared)
        return;
    put_life(s);
    sync_revisions_forget(s);
}

bool sync_life_is_first(const struct syncer *s)
{
    return s->life == LIFE_FIRST;
}

void sync_life_host_changed(struct syncer *s, const char *why)
{
    log_warn("syncer: the host cluster is not in the state this virtual cluster left it in (%s): "
             "what it lacks is created again, and nothing is deleted for being missing",
             why);
    begin(s, s->life + 1);
    for (size_t id = 0; id < s->n_kinds; id++)
        reflector_restart(s->watches[id].reflector);
    s->parts->another_host(s);
    sync_life_watch_all(s);
}

void sync_life_watch_all(struct syncer *s)
{
    for (size_t id = 0; id < s->n_kinds; id++)
        if (s->kinds[id].maps)
            syncer_watch(s, (enum sync_id)id);
}

void sync_life_listed(struct syncer *s, enum sync_id id)
{
    sync_quarantine_compare(s, id);
    if (id != SYNC_PODS || s->compared || !s->pools_known)
        return;
    s->compared = true;
    put_life(s);
}

bool sync_life_is_current(struct syncer *s, enum sync_id id)
{
    struct sync_watch *w = &s->watches[id];

    if (reflector_listed_ms(w->reflector) != REFLECTOR_NOT_CURRENT)
        return true;
    w->is_awaited = true;
    return false;
}

enum sync_life_absence sync_life_absence(struct syncer *s, enum sync_id id, const struct mapping *m)
{
    int64_t listed_ms = reflector_listed_ms(s->watches[id].reflector);

    if (m->life != s->life)
        return ABSENCE_OF_ANOTHER_LIFE;
    if (!sync_life_is_current(s, id))
        return ABSENCE_OPEN;
    /* Without a confirmation the list may come from a host that was restored a moment ago. */
    return sync_lease_confirmed_since(s->lease, listed_ms) ? ABSENCE_PROVEN : ABSENCE_OPEN;
}

struct str sync_life_epoch(const cJSON *host_object)
{
    return json_str(json_get(json_path(host_object, "metadata.annotations"), ANNOTATION_EPOCH));
}

bool sync_life_owns(const struct syncer *s, const cJSON *host_object)
{
    return str_cmp(sync_life_epoch(host_object), s->tenant.epoch) <= 0;
}

bool sync_life_has_our_epoch(const struct syncer *s, const cJSON *host_object)
{
    return sync_life_is_first(s) || str_eq(sync_life_epoch(host_object), s->tenant.epoch);
}
