/* SPDX-License-Identifier: Apache-2.0 */
/* Grants while the host changes. Every turn reads what reflectors and facts have, computes all of
 * it anew and sends what follows; nothing else is remembered but writes whose outcome is not known,
 * and those that the host refuses.
 * The facts of nodes and pods follow these as they change: to parse them all is most of a turn.
 * Between two turns is four times what the first one took, but at most 5 s, so that a machine which
 * stood still goes on; there is none while nothing changes. Its length: sources, turns, writes and
 * their answers are one state.
 *
 *   a change --> timer --> turn --> writes --> answers --> reflectors learn --> a change
 *
 * Must never take a write without an answer for one that did not happen: what it raises counts as
 * promised until the object is seen at another version than the write was based on. */
#include "grants.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <uv.h>

#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/object.h>

#include "event_writer.h"
#include "grant_class_watch.h"
#include "grant_queue.h"
#include "grant_write.h"
#include "pool_gauges.h"
#include "refusals.h"
#include "unsaid.h"

#define GRANTS_MAGIC   0x6772616eu
#define MOST_IN_FLIGHT 64 /* as many as the client of the host has by itself */
#define SOON_MS        20
#define SPACING        4    /* times what the last turn took, until the next */
#define MOST_SPACING   5000 /* ms */
#define RETRY_MS       1000
#define MOST_RETRY_MS  60000
#define MOST_WHY       500
#define MOST_LOGGED    16 /* refusals at one time */
#define MOST_SERIES    10000

/* Queues only where they are kept: NULL elsewhere. */
enum source {
    SOURCE_POOLS,
    SOURCE_BINDINGS,
    SOURCE_QUOTAS,
    SOURCE_DEMANDS,
    N_NEEDED,
    SOURCE_QUEUES = N_NEEDED,
    N_SOURCES
};

