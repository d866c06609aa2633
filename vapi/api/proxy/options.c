/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of logs and streams: read from the query as kube-apiserver does, refused with its
 * messages, and re-encoded, so that no option is forwarded that was not parsed. Source:
 * k8s.io/kubernetes pkg/registry/core/pod/strategy.go, pkg/apis/core/validation (PodLogOptions). */
#include "impl.h"

#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>

#define MAX_COMMAND 4096 /* arguments */

struct options {
    struct call *call;
    struct proxy_request *request;
    struct field_errors *errors;
    struct buf out;
};

/* ---- the query ---- */

/* Pairs that cannot be decoded are left out, as Go's URL.Query() does. */
static bool next_pair(struct arena *a, struct str *rest, struct str *name, struct str *value)
{
    while (rest->p && rest->n) {
        struct str pair = str_cut(rest, '&');
        size_t at = str_find(pair, '=');

        if (pair.n && url_decode(a, str_sub(pair, 0, at), true, name) &&
            url_decode(a, str_from(pair, at + 1), true, value))
            return true;
    }
    return false;
}

/* The first value of a name; STR_NULL when absent. */
static struct str option(const struct options *o, const char *wanted)
{
    struct str rest = o->call->request->query, name, value;

    while (next_pair(o->call->arena, &rest, &name, &value))
        if (str_eqc(name, wanted))
            return value.p ? value : STR("");
    return STR_NULL;
}

/* Source: apimachinery pkg/runtime/conversion.go. */
static bool truth(struct str value)
{
    if (!value.p || str_eqc(value, "0"))
        return false;
    return !str_eq_nocase(value, STR("false"));
}

static void pass_on(struct options *o, const char *name, struct str value)
{
    if (o->out.n)
        buf_char(&o->out, '&');
    buf_addc(&o->out, name);
    buf_char(&o->out, '=');
    buf_add(&o->out, url_encode(o->call->arena, value));
}

static bool read_bool(struct options *o, const char *name)
{
    bool set = truth(option(o, name));

    if (set)
        pass_on(o, name, STR("true"));
    return set;
}

static int read_number(struct options *o, const char *name, int64_t *ret, bool *ret_given,
                       struct err *err)
{
    struct str text = option(o, name);

    *ret = -1;
    *ret_given = text.p != NULL;
    if (!text.p)
        return 0;
    if (!str_to_i64(text, ret))
        return err_set(err, &ERR_BAD_REQUEST, "strconv.ParseInt: parsing %.*s: invalid syntax",
                       STR_F(go_quote(o->call->arena, text)));
    pass_on(o, name, text);
    return 0;
}

/* ---- logs ---- */

static void at_least(struct options *o, const char *name, bool given, int64_t value, int64_t least,
                     const char *words)
{
    if (given && value < least)
        field_invalid(o->errors, FIELD(NULL, name), json_new_i64(o->call->arena, value), words);
}

static int read_since_time(struct options *o, struct err *err)
{
    struct str text = option(o, "sinceTime");

    o->request->log.since_us = -1;
    if (!text.n)
        return 0;
    if (!time_parse(text, &o->request->log.since_us))
        return err_set(err, &ERR_BAD_REQUEST,
                       "parsing time %.*s as \"2006-01-02T15:04:05Z07:00\": cannot parse it",
                       STR_F(go_quote(o->call->arena, text)));
    pass_on(o, "sinceTime", text);
    return 0;
}

/* "All" is the behaviour of a host that does not know the option. */
static void read_stream(struct options *o, bool tail)
{
    static const char *const streams[] = {"All", "Stderr", "Stdout", NULL};
    struct str text = option(o, "stream");
    bool known = false;

    o->request->log.stream = text.p ? text : STR("All");
    for (size_t i = 0; streams[i]; i++)
        known |= str_eqc(o->request->log.stream, streams[i]);
    if (!known)
        field_not_supported(o->errors, FIELD(NULL, "stream"), text, streams);
    if (str_eqc(o->request->log.stream, "All"))
        return;
    if (tail)
        field_forbidden(o->errors, FIELD(NULL, ""),
                        "`tailLines` and specific `stream` are mutually exclusive for now");
    pass_on(o, "stream", text);
}

