/* SPDX-License-Identifier: Apache-2.0 */
/* Named quantities and the sums objects add to them, for ResourceQuota and LimitRanger. Internal to
 * vapi/admission. */
#pragma once

#include <sublet/json.h>
#include <sublet/quantity.h>

struct usage_item {
    struct str name; /* "requests.cpu", "pods", "count/jobs.batch" */
    struct quantity q;
};
struct usage {
    struct arena *arena;
    struct usage_item *items;
    size_t n, cap;
};

void usage_add(struct usage *m, struct str name, struct quantity q);
void usage_max(struct usage *m, struct str name, struct quantity q); /* raises to at least q */
const struct quantity *usage_get(const struct usage *m, struct str name);
struct quantity usage_one(void);
/* requests or limits (`which`) of a whole pod as the scheduler counts: the larger of the containers
 * with sidecars and the init containers' peak, plus overhead. From the spec alone, without the
 * status. */
void usage_of_pod(struct usage *m, const cJSON *spec, const char *which);
/* Usage of one object in a quota; zero for objects that no longer count (finished pods). */
void usage_of_object(struct usage *m, struct str group, struct str plural, const cJSON *object);
