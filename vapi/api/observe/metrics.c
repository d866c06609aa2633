/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Counters with kube-apiserver's names, and GET /metrics. Why: an operator's dashboards and alerts
 * work for a virtual cluster unchanged. A request costs one look-up; the number of series is
 * bounded, whatever kinds a tenant creates, and memory is allocated with the first request. It must
 * never cost an idle cluster anything. Source: k8s.io/apiserver
 * pkg/endpoints/metrics/metrics.go. */
#include "observe.h"

#include "../flow/flow.h"
#include "../../core/notice.h"

#include <assert.h>
#include <string.h>

#include <sublet/hash.h>
#include <sublet/net.h>

#define MAX_SERIES 2048
#define MAX_CODES  10
#define N_BOUNDS   COUNT(SECONDS)
#define SLI_FROM   2 /* the first of SECONDS that service level objectives use */
#define N_SLI      (N_BOUNDS - SLI_FROM)

static const double SECONDS[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2,
                                 3,     4,     5,    6,   8,   10,  15,  20,  30, 45,   60};

/* Path labels of non-resource requests; other paths share one. Source: where upstream's routes call
 * InstrumentHandlerFunc. */
static const struct path_name {
    const char *prefix, *name, *component;
} PATHS[] = {
    {"/apis", "apis", "apiserver"},
    {"/api", "api", "apiserver"},
    {"/healthz", "/healthz", ""},
    {"/livez", "/livez", ""},
    {"/readyz", "/readyz", ""},
    {"/metrics/slis", "/metrics/slis", ""},
    {"/metrics", "/metrics", ""},
    {"/openapi/v2", "openapi/v2", ""},
    {"/openapi/v3/", "openapi/v3/", ""},
    {"/openapi/v3", "openapi/v3", ""},
    {"/version", "/version", ""},
    {"/openid/v1/jwks", "/openid/v1/jwks", ""},
    {"/.well-known/openid-configuration", "/.well-known/openid-configuration", ""},
    {"", "other", ""},
};

struct series {
    UT_hash_handle hh;
    char *labels; /* the key, as it is printed */
    size_t n_labels;
    struct {
        int code;
        uint64_t n;
    } codes[MAX_CODES];
    size_t n_codes;
    unsigned running; /* long-running requests in progress */
    uint64_t counts[N_BOUNDS + 1];
    uint64_t sum_us;
    uint64_t sli_counts[N_SLI + 1]; /* without time spent in a queue; no dry runs */
    uint64_t sli_us;
    /* The parts of the key, to find it without printing it. */
    unsigned storage;
    unsigned char verb, scope, dry_run, apply;
    const struct path_name *path;
    char *resource, *version, *sub; /* ids of resources are reused: the name decides */
};

/* The most recent look-ups, by properties of the call. */
#define RECENT 64

struct api_metrics {
    struct series *all;
    struct series *recent[RECENT];
};

enum scope { SCOPE_NONE, SCOPE_CLUSTER, SCOPE_NAMESPACE, SCOPE_RESOURCE };
static const char *const SCOPES[] = {"", "cluster", "namespace", "resource"};

static const char *const VERBS[CALL_N_VERBS] = {
    [CALL_GET] = "GET",       [CALL_LIST] = "LIST",
    [CALL_WATCH] = "WATCH",   [CALL_CREATE] = "POST",
    [CALL_UPDATE] = "PUT",    [CALL_PATCH] = "PATCH",
    [CALL_DELETE] = "DELETE", [CALL_DELETECOLLECTION] = "DELETECOLLECTION",
};

struct api_metrics *api_metrics_free(struct api_metrics *m)
{
    struct series *s, *next;

    if (!m)
        return NULL;
    HASH_ITER(hh, m->all, s, next)
    {
        HASH_DEL(m->all, s);
        mem_free(s->labels);
        mem_free(s->resource);
        mem_free(s->version);
        mem_free(s->sub);
        mem_free(s);
    }
    return mem_free(m);
}

/* ---- series ---- */

