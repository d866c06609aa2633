/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `kubeconfig.additionalSecrets`: further Secrets of the host with the admin's kubeconfig, for what
 * reads it in another namespace, by another name or under another address. */
#pragma once

#include <sublet/str.h>

#define CONFIG_MOST_KUBECONFIGS 16

/* Empty strings: as in the Secret `<name>-kubeconfig`. */
struct config_kubeconfig {
    struct str name, ns; /* ns empty: the host namespace of the virtual cluster */
    struct str context, server;
    struct str certificate_authority; /* PEM; not with insecure */
    bool insecure;                    /* clients do not verify the server */
};
