/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the validations of many kinds are made of. Each adds its errors to e, in
 * upstream's words; those that return bool return whether nothing was. Internal to vapi/kinds. */
#pragma once

#include "names.h"

#include <sublet/field.h>
#include <sublet/object.h>
#include <sublet/selector.h>
#include <sublet/str.h>

#define NEGATIVE  "must be greater than or equal to 0"
#define IMMUTABLE "field is immutable"
/* Items of a list, each with its path under up, which lasts as long as its turn. */
#define field_each(item, at, up, list)                                                             \
    for (struct field_path at##_of = {.parent = (up), .is_index = true}, *at = &at##_of; at;       \
         at = NULL)                                                                                \
        for (cJSON *item = json_first(list); item; item = item->next, at##_of.index++)
/* The same of the list that is a member of object, which is at up. */
#define member_each(item, at, up, object, name)                                                    \
    field_each(item, at, FIELD(up, name), json_get(object, name))
/* Errors in words with values in them. */
#define field_invalid_printf(e, p, value, ...)                                                     \
    field_invalid(e, p, value, problem_printf((e)->arena, __VA_ARGS__))
#define field_invalid_str_printf(e, p, value, ...)                                                 \
    field_invalid_str(e, p, value, problem_printf((e)->arena, __VA_ARGS__))
#define field_forbidden_printf(e, p, ...)                                                          \
    field_forbidden(e, p, problem_printf((e)->arena, __VA_ARGS__))
#define field_required_printf(e, p, ...)                                                           \
    field_required(e, p, problem_printf((e)->arena, __VA_ARGS__))
#define problem_printf(a, ...) arena_printf(a, __VA_ARGS__).p
/* A path of one name under another, as a variable: AT(spec, NULL, "spec"). */
#define AT(variable, up, text) const struct field_path *variable = FIELD(up, text)

extern const struct field_path KINDS_SPEC, KINDS_STATUS;

/* ---- strings ---- */
bool kinds_one_of(struct str s, const char *const *list); /* list: NULL-ended */
/* Not empty, of letters and digits of ASCII and of these characters. */
bool kinds_is_made_of(struct str s, const char *others);
bool check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                struct str s);
bool check_given(struct field_errors *e, const struct field_path *p, struct str s); /* not empty */
/* One of the supported values; an empty one is required to be set. */
bool check_enum(struct field_errors *e, const struct field_path *p, struct str s,
                const char *const *supported);
/* The same, where an absent value is fine. */
bool check_enum_if(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *const *supported);
bool check_config_key(struct field_errors *e, const struct field_path *p, struct str key);
bool check_env_name(struct field_errors *e, const struct field_path *p, struct str name);
bool check_port_name(struct field_errors *e, const struct field_path *p, struct str name);
/* A DNS subdomain whose labels may have underscores. */
bool check_underscored_name(struct field_errors *e, const struct field_path *p, struct str name);
bool check_ip(struct field_errors *e, const struct field_path *p, struct str ip);
const char *check_ip_problem(struct str ip); /* the problem of an address; NULL: none */
const char *check_canonical_ip_problem(struct arena *a, struct str ip);
bool check_canonical_cidr(struct field_errors *e, const struct field_path *p, struct str cidr);
/* An address with the length of its network, in its one form. */
bool check_interface(struct field_errors *e, const struct field_path *p, struct str address);
/* Whether inner is a strict part of cidr. */
bool check_cidr_contains(struct str cidr, struct str inner);
/* "example.com/path", with a path of HTTP. */
bool check_domain_prefixed_path(struct field_errors *e, const struct field_path *p,
                                struct str text);
bool check_cidr(struct field_errors *e, const struct field_path *p, struct str cidr);
/* The same, but what was accepted before stays so: the strings of a list. */
bool check_legacy_ip(struct field_errors *e, const struct field_path *p, struct str ip,
                     const cJSON *accepted);
