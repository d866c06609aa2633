/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Requests to the address of a node, where clients expect its kubelet: Prometheus, metrics-server.
 * They are read as nodes/NAME/proxy, so nothing is served there that is not served to those, and
 * need a kubelet's own rights. Must never take a request for the API itself, whose address is of no
 * node. Source of the rights: k8s.io/kubernetes pkg/kubelet/server/auth.go. */
#include "request.h"

#include <sublet/net.h>
#include <sublet/vapi_hooks.h>

#define KUBELET_PORT ":10250"

bool request_kubelet_address(struct call *c)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(c->api);
    struct str host = c->request->authority, node;
    struct net_request *to;

    if (!hooks->node_at || !str_has_suffix(host, STR(KUBELET_PORT)))
        return false;
    host.n -= sizeof(KUBELET_PORT) - 1;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_sub(host, 1, host.n - 2);
    node = hooks->node_at(hooks->ctx, host);
    if (!node.n)
        return false;
    to = ARENA_NEW(c->arena, struct net_request);
    *to = *c->request;
    to->path = arena_printf(c->arena, "/api/v1/nodes/%.*s/proxy%s%.*s", STR_F(node),
                            str_has_prefix(to->path, STR("/")) ? "" : "/", STR_F(c->request->path));
    c->request = to;
    return true;
}

static bool is_below(struct str path, const char *wanted)
{
    struct str w = str_c(wanted);

    return str_has_prefix(path, w) && (path.n == w.n || path.p[w.n] == '/');
}

static const struct {
    const char *path, *subresource;
    bool part; /* of what nodes/proxy permits */
} RIGHTS[] = {
    {"stats", "stats", false},     {"metrics", "metrics", false},
    {"logs", "log", false},        {"checkpoint", "checkpoint", false},
    {"statusz", "statusz", false}, {"flagz", "configz", false},
    {"pods", "pods", true},        {"runningpods", "pods", true},
    {"healthz", "healthz", true},  {"configz", "configz", true},
};

struct str request_kubelet_subresource(struct str path)
{
    for (size_t i = 0; i < COUNT(RIGHTS); i++)
        if (is_below(path, RIGHTS[i].path))
            return str_c(RIGHTS[i].subresource);
    return STR("proxy");
}

bool request_kubelet_is_part(struct str path)
{
    bool part = false;

    for (size_t i = 0; i < COUNT(RIGHTS); i++)
        part |= RIGHTS[i].part && is_below(path, RIGHTS[i].path);
    return part;
}
