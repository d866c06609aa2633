/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What reflectors and pipes use of the client. */
#pragma once

#include <sublet/host.h>
#include <sublet/host_trouble.h>

const struct host_options *host_get_options(const struct host *h);
/* Admits a pipe: takes one token of the rate, and one of the pipes. NULL: not admitted. */
struct transport *host_pipe_enter(struct host *h, bool reads, struct err *err);
void host_pipe_left(struct host *h);
/* A pipe could not connect: probes the host. */
void host_pipe_failed(struct host *h);

/* --- rights.c: rights that the host's RBAC denied last --- */
#define RIGHTS_MAX 32
struct rights {
    char *denied[RIGHTS_MAX];
    size_t n;
};
/* "watch pods", "get pods/exec": the right that a request needs; false for a non-resource path. */
bool host_rights_name(const char *method, struct str path, char out[96]);
/* Does the refusal come from RBAC, not from admission or a quota? */
bool host_rights_is_denial(const struct err *err);
/* True: this changes the set of denied rights. */
bool host_rights_deny(struct rights *r, const char *right);
bool host_rights_grant(struct rights *r, const char *right);
void host_rights_fini(struct rights *r);
