/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * What is known about the shape of objects, for built-in kinds (one generated table) and for CRDs
 * (compiled at run time) in the same form: indexes into arrays, so that the built-in table is
 * read-only data without relocations. Everything that walks an object by its type stands on this:
 * decoding, the protobuf transcoder, unknown fields, pruning, defaults, strategic merge,
 * server-side apply. */
#pragma once

#include <sublet/json.h>

enum schema_kind {
    SCHEMA_ANY,    /* RawExtension, JSON, x-kubernetes-preserve-unknown-fields without type */
    SCHEMA_OBJECT, /* named fields; for a CRD perhaps also `elem` for other keys */
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

enum schema_list_type {
    LIST_ATOMIC,
    LIST_SET,
    LIST_MAP
}; /* maps and ANY: LIST_ATOMIC atomic, else granular */

enum schema_field_flags {
    FIELD_OMITEMPTY = 1,
    FIELD_POINTER = 2,
    FIELD_REQUIRED = 4,
    FIELD_OMITZERO = 8,
    FIELD_PB_PACKED = 16,
    FIELD_HAS_DEFAULT = 32,
    FIELD_INLINE = 64,  /* protobuf only: a nameless row; its message's fields are this object's */
    FIELD_PRINTED = 128 /* built-in: there even when nobody set it, with Go's zero value */
};
enum schema_patch {
    PATCH_REPLACE = 0,
    PATCH_MERGE = 1, /* bits */
    PATCH_RETAIN_KEYS = 2,
    PATCH_WHOLE = 4, /* `replace` said outright: objects too, which are merged by default */
    PATCH_ZERO = 8   /* OpenAPI's default is Go's zero value: what an absent key of a list map is */
};

struct schema_field {
    uint32_t name;         /* offset into strings, NUL-terminated */
    uint32_t node;         /* its type */
    uint32_t default_json; /* offset of JSON text, 0 for none (OpenAPI default; CRD default) */
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
    uint32_t elem; /* node of items or values; 0 (always ANY) where there is none; a built-in ANY:
                    * the OBJECT that is its protobuf message, when it is one of several things */
    uint32_t keys; /* list map keys: offset of "a\0b\0\0", 0 for none; a built-in string: its only
                    * values, "a\nb" */
    uint32_t type_name; /* "io.k8s.api.core.v1.PodSpec", 0 for none; also of named scalars */
    uint32_t flags;     /* node_flags of crd.h */
};

struct schema_rules; /* what a CRD adds: validation, nullable, defaults; see crd.h */

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
/* The type below `node` for an object member (field, or map value); 0 when unknown. */
uint32_t schema_child(const struct schema *s, uint32_t node, struct str name);

/* Strict decoding errors: unknown and duplicate fields, in upstream's words and order. */
struct strict_errors {
    struct arena *arena;
    size_t n, cap;    /* at most 100 are kept */
    struct str *text; /* `unknown field "spec.foo"`, `duplicate field "spec.bar"` */
    struct str *path; /* the `spec.foo` of it */
    size_t lines; /* the first of them are what YAML's reader said, which is one error upstream */
};
void strict_add(struct strict_errors *e, const char *what, struct str path);
/* A duplicate in YAML, as yaml_parse tells it; before all others. */
void strict_add_line(struct strict_errors *e, struct str line);
/* Brings what was noted of a built-in kind into the order of the JSON text it was read from, which
 * is upstream's; duplicates inside unknown fields leave. */
void strict_order(struct strict_errors *e, struct str json);
/* All of them in one text of the arena, as a refusal has them. */
struct str strict_join(const struct strict_errors *e);

/* What decoding a body into its Go type and printing it again gives: type errors (BAD_REQUEST,
 * `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`
 * with upstream's wrapper), no nulls and empty omitempty values, zero values of other fields,
 * canonical quantities and times. Unknown fields are noted and stay. Built-in tables only. */
int schema_normalise(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                     struct strict_errors *strict, struct err *err) MUST_CHECK;
/* The same for what a patch made: errors come without the wrapper, for the Invalid error of field
 * `patch`. strategic: upstream converts the result of a strategic patch, with other errors
 * (`unrecognized type: int32`) and unknown fields sorted by text. */
int schema_normalise_patched(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                             bool strategic, struct strict_errors *strict,
                             struct err *err) MUST_CHECK;
/* Removes fields the schema does not know (built-in tables; CRDs prune by crd.h). */
void schema_prune(const struct schema *s, uint32_t node, cJSON *object);
/* Applies default_json of absent fields below present objects. */
void schema_default(struct arena *a, const struct schema *s, uint32_t node, cJSON *object);

/* Protobuf: the `k8s\0` envelope (runtime.Unknown) around a message of the table. */
#define PROTO_MAGIC ((struct str){"k8s\0", 4})
/* A whole body, normalised. Errors: BAD_REQUEST, with the same wrapper once the kind is known. */
int proto_decode(struct arena *a, struct str body, cJSON **ret, struct err *err) MUST_CHECK;
/* One message of a known type, without envelope. */
int proto_decode_message(struct arena *a, const struct schema *s, uint32_t node, struct str bytes,
                         cJSON **ret, struct err *err) MUST_CHECK;

#include <sublet/patch.h>
