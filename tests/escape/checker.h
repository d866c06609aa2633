/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds what goes to the host against allowed.rules, which says what a tenant's host objects may
 * look like. Why: translate builds host objects by allow-lists of its own, and what a defect there
 * lets through must be seen by something that shares no code with it: own reader, own lists, own
 * idea of a pool. Must never include a header of translate. */
#pragma once

#include "reader.h"

struct rules;

/* Rules in force, or NULL (then *ret_why). Everything lives in the arena. */
struct rules *rules_load(struct arena *a, struct str text, const char **ret_why);
/* Constraints are numbered from 0; `shape pod-spec: need of containers`. */
size_t rules_count(const struct rules *r);
struct str rules_name(struct arena *a, const struct rules *r, size_t constraint);
/* A constraint out of force, to see that nothing else finds what it finds; SIZE_MAX: none. */
void rules_disable(struct rules *r, size_t constraint);

/* The problem of an object: NULL, or a sentence with its path, in the arena. facts: the tenant,
 * {cluster, namespace, podSecurity, labels: [], annotations: [], storageClasses: [], pools: [{name,
 * mode, nodeSelector, tolerations, products, resources, runtimeClass, scheduler, tiers,
 * maxLifetime}], tolerations: of every pod, dns: its address, if it has one}. stored: it was read
 * from a host, which adds what it wants. */
const char *rules_check(struct arena *a, const struct rules *r, const struct node *facts,
                        const char *shape, const struct node *object);
