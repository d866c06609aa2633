/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Continue tokens: the position at which a chunked list continues, and its revision. A key is
 * relative to the list, "/name" in a namespace and "/namespace/name" across them. A token comes
 * back from the client: it must never lead out of its list. Source: apiserver
 * pkg/storage/continue.go. */
#include "respond.h"

#include <ctype.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/json_build.h>

/* --- age --- */

/* Upstream compacts every five minutes, and its documentation says that a token lasts about that
 * long: clients handle its expiry. Our history is longer; a chunked list that began more than five
 * minutes ago expires all the same. The marks record the revision at points in time. */
enum { TOKEN_MS = 300 * 1000, MARK_EVERY_MS = 20 * 1000 };

static void take_mark(struct vapi *api)
{
    struct token_marks *m = &api->tokens;
    int64_t now = clock_mono_ms(vapi_clock(api));
    size_t old = 0;

    while (old < m->n && m->mark[old].at_ms <= now - TOKEN_MS)
        m->floor = m->mark[old++].revision;
    m->n -= old;
    memmove(m->mark, m->mark + old, m->n * sizeof *m->mark);
    if (m->n == COUNT(m->mark) || (m->n && now - m->mark[m->n - 1].at_ms < MARK_EVERY_MS))
        return;
    m->mark[m->n].at_ms = now;
    m->mark[m->n++].revision = store_revision(vapi_store(api));
    /* Upstream's own writes guarantee that a restarted list has a later revision. */
    store_advance(vapi_store(api));
}

bool list_token_expired(const struct call *c, int64_t revision)
{
    take_mark(c->api);
    return revision > 0 && revision <= c->api->tokens.floor;
}

/* --- encoding --- */

struct str list_token(const struct call *c, int64_t revision, struct str ns, struct str name)
{
    struct arena *a = c->arena;
    bool across = resource_namespaced(c->resource) && !c->ns.n;
    struct str key = arena_concat(
        a, 5,
        (struct str[]){
            STR("/"), across ? ns : STR(""), across ? STR("/") : STR(""), name, {"\0", 1}});

    take_mark(c->api);
    return base64url_encode(
        a, json_text(a, json_object(a, JSON("v", "meta.k8s.io/v1"), JSON_I64("rv", revision),
                                    JSON("start", key))));
}

static int token_error(struct err *err, const char *why)
{
    return err_set(err, &ERR_BAD_REQUEST, "invalid continue token: continue key is not valid: %s",
                   why);
}

/* The position where Go's decoder stops. */
static size_t first_invalid(struct str s)
{
    size_t i = 0;

    while (i < s.n && (isalnum((unsigned char)s.p[i]) || s.p[i] == '-' || s.p[i] == '_'))
        i++;
    return i;
}

/* Upstream refuses a key that path.Clean would change. */
static bool is_clean(struct str key)
{
    if (key.n && key.p[0] == '/')
        key = str_from(key, 1);
    while (key.p) {
        struct str part = str_cut(&key, '/');

        if (!part.n || str_eqc(part, ".") || str_eqc(part, ".."))
            return false;
    }
    return true;
}

static int check_token(const struct call *c, const cJSON *token, int64_t *ret, struct err *err)
{
    if (!str_eq(json_str_at(token, "v"), STR("meta.k8s.io/v1")))
        return token_error(err, arena_printf(c->arena,
                                             "server does not recognize this encoded version %.*s",
                                             STR_F(json_str_at(token, "v")))
                                    .p);
    if (!json_i64(json_get(token, "rv"), ret) || *ret == 0 || *ret < -1)
        return token_error(err, "incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
    if (!json_str_at(token, "start").n)
        return token_error(err, "encoded start key empty (version meta.k8s.io/v1)");
    return 0;
}

static int decode(struct call *c, cJSON **ret, struct err *err)
{
    struct err why;
    struct str text;

    err_init(&why, c->arena);
    if (!base64url_decode(c->arena, c->options.cont, &text))
        return token_error(err, arena_printf(c->arena, "illegal base64 data at input byte %zu",
                                             first_invalid(c->options.cont))
                                    .p);
    if (json_parse(c->arena, text, ret, &why))
        return token_error(err, arena_cstr(c->arena, status_body_text(why.message)));
    if (!json_is_object(*ret))
        return token_error(
            err,
            arena_printf(c->arena,
                         "json: cannot unmarshal %s into Go value of type storage.continueToken",
                         json_type_name(*ret))
                .p);
    return 0;
}

int list_token_read(struct call *c, struct list_position *ret, struct err *err)
{
    struct list_position at = {0};
    struct str key;
    cJSON *token;

    if (decode(c, &token, err) || check_token(c, token, &at.revision, err))
        return -1;
    key = json_str_at(token, "start");
    if (!is_clean(key))
        return token_error(err, arena_cstr(c->arena, key));
    if (key.p[0] == '/')
        key = str_from(key, 1);
    if (key.n && key.p[key.n - 1] == '\0')
        key.n--;
    if (resource_namespaced(c->resource))
        at.ns = c->ns.n ? c->ns : str_cut(&key, '/');
    at.name = key.p ? key : STR("");
    *ret = at;
    return 0;
}
