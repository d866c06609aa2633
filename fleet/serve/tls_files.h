/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * A port whose certificate and key are files, read again when they change. */
#pragma once

#include <sublet/net.h>

struct tls_files;
struct tls_files_options {
    struct uv_loop_s *loop;
    struct str certificate, key; /* file names, PEM; both empty: unencrypted */
    const char *what;            /* in the log: "the page" */
};
/* Listens. *ret_files is NULL where it is unencrypted; else fleet_tls_close() comes after the
 * server is closed. Errors name the file. */
int fleet_tls_listen(const struct tls_files_options *options, const struct net_options *net,
                     struct net_server **ret_server, struct tls_files **ret_files,
                     struct err *err) MUST_CHECK;
void fleet_tls_stop(struct tls_files *t); /* the server is being closed; takes NULL */
/* closed() from the loop; takes NULL, then at once. */
void fleet_tls_close(struct tls_files *t, void (*closed)(void *ctx), void *ctx);
