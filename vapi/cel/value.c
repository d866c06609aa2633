/* SPDX-License-Identifier: Apache-2.0 */
/* Values: JSON by reference, what expressions build in the run's arena, equality and order. Must
 * charge for every walk whose length a tenant decides. Source: cel-spec langdef.md (equality,
 * ordering), cel-go common/types. */
#include "shape.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/quantity.h>

#define COST_NUMBER 50 /* beyond upstream: to find the digits of a number or a time */

struct cel_value cel_null(void)
{
    return (struct cel_value){.kind = CEL_NULL};
}

struct cel_value cel_bool(bool b)
{
    return (struct cel_value){.kind = CEL_BOOL, .b = b};
}

struct cel_value cel_int(int64_t i)
{
    return (struct cel_value){.kind = CEL_INT, .i = i};
}

struct cel_value cel_uint(uint64_t u)
{
    return (struct cel_value){.kind = CEL_UINT, .u = u};
}

struct cel_value cel_double(double d)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .d = d};
}

struct cel_value cel_string(struct str s)
{
    return (struct cel_value){.kind = CEL_STRING, .s = s};
}

struct cel_value cel_type(struct str name)
{
    return (struct cel_value){.kind = CEL_TYPE, .s = name};
}

struct cel_value cel_boxed(enum cel_kind kind, const void *p)
{
    return (struct cel_value){.kind = kind, .p = p};
}

struct cel_value cel_none(void)
{
    return (struct cel_value){.kind = CEL_OPTIONAL};
}

struct cel_value cel_some(struct cel_run *r, struct cel_value v)
{
    struct cel_value *inner = ARENA_NEW(r->arena, struct cel_value);

    *inner = v;
    return (struct cel_value){.kind = CEL_OPTIONAL, .inner = inner};
}

struct cel_value cel_new_list(struct cel_run *r, const struct cel_value *items, size_t n)
{
    struct cel_list *l = ARENA_NEW(r->arena, struct cel_list);

    *l = (struct cel_list){n, items};
    return (struct cel_value){.kind = CEL_LIST, .list = l};
}

struct cel_value cel_error(struct cel_run *r, const char *format, ...)
{
    struct str text;
    va_list args;

    va_start(args, format);
    text = arena_vprintf(r->arena, format, args);
    va_end(args);
    return (struct cel_value){.kind = CEL_ERROR, .s = text};
}

struct cel_value cel_no_overload(struct cel_run *r)
{
    return cel_error(r, "no such overload");
}

static bool is_integral(const cJSON *node)
{
    return !node->valuestring || !strpbrk(node->valuestring, ".eE");
}

struct cel_value cel_from_json(const cJSON *node)
{
    int64_t i;

    if (json_is_string(node))
        return cel_string(json_str(node));
    if (json_is_number(node))
        return is_integral(node) && json_i64(node, &i) ? cel_int(i) : cel_double(node->valuedouble);
    if (json_is_bool(node))
        return cel_bool(json_true(node));
    if (json_is_array(node))
        return (struct cel_value){.kind = CEL_LIST, .is_json = true, .json = node};
    if (json_is_object(node))
        return (struct cel_value){.kind = CEL_MAP, .is_json = true, .json = node};
    return cel_null();
}

/* By enum cel_kind. */
static const char *const NAMES[] = {
    [CEL_ERROR] = "error",
    [CEL_NULL] = "null_type",
    [CEL_BOOL] = "bool",
    [CEL_INT] = "int",
    [CEL_UINT] = "uint",
    [CEL_DOUBLE] = "double",
    [CEL_STRING] = "string",
    [CEL_BYTES] = "bytes",
    [CEL_TIMESTAMP] = "google.protobuf.Timestamp",
    [CEL_DURATION] = "google.protobuf.Duration",
    [CEL_LIST] = "list",
    [CEL_MAP] = "map",
    [CEL_TYPE] = "type",
    [CEL_OPTIONAL] = "optional_type",
    [CEL_QUANTITY] = "kubernetes.Quantity",
    [CEL_IP] = "net.IP",
    [CEL_CIDR] = "net.CIDR",
    [CEL_AUTHORIZER] = "kubernetes.authorization.Authorizer",
    [CEL_PATH_CHECK] = "kubernetes.authorization.PathCheck",
    [CEL_GROUP_CHECK] = "kubernetes.authorization.GroupCheck",
    [CEL_RESOURCE_CHECK] = "kubernetes.authorization.ResourceCheck",
    [CEL_DECISION] = "kubernetes.authorization.Decision",
    [CEL_FORMAT] = "kubernetes.NamedFormat",
    [CEL_URL] = "kubernetes.URL",
    [CEL_SEMVER] = "kubernetes.Semver",
    [CEL_VARIABLES] = "kubernetes.variables",
    [CEL_OBJECT] = "Object",
};