/* A write that is under way, or (call is NULL) whose outcome is not known, or that was in vain. */
struct attempt {
    LIST_ENTRY(attempt) all;
    struct grants *g;
    struct str path, version, pool; /* on the heap, as part is */
    struct str part;
    uint64_t wish;
    struct str body;           /* of a PUT that raises nothing; heap */
    int64_t wait_ms, until_ms; /* the host made nothing of it: not again before; or 0 */
    struct rational value;
    struct reflector *learns;
    struct host_call *call;
    bool deletes;                /* its answer is of what is gone */
    struct unsaid_events events; /* without an arena: there are none */
};
struct grants {
    unsigned magic;
    struct grants_options o;
    struct reflector *sources[N_SOURCES];
    struct grant_facts *facts;
    struct grant_class_watch *classes; /* NULL: no pool of mode dra is granted */
    struct event_writer *events;
    struct unsaid *unsaid; /* of writes whose outcome is not known */
    LIST_HEAD(, attempt) attempts;
    unsigned in_flight;
    uint64_t n_failed;
    bool warned;           /* of writes that change nothing */
    struct str queues_why; /* what the host has against a list of Queues; empty: nothing; heap */
    struct refusals *refusals;
    uv_timer_t timer;
    int64_t next_ms; /* no turn before */
    int64_t due_ms;
    bool due, stopped;
    struct arena *a; /* of the last turn's figures */
    struct grants_row *shown;
    struct grants_pool *pools;
    size_t n_shown, n_not_shown, n_pools;
    bool budgets;
    struct fleet_conditions conditions;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void on_timer(uv_timer_t *timer);

/* A turn, not before `ms` from now. */
static void turn_in(struct grants *g, int64_t ms)
{
    int64_t now = clock_mono_ms(g->o.clock), at = now + ms > g->next_ms ? now + ms : g->next_ms;

    if (g->stopped || (g->due && g->due_ms <= at))
        return;
    g->due = true;
    g->due_ms = at;
    uv_update_time(g->o.loop);
    uv_timer_start(&g->timer, on_timer, (uint64_t)(at - now), 0);
}

void grants_changed(struct grants *g)
{
    if (g)
        turn_in(g, SOON_MS);
}

void grants_node(struct grants *g, struct str name, const cJSON *tree)
{
    if (g && grant_facts_node(g->facts, name, tree))
        grants_changed(g);
}

void grants_pod(struct grants *g, struct str name, const cJSON *tree)
{
    if (g && grant_facts_pod(g->facts, name, tree))
        grants_changed(g);
}

/* --- writes --- */

static void attempt_free(struct grants *g, struct attempt *t)
{
    host_cancel(t->call);
    LIST_REMOVE(t, all);
    g->in_flight -= t->call != NULL;
    mem_free(t->path.p);
    mem_free(t->version.p);
    mem_free(t->pool.p);
    mem_free(t->part.p);
    mem_free(t->body.p);
    arena_free(t->events.a);
    mem_free(t);
}

/* What is to be said once the host has it: the object may be another by then. */
static void prepare_events(struct attempt *t, const struct grant_write *w)
{
    struct unsaid_events e = {.a = arena_new(0), .kind = w->kind};

    t->events.a = arena_free(t->events.a);
    e.n = w->kind ? fleet_events_of(e.a, w->kind, w->before, w->body, e.list) : 0;
    if (!e.n) {
        arena_free(e.a);
        return;
    }
    e.object = json_object(e.a, JSON("metadata", json_copy(e.a, json_get(w->body, "metadata"))),
                           JSON("status", json_copy(e.a, json_get(w->body, "status"))));
    t->events = e;
}

static void say(void *ctx, const struct unsaid_events *e)
{
    struct grants *g = ctx;

    for (size_t i = 0; i < e->n; i++)
        fleet_event_write(g->events, e->kind, e->object, &e->list[i]);
}

static void say_events(struct grants *g, struct attempt *t)
{
    if (!t->events.a)
        return;
    fleet_unsaid_drop(g->unsaid, t->events.object);
    say(g, &t->events);
    t->events.a = arena_free(t->events.a);
}

/* Until the object shows whether it happened. */
static void keep_events(struct grants *g, struct attempt *t)
{
    if (t->events.a && !fleet_unsaid_keep(g->unsaid, &t->events))
        fleet_event_lost(g->events, t->events.n);
    t->events.a = NULL;
}

/* Does the host say that the write did not happen? */
static bool was_refused(const struct err *err)
{
    return err->kind != &ERR_UNAVAILABLE && err->kind != &ERR_TIMEOUT &&
           err->kind != &ERR_INTERNAL && err->kind != &ERR_TOO_LARGE;
}

/* Is the object at the version it had? */
static bool was_in_vain(const struct attempt *t, struct str answer)
{
    struct arena *a = arena_new(0);
    cJSON *object;
    bool vain = t->body.n && t->version.n && !json_parse(a, answer, &object, NULL) &&
                str_eq(json_str_at(object, "metadata.resourceVersion"), t->version);

    arena_free(a);
    return vain;
}

/* The host's definitions prune what they do not have: the next look would write it again. */
static void wait_longer(struct grants *g, struct attempt *t)
{
    t->wait_ms = t->wait_ms ? t->wait_ms * 2 : RETRY_MS;
    t->wait_ms = t->wait_ms < MOST_RETRY_MS ? t->wait_ms : MOST_RETRY_MS;
    t->until_ms = clock_mono_ms(g->o.clock) + t->wait_ms;
    if (!g->warned)
        log_warn("grants: the host kept nothing of a write to %.*s: the definitions of GPUPool "
                 "and GPUBinding are older than this process",
                 STR_F(t->path));
    g->warned = true;
    turn_in(g, t->wait_ms);
}

static bool is_queue(struct str path)
{
    return str_has_prefix(path, STR(GRANT_QUEUES "/"));
}

/* A condition says so, and other pools go on. err NULL: the host lists them again. */
static void note_queues(struct grants *g, const struct err *err)
{
    bool said = g->queues_why.n > 0;

    mem_free(g->queues_why.p);
    g->queues_why = err ? mem_str(str_clip(err->message, MOST_WHY)) : (struct str){0};
    if (err && !said)
        log_warn("grants: Queues of KAI cannot be kept: %.*s", STR_F(g->queues_why));
}

static struct str why_refused(void *ctx, struct str path, struct str part)
{
    const struct grants *g = ctx;

