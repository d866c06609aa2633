/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the state of the Lease: whether the API serves writes, which notice stands, and that
 * nothing changes the host while another process holds it. Must never refuse writes because the
 * host is unreachable, unless the configuration says so.
 *
 *   HELD, WITHOUT        writes are served, the host is changed
 *   UNKNOWN              writes wait, for DECIDE_MS at most
 *   AWAY                 writes are served (lease.hostAway: serve); nothing goes to the host
 *   WAITING, SUPERSEDED  read-only, and /readyz fails, so that a Service sends no client here
 *
 *   record RECORD_META "ancestry": "EPOCH PARENT@BRANCH ...", of the epoch that wrote it */

#include "core/leader.h"
#include "core/life.h"
#include "core/turns.h"
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include <sublet/log.h>
#include <sublet/notice.h>
#include <sublet/read_only.h>
#include <sublet/store_identity.h>

#define DECIDE_MS 3000
#define SUBJECT   STR("lease")
#define ANCESTRY  "ancestry"

#define AWAY_MESSAGE                                                                               \
    "the host cluster does not confirm that this process leads, and lease.hostAway is readOnly: "  \
    "only reads are served"

/* --- the history of this data --- */

/* Of this epoch, if it wrote the record. */
static bool ancestry_on_record(struct syncer *s, struct str epoch, struct str *ret)
{
    struct str value;

    if (!store_record_get(s->store, RECORD_META, STR(ANCESTRY), &value) ||
        !str_eq(str_cut(&value, ' '), epoch))
        return false;
    *ret = arena_str(s->arena, value);
    return true;
}

static struct str first_words(struct str list, int n)
{
    struct str rest = list;

    for (; n && rest.n; n--)
        str_cut(&rest, ' ');
    return rest.n ? str_sub(list, 0, list.n - rest.n - 1) : list;
}

/* The epochs that this data descends from, the nearest first. A store knows its parent; the record
 * that the backup brought along has the parent's own. */
static struct str ancestry_of(struct syncer *s)
{
    struct store_identity identity;
    struct str older = STR(""), ret;

    store_identity(s->store, &identity);
    if (ancestry_on_record(s, s->tenant.epoch, &ret))
        return ret;
    if (!identity.restored || !identity.from[0])
        return STR("");
    (void)ancestry_on_record(s, str_c(identity.from), &older);
    older = first_words(older, SYNC_MOST_ANCESTORS - 1);
    ret = arena_printf(
        s->arena, "%s@%.*s%s%.*s", identity.from,
        STR_F(sync_turns_branch(s->store, s->arena, str_c(identity.from), identity.from_revision)),
        older.n ? " " : "", STR_F(older));
    store_record_put(s->store, RECORD_META, STR(ANCESTRY),
                     arena_printf(s->arena, "%.*s %.*s", STR_F(s->tenant.epoch), STR_F(ret)));
    return ret;
}

/* --- notices and readiness --- */

static void note(struct syncer *s, const char *reason, struct str message)
{
    struct vapi_notice n = {.topic = NOTICE_LEASE, .reason = reason, .message = message};

    n.subject = SUBJECT;
    if (reason)
        vapi_notice(s->api, &n);
    else
        vapi_notice_over(s->api, NOTICE_LEASE, SUBJECT);
}

static void set_not_leading(struct syncer *s, struct str why)
{
    mem_free(s->not_leading);
    s->not_leading = why.n ? mem_strdup(why) : NULL;
}

/* Like check_host() of syncer.c: a new cluster becomes ready once the Lease was read. After that a
 * restart is ready at once, and only its writes wait for the Lease. */
static const char *check_lease(void *ctx)
{
    struct syncer *s = vapi_get_hooks(ctx)->ctx;

    if (!s || s->phase == SYNC_NEW)
        return NULL;
    if (!s->reached && sync_lease_state(s->lease) == LEASE_UNKNOWN &&
        clock_mono_ms(vapi_clock(s->api)) - s->started_ms <= DECIDE_MS)
        return "the Lease on the host cluster was not read yet";
    return s->not_leading;
}

/* --- state changes --- */

static void lead(struct syncer *s)
{
    vapi_set_read_only(s->api, NULL);
    s->parts->rescan(s);
}

static void stand_back(struct syncer *s, struct str refusal)
{
    char *text = mem_strdup(refusal);

    vapi_set_read_only(s->api, text);
    mem_free(text);
    set_not_leading(s, refusal);
}

static void on_away(struct syncer *s)
{
    bool refuse = s->config->lease_away_read_only;

    vapi_set_read_only(s->api, refuse ? AWAY_MESSAGE : NULL);
    note(s, "LeaseUnconfirmed",
         refuse ? STR(AWAY_MESSAGE)
                : STR("the host cluster does not confirm that this process leads: writes are "
                      "served, and nothing goes to the host"));
}

static void on_waiting(struct syncer *s, struct arena *a, const struct lease_holder *other)
{
    bool same = str_eq(other->cluster_uid, s->tenant.cluster_uid);
    struct str text = arena_printf(a, "another process serves %s: %.*s",
                                   same ? "this virtual cluster" : "a virtual cluster of this name",
                                   STR_F(other->identity));

    stand_back(s, text);
    note(s, "LeaseHeldByAnother",
         arena_printf(a, "%.*s; this one serves reads only, until that one ends", STR_F(text)));
}

