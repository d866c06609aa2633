/* SPDX-License-Identifier: Apache-2.0 */
/* What ConfigMaps and Secrets share: their size, and the fields an immutable one keeps. */
#include "../rules/kind.h"
#include "data.h"

/* How many bytes a base64 string stands for. */
size_t kinds_decoded_size(struct str text)
{
    size_t n = text.n / 4 * 3;

    if (text.n && text.p[text.n - 1] == '=')
        n -= text.n > 1 && text.p[text.n - 2] == '=' ? 2 : 1;
    return n;
}

/* What an object that says immutable keeps. */
void check_frozen(struct field_errors *e, const cJSON *object, const cJSON *old,
                  const char *const *members)
{
    if (!json_true(json_get(old, "immutable")))
        return;
    if (!json_true(json_get(object, "immutable")))
        field_forbidden(e, FIELD(NULL, "immutable"), "field is immutable when `immutable` is set");
    for (; *members; members++) {
        if (!kinds_same_value(json_get(object, *members), json_get(old, *members)))
            field_forbidden(e, FIELD(NULL, *members), "field is immutable when `immutable` is set");
    }
}
