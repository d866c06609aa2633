/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of exporters, joined with the pods that hold GPUs. Why joined: an exporter's labels are a
 * claim. It counts only for a pod that the fleet saw on the node of the exporter that answered.
 * Must never take silence for idleness, nor a GPU that no exporter measured: an idle time begins
 * with the first sample of an unbroken row of them.
 *
 *   UNKNOWN --sample--> BUSY --below the limit for idleAfter--> WARM, UNUSED --above--> BUSY
 *      ^------------------'------------ no sample for too long -----'
 */
#include "activity.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/buf.h>
#include <sublet/hash.h>

#define ACTIVITY_MAGIC 0x61637469u
#define NEVER          INT64_MIN
/* A MIG instance without a process has a few MiB in use, a CUDA context alone hundreds. */
#define WARM_MIB  64.0
#define MOST_GPUS 64 /* of a pod, whose last errors are kept */
#define MOST_XID  1e6

const char *const ACTIVITY_STATES[N_ACTIVITY_STATES] = {"busy", "warm", "unused", "unknown"};
const char *const ACTIVITY_REFUSALS[N_ACTIVITY_REFUSALS] = {"no-pod", "other-node", "other-uid",
                                                            "shared", "out-of-range"};

/* Of a pod, out of one answer. */
struct measured {
    size_t devices, with_activity;
    double sum, most; /* of their activities */
    bool warm;
};
/* The last error of a GPU. Why it is kept: an exporter says it again until the driver is loaded
 * anew, so only a change is an error; and the first one a pod is seen with may be older than it. */
struct gpu_xid {
    uint64_t gpu; /* hash of its name */
    double xid;
};
struct pod {
    struct map_entry by_name;
    struct str name, uid, node; /* on the heap */
    struct line *line;
    struct rational gpu_eq;
    size_t devices;
    int64_t sampled_ms, idle_since_ms; /* NEVER */
    int64_t accrued_ms;                /* until then its idle time is counted */
    double activity;                   /* of 1, as last sampled */
    bool warm;
    struct measured now;  /* of the answer that is read */
    struct gpu_xid *xids; /* on the heap */
    size_t n_xids;
};
struct line {
    struct map_entry by_key;
    struct str key, tenant, pool; /* on the heap */
    double idle_seconds[N_ACTIVITY_STATES];
    uint64_t xids;
    size_t index; /* among those that are shown */
};
struct activity {
    unsigned magic;
    struct activity_options o;
    struct map pods, lines;
    struct line others; /* of what is beyond the limit: not shown */
    uint64_t refused[N_ACTIVITY_REFUSALS];
};

struct activity *activity_new(const struct activity_options *options)
{
    struct activity *a = NEW(struct activity);

    a->magic = ACTIVITY_MAGIC;
    a->o = *options;
    return a;
}

/* --- pods --- */

static double gpus(const struct pod *p)
{
    return (double)p->gpu_eq.num / (double)p->gpu_eq.den;
}

static struct line *line_of(struct activity *a, struct str tenant, struct str pool)
{
    struct arena *arena = arena_new(0);
    struct str key = arena_printf(arena, "%.*s %.*s", STR_F(pool), STR_F(tenant));
    struct map_entry *e = map_get(&a->lines, key);
    struct line *l = e ? CONTAINER(e, struct line, by_key) : &a->others;

    if (!e && map_count(&a->lines) < ACTIVITY_LINES) {
        l = NEW(struct line);
        *l = (struct line){.key = mem_str(key), .tenant = mem_str(tenant), .pool = mem_str(pool)};
        map_put(&a->lines, &l->by_key, l->key);
    }
    arena_free(arena);
    return l;
}

static bool is_fresh(const struct activity *a, const struct pod *p, int64_t now_ms)
{
    return p->sampled_ms != NEVER && now_ms - p->sampled_ms <= a->o.fresh_ms;
}

