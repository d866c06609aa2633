/* SPDX-License-Identifier: Apache-2.0 */
/* Values seen through a schema. Must never read JSON that is not of its shape as if it were: the
 * schema may have changed since an object was stored. */
#include "shape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>

/* ---- names ---- */

static const char *const RESERVED =
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|"
    "namespace|return|var|void|while";

static const char *escaped(char c)
{
    return c == '.' ? "__dot__" : c == '-' ? "__dash__" : c == '/' ? "__slash__" : NULL;
}

bool cel_escape(struct arena *a, struct str name, struct str *ret)
{
    struct buf b = BUF_INIT(0);
    bool good = name.n && !isdigit((unsigned char)name.p[0]);

    if (str_word_index(RESERVED, name) >= 0) {
        *ret = arena_printf(a, "__%.*s__", STR_F(name));
        return true;
    }
    for (size_t i = 0; good && i < name.n; i++) {
        char c = name.p[i];

        if (escaped(c)) {
            buf_addc(&b, escaped(c));
        } else if (c == '_' && i + 1 < name.n && name.p[i + 1] == '_') {
            buf_addc(&b, "__underscores__");
            i++;
        } else {
            good = c == '_' || (isalnum((unsigned char)c) && !((unsigned char)c & 0x80));
            buf_char(&b, c);
        }
    }
    if (good)
        *ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return good;
}

/* order NULL: fields in the order of their names; else of their keys, by index. */
static const struct cel_shape_field *search(const struct cel_shape *s, const uint32_t *order,
                                            struct str word)
{
    size_t from = 0, to = s->n_fields;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct cel_shape_field *f = &s->fields[order ? order[middle] : middle];
        int way = str_cmp(word, order ? f->key : f->name);

