/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Objects written down as they look:
 *
 *     json_object(a, JSON("kind", "Event"), JSON_I64("count", 1),
 *                 JSON("metadata", json_object(a, JSON("name", name))),
 *                 JSON_IF(message.n, "message", message))
 *
 * The type of a value decides what JSON() makes of it: a struct str or a C string becomes a string,
 * a node is taken over, not copied. Another type does not compile: an int is a number or, as the
 * result of a comparison, a bool, so JSON_I64() and JSON_BOOL() say which. A NULL node leaves its
 * member out, a NULL string is "". */
#pragma once

#include <sublet/json.h>

enum json_member_kind {
    JSON_MEMBER_END,
    JSON_MEMBER_ABSENT,
    JSON_MEMBER_STR,
    JSON_MEMBER_I64,
    JSON_MEMBER_BOOL,
    JSON_MEMBER_NODE
};

struct json_member {
    const char *key; /* a literal: nodes point to it */
    enum json_member_kind kind;
    union {
        struct str str;
        int64_t i64;
        bool boolean;
        cJSON *node;
    };
};

static inline struct json_member json_member_str(const char *key, struct str value)
{
    return (struct json_member){key, JSON_MEMBER_STR, {.str = value}};
}

static inline struct json_member json_member_c(const char *key, const char *value)
{
    return json_member_str(key, str_c(value));
}

static inline struct json_member json_member_i64(const char *key, int64_t value)
{
    return (struct json_member){key, JSON_MEMBER_I64, {.i64 = value}};
}

static inline struct json_member json_member_bool(const char *key, bool value)
{
    return (struct json_member){key, JSON_MEMBER_BOOL, {.boolean = value}};
}

static inline struct json_member json_member_node(const char *key, cJSON *value)
{
    return (struct json_member){
        key, value ? JSON_MEMBER_NODE : JSON_MEMBER_ABSENT, {.node = value}};
}

/* One member. The key is a literal. */
#define JSON(key, value)                                                                           \
    _Generic((value),                                                                              \
        struct str: json_member_str,                                                               \
        char *: json_member_c,                                                                     \
        const char *: json_member_c,                                                               \
        cJSON *: json_member_node)("" key, (value))
#define JSON_I64(key, value)  json_member_i64("" key, (value))
#define JSON_BOOL(key, value) json_member_bool("" key, (value))
/* A member that is left out unless the condition holds. */
#define JSON_IF(condition, key, value)                                                             \
    ((condition) ? JSON(key, value) : (struct json_member){.kind = JSON_MEMBER_ABSENT})
#define JSON_MEMBERS(...) ((const struct json_member[]){__VA_ARGS__, {0}})

/* A new object of these members, whose keys differ. */
#define json_object(a, ...) json_build((a), JSON_MEMBERS(__VA_ARGS__))
/* Sets them in an object, which is returned: each replaces its member or becomes the last one. */
#define json_put(a, object, ...) json_put_members((a), (object), JSON_MEMBERS(__VA_ARGS__))
/* A new array of these nodes; a NULL is left out. */
#define json_array(a, ...)                                                                         \
    json_build_array((a), sizeof((cJSON *[]){__VA_ARGS__}) / sizeof(cJSON *),                      \
                     (cJSON *const[]){__VA_ARGS__})

cJSON *json_build(struct arena *a, const struct json_member *members); /* until JSON_MEMBER_END */
cJSON *json_put_members(struct arena *a, cJSON *object, const struct json_member *members);
cJSON *json_build_array(struct arena *a, size_t n, cJSON *const *items);
