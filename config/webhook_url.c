/* SPDX-License-Identifier: Apache-2.0 */
/* `policy.webhookUrls`. Must never take two spellings of a host or a path for the same where
 * another reader would see two: what is not plain is no such URL. */
#include <string.h>

#include <sublet/config.h>
#include <sublet/config_webhook.h>

#include "impl.h"

#define SCHEME "https://"

static bool consists_of(struct str text, const char *more)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            (!c || !strchr(more, c)))
            return false;
    }
    return true;
}

static bool is_plain_path(struct str path)
{
    struct str part;

    if (!consists_of(path, "/-._~"))
        return false;
    while (path.p && path.n) {
        part = str_cut(&path, '/');
        if (str_eqc(part, ".") || str_eqc(part, ".."))
            return false;
    }
    return true;
}

static bool read_port(struct str text, unsigned *ret)
{
    uint64_t port;

    if (!str_to_u64(text, &port) || !port || port > UINT16_MAX)
        return false;
    *ret = (unsigned)port;
    return true;
}

static bool read_authority(struct str text, struct config_webhook_url *ret)
{
    bool v6 = str_has_prefix(text, STR("["));
    size_t end = str_find(text, v6 ? ']' : ':');
    struct str rest = str_from(text, v6 ? end + 1 : end);

    ret->host = v6 ? str_sub(text, 1, end - 1) : str_sub(text, 0, end);
    ret->port = 443;
    if (!ret->host.n || (v6 && end == text.n) || !consists_of(ret->host, v6 ? ":." : "-._"))
        return false;
    return !rest.n || (rest.p[0] == ':' && read_port(str_from(rest, 1), &ret->port));
}

bool config_webhook_url_parse(struct str text, struct config_webhook_url *ret)
{
    struct str rest;
    size_t slash;

    if (!str_has_prefix(text, STR(SCHEME)))
        return false;
    rest = str_from(text, strlen(SCHEME));
    slash = str_find(rest, '/');
    ret->path = str_from(rest, slash);
    return is_plain_path(ret->path) && read_authority(str_sub(rest, 0, slash), ret);
}

static bool is_below(struct str path, struct str top)
{
    if (str_has_suffix(top, STR("/")))
        top = str_sub(top, 0, top.n - 1);
    return str_has_prefix(path, top) && (path.n == top.n || path.p[top.n] == '/');
}

bool config_webhook_url_allowed(const struct config *c, struct str text,
                                struct config_webhook_url *ret)
{
    struct config_webhook_url listed;

    if (!config_webhook_url_parse(text, ret))
        return false;
    for (size_t i = 0; i < c->webhook_urls.n; i++) {
        if (config_webhook_url_parse(c->webhook_urls.items[i], &listed) &&
            str_eq_nocase(listed.host, ret->host) && listed.port == ret->port &&
            is_below(ret->path, listed.path))
            return true;
    }
    return false;
}

int config_check_webhook_urls(const struct config *c, struct err *err)
{
    struct config_webhook_url url;

    if (c->webhook_urls.n > CONFIG_MOST_WEBHOOK_URLS)
        return err_set(err, &ERR_BAD_REQUEST, "config: policy.webhookUrls: at most %d",
                       CONFIG_MOST_WEBHOOK_URLS);
    for (size_t i = 0; i < c->webhook_urls.n; i++) {
        if (!config_webhook_url_parse(c->webhook_urls.items[i], &url))
            return err_set(err, &ERR_BAD_REQUEST,
                           "config: policy.webhookUrls[%zu]: \"%.*s\": want https://HOST[:PORT]"
                           "[/PATH], without escapes, a query or dot segments",
                           i, STR_F(c->webhook_urls.items[i]));
    }
    return 0;
}
