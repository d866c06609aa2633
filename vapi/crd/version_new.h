/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing versions, for the controller that registers them. */
#pragma once

#include "version.h"

/* From a CRD and one of its versions; v->resource is ready for registry_add(). sibling: of the same
 * CRD, or NULL. */
struct crd_version *crd_version_new(const cJSON *crd, const cJSON *version,
                                    const struct crd_version *sibling);
/* Of a version whose resource was removed: for registry_remove(). */
void crd_version_free(void *ctx);
