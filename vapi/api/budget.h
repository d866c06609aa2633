/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api)
 *
 * The memory of the process, and who still gets some of it: see budget.c. */
#pragma once

#include "api.h"

void budget_open(struct vapi *api); /* by the configuration, else by the container's limit */
void budget_free(struct vapi *api);
/* Reserves what the request may need, until budget_leave(); false: 429. */
bool budget_enter(struct call *c, const struct attributes *what);
/* The same for what shows only when it is answered: with what it has, until budget_leave(). */
bool budget_more(struct call *c, size_t bytes);
void budget_leave(struct call *c);
/* Nothing that can wait is to be held for anybody. */
bool budget_tight(struct vapi *api);
void budget_metrics(struct vapi *api, struct buf *out);
