/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that read values of objects, for all controllers. Must stay pure: trees in, answers
 * out. */
#include "util.h"

#include <sublet/encode.h>

bool controller_pod_is_available(const cJSON *pod, int64_t min_seconds, int64_t now_s,
                                 int64_t *ret_wait_s)
{
    const cJSON *ready = condition_get(json_path(pod, "status.conditions"), "Ready");
    int64_t since_us;

    *ret_wait_s = 0;
    if (!pod_is_ready(pod))
        return false;
    if (min_seconds <= 0)
        return true;
    if (!time_parse(json_str_at(ready, "lastTransitionTime"), &since_us))
        return false;
    int64_t left = since_us / 1000000 + min_seconds - now_s;
    *ret_wait_s = left > 0 ? left : 0;
    return left <= 0;
}

int64_t controller_scaled_value(const cJSON *value, int64_t total, bool up, int64_t otherwise)
{
    struct str text = json_str(value);
    int64_t n;

    if (json_i64(value, &n))
        return n;
    if (!str_has_suffix(text, STR("%")) || !str_to_i64(str_sub(text, 0, text.n - 1), &n) ||
        n > INT32_MAX || n < 0)
        return otherwise;
    return up ? (total * n + 99) / 100 : total * n / 100;
}

struct str controller_template_hash(struct arena *a, const cJSON *template_, int64_t collisions)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char digest[32];
    char *hash = arena_alloc(a, 11);
    struct str parts[] = {json_text(a, template_), arena_printf(a, "%lld", (long long)collisions)};

    sha256_parts(2, parts, digest);
    for (size_t i = 0; i < 10; i++)
        hash[i] = alphabet[digest[i] % (sizeof(alphabet) - 1)];
    return str_c(hash);
}

bool controller_status_set(struct arena *a, cJSON *status, const char *key, int64_t value,
                           bool keep_zero)
{
    bool there = json_get(status, key) != NULL;

    if (json_i64_at(status, key, 0) == value && there == (value || keep_zero))
        return false;
    if (value || keep_zero)
        json_set_i64(a, status, key, value);
    else
        json_remove(status, key);
    return true;
}

bool controller_set_str(struct arena *a, cJSON *map, const char *key, struct str value)
{
    if (json_is_string(json_get(map, key)) && str_eq(json_str(json_get(map, key)), value))
        return false;
    json_set_str(a, map, key, value);
    return true;
}
