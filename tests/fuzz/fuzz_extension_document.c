/* SPDX-License-Identifier: Apache-2.0 */
/* What an extension API server says that it serves. Any bytes are no document, or one whose items
 * have a name, can be encoded, and keep to what was said: never more resources and subresources
 * than it named. */

#include <assert.h>

#include "../../vapi/extension/extension.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static size_t count(const cJSON *resources)
{
    size_t n = 0;

    json_each(resource, resources)
    {
        assert(json_str(json_get(resource, "resource")).n || json_get(resource, "subresources"));
        assert(json_is_object(json_get(resource, "responseKind")));
        n += json_count(json_get(resource, "subresources")) +
             !json_is_null(json_get(resource, "verbs"));
    }
    return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct str text = {(const char *)data, size}, kept;
    const cJSON *resources = extension_resources(a, text);
    cJSON *tree = NULL, *again = NULL;

    if (resources) {
        assert(!json_parse(a, text, &tree, NULL));
        assert(count(resources) <= json_count(json_get(tree, "resources")));
        kept = json_text(a, resources);
        assert(kept.n > EXTENSION_MOST_KEPT || !json_parse(a, kept, &again, NULL));
    }
    arena_free(a);
    return 0;
}
