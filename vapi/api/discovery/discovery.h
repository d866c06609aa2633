/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Discovery, OpenAPI, and the checks behind /healthz, /livez and /readyz, with upstream's names. */
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
    /* NULL when healthy, otherwise the reason. Never waits for a result. */
    const char *(*failure)(struct vapi *api, enum health_endpoint which);
};

/* In upstream's order, except for the last one. */
extern const struct health_check HEALTH_CHECKS[];
extern const size_t HEALTH_N_CHECKS;
extern const struct health_check HEALTH_LAST;