    return fleet_refusals_why(g->refusals, path, part);
}

/* What the host says of a write as such. The turn that follows says so in conditions. */
static void note_answer(struct grants *g, const struct attempt *t, const struct err *err)
{
    bool done = !err || (t->deletes && err->kind == &ERR_NOT_FOUND);

    if (done)
        fleet_refusals_taken(g->refusals, t->path, t->part);
    else if (fleet_is_refusal(err) &&
             fleet_refusals_note(g->refusals, t->path, t->part, t->wish, err->message,
                                 clock_mono_ms(g->o.clock)) &&
             fleet_refusals_count(g->refusals) <= MOST_LOGGED)
        log_warn("grants: a write to %.*s is refused, and tried again: %.*s", STR_F(t->path),
                 STR_F(err->message));
}

/* Was it refused just now? */
static bool is_refused(struct grants *g, const struct grant_write *w, uint64_t wish)
{
    int64_t wait =
        fleet_refusals_wait(g->refusals, w->path, w->part, wish, clock_mono_ms(g->o.clock));

    if (wait)
        turn_in(g, wait);
    return wait > 0;
}

static void on_written(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct attempt *t = ctx;
    struct grants *g = t->g;

    assert(g->magic == GRANTS_MAGIC);
    t->call = NULL;
    g->in_flight--;
    g->n_failed += err && err->kind != &ERR_CONFLICT;
    note_answer(g, t, err);
    if (!err && !t->deletes && was_in_vain(t, answer->body)) {
        wait_longer(g, t);
        return;
    }
    if (!err) {
        say_events(g, t);
        if (!t->deletes)
            reflector_learn(t->learns, answer->body);
    }
    if (err && !was_refused(err))
        keep_events(g, t);
    if (!err || was_refused(err) || !t->pool.n)
        attempt_free(g, t);
    turn_in(g, err && !fleet_is_refusal(err) ? RETRY_MS : SOON_MS);
}

static struct reflector *source_of(const struct grants *g, struct str path)
{
    if (str_has_prefix(path, STR("/api/v1/")))
        return g->sources[SOURCE_QUOTAS];
    if (is_queue(path))
        return g->sources[SOURCE_QUEUES];
    return g->sources[str_has_prefix(path, STR(GRANT_GROUP "/gpupools/")) ? SOURCE_POOLS
                                                                          : SOURCE_BINDINGS];
}

/* The one of the same object, version and pool; *ret_busy: a write to the object is under way. */
static struct attempt *attempt_of(struct grants *g, const struct grant_write *w, bool *ret_busy)
{
    struct attempt *t, *same = NULL;

    *ret_busy = false;
    LIST_FOREACH(t, &g->attempts, all)
    {
        if (!str_eq(t->path, w->path))
            continue;
        *ret_busy |= t->call != NULL;
        if (str_eq(t->version, w->version) && str_eq(t->pool, w->pool))
            same = t;
    }
    return same;
}

static void send_write(struct grants *g, struct arena *a, const struct grant_write *w)
{
    struct host_request q = {.method = w->method,
                             .path = w->collection.n ? w->collection : w->path,
                             .body = json_text(a, w->body)};
    bool busy;
    struct attempt *t = attempt_of(g, w, &busy);
    int64_t now = clock_mono_ms(g->o.clock);
    uint64_t wish = fleet_refusals_wish(a, w);

    if (is_refused(g, w, wish) || busy)
        return;
    if (t && now < t->until_ms && str_eq(t->body, q.body)) {
        turn_in(g, t->until_ms - now);
        return;
    }
    if (!t) {
        t = NEW(struct attempt);
        *t = (struct attempt){.g = g,
                              .path = mem_str(w->path),
                              .version = mem_str(w->version),
                              .pool = mem_str(w->pool),
                              .value = w->value,
                              .deletes = str_eqc(str_c(w->method), "DELETE"),
                              .learns = source_of(g, w->path)};
        LIST_INSERT_HEAD(&g->attempts, t, all);
    } else if (rational_cmp(w->value, t->value) > 0) {
        t->value = w->value;
    }
    if (!w->pool.n && !str_eq(t->body, q.body)) {
        mem_free(t->body.p);
        t->body = mem_str(q.body);
    }
    mem_free(t->part.p);
    t->part = mem_str(w->part);
    t->wish = wish;
    prepare_events(t, w);
    g->in_flight++;
    t->call = host_send(g->o.host, &q, on_written, t);
}

/* What a write raises that may have happened. Of an object at another version it did, or never
 * will. */
static struct rational pending(void *ctx, struct str path, struct str version, struct str pool)
{
    struct grants *g = ctx;
    struct rational most = RATIONAL_ZERO;

