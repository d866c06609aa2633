/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * A URL in the API's terms: group, version, resource, namespace, name, subresource and verb.
 * Authorization decides on this reading, so it must never differ from the one the handlers act on:
 * they receive this struct and nothing else. Source: apiserver
 * pkg/endpoints/request/requestinfo.go. */
#include "target.h"

#include <ctype.h>

#include <sublet/encode.h>
#include <sublet/net.h>

#define MAX_PARTS 64

struct parts {
    struct str part[MAX_PARTS];
    size_t n, at;
};

static struct str part(const struct parts *p, size_t i)
{
    return p->at + i < p->n ? p->part[p->at + i] : STR_NULL;
}

static size_t left(const struct parts *p)
{
    return p->n - p->at;
}

/* Parts beyond the last place stay one part: no code below splits them. */
static void split(struct str path, struct parts *ret)
{
    ret->n = ret->at = 0;
    while (path.n && path.p[0] == '/')
        path = str_from(path, 1);
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    if (!path.n)
        return;
    while (path.p && ret->n < MAX_PARTS - 1)
        ret->part[ret->n++] = str_cut(&path, '/');
    if (path.p)
        ret->part[ret->n++] = path;
}

static const struct method_verb {
    const char *lower, *verb;
} METHODS[] = {
    [NET_GET] = {"get", "get"},       [NET_HEAD] = {"head", "get"},
    [NET_POST] = {"post", "create"},  [NET_PUT] = {"put", "update"},
    [NET_PATCH] = {"patch", "patch"}, [NET_DELETE] = {"delete", "delete"},
    [NET_OPTIONS] = {"options", ""},  [NET_OTHER] = {"", ""},
};

static void read_resource(struct parts *p, enum net_method method, struct target *t)
{
    struct str first;
    const char *end, *path_end;

    t->is_resource = true;
    t->method = method;
    t->version = part(p, 0);
    t->verb = METHODS[method].verb;
    p->at++;
    first = part(p, 0);
    if ((str_eqc(first, "watch") || str_eqc(first, "proxy")) && left(p) > 1) {
        t->by_path_watch = str_eqc(first, "watch");
        t->verb = t->by_path_watch ? "watch" : "proxy";
        p->at++;
    }
    /* /namespaces/x/pods/y names pods; /namespaces/x, /namespaces/x/status and /finalize name x. */
    if (str_eqc(part(p, 0), "namespaces") && left(p) >= 2) {
        t->ns = part(p, 1);
        if (left(p) > 2 && !str_eqc(part(p, 2), "status") && !str_eqc(part(p, 2), "finalize"))
            p->at += 2;
    }
    t->resource = part(p, 0);
    t->name = t->path_name = part(p, 1);
    if (left(p) > 2) {
        t->sub = part(p, 2);

        end = t->sub.p + t->sub.n;
        path_end = t->path.p + t->path.n;
        t->rest = end < path_end ? (struct str){end + 1, (size_t)(path_end - end - 1)} : STR_NULL;
    }
}

struct attributes request_attributes(const struct target *t)
{
    struct attributes what = {.verb = t->verb, .path = t->path};

    if (t->is_resource) {
        what.group = t->group;
        what.version = t->version;
        what.resource = t->resource;
        what.subresource = t->sub;
        what.name = t->name;
        what.ns = t->ns;
    }
    return what;
}

static const char *lower(struct arena *a, struct str method)
{
    char *p = arena_cstr(a, method);

    for (size_t i = 0; i < method.n; i++)
        p[i] = (char)tolower((unsigned char)p[i]);
    return p;
}

bool request_target(struct arena *a, const struct net_request *r, struct target *ret)
{
    struct target t = {.verb = METHODS[r->method].lower};
    struct parts p;

    if (!url_decode(a, r->path, false, &t.path))
        return false;
    if (!t.verb[0])
        t.verb = lower(a, r->method_text);
    split(t.path, &p);
    if (p.n >= 3 && str_eqc(p.part[0], "api")) {
        t.group = STR("");
        p.at = 1;
        read_resource(&p, r->method, &t);
    } else if (p.n >= 4 && str_eqc(p.part[0], "apis")) {
        t.group = p.part[1];
        p.at = 2;
        read_resource(&p, r->method, &t);
    }
    *ret = t;
    return true;
}