bool check_legacy_cidr(struct field_errors *e, const struct field_path *p, struct str cidr,
                       const cJSON *accepted);
/* Not unspecified, loopback or link-local. */
void check_endpoint_ip(struct field_errors *e, const struct field_path *p, struct str ip);
bool kinds_is_ip(struct arena *a, struct str text); /* also with leading zeros */
bool kinds_is_ipv6(struct str ip);                  /* of an address */
void check_annotations(struct field_errors *e, const struct field_path *p, const cJSON *map);
bool kinds_is_absolute(struct str path);
bool check_no_backsteps(struct field_errors *e, const struct field_path *p, struct str path);
void check_descending_path(struct field_errors *e, const struct field_path *p, struct str path);
void check_local_path(struct field_errors *e, const struct field_path *p, struct str path);
struct str kinds_lower_case(struct arena *a, struct str s);
struct str kinds_trimmed(struct str s); /* without white space around it */

/* ---- numbers ---- */
bool check_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_positive(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_range(struct field_errors *e, const struct field_path *p, const cJSON *number,
                 long long low, long long high);
/* Of a Linux user or group, and a list of them. */
bool check_user_id(struct field_errors *e, const struct field_path *p, const cJSON *number);
void check_user_ids(struct field_errors *e, const struct field_path *p, const cJSON *list);
bool check_port(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_port_or_name(struct field_errors *e, const struct field_path *p, const cJSON *port);
void check_file_mode(struct field_errors *e, const struct field_path *p, const cJSON *mode);
/* Members that must not be negative: {"replicas", ..., NULL}; absent ones are fine. */
void check_all_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *object,
                           const char *const *names);
/* "25%" or a number: nonnegative and, as a percentage, well-formed. */
bool check_int_or_percent(struct field_errors *e, const struct field_path *p, const cJSON *value);
bool check_not_over_100(struct field_errors *e, const struct field_path *p, const cJSON *value);
/* The number or percentage a value says, 0 when it says none. */
int64_t kinds_int_or_percent(const cJSON *value);

/* The expirationSeconds of a service account token. */
void check_token_lifetime(struct field_errors *e, const struct field_path *p, const cJSON *seconds);

/* ---- quantities ---- */
bool kinds_is_extended_resource(struct str name);
bool kinds_is_native_resource(struct str name);
bool kinds_is_huge_pages(struct str name);
bool kinds_is_standard_resource(struct str name);
bool check_resource_name(struct field_errors *e, const struct field_path *p, struct str name);
void check_resource_value(struct field_errors *e, const struct field_path *p, struct str name,
                          const cJSON *value);

/* A quantity. */
void check_not_negative(struct field_errors *e, const struct field_path *p, const cJSON *quantity);

/* ---- objects ---- */
/* Where Go prints a nil pointer as null there is nothing either. */
const cJSON *kinds_given(const cJSON *object, const char *path);
bool kinds_same_value(const cJSON *a, const cJSON *b); /* nothing equals nothing */
bool check_immutable(struct field_errors *e, const struct field_path *p, const cJSON *value,
                     const cJSON *old);
void check_immutable_text(struct field_errors *e, const struct field_path *p, const cJSON *value,
                          const cJSON *old); /* where nothing is shown as "" */

/* Of a requirement at p: whether its operator takes as many values. */
void check_selector_values(struct field_errors *e, const struct field_path *p, struct str op,
                           const cJSON *values);
void check_reason(struct field_errors *e, const struct field_path *p, struct str reason);
bool kinds_same_at(const cJSON *a, const cJSON *b, const char *path);
/* Whether a string of object has this value. */
bool kinds_text_is(const cJSON *object, const char *path, const char *text);
/* False, and reported, when a list has more items. */
bool check_list_size(struct field_errors *e, const struct field_path *p, const cJSON *list,
                     size_t most);
/* The name of a CSI or device driver. */
void check_driver_name(struct field_errors *e, const struct field_path *p, struct str driver);
