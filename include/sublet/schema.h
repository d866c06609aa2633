/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * The schemas of objects, for built-in kinds (one generated table) and for CRDs (compiled at run
 * time) in the same form: indexes into arrays, so that the built-in table is read-only data without
 * relocations. Every walk of an object by its type uses them: decoding, the protobuf transcoder,
 * unknown fields, pruning, defaults, strategic merge, server-side apply. */
#pragma once

#include <sublet/json.h>

enum schema_kind {
    SCHEMA_ANY,    /* RawExtension, JSON, x-kubernetes-preserve-unknown-fields without type */
    SCHEMA_OBJECT, /* named fields; for a CRD maybe also `elem` for other keys */
    SCHEMA_MAP,    /* string -> elem */
    SCHEMA_LIST,   /* of elem */
    SCHEMA_STRING,
    SCHEMA_BOOL,
    SCHEMA_INT32,
    SCHEMA_INT64,
    SCHEMA_UINT32,
    SCHEMA_UINT64,
    SCHEMA_UINT8,
    SCHEMA_DOUBLE,
    SCHEMA_BYTES, /* base64 in JSON */
    SCHEMA_QUANTITY,
    SCHEMA_INT_OR_STRING,
    SCHEMA_TIME,
    SCHEMA_MICRO_TIME,
    SCHEMA_DURATION,
    SCHEMA_FIELDS_V1,
    SCHEMA_UNSTRUCTURED /* an object with apiVersion and kind of its own */
};

enum schema_list_type { LIST_ATOMIC, LIST_SET, LIST_MAP }; /* maps, ANY: LIST_ATOMIC or granular */

enum schema_field_flags {
    FIELD_OMITEMPTY = 1,
    FIELD_POINTER = 2,
    FIELD_REQUIRED = 4,
    FIELD_OMITZERO = 8,
    FIELD_PB_PACKED = 16,
    FIELD_HAS_DEFAULT = 32,
    FIELD_INLINE = 64,  /* protobuf only: a nameless row; its message's fields are this object's */
    FIELD_PRINTED = 128 /* built-in: present even when absent in the body, with Go's zero value */
};
enum schema_patch {
    PATCH_REPLACE = 0,
    PATCH_MERGE = 1, /* bits */
    PATCH_RETAIN_KEYS = 2,
    PATCH_WHOLE = 4, /* explicit `replace`: objects too, which are merged by default */
    PATCH_ZERO =
        8 /* OpenAPI's default is Go's zero value: the value of an absent key of a list map */
};

struct schema_field {
    uint32_t name;         /* offset into strings, NUL-terminated */
    uint32_t node;         /* its type */
    uint32_t default_json; /* offset of a JSON string, 0 for none (OpenAPI default; CRD default) */
    uint16_t pb;           /* protobuf field number, 0 for none */
    uint8_t flags;
    uint8_t patch;      /* schema_patch bits of a list or object field */
    uint32_t patch_key; /* patchMergeKey, offset, 0 for none */
};

struct schema_node {
    uint8_t kind;         /* schema_kind */
    uint8_t list_type;    /* schema_list_type, for lists, maps and objects */
    uint16_t n_fields;    /* sorted by name: looked up by bisection */
    uint32_t first_field; /* a list: 1 when protobuf wraps its items in a message of their own */
    /* Node of items or values; 0 (always ANY) where there is none; a built-in ANY: the OBJECT that
     * is its protobuf message, when it is one of several types. */
    uint32_t elem;
    uint32_t keys; /* list map keys: offset of "a\0b\0\0", 0 for none; a built-in string: its only
                    * values, "a\nb" */
    uint32_t type_name; /* "io.k8s.api.core.v1.PodSpec", 0 for none; also of named scalars */
    uint32_t flags;     /* node_flags of crd.h */
};

struct schema_rules; /* additions of a CRD: validation, nullable, defaults; see crd.h */

struct schema {
    const struct schema_node *nodes;
    const struct schema_field *fields;
    const char *strings;
    const struct schema_rules *rules; /* parallel to nodes, or NULL for built-ins */
    uint32_t n_nodes, n_fields;
    bool preserves_unknown_by_rule; /* CRDs: rules decide; built-ins: never pruned */
};

extern const struct schema SCHEMA_BUILTIN;

/* Root node of a built-in kind; 0 when there is none. group "" is core. Also DeleteOptions, Status,
 * PatchOptions, WatchEvent (meta.k8s.io/v1; found under any group), Scale, Eviction, ... */
uint32_t schema_builtin_root(struct str group, struct str version, struct str kind);
const struct schema_node *schema_node(const struct schema *s, uint32_t node);
const char *schema_text(const struct schema *s, uint32_t offset);
const struct schema_field *schema_field(const struct schema *s, uint32_t node, struct str name);
const struct schema_field *schema_field_pb(const struct schema *s, uint32_t node, unsigned number);
/* The type of a member of `node` (field, or map value); 0 when unknown. */
uint32_t schema_child(const struct schema *s, uint32_t node, struct str name);

/* Strict decoding errors: unknown and duplicate fields, with upstream's messages and order. */
struct strict_errors {
    struct arena *arena;
    size_t n, cap;    /* at most 100 are kept */
    struct str *text; /* `unknown field "spec.foo"`, `duplicate field "spec.bar"` */
    struct str *path; /* the `spec.foo` in it */
    size_t lines;     /* the first of them are from YAML's reader, which are one error upstream */
};
void strict_add(struct strict_errors *e, const char *what, struct str path);
/* A duplicate in YAML, as yaml_parse reports it; before all others. */
void strict_add_line(struct strict_errors *e, struct str line);
/* Sorts the errors of a built-in kind by their position in the JSON document, which is upstream's
 * order; drops duplicates inside unknown fields. */
void strict_order(struct strict_errors *e, struct str json);
/* All of them in one string of the arena, as in a refusal. */
struct str strict_join(const struct strict_errors *e);

/* The result of decoding a body into its Go type and printing it again: type errors (BAD_REQUEST,
 * `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`
 * with upstream's wrapper), no nulls and empty omitempty values, zero values of other fields,
 * canonical quantities and times, maps sorted by key. Unknown fields are recorded and dropped.
 * Built-in tables only. */
int schema_normalise(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                     struct strict_errors *strict, struct err *err) MUST_CHECK;
/* The same for the result of a patch: errors come without the wrapper, for the Invalid error of
 * field `patch`. converted: upstream converts what a strategic patch or an apply made, with other
 * errors (`unrecognized type: int32`) and unknown fields sorted by message. */
int schema_normalise_patched(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                             bool strategic, struct strict_errors *strict,
                             struct err *err) MUST_CHECK;
/* Applies default_json of absent fields below present objects. */
void schema_default(struct arena *a, const struct schema *s, uint32_t node, cJSON *object);

/* Protobuf: the `k8s\0` envelope (runtime.Unknown) around a message of the table. */
#define PROTO_MAGIC ((struct str){"k8s\0", 4})
/* A complete body, normalised. Errors: BAD_REQUEST, with the same wrapper once the kind is
 * known. */
int proto_decode(struct arena *a, struct str body, cJSON **ret, struct err *err) MUST_CHECK;
/* One message of a known type, without envelope. */
int proto_decode_message(struct arena *a, const struct schema *s, uint32_t node, struct str bytes,
                         cJSON **ret, struct err *err) MUST_CHECK;

#include <sublet/patch.h>
