/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of numbers, ports, quantities and names of resources, in upstream's words. Must never
 * change what it looks at. Source: apimachinery pkg/util/validation, pkg/apis/core/validation,
 * pkg/apis/core/helper. */
#include "check.h"

#include <sublet/quantity.h>

#include <string.h>

#include <ctype.h>

bool check_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    int64_t value;

    if (!json_i64(number, &value) || value >= 0)
        return true;
    field_invalid(e, p, number, NEGATIVE);
    return false;
}

bool check_positive(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    int64_t value = 0;

    if (json_i64(number, &value) && value > 0)
        return true;
    field_invalid(e, p, number ? number : json_new_i64(e->arena, 0), "must be greater than zero");
    return false;
}

bool check_range(struct field_errors *e, const struct field_path *p, const cJSON *number,
                 long long low, long long high)
{
    int64_t value;

    if (!json_i64(number, &value) || (value >= low && value <= high))
        return true;
    field_invalid_printf(e, p, number, "must be between %lld and %lld, inclusive", low, high);
    return false;
}

bool check_user_id(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    return check_range(e, p, number, 0, INT32_MAX);
}

void check_user_ids(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    field_each(id, at, p, list) check_user_id(e, at, id);
}

bool check_port(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    return check_range(e, p, number ? number : json_new_i64(e->arena, 0), 1, 65535);
}

bool check_port_or_name(struct field_errors *e, const struct field_path *p, const cJSON *port)
{
    return json_is_string(port) ? check_port_name(e, p, json_str(port)) : check_port(e, p, port);
}

void check_file_mode(struct field_errors *e, const struct field_path *p, const cJSON *mode)
{
    int64_t value;

    if (json_i64(mode, &value) && (value < 0 || value > 0777))
        field_invalid(e, p, mode, "must be a number between 0 and 0777 (octal), both inclusive");
}

void check_all_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *object,
                           const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        check_nonnegative(e, FIELD(p, names[i]), json_get(object, names[i]));
}

void check_token_lifetime(struct field_errors *e, const struct field_path *p, const cJSON *seconds)
{
    int64_t n;

    if (!json_i64(seconds, &n))
        return;
    if (n < 600)
        field_invalid(e, p, seconds, "may not specify a duration less than 10 minutes");
    if (n > INT64_C(1) << 32)
        field_invalid(e, p, seconds, "may not specify a duration larger than 2^32 seconds");
}

/* ---- numbers or percentages ---- */

static bool is_percent(struct str s, uint64_t *ret)
{
    return s.n > 1 && s.p[s.n - 1] == '%' && isdigit((unsigned char)s.p[0]) &&
           str_to_u64(str_sub(s, 0, s.n - 1), ret);
}

bool check_int_or_percent(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    uint64_t percent;

    if (!json_is_string(value))
        return check_nonnegative(e, p, value);
    if (is_percent(json_str(value), &percent))
        return true;
    field_invalid(e, p, value,
                  "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                  "'1%',  or '93%', regex used for validation is '[0-9]+%')");
    return false;
}

bool check_not_over_100(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    uint64_t percent;

    if (!is_percent(json_str(value), &percent) || percent <= 100)
        return true;
    field_invalid(e, p, value, "must not be greater than 100%");
    return false;
}

int64_t kinds_int_or_percent(const cJSON *value)
{
    int64_t number = 0;
    uint64_t percent;

    if (is_percent(json_str(value), &percent))
        return percent > INT32_MAX ? INT32_MAX : (int64_t)percent;
    json_i64(value, &number);
    return number;
}

void check_not_negative(struct field_errors *e, const struct field_path *p, const cJSON *quantity)
{
    struct quantity q;

    if (quantity_parse(json_str(quantity), &q) && q.nano < 0)
        field_invalid(e, p, quantity, NEGATIVE);
}

/* ---- names of resources ---- */

static const char *const STANDARD[] = {
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
    NULL,
};
static const char *const INTEGER[] = {
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    NULL,
};

bool kinds_is_native_resource(struct str name)
{
    return str_find(name, '/') == name.n || str_contains(name, STR("kubernetes.io/"));
}

bool kinds_is_extended_resource(struct str name)
{
    char text[600];

    if (kinds_is_native_resource(name) || str_has_prefix(name, STR("requests.")) || name.n > 512)
        return false;
    memcpy(text, "requests.", 9);
    memcpy(text + 9, name.p, name.n);
    return !name_check_qualified((struct str){text, name.n + 9});
}

bool kinds_is_huge_pages(struct str name)
{
    return str_has_prefix(name, STR("hugepages-"));
}

bool kinds_is_standard_resource(struct str name)
{
    return kinds_one_of(name, STANDARD) || kinds_is_huge_pages(name) ||
           str_has_prefix(name, STR("requests.hugepages-"));
}

bool check_resource_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    if (!check_rule(e, p, NAME_QUALIFIED, name))
        return false;
    if (str_find(name, '/') < name.n || kinds_is_standard_resource(name))
        return true;
    field_invalid_str(e, p, name, "must be a standard resource type or fully qualified");
    return false;
}

void check_resource_value(struct field_errors *e, const struct field_path *p, struct str name,
                          const cJSON *value)
{
    struct quantity q;

    if (!quantity_parse(json_str(value), &q))
        return; /* the schema refused it */
    if (q.nano < 0)
        field_invalid(e, p, value, NEGATIVE);
    if ((kinds_one_of(name, INTEGER) || kinds_is_extended_resource(name)) &&
        quantity_milli(q) % 1000 != 0)
        field_invalid(e, p, value, "must be an integer");
}
