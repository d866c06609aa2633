/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation as rows, in upstream's order: each names a member and what it must be; CALL is for
 * logic across fields. A row adds its errors to the list and never stops the rows after it.
 * Internal to vapi/kinds. */
#pragma once

#include "check.h"
#include "enums.h"

#include <limits.h>

/* A value under validation. */
struct check {
    struct field_errors *e;
    const struct field_path *at;
    const cJSON *value, *old;     /* old: the same place of the object that an update replaces */
    const cJSON *object, *before; /* the whole object; what an update replaces, or NULL */
    const cJSON *list;            /* of rows of EACH: what the item is in */
    struct names *seen;           /* of ONCE: what earlier items of the list have */
    const void *context;          /* of the caller of rules_check() */
};

struct rule;
typedef void rule_cb(const struct check *c, const struct rule *rule);

/* Which values rows of enums and names look at; a missing one is reported where it is required. */
enum presence { REQUIRE_SET, REQUIRE_GIVEN, IF_SET, IF_GIVEN, EVEN_ABSENT };

struct rule {
    const char *path; /* of a member, dotted; NULL: the value itself */
    rule_cb *check;
    union {
        const char *words;          /* of the error; NULL: upstream's common ones */
        const char *const *members; /* of WHEN_ALL, WHEN_ANY, WHEN_NONE */
    };
    union {
        const char *other; /* of AT_MOST, WHEN, INVALID_AS */
        long long high;
    };
    union {
        long long low;
        size_t n; /* of rows */
    };
    union {
        const char *const *values; /* of an enum, NULL-ended */
        const struct rule *rows;   /* of what is inside */
        void (*call)(const struct check *c);
        void (*call_value)(struct field_errors *e, const struct field_path *p, const cJSON *value);
        bool (*test_value)(struct field_errors *e, const struct field_path *p, const cJSON *value);
        void (*call_str)(struct field_errors *e, const struct field_path *p, struct str value);
        bool (*test_str)(struct field_errors *e, const struct field_path *p, struct str value);
    };
    enum name_rule name;
    enum presence presence;
};

/* Null is nothing here: where Go prints a nil pointer or list as null there is no value. */
void rules_check(const struct check *c, const struct rule *rules, size_t n);
/* The same of a value that no rule led to: the parts that several kinds contain. */
void rules_check_value(struct field_errors *e, const struct field_path *p, const cJSON *value,
                       const void *context, const struct rule *rules, size_t n);

/* ---- rows of rows and of functions; rows.h has those about one value ---- */

/* Short names, categories, members, values: a NULL-ended list. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

#define RULE(path_, how, ...)                                                                      \
    {                                                                                              \
        .path = (path_), .check = rule_##how, __VA_ARGS__                                          \
    }
/* Rows in rows; of tables outside of functions only. */
#define ROWS_INSIDE(...)                                                                           \
    .rows = (const struct rule[]){__VA_ARGS__},                                                    \
    .n = sizeof((const struct rule[]){__VA_ARGS__}) / sizeof(struct rule)

/* Rows about a member that is there; about each item of a list; of a create or an update only. */
#define WITHIN(path, ...) RULE(path, within, ROWS_INSIDE(__VA_ARGS__))
#define INSIDE(path, ...) RULE(path, inside, ROWS_INSIDE(__VA_ARGS__)) /* absent is empty */
/* The rows of a table. */
#define ALL(rows_)      RULE(NULL, inside, .rows = (rows_), .n = COUNT(rows_))
#define EACH(path, ...) RULE(path, each, ROWS_INSIDE(__VA_ARGS__))
/* The same of a list that has at most so many items; of one that has more nothing else is said. */
#define EACH_OF_AT_MOST(path, most, ...)                                                           \
    RULE(path, each_of_at_most, .high = (most), ROWS_INSIDE(__VA_ARGS__))
