/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * What the API says of itself: discovery, OpenAPI, and the checks behind /healthz, /livez and
 * /readyz, under the names upstream gives them. */
#pragma once

#include "../../core/calls.h"

/* Non-resource endpoints; see call_handlers. */
bool discovery_handle(struct call *c, struct str path);
bool openapi_handle(struct call *c, struct str path);
bool health_handle(struct call *c, struct str path);

/* openapi.c */
void openapi_close(struct openapi *o, void (*closed)(void *ctx), void *ctx);

/* health_checks.c */
enum health_endpoint { HEALTHZ = 1, LIVEZ = 2, READYZ = 4 };

#define N_HEALTH_PATHS 3
extern const struct health_path {
    const char *name; /* of the path, without its slash */
    enum health_endpoint which;
} HEALTH_PATHS[N_HEALTH_PATHS];

struct health_check {
    const char *name;
    unsigned endpoints;
    /* NULL when fine, else why not. Answers from what is known. */
    const char *(*failure)(struct vapi *api, enum health_endpoint which);
};

/* In upstream's order, except for the one that comes last. */
extern const struct health_check HEALTH_CHECKS[];
extern const size_t N_HEALTH_CHECKS;
extern const struct health_check HEALTH_LAST;
