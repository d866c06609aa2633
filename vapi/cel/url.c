/* SPDX-License-Identifier: Apache-2.0 */
/* url(): absolute URLs as Go's net/url reads them, with its words where it does not. Source:
 * k8s.io/apiserver pkg/cel/library/urls.go, Go net/url ParseRequestURI() and Parse(). */
#include "impl.h"

#include <ctype.h>
#include <string.h>

#include <sublet/encode.h>

struct url {
    struct str raw; /* first: value.c compares it */
    struct str scheme, host, path, query;
    bool opaque; /* scheme:anything: it has no path */
};

/* ---- escapes ---- */

/* The three characters of the first %XX that is none; NULL: all are. */
static const char *bad_escape(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '%' && (i + 2 >= s.n || !isxdigit((unsigned char)s.p[i + 1]) ||
                              !isxdigit((unsigned char)s.p[i + 2])))
            return s.p + i;
    }
    return NULL;
}

static struct str escape_problem(struct arena *a, struct str s)
{
    const char *bad = bad_escape(s);

    if (!bad)
        return STR_NULL;
    return arena_printf(a, "invalid URL escape %.*s",
                        STR_F(go_quote(a, str_sub(str_from(s, (size_t)(bad - s.p)), 0, 3))));
}

/* Whether Go leaves the character as it is in a path. */
static bool stays_in_path(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-_.~$&+,/:;=@", c));
}

static struct str escaped_path(struct arena *a, struct str path)
{
    struct buf b = BUF_INIT(0);
    struct str plain, out;
    bool valid = true;

    for (size_t i = 0; i < path.n; i++)
        valid = valid && (stays_in_path(path.p[i]) || (path.p[i] && strchr("!'()*[]%", path.p[i])));
    if (valid || !url_decode(a, path, false, &plain))
        return path;
    for (size_t i = 0; i < plain.n; i++) {
        if (stays_in_path(plain.p[i]))
            buf_char(&b, plain.p[i]);
        else
            buf_printf(&b, "%%%02X", (unsigned)(unsigned char)plain.p[i]);
    }
    out = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return out;
}

/* ---- parts ---- */

/* The length of a scheme in front of ':'; 0: there is none; -1: it is empty. */
static long scheme_length(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == ':')
            return i ? (long)i : -1;
        if (isalpha((unsigned char)c))
            continue;
        if (!i || !(isdigit((unsigned char)c) || (c && strchr("+-.", c))))
            return 0;
    }
    return 0;
}

static bool is_port(struct str s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]))
            return false;
    }
    return !s.n || s.p[0] == ':';
}

static struct str host_problem(struct arena *a, struct str host)
{
    size_t end = str_rfind(host, ']');
    struct str port;

    if (host.n && host.p[0] == '[') {
        if (end == host.n)
            return STR("missing ']' in host");
        port = str_from(host, end + 1);
    } else {
        port = str_from(host, str_rfind(host, ':'));
    }
    if (!is_port(port))
        return arena_printf(a, "invalid port %.*s after host", STR_F(go_quote(a, port)));
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];

        if (!(c & 0x80) && !isalnum((unsigned char)c) &&
            !(c && strchr("-_.~!$&'()*+,;=:[]<>\"%", c)))
            return arena_printf(a, "invalid character %.*s in host name",
                                STR_F(go_quote(a, (struct str){host.p + i, 1})));
    }
    /* Only what is not ASCII is escaped in a host. */
    for (size_t i = 0; i + 2 < host.n; i++) {
        if (host.p[i] == '%' && isxdigit((unsigned char)host.p[i + 2]) && host.p[i + 1] >= '0' &&
            host.p[i + 1] < '8' && !str_has_prefix(str_from(host, i), STR("%25")))
            return arena_printf(a, "invalid URL escape %.*s",
                                STR_F(go_quote(a, str_sub(host, i, 3))));
    }
    return escape_problem(a, host);
}

static struct str read_authority(struct arena *a, struct str text, struct url *u)
{
    size_t at = str_rfind(text, '@');

    u->host = at < text.n ? str_from(text, at + 1) : text;
    for (size_t i = 0; at < text.n && i < at; i++) {
        if (!isalnum((unsigned char)text.p[i]) &&
            !(text.p[i] && strchr("-._:~!$&'()*+,;=%@", text.p[i])))
            return STR("net/url: invalid userinfo");
    }
    return host_problem(a, u->host);
}

/* Returns the problem, or an empty string. request: a fragment is part of what is before it, and
 * a path begins with a slash. */
static struct str read_url(struct arena *a, struct str raw, bool request, struct url *u)
{
    struct str rest = raw, problem = STR_NULL;
    long scheme = scheme_length(raw);

    *u = (struct url){.opaque = false};
    for (size_t i = 0; i < raw.n; i++) {
        if ((unsigned char)raw.p[i] < ' ' || raw.p[i] == 0x7f)
            return STR("net/url: invalid control character in URL");
    }
    if (!raw.n)
        return request ? STR("empty url") : STR_NULL;
    if (scheme < 0)
        return STR("missing protocol scheme");
    if (!request)
        rest = str_sub(raw, 0, str_find(raw, '#'));
    if (scheme > 0) {
        u->scheme = str_sub(raw, 0, (size_t)scheme);
        rest = str_from(rest, (size_t)scheme + 1);
    }
    u->query = str_from(rest, str_find(rest, '?'));
    rest = str_sub(rest, 0, rest.n - u->query.n);
    u->query = str_from(u->query, u->query.n ? 1 : 0);
    if (!rest.n || rest.p[0] != '/') {
        u->opaque = u->scheme.n;
        return u->opaque || !request ? STR_NULL : STR("invalid URI for request");
    }
    if (u->scheme.n && str_has_prefix(rest, STR("//"))) {
        struct str authority = str_from(rest, 2);
        size_t slash = str_find(authority, '/');

        problem = read_authority(a, str_sub(authority, 0, slash), u);
        rest = str_from(authority, slash);
    }
    u->path = rest;
    return problem.n ? problem : escape_problem(a, rest);
}