    for (struct attempt *t = LIST_FIRST(&g->attempts), *next; t; t = next) {
        next = LIST_NEXT(t, all);
        if (!str_eq(t->path, path))
            continue;
        if (!str_eq(t->version, version) && !t->call)
            attempt_free(g, t);
        else if (str_eq(t->pool, pool) && rational_cmp(t->value, most) > 0)
            most = t->value;
    }
    return most;
}

/* Those in vain that are not wanted any more: what is was sent again by now. */
static void forget_vain(struct grants *g)
{
    int64_t now = clock_mono_ms(g->o.clock);

    for (struct attempt *t = LIST_FIRST(&g->attempts), *next; t; t = next) {
        next = LIST_NEXT(t, all);
        if (!t->call && t->until_ms && t->until_ms <= now)
            attempt_free(g, t);
    }
}

/* --- a turn --- */

struct reading {
    struct grant_state *state;
    void (*take)(struct grant_state *s, const cJSON *tree);
};

static void take(void *ctx, const struct host_object *o)
{
    struct reading *r = ctx;
    cJSON *tree;

    if (!json_parse(r->state->a, o->bytes, &tree, NULL))
        r->take(r->state, tree);
}

/* Of two pools that match a node it is always the same one. */
static int by_name(const void *x, const void *y)
{
    const struct host_object *a = *(const struct host_object *const *)x,
                             *b = *(const struct host_object *const *)y;

    return str_cmp(a->name, b->name);
}

struct collecting {
    const struct host_object **list;
    size_t n;
};

static void collect(void *ctx, const struct host_object *o)
{
    struct collecting *c = ctx;

    c->list[c->n++] = o;
}

static void read_pools(struct grant_state *s, struct reflector *from)
{
    struct collecting c = {arena_alloc(s->a, (reflector_count(from) + 1) * sizeof(*c.list)), 0};
    struct reading r = {s, grant_state_pool};

    reflector_each(from, collect, &c);
    if (c.n)
        qsort(c.list, c.n, sizeof(*c.list), by_name);
    for (size_t i = 0; i < c.n; i++)
        take(&r, c.list[i]);
}

static void read_all(struct grant_state *s, struct reflector *from,
                     void (*how)(struct grant_state *s, const cJSON *tree))
{
    struct reading r = {s, how};

    reflector_each(from, take, &r);
}

static void take_node(void *ctx, const struct grant_node *node)
{
    grant_state_node(ctx, node);
}

static void take_pod(void *ctx, const struct grant_pod *pod)
{
    grant_state_pod(ctx, pod);
}

static void take_claim(void *ctx, const struct grant_claim *claim)
{
    grant_state_claim(ctx, claim);
}

static void look_at_nodes(struct grants *g, struct grant_state *s)
{
    struct fleet_watch_pool *pools = arena_alloc(s->a, (s->n_configs + 1) * sizeof(*pools));
    struct fleet_watch_view view;

    for (size_t p = 0; p < s->n_configs; p++)
        pools[p] = (struct fleet_watch_pool){s->configs[p].name, s->selectors[p]};
    fleet_watch_look(g->o.watch, s->a, pools, s->n_configs, &view);
    s->watched = view.sums;
}

static const cJSON *see(void *ctx, struct arena *a, const char *kind, const cJSON *object)
{
    struct grants *g = ctx;
    struct str ns = meta_ns(object), name = meta_name(object);
    bool is_pool = str_eqc(str_c(kind), "GPUPool");
    const struct host_object *o =
        reflector_get(g->sources[is_pool ? SOURCE_POOLS : SOURCE_BINDINGS],
                      is_pool ? name : arena_printf(a, "%.*s/%.*s", STR_F(ns), STR_F(name)));
    cJSON *tree = NULL;

    return o && !json_parse(a, o->bytes, &tree, NULL) ? tree : NULL;
}

static bool under_way(void *ctx, const cJSON *object)
{
    const struct grants *g = ctx;
    const struct attempt *t;

    LIST_FOREACH(t, &g->attempts, all)
    {
        if (t->call && t->events.a && str_eq(meta_uid(t->events.object), meta_uid(object)))
            return true;
    }
    return false;
}

static bool is_listed(const struct grants *g, enum source source)
{
    return reflector_listed_ms(g->sources[source]) != REFLECTOR_NOT_CURRENT;
}

static bool is_current(const struct grants *g)
{
    bool current = reflector_listed_ms(g->o.nodes) != REFLECTOR_NOT_CURRENT &&
                   reflector_listed_ms(g->o.pods) != REFLECTOR_NOT_CURRENT;

    for (enum source i = 0; i < N_NEEDED && current; i++)
        current = is_listed(g, i);
    return current && grant_class_watch_is_settled(g->classes);
}

/* Values of labels have no '\n'. */
static struct str labels_of(struct arena *a, const cJSON *tree, struct str_list keys)
{
    const cJSON *labels = json_path(tree, "metadata.labels");
    struct str text = STR("");

