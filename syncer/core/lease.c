/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election: a coordination.k8s.io/v1 Lease as client-go keeps it (k8s.io/client-go
 * tools/leaderelection), with the epoch of this process's data in it. Must act only while an answer
 * to a request of its own is recent enough, and take the Lease of another process only when that
 * one released it, is proven dead, or did not renew it for its duration as measured by our own
 * clock. Clocks of two machines are never compared.
 *
 *               .-------------- 403: no right to it ---------------> WITHOUT
 *   UNKNOWN ---+---- taken ----> HELD <---- taken, renewed ---- AWAY
 *     |        |                  | '---- not renewed in time ---^ ^
 *     |        |                  '---- another has it ---.        |
 *     |        '---- another holds it, and may live ------+--> WAITING -- released, expired -->
 * HELD |        '---- ... of a newer epoch ----------------+--> SUPERSEDED (for good)
 *     '---- no answer --------------------------------------> AWAY
 *   any --sync_lease_release()--> RELEASED
 *
 *   the Lease on the host     older epoch   our epoch   newer epoch, or turns that we lack
 *   ----------------------    -----------   ---------   ----------------------------------
 *   none                      take it at once if this data never had one, if this process acts as
 *                             its leader, or with --force; else once it was missing for its time
 *   ours                      renew it
 *   released, or of a process
 *   of this very directory    take it       take it     SUPERSEDED; --force: a new life
 *   unchanged for its time    take it       take it     SUPERSEDED; --force: a new life
 *   renewed since             WAITING       WAITING     SUPERSEDED; --force: a new life
 *           ... and --force   take it       a new life
 *           ... and our epoch
 *           has led           take it, and stand by until its time has passed
 *
 * A missing Lease says nothing of who leads: its leader creates it again within a renewal. Data of
 * an older epoch that does not know of a newer one may take it when that takes longer; the newer
 * one then takes it back. It stands by, WAITING, for as long as the other one may act on its last
 * renewal; an annotation says so to its own successor.
 *
 * Turns (turns.c) show that this data is an older copy of what led last: one epoch never has two
 * lives. The sequence only grows, also over a rollback of the host: a Lease with a lower one than
 * on record is of an earlier state of the host, and its turns are older than ours. */
#include "core/holders.h"
#include "core/leader.h"
#include "core/lease.h"
#include "core/turns.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include <sublet/log.h>

#define LEASE_MAGIC 0x6c656173u
#define RECORD_HOST "host-lease" /* "UID SEQUENCE MOST"; "-": forgotten */
#define RECORD_LED  "lease-led"  /* "EPOCH": of the last one that led with this data */
#define RELEASE_MS  1000
#define WITHOUT_MS  300000 /* after a missing right, as after a refused watch */
#define POLL_MAX_MS 5000
#define RETRY_MS    250

#define NOTE_EPOCH     "sublet.dev/epoch"
#define NOTE_SEQUENCE  "sublet.dev/sequence"
#define NOTE_FORK      "sublet.dev/fork"
#define NOTE_TURNS     "sublet.dev/turns"
#define NOTE_REVISION  "sublet.dev/revision"      /* the newest at that time */
#define NOTE_TAKEN     "sublet.dev/taken"         /* why it was taken from the holder before */
#define NOTE_STANDS_BY "sublet.dev/stands-by-for" /* the holder before, which may act still */

/* The record of this process's turn, which precedes the request that takes the Lease:
 *
 *   UNWRITTEN --take()--> PENDING --committed or failed--> ANSWERED, and take() again */
enum turn_record { TURN_UNWRITTEN, TURN_PENDING, TURN_ANSWERED };

enum request { REQUEST_NONE, REQUEST_READ, REQUEST_TAKE, REQUEST_RENEW, REQUEST_RELEASE };

/* The Lease as last seen on the host. */
struct seen {
    struct arena *arena; /* of all below */
    struct str body, uid, version, turns, taken, stands_by;
    struct lease_holder holder;
    int64_t duration_ms, sequence, transitions, revision;
    int64_t since_ms; /* when this resourceVersion was first seen */
};

