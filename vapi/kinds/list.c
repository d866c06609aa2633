/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all built-in kinds. Must hold nothing else: tests of the API bring a table of their
 * own. */
#include <sublet/crd.h>
#include <sublet/kinds.h>

#define KIND(name) extern const struct kind KIND_##name;
#include "list.h"
#undef KIND

#define KIND(name) &KIND_##name,
const struct kind *const KINDS[] = {
#include "list.h"
    NULL,
};
