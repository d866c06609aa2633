/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants: what the histories and those who act in them report to the judges. */
#pragma once

#include "life.h"

void judge_request(void *ctx, const char *plural, const cJSON *before, const cJSON *after);
void judge_told(void *ctx, const char *plural, const cJSON *object);
void judge_left(void *ctx, const char *plural, struct str virtual_uid);
void judge_step(struct world *w); /* after every step */
/* A write is answered. refusing: the process did not lead when it was sent. */
void judge_answer(struct life *l, const struct slot *s, bool refusing, const struct err *err);
bool judge_refuses(const struct life *l); /* it does not lead */
/* The tenant has a process delete an object, which other processes know nothing of. */
void judge_deletes(struct life *l, const struct slot *s);
void judge_copied(struct world *w); /* a copy of the data is there, and no watcher of it */
void judge_died(struct life *l);
void judge_life(struct life *l); /* a process serves: its watch begins */
/* What it has of the tenant's; fresh: what an earlier process had under way is decided. */
void judge_slots(struct life *l, bool fresh);
bool judge_agree(struct world *w); /* both worlds are the same */
const char *judge_difference(struct world *w);
