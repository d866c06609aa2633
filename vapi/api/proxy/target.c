/* SPDX-License-Identifier: Apache-2.0
 *
 * The target in the URL of a proxied request. It must never forward a path that another server
 * could read as leaving the pod, service or node. */
#include "impl.h"

#include <string.h>

#include <sublet/encode.h>

static const struct {
    const char *resource, *sub;
    enum proxy_kind kind;
} KINDS[] = {
    {"pods", "log", PROXY_LOG},       {"pods", "exec", PROXY_EXEC},
    {"pods", "attach", PROXY_ATTACH}, {"pods", "portforward", PROXY_PORT_FORWARD},
    {"pods", "proxy", PROXY_POD},     {"services", "proxy", PROXY_SERVICE},
    {"nodes", "proxy", PROXY_NODE},
};

/* A port name or number: DNS-1123 letters. */
static bool port_ok(struct str port)
{
    for (size_t i = 0; i < port.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", port.p[i]) || !port.p[i])
            return false;
    return port.n <= 63;
}

/* name, name:port or scheme:name:port. Source: apimachinery pkg/util/net/port_split.go. */
static bool split_name(struct str text, struct proxy_request *r)
{
    size_t first = str_find(text, ':'), last = str_rfind(text, ':');

    if (first < last) {
        r->scheme = str_sub(text, 0, first);
        text = str_from(text, first + 1);
        last -= first + 1;
    }
    r->name = str_sub(text, 0, last);
    r->port = str_from(text, last + 1);
    if (!r->name.n || str_find(r->name, ':') < r->name.n || !port_ok(r->port))
        return false;
    return !r->scheme.n || str_eqc(r->scheme, "http") || str_eqc(r->scheme, "https");
}

/* Decoded once, as the next server may do. Some servers treat a backslash as a slash. */
static bool path_ok(struct arena *a, struct str path)
{
    struct str text, part;

    if (!url_decode(a, path, false, &text))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f || text.p[i] == '\\')
            return false;
    while (text.p) {
        part = str_cut(&text, '/');
        if (str_eqc(part, ".") || str_eqc(part, ".."))
            return false;
    }
    return true;
}

/* Only characters a URL may carry unencoded are forwarded unchanged. */
static bool is_plain(struct str path)
{
    for (size_t i = 0; i < path.n; i++)
        if ((unsigned char)path.p[i] <= 0x20 || (unsigned char)path.p[i] >= 0x7f ||
            strchr("\"<>\\^`{|}#?", path.p[i]))
            return false;
    return true;
}

/* Cuts the next part of a raw path, which must decode to the wanted string. */
static bool is_part(struct arena *a, struct str *rest, struct str wanted)
{
    struct str part;

    return url_decode(a, str_cut(rest, '/'), false, &part) && str_eq(part, wanted);
}

/* The path after ".../proxy" as sent: access was decided on the decoded path, so the parts before
 * it must match the raw ones. */
static int read_path(struct call *c, struct proxy_request *r, struct err *err)
{
    const struct str head[] = {STR(""), STR("api"),          STR("v1"), STR("namespaces"),
                               c->ns,   c->resource->plural, c->name,   STR("proxy")};
    struct str rest = c->request->path;
    bool same = true, in_namespace = r->kind != PROXY_NODE;

    for (size_t i = 0; i < COUNT(head) && same; i++)
        same = (!in_namespace && (i == 3 || i == 4)) || is_part(c->arena, &rest, head[i]);
    if (rest.p)
        rest = (struct str){rest.p - 1, rest.n + 1}; /* with its slash */
    if (!same || !is_plain(rest) || !path_ok(c->arena, rest))
        return err_set(err, &ERR_BAD_REQUEST,
                       "the path of a proxied request must be plainly encoded, without dot "
                       "segments");
    r->path = rest;
    return 0;
}

/* As upstream's options have it: decoded, one slash before it. */
struct str proxy_shown_path(const struct proxy_request *r)
{
    struct str path;

    if (!url_decode(r->arena, r->path, false, &path))
        return STR("");
    while (path.n > 1 && str_has_prefix(path, STR("//")))
        path = str_from(path, 1);
    return path;
}

int proxy_set_path(struct proxy_request *r, struct str path, struct err *err)
{
    struct buf b = BUF_INIT(0);

    if (str_eq(path, proxy_shown_path(r)))
        return 0;
    while (path.p && path.n) {
        bool more = str_find(path, '/') < path.n;

        buf_add(&b, url_encode(r->arena, str_cut(&path, '/')));
        if (more)
            buf_char(&b, '/');
    }
    r->path = arena_str(r->arena, buf_str(&b));
    buf_fini(&b);
    if (r->path.n && r->path.p[0] != '/')
        r->path = arena_printf(r->arena, "/%.*s", STR_F(r->path));
    if (path_ok(r->arena, r->path))
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "the path of a proxied request must be plain");
}

int proxy_read_target(struct call *c, struct proxy_request *r, struct err *err)
{
    bool found = false;

    for (size_t i = 0; i < COUNT(KINDS); i++) {
        if (!str_eqc(c->resource->plural, KINDS[i].resource) ||
            !str_eqc(str_c(c->sub->name), KINDS[i].sub))
            continue;
        r->kind = KINDS[i].kind;
        found = true;
    }
    if (!found)
        return err_forbidden(err, c->resource->group, c->resource->plural, c->name,
                             "%s of %.*s belongs to the host cluster", c->sub->name,
                             STR_F(c->resource->plural));

    r->arena = c->arena;
    r->ns = c->ns;
    r->name = c->name;
    r->method = arena_cstr(c->arena, c->request->method_text);
    if (r->kind != PROXY_NODE) /* a kubelet is only read */
        r->body = c->request->body;
    if (!proxy_is_http(r->kind))
        return 0;
    if (!split_name(c->name, r))
        return err_set(err, &ERR_BAD_REQUEST, "invalid %s request \"%.*s\"",
                       r->kind == PROXY_POD    ? "pod"
                       : r->kind == PROXY_NODE ? "node"
                                               : "service",
                       STR_F(c->name));
    if (r->kind != PROXY_NODE)
        r->query = c->request->query;
    return read_path(c, r, err);
}

/* --- a kubelet's logs of containers --- */

#define CONTAINER_LOGS STR("/containerLogs/")

bool proxy_is_container_log(const struct proxy_request *r)
{
    return str_has_prefix(r->path, CONTAINER_LOGS);
}

/* Source: k8s.io/kubernetes pkg/kubelet/server/server.go getContainerLogs(). */
int proxy_read_container_log(struct proxy_request *r, struct err *err)
{
    struct str rest = str_from(r->path, CONTAINER_LOGS.n), parts[3];

    for (size_t i = 0; i < COUNT(parts); i++) {
        if (!url_decode(r->arena, str_cut(&rest, '/'), false, &parts[i]) || !parts[i].n ||
            str_find(parts[i], '/') < parts[i].n)
            return err_not_found(err, STR(""), STR("nodes"), r->name);
    }
    if (rest.p || !str_eqc(str_c(r->method), "GET") || r->port.n || r->scheme.n)
        return err_forbidden(err, STR(""), STR("nodes"), r->name,
                             "containerLogs of its kubelet: only a GET of one container's log is "
                             "served");
    r->kind = PROXY_LOG;
    r->ns = parts[0];
    r->name = parts[1];
    r->container = parts[2];
    r->path = STR_NULL;
    return 0;
}
