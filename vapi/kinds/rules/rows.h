/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows about one value: whether it is there, what it may be, what an update may make of it.
 * Internal to vapi/kinds. */
#pragma once

#include "rules.h"

/* Something must be there; words may be "". MISSING: in rows of a condition. */
#define REQUIRED(path, words_)   RULE(path, required, .words = (words_)) /* any value */
#define MISSING(path, words_)    RULE(path, missing, .words = (words_))
#define ALL_GIVEN(path, ...)     RULE(path, all_given, .values = NAMES(__VA_ARGS__)) /* members */
#define GIVEN(path)              RULE(path, given, .words = "") /* a string, not empty */
#define GIVEN_ELSE(path, words_) RULE(path, given, .words = (words_))
#define SOME(path, words_)       RULE(path, some, .words = (words_)) /* items or members */
#define SOME_OF(path, words_, ...)                                                                 \
    RULE(path, some_of, .words = (words_), .values = NAMES(__VA_ARGS__)) /* in one of the members */
#define FORBIDDEN(path, words_) RULE(path, forbidden, .words = (words_))
#define NO_ITEMS(path, words_)  RULE(path, no_items, .words = (words_)) /* empty: it is printed */
#define INVALID(path, words_)   RULE(path, invalid, .words = (words_))  /* whatever it is */
/* The same, shown as this string; as no value, even where there is none. */
#define INVALID_AS(path, shown, words_) RULE(path, invalid_as, .other = (shown), .words = (words_))
#define INVALID_BARE(path, words_)      RULE(path, invalid_bare, .words = (words_))
#define NOT_TRUE(path, words_)          RULE(path, not_true, .words = (words_))
/* Strings that are right, or wrong, in words of their own; absent is "". */
#define IN(path, values_, words_)                                                                  \
    RULE(path, in, .values = (values_), .presence = EVEN_ABSENT, .words = (words_))
#define IN_IF_SET(path, values_, words_)                                                           \
    RULE(path, in, .values = (values_), .presence = IF_SET, .words = (words_))
#define NOT_IN(path, values_, words_) RULE(path, not_in, .values = (values_), .words = (words_))
#define MUST_BE(path, is_, words)     IN(path, NAMES(is_), words)
#define NOT_BLANK(path, words_)       RULE(path, not_blank, .words = (words_)) /* more than space */

/* One of the values. ENUM: required, in words of its own (_SAID); _IF_SET: "" is none; _IF_GIVEN:
 * it may be absent, but not ""; _ALWAYS: absent is "", an unsupported value. _GIVEN: required, and
 * "" is one of the wrong values. */
#define ENUM_WHERE(path, values_, presence_, words_)                                               \
    RULE(path, enum, .values = (values_), .presence = (presence_), .words = (words_))
#define ENUM(path, values)              ENUM_WHERE(path, values, REQUIRE_SET, "")
#define ENUM_SAID(path, values, words_) ENUM_WHERE(path, values, REQUIRE_SET, words_)
#define ENUM_IF_SET(path, values)       ENUM_WHERE(path, values, IF_SET, NULL)
#define ENUM_IF_GIVEN(path, values)     ENUM_WHERE(path, values, IF_GIVEN, NULL)
#define ENUM_GIVEN(path, values)        ENUM_WHERE(path, values, REQUIRE_GIVEN, "")
#define ENUM_ALWAYS(path, values)       ENUM_WHERE(path, values, EVEN_ABSENT, NULL)
/* Each item; wrong ones are reported at the item, or (_LIST) at the list. */
#define EACH_ENUM(path, values)       EACH(path, ENUM_IF_GIVEN(NULL, values))
#define EACH_ENUM_LIST(path, values_) RULE(path, each_enum_list, .values = (values_))
/* The type of the value; a wrong one is reported at the value. */
#define ENUM_TYPE(path, values_) RULE(path, enum_type, .values = (values_))

/* A form of names; the suffixes mean the same. */
#define NAME_WHERE(path, name_, presence_, words_)                                                 \
    RULE(path, name, .name = (name_), .presence = (presence_), .words = (words_))
#define NAME(path, form)             NAME_WHERE(path, NAME_##form, REQUIRE_SET, "")
#define NAME_SAID(path, form, words) NAME_WHERE(path, NAME_##form, REQUIRE_SET, words)
#define NAME_ALWAYS(path, form)      NAME_WHERE(path, NAME_##form, EVEN_ABSENT, NULL)
#define NAME_IF_SET(path, form)      NAME_WHERE(path, NAME_##form, IF_SET, NULL)
#define NAME_IF_GIVEN(path, form)    NAME_WHERE(path, NAME_##form, IF_GIVEN, NULL)
#define EACH_NAME(path, form)        EACH(path, NAME_ALWAYS(NULL, form))

