/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * URLs of webhooks outside a virtual cluster: what an admin lists (`policy.webhookUrls`), and
 * whether what a tenant writes is among it. */
#pragma once

#include <sublet/str.h>

struct config;

#define CONFIG_MOST_WEBHOOK_URLS 64

/* Of https://HOST[:PORT][/PATH], plain: no user, query, fragment, escape or dot segment. */
struct config_webhook_url {
    struct str host; /* an IPv6 address without its brackets */
    unsigned port;
    struct str path; /* with its slash; or empty */
};
/* False: it is none. */
bool config_webhook_url_parse(struct str text, struct config_webhook_url *ret);
/* Is it one that the admin lists, or below one? Hosts and ports are equal, never a part. */
bool config_webhook_url_allowed(const struct config *c, struct str text,
                                struct config_webhook_url *ret);
