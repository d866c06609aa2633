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
    const cJSON *connection; /* NULL: of a log, in the query */
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
    struct str wanted = r->container.n  ? r->container
                        : o->connection ? json_str(json_get(o->connection, "container"))
                                        : option(o, "container");

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

/* ---- the options of a connection, as the object that admission sees ---- */

static const char *const FLAGS[] = {"stdin", "stdout", "stderr", "tty"};

static int add_stream(struct options *o, cJSON *tree)
{
    struct arena *a = o->call->arena;
    struct str container = option(o, "container");

    for (size_t i = 0; i < COUNT(FLAGS); i++)
        if (truth(option(o, FLAGS[i])))
            json_set(a, tree, FLAGS[i], json_new_bool(a, true));
    if (container.n)
        json_set_str(a, tree, "container", container);
    return 0;
}

static int too_many(const char *what, struct err *err)
{
    return err_set(err, &ERR_BAD_REQUEST, "too many values of %s", what);
}

static int add_command(struct options *o, cJSON *tree, struct err *err)
{
    struct arena *a = o->call->arena;
    struct str rest = o->call->request->query, name, value;
    cJSON *command = json_new_array(a);
    unsigned n = 0;

    while (next_pair(a, &rest, &name, &value)) {
        if (!str_eqc(name, "command"))
            continue;
        if (++n > MAX_COMMAND)
            return too_many("command", err);
        json_append(command, json_new_string(a, value));
    }
    json_set(a, tree, "command", n ? command : json_new_null(a));
    return 0;
}

static int add_port(struct options *o, cJSON *ports, struct str text, struct err *err)
{
    struct arena *a = o->call->arena;
    uint64_t port = 0;
    bool number = str_to_u64(text, &port);

    if (number && port <= UINT16_MAX) {
        json_append(ports, json_new_i64(a, (int64_t)port));
        return 0;
    }
    return err_set(err, &ERR_BAD_REQUEST,
                   "cannot convert to []int32: strconv.ParseUint: parsing %.*s: %s",
                   STR_F(go_quote(a, text)), number ? "value out of range" : "invalid syntax");
}

static int add_ports(struct options *o, cJSON *tree, struct err *err)
{
    struct arena *a = o->call->arena;
    struct str rest = o->call->request->query, name, value;
    cJSON *ports = json_new_array(a);

    while (next_pair(a, &rest, &name, &value)) {
        bool last = !str_eqc(name, "ports");

        while (!last) {
            last = str_find(value, ',') == value.n;
            if (json_count(ports) >= MAX_COMMAND)
                return too_many("ports", err);
            if (add_port(o, ports, str_cut(&value, ','), err))
                return -1;
        }
    }
    if (json_count(ports))
        json_set(a, tree, "ports", ports);
    return 0;
}

static int add_options(struct options *o, cJSON *tree, struct err *err)
{
    struct str path;

    switch (o->request->kind) {
    case PROXY_EXEC:
        return add_stream(o, tree) || add_command(o, tree, err) ? -1 : 0;
    case PROXY_ATTACH:
        return add_stream(o, tree);
    case PROXY_PORT_FORWARD:
        return add_ports(o, tree, err);
    default:
        path = proxy_shown_path(o->request);
        if (path.n)
            json_set_str(o->call->arena, tree, "path", path);
        return 0;
    }
}

int proxy_connect_options(struct call *c, struct proxy_request *r, cJSON **ret, struct err *err)
{
    struct options o = {.call = c, .request = r};
    cJSON *tree = json_new_object(c->arena);

    if (add_options(&o, tree, err))
        return -1;
    *ret = tree;
    return 0;
}

/* ---- what of it is forwarded ---- */

static int pass_stream(struct options *o, struct err *err)
{
    const cJSON *command = json_get(o->connection, "command");

    if (read_container(o, err))
        return -1;
    for (size_t i = 0; i < COUNT(FLAGS); i++)
        if (json_true(json_get(o->connection, FLAGS[i])))
            pass_on(o, FLAGS[i], STR("true"));
    if (json_count(command) > MAX_COMMAND)
        return too_many("command", err);
    json_each(word, command) pass_on(o, "command", json_str(word));
    return 0;
}

static int pass_ports(struct options *o, struct err *err)
{
    const cJSON *ports = json_get(o->connection, "ports");
    int64_t port;

    if (json_count(ports) > MAX_COMMAND)
        return too_many("ports", err);
    json_each(item, ports)
    {
        if (!json_i64(item, &port) || port < 0 || port > UINT16_MAX)
            return err_set(err, &ERR_BAD_REQUEST, "ports: must be from 0 to 65535");
        pass_on(o, "ports", arena_printf(o->call->arena, "%lld", (long long)port));
    }
    return 0;
}

static int read_options(struct options *o, struct err *err)
{
    switch (o->request->kind) {
    case PROXY_LOG:
        return read_log(o, err) || read_container(o, err) ? -1 : 0;
    case PROXY_EXEC:
    case PROXY_ATTACH:
        return pass_stream(o, err);
    case PROXY_PORT_FORWARD:
        return pass_ports(o, err);
    case PROXY_POD:
    case PROXY_SERVICE:
        buf_add(&o->out, o->request->query);
        return proxy_set_path(o->request, json_str(json_get(o->connection, "path")), err);
    case PROXY_NODE: /* of stats/summary; the kubelet takes this word alone for truth */
        if (str_eqc(option(o, "only_cpu_and_memory"), "true"))
            pass_on(o, "only_cpu_and_memory", STR("true"));
        return 0;
    }
    return 0;
}

int proxy_read_options(struct call *c, const cJSON *connection, struct proxy_request *r,
                       struct err *err)
{
    struct field_errors errors;
    struct options o = {c, connection, r, &errors, BUF_INIT(0)};
    int failed;

    field_errors_init(&errors, c->arena);
    failed = read_options(&o, err);
    r->query = arena_str(c->arena, buf_str(&o.out));
    buf_fini(&o.out);
    return failed;
}
