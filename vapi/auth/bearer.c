/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the token of a request: from Authorization, or, because a browser's WebSocket can set no
 * header, from its subprotocols. Source: k8s.io/apiserver pkg/authentication/request/bearertoken
 * and websocket. Must never read subprotocols of a request that is not a WebSocket. */
#include <sublet/encode.h>

#include "auth_impl.h"

#define TOKEN_PROTOCOL "base64url.bearer.authorization.k8s.io."

/* The second word when the first is Bearer; other schemes are ignored, as upstream. */
static struct str of_authorization(const struct net_request *r)
{
    struct str rest = str_trim(net_header(r, "authorization")), scheme = str_cut(&rest, ' ');

    if (!str_eq_nocase(scheme, STR("bearer")))
        return STR_NULL;
    return str_cut(&rest, ' ');
}

static bool is_web_socket(const struct net_request *r)
{
    return str_lists_word(net_header(r, "connection"), STR("upgrade")) &&
           str_eq_nocase(net_header(r, "upgrade"), STR("websocket"));
}

struct found {
    struct str encoded;
    size_t tokens, others;
};

/* Another subprotocol must be present, for the server's answer. */
static int of_protocols(struct arena *a, const struct net_request *r, struct str *ret,
                        struct err *err)
{
    struct found f = {.tokens = 0};
    struct str token;

    for (size_t i = 0; i < r->n_headers; i++) {
        if (str_eqc(r->headers[i].name, "sec-websocket-protocol")) {
            struct str list = r->headers[i].value;

            while (list.p) {
                struct str one = str_trim(str_cut(&list, ','));

                if (!str_has_prefix(one, STR(TOKEN_PROTOCOL))) {
                    f.others++;
                    continue;
                }
                f.encoded = str_from(one, sizeof(TOKEN_PROTOCOL) - 1);
                f.tokens++;
            }
        }
    }
    if (!f.tokens)
        return 0;
    if (f.tokens > 1)
        return err_set(err, &ERR_UNAUTHORIZED,
                       "multiple base64.bearer.authorization tokens specified");
    if (!base64url_decode(a, f.encoded, &token) || !str_is_utf8(token))
        return err_set(err, &ERR_UNAUTHORIZED,
                       "invalid base64.bearer.authorization token encoding");
    if (!f.others)
        return err_set(err, &ERR_UNAUTHORIZED, "missing additional subprotocol");
    *ret = token;
    return 0;
}

int auth_bearer(struct arena *a, const struct net_request *r, struct str *ret, struct err *err)
{
    *ret = of_authorization(r);
    return ret->n || !is_web_socket(r) ? 0 : of_protocols(a, r, ret, err);
}
