/* SPDX-License-Identifier: Apache-2.0 */
/* A request line from any bytes (`METHOD path?query`), read as the API reads it: what is authorised
 * on and what the handlers are given are parts of the one decoded path, the reading does not depend
 * on how the path was escaped, and a query's values are what it said. Must never read beyond
 * either. */

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/net.h>

#include "../../vapi/core/target.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static enum net_method method_of(struct str text)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (str_eqc(text, names[i]))
            return (enum net_method)i;
    return NET_OTHER;
}

static void check_within(struct str path, struct str part)
{
    if (!part.p)
        return;
    assert(part.p >= path.p && part.p + part.n <= path.p + path.n);
}

static void check_segment(struct str path, struct str part)
{
    check_within(path, part);
    if (part.n && str_find(part, '/') < part.n) /* only what is beyond the last place */
        assert(part.p + part.n <= path.p + path.n);
}

static void check_target(const struct target *t)
{
    check_segment(t->path, t->version);
    check_segment(t->path, t->resource);
    check_segment(t->path, t->sub);
    check_segment(t->path, t->ns);
    check_segment(t->path, t->path_name);
    check_within(t->path, t->rest);
    assert(t->verb && (t->is_resource || !t->resource.p));
    assert(str_eq(t->name, t->path_name) && (!t->sub.n || t->path_name.p));
    assert(!t->is_resource ||
           str_has_prefix(str_from(t->path, strspn(t->path.p, "/")), STR("api")));
}

/* Everything but the slashes escaped: the same path, so the same target. */
static void check_escaped(struct arena *a, const struct net_request *r, const struct target *t)
{
    struct net_request again = *r;
    struct buf b = BUF_INIT(0);
    struct target other;

    for (size_t i = 0; i < t->path.n; i++) {
        if (t->path.p[i] == '/')
            buf_char(&b, '/');
        else
            buf_printf(&b, "%%%02x", (unsigned char)t->path.p[i]);
    }
    again.path = arena_str(a, buf_str(&b));
    buf_fini(&b);
    bool good = request_target(a, &again, &other);
    assert(good && str_eq(other.path, t->path) && other.is_resource == t->is_resource);
    assert(str_eqc(str_c(other.verb), t->verb) && str_eq(other.group, t->group));
    assert(str_eq(other.version, t->version) && str_eq(other.resource, t->resource));
    assert(str_eq(other.ns, t->ns) && str_eq(other.name, t->name));
    assert(str_eq(other.sub, t->sub) && str_eq(other.rest, t->rest));
}

static void check_query(struct arena *a, struct str text)
{
    struct query q;

    query_parse(a, text, &q);
    for (size_t i = 0; i < q.n; i++) {
        struct str first = query_get(&q, arena_cstr(a, q.items[i].name));

        assert(q.items[i].name.n + q.items[i].value.n <= text.n);
        assert(memchr(q.items[i].name.p, '\0', q.items[i].name.n + 1) <
                   (const void *)(q.items[i].name.p + q.items[i].name.n) ||
               first.p);
        (void)query_truth(q.items[i].value);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str line = {(const char *)data, size};
    struct arena *a = arena_new(0);
    struct net_request r = {.arena = a};
    struct target t;

    r.method_text = str_cut(&line, ' ');
    r.method = method_of(r.method_text);
    r.path = str_cut(&line, '?');
    r.query = line.p ? line : STR("");
    if (!r.path.p)
        r.path = STR("/");
    if (request_target(a, &r, &t)) {
        check_target(&t);
        check_escaped(a, &r, &t);
    }
    check_query(a, r.query);
    arena_free(a);
    return 0;
}
