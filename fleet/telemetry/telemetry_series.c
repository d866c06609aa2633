/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of exporters' answers for the tenants. Why so little: an exporter's labels and
 * shared devices say much of neighbours. Must never show a tenant a series of a device that a pod
 * of another one may use, a UUID by which two tenants could find that they share a machine, or the
 * host's name of one. */
#include "telemetry_series.h"

#include <assert.h>

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/metrics.h>
#include <sublet/token_bucket.h>

#define SERIES_MAGIC 0x74736572u

enum { MOST_READERS = 10000 };

/* The last answer of a node, in an arena of its own. */
struct node {
    struct map_entry by_name;
    struct str name;
    struct arena *a;
    int64_t at_ms;
    struct dcgm kept;
};
/* A tenant that has read; all are forgotten when there are too many. */
struct reader {
    struct map_entry by_name;
    struct str name;
    struct token_bucket left;
};
struct telemetry_series {
    unsigned magic;
    int64_t fresh_ms;
    uint64_t secret;
    struct map nodes, readers;
};

struct telemetry_series *telemetry_series_new(int64_t fresh_ms, uint64_t secret)
{
    struct telemetry_series *s = NEW(struct telemetry_series);

    *s = (struct telemetry_series){.magic = SERIES_MAGIC, .fresh_ms = fresh_ms, .secret = secret};
    return s;
}

/* --- what is kept --- */

static void drop(struct telemetry_series *s, struct node *n)
{
    map_remove(&s->nodes, &n->by_name);
    arena_free(n->a);
    mem_free(n);
}

static void drop_reader(void *ctx, struct map_entry *e)
{
    struct telemetry_series *s = ctx;
    struct reader *r = CONTAINER(e, struct reader, by_name);

    map_remove(&s->readers, e);
    mem_free(r->name.p);
    mem_free(r);
}

struct prune {
    struct telemetry_series *s;
    int64_t now_ms;
    struct str node; /* whose answer is replaced */
};

static void prune(void *ctx, struct map_entry *e)
{
    struct prune *p = ctx;
    struct node *n = CONTAINER(e, struct node, by_name);

    if (p->now_ms - n->at_ms > p->s->fresh_ms || str_eq(n->name, p->node))
        drop(p->s, n);
}

/* Fields of an instance alone: of the whole GPU say others (power, clocks, errors). */
static bool is_of_instance(struct str family)
{
    return str_has_prefix(family, STR("DCGM_FI_PROF_")) ||
           str_has_prefix(family, STR("DCGM_FI_DEV_FB_"));
}

/* "GPU-" and what looks as NVIDIA's do, of the tenant and the device. */
static struct str hashed(struct arena *a, uint64_t secret, struct str tenant, struct str uuid)
{
    unsigned char h[32];

    sha256(arena_printf(a, "%016llx %.*s %.*s %016llx", (unsigned long long)secret, STR_F(tenant),
                        STR_F(uuid), (unsigned long long)secret),
           h);
    return arena_printf(
        a, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", h[0], h[1],
        h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9], h[10], h[11], h[12], h[13], h[14], h[15]);
}

static struct dcgm_device shown_device(struct arena *a, uint64_t secret,
                                       const struct dcgm_device *d)
{
    static const enum dcgm_label shown[] = {DCGM_GPU,      DCGM_INSTANCE,  DCGM_PROFILE,
                                            DCGM_MODEL,    DCGM_NAMESPACE, DCGM_POD,
                                            DCGM_CONTAINER};
    struct dcgm_device copy = {0};

    for (size_t i = 0; i < COUNT(shown); i++)
        copy.labels[shown[i]] = arena_str(a, d->labels[shown[i]]);
    if (d->labels[DCGM_UUID].n)
        copy.labels[DCGM_UUID] = hashed(a, secret, d->labels[DCGM_NAMESPACE], d->labels[DCGM_UUID]);
    return copy;
}

static void keep(struct node *n, uint64_t secret, const struct activity *activity,
                 const struct dcgm *d)
{
    size_t *places = arena_alloc(n->a, (d->n_devices + 1) * sizeof(*places)), wanted = 0;
    struct dcgm *kept = &n->kept;

    kept->devices = arena_alloc(n->a, (d->n_devices + 1) * sizeof(*kept->devices));
    for (size_t i = 0; i < d->n_devices; i++)
        if (activity_is_own(activity, n->name, &d->devices[i])) {
            kept->devices[kept->n_devices++] = shown_device(n->a, secret, &d->devices[i]);
            places[i] = kept->n_devices;
        }
    for (size_t i = 0; i < d->n_samples; i++)
        wanted += places[d->samples[i].device] > 0;
    kept->samples = arena_alloc(n->a, (wanted + 1) * sizeof(*kept->samples));
    kept->families = arena_alloc(n->a, (d->n_families + 1) * sizeof(*kept->families));
    kept->n_families = d->n_families;
    for (size_t i = 0; i < d->n_families; i++)
        kept->families[i] = (struct dcgm_family){arena_str(n->a, d->families[i].name),
                                                 arena_str(n->a, d->families[i].type),
                                                 arena_str(n->a, d->families[i].help)};
    for (size_t i = 0; i < d->n_samples; i++) {
        const struct dcgm_sample *s = &d->samples[i];
        size_t place = places[s->device];

        if (!place || (d->devices[s->device].labels[DCGM_INSTANCE].n &&
                       !is_of_instance(d->families[s->family].name)))
            continue;
        kept->samples[kept->n_samples] = *s;
        kept->samples[kept->n_samples++].device = (uint16_t)(place - 1);
    }
}

