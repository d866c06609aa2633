/* SPDX-License-Identifier: Apache-2.0
 *
 * What checker.c and the checks by name share. */
#pragma once

#include "checker.h"

struct walk {
    struct arena *arena;
    const struct node *facts;
    const struct node *pool; /* of this pod, found by its label; NULL: none */
    bool privileged, restricted;
    const struct node *root;
};

/* NULL when the node is as it should be, else the problem. n may be a member, whose key is
 * n->key.
 */
typedef const char *(*check_fn)(struct walk *w, const struct node *n);
check_fn check_find(struct str name);
/* A fact by its path; `pool.` leads to the pool of the pod. */
const struct node *check_fact(const struct walk *w, struct str path);
