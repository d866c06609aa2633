/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions, values and the state of pods, once for all controllers. Must stay pure: trees in,
 * answers out. */
#include "util.h"

#include <sublet/encode.h>

/* --- conditions --- */

const cJSON *condition_of(const cJSON *object, const char *type)
{
    return condition_get(json_path(object, "status.conditions"), type);
}

bool condition_set(struct arena *a, cJSON *object, const char *type, const char *status,
                   const char *reason, struct str message, int64_t now_s)
{
    cJSON *parent = json_ensure_object(a, object, "status");
    cJSON *list = json_get(parent, "conditions");

    if (!json_is_array(list))
        list = json_set(a, parent, "conditions", json_new_array(a));
    cJSON *c = condition_get(list, type);
    if (!c) {
        c = json_append(list, json_new_object(a));
        json_set_str(a, c, "type", str_c(type));
    }
    bool same_status = str_eqc(json_str_at(c, "status"), status);
    if (same_status && str_eqc(json_str_at(c, "reason"), reason) &&
        str_eq(json_str_at(c, "message"), message))
        return false;
    json_set_str(a, c, "status", str_c(status));
    json_set_str(a, c, "reason", str_c(reason));
    json_set_str(a, c, "message", message);
    if (!same_status)
        json_set_str(a, c, "lastTransitionTime", time_format_s(a, now_s));
    return true;
}

bool condition_remove(cJSON *object, const char *type)
{
    cJSON *list = json_path(object, "status.conditions"), *c = condition_get(list, type);

    if (!c)
        return false;
    json_detach(list, c);
    return true;
}

/* --- pods --- */

bool pod_is_terminating(const cJSON *pod)
{
    return is_going(pod);
}

bool pod_is_active(const cJSON *pod)
{
    return !pod_is_terminating(pod) && !pod_is_finished(pod);
}

bool pod_is_ready(const cJSON *pod)
{
    return condition_is_true(json_path(pod, "status.conditions"), "Ready");
}

bool pod_is_available(const cJSON *pod, int64_t min_seconds, int64_t now_s, int64_t *ret_wait_s)
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

/* --- metadata --- */

struct str meta_name(const cJSON *object)
{
    return json_str_at(object, "metadata.name");
}

struct str meta_ns(const cJSON *object)
{
    struct str ns = json_str_at(object, "metadata.namespace");

    return ns.p ? ns : STR("");
}

struct str meta_uid(const cJSON *object)
{
    return json_str_at(object, "metadata.uid");
}

int64_t meta_created_s(const cJSON *object)
{
    int64_t us;

    return time_parse(json_str_at(object, "metadata.creationTimestamp"), &us) ? us / 1000000 : 0;
}

bool is_going(const cJSON *object)
{
    return json_path(object, "metadata.deletionTimestamp") != NULL;
}

int64_t time_at_s(const cJSON *object, const char *path)
{
    int64_t us;

    return time_parse(json_str_at(object, path), &us) ? us / 1000000 : 0;
}

/* --- values --- */

int64_t scaled_value(const cJSON *value, int64_t total, bool up, int64_t otherwise)
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

struct str template_hash(struct arena *a, const cJSON *template_, int64_t collisions)
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

bool status_set(struct arena *a, cJSON *status, const char *key, int64_t value, bool keep_zero)
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

bool text_set(struct arena *a, cJSON *map, const char *key, struct str value)
{
    if (json_is_string(json_get(map, key)) && str_eq(json_str(json_get(map, key)), value))
        return false;
    json_set_str(a, map, key, value);
    return true;
}
