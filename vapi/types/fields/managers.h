/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/types/fields)
 *
 * Shared by updates and applies: entries of managedFields, and the changes of a write in each of
 * the versions they refer to. */
#pragma once

#include "fields.h"

#define MAX_VERSIONS 16

enum change_state { CHANGE_KNOWN, CHANGE_NO_VERSION, CHANGE_FAILED };

struct change {
    struct str version;
    enum change_state state;
    struct field_diff diff;
};
/* Computed on first use. */
struct changes {
    const struct field_write *write;
    const cJSON *old, *now;
    struct err *err;
    struct change at[MAX_VERSIONS];
    size_t n;
};
enum change_state changes_of(struct changes *c, struct str version, const struct change **ret);
void changes_filter(const struct field_write *w, struct field_diff *d);

bool manager_is(const struct manager *x, const struct manager *y);
/* `{"manager":"x","operation":"Update","apiVersion":"v1"}`: the order of managers in messages. */
struct str manager_identity(struct arena *a, const struct manager *m);
struct manager *managers_find(const struct managers *m, const struct manager *like);
struct manager *managers_put(struct arena *a, struct managers *m, const struct manager *entry);
void managers_drop(struct managers *m, struct manager *entry);
void managers_reconcile(const struct field_write *w, struct managers *m);
/* Removes the changed fields from every manager. */
int managers_take(struct changes *c, struct managers *m);
struct field_set *managers_strip(struct arena *a, struct field_set *x);
