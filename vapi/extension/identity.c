/* SPDX-License-Identifier: Apache-2.0 */
/* Who a request is from, as an extension API server reads it from the front proxy. Must never
 * forward a claim of identity that the client wrote, its credentials, or a value that would end its
 * header. Source: client-go transport/round_trippers.go (the names and their escaping). */
#include "extension.h"

#include <ctype.h>
#include <string.h>

#define MOST_EXTRA 256 /* values */

/* Identity, credentials, and what belongs to the connection. A '*' ends a prefix. */
static const char *const NOT_ON[] = {
    "audit-id",   "authorization", "connection",   "content-length", "cookie",
    "expect",     "forwarded",     "host",         "http2-settings", "impersonate-*",
    "keep-alive", "proxy-*",       "te",           "trailer",        "transfer-encoding",
    "upgrade",    "x-forwarded-*", "x-original-*", "x-real-ip",      "x-remote-*",
};

static bool may_pass(const struct net_header *h)
{
    for (size_t i = 0; i < COUNT(NOT_ON); i++) {
        size_t n = strlen(NOT_ON[i]);
        bool prefix = NOT_ON[i][n - 1] == '*';

        if (prefix ? str_has_prefix(h->name, (struct str){NOT_ON[i], n - 1})
                   : str_eqc(h->name, NOT_ON[i]))
            return false;
    }
    return true;
}

static bool is_valid(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if (((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
            return false;
    return true;
}

/* The characters of a token (RFC 9110 5.6.2), but '%', stand for themselves. */
static struct str escaped(struct arena *a, struct str key)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    for (size_t i = 0; i < key.n; i++) {
        unsigned char c = (unsigned char)key.p[i];

        if (isalnum(c) || (c && strchr("!#$&'*+-.^_`|~", c)))
            buf_char(&b, (char)tolower(c));
        else
            buf_printf(&b, "%%%02X", c);
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

struct headers {
    struct arena *arena;
    struct net_header *list;
    size_t n, cap;
};

static void add(struct headers *h, struct str name, struct str value)
{
    ARENA_GROW(h->arena, h->list, h->n, h->cap);
    h->list[h->n++] = (struct net_header){name, value};
}

static void add_extra(struct headers *h, const cJSON *extra)
{
    size_t n = 0;

    json_each(values, extra)
    {
        struct str name = arena_concat(
            h->arena, 2,
            (struct str[]){STR("X-Remote-Extra-"), escaped(h->arena, str_c(values->string))});

        json_each(value, values)
        {
            if (n++ < MOST_EXTRA)
                add(h, name, json_str(value));
        }
    }
}

int extension_headers(struct arena *a, const struct extension_request *q,
                      const struct net_header **ret, size_t *ret_n, struct err *err)
{
    struct headers h = {.arena = a};

    for (size_t i = 0; i < q->n_headers; i++)
        if (may_pass(&q->headers[i]))
            add(&h, q->headers[i].name, q->headers[i].value);
    add(&h, STR("X-Remote-User"), q->user->name);
    if (q->user->uid.n)
        add(&h, STR("X-Remote-Uid"), q->user->uid);
    for (size_t i = 0; i < q->user->n_groups; i++)
        add(&h, STR("X-Remote-Group"), q->user->groups[i]);
    add_extra(&h, q->user->extra);
    for (size_t i = 0; i < h.n; i++)
        if (!is_valid(h.list[i].value))
            return err_set(err, &ERR_BAD_REQUEST,
                           "net/http: invalid header field value for \"%.*s\"",
                           STR_F(h.list[i].name));
    *ret = h.list;
    *ret_n = h.n;
    return 0;
}
