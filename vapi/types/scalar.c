/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of a body: checked against their Go type and rewritten as Go would print them. Must never
 * accept a number that does not fit its type: clients compute with the value they read back. */

#include "scalar.h"
#include "tree.h"
#include "walk.h"

#include <math.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/quantity.h>

#define ZERO_TIME_US (INT64_C(-62135596800) * 1000000) /* 0001-01-01T00:00:00Z, Go's zero time */

static void set_text(struct walk *w, cJSON *value, struct str text)
{
    tree_become(value, json_new_string(w->arena, text));
}

/* Integers as strconv.ParseInt reads the literal: "1.0" and "1e3" are not integers. */
static bool integer(struct walk *w, const cJSON *value, int64_t *ret)
{
    if (!value->valuestring && fabs(value->valuedouble) < 1e15 &&
        floor(value->valuedouble) == value->valuedouble) {
        *ret = (int64_t)value->valuedouble;
        return true;
    }
    return str_to_i64(json_text(w->arena, value), ret);
}

static const struct {
    int64_t min, max;
} INTEGERS[] = {
    [SCHEMA_INT32] = {INT32_MIN, INT32_MAX}, [SCHEMA_INT64] = {INT64_MIN, INT64_MAX},
    [SCHEMA_UINT32] = {0, UINT32_MAX},       [SCHEMA_UINT64] = {0, INT64_MAX},
    [SCHEMA_UINT8] = {0, UINT8_MAX},
};

/* The result of a Go conversion of a number that does not fit. */
static int64_t cut(uint8_t kind, int64_t n)
{
    switch (kind) {
    case SCHEMA_INT32:
        return (int32_t)n;
    case SCHEMA_UINT32:
        return (uint32_t)n;
    case SCHEMA_UINT8:
        return (uint8_t)n;
    default:
        return n;
    }
}

static bool take_integer(struct walk *w, uint8_t kind, cJSON *value, bool may_cut)
{
    uint64_t large;
    int64_t n;

    if (!json_is_number(value))
        return false;
    if (!integer(w, value, &n))
        return kind == SCHEMA_UINT64 && str_to_u64(json_text(w->arena, value), &large);
    if (may_cut)
        n = cut(kind, n);
    if (n < INTEGERS[kind].min || n > INTEGERS[kind].max)
        return false;
    if (may_cut || value->valuestring || n == 0)
        tree_become(value, json_new_i64(w->arena, n)); /* -0 */
    return true;
}

/* Go also accepts a list of numbers for []byte. */
static int take_byte_list(struct walk *w, cJSON *value, const struct frame *at)
{
    char *bytes = arena_alloc(w->arena, json_count(value) + 1);
    size_t n = 0;

    json_each(item, value)
    {
        if (json_is_null(item) || take_integer(w, SCHEMA_UINT8, item, w->converting))
            bytes[n++] = (char)(unsigned char)item->valuedouble;
        else if (w->converting)
            return walk_fail(w, STR("unrecognized type: uint8"));
        else
            walk_note_mismatch(w, at, item, true, STR("uint8"));
    }
    set_text(w, value, base64_encode(w->arena, (struct str){bytes, n}));
    return 0;
}

static int take_bytes(struct walk *w, uint32_t node, cJSON *value, const struct frame *at)
{
    struct str bytes, why;

    if (json_is_array(value))
        return take_byte_list(w, value, at);
    if (!json_is_string(value))
        return walk_mismatch(w, at, node, value);
    if (base64_decode(w->arena, json_str(value), &bytes)) {
        set_text(w, value, base64_encode(w->arena, bytes));
        return 0;
    }
    why = scalar_base64_error(w->arena, json_str(value));
    if (w->converting)
        return walk_fail(w, arena_printf(w->arena, "error decoding from json: %.*s", STR_F(why)));
    walk_note(w, why);
    return 0;
}

static int take_quantity(struct walk *w, cJSON *value)
{
    struct str text = STR("?");
    struct quantity quantity;

    if (json_is_string(value))
        text = str_trim(json_str(value));
    else if (json_is_number(value))
        text = json_text(w->arena, value);
    if (!quantity_parse(text, &quantity))
        return walk_fail(w, scalar_quantity_error(text));
    set_text(w, value, scalar_quantity_is_kept(text) ? text : quantity_format(w->arena, quantity));
    return 0;
}

