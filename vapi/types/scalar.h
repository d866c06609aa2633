/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a scalar is wrong, with the messages of Go's packages. Only called for strings that did not
 * parse. */
#pragma once

#include <sublet/mem.h>

struct str scalar_time_error(struct arena *a, struct str text, bool micro);
struct str scalar_base64_error(struct arena *a, struct str text);
struct str scalar_quantity_error(struct str text);
/* time.Duration.String. */
struct str duration_text(struct arena *a, int64_t ns);
/* True when resource.Quantity prints the string it was parsed from instead of a canonical one. */
bool scalar_quantity_is_kept(struct str text);