void telemetry_series_answer(struct telemetry_series *s, const struct activity *a, struct str node,
                             const struct dcgm *d, int64_t now_ms)
{
    struct prune p = {s, now_ms, node};
    struct node *n = NEW(struct node);

    assert(s->magic == SERIES_MAGIC);
    map_each(&s->nodes, prune, &p);
    n->a = arena_new(0);
    n->name = arena_str(n->a, node);
    n->at_ms = now_ms;
    keep(n, s->secret, a, d);
    map_put(&s->nodes, &n->by_name, n->name);
}

/* --- what is written --- */

/* A family of all nodes: its lines come together. */
struct family {
    struct map_entry by_name;
    const struct dcgm_family *of;
    struct buf lines;
};
struct writing {
    struct telemetry_series *s;
    struct arena *a;
    struct str tenant;
    int64_t now_ms;
    struct map families;
    struct buf *out;
    size_t written;
};

static struct family *family_of(struct writing *w, const struct dcgm_family *of)
{
    struct map_entry *e = map_get(&w->families, of->name);
    struct family *f;

    if (e)
        return CONTAINER(e, struct family, by_name);
    f = ARENA_NEW(w->a, struct family);
    *f = (struct family){.of = of, .lines = BUF_INIT(w->out->limit)};
    map_put(&w->families, &f->by_name, of->name);
    return f;
}

/* Returns the bytes that it wrote. */
static size_t write_sample(struct buf *out, struct str name, const struct dcgm_device *d,
                           double value)
{
    size_t before = out->n;
    static const struct {
        enum dcgm_label label;
        const char *name;
    } shown[] = {{DCGM_GPU, "gpu"},
                 {DCGM_UUID, "UUID"},
                 {DCGM_MODEL, "modelName"},
                 {DCGM_PROFILE, "GPU_I_PROFILE"},
                 {DCGM_INSTANCE, "GPU_I_ID"},
                 {DCGM_CONTAINER, "container"},
                 {DCGM_NAMESPACE, "namespace"},
                 {DCGM_POD, "pod"}};
    struct buf labels = BUF_INIT(0);

    for (size_t i = 0; i < COUNT(shown); i++)
        if (d->labels[shown[i].label].n)
            metrics_label(&labels, shown[i].name, d->labels[shown[i].label]);
    buf_printf(out, "%.*s{%.*s} %.17g\n", STR_F(name), STR_F(buf_str(&labels)), value);
    buf_fini(&labels);
    return out->n - before;
}

static void write_node(void *ctx, struct map_entry *e)
{
    struct writing *w = ctx;
    const struct node *n = CONTAINER(e, struct node, by_name);

    if (w->now_ms - n->at_ms > w->s->fresh_ms)
        return;
    for (size_t i = 0; i < n->kept.n_samples; i++) {
        const struct dcgm_sample *s = &n->kept.samples[i];
        const struct dcgm_device *d = &n->kept.devices[s->device];
        const struct dcgm_family *of = &n->kept.families[s->family];

        if (w->out->limit && w->written > w->out->limit)
            return;
        if (str_eq(d->labels[DCGM_NAMESPACE], w->tenant))
            w->written += write_sample(&family_of(w, of)->lines, of->name, d, s->value);
    }
}

static void write_family(void *ctx, struct map_entry *e)
{
    struct writing *w = ctx;
    struct family *f = CONTAINER(e, struct family, by_name);

    if (f->of->help.n)
        buf_printf(w->out, "# HELP %.*s %.*s\n", STR_F(f->of->name), STR_F(f->of->help));
    buf_printf(w->out, "# TYPE %.*s %.*s\n", STR_F(f->of->name), STR_F(f->of->type));
    buf_add(w->out, buf_str(&f->lines));
    w->out->failed |= f->lines.failed;
    buf_fini(&f->lines);
}

/* Whoever a tenant permits makes its process read, and each answer is a walk over all nodes. */
static bool may_read(struct telemetry_series *s, struct str tenant, int64_t now_ms)
{
    static const struct token_rate rate = {.burst = 4, .n = 1, .period = 5000};
    struct map_entry *e = map_get(&s->readers, tenant);
    struct reader *r;

    if (!e && map_count(&s->readers) >= MOST_READERS)
        map_each(&s->readers, drop_reader, s);
    if (!e) {
        r = NEW(struct reader);
        r->name = mem_str(tenant);
        map_put(&s->readers, &r->by_name, r->name);
        e = &r->by_name;
    }
    return token_bucket_take(&CONTAINER(e, struct reader, by_name)->left, &rate, now_ms);
}

bool telemetry_series_write(struct telemetry_series *s, struct str tenant, int64_t now_ms,
                            struct buf *out)
{
    struct writing w = {s, NULL, tenant, now_ms, {0}, out, 0};

    assert(s->magic == SERIES_MAGIC);
    if (!may_read(s, tenant, now_ms))
        return false;
    w.a = arena_new(0);
    map_each(&s->nodes, write_node, &w);
    map_each(&w.families, write_family, &w);
    map_clear(&w.families);
    arena_free(w.a);
    return true;
}

/* --- life --- */

static void drop_node(void *ctx, struct map_entry *e)
{
    drop(ctx, CONTAINER(e, struct node, by_name));
}

struct telemetry_series *telemetry_series_free(struct telemetry_series *s)
{
    if (!s)
        return NULL;
    assert(s->magic == SERIES_MAGIC);
    map_each(&s->nodes, drop_node, s);
    map_each(&s->readers, drop_reader, s);
    s->magic = 0;
    return mem_free(s);
}