static int read_log(struct options *o, struct err *err)
{
    struct proxy_log *log = &o->request->log;
    bool seconds, tail, limit;

    log->follow = read_bool(o, "follow");
    log->previous = read_bool(o, "previous");
    log->timestamps = read_bool(o, "timestamps");
    if (read_number(o, "sinceSeconds", &log->since_seconds, &seconds, err) ||
        read_number(o, "tailLines", &log->tail_lines, &tail, err) ||
        read_number(o, "limitBytes", &log->limit_bytes, &limit, err) || read_since_time(o, err))
        return -1;
    at_least(o, "tailLines", tail, log->tail_lines, 0, "must be greater than or equal to 0");
    at_least(o, "limitBytes", limit, log->limit_bytes, 1, "must be greater than 0");
    if (seconds && log->since_us >= 0)
        field_forbidden(o->errors, FIELD(NULL, ""),
                        "at most one of `sinceTime` or `sinceSeconds` may be specified");
    else
        at_least(o, "sinceSeconds", seconds, log->since_seconds, 1, "must be greater than 0");
    read_stream(o, tail);
    return field_errors_to_err(o->errors, STR(""), STR("PodLogOptions"), o->request->name, err);
}

/* ---- containers ---- */

static const char *const LISTS[] = {"spec.initContainers", "spec.containers",
                                    "spec.ephemeralContainers"};

static bool has_container(const cJSON *pod, struct str wanted)
{
    for (size_t i = 0; i < COUNT(LISTS); i++)
        json_each(c, json_path(pod, LISTS[i]))
        {
            if (str_eq(json_str(json_get(c, "name")), wanted))
                return true;
        }
    return false;
}

static struct str all_containers(struct arena *a, const cJSON *pod)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    for (size_t i = 0; i < COUNT(LISTS); i++)
        json_each(c, json_path(pod, LISTS[i]))
        {
            if (b.n)
                buf_char(&b, ' ');
            buf_add(&b, json_str(json_get(c, "name")));
        }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

static int read_container(struct options *o, struct err *err)
{
    struct proxy_request *r = o->request;
    const cJSON *containers = json_path(r->object, "spec.containers");
    struct str wanted = r->container.n ? r->container : option(o, "container");

    if (wanted.n && !has_container(r->object, wanted))
        return err_set(err, &ERR_BAD_REQUEST, "container %.*s is not valid for pod %.*s",
                       STR_F(wanted), STR_F(r->name));
    if (!wanted.n && json_count(containers) > 1)
        return err_set(err, &ERR_BAD_REQUEST,
                       "a container name must be specified for pod %.*s, choose one of: [%.*s]",
                       STR_F(r->name), STR_F(all_containers(o->call->arena, r->object)));
    if (!wanted.n)
        wanted = json_str(json_get(json_at(containers, 0), "name"));
    if (!wanted.n)
        return err_set(err, &ERR_BAD_REQUEST, "a container name must be specified for pod %.*s",
                       STR_F(r->name));
    r->container = wanted;
    pass_on(o, "container", wanted);
    return 0;
}

/* ---- streams ---- */

/* Forwards every value of a name, in order. */
static int pass_all(struct options *o, const char *wanted, struct err *err)
{
    struct str rest = o->call->request->query, name, value;
    unsigned n = 0;

    while (next_pair(o->call->arena, &rest, &name, &value)) {
        if (!str_eqc(name, wanted))
            continue;
        if (++n > MAX_COMMAND)
            return err_set(err, &ERR_BAD_REQUEST, "too many values of %s", wanted);
        pass_on(o, wanted, value);
    }
    return 0;
}

static int read_stream_options(struct options *o, struct err *err)
{
    static const char *const flags[] = {"stdin", "stdout", "stderr", "tty"};

    for (size_t i = 0; i < COUNT(flags); i++)
        read_bool(o, flags[i]);
    return o->request->kind == PROXY_EXEC ? pass_all(o, "command", err) : 0;
}

static int read_options(struct options *o, struct err *err)
{
    switch (o->request->kind) {
    case PROXY_LOG:
        return read_log(o, err) || read_container(o, err) ? -1 : 0;
    case PROXY_EXEC:
    case PROXY_ATTACH:
        return read_container(o, err) || read_stream_options(o, err) ? -1 : 0;
    case PROXY_PORT_FORWARD:
        return pass_all(o, "ports", err);
    case PROXY_POD:
    case PROXY_SERVICE:
        buf_add(&o->out, o->request->query);
        return 0;
    case PROXY_NODE: /* of stats/summary; the kubelet takes this word alone for truth */
        if (str_eqc(option(o, "only_cpu_and_memory"), "true"))
            pass_on(o, "only_cpu_and_memory", STR("true"));
        return 0;
    }
    return 0;
}

int proxy_read_options(struct call *c, struct proxy_request *r, struct err *err)
{
    struct field_errors errors;
    struct options o = {c, r, &errors, BUF_INIT(0)};
    int failed;

    field_errors_init(&errors, c->arena);
    failed = read_options(&o, err);
    r->query = arena_str(c->arena, buf_str(&o.out));
    buf_fini(&o.out);
    return failed;
}
