/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about resources that several kinds share. */
#include "kind.h"

const struct scale_paths SCALE_SELECTOR = {"spec.replicas", "status.replicas", NULL};
const struct scale_paths SCALE_MAP = {"spec.replicas", "status.replicas", "spec.selector"};
const struct column COLUMNS_AGE[] = {
    {"Age", "string", .cell = show_age},
    {NULL},
};
const struct column COLUMNS_CREATED[] = {
    {"Created At", "date", .cell = show_text, .path = "metadata.creationTimestamp"},
    {NULL},
};
