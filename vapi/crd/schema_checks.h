/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a schema is structural. Internal to vapi/crd. */
#pragma once

#include <sublet/crd.h>

/* path: of openAPIV3Schema. Bounded: deeper or larger schemas than we compile are errors. */
void schema_check(struct field_errors *e, const struct field_path *path, const cJSON *schema);
