/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * JSON over cJSON's node type, with a strict reader and an exact printer of our own (RFC 8259).
 * Nodes live in an arena and must never meet cJSON_Delete, cJSON_Parse*, cJSON_Print* or cJSON's
 * look-ups. Conventions on a node:
 *   string   valuestring (NUL-terminated), valueint = its length in bytes (may hold NULs)
 *   number   valuedouble; valuestring = the literal as written, kept when printing the number would
 *            not give the same literal back; the printer then writes it verbatim
 *   member   string = its key (keys with U+0000 are refused)
 * A child list is cJSON's: first->prev is the last child. */
#pragma once

#include <sublet/err.h>
#include <sublet/buf.h>
#include <cjson/cJSON.h>

struct json_limits {
    unsigned depth; /* nesting */
    size_t nodes;
};
extern const struct json_limits JSON_LIMITS; /* 256 deep, 1,000,000 nodes */

/* A duplicate key (the last value wins, as in Go); path like `spec.containers[0].name`. */
typedef void (*json_duplicate_cb)(void *ctx, struct str path);

/* JSON -> tree. The input may be freed afterwards. Error: BAD_REQUEST with offset and reason. */
int json_parse(struct arena *a, struct str text, cJSON **ret, struct err *err) MUST_CHECK;
int json_parse_strict(struct arena *a, struct str text, const struct json_limits *limits,
                      json_duplicate_cb duplicate, void *ctx, cJSON **ret,
                      struct err *err) MUST_CHECK;
void json_print(struct buf *b, const cJSON *node);
void json_print_pretty(struct buf *b, const cJSON *node); /* two blanks, like kubectl get -o json */
struct str json_text(struct arena *a, const cJSON *node); /* printed, NUL-terminated */

/* Look-ups: exact keys; NULL in gives NULL out, so they chain. */
cJSON *json_get(const cJSON *object, const char *key);
cJSON *json_get_str(const cJSON *object, struct str key);
cJSON *json_at(const cJSON *array, size_t index);
/* Dotted path of object keys, "metadata.labels"; no arrays, no escapes. */
cJSON *json_path(const cJSON *node, const char *path);
size_t json_count(const cJSON *node); /* children of an array or object */
/* True when node nests more than depth containers. Code that composes trees (patches that copy)
 * checks before printing: beyond 10,000 the printer fails its buffer. */
bool json_deeper(const cJSON *node, unsigned depth);
cJSON *json_first(const cJSON *parent); /* its first child, or NULL */
#define json_each(item, parent) for (cJSON *item = json_first(parent); item; item = item->next)

bool json_is_object(const cJSON *node); /* false for NULL, all of these */
bool json_is_array(const cJSON *node);
bool json_is_string(const cJSON *node);
bool json_is_number(const cJSON *node);
bool json_is_bool(const cJSON *node);
bool json_is_null(const cJSON *node);   /* JSON null, not NULL */
bool json_is_scalar(const cJSON *node); /* a string, number or bool */
bool json_true(const cJSON *node);
const char *json_type_name(const cJSON *node); /* "object", "string", ... as Go names them */
struct str json_key(const cJSON *member);      /* the key of an object's member */
struct str json_str(const cJSON *node);        /* STR_NULL unless a string */
struct str json_str_at(const cJSON *node, const char *path);
/* Copies of the strings of a list, empty for an item that is none; no items without a list. */
struct str_list json_str_list(struct arena *a, const cJSON *list);
bool json_list_has(const cJSON *list, struct str text); /* one of its strings is this */
bool json_i64(const cJSON *node, int64_t *ret);         /* an integral number that fits, exactly */
int64_t json_i64_at(const cJSON *node, const char *path, int64_t otherwise);
bool json_equal(const cJSON *a, const cJSON *b); /* objects regardless of order; 1 equals 1.0 */

/* Builders. Strings are copied into the arena. */
cJSON *json_new_object(struct arena *a);
cJSON *json_new_array(struct arena *a);
cJSON *json_new_string(struct arena *a, struct str s);
cJSON *json_new_i64(struct arena *a, int64_t value);
cJSON *json_new_double(struct arena *a, double value);
cJSON *json_new_bool(struct arena *a, bool value);
cJSON *json_new_null(struct arena *a);
cJSON *json_copy(struct arena *a, const cJSON *node);
/* Sets (replaces in place or appends) a member and returns item. item is detached and not shared.
 */
cJSON *json_set(struct arena *a, cJSON *object, const char *key, cJSON *item);
cJSON *json_set_first(struct arena *a, cJSON *object, const char *key, cJSON *item);
cJSON *json_set_str(struct arena *a, cJSON *object, const char *key, struct str value);
cJSON *json_set_i64(struct arena *a, cJSON *object, const char *key, int64_t value);
cJSON *json_set_bool(struct arena *a, cJSON *object, const char *key, bool value);
/* Appends a member whose key is not there yet. The key is not copied: it outlives the tree. */
cJSON *json_add(cJSON *object, const char *key, cJSON *item);
cJSON *json_append(cJSON *array, cJSON *item);                              /* returns item */
cJSON *json_ensure_object(struct arena *a, cJSON *object, const char *key); /* get or add {} */
cJSON *json_ensure_path(struct arena *a, cJSON *object, const char *dotted);
void json_remove(cJSON *object, const char *key);
void json_detach(cJSON *parent, cJSON *child);
void json_replace(cJSON *parent, cJSON *child, cJSON *with); /* keeps the place and the key */
