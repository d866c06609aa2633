/* SPDX-License-Identifier: Apache-2.0 */
/* Values that have a shape, for the other files of vapi/cel. */
#pragma once

#include <sublet/cel_shape.h>

#include "impl.h"

uint32_t cel_type_shape(const char *type); /* of the letter J */
const struct cel_shape *cel_shape_of(const struct cel_run *r, struct cel_value v); /* or NULL */
/* Its values are decoded from strings: bytes and times. */
bool cel_shape_decodes(const struct cel_shapes *shapes, uint32_t shape);
bool cel_is_unordered(const struct cel_shape *s);
bool cel_equal_unordered(struct cel_run *r, const struct cel_shape *s, struct cel_list x,
                         struct cel_list y);
struct cel_value cel_join_unordered(struct cel_run *r, struct cel_value a, struct cel_list y);
