/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * Label and field selectors, and label sets as flat bytes. A label set is the concatenation of
 * "key\0value\0" pairs sorted by key: it is what the store keeps beside every object. */
#pragma once

#include <sublet/json.h>

enum selector_op { SEL_EQ, SEL_NE, SEL_IN, SEL_NOT_IN, SEL_EXISTS, SEL_NOT_EXISTS, SEL_GT, SEL_LT };

struct selector_term {
    struct str key;
    enum selector_op op;
    size_t n_values;
    const struct str *values;
};

/* All terms must hold; zero terms match everything; `nothing` matches nothing. */
struct selector {
    size_t n;
    const struct selector_term *terms;
    bool nothing;
};

#define SELECTOR_MAX_TERMS 256

/* "a=b,c!=d,e in (f,g),!h". Error: BAD_REQUEST in upstream's words. Strings are copied into a. */
int selector_parse(struct arena *a, struct str text, struct selector *ret,
                   struct err *err) MUST_CHECK;
/* "metadata.name=x,status.phase!=Running": =, ==, != only, backslash escapes. */
int selector_parse_fields(struct arena *a, struct str text, struct selector *ret,
                          struct err *err) MUST_CHECK;
/* A metav1.LabelSelector object (matchLabels, matchExpressions). NULL or null: matches nothing;
 * {}: everything. */
int selector_from_json(struct arena *a, const cJSON *selector, struct selector *ret,
                       struct err *err) MUST_CHECK;
/* A plain map (Service, ReplicationController). NULL or empty: matches nothing. */
void selector_from_map(struct arena *a, const cJSON *map, struct selector *ret);
bool selector_match(const struct selector *s, struct str labels);
struct str selector_format(struct arena *a,
                           const struct selector *s); /* canonical form, for /scale */

/* {"a":"b"} -> flat set (non-string values are left out). NULL gives STR_NULL. */
struct str labels_flatten(struct arena *a, const cJSON *map);
bool labels_get(struct str labels, struct str key, struct str *ret_value);
/* Cuts the first pair off *rest: while (labels_next(&rest, &key, &value)) ... */
bool labels_next(struct str *rest, struct str *ret_key, struct str *ret_value);

/* Syntax of names (apimachinery pkg/util/validation). Writes upstream's messages, one for each
 * thing that is wrong, and returns their number: 0 when s is right. */
enum name_rule {
    NAME_DNS1123_LABEL,
    NAME_DNS1123_SUBDOMAIN,
    NAME_DNS1035_LABEL,
    NAME_PATH_SEGMENT,
    NAME_QUALIFIED,
    NAME_LABEL_VALUE,
};
#define NAME_MESSAGES_MAX 4
size_t name_check(enum name_rule rule, struct str s, const char *ret[NAME_MESSAGES_MAX]);
/* The same, but only the first message; NULL when right. */
const char *name_check_dns1123_label(struct str s);
const char *name_check_dns1123_subdomain(struct str s);
const char *name_check_dns1035_label(struct str s);
const char *name_check_path_segment(struct str s);
const char *name_check_qualified(struct str s); /* label and annotation keys */
bool name_has_domain(struct str s); /* a qualified name with a prefix: "nvidia.com/gpu" */
const char *name_check_label_value(struct str s);
