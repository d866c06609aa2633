/* SPDX-License-Identifier: Apache-2.0 */
/* ComponentStatuses, of which there are none: deprecated since v1.19. */
#include "../rules/kind.h"

/* ---- the kind ---- */

const struct kind KIND_COMPONENT_STATUS = {
    RESOURCE_OF(VERB_GET | VERB_LIST, "", "v1", "ComponentStatus", "componentstatuses",
                "componentstatus"),
    .resource.short_names = NAMES("cs"),
};
