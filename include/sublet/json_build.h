/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Objects written down as they look:
 *
 *     json_object(a, JSON("kind", "Event"), JSON_I64("count", 1),
 *                 JSON("metadata", json_object(a, JSON("name", name))),
 *                 JSON_NONEMPTY("message", message))
 *
 * The type of a value decides what JSON() makes of it: a struct str or a C string becomes a string,
 * a node is taken over, not copied. Another type does not compile: an int is a number or, as the
 * result of a comparison, a bool, so JSON_I64() and JSON_BOOL() say which. A NULL node leaves its
 * member out, a NULL string is "". Up to 32 members. */
#pragma once

#include <sublet/json.h>

struct json_member {
    const char *key; /* a literal: nodes point to it */
    union {
        const char *string;
        cJSON *node;
        int64_t number;
    };
    size_t length; /* of the string, or one of the following */
};
#define JSON_LENGTH_C      SIZE_MAX       /* up to its NUL */
#define JSON_LENGTH_NODE   (SIZE_MAX - 1) /* no string but a node, a number ... */
#define JSON_LENGTH_I64    (SIZE_MAX - 2)
#define JSON_LENGTH_BOOL   (SIZE_MAX - 3)
#define JSON_LENGTH_ABSENT (SIZE_MAX - 4)

static inline struct json_member json_member_str(const char *key, struct str value)
{
    return (struct json_member){key, {.string = value.p}, value.n};
}

static inline struct json_member json_member_nonempty(const char *key, struct str value)
{
    return (struct json_member){key, {.string = value.p}, value.n ? value.n : JSON_LENGTH_ABSENT};
}

static inline struct json_member json_member_c(const char *key, const char *value)
{
    return (struct json_member){key, {.string = value}, JSON_LENGTH_C};
}

static inline struct json_member json_member_i64(const char *key, int64_t value)
{
    return (struct json_member){key, {.number = value}, JSON_LENGTH_I64};
}

static inline struct json_member json_member_bool(const char *key, bool value)
{
    return (struct json_member){key, {.number = value}, JSON_LENGTH_BOOL};
}

static inline struct json_member json_member_node(const char *key, cJSON *value)
{
    return (struct json_member){key, {.node = value}, JSON_LENGTH_NODE};
}

/* One member. The key is a literal. */
#define JSON(key, value)                                                                           \
    _Generic((value),                                                                              \
        struct str: json_member_str,                                                               \
        char *: json_member_c,                                                                     \
        const char *: json_member_c,                                                               \
        cJSON *: json_member_node)("" key, (value))
#define JSON_I64(key, value)      json_member_i64("" key, (value))
#define JSON_BOOL(key, value)     json_member_bool("" key, (value))
#define JSON_NONEMPTY(key, value) json_member_nonempty("" key, (value)) /* left out when empty */

/* How many arguments there are. */
#define JSON_COUNT(...)                                                                            \
    JSON_COUNT_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,   \
                15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define JSON_COUNT_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17,    \
                    _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, n,  \
                    ...)                                                                           \
    n

/* A new object of these members, whose keys differ. */
#define json_object(a, ...)                                                                        \
    json_build((a), JSON_COUNT(__VA_ARGS__), (const struct json_member[]){__VA_ARGS__})
/* Sets them in an object, which is returned: each replaces its member or becomes the last one. */
#define json_put(a, object, ...)                                                                   \
    json_put_members((a), (object), JSON_COUNT(__VA_ARGS__),                                       \
                     (const struct json_member[]){__VA_ARGS__})
/* A new array of these nodes; a NULL is left out. */
#define json_array(a, ...)                                                                         \
    json_build_array((a), JSON_COUNT(__VA_ARGS__), (cJSON *const[]){__VA_ARGS__})

cJSON *json_build(struct arena *a, size_t n, const struct json_member *members);
cJSON *json_put_members(struct arena *a, cJSON *object, size_t n,
                        const struct json_member *members);
cJSON *json_build_array(struct arena *a, size_t n, cJSON *const *items);