    for (size_t i = 0; i < keys.n; i++) {
        struct str value = json_str(json_get(labels, arena_cstr(a, keys.items[i])));

        if (value.n)
            text =
                arena_printf(a, "%.*s%.*s=%.*s\n", STR_F(text), STR_F(keys.items[i]), STR_F(value));
    }
    return text;
}

static struct grants_budget budget_of(struct arena *a, const struct grant_row *r)
{
    if (!r->budget.is)
        return (struct grants_budget){0};
    return (struct grants_budget){.is = true,
                                  .currency = arena_str(a, r->spent.currency),
                                  .amount = r->budget.amount,
                                  .spent = r->spent.spent,
                                  .forecast = r->spent.forecast,
                                  .percent = r->spent.percent,
                                  .threshold = r->spent.threshold,
                                  .enforcement = r->budget.enforcement};
}

static struct grants_row row_of(struct arena *a, const struct grant_state *s, size_t i,
                                struct str_list labels)
{
    const struct grant_row *r = &s->rows[i];
    const struct share_binding *b = &s->bindings[i];

    return (struct grants_row){
        .tenant = arena_str(a, r->tenant->ns),
        .pool = arena_str(a, r->pool),
        .state = GRANT_REASONS[b->state],
        .counts = b->state == SHARE_READY,
        .labels = labels_of(a, r->tree, labels),
        .guarantee = r->guarantee,
        .burst = r->burst,
        .grant = b->grant,
        .holds = b->holds,
        .placed = b->placed,
        .wants = b->says ? b->wants : (struct rational){-1, 1},
        .budget = budget_of(a, r),
        .reclaim_at = arena_str(a, json_str_at(r->tree, "status.reclaim.notBefore")),
    };
}

static struct str_list copy_list(struct arena *a, struct str_list list)
{
    struct str *items = arena_alloc(a, (list.n + 1) * sizeof(*items));

    for (size_t i = 0; i < list.n; i++)
        items[i] = arena_str(a, list.items[i]);
    return (struct str_list){items, list.n};
}

/* What nodes that are not Ready hold is unhealthy, not held, as in the ledger. */
static void remember_phase(struct grants *g, const struct grant_pool *from, struct grants_pool *to)
{
    const struct config_maintenance *wants = &from->facts.wants;

    to->state = grant_phase_state(&from->phase);
    to->overdue = from->phase.overdue && from->phase.maintenance >= GRANT_CORDONED;
    if (from->phase.maintenance < GRANT_CORDONED)
        return;
    to->reason = arena_str(g->a, wants->reason);
    to->until = wants->until_s ? time_format_s(g->a, wants->until_s) : STR("");
}

static void remember_pools(struct grants *g, const struct grant_state *s)
{
    g->pools = arena_alloc(g->a, (s->n_configs + 1) * sizeof(*g->pools));
    g->n_pools = s->n_configs;
    for (size_t p = 0; p < s->n_configs; p++)
        g->pools[p] = (struct grants_pool){
            .name = arena_str(g->a, s->configs[p].name),
            .selector = copy_list(g->a, s->selectors[p]),
            .nodes = s->sums[p].nodes,
            .healthy = s->shares[p].healthy,
            .absent = grant_without(s->shares[p].total, s->sums[p].nodes),
            .held = s->sums[p].foreign_up,
            .guaranteed = RATIONAL_ZERO,
            .borrowed = RATIONAL_ZERO,
        };
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct share_binding *b = &s->bindings[i];
        struct grants_pool *p = b->pool == SHARE_NO_POOL ? NULL : &g->pools[b->pool];

        if (!p)
            continue;
        rational_add_most(&p->held, b->placed);
        rational_add_most(&p->borrowed, grant_without(b->placed, b->guarantee));
        if (b->state == SHARE_READY)
            rational_add_most(&p->guaranteed, b->guarantee);
    }
    for (size_t p = 0; p < s->n_configs; p++)
        remember_phase(g, grant_pool_at(s, p), &g->pools[p]);
    for (size_t p = 0; p < s->n_configs; p++)
        g->pools[p].held = grant_without(g->pools[p].held, s->sums[p].stranded);
}