struct str cel_url_problem(struct arena *a, struct str raw)
{
    struct url ignored;
    struct str problem = read_url(a, raw, true, &ignored);

    return problem.n ? arena_printf(a, "parse %.*s: %.*s", STR_F(go_quote(a, raw)), STR_F(problem))
                     : STR_NULL;
}

/* ---- functions ---- */

/* Room for what reading s may take. */
static bool begin(struct cel_run *r, struct str s)
{
    cel_charge_text(r, s.n);
    return !r->over && cel_room(r, 1) && arena_left(r->arena) > 16 * s.n + 1024;
}

static struct cel_value is_url(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return begin(r, a[0].s) ? cel_bool(!cel_url_problem(r->arena, a[0].s).n) : cel_no_overload(r);
}

static struct cel_value to_url(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct url *u = ARENA_NEW(r->arena, struct url);
    struct str problem;

    (void)n;
    if (!begin(r, a[0].s))
        return cel_no_overload(r);
    problem = cel_url_problem(r->arena, a[0].s);
    if (!problem.n && read_url(r->arena, a[0].s, false, u).n)
        problem = STR("not a URL without its fragment");
    u->raw = a[0].s;
    return problem.n
               ? cel_error(r, "URL parse error during conversion from string: %.*s", STR_F(problem))
               : cel_boxed(CEL_URL, u);
}

static struct cel_value lower(struct cel_run *r, struct str s)
{
    char *copy = arena_cstr(r->arena, s);

    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    return cel_string((struct str){copy, s.n});
}

/* Without the port, and without the brackets of IPv6. */
static struct str hostname(struct str host)
{
    size_t end = str_rfind(host, ']'), colon = str_rfind(host, ':');

    if (host.n && host.p[0] == '[' && end < host.n)
        return str_sub(host, 1, end - 1);
    return str_sub(host, 0, colon);
}

static struct str port(struct str host)
{
    size_t end = str_rfind(host, ']'), colon = str_rfind(host, ':');

    return colon < host.n && (end == host.n || colon > end) ? str_from(host, colon + 1) : STR("");
}

static struct cel_value part_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    const struct url *u = a[0].p;
    struct str host = u->host;

    (void)n;
    if (!begin(r, u->host.n > u->path.n ? u->host : u->path))
        return cel_no_overload(r);
    if (bad_escape(host) || !url_decode(r->arena, host, false, &host))
        host = u->host;
    switch (str_word_index("getScheme|getHost|getHostname|getPort", r->node->name)) {
    case 0:
        return lower(r, u->scheme);
    case 1:
        return cel_string(host);
    case 2:
        return cel_string(hostname(host));
    case 3:
        return cel_string(port(host));
    default:
        return cel_string(escaped_path(r->arena, u->path));
    }
}

struct query {
    struct cel_value *keys, *values;
    size_t n;
};

/* Values of one name are a list, in their order. */
static void add_pair(struct cel_run *r, struct query *q, struct str name, struct str value)
{
    size_t k = 0, n;
    struct cel_value *items;

    while (k < q->n && !str_eq(q->keys[k].s, name))
        k++;
    cel_charge(r, k / 8);
    n = k < q->n ? q->values[k].list->n : 0;
    items = cel_room(r, (n + 1) * sizeof(*items) + sizeof(struct cel_list));
    if (!items)
        return;
    if (n)
        memcpy(items, q->values[k].list->items, n * sizeof(*items));
    cel_charge(r, n / 8);
    items[n] = cel_string(value);
    q->keys[k] = cel_string(name);
    q->values[k] = cel_new_list(r, items, n + 1);
    q->n += k == q->n;
}

/* Pairs with a bad escape, or a semicolon, are left out, as Go does. */
static struct cel_value query_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct str rest = ((const struct url *)a[0].p)->query;
    size_t pairs = 1;
    struct query q = {.n = 0};
    struct cel_map *m;

    (void)n;
    for (size_t i = 0; i < rest.n; i++)
        pairs += rest.p[i] == '&';
    q.keys = cel_room(r, 2 * pairs * sizeof(*q.keys));
    if (!q.keys || !begin(r, rest))
        return cel_no_overload(r);
    q.values = q.keys + pairs;
    while (rest.p && !r->over) {
        struct str value = str_cut(&rest, '&'), name;
        bool semicolon = str_find(value, ';') < value.n;

        if (!value.n || semicolon)
            continue;
        name = str_cut(&value, '=');
        if (url_decode(r->arena, name, true, &name) && url_decode(r->arena, value, true, &value))
            add_pair(r, &q, name, value);
    }
    m = ARENA_NEW(r->arena, struct cel_map);
    *m = (struct cel_map){q.n, q.keys, q.values};
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

static const struct cel_function ROWS[] = {
    {"isURL", false, "s", "b", is_url},          {"url", false, "s", "W", to_url},
    {"getScheme", true, "W", "s", part_of},      {"getHost", true, "W", "s", part_of},
    {"getHostname", true, "W", "s", part_of},    {"getPort", true, "W", "s", part_of},
    {"getEscapedPath", true, "W", "s", part_of}, {"getQuery", true, "W", "MsLs", query_of},
};
const struct cel_functions CEL_URLS = {ROWS, COUNT(ROWS)};
