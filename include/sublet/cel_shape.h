/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/cel
 *
 * Shapes: the types that a structural schema gives to JSON, by number. An expression that declares
 * a variable of a shape sees its fields only, by escaped names, and strings with a format as
 * bytes, durations and timestamps. Source: k8s.io/apiserver pkg/cel (escaping.go,
 * common/schemas.go, common/valuesunstructured.go). */
#pragma once

#include <sublet/cel.h>

enum cel_shape_kind {
    CEL_SHAPE_DYN, /* int-or-string: as it comes */
    CEL_SHAPE_BOOL,
    CEL_SHAPE_INT,
    CEL_SHAPE_DOUBLE,
    CEL_SHAPE_STRING,
    CEL_SHAPE_BYTES, /* base64 in JSON */
    CEL_SHAPE_DURATION,
    CEL_SHAPE_TIMESTAMP, /* a date or a date with a time */
    CEL_SHAPE_OBJECT,
    CEL_SHAPE_MAP,  /* string -> elem */
    CEL_SHAPE_LIST, /* of elem; order does not matter to equality in sets and maps */
    CEL_SHAPE_SET,
    CEL_SHAPE_LIST_MAP,
};

struct cel_shape_field {
    struct str name; /* in expressions */
    struct str key;  /* in JSON */
    uint32_t shape;
};
struct cel_shape {
    enum cel_shape_kind kind;
    uint32_t elem;
    const struct cel_shape_field *fields; /* by name */
    const uint32_t *by_key;               /* indexes of fields, in order of keys */
    size_t n_fields;
    const struct str *keys; /* of a list map, as names in expressions */
    size_t n_keys;
};
/* items[0] is DYN; a number is less than CEL_MOST_SHAPES. */
#define CEL_MOST_SHAPES (1u << 24)
struct cel_shapes {
    const struct cel_shape *items;
    size_t n;
};

/* The letters of a shape, for cel_declaration. */
const char *cel_shape_type(struct arena *a, const struct cel_shapes *shapes, uint32_t shape);
/* JSON as CEL sees it through a shape, by reference; an error where it is not of it. */
struct cel_value cel_from_shape(struct arena *a, const struct cel_shapes *shapes, uint32_t shape,
                                const cJSON *node);
/* NULL: no such field. The second is for keys of JSON. */
const struct cel_shape_field *cel_shape_field(const struct cel_shape *s, struct str name);
const struct cel_shape_field *cel_shape_key(const struct cel_shape *s, struct str key);
/* A property's name as an identifier: "a-b" is a__dash__b. False: it has none. */
bool cel_escape(struct arena *a, struct str name, struct str *ret);
