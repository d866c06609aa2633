/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy sees of the object of a request. Internal to vapi/admission. */
#pragma once

#include "policies.h"

/* Does a conversion webhook make what a policy that reads `as` sees? */
bool policy_view_converts(const struct policy_request *q, const struct resource *as);
/* Without one: NULL for no object; else to be read only. */
cJSON *policy_view_plain(const struct policy_request *q, const struct resource *as,
                         const cJSON *object);
/* With one: object in another version, for reading. False: q->waits, or *ret_why. */
bool policy_view_converted(struct policy_request *q, struct str to, const cJSON *object,
                           cJSON **ret, struct str *ret_why);
/* Either way. */
bool policy_view_open(struct policy_request *q, const struct resource *as, const cJSON *object,
                      cJSON **ret, struct str *ret_why);
/* Fails a plug-in whose request waits; what was wished for is in the call. */
int policy_view_wait(struct err *err) MUST_CHECK;
