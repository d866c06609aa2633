/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * What the host's client (host.h) finds out about the dialogue as a whole, from every request that
 * passes: why there is none, and which of our rights the host's RBAC refuses. */
#pragma once

#include <sublet/err.h>

struct host;

/* How the dialogue as a whole fares; each is a row of tbl/host_troubles.h. */
enum host_trouble {
#define HOST_TROUBLE(name, reason, message) HOST_##name,
#include <sublet/tbl/host_troubles.h>
#undef HOST_TROUBLE
    N_HOST_TROUBLES
};
struct host_trouble_text {
    const char *reason;  /* "TLSVerificationFailed" */
    const char *message; /* names nothing of the host: a tenant may read it */
};
extern const struct host_trouble_text HOST_TROUBLES[N_HOST_TROUBLES];
/* Changed, from the loop; detail is for the admin. One listener. */
void host_on_trouble(struct host *h,
                     void (*trouble)(void *ctx, enum host_trouble now, struct str detail),
                     void *ctx);
/* The host's RBAC does not permit "create services", or does so again. One listener. */
void host_on_right(struct host *h,
                   void (*right)(void *ctx, struct str right, bool granted, struct str detail),
                   void *ctx);
/* The outcome of a request through a pipe, which only its owner can read. err NULL: granted. */
void host_note_right(struct host *h, const char *method, struct str path, const struct err *err);