struct lease {
    unsigned magic;
    enum sync_lease_state state;
    struct lease_options o;
    struct arena *arena; /* of the options' strings */
    struct str identity;
    struct holders holders;
    struct str token; /* of this process's turn */
    struct turns turns;
    uv_timer_t timer;
    struct host_call *call;
    enum request request;
    int64_t sent_ms;
    struct seen seen;
    char known_uid[64]; /* of the Lease, and its sequence when it was seen last */
    int64_t known_sequence, most_sequence; /* the greatest of all, also before a rollback */
    const char *host_changed;              /* why; reported once the Lease is ours */
    int64_t due_ms;                        /* of the next request */
    int64_t confirmed_ms;                  /* when the last answered renewal was sent */
    int64_t wanted_ms;                     /* a renewal sent since then is wanted; 0: none */
    uint64_t breaks;                       /* of the connection, so far */
    uint64_t sent_breaks;                  /* ... when the pending request was sent */
    uint64_t confirmed_breaks;             /* ... when the last answered renewal was sent */
    unsigned failures;
    int64_t missing_ms;   /* since when the host has none; 0: it has one */
    int64_t before_ms;    /* duration of the holder from which it is being taken */
    int64_t stands_by_ms; /* until then the holder before may act; 0: it cannot */
    enum turn_record turn;
    bool started, closing;
    bool led;            /* this process took it */
    bool loss_logged;    /* ... and lost it */
    bool epoch_led;      /* a process of this epoch took it */
    bool known_to_exist; /* ... of any epoch of this data: others may have it in use */
    void (*released)(void *ctx);
    void *released_ctx;
    int64_t release_by_ms;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

#define TO(state) (1u << LEASE_##state)
static const unsigned TRANSITIONS[N_LEASE_STATES] = {
    [LEASE_UNKNOWN] =
        TO(HELD) | TO(AWAY) | TO(WAITING) | TO(SUPERSEDED) | TO(WITHOUT) | TO(RELEASED),
    [LEASE_HELD] = TO(AWAY) | TO(WAITING) | TO(SUPERSEDED) | TO(WITHOUT) | TO(RELEASED),
    [LEASE_AWAY] = TO(HELD) | TO(WAITING) | TO(SUPERSEDED) | TO(WITHOUT) | TO(RELEASED),
    [LEASE_WAITING] = TO(HELD) | TO(SUPERSEDED) | TO(WITHOUT) | TO(RELEASED),
    [LEASE_SUPERSEDED] = TO(RELEASED),
    [LEASE_WITHOUT] = TO(HELD) | TO(WAITING) | TO(SUPERSEDED) | TO(RELEASED),
    [LEASE_RELEASED] = 0,
};

static void tick(struct lease *l);
static void take(struct lease *l);

static int64_t now_ms(const struct lease *l)
{
    return clock_mono_ms(l->o.clock);
}

/* Once: it may be lost to one process, and be seen with another before it is taken again. */
static void log_loss(struct lease *l)
{
    struct str why = l->seen.taken.n ? l->seen.taken : STR("not known");

    if (l->loss_logged)
        return;
    l->loss_logged = true;
    log_warn("lease: lost holder=\"%.*s\" epoch=%.*s to=\"%.*s\" to_epoch=%.*s because=\"%.*s\"",
             STR_F(l->identity), STR_F(l->o.epoch), STR_F(l->seen.holder.identity),
             STR_F(l->seen.holder.epoch), STR_F(why));
}

static void move_by(struct lease *l, enum sync_lease_state to, const struct lease_holder *other)
{
    if (l->state == to)
        return;
    assert(TRANSITIONS[l->state] & (1u << to));
    l->state = to;
    if (to != LEASE_RELEASED)
        l->o.changed(l->o.ctx, to, other);
}

static void move(struct lease *l, enum sync_lease_state to)
{
    move_by(l, to, NULL);
}

static void lose(struct lease *l, enum sync_lease_state to)
{
    if (l->led && l->state != to)
        log_loss(l);
    move_by(l, to, &l->seen.holder);
}

/* --- time --- */

/* The last quarter is for requests that are in flight when we stop. */
static int64_t acts_until(const struct lease *l)
{
    return l->confirmed_ms + l->o.duration_ms - l->o.duration_ms / 4;
}

bool sync_lease_is_doubted(const struct lease *l)
{
    return l->confirmed_breaks != l->breaks;
}

static int64_t jitter(struct lease *l, int64_t ms)
{
    return ms - (int64_t)(rng_u64(l->o.rng) % (uint64_t)(ms / 10 + 1));
}

static void on_timer(uv_timer_t *timer)
{
    struct lease *l = timer->data;

    assert(l->magic == LEASE_MAGIC);
    tick(l);
}

int64_t sync_lease_next_due(const struct lease *l)
{
    int64_t due = l->call ? INT64_MAX : l->due_ms;

    if (l->state == LEASE_RELEASED)
        return l->released ? l->release_by_ms : INT64_MAX;
    if (l->state == LEASE_HELD && acts_until(l) < due)
        due = acts_until(l);
    return due;
}

static void arm(struct lease *l)
{
    int64_t due = sync_lease_next_due(l), now = now_ms(l);

    if (l->closing || due == INT64_MAX) {
        uv_timer_stop(&l->timer);
        return;
    }
    uv_update_time(l->o.loop);
    uv_timer_start(&l->timer, on_timer, due > now ? (uint64_t)(due - now) : 0, 0);
}

static void again_in(struct lease *l, int64_t ms)
{
    l->due_ms = now_ms(l) + ms;
    arm(l);
}

/* --- records --- */

static void on_recorded(void *ctx, const struct err *err)
{
    struct lease *l = ctx;

    assert(l->magic == LEASE_MAGIC);
    if (err) /* a restart waits for the Lease to expire */
        sync_turns_undo(&l->turns);
    assert(l->turn == TURN_PENDING);
    l->turn = TURN_ANSWERED;
    if (l->closing)
        sync_lease_close(l, l->closed, l->closed_ctx);
    else if (!l->call && l->state != LEASE_RELEASED)
        take(l);
}

/* Durable before the Lease is taken: the process that starts after a kill must recognise this one.
 */
static void write_turn(struct lease *l)
{
    sync_holders_add(&l->holders, l->identity);
    sync_turns_begin(&l->turns, l->token, l->seen.turns);
    l->turn = TURN_PENDING;
    store_on_commit(l->o.store, on_recorded, l);
}

static void read_known(struct lease *l)
{
    struct str value, uid;

    l->epoch_led = store_record_get(l->o.store, RECORD_META, STR(RECORD_LED), &value) &&
                   str_eq(value, l->o.epoch);
    l->known_to_exist = l->turns.n > 0;
    if (!store_record_get(l->o.store, RECORD_META, STR(RECORD_HOST), &value))
        return;
    l->known_to_exist = true;
    uid = str_cut(&value, ' ');
    snprintf(l->known_uid, sizeof(l->known_uid), "%.*s", STR_F(str_eqc(uid, "-") ? STR("") : uid));
    str_to_i64(str_cut(&value, ' '), &l->known_sequence);
    l->most_sequence = l->known_sequence;
    str_to_i64(value, &l->most_sequence);
}

bool sync_lease_is_known(struct store *store)
{
    struct str value;

    return store_record_get(store, RECORD_META, STR(RECORD_HOST), &value);
}

static void put_known(struct lease *l, const char *uid)
{
    char value[128];

    snprintf(value, sizeof(value), "%s %lld %lld", uid, (long long)l->known_sequence,
             (long long)l->most_sequence);
    store_record_put(l->o.store, RECORD_META, STR(RECORD_HOST), str_c(value));
}

void sync_lease_note(struct lease *l)
{
    if (l->known_uid[0])
        put_known(l, l->known_uid);
}

void sync_lease_forget_host(struct lease *l)
{
    l->known_uid[0] = '\0';
    l->host_changed = NULL;
    put_known(l, "-");
    if (l->state != LEASE_HELD)
        return;
    host_cancel(l->call);
    l->call = NULL;
    move(l, LEASE_AWAY);
    sync_lease_kick(l);
}

/* --- the Lease on the host --- */

static struct str note_of(const cJSON *lease, const char *key)
{
    return json_str(json_get(json_path(lease, "metadata.annotations"), key));
}

/* False when it cannot be read. */
static bool observe(struct lease *l, struct str body)
{
    struct arena *a = arena_new(0);
    struct seen now = {.arena = a, .body = arena_str(a, body), .since_ms = now_ms(l)};
    cJSON *tree = NULL;
    uint64_t sequence = 0;

    if (json_parse(a, now.body, &tree, NULL) || !json_str_at(tree, "metadata.uid").n) {
        arena_free(a);
        return false;
    }
    now.uid = json_str_at(tree, "metadata.uid");
    now.version = json_str_at(tree, "metadata.resourceVersion");
    now.holder = (struct lease_holder){.identity = json_str_at(tree, "spec.holderIdentity"),
                                       .epoch = note_of(tree, NOTE_EPOCH),
                                       .cluster_uid = note_of(tree, NOTE_CLUSTER),
                                       .fork = note_of(tree, NOTE_FORK)};
    now.duration_ms = json_i64_at(tree, "spec.leaseDurationSeconds", 0) * 1000;
    if (now.duration_ms <= 0)
        now.duration_ms = l->o.duration_ms;
    now.transitions = json_i64_at(tree, "spec.leaseTransitions", 0);
    str_to_u64(note_of(tree, NOTE_SEQUENCE), &sequence);
    now.sequence = (int64_t)sequence;
    now.turns = note_of(tree, NOTE_TURNS);
    now.taken = note_of(tree, NOTE_TAKEN);
    now.stands_by = note_of(tree, NOTE_STANDS_BY);
    str_to_i64(note_of(tree, NOTE_REVISION), &now.revision);
    if (str_eq(now.uid, l->seen.uid) && str_eq(now.version, l->seen.version))
        now.since_ms = l->seen.since_ms;
    arena_free(l->seen.arena);
    l->seen = now;
    return true;
}

static void forget_seen(struct lease *l)
{
    arena_free(l->seen.arena);
    l->seen = (struct seen){0};
}

static bool is_of_earlier_host(const struct lease *l)
{
    return l->seen.sequence < l->most_sequence;
}

/* The sequence only grows and the Lease is never recreated: a host with a lower one, or another
 * Lease, was restored or replaced. */
static void judge_host(struct lease *l)
{
    if (l->known_uid[0] && !str_eqc(l->seen.uid, l->known_uid))
        l->host_changed = "its Lease is another one than before";
    else if (l->known_uid[0] && l->seen.sequence < l->known_sequence)
        l->host_changed = "its Lease is in an earlier state than before";
    snprintf(l->known_uid, sizeof(l->known_uid), "%.*s", STR_F(l->seen.uid));
    l->known_sequence = l->seen.sequence;
    if (!is_of_earlier_host(l))
        l->most_sequence = l->seen.sequence;
}

/* Is what the holder of our epoch led with part of this data? If not, this is an older copy, and
 * the holder's fork becomes where the two part. */
static bool has_its_history(struct lease *l)
{
    int64_t fork;

    if (is_of_earlier_host(l) ||
        sync_turns_include(&l->turns, l->seen.turns, l->seen.revision, &fork))
        return true;
    l->seen.holder.fork =
        fork < 0 ? STR("")
                 : arena_printf(l->seen.arena, "%.*s@%lld", STR_F(l->o.epoch), (long long)fork);
    return false;
}

static bool is_ours(const struct lease *l)
{
    return str_eq(l->seen.holder.identity, l->identity);
}

static int64_t expires_ms(const struct lease *l)
{
    return l->seen.since_ms + l->seen.duration_ms;
}

/* An epoch that led ended all before it: one of these found no Lease, or a host from before. */
static bool is_of_an_older_epoch(const struct lease *l)
{
    const struct lease_holder *h = &l->seen.holder;

    return l->epoch_led && h->epoch.n && str_eq(h->cluster_uid, l->o.cluster_uid) &&
           str_cmp(h->epoch, l->o.epoch) < 0;
}

static bool may_be_taken(const struct lease *l)
{
    struct str holder = l->seen.holder.identity;

    return !holder.n || sync_holders_are_dead(&l->holders, holder) || now_ms(l) >= expires_ms(l) ||
           is_of_an_older_epoch(l);
}

/* The holder that may act on its last renewal although the Lease is taken from it; empty: none. */
static struct str holder_before(const struct lease *l)
{
    struct str holder = l->seen.holder.identity;