struct str cel_kind_name(struct cel_value v)
{
    return v.kind == CEL_OBJECT ? v.object->type : str_c(NAMES[v.kind]);
}

bool cel_is_true(struct cel_value v)
{
    return v.kind == CEL_BOOL && v.b;
}

size_t cel_size(struct cel_value v)
{
    if (v.kind == CEL_STRING)
        return str_characters(v.s);
    if (v.kind == CEL_BYTES)
        return v.s.n;
    if (v.kind != CEL_LIST && v.kind != CEL_MAP)
        return 1;
    return v.is_json ? json_count(v.json) : v.kind == CEL_LIST ? v.list->n : v.map->n;
}

/* What is decoded at each look is charged like a conversion of the string. */
static struct cel_value child(struct cel_run *r, uint32_t shape, const cJSON *node)
{
    if (shape && cel_shape_decodes(r->activation->shapes, shape))
        cel_charge_long(r, cel_from_json(node));
    return shape ? cel_from_shape(r->arena, r->activation->shapes, shape, node)
                 : cel_from_json(node);
}

static uint32_t elem_of(const struct cel_run *r, struct cel_value v)
{
    const struct cel_shape *s = cel_shape_of(r, v);

    return s ? s->elem : 0;
}

size_t cel_measure(struct cel_run *r, struct cel_value v)
{
    size_t n = cel_size(v);

    if (v.kind == CEL_STRING)
        cel_charge(r, v.s.n / 100);
    else if ((v.kind == CEL_LIST || v.kind == CEL_MAP) && v.is_json)
        cel_charge_walk(r, n);
    return n;
}

struct cel_list cel_items(struct cel_run *r, struct cel_value v)
{
    struct cel_value *items;
    size_t n = 0;

    if (!v.is_json)
        return *v.list;
    items = cel_room(r, json_count(v.json) * sizeof(*items));
    if (!items)
        return (struct cel_list){0};
    json_each(item, v.json) items[n++] = child(r, elem_of(r, v), item);
    cel_charge_walk(r, n);
    return (struct cel_list){n, items};
}

struct cel_map cel_entries(struct cel_run *r, struct cel_value v)
{
    const struct cel_shape *s = cel_shape_of(r, v);
    struct cel_value *keys, *values;
    size_t n = 0;

    if (!v.is_json)
        return *v.map;
    keys = cel_room(r, 2 * json_count(v.json) * sizeof(*keys));
    if (!keys)
        return (struct cel_map){0};
    values = keys + json_count(v.json);
    json_each(item, v.json)
    {
        bool is_object = s && s->kind == CEL_SHAPE_OBJECT;
        const struct cel_shape_field *f = is_object ? cel_shape_key(s, json_key(item)) : NULL;

        if (is_object && !f)
            continue;
        keys[n] = cel_string(f ? f->name : json_key(item));
        values[n++] = child(r, f ? f->shape : s ? s->elem : 0, item);
    }
    cel_charge_walk(r, n);
    return (struct cel_map){n, keys, values};
}

/* ---- order and equality ---- */

static bool is_number(struct cel_value v)
{
    return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE;
}

