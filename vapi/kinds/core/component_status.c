/* SPDX-License-Identifier: Apache-2.0 */
/* ComponentStatuses, of which there are none: deprecated since v1.19. */
#include "../rules/kind.h"

/* ---- the kind ---- */

const struct kind KIND_COMPONENT_STATUS = {
    .resource =
        {
            RESOURCE("", "v1", "ComponentStatus", "componentstatuses", "componentstatus"),
            .short_names = NAMES("cs"),
            .verbs = VERB_GET | VERB_LIST,
        },
};