    if (is_ours(l))
        return now_ms(l) < l->stands_by_ms ? l->seen.stands_by : STR_NULL;
    if (!holder.n || l->o.force || now_ms(l) >= expires_ms(l))
        return STR_NULL;
    return sync_holders_are_dead(&l->holders, holder) ? l->seen.stands_by : holder;
}

enum claim { CLAIM_OURS, CLAIM_FREE, CLAIM_LATER, CLAIM_NONE };

static enum claim claim_of(struct lease *l)
{
    int order = str_cmp(l->seen.holder.epoch, l->o.epoch);

    if (is_ours(l))
        return CLAIM_OURS;
    if (order > 0 || (order == 0 && !has_its_history(l)))
        return CLAIM_NONE;
    return may_be_taken(l) ? CLAIM_FREE : CLAIM_LATER;
}

/* --- requests --- */

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err);

static void send_request(struct lease *l, enum request what, const char *method, struct str tail,
                         struct str body)
{
    struct arena *a = arena_new(0);
    struct host_request q = {.method = method, .body = body, .urgent = true, .passes_gate = true};

    q.path = arena_printf(a, "/apis/coordination.k8s.io/v1/namespaces/%.*s/leases%s%.*s",
                          STR_F(l->o.host_namespace), tail.n ? "/" : "", STR_F(tail));
    q.timeout_ms = what == REQUEST_RELEASE ? RELEASE_MS : l->o.duration_ms / 4;
    l->request = what;
    l->sent_ms = now_ms(l);
    l->sent_breaks = l->breaks;
    l->call = host_send(l->o.host, &q, on_answer, l);
    arena_free(a);
    arm(l);
}