/* Numbers; absent ones are right unless it says otherwise. NONNEGATIVES: of members of path. */
#define NONNEGATIVE(path)        TEST(path, check_nonnegative)
#define NONNEGATIVES(path, ...)  RULE(path, nonnegatives, .values = NAMES(__VA_ARGS__))
#define POSITIVE(path)           TEST(path, check_positive) /* absent is 0 */
#define RANGE(path, low_, high_) RULE(path, range, .low = (low_), .high = (high_))
#define AT_LEAST(path, low_, words_)                                                               \
    RULE(path, range_else, .low = (low_), .high = LLONG_MAX, .words = (words_))
#define AT_MOST_NUMBER(path, high_)                                                                \
    RULE(path, range_else, .low = LLONG_MIN, .high = (high_),                                      \
         .words = "must be less than or equal to " #high_)
#define RANGE_ELSE(path, low_, high_, words_)                                                      \
    RULE(path, range_else, .low = (low_), .high = (high_), .words = (words_))
#define USER_ID(path)             RANGE(path, 0, INT32_MAX) /* of Linux, or a group */
#define FILE_MODE(path)           CHECK_ALWAYS(path, check_file_mode)
#define PORT(path)                TEST(path, check_port) /* absent is 0 */
#define PORT_OR_NAME(path)        TEST(path, check_port_or_name)
#define INT_OR_PERCENT(path)      TEST(path, check_int_or_percent)
#define AT_MOST_100_PERCENT(path) TEST(path, check_not_over_100)

/* No more than the number at another path of the object; members of path. */
#define ALL_AT_MOST(path, other_, ...)                                                             \
    RULE(path, all_at_most, .other = (other_), .words = "cannot be greater than " other_,          \
         .values = NAMES(__VA_ARGS__))
/* The same of one. */
#define AT_MOST(path, other_)                                                                      \
    RULE(path, at_most, .other = (other_), .words = "cannot be greater than " other_)
#define AT_MOST_ELSE(path, other_, words_) RULE(path, at_most, .other = (other_), .words = (words_))
/* Of an update: no less than it was; a number that is gone is. */
#define NOT_DECREASED(path) RULE(path, not_decreased)

#define MAX_LENGTH(path, most) RULE(path, max_length, .high = (most))
#define MAX_ITEMS(path, most)  RULE(path, max_items, .high = (most))
/* The same, in words of their own. */
#define MAX_LENGTH_ELSE(path, most, words_)                                                        \
    RULE(path, max_length, .high = (most), .words = (words_))
#define MAX_ITEMS_ELSE(path, most, words_) RULE(path, max_items, .high = (most), .words = (words_))
/* "*" is the one item of a list; others: what the list has besides. */
#define STAR_ALONE(path, others) RULE(path, star_alone, .words = (others))

/* Of an update: the value is that of the object before. ALL: members of path. */
#define ALL_FIXED(path, ...)               RULE(path, all_fixed, .values = NAMES(__VA_ARGS__))
#define FIXED(path)                        RULE(path, fixed)
#define FIXED_TEXT(path)                   RULE(path, fixed_text) /* absent is shown as "" */
#define FIXED_ELSE_FORBIDDEN(path, words_) RULE(path, fixed_else_forbidden, .words = (words_))
/* Not from something to something else. */
#define FIXED_ONCE_SET(path, words_) RULE(path, fixed_once_set, .words = (words_))

#define LABELS(path)         CHECK_ALWAYS(path, validate_labels)
#define LABEL_SELECTOR(path) CHECK_ALWAYS(path, validate_label_selector)
#define CONDITIONS(path)     EACH(path, ALL(RULES_CONDITION)) /* metav1.Conditions */
#define DRIVER_NAME(path)    CHECK_STR(path, check_driver_name)

/* Strings of a list, or members `key` of its items, each once; reported at the item. */
#define UNIQUE(path, key) RULE(path, unique, .words = (key))
#define UNIQUE_OF_AT_MOST(path, most, key)                                                         \
    RULE(path, unique_of_at_most, .high = (most), .words = (key))
/* In rows of EACH: no earlier item has this; one such row a list. */
#define ONCE(path)        RULE(path, once, .presence = EVEN_ABSENT)
#define ONCE_IF_SET(path) RULE(path, once, .presence = IF_SET)

/* Required; then the function. */
#define GIVEN_STR(path, function) RULE(path, given_str, .test_str = (function))

extern const struct rule RULES_CONDITION[7];
rule_cb rule_required, rule_missing, rule_given, rule_all_given, rule_some, rule_some_of,
    rule_forbidden, rule_no_items, rule_invalid, rule_invalid_as, rule_invalid_bare, rule_not_true,
    rule_in, rule_not_in, rule_not_blank, rule_enum, rule_each_enum_list, rule_enum_type, rule_name,
    rule_nonnegatives, rule_range, rule_range_else, rule_all_at_most, rule_at_most,
    rule_not_decreased, rule_max_length, rule_max_items, rule_star_alone, rule_fixed,
    rule_all_fixed, rule_fixed_text, rule_fixed_else_forbidden, rule_fixed_once_set, rule_unique,
    rule_unique_of_at_most, rule_once, rule_given_str;
