/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings: assignments of pods to nodes, never stored. */
#include "../rules/kind.h"

/* ---- the kind ---- */

const struct kind KIND_BINDING = {
    RESOURCE_OF(VERB_CREATE, "", "v1", "Binding", "bindings", "binding"),
    .resource.flags = RES_NAMESPACED | RES_REVIEW | RES_BINDING,
};
