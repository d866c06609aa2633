/* SPDX-License-Identifier: Apache-2.0 */
/* What `telemetry:` means beyond the types of its options. Must leave nothing to the first request:
 * a selector that the host refuses is an error of the start. */
#include <string.h>

#include <sublet/config.h>
#include <sublet/selector.h>

#include "impl.h"

static int bad_value(struct err *err, const char *key, struct str value, const char *why)
{
    return err_set(err, &ERR_BAD_REQUEST, "config: telemetry.dcgm.%s: \"%.*s\": %s", key,
                   STR_F(value), why);
}

/* A path without a query: what needs no quoting in a request. */
static bool is_path(struct str path)
{
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !memchr("/-._~", c, 5))
            return false;
    }
    return path.n && path.p[0] == '/';
}

/* A name or an address, and perhaps a port. */
static bool is_authority(struct str rest)
{
    for (size_t i = 0; i < rest.n; i++) {
        char c = rest.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !memchr("-.:[]", c, 5))
            return false;
    }
    return rest.n && rest.p[0] != ':';
}

/* A token goes there: unencrypted only within this machine. */
static bool is_fleet(struct str url)
{
    struct str safe = STR("https://"), local = STR("http://127.0.0.1:");

    return (str_has_prefix(url, safe) && is_authority(str_from(url, safe.n))) ||
           (str_has_prefix(url, local) && is_authority(str_from(url, STR("http://").n)));
}

int config_check_telemetry(struct config *config, struct err *err)
{
    const struct rational one = {1, 1};
    struct selector selector;
    struct str fleet = config->telemetry_fleet;
    const char *why = name_check_dns1123_label(config->dcgm_namespace);

    if (why)
        return bad_value(err, "namespace", config->dcgm_namespace, why);
    if (selector_parse(config->arena, config->dcgm_selector, &selector, err))
        return err_wrap(err, "config: telemetry.dcgm.selector");
    if (!selector.n)
        return bad_value(err, "selector", config->dcgm_selector, "it selects every pod");
    if (!is_path(config->dcgm_path))
        return bad_value(err, "path", config->dcgm_path, "want a path such as /metrics");
    if (!rational_parse(config->dcgm_idle_below_text, &config->dcgm_idle_below) ||
        config->dcgm_idle_below.num < 0 || rational_cmp(config->dcgm_idle_below, one) > 0)
        return bad_value(err, "idleBelow", config->dcgm_idle_below_text,
                         "want a number from 0 to 1");
    if (fleet.n && !is_fleet(fleet))
        return err_set(err, &ERR_BAD_REQUEST,
                       "config: telemetry.fleet: \"%.*s\": want https://name or https://name:port",
                       STR_F(fleet));
    return 0;
}
