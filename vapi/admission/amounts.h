/* SPDX-License-Identifier: Apache-2.0 */
/* Named quantities and the sums objects add to them, for ResourceQuota and LimitRanger. Internal to
 * vapi/admission. */
#pragma once

#include <sublet/json.h>
#include <sublet/quantity.h>

struct amount {
    struct str name; /* "requests.cpu", "pods", "count/jobs.batch" */
    struct quantity q;
};
struct amounts {
    struct arena *arena;
    struct amount *items;
    size_t n, cap;
};

void amounts_add(struct amounts *m, struct str name, struct quantity q);
void amounts_max(struct amounts *m, struct str name, struct quantity q); /* raises to at least q */
const struct quantity *amounts_get(const struct amounts *m, struct str name);
struct quantity amount_one(void);
/* requests or limits (`which`) of a whole pod as the scheduler counts: the larger of the containers
 * with sidecars and the init containers' peak, plus overhead. From the spec alone, without the
 * status. */
void amounts_of_pod(struct amounts *m, const cJSON *spec, const char *which);
/* Usage of one object in a quota; zero for objects that no longer count (finished pods). */
void amounts_of_object(struct amounts *m, struct str group, struct str plural, const cJSON *object);
