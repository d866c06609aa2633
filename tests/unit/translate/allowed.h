/* SPDX-License-Identifier: Apache-2.0 */
/* What a host object of ours may look like, said a second time and independently of translate: by
 * walking the result, not by building it. Unit tests and fuzzers hold every emitted object against
 * it. Must never call into translate's own tables. */
#pragma once

#include <sublet/translate.h>

/* NULL when the object is allowed, else what is wrong with it (in the arena, NUL-terminated). */
const char *allowed_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod);
const char *allowed_service(struct arena *a, const struct translate_tenant *t,
                            const cJSON *service);
