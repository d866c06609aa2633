/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * The tenant's Namespaces as its namespaceSelectors read them: gathered once for an object, however
 * many terms it has. */
#pragma once

#include <sublet/json.h>

struct translate_namespace {
    struct str name, labels; /* labels: a flat set (selector.h) */
};
struct translate_namespaces {
    struct translate_namespace *items;
    size_t n;
};

/* Of Namespace objects; NULL for NULL. */
const struct translate_namespaces *translate_namespaces_of(struct arena *a, const cJSON *list);
