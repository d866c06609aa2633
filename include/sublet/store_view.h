/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * A version of an object in other bytes than the stored ones, as a reader needs it. */
#pragma once

#include <sublet/store.h>

/* The same revision, name and uid as o, `converted`; it is in no store, and given back by its last
 * reference. */
const struct store_object *store_object_with(const struct store_object *o, struct str bytes,
                                             struct str labels, struct str fields);
