/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's DCGM exporters say of the tenant's own GPUs: from the fleet, which decides whose
 * they are, and again here by the record of host pods. Must never show a series without that proof,
 * hold more than one answer, take a silent fleet for GPUs that do nothing, or send its token to a
 * server that the configured CA does not vouch for.
 *
 *   fetch -> check the CA -> GET of the fleet, one for all that wait -> filter -> done() of each */
#include "core/mapping.h"
#include "streams/streams.h"

#include <assert.h>
#include <sys/queue.h>

#include <sublet/hash.h>
#include <sublet/host_get.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/translate_kubelet.h>

#define DEVICES_MAGIC 0x64657673u
#define MOST_BYTES    ((size_t)16 << 20)
#define MOST_NAMES    16384
#define TIMEOUT_MS    10000

/* How a read ended. */
enum outcome {
    ANSWERED,
    BAD_CA, /* telemetry.fleetCA cannot be read, or is none */
    TLS,
    DNS,
    UNREACHABLE,
    TIMEOUT,
    BROKEN,
    REFUSED,
    ABSENT, /* the fleet reads no exporters */
    THROTTLED,
    OTHER_STATUS,
    LARGE,
    N_OUTCOMES
};
static const struct {
    const char *name, *message; /* message: names nothing of the host, a tenant reads it */
} OUTCOMES[N_OUTCOMES] = {
    [ANSWERED] = {"answered", ""},
    [BAD_CA] = {"bad-ca", "the CA of the fleet cannot be read: see telemetry.fleetCA"},
    [TLS] = {"tls", "the fleet's certificate cannot be verified: see telemetry.fleetCA"},
    [DNS] = {"dns", "the fleet does not answer"},
    [UNREACHABLE] = {"unreachable", "the fleet does not answer"},
    [TIMEOUT] = {"timeout", "the fleet does not answer in time"},
    [BROKEN] = {"broken", "the fleet does not answer"},
    [REFUSED] = {"refused", "the fleet refuses"},
    [ABSENT] = {"absent", "the fleet reads no exporters"},
    [THROTTLED] = {"throttled", "the fleet refuses: too many reads"},
    [OTHER_STATUS] = {"status", "the fleet refuses"},
    [LARGE] = {"too-large", "too many series"},
};

struct waiting {
    STAILQ_ENTRY(waiting) next;
    void (*done)(void *ctx, struct str body, const struct err *err);
    void *ctx;
};
struct devices {
    unsigned magic;
    struct syncer *syncer;
    struct host_get *get; /* NULL: none is under way */
    STAILQ_HEAD(, waiting) waiting;
    uint64_t reads[N_OUTCOMES];
    bool stopped;
};

/* --- whose it is --- */

struct proof {
    struct syncer *syncer;
    struct arena *a;
    struct map seen; /* struct seen by host name */
};
struct seen {
    struct map_entry entry;
    struct str host_uid;
    const cJSON *own;
};

/* Each name is proved once. The fleet sends no claims. */
static const cJSON *own(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid)
{
    struct proof *p = ctx;
    struct map_entry *e = map_get(&p->seen, host_name);
    struct seen *one;

    if (kind != KUBELET_POD || (!e && map_count(&p->seen) >= MOST_NAMES))
        return NULL;
    if (!e) {
        one = ARENA_NEW(p->a, struct seen);
        one->own = sync_streams_prove(p->syncer, p->a, SYNC_PODS, host_name, &one->host_uid);
        map_put(&p->seen, &one->entry, arena_str(p->a, host_name));
        e = &one->entry;
    }
    one = CONTAINER(e, struct seen, entry);
    return !host_uid.n || str_eq(one->host_uid, host_uid) ? one->own : NULL;
}

static void filter(struct syncer *s, struct str bytes, struct buf *out)
{
    struct proof p = {.syncer = s, .a = arena_new(0)};
    const struct kubelet_view view = {.tenant = &s->tenant, .own = own, .ctx = &p, .devices = true};
    struct series_filter *f = series_filter_new(&view);

    series_filter_add(f, bytes, out);
    series_filter_end(f, out);
    series_filter_free(f);
    map_clear(&p.seen);
    arena_free(p.a);
}

/* --- the request --- */

static void finish(struct devices *d, struct str body, const struct err *err)
{
    struct waiting *first = STAILQ_FIRST(&d->waiting);

    /* Who begins to wait meanwhile gets a request of its own. */
    STAILQ_INIT(&d->waiting);
    while (first) {
        struct waiting *w = first;

        first = STAILQ_NEXT(w, next);
        w->done(w->ctx, body, err);
        mem_free(w);
    }
}

static void refuse(struct devices *d, const char *why)
{
    struct err err;

    err_init(&err, NULL);
    err_set(&err, &ERR_UNAVAILABLE, "what GPUs do is not known: %s", why);
    finish(d, STR(""), &err);
}

