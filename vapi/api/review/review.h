/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Admission of a request whose body, c->body, is an object of its own and not what is stored: a
 * Binding, an Eviction, a token request, a review, the options of a connection. A request is a row:
 * the operation, a check, what runs once it is admitted. */
#pragma once

#include "../../core/calls.h"

struct reviewed_plan {
    enum admission_operation operation;
    /* Between mutating and validating admission; NULL: nothing to check. */
    int (*check)(struct call *c, struct err *err);
    void (*run)(struct call *c); /* answers; c->body is what admission left */
};
/* Runs it or answers. It may wait for webhooks; c->state stays the handler's. */
void reviewed_start(struct call *c, const struct reviewed_plan *plan);

/* A webhook_decode for objects that are apart: by the schema of their own kind alone. */
int reviewed_decode(struct call *c, const struct resource *as, cJSON *object,
                    struct err *err) MUST_CHECK;
/* Leaves of the error of a body what upstream's decoder says, without the sentence around it that
 * clients get. */
void reviewed_unwrap(struct err *err);
