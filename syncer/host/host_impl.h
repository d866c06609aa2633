/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What the reflector takes from the client (its loop, clock and waiting times), and pipes. */
#pragma once

#include <sublet/host.h>
#include <sublet/host_trouble.h>

const struct host_options *host_get_options(const struct host *h);
/* A pipe is about to open: one request of the rate, one of the number of pipes. NULL: it may not.
 */
struct transport *host_pipe_enter(struct host *h, bool reads, struct err *err);
void host_pipe_left(struct host *h);
/* A pipe found no way to the host: a probe finds out why. */
void host_pipe_failed(struct host *h);

/* rights.c: which rights of ours the host's RBAC refused last. */
#define RIGHTS_MAX 32
struct rights {
    char *denied[RIGHTS_MAX];
    size_t n;
};
/* "watch pods", "get pods/exec" of a request, into out; false when it is no resource's. */
bool rights_name(const char *method, struct str path, char out[96]);
/* Does the refusal come from RBAC, not from admission or a quota? */
bool rights_is_denial(const struct err *err);
/* True when that changes what is known. */
bool rights_deny(struct rights *r, const char *right);
bool rights_grant(struct rights *r, const char *right);
void rights_fini(struct rights *r);
