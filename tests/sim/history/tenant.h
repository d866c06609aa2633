/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of a history: the tenant of the first process, and what becomes of the second. */
#pragma once

#include "life.h"

/* --- tenant.c --- */
void tenant_slots(struct model *m);
unsigned tenant_storage(struct life *l, const char *resource); /* the store's id of "pods" */
void tenant_act(struct world *w, unsigned index);              /* writes something, by chance */
void tenant_lost_process(struct world *w, unsigned index);     /* nothing under way is answered */
void tenant_backup(struct world *w);

/* --- second.c --- */
void second_do(struct world *w); /* copied, started, ended, started again, and replaced */
/* Its tenant writes. */
void second_act(struct world *w);
/* The faults are over: it leads, waits, or reports what the other one lacks; then it ends. */
void second_end(struct world *w, void (*ensure)(struct world *w));