static enum outcome outcome_of(const struct host_get_answer *answer, const struct err *err)
{
    static const enum outcome of[N_HOST_TROUBLES] = {
        [HOST_TLS] = TLS, [HOST_DNS] = DNS, [HOST_REFUSED] = UNREACHABLE, [HOST_TIMEOUT] = TIMEOUT};

    if (!err)
        return ANSWERED;
    if (err->kind == &ERR_TOO_LARGE)
        return LARGE;
    switch (answer->status) {
    case 0:
        return of[answer->trouble] ? of[answer->trouble] : BROKEN;
    case 401:
    case 403:
        return REFUSED;
    case 404:
        return ABSENT;
    case 429:
        return THROTTLED;
    default:
        return OTHER_STATUS;
    }
}

/* Addresses and refusals of the fleet are for the admin. */
static void fail(struct devices *d, enum outcome outcome, struct str answer, const struct err *err)
{
    log_warn("the fleet's series of GPUs are not to be had outcome=%s error=\"%.*s\" "
             "answer=\"%.*s\"",
             OUTCOMES[outcome].name, STR_F(err->message), STR_F(str_clip(answer, 512)));
    d->reads[outcome]++;
    refuse(d, OUTCOMES[outcome].message);
}

static void on_answer(void *ctx, const struct host_get_answer *answer, const struct err *err)
{
    struct devices *d = ctx;
    struct buf out = BUF_INIT(MOST_BYTES);

    assert(d->magic == DEVICES_MAGIC);
    d->get = NULL;
    if (err) {
        fail(d, outcome_of(answer, err), answer->body, err);
        return;
    }
    d->reads[ANSWERED]++;
    if (!reflector_synced(syncer_watch(d->syncer, SYNC_PODS))) {
        refuse(d, "the host cluster has not been read yet");
        return;
    }
    filter(d->syncer, answer->body, &out);
    if (out.failed)
        refuse(d, "too many series");
    else
        finish(d, buf_str(&out), NULL);
    buf_fini(&out);
}

/* The file is read again for each request: a CA that is mounted late, or renewed, needs no restart.
 * The transport refuses by itself if it is emptied in between. */
static void send_get(struct devices *d)
{
    const struct syncer *s = d->syncer;
    struct str ca = s->config->telemetry_fleet_ca;
    struct arena *a = arena_new(0);
    const struct host_get_options o = {
        .loop = vapi_loop(s->api),
        .clock = vapi_clock(s->api),
        .server = s->config->telemetry_fleet,
        .path = arena_printf(a, "/tenants/%.*s/dcgm", STR_F(s->tenant.host_namespace)),
        .accept = "text/plain",
        .ca_file = ca,
        .token_file = s->config->telemetry_fleet_token,
        .max_bytes = MOST_BYTES,
        .timeout_ms = TIMEOUT_MS};
    struct err err;

    err_init(&err, a);
    if (ca.n && host_get_check_ca(ca, &err))
        fail(d, BAD_CA, STR(""), &err);
    else
        d->get = host_get_send(&o, on_answer, d);
    arena_free(a);
}

void sync_devices_fetch(struct devices *d,
                        void (*done)(void *ctx, struct str body, const struct err *err), void *ctx)
{
    struct waiting *w;

    assert(d->magic == DEVICES_MAGIC);
    w = NEW(struct waiting);
    w->done = done;
    w->ctx = ctx;
    STAILQ_INSERT_TAIL(&d->waiting, w, next);
    if (d->stopped)
        refuse(d, "the process ends");
    else if (!d->get)
        send_get(d);
}

void sync_devices_metrics(void *devices, struct buf *out)
{
    const struct devices *d = devices;

    assert(d->magic == DEVICES_MAGIC);
    metrics_family(out, METRIC_TELEMETRY_READS);
    for (size_t i = 0; i < N_OUTCOMES; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "outcome", str_c(OUTCOMES[i].name));
        metrics_sample_u64(out, METRIC_TELEMETRY_READS, buf_str(&labels), d->reads[i]);
        buf_fini(&labels);
    }
}

/* --- life --- */

struct devices *sync_devices_new(struct syncer *s)
{
    struct devices *d = NEW(struct devices);

    *d = (struct devices){.magic = DEVICES_MAGIC, .syncer = s};
    STAILQ_INIT(&d->waiting);
    return d;
}

void sync_devices_stop(struct devices *d)
{
    assert(d->magic == DEVICES_MAGIC);
    d->stopped = true;
    host_get_cancel(d->get);
    d->get = NULL;
    refuse(d, "the process ends");
}

struct devices *sync_devices_free(struct devices *d)
{
    if (!d)
        return NULL;
    assert(d->magic == DEVICES_MAGIC && !d->get && STAILQ_EMPTY(&d->waiting));
    d->magic = 0;
    return mem_free(d);
}