static void on_lacking(struct syncer *s, struct str report)
{
    struct arena *a = arena_new(0);

    note(
        s, "LeaseSuperseded",
        arena_printf(a,
                     "%s; %.*s. To go on from this data as from a restored backup, in a new epoch, "
                     "start it with --force",
                     s->not_leading, STR_F(report)));
    arena_free(a);
}

static void on_superseded(struct syncer *s, struct arena *a, const struct lease_holder *other,
                          struct str epoch)
{
    struct str holder = other->identity.n ? other->identity : STR("a process that ended");
    bool later = str_cmp(other->epoch, epoch) > 0;

    stand_back(s, arena_printf(a,
                               later ? "this data is superseded: %.*s leads this virtual cluster "
                                       "with data of a later epoch"
                                     : "this data is superseded: %.*s has led this virtual cluster "
                                       "since this data did",
                               STR_F(holder)));
    sync_lacking_start(s, epoch, other->fork, on_lacking);
}

static void on_changed(void *ctx, enum sync_lease_state now, const struct lease_holder *other)
{
    struct syncer *s = ctx;
    struct arena *a = arena_new(0);

    assert(s->magic == SYNCER_MAGIC);
    sync_lacking_stop(s);
    set_not_leading(s, STR_NULL);
    s->writes_held = false;
    if (!sync_lease_may_act(s->lease)) {
        host_gate_changed(s->host);
        s->parts->barred(s);
    }
    if (now == LEASE_HELD)
        note(s, NULL, STR_NULL);
    else if (now == LEASE_WITHOUT)
        note(s, "LeaseForbidden",
             STR("the host cluster does not permit Leases: two processes of this virtual cluster "
                 "would not be kept apart"));
    if (sync_lease_may_act(s->lease))
        lead(s);
    else if (now == LEASE_WAITING)
        on_waiting(s, a, other);
    else if (now == LEASE_SUPERSEDED)
        on_superseded(s, a, other, s->tenant.epoch);
    else
        on_away(s);
    arena_free(a);
}

static void on_host_changed(void *ctx, const char *why)
{
    sync_life_host_changed(ctx, why);
}

static void on_begin_anew(void *ctx)
{
    struct syncer *s = ctx;

    if (!syncer_is_closing(s))
        s->new_life(s->new_life_ctx, &s->overtaken_by);
}

static void on_new_life(void *ctx, struct str epoch, int64_t revision)
{
    struct syncer *s = ctx;
    struct store_predecessor *p = &s->overtaken_by;
    bool known = p->epoch[0];

    snprintf(p->epoch, sizeof(p->epoch), "%.*s", STR_F(epoch));
    p->revision = revision;
    if (!known && s->new_life)
        syncer_defer(s, on_begin_anew, s);
}

static void on_confirmed(void *ctx)
{
    ((struct syncer *)ctx)->parts->rescan(ctx);
}

/* --- life --- */

static void on_broken(void *ctx)
{
    struct syncer *s = ctx;

    assert(s->magic == SYNCER_MAGIC);
    sync_lease_doubt(s->lease);
}

static void on_certain(void *ctx)
{
    host_gate_changed(((struct syncer *)ctx)->host);
}

static enum host_gate gate(void *ctx)
{
    const struct lease *l = ((struct syncer *)ctx)->lease;

    if (!sync_lease_may_act(l))
        return HOST_GATE_CLOSED;
    return sync_lease_state(l) == LEASE_HELD && sync_lease_is_doubted(l) ? HOST_GATE_WAIT
                                                                         : HOST_GATE_OPEN;
}

void sync_leader_new(struct syncer *s)
{
    char host[256] = "sublet";
    struct lease_options o = {.loop = vapi_loop(s->api),
                              .clock = vapi_clock(s->api),
                              .rng = vapi_rng(s->api),
                              .host = s->host,
                              .store = s->store,
                              .host_namespace = s->tenant.host_namespace,
                              .name = s->config->name,
                              .data_dir = s->config->data_dir,
                              .cluster_uid = s->tenant.cluster_uid,
                              .duration_ms = s->config->lease_duration_ms,
                              .force = s->config->lease_force,
                              .changed = on_changed,
                              .host_changed = on_host_changed,
                              .new_life = on_new_life,
                              .confirmed = on_confirmed,
                              .certain = on_certain,
                              .ctx = s};

    gethostname(host, sizeof(host) - 1);
    o.holder = str_c(host);
    o.epoch = s->tenant.epoch;
    o.fork = ancestry_of(s);
    s->lease = sync_lease_new(&o);
    host_set_gate(s->host, gate, s);
    host_on_broken(s->host, on_broken, s);
    vapi_add_check(s->api, "lease", check_lease, s->api);
}

static void on_decide_timeout(void *ctx)
{
    struct syncer *s = ctx;

    if (!syncer_is_closing(s) && sync_lease_state(s->lease) == LEASE_UNKNOWN) {
        s->writes_held = false;
        vapi_set_read_only(s->api, s->config->lease_away_read_only ? AWAY_MESSAGE : NULL);
    }
}

void sync_leader_start(struct syncer *s)
{
    s->writes_held = true;
    vapi_hold_writes(s->api);
    syncer_defer_for(s, on_decide_timeout, s, DECIDE_MS);
    sync_lease_start(s->lease);
}

void sync_leader_stop(struct syncer *s)
{
    sync_lacking_stop(s);
    if (s->writes_held)
        vapi_set_read_only(s->api, "this process ends before the host cluster has answered");
    s->writes_held = false;
}