#define EACH_OF_AT_MOST_ELSE(path, most, words_, ...)                                              \
    RULE(path, each_of_at_most, .high = (most), .words = (words_), ROWS_INSIDE(__VA_ARGS__))
/* When a member of the value is this string. */
#define WHEN(path, member, is_, ...)                                                               \
    RULE(path, when, .other = (member), .words = (is_), ROWS_INSIDE(__VA_ARGS__))
#define UNLESS(path, member, is_, ...)                                                             \
    RULE(path, unless, .other = (member), .words = (is_), ROWS_INSIDE(__VA_ARGS__))
/* When a string is set, or is empty. */
#define WHEN_SET(path, member, ...)                                                                \
    RULE(path, when_set, .other = (member), ROWS_INSIDE(__VA_ARGS__))
#define WHEN_EMPTY(path, member, ...)                                                              \
    RULE(path, when_empty, .other = (member), ROWS_INSIDE(__VA_ARGS__))
/* When a member of the value is there, or is not. */
#define WHEN_GIVEN(path, member, ...)                                                              \
    RULE(path, when_given, .other = (member), ROWS_INSIDE(__VA_ARGS__))
#define UNLESS_GIVEN(path, member, ...)                                                            \
    RULE(path, unless_given, .other = (member), ROWS_INSIDE(__VA_ARGS__))
/* When all of several members of the value are there, some, or none; an empty list is not. */
#define WHEN_ALL(path, names, ...)                                                                 \
    RULE(path, when_all, .members = (names), ROWS_INSIDE(__VA_ARGS__))
#define WHEN_ANY(path, names, ...)                                                                 \
    RULE(path, when_any, .members = (names), ROWS_INSIDE(__VA_ARGS__))
#define WHEN_NONE(path, names, ...)                                                                \
    RULE(path, when_none, .members = (names), ROWS_INSIDE(__VA_ARGS__))
/* When a member is true. */
#define WHEN_TRUE(path, member, ...)                                                               \
    RULE(path, when_true, .other = (member), ROWS_INSIDE(__VA_ARGS__))
#define ON_CREATE(...) RULE(NULL, on_create, ROWS_INSIDE(__VA_ARGS__))
#define ON_UPDATE(...) RULE(NULL, on_update, ROWS_INSIDE(__VA_ARGS__))
/* Of a create, or of an update that changes the value: what was accepted once stays so. */
#define CHANGED(path, ...) RULE(path, changed, ROWS_INSIDE(__VA_ARGS__))
/* A function that takes its row, for what sets the uses of one function apart. */
#define ROW(path_, function, ...)                                                                  \
    {                                                                                              \
        .path = (path_), .check = (function), __VA_ARGS__                                          \
    }
/* Logic across fields. CALL sees the member, its old value and the object, also when it is absent;
 * CHECK only a value that is there. */
#define CALL(path, function)  RULE(path, call, .call = (function))
#define CHECK(path, function) RULE(path, call_value, .call_value = (function))
#define CHECK_ALWAYS(path, function)                                                               \
    RULE(path, call_always, .call_value = (function)) /* absent: NULL */
#define TEST(path, function)      RULE(path, test_value, .test_value = (function))
#define CHECK_STR(path, function) RULE(path, call_str, .call_str = (function)) /* absent: "" */
#define TEST_STR(path, function)  RULE(path, test_str, .test_str = (function))

/* The function of each item of a list. */
#define CHECK_EACH(path, function)     EACH(path, CHECK_ALWAYS(NULL, function))
#define CHECK_EACH_STR(path, function) EACH(path, CHECK_STR(NULL, function))

rule_cb rule_within, rule_inside, rule_each, rule_each_of_at_most, rule_when, rule_unless,
    rule_when_set, rule_when_empty, rule_when_given, rule_unless_given, rule_when_all,
    rule_when_any, rule_when_none, rule_when_true, rule_on_create, rule_on_update, rule_changed,
    rule_call, rule_call_value, rule_call_always, rule_test_value, rule_call_str, rule_test_str;