static int order_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int order_double_int(double d, struct cel_value v)
{
    /* Beyond what an int64 or uint64 holds, the double decides. */
    if (v.kind == CEL_INT)
        return d >= 0x1p63         ? 1
               : d < -0x1p63       ? -1
               : (int64_t)d != v.i ? order_i64((int64_t)d, v.i)
                                   : (d > (double)(int64_t)d) - (d < (double)(int64_t)d);
    if (d < 0)
        return -1;
    return d >= 0x1p64          ? 1
           : (uint64_t)d != v.u ? ((uint64_t)d > v.u ? 1 : -1)
                                : d > (double)(uint64_t)d;
}

/* False: one is no number. */
static bool order_numbers(struct cel_value a, struct cel_value b, int *ret)
{
    if (a.kind == CEL_DOUBLE && b.kind == CEL_DOUBLE) {
        *ret = (a.d > b.d) - (a.d < b.d);
        return !isnan(a.d) && !isnan(b.d);
    }
    if (a.kind == CEL_DOUBLE) {
        *ret = order_double_int(a.d, b);
        return !isnan(a.d);
    }
    if (b.kind == CEL_DOUBLE) {
        *ret = -order_double_int(b.d, a);
        return !isnan(b.d);
    }
    if (a.kind == b.kind && a.kind == CEL_INT)
        *ret = order_i64(a.i, b.i);
    else if (a.kind == b.kind)
        *ret = (a.u > b.u) - (a.u < b.u);
    else if (a.kind == CEL_INT)
        *ret = a.i < 0 ? -1 : ((uint64_t)a.i > b.u) - ((uint64_t)a.i < b.u);
    else
        *ret = b.i < 0 ? 1 : (a.u > (uint64_t)b.i) - (a.u < (uint64_t)b.i);
    return true;
}

/* The first ten characters are part of the step, as upstream. */
static int order_text(struct cel_run *r, struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;

    if (n > 10)
        cel_charge_text(r, n - 10);
    return str_cmp(a, b);
}

bool cel_compare(struct cel_run *r, struct cel_value a, struct cel_value b, int *ret)
{
    if (is_number(a) && is_number(b))
        return order_numbers(a, b, ret);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case CEL_STRING:
    case CEL_BYTES:
        *ret = order_text(r, a.s, b.s);
        return true;
    case CEL_BOOL:
        *ret = (int)a.b - (int)b.b;
        return true;
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        *ret = order_i64(a.i, b.i);
        return true;
    default:
        return false;
    }
}

static bool equal_lists(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    struct cel_list x, y;

    if (cel_measure(r, a) != cel_measure(r, b))
        return false;
    x = cel_items(r, a);
    y = cel_items(r, b);
    cel_charge(r, x.n);
    if (cel_is_unordered(cel_shape_of(r, a)))
        return cel_equal_unordered(r, cel_shape_of(r, a), x, y);
    for (size_t i = 0; i < x.n && i < y.n && !r->over; i++) {
        if (!cel_equal(r, x.items[i], y.items[i]))
            return false;
    }
    return true;
}

/* A walk over the keys of a JSON object costs more than the one unit of a map only where the
 * object is large. */
static const cJSON *find_node(struct cel_run *r, const cJSON *object, struct str key)
{
    const cJSON *found = NULL;
    size_t steps = 0;

    json_each(item, object)
    {
        struct str own = json_key(item);

        steps += own.n == key.n ? 1 + key.n / 64 : 1;
        if (str_eq(own, key)) {
            found = item;
            break;
        }
    }
    cel_charge_walk(r, steps);
    return found;
}

/* Both of a schema. What it does not know counts as well. */
static bool equal_objects(struct cel_run *r, const struct cel_shape *s, const cJSON *a,
                          const cJSON *b)
{
    cel_charge(r, json_count(a));
    json_each(item, a)
    {
        const struct cel_shape_field *f = cel_shape_key(s, json_key(item));
        const cJSON *other = find_node(r, b, json_key(item));

        if (f && json_is_null(item) && (!other || json_is_null(other)))
            continue;
        if (!other && !f)
            continue;
        if (r->over || !other ||
            !cel_equal(r, child(r, f ? f->shape : 0, item), child(r, f ? f->shape : 0, other)))
            return false;
    }
    return true;
}

