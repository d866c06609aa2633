/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Admission policies of the tenant, validating and mutating, compiled: a cache, filled by the first
 * write after a policy or binding changed, freed with the API. Without policies it costs two
 * look-ups for each of the two kinds. */
#pragma once

struct vapi;
struct admission_policies;

struct admission_policies *admission_policies_new(void);
struct admission_policies *admission_policies_free(struct admission_policies *p); /* takes NULL */
struct admission_policies *vapi_admission_policies(struct vapi *api);
