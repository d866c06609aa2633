/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * How the GPUs of pools are shared among tenants, as metrics. Pure. */
#pragma once

#include <sublet/buf.h>

#include "grants.h"

/* Jain's index of what the tenants of a pool have of their shares: (sum x)^2 / (n * sum x^2), where
 * x of a binding that counts is what its pods hold on nodes, of the lesser of its grant and its
 * demand, at most 1; those that want nothing are none. 1: all have the same part; 1/n: one has all
 * of it. Where no tenant wants, or has, anything it is 1. */
double fleet_fairness_index(const struct grants_view *v, struct str pool);
void fleet_fairness_metrics(struct buf *out, const struct grants_view *v);