static enum scope scope_of(const struct call *c)
{
    if (!c->resource)
        return SCOPE_NONE;
    if (c->name.n || c->verb == CALL_CREATE)
        return SCOPE_RESOURCE;
    return c->ns.n ? SCOPE_NAMESPACE : SCOPE_CLUSTER;
}

static bool is_apply(const struct call *c)
{
    return c->verb == CALL_PATCH && c->patch == PATCH_TYPE_APPLY;
}

static const struct path_name *path_of(const struct call *c)
{
    struct str path = c->request ? c->request->path : STR("");
    size_t i = 0;

    while (!str_has_prefix(path, str_c(PATHS[i].prefix)))
        i++;
    return &PATHS[i];
}

static struct str sub_of(const struct call *c)
{
    return c->sub ? str_c(c->sub->name) : STR("");
}

static bool is_same(const struct series *s, const struct call *c, const struct path_name *path)
{
    if (path)
        return s->path == path && s->verb == (unsigned char)c->verb;
    return !s->path && s->storage == c->resource->storage && s->verb == (unsigned char)c->verb &&
           str_eqc(c->resource->group_resource, s->resource) && s->scope == scope_of(c) &&
           s->dry_run == c->options.dry_run && s->apply == is_apply(c) &&
           str_eqc(c->resource->version, s->version) && str_eqc(sub_of(c), s->sub);
}

static struct series *new_series(struct api_metrics *m, const struct call *c,
                                 const struct path_name *path, struct str labels)
{
    struct series *s = NEW(struct series);

    s->labels = mem_strdup(labels);
    s->n_labels = labels.n;
    s->path = path;
    s->verb = (unsigned char)c->verb;
    if (!path) {
        s->storage = c->resource->storage;
        s->scope = (unsigned char)scope_of(c);
        s->dry_run = c->options.dry_run;
        s->apply = is_apply(c);
        s->resource = mem_strdup(c->resource->group_resource);
        s->version = mem_strdup(c->resource->version);
        s->sub = mem_strdup(sub_of(c));
    }
    HASH_ADD_KEYPTR(hh, m->all, s->labels, s->n_labels, s);
    return s;
}

/* NULL when there are too many. */
static struct series *look_up(struct api_metrics *m, const struct call *c,
                              const struct path_name *path)
{
    struct buf b = BUF_INIT(0);
    struct series *s;
    const struct resource *r = c->resource;
    const char *verb = path ? "GET" : is_apply(c) ? "APPLY" : VERBS[c->verb];

    metrics_label(&b, "component", path ? str_c(path->component) : STR("apiserver"));
    metrics_label(&b, "dry_run", c->options.dry_run ? STR("All") : STR(""));
    metrics_label(&b, "group", path ? STR("") : r->group);
    metrics_label(&b, "resource", path ? STR("") : r->plural);
    metrics_label(&b, "scope", str_c(SCOPES[path ? SCOPE_NONE : scope_of(c)]));
    metrics_label(&b, "subresource", path ? str_c(path->name) : sub_of(c));
    metrics_label(&b, "verb", str_c(verb));
    metrics_label(&b, "version", path ? STR("") : r->version);

    HASH_FIND(hh, m->all, b.p, b.n, s);
    if (!s && HASH_COUNT(m->all) < MAX_SERIES)
        s = new_series(m, c, path, buf_str(&b));
    buf_fini(&b);
    return s;
}

static struct series *find_series(struct call *c)
{
    const struct path_name *path = c->resource ? NULL : path_of(c);
    unsigned hash = path ? (unsigned)(path - PATHS)
                         : c->resource->storage * 31 + (unsigned)c->verb * 7 + scope_of(c);
    struct series **recent, *s;

    if (!c->api->metrics)
        c->api->metrics = NEW(struct api_metrics);
    recent = &c->api->metrics->recent[hash % RECENT];
    if (*recent && is_same(*recent, c, path))
        return *recent;
    s = look_up(c->api->metrics, c, path);
    if (s)
        *recent = s;
    return s;
}

/* ---- counting ---- */

