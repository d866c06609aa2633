/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The standing notices (sublet/notice.h), for the code that owns and shows them. */
#pragma once

#include <sublet/notice.h>

#include "core.h"

struct notices *notices_new(void);
struct notices *notices_free(struct notices *all); /* takes NULL */
/* The API serves: records earlier notices as Events. */
void notices_serving(struct vapi *api);
void notices_reasons(const struct vapi *api, struct buf *out); /* readable without authorization */
/* For clients with permission to read paths below /readyz. */
void notices_messages(const struct vapi *api, struct buf *out);
void notices_metrics(const struct vapi *api, struct buf *out);