static enum activity_state state_of(const struct activity *a, const struct pod *p, int64_t now_ms)
{
    if (!is_fresh(a, p, now_ms))
        return ACTIVITY_UNKNOWN;
    if (p->idle_since_ms == NEVER || now_ms - p->idle_since_ms < a->o.idle_after_ms)
        return ACTIVITY_BUSY;
    return p->warm ? ACTIVITY_WARM : ACTIVITY_UNUSED;
}

/* Counts the time since it was counted last: a sample holds until the next one, as long as it is
 * fresh. */
static void accrue(struct activity *a, struct pod *p, int64_t now_ms)
{
    int64_t from = p->accrued_ms, until = now_ms;

    p->accrued_ms = now_ms;
    if (p->idle_since_ms == NEVER)
        return;
    if (from < p->idle_since_ms + a->o.idle_after_ms)
        from = p->idle_since_ms + a->o.idle_after_ms;
    if (until > p->sampled_ms + a->o.fresh_ms)
        until = p->sampled_ms + a->o.fresh_ms;
    if (until > from)
        p->line->idle_seconds[p->warm ? ACTIVITY_WARM : ACTIVITY_UNUSED] +=
            (double)(until - from) / 1000 * gpus(p);
}

static struct pod *pod_of(const struct activity *a, struct str name)
{
    struct map_entry *e = map_get(&a->pods, name);

    return e ? CONTAINER(e, struct pod, by_name) : NULL;
}

static void free_pod(void *ctx, struct map_entry *e)
{
    struct activity *a = ctx;
    struct pod *p = CONTAINER(e, struct pod, by_name);

    map_remove(&a->pods, e);
    mem_free(p->name.p);
    mem_free(p->uid.p);
    mem_free(p->node.p);
    mem_free(p->xids);
    mem_free(p);
}

void activity_release(struct activity *a, struct str name, int64_t now_ms)
{
    struct pod *p = pod_of(a, name);

    assert(a->magic == ACTIVITY_MAGIC);
    if (!p)
        return;
    accrue(a, p, now_ms);
    free_pod(a, &p->by_name);
}

static bool is_same(const struct pod *p, const struct activity_hold *h)
{
    return str_eq(p->uid, h->uid) && str_eq(p->node, h->node) && str_eq(p->line->pool, h->pool) &&
           !rational_cmp(p->gpu_eq, h->gpu_eq);
}

void activity_hold(struct activity *a, const struct activity_hold *h, int64_t now_ms)
{
    struct str tenant = str_sub(h->name, 0, str_find(h->name, '/'));
    struct pod *p = pod_of(a, h->name);

    assert(a->magic == ACTIVITY_MAGIC);
    if (p && is_same(p, h)) {
        p->devices = h->devices;
        return;
    }
    activity_release(a, h->name, now_ms);
    p = NEW(struct pod);
    *p = (struct pod){.name = mem_str(h->name),
                      .uid = mem_str(h->uid),
                      .node = mem_str(h->node),
                      .line = line_of(a, tenant, h->pool),
                      .gpu_eq = h->gpu_eq,
                      .devices = h->devices,
                      .sampled_ms = NEVER,
                      .idle_since_ms = NEVER,
                      .accrued_ms = now_ms};
    map_put(&a->pods, &p->by_name, p->name);
}

/* --- an answer --- */

/* What it says of a device, of what is read here; negative: nothing. */
struct reading {
    double activity, utilisation, used; /* of 1, of 100, MiB */
};