static void read_lease(struct lease *l)
{
    send_request(l, REQUEST_READ, "GET", l->o.name, STR_NULL);
}

/* Keeps the fields of other writers. */
static cJSON *lease_tree(struct lease *l, struct arena *a)
{
    cJSON *tree = NULL, *metadata;

    if (!l->seen.body.n || json_parse(a, l->seen.body, &tree, NULL))
        tree = json_new_object(a);
    json_set_str(a, tree, "apiVersion", STR("coordination.k8s.io/v1"));
    json_set_str(a, tree, "kind", STR("Lease"));
    metadata = json_ensure_object(a, tree, "metadata");
    json_set_str(a, metadata, "name", l->o.name);
    return tree;
}

static void write_spec(struct lease *l, struct arena *a, cJSON *spec, enum request what)
{
    struct str now = time_format_us(a, clock_wall_us(l->o.clock));
    bool released = what == REQUEST_RELEASE;

    json_set_str(a, spec, "holderIdentity", released ? STR("") : l->identity);
    json_set_i64(a, spec, "leaseDurationSeconds", l->o.duration_ms / 1000);
    json_set_str(a, spec, "renewTime", now);
    if (what != REQUEST_TAKE)
        return;
    json_set_str(a, spec, "acquireTime", now);
    json_set_i64(a, spec, "leaseTransitions", l->seen.transitions + (l->seen.uid.n > 0));
}

