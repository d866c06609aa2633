/* SPDX-License-Identifier: Apache-2.0 */
/* Custom resources that the admin configured: they go down whole, under our name and labels, and
 * with the patches of the configuration as rows; annotations as those of an Ingress (kind_notes.c).
 * What a controller of the host does for such an object it does for the tenant: that is what the
 * admin decides by enabling it. */

#include "kind_impl.h"

static enum kind_action action_of(enum config_patch_action action)
{
    static const enum kind_action actions[] = {[PATCH_REFERENCE] = KIND_REFERENCE,
                                               [PATCH_LABELS] = KIND_LABELS,
                                               [PATCH_SELECTOR] = KIND_SELECTOR,
                                               [PATCH_VALUE] = KIND_VALUE,
                                               [PATCH_DROP] = KIND_DROP};

    return actions[action];
}

const struct kind_rule *translate_custom_rows(struct arena *a, const struct config_patches *patches)
{
    struct kind_rule *rows = arena_alloc(a, (patches->n + 1) * sizeof(*rows));

    for (size_t i = 0; i < patches->n; i++) {
        const struct config_patch *patch = &patches->items[i];

        rows[i] = (struct kind_rule){.path = patch->path,
                                     .action = action_of(patch->action),
                                     .what = arena_cstr(a, patch->kind),
                                     .value = patch->value};
    }
    return rows;
}

const struct kind_rules *translate_custom_rules(struct arena *a, const struct config_custom *custom)
{
    struct kind_rules *rules = ARENA_NEW(a, struct kind_rules);

    *rules = (struct kind_rules){.api_version =
                                     arena_printf(a, "%s/%s", custom->group, custom->version).p,
                                 .group = custom->group,
                                 .plural = custom->plural,
                                 .down = translate_custom_rows(a, &custom->patches),
                                 .annotations = translate_kind_notes,
                                 .whole = true};
    return rules;
}