static void remember(struct grants *g, const struct grant_state *s)
{
    arena_free(g->a);
    g->a = arena_new(0);
    g->shown = arena_alloc(g->a, (s->n_rows + 1) * sizeof(*g->shown));
    g->n_shown = g->n_not_shown = 0;
    g->budgets = false;
    for (size_t i = 0; i < s->n_rows; i++)
        g->budgets |= s->rows[i].budget.is;
    for (size_t i = 0; i < s->n_rows; i++)
        if (g->n_shown < MOST_SERIES)
            g->shown[g->n_shown++] = row_of(g->a, s, i, g->o.labels);
        else
            g->n_not_shown++;
    remember_pools(g, s);
    g->conditions = (struct fleet_conditions){0};
    for (size_t i = 0; i < s->n_pools; i++) /* invalid ones as well */
        fleet_conditions_add(g->a, &g->conditions, s->pools[i].tree);
}

/* Seconds until something follows though nothing changes; 0: nothing does. */
static int64_t turn(struct grants *g)
{
    struct arena *a = arena_new(0);
    struct grant_times times = {.now_s = clock_wall_s(g->o.clock),
                                .grace_s = g->o.grace_ms / 1000,
                                .pause_s = g->o.pause_ms / 1000};
    struct grant_state s;
    const struct unsaid_look look = {under_way, see, say, g};
    struct budget_facts budgets = {0};
    const struct grant_facts_visit visit = {.node = take_node, .pod = take_pod, .ctx = &s};
    int64_t next_s;
    struct grant_write w;
    size_t at = 0;
    bool more = true;

    fleet_unsaid_settle(g->unsaid, &look);
    grant_state_begin(&s, a, &times);
    if (g->o.budgets)
        g->o.budgets(g->o.ctx, &budgets);
    s.budgets = &budgets;
    s.pending = pending;
    s.ctx = g;
    s.keeps_queues = g->o.queues;
    s.queues_known = is_listed(g, SOURCE_QUEUES);
    s.queues_why = g->queues_why;
    s.refused = fleet_refusals_count(g->refusals) ? why_refused : NULL;
    s.classes = grant_class_watch_source(g->classes);
    read_pools(&s, g->sources[SOURCE_POOLS]);
    read_all(&s, g->sources[SOURCE_BINDINGS], grant_state_binding);
    read_all(&s, g->sources[SOURCE_QUOTAS], grant_state_quota);
    read_all(&s, g->sources[SOURCE_DEMANDS], grant_state_demand);
    if (s.queues_known)
        read_all(&s, g->sources[SOURCE_QUEUES], grant_queue_add);
    grant_facts_each(g->facts, &visit);
    grant_class_watch_each(g->classes, take_claim, &s);
    grant_state_settle(&s);
    look_at_nodes(g, &s);
    while (g->in_flight < MOST_IN_FLIGHT && (more = grant_next_write(&s, &at, &w)))
        send_write(g, a, &w);
    if (!more && fleet_refusals_forget(g->refusals)) /* a condition says so still */
        turn_in(g, SOON_MS);
    forget_vain(g);
    remember(g, &s);
    next_s = s.next_s ? s.next_s - times.now_s : 0;
    grant_state_end(&s);
    arena_free(a);
    if (g->o.computed)
        g->o.computed(g->o.ctx);
    return next_s;
}