/* From the holder before; NULL: there is none. */
static const char *reason_to_take(const struct lease *l)
{
    const struct lease_holder *h = &l->seen.holder;

    return !l->seen.uid.n                                    ? NULL
           : !h->identity.n                                  ? "released"
           : sync_holders_are_dead(&l->holders, h->identity) ? "its process is dead"
           : now_ms(l) >= expires_ms(l)                      ? "expired"
           : is_of_an_older_epoch(l)                         ? "a later epoch has led"
                                                             : "--force";
}

static void write_lease(struct lease *l, enum request what)
{
    const char *why = what == REQUEST_TAKE ? reason_to_take(l) : NULL;
    struct arena *a = arena_new(0);
    cJSON *tree = lease_tree(l, a), *notes;
    bool exists = l->seen.uid.n > 0;
    struct str before = holder_before(l);

    notes = json_ensure_object(a, json_get(tree, "metadata"), "annotations");
    json_set_str(a, notes, NOTE_CLUSTER, l->o.cluster_uid);
    json_set_str(a, notes, NOTE_EPOCH, l->o.epoch);
    json_set_str(a, notes, NOTE_FORK, l->o.fork);
    json_set_str(a, notes, NOTE_TURNS, sync_turns_print(&l->turns, a));
    json_set_str(a, notes, NOTE_REVISION,
                 arena_printf(a, "%lld", (long long)sync_turns_reach(&l->turns)));
    json_set_str(a, notes, NOTE_SEQUENCE, arena_printf(a, "%lld", (long long)l->most_sequence + 1));
    if (why)
        json_set_str(a, notes, NOTE_TAKEN, str_c(why));
    json_remove(notes, NOTE_STANDS_BY);
    if (before.n)
        json_set_str(a, notes, NOTE_STANDS_BY, before);
    if (what == REQUEST_TAKE)
        l->before_ms = before.n ? l->seen.duration_ms : 0;
    write_spec(l, a, json_ensure_object(a, tree, "spec"), what);
    send_request(l, what, exists ? "PUT" : "POST", exists ? l->o.name : STR_NULL,
                 json_text(a, tree));
    arena_free(a);
}

static void log_takeover(const struct lease *l)
{
    const struct lease_holder *h = &l->seen.holder;
    const char *why = reason_to_take(l);

    if (!why)
        return;
    if (!h->identity.n)
        log_info("lease: taken epoch=%.*s of_epoch=%.*s because=\"%s\"", STR_F(l->o.epoch),
                 STR_F(h->epoch), why);
    else
        log_warn("lease: taken over holder=\"%.*s\" epoch=%.*s from=\"%.*s\" from_epoch=%.*s "
                 "because=\"%s\"",
                 STR_F(l->identity), STR_F(l->o.epoch), STR_F(h->identity), STR_F(h->epoch), why);
}