static bool equal_maps(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    const struct cel_shape *s = cel_shape_of(r, a);
    struct cel_map x;
    struct cel_value other;

    if (cel_measure(r, a) != cel_measure(r, b))
        return false;
    if (s && s->kind == CEL_SHAPE_OBJECT && a.is_json && b.is_json)
        return equal_objects(r, s, a.json, b.json);
    x = cel_entries(r, a);
    cel_charge(r, x.n);
    for (size_t i = 0; i < x.n && !r->over; i++) {
        if (!cel_find(r, b, x.keys[i], &other) || !cel_equal(r, x.values[i], other))
            return false;
    }
    return true;
}

static bool equal_named(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    return str_eq(a.object->type, b.object->type) &&
           equal_maps(r, (struct cel_value){.kind = CEL_MAP, .map = &a.object->fields},
                      (struct cel_value){.kind = CEL_MAP, .map = &b.object->fields});
}

static bool equal_containers(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    bool equal;

    if (++r->depth > CEL_MAX_VALUE)
        r->over = true;
    equal = !r->over && (a.kind == CEL_LIST     ? equal_lists(r, a, b)
                         : a.kind == CEL_OBJECT ? equal_named(r, a, b)
                                                : equal_maps(r, a, b));
    r->depth--;
    return equal;
}

bool cel_equal(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    int order;

    if (is_number(a) && is_number(b))
        return order_numbers(a, b, &order) && !order;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case CEL_NULL:
        return true;
    case CEL_LIST:
    case CEL_MAP:
    case CEL_OBJECT:
        return equal_containers(r, a, b);
    case CEL_TYPE:
    case CEL_IP:
    case CEL_CIDR:
        return str_eq(a.s, b.s);
    case CEL_URL:
        return str_eq(*(const struct str *)a.p, *(const struct str *)b.p);
    case CEL_SEMVER:
        return !cel_semver_order(a, b);
    case CEL_QUANTITY:
        return !quantity_cmp(*(const struct quantity *)a.p, *(const struct quantity *)b.p);
    case CEL_OPTIONAL:
        return a.inner && b.inner ? cel_equal(r, *a.inner, *b.inner) : a.inner == b.inner;
    default:
        return cel_compare(r, a, b, &order) ? !order : a.p == b.p;
    }
}

/* ---- members ---- */

/* A field that is null is as one that is absent. */
static bool find_json(struct cel_run *r, struct cel_value map, struct str key,
                      struct cel_value *ret)
{
    const struct cel_shape *s = cel_shape_of(r, map);
    const struct cel_shape_field *f = NULL;
    const cJSON *found;

    if (s && s->kind == CEL_SHAPE_OBJECT) {
        f = cel_shape_field(s, key);
        if (!f)
            return false;
    }
    found = find_node(r, map.json, f ? f->key : key);
    if (!found || (f && json_is_null(found)))
        return false;
    *ret = child(r, f ? f->shape : elem_of(r, map), found);
    return true;
}

bool cel_find(struct cel_run *r, struct cel_value map, struct cel_value key, struct cel_value *ret)
{
    if (map.is_json)
        return key.kind == CEL_STRING && find_json(r, map, key.s, ret);
    for (size_t i = 0; i < map.map->n && !r->over; i++) {
        if (i % 4 == 3)
            cel_charge(r, 1);
        if (cel_equal(r, map.map->keys[i], key)) {
            *ret = map.map->values[i];
            return true;
        }
    }
    return false;
}

static bool as_index(struct cel_value at, int64_t *ret)
{
    if (at.kind == CEL_INT)
        *ret = at.i;
    else if (at.kind == CEL_UINT && at.u <= INT64_MAX)
        *ret = (int64_t)at.u;
    else if (at.kind == CEL_DOUBLE && at.d == floor(at.d) && fabs(at.d) < 0x1p53)
        *ret = (int64_t)at.d;
    else
        return false;
    return true;
}

static struct cel_value item_at(struct cel_run *r, struct cel_value list, int64_t i)
{
    const cJSON *found = NULL;
    int64_t steps = 0;

