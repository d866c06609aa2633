/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults as tables: what upstream's SetDefaults_* functions write, one row a field. Must never
 * touch a field that is set. */
#include "defaults.h"

#include "../../types/tree.h"
#include "names.h"

#include <sublet/quantity.h>

#include <string.h>

#define MAX_SEGMENT 64

/* ---- paths ---- */

struct segment {
    char name[MAX_SEGMENT];
    bool each, make;
    const char *rest; /* NULL: the last */
};

static struct segment cut(const char *path)
{
    struct segment s = {.rest = strchr(path, '.')};
    size_t n = s.rest ? (size_t)(s.rest - path) : strlen(path);

    if (s.rest)
        s.rest++;
    if (n > 2 && path[n - 1] == ']') {
        s.each = true;
        n -= 2;
    } else if (path[n - 1] == '+') {
        s.make = true;
        n--;
    }
    if (n >= MAX_SEGMENT)
        __builtin_trap();
    memcpy(s.name, path, n);
    return s;
}

static cJSON *value_of(struct arena *a, const struct default_rule *rule)
{
    switch (rule->type) {
    case DEFAULT_STRING:
        return json_new_string(a, str_c(rule->text));
    case DEFAULT_NUMBER:
        return json_new_i64(a, rule->number);
    case DEFAULT_BOOL:
        return json_new_bool(a, rule->number != 0);
    default:
        return json_new_object(a);
    }
}

static bool is_zero(const cJSON *value)
{
    return (json_is_string(value) && !json_str(value).n) ||
           (json_is_number(value) && value->valuedouble == 0);
}

static void set_leaf(struct arena *a, cJSON *object, const char *name,
                     const struct default_rule *rule)
{
    cJSON *now = json_get(object, name);

    if (rule->type == DEFAULT_DROPPED)
        json_remove(object, name);
    else if (rule->type == DEFAULT_BY && now)
        rule->by(a, now);
    else if (rule->type != DEFAULT_BY &&
             (!now || json_is_null(now) || (rule->zero && is_zero(now))))
        json_set(a, object, name, value_of(a, rule));
}

/* Paths are ours: they are as deep as the tables say. */
static void apply(struct arena *a, cJSON *object, const char *path, const struct default_rule *rule)
{
    struct segment s = cut(path);
    cJSON *child;

    if (!json_is_object(object))
        return;
    if (!s.rest) {
        set_leaf(a, object, s.name, rule);
        return;
    }
    child = s.make ? json_ensure_object(a, object, s.name) : json_get(object, s.name);
    if (!s.each) {
        apply(a, child, s.rest, rule);
        return;
    }
    json_each(item, child) apply(a, item, s.rest, rule);
}

void defaults_apply(struct arena *a, cJSON *object, const struct default_rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++)
        apply(a, object, rules[i].path, &rules[i]);
}

/* ---- maps ---- */

void defaults_merge(struct arena *a, cJSON *to, const cJSON *from)
{
    struct names there = {.arena = a};

    names_add_keys(&there, to);
    json_each(item, from)
    {
        if (names_add(&there, str_c(item->string), item))
            json_add(to, item->string, json_copy(a, item));
    }
}

void defaults_resource_list(struct arena *a, cJSON *list)
{
    struct quantity q;

    json_each(item, list)
    {
        const __int128 milli = 1000000;

        if (!quantity_parse(json_str(item), &q) || q.nano % milli == 0)
            continue;
        /* Away from zero, as Quantity.RoundUp. */
        q.nano += q.nano < 0 ? -milli - q.nano % milli : milli - q.nano % milli;
        json_replace(list, item, json_new_string(a, quantity_format(a, q)));
    }
}

void defaults_resources(struct arena *a, cJSON *requirements)
{
    defaults_resource_list(a, json_get(requirements, "limits"));
    defaults_resource_list(a, json_get(requirements, "requests"));
}

void defaults_keep_old(struct arena *a, cJSON *object, const cJSON *old, const char *path)
{
    struct str rest = str_c(path);
    const char *key = arena_cstr(a, str_cut(&rest, '.'));

    while (rest.p) {
        if (!json_is_object(json_get(object, key)))
            json_set(a, object, key, json_new_object(a));
        object = json_get(object, key);
        old = json_get(old, key);
        key = arena_cstr(a, str_cut(&rest, '.'));
    }
    if (json_get(old, key))
        json_set(a, object, key, json_copy(a, json_get(old, key)));
    else
        json_remove(object, key);
}

void defaults_set_status(struct arena *a, cJSON *object, const char *json)
{
    cJSON *status = NULL;
    struct err err;

    err_init(&err, a);
    if (json_parse(a, str_c(json), &status, &err))
        __builtin_trap(); /* the JSON is ours */
    json_set(a, object, "status", status);
}