static void take(struct lease *l)
{
    l->due_ms = INT64_MAX;
    if (l->turn == TURN_UNWRITTEN)
        write_turn(l); /* on_recorded() calls again */
    if (l->turn != TURN_ANSWERED)
        return;
    log_takeover(l);
    write_lease(l, REQUEST_TAKE);
}

/* --- answers --- */

static void poll_until(struct lease *l, int64_t end_ms)
{
    int64_t poll = l->o.duration_ms / 8, left = end_ms - now_ms(l);

    poll = poll > POLL_MAX_MS ? POLL_MAX_MS : poll;
    l->failures = 0;
    again_in(l, left > 0 && left < poll ? left : poll);
}

static void wait_for_holder(struct lease *l)
{
    poll_until(l, expires_ms(l));
    lose(l, LEASE_WAITING);
}

static void is_superseded(struct lease *l)
{
    l->due_ms = INT64_MAX;
    lose(l, LEASE_SUPERSEDED);
}

/* A life never shares its epoch: where the other one may go on, this one begins anew. */
static void force(struct lease *l)
{
    if (str_cmp(l->seen.holder.epoch, l->o.epoch) < 0) {
        take(l);
        return;
    }
    log_warn("lease: a new epoch begins holder=\"%.*s\" epoch=%.*s from=\"%.*s\" from_epoch=%.*s "
             "because=\"--force\"",
             STR_F(l->identity), STR_F(l->o.epoch), STR_F(l->seen.holder.identity),
             STR_F(l->seen.holder.epoch));
    l->due_ms = INT64_MAX;
    l->o.new_life(l->o.ctx, l->seen.holder.epoch, l->seen.revision);
}

static void decide(struct lease *l)
{
    enum claim claim = claim_of(l);

    l->missing_ms = 0;
    judge_host(l);
    if (claim == CLAIM_OURS)
        write_lease(l, REQUEST_RENEW);
    else if (claim == CLAIM_FREE)
        take(l);
    else if (l->o.force)
        force(l);
    else if (claim == CLAIM_NONE)
        is_superseded(l);
    else
        wait_for_holder(l);
}

/* WAITING: its holder was alive when it was seen last. */
static bool may_create(const struct lease *l)
{
    bool led_till_now = l->state == LEASE_AWAY && l->led && now_ms(l) < acts_until(l);
    bool fresh = !l->known_to_exist && l->state != LEASE_WAITING;

    return sync_lease_may_act(l) || led_till_now || fresh || l->o.force ||
           (l->missing_ms && now_ms(l) >= l->missing_ms + l->o.duration_ms);
}

static void wait_while_missing(struct lease *l)
{
    if (!l->missing_ms) {
        l->missing_ms = now_ms(l);
        log_warn("lease: missing epoch=%.*s: created in %llds, unless its holder is alive",
                 STR_F(l->o.epoch), (long long)l->o.duration_ms / 1000);
    }
    poll_until(l, l->missing_ms + l->o.duration_ms);
    if (l->state != LEASE_WAITING)
        move(l, LEASE_AWAY);
}

static void is_missing(struct lease *l)
{
    if (l->known_uid[0])
        l->host_changed = "its Lease is missing";
    l->known_uid[0] = '\0'; /* the Lease created in its place is expected */
    forget_seen(l);
    if (may_create(l))
        take(l);
    else
        wait_while_missing(l);
}

/* err NULL: the answer could not be read. */
static void failed(struct lease *l, const struct err *err)
{
    int64_t most = l->o.duration_ms / 8, delay = RETRY_MS;

    if (!l->failures)
        log_warn("lease: not confirmed error=\"%.*s\"",
                 STR_F(err ? err->message : STR("the host's answer is no Lease")));
    if (l->state == LEASE_UNKNOWN)
        move(l, LEASE_AWAY);
    for (unsigned i = 0; i < l->failures && delay < most; i++)
        delay *= 2;
    l->failures++;
    again_in(l, jitter(l, delay < most ? delay : most));
}

static void not_permitted(struct lease *l)
{
    again_in(l, WITHOUT_MS);
    if (l->state != LEASE_WAITING || !l->seen.uid.n) /* else another process is alive */
        move(l, LEASE_WITHOUT);
}