/* metav1.MicroTime requires exactly six fraction digits. */
static bool has_micros(struct str text)
{
    for (size_t i = 20; i < 26; i++) {
        if (i >= text.n || text.p[i] < '0' || text.p[i] > '9')
            return false;
    }
    return text.p[19] == '.' && text.n > 26 && (text.p[26] < '0' || text.p[26] > '9');
}

/* Go's layout "15" accepts one digit too, and a comma before the fraction. */
static struct str plain_time(struct walk *w, struct str text)
{
    if (text.n > 12 && text.p[12] == ':')
        text = arena_printf(w->arena, "%.*s0%.*s", STR_F(str_sub(text, 0, 11)),
                            STR_F(str_from(text, 11)));
    if (text.n > 19 && text.p[19] == ',')
        text = arena_printf(w->arena, "%.*s.%.*s", STR_F(str_sub(text, 0, 19)),
                            STR_F(str_from(text, 20)));
    return text;
}

static int64_t floor_seconds(int64_t us)
{
    return us / 1000000 - (us % 1000000 < 0);
}

static int take_time(struct walk *w, cJSON *value, bool micro, const struct frame *at)
{
    struct str text = json_str(value);
    cJSON null = {.type = cJSON_NULL};
    int64_t us;

    if (!json_is_string(value))
        return walk_mismatch_now(w, at, value, "string");
    if (!time_parse(micro ? text : plain_time(w, text), &us) || (micro && !has_micros(text)))
        return walk_fail(w, scalar_time_error(w->arena, text, micro));
    if (us == ZERO_TIME_US)
        tree_become(value, &null);
    else
        set_text(w, value,
                 micro ? time_format_us(w->arena, us) : time_format_s(w->arena, floor_seconds(us)));
    return 0;
}

static int take_duration(struct walk *w, cJSON *value, const struct frame *at)
{
    int64_t ns;

    if (!json_is_string(value))
        return walk_mismatch_now(w, at, value, "string");
    if (!duration_parse(json_str(value), &ns))
        return walk_fail(
            w, arena_printf(w->arena, "time: invalid duration \"%.*s\"", STR_F(json_str(value))));
    set_text(w, value, duration_text(w->arena, ns));
    return 0;
}

static bool take_plain(struct walk *w, uint8_t kind, cJSON *value)
{
    switch (kind) {
    case SCHEMA_STRING:
        return json_is_string(value);
    case SCHEMA_BOOL:
        return json_is_bool(value);
    case SCHEMA_DOUBLE:
        if (!json_is_number(value) || !isfinite(value->valuedouble))
            return false;
        value->valuestring = NULL;
        return true;
    default:
        return take_integer(w, kind, value, w->converting);
    }
}

int walk_scalar(struct walk *w, uint32_t node, cJSON *value, const struct frame *at)
{
    uint8_t kind = schema_node(w->schema, node)->kind;
    char *literal = value->valuestring;

    if (w->converting && kind != SCHEMA_BYTES) {
        /* In a Go map, a number that is no integer is a float64, however it is spelled. */
        if (json_is_number(value) && isfinite(value->valuedouble) &&
            value_type(w->arena, value) == VALUE_FLOAT)
            value->valuestring = NULL;
    }
    switch (kind) {
    case SCHEMA_BYTES:
        return take_bytes(w, node, value, at);
    case SCHEMA_QUANTITY:
        return take_quantity(w, value);
    case SCHEMA_INT_OR_STRING:
        if (json_is_string(value) || take_integer(w, SCHEMA_INT32, value, false))
            return 0;
        return walk_mismatch_now(w, at, value, "int32");
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
        return take_time(w, value, kind == SCHEMA_MICRO_TIME, at);
    case SCHEMA_DURATION:
        return take_duration(w, value, at);
    case SCHEMA_FIELDS_V1:
    case SCHEMA_UNSTRUCTURED: /* kept unchanged */
        return 0;
    default:
        break;
    }
    if (take_plain(w, kind, value))
        return 0;
    value->valuestring = literal;
    return walk_mismatch(w, at, node, value);
}