static void count_code(struct series *s, int code)
{
    size_t i = 0;

    while (i < s->n_codes && s->codes[i].code != code)
        i++;
    if (i == MAX_CODES)
        return;
    if (i == s->n_codes)
        s->codes[s->n_codes++].code = code;
    s->codes[i].n++;
}

static size_t bucket_of(const double *bounds, size_t n, int64_t us)
{
    size_t i = 0;

    while (i < n && (double)us > bounds[i] * 1e6)
        i++;
    return i;
}

void metrics_request(struct call *c, int code, int64_t took_us, int64_t waited_us)
{
    struct series *s = find_series(c);
    int64_t own_us = took_us > waited_us ? took_us - waited_us : 0;

    if (!s)
        return;
    count_code(s, code);
    s->counts[bucket_of(SECONDS, N_BOUNDS, took_us)]++;
    s->sum_us += (uint64_t)took_us;
    if (c->options.dry_run)
        return; /* its labels would equal those of real requests */
    s->sli_counts[bucket_of(SECONDS + SLI_FROM, N_SLI, own_us)]++;
    s->sli_us += (uint64_t)own_us;
}

/* Uses the series found at the beginning: the request may be freed at the end. */
void metrics_long_running(struct call *c, int by)
{
    struct call_entry *e = call_entry(c);

    if (by > 0)
        e->series = find_series(c);
    if (e->series)
        e->series->running += (unsigned)by;
    if (by < 0)
        e->series = NULL;
}

/* ---- exposition ---- */

static void write_totals(const struct api_metrics *m, struct buf *out)
{
    struct buf labels = BUF_INIT(0);

    metrics_family(out, METRIC_REQUESTS);
    for (const struct series *s = m->all; s; s = s->hh.next) {
        for (size_t i = 0; i < s->n_codes; i++) {
            buf_clear(&labels);
            buf_printf(&labels, "code=\"%d\",", s->codes[i].code);
            buf_add(&labels, (struct str){s->labels, s->n_labels});
            metrics_sample_u64(out, METRIC_REQUESTS, buf_str(&labels), s->codes[i].n);
        }
    }
    buf_fini(&labels);
}

static void write_durations(const struct api_metrics *m, struct buf *out)
{

    metrics_family(out, METRIC_REQUEST_DURATION);
    for (struct series *s = m->all; s; s = s->hh.next) {
        struct metrics_histogram h = {s->counts, s->sum_us};

        if (s->n_codes)
            metrics_histogram(out, METRIC_REQUEST_DURATION, (struct str){s->labels, s->n_labels},
                              SECONDS, N_BOUNDS, &h);
    }
}

/* The labels of a series for a family without dry_run. */
static struct str other_labels(const struct series *s, struct buf *ret)
{
    struct str rest = {s->labels, s->n_labels};

    buf_clear(ret);
    buf_add(ret, str_cut(&rest, ','));
    str_cut(&rest, ','); /* "dry_run" */
    buf_char(ret, ',');
    buf_add(ret, rest);
    return buf_str(ret);
}

static void write_objectives(const struct api_metrics *m, struct buf *out)
{
    struct buf labels = BUF_INIT(0);

    metrics_family(out, METRIC_REQUEST_SLI_DURATION);
    for (struct series *s = m->all; s; s = s->hh.next) {
        struct metrics_histogram h = {s->sli_counts, s->sli_us};

        if (s->n_codes && !s->dry_run)
            metrics_histogram(out, METRIC_REQUEST_SLI_DURATION, other_labels(s, &labels),
                              SECONDS + SLI_FROM, N_SLI, &h);
    }
    buf_fini(&labels);
}

struct objects {
    struct vapi *api;
    struct buf *out;
    enum metric metric;
};

