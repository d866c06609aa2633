/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * The host's address and our credentials there. */
#pragma once

#include <sublet/err.h>

struct kubeconfig {
    struct str server;               /* URL without a trailing slash, path prefix included */
    struct str tls_server_name;      /* empty: the URL's */
    struct str proxy_url;            /* empty: none */
    bool insecure;                   /* skip verification */
    struct str ca, certificate, key; /* PEM; empty: none */
    struct str ca_file;              /* of ca, where it has to be re-read */
    struct str token, token_file;
    struct str username, password;
};

/* path empty: the service account of this pod. Everything is copied into a. */
int host_kubeconfig_load(struct arena *a, struct str path, struct kubeconfig *ret,
                         struct err *err) MUST_CHECK;
/* A pod's credentials: `token` and `ca.crt` in account (ends with "/"), both re-read while they are
 * used; the API server by its address. */
int host_kubeconfig_in_cluster(struct arena *a, struct str host, struct str port,
                               struct str account, struct kubeconfig *ret,
                               struct err *err) MUST_CHECK;
/* yaml: a kubeconfig; relative paths in it are relative to directory. */
int host_kubeconfig_parse(struct arena *a, struct str yaml, struct str directory,
                          struct kubeconfig *ret, struct err *err) MUST_CHECK;
