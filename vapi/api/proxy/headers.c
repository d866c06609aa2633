/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the headers that are forwarded. It must never forward a claim of identity: the request
 * continues with another identity, and the tenant's headers about it end here. */
#include "impl.h"

#include <string.h>

/* Hop-by-hop (RFC 9110 7.6.1), identifying the client, or written by the proxy. A '*' ends a
 * prefix. */
static const char *const NOT_ON[] = {
    "authorization",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "impersonate-*",
    "keep-alive",
    "proxy-*",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-*",
    "x-original-*",
    "x-real-ip",
    "x-remote-*",
};
static const char *const NOT_BACK[] = {
    "audit-id", "connection", "content-length",    "date",    "keep-alive", "proxy-*",
    "te",       "trailer",    "transfer-encoding", "upgrade", "warning",    "x-kubernetes-pf-*",
};
/* The only headers an upgrade to a stream needs. */
static const char *const STREAM[] = {
    "sec-websocket-extensions", "sec-websocket-key",         "sec-websocket-protocol",
    "sec-websocket-version",    "x-stream-protocol-version",
};
#define N(list) COUNT(list)

static bool matches(struct str name, const char *pattern)
{
    size_t n = strlen(pattern);

    if (pattern[n - 1] == '*')
        return str_has_prefix(name, (struct str){pattern, n - 1});
    return str_eqc(name, pattern);
}

static bool listed(struct str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (matches(name, list[i]))
            return true;
    return false;
}

/* Browsers put a bearer token among the subprotocols: it is the tenant's, and is removed here. */
static struct str without_tokens(struct arena *a, struct str protocols)
{
    struct buf b = BUF_INIT(0);
    struct str one, ret;

    while (protocols.p) {
        one = str_trim(str_cut(&protocols, ','));
        if (!one.n || str_has_prefix(one, STR("base64url.bearer.authorization.")))
            continue;
        if (b.n)
            buf_addc(&b, ", ");
        buf_add(&b, one);
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

void proxy_read_headers(struct call *c, struct proxy_request *r)
{
    const struct net_request *q = c->request;
    struct net_header *list = arena_alloc(c->arena, (q->n_headers + 1) * sizeof(*list));
    struct str connection = net_header(q, "connection");
    bool whole = r->kind == PROXY_POD || r->kind == PROXY_SERVICE;

    /* A log's WebSocket ends here, and a kubelet is only read: an upgrade could act in any pod. */
    if (r->kind != PROXY_LOG && r->kind != PROXY_NODE && q->http_major == 1 &&
        str_lists_word(connection, STR("upgrade")))
        r->upgrade = net_header(q, "upgrade");
    for (size_t i = 0; i < q->n_headers && r->kind != PROXY_LOG && r->kind != PROXY_NODE; i++) {
        struct net_header h = q->headers[i];

        if (whole ? listed(h.name, NOT_ON, N(NOT_ON)) || str_lists_word(connection, h.name)
                  : !listed(h.name, STREAM, N(STREAM)))
            continue;
        if (str_eqc(h.name, "sec-websocket-protocol"))
            h.value = without_tokens(c->arena, h.value);
        if (h.value.n || whole)
            list[r->n_headers++] = h;
    }
    r->headers = list;
}

static bool has(const struct net_header *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(list[i].name, name))
            return true;
    return false;
}

const struct net_header *proxy_answer_headers(struct call *c, const struct net_header *headers,
                                              size_t n, bool upgrade, size_t *ret_n)
{
    struct net_header *list = arena_alloc(c->arena, (n + 2) * sizeof(*list));
    size_t m = 0;

    /* Drops the headers of NOT_BACK, but keeps those of an upgrade. */
    for (size_t i = 0; i < n; i++)
        if (!listed(headers[i].name, NOT_BACK, N(NOT_BACK)) ||
            (upgrade && str_eqc(headers[i].name, "upgrade")))
            list[m++] = headers[i];
    if (!n)
        list[m++] = (struct net_header){STR("content-type"), STR("text/plain")};
    if (!upgrade && !has(list, m, "cache-control"))
        list[m++] = (struct net_header){STR("cache-control"), STR("no-cache, private")};
    *ret_n = m;
    return list;
}
