/* SPDX-License-Identifier: Apache-2.0 */
/* Values: made, looked into, compared. Internal to vapi/cel. */
#pragma once

#include <sublet/cel.h>

struct cel_value cel_error(struct cel_run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct cel_value cel_no_overload(struct cel_run *r);
struct cel_value cel_bool(bool b);
struct cel_value cel_int(int64_t i);
struct cel_value cel_uint(uint64_t u);
struct cel_value cel_double(double d);
struct cel_value cel_null(void);
struct cel_value cel_type(struct str name);
struct cel_value cel_boxed(enum cel_kind kind, const void *p);
struct cel_value cel_some(struct cel_run *r, struct cel_value v);
struct cel_value cel_none(void);
struct cel_value cel_new_list(struct cel_run *r, const struct cel_value *items, size_t n);
struct str cel_kind_name(struct cel_value v);
/* Every list as one of values; what is JSON is charged as a walk. */
struct cel_list cel_items(struct cel_run *r, struct cel_value v);
struct cel_map cel_entries(struct cel_run *r, struct cel_value v);
size_t cel_size(struct cel_value v); /* of strings in characters */
size_t cel_measure(struct cel_run *r,
                   struct cel_value v); /* the same, charged where it is a walk */
bool cel_equal(struct cel_run *r, struct cel_value a, struct cel_value b);
/* False when they have no order. Charges for strings. */
bool cel_compare(struct cel_run *r, struct cel_value a, struct cel_value b, int *ret);
bool cel_find(struct cel_run *r, struct cel_value map, struct cel_value key, struct cel_value *ret);
struct cel_value cel_index(struct cel_run *r, struct cel_value from, struct cel_value at);
struct str cel_text(struct cel_run *r, struct cel_value v); /* as string() prints it */