static bool write_object(void *ctx, const struct resource *r)
{
    struct objects *o = ctx;
    struct buf labels = BUF_INIT(0);

    /* Once for all versions, and only for stored kinds. */
    if (r->flags & RES_REVIEW || !(r->verbs & VERB_LIST) ||
        registry_by_storage(vapi_registry(o->api), r->storage) != r)
        return true;
    if (o->metric == METRIC_RESOURCE_OBJECTS) {
        metrics_label(&labels, "group", r->group);
        metrics_label(&labels, "resource", r->plural);
    } else {
        metrics_label(&labels, "resource", r->group_resource);
    }
    metrics_sample_u64(o->out, o->metric, buf_str(&labels),
                       store_count(vapi_store(o->api), r->storage));
    buf_fini(&labels);
    return true;
}

static void write_store(struct vapi *api, struct buf *out)
{
    struct objects o = {api, out, METRIC_RESOURCE_OBJECTS};

    metrics_family(out, o.metric);
    registry_each(vapi_registry(api), write_object, &o);
    o = (struct objects){api, out, METRIC_STORAGE_OBJECTS};
    metrics_family(out, o.metric);
    registry_each(vapi_registry(api), write_object, &o);
    metrics_single_u64(out, METRIC_STORE_BYTES, store_bytes(vapi_store(api)));
    metrics_single_u64(out, METRIC_STORE_REVISION, (uint64_t)store_revision(vapi_store(api)));
}

static void write_network(struct vapi *api, struct buf *out)
{
    struct net_stats s = {0};

    if (api->server)
        net_stats(api->server, &s);
    metrics_single_u64(out, METRIC_CONNECTIONS, s.connections);
    metrics_family(out, METRIC_CONNECTIONS_TOTAL);
    metrics_sample_u64(out, METRIC_CONNECTIONS_TOTAL, STR("result=\"accepted\""), s.accepted);
    metrics_sample_u64(out, METRIC_CONNECTIONS_TOTAL, STR("result=\"refused\""), s.refused);
}

static void write_build(struct vapi *api, struct buf *out)
{
    struct buf labels = BUF_INIT(0);
    struct str rest = str_from(str_c(api->version), 1), major = str_cut(&rest, '.');

    metrics_label(&labels, "git_version", str_c(api->version));
    metrics_label(&labels, "major", major);
    metrics_label(&labels, "minor", str_cut(&rest, '.'));
    metrics_label(&labels, "platform", STR("linux/amd64"));
    metrics_family(out, METRIC_BUILD_INFO);
    metrics_sample_u64(out, METRIC_BUILD_INFO, buf_str(&labels), 1);
    buf_fini(&labels);
}

void vapi_add_metrics(struct vapi *api, void (*write)(void *ctx, struct buf *out), void *ctx)
{
    assert(api->n_metric_writers < API_MAX_CHECKS);
    api->metric_writers[api->n_metric_writers].write = write;
    api->metric_writers[api->n_metric_writers++].ctx = ctx;
}

bool metrics_handle(struct call *c, struct str path)
{
    struct vapi *api = c->api;
    struct buf out = BUF_INIT(0);
    struct buf labels;

    if (!str_eqc(path, "/metrics"))
        return false;
    if (api->metrics) {
        write_totals(api->metrics, &out);
        write_durations(api->metrics, &out);
        write_objectives(api->metrics, &out);

        labels = BUF_INIT(0);
        metrics_family(&out, METRIC_LONG_RUNNING);
        for (const struct series *s = api->metrics->all; s; s = s->hh.next)
            if (s->running || s->verb == CALL_WATCH)
                metrics_sample_u64(&out, METRIC_LONG_RUNNING, other_labels(s, &labels), s->running);
        buf_fini(&labels);
    }
    write_store(api, &out);
    write_network(api, &out);
    write_build(api, &out);
    flow_metrics(api, &out);
    budget_metrics(api, &out);
    audit_metrics(api, &out);
    notices_metrics(api, &out);
    metrics_process(&out);
    /* While draining, the registered writers may be closed. */
    for (size_t i = 0; api->state == API_SERVING && i < api->n_metric_writers; i++)
        api->metric_writers[i].write(api->metric_writers[i].ctx, &out);
    call_raw(c, 200, STR("text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
             buf_str(&out));
    buf_fini(&out);
    return true;
}