/* The holder before stops at its next renewal, or when its last one is too old. */
static void stand_by(struct lease *l)
{
    const struct lease_holder before = {.identity = l->seen.stands_by,
                                        .cluster_uid = l->o.cluster_uid};

    if (l->due_ms > l->stands_by_ms)
        l->due_ms = l->stands_by_ms;
    move_by(l, LEASE_WAITING, &before);
    arm(l);
}

/* The host accepted a write: the Lease is ours as of when that was sent. */
static void written(struct lease *l)
{
    bool was_held = l->state == LEASE_HELD, was_doubted = sync_lease_is_doubted(l);

    judge_host(l);
    l->confirmed_ms = l->sent_ms;
    l->confirmed_breaks = l->sent_breaks;
    l->failures = 0;
    l->o.force = false;
    l->due_ms = l->sent_ms + jitter(l, l->o.duration_ms / 3);
    if (l->request == REQUEST_TAKE)
        l->stands_by_ms = l->before_ms ? now_ms(l) + l->before_ms : 0;
    if (now_ms(l) >= acts_until(l)) { /* answered too late */
        again_in(l, 0);
        return;
    }
    if (now_ms(l) < l->stands_by_ms) {
        stand_by(l);
        return;
    }
    if (l->host_changed)
        l->o.host_changed(l->o.ctx, l->host_changed);
    if (l->host_changed || l->request == REQUEST_TAKE || !was_held)
        sync_lease_note(l);
    if (!l->led)
        sync_turns_led(&l->turns);
    if (!l->epoch_led)
        store_record_put(l->o.store, RECORD_META, STR(RECORD_LED), l->o.epoch);
    l->led = l->epoch_led = l->known_to_exist = true;
    l->loss_logged = false;
    l->missing_ms = 0;
    l->host_changed = NULL;
    move(l, LEASE_HELD);
    if (l->wanted_ms > l->confirmed_ms || sync_lease_is_doubted(l)) {
        l->due_ms = now_ms(l);
    } else if (l->wanted_ms) {
        l->wanted_ms = 0;
        l->o.confirmed(l->o.ctx);
    }
    if (was_doubted && !sync_lease_is_doubted(l))
        l->o.certain(l->o.ctx);
    arm(l);
}

static void on_read(struct lease *l, const struct host_answer *answer, const struct err *err)
{
    if (!err && observe(l, answer->body))
        decide(l);
    else if (err && err->kind == &ERR_NOT_FOUND)
        is_missing(l);
    else if (host_err_is_permanent(err))
        not_permitted(l);
    else
        failed(l, err);
}

/* Written or deleted concurrently: the next read shows which. */
static bool lost_race(const struct lease *l, const struct err *err)
{
    return err->kind == &ERR_CONFLICT || err->kind == &ERR_ALREADY_EXISTS ||
           (err->kind == &ERR_NOT_FOUND && l->seen.uid.n);
}

static void on_written(struct lease *l, const struct host_answer *answer, const struct err *err)
{
    if (!err && observe(l, answer->body)) {
        written(l);
    } else if (host_err_is_permanent(err)) {
        not_permitted(l);
    } else if (err && lost_race(l, err) && !l->failures) {
        l->failures++;
        again_in(l, 0);
    } else {
        failed(l, err);
    }
}

static void released(struct lease *l)
{
    void (*done)(void *ctx) = l->released;

    l->released = NULL;
    l->due_ms = INT64_MAX;
    uv_timer_stop(&l->timer);
    done(l->released_ctx);
}

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct lease *l = ctx;

    assert(l->magic == LEASE_MAGIC);
    l->call = NULL;
    if (l->closing) {
        return;
    } else if (l->state == LEASE_RELEASED) {
        if (l->request != REQUEST_RELEASE && answer && !err && observe(l, answer->body) &&
            is_ours(l))
            write_lease(l, REQUEST_RELEASE);
        else if (l->released)
            released(l);
    } else if (l->request == REQUEST_READ) {
        on_read(l, answer, err);
    } else {
        on_written(l, answer, err);
    }
}

/* --- tick --- */

static void tick_released(struct lease *l)
{
    if (!l->released)
        return;
    if (now_ms(l) >= l->release_by_ms) {
        host_cancel(l->call);
        l->call = NULL;
        released(l);
    } else {
        arm(l);
    }
}

static void tick(struct lease *l)
{
    int64_t now = now_ms(l);

    if (l->closing || !l->started)
        return;
    if (l->state == LEASE_RELEASED) {
        tick_released(l);
        return;
    }
    if (l->state == LEASE_HELD && now >= acts_until(l))
        move(l, LEASE_AWAY);
    if (l->call || now < l->due_ms || l->state == LEASE_SUPERSEDED)
        arm(l);
    else if (l->state == LEASE_HELD && !l->failures)
        write_lease(l, REQUEST_RENEW);
    else
        read_lease(l);
}

