/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * Patches of trees: JSON patch, JSON merge patch, and strategic merge patch by the type table. */
#pragma once

#include <sublet/schema.h>

/* Patches. Each returns another tree (or changes the old tree, which must not be used after). json:
 * RFC 6902, at most 10,000 operations; upstream's messages (422 for a failed test or missing path,
 * 400 for a malformed patch). merge: RFC 7386. strategic: all directives. */
int patch_json(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret,
               struct err *err) MUST_CHECK;
/* Likewise; *ret_tested: it failed by a test operation of the patch. */
int patch_json_tested(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret,
                      bool *ret_tested, struct err *err) MUST_CHECK;
/* Unknown members of operations, as `json patch unknown field "[0].foo"`. */
void patch_json_unknown(const cJSON *patch, struct strict_errors *strict);
int patch_merge(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret,
                struct err *err) MUST_CHECK;
int patch_strategic(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                    const cJSON *patch, cJSON **ret, struct err *err) MUST_CHECK;
/* A strategic patch as that error shows it: Go's %v, "map[spec:map[replicas:x]]". */
struct str patch_print(struct arena *a, const cJSON *patch);
/* A value as upstream's other errors show it: Go's %#v, `map[string]interface {}{"a":1}`. */
struct str patch_print_syntax(struct arena *a, const cJSON *value);
