/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The standing notices (sublet/notice.h), for those that own and show them. */
#pragma once

#include <sublet/notice.h>

#include "core.h"

struct notices *notices_new(void);
struct notices *notices_free(struct notices *all); /* takes NULL */
/* The API serves: what was noticed before is recorded as Events. */
void notices_serving(struct vapi *api);
void notices_reasons(const struct vapi *api, struct buf *out); /* anyone may read these */
void notices_messages(const struct vapi *api,
                      struct buf *out); /* for those who may read paths below /readyz */
void notices_metrics(const struct vapi *api, struct buf *out);