static void on_timer(uv_timer_t *timer)
{
    struct grants *g = timer->data;
    int64_t began = clock_mono_ms(g->o.clock), ended, spacing, next_s;

    assert(g->magic == GRANTS_MAGIC);
    g->due = false;
    if (g->stopped || !is_current(g))
        return; /* current() follows */
    next_s = turn(g);
    ended = clock_mono_ms(g->o.clock);
    spacing = (ended - began) * SPACING;
    g->next_ms = ended + (spacing < MOST_SPACING ? spacing : MOST_SPACING);
    if (next_s)
        turn_in(g, next_s * 1000);
}

/* --- watches --- */

static void on_object(void *ctx, const struct host_object *now, const struct host_object *before)
{
    (void)now;
    (void)before;
    grants_changed(ctx);
}

static void on_classes(void *ctx)
{
    grants_changed(ctx);
}

static void on_current(void *ctx, bool listed)
{
    (void)listed;
    grants_changed(ctx);
}

static void on_refused(void *ctx, const struct err *err)
{
    struct grants *g = ctx;
    struct err reason;

    err_init(&reason, NULL);
    err_set(&reason, err->kind, "grants: GPUPools, GPUBindings and ResourceQuotas: %.*s",
            STR_F(err->message));
    if (!g->stopped)
        g->o.refused(g->o.ctx, &reason);
    err_clear(&reason);
}

static void on_queues_refused(void *ctx, const struct err *err)
{
    struct grants *g = ctx;

    if (g->stopped)
        return;
    note_queues(g, err);
    grants_changed(g);
}

static void on_queues_current(void *ctx, bool listed)
{
    (void)listed;
    note_queues(ctx, NULL);
    grants_changed(ctx);
}

static void on_went_back(void *ctx)
{
    struct grants *g = ctx;

    for (size_t i = 0; i < N_SOURCES; i++)
        reflector_restart(g->sources[i]);
    grant_class_watch_restart(g->classes);
}

struct keeping {
    struct grant_facts *facts;
    bool (*keep)(struct grant_facts *f, struct str name, const cJSON *tree);
};

static void keep_object(void *ctx, const struct host_object *o)
{
    const struct keeping *k = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree;

    if (!json_parse(a, o->bytes, &tree, NULL))
        k->keep(k->facts, o->name, tree);
    arena_free(a);
}

/* What the owner's reflectors have by now. */
static void keep_facts(struct grants *g)
{
    struct keeping nodes = {g->facts, grant_facts_node}, pods = {g->facts, grant_facts_pod};

    reflector_each(g->o.nodes, keep_object, &nodes);
    reflector_each(g->o.pods, keep_object, &pods);
}

struct grants *grants_open(const struct grants_options *options)
{
    static const struct {
        const char *path, *name;
        bool by_namespace;
    } sources[N_SOURCES] = {
        [SOURCE_POOLS] = {GRANT_GROUP "/gpupools", "", false},
        [SOURCE_BINDINGS] = {GRANT_GROUP "/gpubindings", "", true},
        [SOURCE_QUOTAS] = {"/api/v1/resourcequotas", "metadata.name=" GRANT_QUOTA, true},
        [SOURCE_DEMANDS] = {"/api/v1/configmaps", "metadata.name=" GRANT_DEMAND, true},
        [SOURCE_QUEUES] = {GRANT_QUEUES, "", false},
    };
    struct grants *g = NEW(struct grants);
    const struct grant_class_watch_options classes = {options->host, on_classes, on_went_back, g};

    *g = (struct grants){.magic = GRANTS_MAGIC, .o = *options, .facts = grant_facts_new()};
    grant_facts_settle(g->facts, options->clock);
    g->events = fleet_event_writer_new(options->host, options->clock);
    g->unsaid = fleet_unsaid_new();
    g->refusals = fleet_refusals_new();
    keep_facts(g);
    uv_timer_init(options->loop, &g->timer);
    g->timer.data = g;
    for (size_t i = 0; i < N_SOURCES; i++) {
        struct reflector_options o = {.host = options->host,
                                      .path = str_c(sources[i].path),
                                      .field_selector = str_c(sources[i].name),
                                      .by_namespace = sources[i].by_namespace,
                                      .changed = on_object,
                                      .current = on_current,
                                      .refused = on_refused,
                                      .went_back = on_went_back,
                                      .ctx = g};

        if (i == SOURCE_QUEUES) {
            o.current = on_queues_current;
            o.refused = on_queues_refused;
        }
        if (i != SOURCE_QUEUES || g->o.queues)
            g->sources[i] = reflector_open(&o);
    }
    if (g->o.claims)
        g->classes = grant_class_watch_open(&classes);
    return g;
}

