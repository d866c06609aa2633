/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /livez, /readyz with detail per check, and /version. health_checks.c has the checks. It
 * must never reveal why a check failed, except to a client authorized to read that one check.
 * Source: apiserver pkg/server/healthz. */
#include "discovery.h"

#include "../../core/notice.h"
#include "../respond/respond.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/metrics.h>
#include <sublet/net.h>

#define TEXT STR("text/plain; charset=utf-8")

/* The request, and its result. */
struct health {
    struct call *call;
    struct query query;
    struct buf out;
    enum health_endpoint which;
    bool fine;
};

static bool excluded(const struct health *h, struct str name)
{
    for (size_t i = 0; i < h->query.n; i++) {
        if (str_eqc(h->query.items[i].name, "exclude") && str_eq(h->query.items[i].value, name))
            return true;
    }
    return false;
}

/* Called for every check; false ends the iteration. failure() is called only for checks that count,
 * because it may start work. */
struct health_item {
    struct str name;
    const struct health_check *check; /* NULL: a check of the process, not of the table */
    const struct api_check *own;
};
typedef bool (*each_check_cb)(struct health *h, const struct health_item *item, void *ctx);

static bool one_check(struct health *h, const struct health_check *k, each_check_cb each, void *ctx)
{
    struct health_item item = {.name = str_c(k->name), .check = k};

    return !(k->endpoints & (unsigned)h->which) || each(h, &item, ctx);
}

static void each_check(struct health *h, each_check_cb each, void *ctx)
{
    struct vapi *api = h->call->api;

    for (size_t i = 0; i < HEALTH_N_CHECKS; i++)
        if (!one_check(h, &HEALTH_CHECKS[i], each, ctx))
            return;
    for (size_t i = 0; i < api->n_checks; i++) {
        struct health_item item = {.name = str_c(api->checks[i].name), .own = &api->checks[i]};

        if (!each(h, &item, ctx))
            return;
    }
    one_check(h, &HEALTH_LAST, each, ctx);
}

/* Failures of the process's other checks are no reason for a restart. */
static const char *failure_of(const struct health *h, const struct health_item *item)
{
    if (item->check)
        return item->check->failure(h->call->api, h->which);
    return h->which == READYZ ? item->own->check(item->own->ctx) : NULL;
}

/* Anyone may request this, so the reason is reported only by the single check's path. */
static bool report(struct health *h, const struct health_item *item, void *ctx)
{
    const char *failure;

    (void)ctx;
    if (excluded(h, item->name)) {
        buf_printf(&h->out, "[+]%.*s excluded: ok\n", STR_F(item->name));
        return true;
    }
    failure = failure_of(h, item);
    if (failure)
        buf_printf(&h->out, "[-]%.*s failed: reason withheld\n", STR_F(item->name));
    else
        buf_printf(&h->out, "[+]%.*s ok\n", STR_F(item->name));
    h->fine = h->fine && !failure;
    return true;
}

struct named {
    struct str name;
    struct health_item item; /* name.p == NULL: no such check */
};

static bool on_named(struct health *h, const struct health_item *item, void *ctx)
{
    struct named *n = ctx;

    (void)h;
    if (!str_eq(n->name, item->name))
        return true;
    n->item = *item;
    return false;
}

static bool is_check(struct health *h, struct str name)
{
    struct named n = {.name = name};

    each_check(h, on_named, &n);
    return n.item.name.p != NULL;
}

/* The excluded names without a check, sorted, without duplicates. */
static void warn_unknown(struct health *h)
{
    struct arena *a = h->call->arena;
    struct str *names = arena_alloc(a, (h->query.n + 1) * sizeof(*names)), last = STR_NULL;
    size_t n = 0;
    const char *before = "warn: some health checks cannot be excluded: no matches for ";

    for (size_t i = 0; i < h->query.n; i++) {
        const struct query_item *item = &h->query.items[i];

        if (str_eqc(item->name, "exclude") && !is_check(h, item->value))
            names[n++] = item->value;
    }
    qsort(names, n, sizeof(*names), str_order);
    for (size_t i = 0; i < n; i++) {
        if (last.p && str_eq(last, names[i]))
            continue;
        last = names[i];
        buf_printf(&h->out, "%s", before);
        buf_add(&h->out, json_text(a, json_new_string(a, last)));
        before = ",";
    }
    if (n)
        buf_char(&h->out, '\n');
}

static void answer(struct call *c, int status, struct str text)
{
    call_header(c, "cache-control", STR("no-cache, private"));
    call_raw(c, status, TEXT, text);
}

