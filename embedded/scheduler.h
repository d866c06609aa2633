/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the scheduler, and where a pod goes.
 *
 *   cluster.c   nodes and pods as they are, with what was just decided (assumed)
 *   incoming.c  a pod that wants a node: its requests and terms, read once per attempt
 *   filter.c    may it run on a node; affinity.c: by the pods that are there
 *   score.c     where it runs best
 *   preempt.c   who would have to go
 *   scheduler.c the queue, the binding, what is said to the pod */
#pragma once

#include "attempt.h"

/* --- score.c --- */

/* The best of the nodes that fit. */
struct node_entry *score_best(struct attempt *t, struct node_entry **fitting, size_t n);

/* --- preempt.c --- */

struct victims {
    struct node_entry *node;
    struct pod_entry **list;
    size_t n;
    size_t violations;
};
/* Nodes whose failure could be helped are in `helpful`. *ret_text: the message when no pod can be
 * preempted. False then. */
bool preempt_find(struct attempt *t, struct node_entry **helpful, size_t n, struct victims *ret,
                  struct str *ret_text);