        if (!way)
            return f;
        if (way < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

/* A keyword behind a dot may stand without its underscores. */
const struct cel_shape_field *cel_shape_field(const struct cel_shape *s, struct str name)
{
    const struct cel_shape_field *f = search(s, NULL, name);
    char keyword[32];

    if (f || str_word_index(RESERVED, name) < 0)
        return f;
    snprintf(keyword, sizeof(keyword), "__%.*s__", STR_F(name));
    return search(s, NULL, str_c(keyword));
}

const struct cel_shape_field *cel_shape_key(const struct cel_shape *s, struct str key)
{
    return search(s, s->by_key, key);
}

/* ---- types ---- */

const char *cel_shape_type(struct arena *a, const struct cel_shapes *shapes, uint32_t shape)
{
    static const char *const scalars[] = {
        [CEL_SHAPE_DYN] = "*",      [CEL_SHAPE_BOOL] = "b",      [CEL_SHAPE_INT] = "i",
        [CEL_SHAPE_DOUBLE] = "d",   [CEL_SHAPE_STRING] = "s",    [CEL_SHAPE_BYTES] = "y",
        [CEL_SHAPE_DURATION] = "D", [CEL_SHAPE_TIMESTAMP] = "t",
    };
    const struct cel_shape *s = &shapes->items[shape];
    struct buf b = BUF_INIT(0);
    struct str text;

    for (; s->kind > CEL_SHAPE_OBJECT; s = &shapes->items[shape]) {
        buf_addc(&b, s->kind == CEL_SHAPE_MAP ? "Ms" : "L");
        shape = s->elem;
    }
    if (s->kind == CEL_SHAPE_OBJECT)
        buf_printf(&b, "J%08x", (unsigned)shape);
    else
        buf_addc(&b, scalars[s->kind]);
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text.p;
}

uint32_t cel_type_shape(const char *type)
{
    char digits[9] = "";

    memcpy(digits, type + 1, 8);
    return (uint32_t)strtoul(digits, NULL, 16);
}

/* ---- values ---- */

static struct cel_value wrong(struct arena *a, const char *expected, const cJSON *node)
{
    return (struct cel_value){
        .kind = CEL_ERROR,
        .s = arena_printf(a, "invalid data, expected %s, got %s", expected, json_type_name(node))};
}

static struct cel_value from_bytes(struct arena *a, struct cel_value v)
{
    struct str bytes;

    if (base64_decode(a, v.s, &bytes))
        return (struct cel_value){.kind = CEL_BYTES, .s = bytes};
    return (struct cel_value){
        .kind = CEL_ERROR,
        .s = arena_printf(a, "Invalid byte formatted string %.*s", STR_F(str_clip(v.s, 200)))};
}

static struct cel_value from_duration(struct arena *a, struct cel_value v)
{
    int64_t ns;

    if (duration_parse(v.s, &ns))
        return (struct cel_value){.kind = CEL_DURATION, .i = ns};
    return (struct cel_value){
        .kind = CEL_ERROR,
        .s = arena_printf(a, "Invalid duration %.*s", STR_F(str_clip(v.s, 200)))};
}

/* A date is its midnight in UTC. */
static struct cel_value from_time(struct arena *a, struct cel_value v)
{
    struct str text = v.s.n == 10 ? arena_printf(a, "%.*sT00:00:00Z", STR_F(v.s)) : v.s;
    int64_t us;

    if (time_parse(text, &us))
        return (struct cel_value){.kind = CEL_TIMESTAMP, .i = us};
    return (struct cel_value){
        .kind = CEL_ERROR,
        .s = arena_printf(a, "Invalid date-time formatted string %.*s", STR_F(str_clip(v.s, 200)))};
}

/* By enum cel_shape_kind: what JSON of the shape is. */
static const struct {
    enum cel_kind kind;
    const char *words;
} WANTED[] = {
    [CEL_SHAPE_BOOL] = {CEL_BOOL, "bool"},          [CEL_SHAPE_INT] = {CEL_INT, "int"},
    [CEL_SHAPE_DOUBLE] = {CEL_DOUBLE, "float"},     [CEL_SHAPE_STRING] = {CEL_STRING, "string"},
    [CEL_SHAPE_BYTES] = {CEL_STRING, "string"},     [CEL_SHAPE_DURATION] = {CEL_STRING, "string"},
    [CEL_SHAPE_TIMESTAMP] = {CEL_STRING, "string"}, [CEL_SHAPE_OBJECT] = {CEL_MAP, "a map"},
    [CEL_SHAPE_MAP] = {CEL_MAP, "a map"},           [CEL_SHAPE_LIST] = {CEL_LIST, "an array"},
    [CEL_SHAPE_SET] = {CEL_LIST, "an array"},       [CEL_SHAPE_LIST_MAP] = {CEL_LIST, "an array"},
};

struct cel_value cel_from_shape(struct arena *a, const struct cel_shapes *shapes, uint32_t shape,
                                const cJSON *node)
{
    enum cel_shape_kind kind = shapes->items[shape].kind;
    struct cel_value v = cel_from_json(node);

    if (kind == CEL_SHAPE_DYN || v.kind == CEL_NULL)
        return v;
    if (kind == CEL_SHAPE_DOUBLE && v.kind == CEL_INT)
        return cel_double((double)v.i);
    if (v.kind != WANTED[kind].kind)
        return wrong(a, WANTED[kind].words, node);
    if (kind >= CEL_SHAPE_OBJECT)
        v.shape = shape & (CEL_MOST_SHAPES - 1);
    return kind == CEL_SHAPE_BYTES       ? from_bytes(a, v)
           : kind == CEL_SHAPE_DURATION  ? from_duration(a, v)
           : kind == CEL_SHAPE_TIMESTAMP ? from_time(a, v)
                                         : v;
}

bool cel_shape_decodes(const struct cel_shapes *shapes, uint32_t shape)
{
    enum cel_shape_kind kind = shapes->items[shape].kind;

    return kind >= CEL_SHAPE_BYTES && kind <= CEL_SHAPE_TIMESTAMP;
}

const struct cel_shape *cel_shape_of(const struct cel_run *r, struct cel_value v)
{
    return v.shape ? &r->activation->shapes->items[v.shape] : NULL;
}

/* ---- lists whose items are found by what they are ---- */

bool cel_is_unordered(const struct cel_shape *s)
{
    return s && (s->kind == CEL_SHAPE_SET || s->kind == CEL_SHAPE_LIST_MAP);
}

/* Equal, or for the items of a list map: of the same keys. */
static bool same_item(struct cel_run *r, const struct cel_shape *s, struct cel_value a,
                      struct cel_value b)
{
    if (s->kind == CEL_SHAPE_SET)
        return cel_equal(r, a, b);
    if (a.kind != CEL_MAP || b.kind != CEL_MAP)
        return false;
    for (size_t i = 0; i < s->n_keys; i++) {
        struct cel_value x, y;
        bool in_a = cel_find(r, a, cel_string(s->keys[i]), &x),
             in_b = cel_find(r, b, cel_string(s->keys[i]), &y);

        if (in_a != in_b || (in_a && !cel_equal(r, x, y)))
            return false;
    }
    return true;
}

/* Most lists that are compared have the same order: *at is where the item is expected. */
static bool find_item(struct cel_run *r, const struct cel_shape *s, struct cel_list l,
                      struct cel_value item, size_t *at)
{
    for (size_t i = 0; i < l.n && !r->over; i++) {
        size_t k = (*at + i) % l.n;

        if (i % 4 == 1)
            cel_charge(r, 1);
        if (same_item(r, s, item, l.items[k])) {
            *at = k;
            return true;
        }
    }
    return false;
}

bool cel_equal_unordered(struct cel_run *r, const struct cel_shape *s, struct cel_list x,
                         struct cel_list y)
{
    size_t at = 0;

    for (size_t i = 0; i < y.n && !r->over; i++, at++) {
        if (!find_item(r, s, x, y.items[i], &at))
            return false;
        if (s->kind == CEL_SHAPE_LIST_MAP && !cel_equal(r, x.items[at], y.items[i]))
            return false;
    }
    return true;
}

/* The items of x stay in their places; those of y that x has replace them, the others follow. */
struct cel_value cel_join_unordered(struct cel_run *r, struct cel_value a, struct cel_list y)
{
    const struct cel_shape *s = cel_shape_of(r, a);
    struct cel_list x = cel_items(r, a), l;
    struct cel_value *items = cel_room(r, (x.n + y.n) * sizeof(*items)), joined;
    size_t at = 0;

    if (!items)
        return cel_no_overload(r);
    if (x.n)
        memcpy(items, x.items, x.n * sizeof(*items));
    l = (struct cel_list){x.n, items};
    for (size_t i = 0; i < y.n && !r->over; i++, at++) {
        if (find_item(r, s, l, y.items[i], &at))
            items[at] = y.items[i];
        else
            items[l.n++] = y.items[i];
    }
    joined = cel_new_list(r, l.items, l.n);
    joined.shape = a.shape;
    return joined;
}