static void answer_all(struct health *h, const char *which)
{
    struct call *c = h->call;
    struct str text = STR("ok");

    each_check(h, report, NULL);
    warn_unknown(h);
    if (h->which == READYZ)
        notices_reasons(c->api, &h->out);
    buf_printf(&h->out, "%s check %s\n", which, h->fine ? "passed" : "failed");
    if (!h->fine || query_get(&h->query, "verbose").p)
        text = arena_str(c->arena, buf_str(&h->out));
    call_header(c, "x-content-type-options", STR("nosniff"));
    answer(c, h->fine ? 200 : 500, text);
}

static void answer_one(struct health *h, struct str name)
{
    struct call *c = h->call;
    struct named n = {.name = name};

    const char *failure;

    each_check(h, on_named, &n);
    failure = n.item.name.p ? failure_of(h, &n.item) : NULL;
    if (!n.item.name.p) {
        respond_text(c, 404, "404 page not found\n");
    } else if (failure) {
        call_header(c, "x-content-type-options", STR("nosniff"));
        answer(c, 500, arena_printf(c->arena, "internal server error: %s\n", failure));
    } else {
        answer(c, 200, STR("ok"));
    }
}

static void answer_health(struct call *c, const struct health_path *e, struct str only)
{
    struct health h = {.call = c, .out = BUF_INIT(0), .which = e->which, .fine = true};

    query_parse(c->arena, c->request->query, &h.query);
    if (e->which == READYZ && str_eqc(only, "warnings")) {
        /* Lists standing notices with their messages. They are no checks, because none makes the
         * process unready. */
        notices_messages(h.call->api, &h.out);
        answer(h.call, 200, h.out.n ? arena_str(h.call->arena, buf_str(&h.out)) : STR("ok"));
    } else if (only.p) {
        answer_one(&h, only);
    } else {
        answer_all(&h, e->name);
    }
    buf_fini(&h.out);
}

/* /metrics/slis: the same results as metrics, for alerts. */
static bool sample(struct health *h, const struct health_item *item, void *ctx)
{
    const struct health_path *e = ctx;
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "name", item->name);
    metrics_label(&labels, "type", str_c(e->name));
    metrics_sample_u64(&h->out, METRIC_HEALTHCHECK, buf_str(&labels), !failure_of(h, item));
    buf_fini(&labels);
    return true;
}

static void answer_slis(struct call *c)
{
    struct health h = {.call = c, .out = BUF_INIT(0)};

    metrics_family(&h.out, METRIC_HEALTHCHECK);
    for (size_t i = 0; i < N_HEALTH_PATHS; i++) {
        struct health_path e = HEALTH_PATHS[i];

        h.which = e.which;
        each_check(&h, sample, &e);
    }
    call_raw(c, 200, STR("text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
             buf_str(&h.out));
    buf_fini(&h.out);
}

static void answer_version(struct call *c)
{
    struct arena *a = c->arena;
    cJSON *v;
    struct str version = str_c(c->api->version), rest = str_from(version, 1);
    struct str major = str_cut(&rest, '.'), minor = str_cut(&rest, '.');
    struct buf text = BUF_INIT(0);
    uint64_t number = 1;

    str_to_u64(minor, &number);
    v = json_object(
        a, JSON("major", major), JSON("minor", minor), JSON("emulationMajor", major),
        JSON("emulationMinor", minor), JSON("minCompatibilityMajor", major),
        JSON("minCompatibilityMinor", arena_printf(a, "%llu", (unsigned long long)(number - 1))),
        JSON("gitVersion", version), JSON("gitCommit", ""), JSON("gitTreeState", ""),
        JSON("buildDate", "1970-01-01T00:00:00Z"), JSON("goVersion", "none"),
        JSON("compiler", "gcc"), JSON("platform", "linux/amd64"));
    json_print_pretty(&text, v);
    call_raw(c, 200, STR("application/json"), arena_str(a, buf_str(&text)));
    buf_fini(&text);
}

bool health_handle(struct call *c, struct str path)
{
    struct str rest = path;

    str_cut(&rest, '/');
    if (!rest.p)
        return false;
    struct str first = str_cut(&rest, '/');
    if (str_eqc(first, "version") && !rest.n) {
        answer_version(c);
        return true;
    }
    if (str_eqc(path, "/metrics/slis")) {
        answer_slis(c);
        return true;
    }
    for (size_t i = 0; i < N_HEALTH_PATHS; i++) {
        if (str_eqc(first, HEALTH_PATHS[i].name)) {
            answer_health(c, &HEALTH_PATHS[i], rest);
            return true;
        }
    }
    return false;
}