    if (i >= 0 && !list.is_json && (uint64_t)i < list.list->n)
        return list.list->items[i];
    if (i < 0 || !list.is_json)
        return cel_error(r, "index out of bounds: %lld", (long long)i);
    json_each(item, list.json)
    {
        if (steps++ == i) {
            found = item;
            break;
        }
    }
    cel_charge_walk(r, (size_t)steps);
    return found ? child(r, elem_of(r, list), found)
                 : cel_error(r, "index out of bounds: %lld", (long long)i);
}

struct cel_value cel_index(struct cel_run *r, struct cel_value from, struct cel_value at)
{
    struct cel_value found;
    int64_t i;

    if (from.kind == CEL_MAP)
        return cel_find(r, from, at, &found)
                   ? found
                   : cel_error(r, "no such key: %.*s", STR_F(cel_text(r, at)));
    if (from.kind != CEL_LIST)
        return cel_no_overload(r);
    if (!as_index(at, &i))
        return cel_error(r, "unsupported index type '%.*s' in list", STR_F(cel_kind_name(at)));
    return item_at(r, from, i);
}

/* ---- as a string ---- */

/* The fewest digits behind the dot that read back, as an exponent shows them: where 15 in all
 * do, those without their zeros are the shortest. */
static int digits_of(double d, int *ret_exponent)
{
    char text[64], *e;

    for (int n = fabs(d) < DBL_MIN ? 0 : 14;; n++) {
        snprintf(text, sizeof(text), "%.*e", n, d);
        if (n < 16 && strtod(text, NULL) != d)
            continue;
        e = strchr(text, 'e');
        *ret_exponent = (int)strtol(e + 1, NULL, 10);
        for (; n && e[-1] == '0'; e--)
            n--;
        return n;
    }
}

/* Go's strconv 'g': the fewest digits that read back, with an exponent from 1e6 on and below
 * 1e-4. */
static struct str double_text(struct cel_run *r, double d)
{
    bool plain = d == 0 || (fabs(d) >= 1e-4 && fabs(d) < 1e6);
    char digits[64];
    int n, exponent;

    if (isnan(d))
        return STR("NaN");
    if (isinf(d))
        return d > 0 ? STR("+Inf") : STR("-Inf");
    cel_charge(r, COST_NUMBER);
    n = digits_of(d, &exponent);
    if (plain)
        n -= exponent;
    snprintf(digits, sizeof(digits), plain ? "%.*f" : "%.*e", n > 0 ? n : 0, d);
    return arena_str(r->arena, str_c(digits));
}

static struct str duration_text(struct cel_run *r, int64_t ns)
{
    char digits[64];

    cel_charge(r, COST_NUMBER);
    for (int n = 0; n <= 9; n++) {
        snprintf(digits, sizeof(digits), "%.*f", n, (double)ns / 1e9);
        if (strtod(digits, NULL) == (double)ns / 1e9)
            break;
    }
    return arena_printf(r->arena, "%ss", digits);
}

static struct str timestamp_text(struct cel_run *r, int64_t us)
{
    struct str s;
    size_t n;

    cel_charge(r, COST_NUMBER);
    if (us % 1000000 == 0)
        return time_format_s(r->arena, us / 1000000);
    s = time_format_us(r->arena, us);
    for (n = s.n - 1; n && s.p[n - 1] == '0';)
        n--;
    return arena_printf(r->arena, "%.*sZ", (int)n, s.p);
}

struct str cel_text(struct cel_run *r, struct cel_value v)
{
    switch (v.kind) {
    case CEL_NULL:
        return STR("null");
    case CEL_BOOL:
        return v.b ? STR("true") : STR("false");
    case CEL_INT:
        return arena_printf(r->arena, "%lld", (long long)v.i);
    case CEL_UINT:
        return arena_printf(r->arena, "%llu", (unsigned long long)v.u);
    case CEL_DOUBLE:
        return double_text(r, v.d);
    case CEL_TIMESTAMP:
        return timestamp_text(r, v.i);
    case CEL_DURATION:
        return duration_text(r, v.i);
    case CEL_QUANTITY:
        return quantity_format(r->arena, *(const struct quantity *)v.p);
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_TYPE:
    case CEL_IP:
    case CEL_CIDR:
    case CEL_ERROR:
        return v.s;
    default:
        return cel_kind_name(v);
    }
}