/* --- what was computed --- */

struct grants_view grants_view(const struct grants *g)
{
    if (!g)
        return (struct grants_view){.current = true};
    return (struct grants_view){.rows = g->shown,
                                .pools = g->pools,
                                .n_rows = g->n_shown,
                                .n_pools = g->n_pools,
                                .n_not_shown = g->n_not_shown,
                                .current = is_current(g),
                                .budgets = g->budgets};
}

static double gpus(struct rational r)
{
    return r.num > 0 ? (double)r.num / (double)r.den : 0;
}

static void sample_state(struct buf *out, struct str pool, const char *state)
{
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "pool", pool);
    metrics_label(&labels, "state", str_c(state));
    metrics_sample_u64(out, METRIC_FLEET_POOL_UNAVAILABLE, buf_str(&labels), 1);
    buf_fini(&labels);
}

static void pool_metrics(const struct grants *g, struct buf *out)
{
    metrics_family(out, METRIC_FLEET_POOL_UNAVAILABLE);
    for (size_t i = 0; i < g->n_pools; i++) {
        const struct grants_pool *p = &g->pools[i];

        if (p->state)
            sample_state(out, p->name, p->state);
        if (p->overdue)
            sample_state(out, p->name, "overdue");
    }
    fleet_conditions_metrics(out, &g->conditions);
}

void grants_metrics(const struct grants *g, struct buf *out)
{
    static const enum metric families[] = {METRIC_FLEET_GRANTED, METRIC_FLEET_BORROWED,
                                           METRIC_FLEET_LENT};

    for (size_t f = 0; g && f < COUNT(families); f++) {
        metrics_family(out, families[f]);
        for (size_t i = 0; i < g->n_shown; i++) {
            const struct grants_row *s = &g->shown[i];
            struct buf labels = BUF_INIT(0);
            struct rational more = RATIONAL_ZERO, less = RATIONAL_ZERO;

            if (s->state != GRANT_REASONS[SHARE_READY])
                continue;
            (void)rational_sub(s->grant, s->guarantee, &more);
            (void)rational_sub(s->guarantee, s->grant, &less);
            metrics_label(&labels, "pool", s->pool);
            metrics_label(&labels, "tenant", s->tenant);
            metrics_sample(out, families[f], buf_str(&labels),
                           gpus(f == 0   ? s->grant
                                : f == 1 ? more
                                         : less));
            buf_fini(&labels);
        }
    }
    if (g)
        pool_metrics(g, out);
    if (g)
        metrics_single_u64(out, METRIC_FLEET_GRANT_FAILURES, g->n_failed);
    if (g)
        fleet_refusals_metrics(g->refusals, out);
    if (g)
        fleet_event_writer_metrics(g->events, out);
}

/* --- life --- */

void grants_stop(struct grants *g)
{
    if (!g || g->stopped)
        return;
    g->stopped = true;
    uv_timer_stop(&g->timer);
    while (!LIST_EMPTY(&g->attempts))
        attempt_free(g, LIST_FIRST(&g->attempts));
    fleet_event_writer_stop(g->events);
}

static void on_closed(uv_handle_t *handle)
{
    struct grants *g = handle->data;
    void (*closed)(void *ctx) = g->closed;
    void *ctx = g->closed_ctx;

    arena_free(g->a);
    mem_free(g->queues_why.p);
    grant_facts_free(g->facts);
    fleet_event_writer_free(g->events);
    fleet_unsaid_free(g->unsaid);
    fleet_refusals_free(g->refusals);
    g->magic = 0;
    mem_free(g);
    closed(ctx);
}

void grants_close(struct grants *g, void (*closed)(void *ctx), void *ctx)
{
    assert(g->magic == GRANTS_MAGIC);
    grants_stop(g);
    g->closed = closed;
    g->closed_ctx = ctx;
    for (size_t i = 0; i < N_SOURCES; i++)
        g->sources[i] = reflector_close(g->sources[i]);
    g->classes = grant_class_watch_close(g->classes);
    uv_close((uv_handle_t *)&g->timer, on_closed);
}