static void read_samples(struct activity *a, const struct dcgm *d, struct reading *readings)
{
    const int activity = dcgm_family(d, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
              utilisation = dcgm_family(d, "DCGM_FI_DEV_GPU_UTIL"),
              used = dcgm_family(d, "DCGM_FI_DEV_FB_USED");

    for (size_t i = 0; i < d->n_devices; i++)
        readings[i] = (struct reading){-1, -1, -1};
    for (size_t i = 0; i < d->n_samples; i++) {
        const struct dcgm_sample *s = &d->samples[i];
        struct reading *r = &readings[s->device];
        double most = s->family == activity ? 1 : s->family == utilisation ? 100 : 1e12;

        if (s->family != activity && s->family != utilisation && s->family != used)
            continue;
        if (s->value < 0 || s->value > most)
            a->refused[ACTIVITY_OUT_OF_RANGE]++;
        else if (s->family == activity)
            r->activity = s->value;
        else if (s->family == utilisation)
            r->utilisation = s->value;
        else
            r->used = s->value;
    }
}

/* The pod whose it is. N_ACTIVITY_REFUSALS in *ret with NULL: it is no pod's. */
static struct pod *owner_of(const struct activity *a, struct str node, const struct dcgm_device *d,
                            struct buf *key, enum activity_refusal *ret)
{
    struct str uid = d->labels[DCGM_POD_UID];
    struct pod *p;

    *ret = N_ACTIVITY_REFUSALS;
    if (!d->labels[DCGM_POD].n && !d->labels[DCGM_NAMESPACE].n)
        return NULL;
    buf_clear(key);
    buf_printf(key, "%.*s/%.*s", STR_F(d->labels[DCGM_NAMESPACE]), STR_F(d->labels[DCGM_POD]));
    p = pod_of(a, buf_str(key));
    if (!p)
        *ret = ACTIVITY_NO_POD;
    else if (!str_eq(p->node, node))
        *ret = ACTIVITY_OTHER_NODE;
    else if (uid.n && !str_eq(uid, p->uid))
        *ret = ACTIVITY_OTHER_UID;
    else if (d->disputed && p->devices)
        *ret = ACTIVITY_SHARED;
    return *ret == N_ACTIVITY_REFUSALS ? p : NULL;
}

bool activity_is_own(const struct activity *a, struct str node, const struct dcgm_device *d)
{
    struct buf key = BUF_INIT(0);
    enum activity_refusal ignored;
    const struct pod *p = owner_of(a, node, d, &key, &ignored);

    buf_fini(&key);
    return p && p->devices;
}

static void measure(struct pod *p, const struct reading *r)
{
    struct measured *m = &p->now;
    double activity = r->activity >= 0 ? r->activity : r->utilisation / 100;

    m->devices++;
    /* Memory that was not measured may be in use. */
    m->warm |= r->used < 0 || r->used >= WARM_MIB;
    if (activity < 0)
        return;
    m->with_activity++;
    m->sum += activity;
    m->most = activity > m->most ? activity : m->most;
}

/* Each of its GPUs was measured, as far as that can be known. */
static bool is_complete(const struct pod *p)
{
    return p->now.with_activity && p->now.with_activity == p->now.devices &&
           p->now.with_activity >= p->devices;
}

static void sample(struct activity *a, struct pod *p, int64_t now_ms)
{
    bool goes_on = is_fresh(a, p, now_ms) && p->idle_since_ms != NEVER;

    accrue(a, p, now_ms);
    p->activity = p->now.sum / (double)p->now.with_activity;
    p->warm = p->now.warm;
    p->sampled_ms = now_ms;
    if (p->now.most >= a->o.idle_below)
        p->idle_since_ms = NEVER;
    else if (!goes_on)
        p->idle_since_ms = now_ms;
}

static void note_xid(struct pod *p, uint64_t gpu, double xid)
{
    size_t i = 0;

    while (i < p->n_xids && p->xids[i].gpu != gpu)
        i++;
    if (i == p->n_xids) {
        if (i == MOST_GPUS)
            return;
        p->xids = mem_realloc(p->xids, (i + 1) * sizeof(*p->xids));
        p->xids[p->n_xids++] = (struct gpu_xid){gpu, xid};
    } else if (p->xids[i].xid < xid || p->xids[i].xid > xid) {
        p->xids[i].xid = xid;
        p->line->xids += xid > 0;
    }
}

/* A GPU that several containers of a pod have is one; one that several pods have is each one's. */
static void read_xids(struct activity *a, const struct dcgm *d, struct pod *const *owners)
{
    const int family = dcgm_family(d, "DCGM_FI_DEV_XID_ERRORS");
    struct buf gpu = BUF_INIT(0);

    for (size_t i = 0; i < d->n_samples; i++) {
        const struct dcgm_sample *s = &d->samples[i];
        const struct str *labels = d->devices[s->device].labels;

        if (s->family != family || !owners[s->device])
            continue;
        if (s->value < 0 || s->value > MOST_XID) {
            a->refused[ACTIVITY_OUT_OF_RANGE]++;
            continue;
        }
        buf_clear(&gpu);
        buf_printf(&gpu, "%.*s %.*s %.*s", STR_F(labels[DCGM_GPU]), STR_F(labels[DCGM_UUID]),
                   STR_F(labels[DCGM_INSTANCE]));
        note_xid(owners[s->device], str_hash(buf_str(&gpu), hash_seed()), s->value);
    }
    buf_fini(&gpu);
}

void activity_answer(struct activity *a, struct str node, const struct dcgm *d, int64_t now_ms)
{
    struct arena *arena = arena_new(0);
    struct reading *readings = arena_alloc(arena, (d->n_devices + 1) * sizeof(*readings));
    struct pod **owners = arena_alloc(arena, (d->n_devices + 1) * sizeof(struct pod *));
    enum activity_refusal *refusals = arena_alloc(arena, (d->n_devices + 1) * sizeof(*refusals));
    struct buf key = BUF_INIT(0);

    assert(a->magic == ACTIVITY_MAGIC);
    for (size_t i = 0; i < d->n_devices; i++) {
        owners[i] = owner_of(a, node, &d->devices[i], &key, &refusals[i]);
        if (owners[i])
            owners[i]->now = (struct measured){0};
    }
    for (size_t i = 0; i < d->n_samples; i++)
        if (refusals[d->samples[i].device] != N_ACTIVITY_REFUSALS)
            a->refused[refusals[d->samples[i].device]]++;
    read_samples(a, d, readings);
    read_xids(a, d, owners);
    for (size_t i = 0; i < d->n_devices; i++)
        if (owners[i])
            measure(owners[i], &readings[i]);
    for (size_t i = 0; i < d->n_devices; i++)
        if (owners[i] && is_complete(owners[i])) {
            sample(a, owners[i], now_ms);
            owners[i]->now = (struct measured){0}; /* once, whatever GPUs it has */
        }
    buf_fini(&key);
    arena_free(arena);
}

/* --- what follows --- */

struct look {
    struct activity *a;
    int64_t now_ms;
    struct line **order;
    struct activity_line *lines;
    struct activity_idle *idle;
    size_t n_lines, n_idle, n_others;
};

static void list_line(void *ctx, struct map_entry *e)
{
    struct look *l = ctx;

    l->order[l->n_lines++] = CONTAINER(e, struct line, by_key);
}

static int line_order(const void *a, const void *b)
{
    const struct line *x = *(struct line *const *)a, *y = *(struct line *const *)b;

    return str_cmp(x->key, y->key);
}

static void show_pod(void *ctx, struct map_entry *e)
{
    struct look *l = ctx;
    struct pod *p = CONTAINER(e, struct pod, by_name);
    enum activity_state state = state_of(l->a, p, l->now_ms);
    struct activity_line *line;

    accrue(l->a, p, l->now_ms);
    if (p->line == &l->a->others) {
        l->n_others++;
        return;
    }
    line = &l->lines[p->line->index];
    line->gpus[state] += gpus(p);
    if (state != ACTIVITY_UNKNOWN)
        line->utilised += gpus(p) * p->activity;
    if (state == ACTIVITY_WARM || state == ACTIVITY_UNUSED)
        l->idle[l->n_idle++] =
            (struct activity_idle){.name = str_from(p->name, str_find(p->name, '/') + 1),
                                   .tenant = p->line->tenant,
                                   .node = p->node,
                                   .pool = p->line->pool,
                                   .gpu_eq = p->gpu_eq,
                                   .state = state,
                                   .idle_ms = l->now_ms - p->idle_since_ms};
}

static double waste(const struct activity_idle *i)
{
    return (double)i->gpu_eq.num / (double)i->gpu_eq.den * (double)i->idle_ms;
}

static int idle_order(const void *a, const void *b)
{
    const struct activity_idle *x = a, *y = b;
    double more = waste(y) - waste(x);
    int tenants = str_cmp(x->tenant, y->tenant);

    if (more > 0 || more < 0)
        return more > 0 ? 1 : -1;
    return tenants ? tenants : str_cmp(x->name, y->name);
}

void activity_look(struct activity *a, struct arena *arena, int64_t now_ms,
                   struct activity_view *ret)
{
    size_t lines = map_count(&a->lines);
    struct look l = {.a = a,
                     .now_ms = now_ms,
                     .order = arena_alloc(arena, (lines + 1) * sizeof(struct line *)),
                     .lines = arena_alloc(arena, (lines + 1) * sizeof(*l.lines)),
                     .idle = arena_alloc(arena, (map_count(&a->pods) + 1) * sizeof(*l.idle))};

    assert(a->magic == ACTIVITY_MAGIC);
    map_each(&a->lines, list_line, &l);
    qsort(l.order, l.n_lines, sizeof(*l.order), line_order);
    for (size_t i = 0; i < l.n_lines; i++) {
        l.order[i]->index = i;
        l.lines[i] = (struct activity_line){.tenant = l.order[i]->tenant, .pool = l.order[i]->pool};
    }
    map_each(&a->pods, show_pod, &l);
    for (size_t i = 0; i < l.n_lines; i++) {
        memcpy(l.lines[i].idle_seconds, l.order[i]->idle_seconds, sizeof(l.lines[i].idle_seconds));
        l.lines[i].xids = l.order[i]->xids;
    }
    qsort(l.idle, l.n_idle, sizeof(*l.idle), idle_order);
    *ret = (struct activity_view){
        .lines = l.lines,
        .idle = l.idle,
        .n_lines = l.n_lines,
        .n_idle = l.n_idle < ACTIVITY_ROWS ? l.n_idle : ACTIVITY_ROWS,
        .n_not_shown = l.n_others + (l.n_idle > ACTIVITY_ROWS ? l.n_idle - ACTIVITY_ROWS : 0)};
    memcpy(ret->refused, a->refused, sizeof(ret->refused));
}

struct visiting {
    const struct activity *a;
    int64_t now_ms;
    void (*visit)(void *ctx, struct str uid, enum activity_state state);
    void *ctx;
};

static void visit_pod(void *ctx, struct map_entry *e)
{
    const struct visiting *v = ctx;
    const struct pod *p = CONTAINER(e, struct pod, by_name);

    v->visit(v->ctx, p->uid, state_of(v->a, p, v->now_ms));
}

void activity_each(struct activity *a, int64_t now_ms,
                   void (*visit)(void *ctx, struct str uid, enum activity_state state), void *ctx)
{
    struct visiting v = {a, now_ms, visit, ctx};

    assert(a->magic == ACTIVITY_MAGIC);
    map_each(&a->pods, visit_pod, &v);
}

/* --- life --- */

static void free_line(void *ctx, struct map_entry *e)
{
    struct activity *a = ctx;
    struct line *l = CONTAINER(e, struct line, by_key);

    map_remove(&a->lines, e);
    mem_free(l->key.p);
    mem_free(l->tenant.p);
    mem_free(l->pool.p);
    mem_free(l);
}

struct activity *activity_free(struct activity *a)
{
    if (!a)
        return NULL;
    assert(a->magic == ACTIVITY_MAGIC);
    map_each(&a->pods, free_pod, a);
    map_each(&a->lines, free_line, a);
    a->magic = 0;
    return mem_free(a);
}