/* --- interface --- */

void sync_lease_start(struct lease *l)
{
    assert(l->magic == LEASE_MAGIC && !l->started);
    l->started = true;
    read_lease(l);
}

void sync_lease_kick(struct lease *l)
{
    if (!l->started || l->state == LEASE_RELEASED || l->state == LEASE_SUPERSEDED ||
        (l->state == LEASE_HELD && !l->failures))
        return;
    l->failures = l->state == LEASE_HELD; /* HELD: tick() reads it before it renews */
    again_in(l, 0);
}

void sync_lease_doubt(struct lease *l)
{
    l->breaks++;
    if (l->started && l->state == LEASE_HELD && !l->failures && !l->call)
        again_in(l, 0);
}

void sync_lease_release(struct lease *l, void (*done)(void *ctx), void *ctx)
{
    bool held = l->state == LEASE_HELD && now_ms(l) < acts_until(l);

    assert(l->state != LEASE_RELEASED);
    l->released = done;
    l->released_ctx = ctx;
    l->release_by_ms = now_ms(l) + (held ? RELEASE_MS : 0);
    move(l, LEASE_RELEASED);
    l->started = true;
    if (held && !l->call)
        write_lease(l, REQUEST_RELEASE);
    arm(l);
}

enum sync_lease_state sync_lease_state(const struct lease *l)
{
    return l->state;
}

const struct turns *sync_lease_turns(const struct lease *l)
{
    return &l->turns;
}

struct str sync_lease_fork(const struct lease *l)
{
    return l->o.fork;
}

const char *sync_lease_identity(const struct lease *l)
{
    return l->identity.p;
}

bool sync_lease_may_act(const struct lease *l)
{
    return l->state == LEASE_WITHOUT || (l->state == LEASE_HELD && now_ms(l) < acts_until(l));
}

bool sync_lease_confirmed_since(struct lease *l, int64_t mono_ms)
{
    if (l->state == LEASE_WITHOUT || (l->state == LEASE_HELD && l->confirmed_ms >= mono_ms))
        return true;
    if (l->state == LEASE_RELEASED)
        return false;
    /* Not later than now: no renewal would satisfy that. */
    mono_ms = mono_ms < now_ms(l) ? mono_ms : now_ms(l);
    l->wanted_ms = mono_ms > l->wanted_ms ? mono_ms : l->wanted_ms;
    if (l->state == LEASE_HELD && !l->failures)
        again_in(l, 0);
    return false;
}

void sync_lease_wake(struct lease *l)
{
    arm(l);
}

/* --- life --- */

struct lease *sync_lease_new(const struct lease_options *options)
{
    struct lease *l = NEW(struct lease);
    struct lease_options *o = &l->o;
    struct str *const strings[] = {&o->host_namespace, &o->name,  &o->holder, &o->data_dir,
                                   &o->cluster_uid,    &o->epoch, &o->fork};

    *l = (struct lease){.magic = LEASE_MAGIC, .o = *options, .arena = arena_new(0)};
    for (size_t i = 0; i < COUNT(strings); i++)
        *strings[i] = arena_str(l->arena, *strings[i]);
    l->token = arena_printf(l->arena, "%016llx", (unsigned long long)rng_u64(l->o.rng));
    l->identity = arena_printf(l->arena, "%.*s_%.*s", STR_F(l->o.holder), STR_F(l->token));
    uv_timer_init(l->o.loop, &l->timer);
    l->timer.data = l;
    sync_holders_open(&l->holders, l->o.store, l->arena, l->o.data_dir);
    sync_turns_open(&l->turns, l->o.store, l->arena, l->o.epoch);
    read_known(l);
    return l;
}

static void on_closed(uv_handle_t *handle)
{
    struct lease *l = handle->data;
    void (*closed)(void *ctx) = l->closed;
    void *ctx = l->closed_ctx;

    forget_seen(l);
    arena_free(l->arena);
    l->magic = 0;
    mem_free(l);
    closed(ctx);
}

void sync_lease_close(struct lease *l, void (*closed)(void *ctx), void *ctx)
{
    assert(l->magic == LEASE_MAGIC && !l->call);
    l->closing = true;
    l->closed = closed;
    l->closed_ctx = ctx;
    if (l->turn != TURN_PENDING)
        uv_close((uv_handle_t *)&l->timer, on_closed);
}
