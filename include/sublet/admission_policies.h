/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * ValidatingAdmissionPolicies of the tenant, compiled: a cache, filled by the first write after a
 * policy or binding changed, freed with the API. Without policies it costs two look-ups. */
#pragma once

struct vapi;
struct admission_policies;

struct admission_policies *admission_policies_new(void);
struct admission_policies *admission_policies_free(struct admission_policies *p); /* takes NULL */
struct admission_policies *vapi_admission_policies(struct vapi *api);
