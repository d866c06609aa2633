/* SPDX-License-Identifier: Apache-2.0 */
/* A proxied request from any bytes (`path?query`): whatever goes on stays below the pod it named,
 * even for a server that decodes and removes dot segments, and what is written anew carries nothing
 * that could end a request line. Must never let through what a second reader could take for another
 * path. */

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>

#include "../../vapi/api/proxy/impl.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define HEAD "/api/v1/namespaces/default/pods/web:80/proxy"

/* How deep a server that decodes the path ends up below "proxy"; it must never be above. */
static void check_stays_below(struct arena *a, struct str path)
{
    struct str text, part;
    long depth = 0;

    assert(url_decode(a, path, false, &text));
    while (text.p) {
        part = str_cut(&text, '/');
        if (str_eqc(part, ".."))
            depth--;
        else if (part.n && !str_eqc(part, "."))
            depth++;
        assert(depth >= 0);
    }
}

static void check_line(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        assert((unsigned char)s.p[i] > 0x20 && s.p[i] != 0x7f);
}

static void try_target(struct arena *a, struct str path)
{
    struct resource resource = {.plural = STR("pods"), .group_resource = STR("pods")};
    struct subresource sub = {.name = "proxy", .kind = SUB_PROXY};
    struct net_request request = {.arena = a, .path = path, .method_text = STR("GET")};
    struct call call = {.arena = a,
                        .request = &request,
                        .resource = &resource,
                        .sub = &sub,
                        .ns = STR("default"),
                        .name = STR("web:80")};
    struct proxy_request r = {.arena = a};
    struct err err;

    resource.group = STR("");
    err_init(&err, a);
    if (proxy_read_target(&call, &r, &err)) {
        assert(err.kind);
        return;
    }
    assert(str_eqc(r.name, "web") && str_eqc(r.port, "80"));
    assert(!r.path.n || r.path.p[0] == '/');
    check_line(r.path);
    check_stays_below(a, r.path);
}

static void try_options(struct arena *a, struct str query, const char *name)
{
    struct resource resource = {.plural = STR("pods"), .group_resource = STR("pods")};
    struct subresource sub = {.name = name, .kind = SUB_PROXY};
    struct net_request request = {.arena = a, .query = query, .method_text = STR("GET")};
    struct call call = {.arena = a,
                        .request = &request,
                        .resource = &resource,
                        .sub = &sub,
                        .ns = STR("default"),
                        .name = STR("web")};
    struct proxy_request r = {.arena = a};
    cJSON *pod = NULL, *connection = NULL;
    struct err err;

    resource.group = STR("");
    err_init(&err, a);
    assert(!json_parse(a, STR("{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}"),
                       &pod, &err));
    assert(!proxy_read_target(&call, &r, &err));
    r.object = pod;
    if ((r.kind != PROXY_LOG && proxy_connect_options(&call, &r, &connection, &err)) ||
        proxy_read_options(&call, connection, &r, &err)) {
        assert(err.kind && err.kind->code >= 400 && err.kind->code < 500);
        return;
    }
    check_line(r.query);
    assert(r.kind == PROXY_PORT_FORWARD || str_eqc(r.container, "a") || str_eqc(r.container, "b"));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str query = {(const char *)data, size};
    struct str path = str_cut(&query, '?');
    struct arena *a = arena_new(0);

    try_target(a, path);
    try_target(a, arena_printf(a, HEAD "%.*s", STR_F(path)));
    try_options(a, query, "log");
    try_options(a, query, "exec");
    try_options(a, query, "attach");
    try_options(a, query, "portforward");
    arena_free(a);
    return 0;
}
