/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `kubeconfig.additionalSecrets`: further Secrets of the host with the admin's kubeconfig, or that
 * of a service account, for what reads it in another namespace, by another name or under another
 * address. */
#pragma once

#include <stdint.h>

#include <sublet/str.h>

#define CONFIG_MOST_KUBECONFIGS 16

/* Empty strings: as in the Secret `<name>-kubeconfig`. */
struct config_kubeconfig {
    struct str name, ns; /* ns empty: the host namespace of the virtual cluster */
    struct str context, server;
    struct str certificate_authority; /* PEM; not with insecure */
    bool insecure;                    /* clients do not verify the server */
    /* Whose token is in it instead of the admin's client certificate; empty: that. */
    struct str account, account_ns;
    struct str
        cluster_role; /* the account is made, and bound to this; empty: the tenant makes it */
    int64_t token_s;  /* how long a token is valid */
};
