/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the API (GET, LIST, WATCH) share among themselves. Internal to vapi/api. */
#pragma once

#include <sublet/call.h>

/* Goes on with next(c) once the committed revision is at least `revision`: at once, or after at
 * most three seconds; then 504 Timeout with cause ResourceVersionTooLarge. The call may be
 * cancelled meanwhile. */
void read_when(struct call *c, int64_t revision, void (*next)(struct call *c));
/* The same, where late gets the error of a revision that did not come. */
void read_when_else(struct call *c, int64_t revision, void (*next)(struct call *c),
                    void (*late)(struct call *c, const struct err *err));
/* 504 as clients recognise it. */
int read_too_large(struct err *err, int64_t wanted, int64_t current);
/* ListOptions and field selector of a list: 422 or 400. */
int read_check_options(struct call *c, struct err *err) MUST_CHECK;
/* Stored bytes are what this version answers with. */
bool convert_is_identity(const struct resource *r, const struct store_object *o);
