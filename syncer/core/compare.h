/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What differs between a virtual object and the host object made of it. */
#pragma once

#include <sublet/json.h>
#include <sublet/translate_fields.h>

enum compare_op { COMPARE_CHANGED, COMPARE_ADDED, COMPARE_DROPPED };
struct compare_change {
    enum compare_op op;
    struct str path; /* "spec.containers[app].image" */
    /* The value on either side, NULL where there is none; an array of items where items of a list
     * with keys were added or dropped. */
    const cJSON *from, *to;
    const struct translate_field *row; /* NULL: a field that is not known */
    struct str reason;                 /* may be empty */
};
typedef void (*compare_cb)(void *ctx, const struct compare_change *change);
/* Calls each() for every change, in the order of the virtual object's fields. Pure; bounded by
 * steps, not by what a tenant wrote: false when it ended early. */
bool sync_compare(struct arena *a, struct str kind, const cJSON *virtual_, const cJSON *host,
                  compare_cb each, void *ctx);
/* What of `sent` is absent in the host's answer to it: each() gets COMPARE_DROPPED, the path and
 * `from`. Values may differ, what the host added does not count, nor do metadata and status. A path
 * names items by keys that are the same in both worlds, others by their number. Of any kind; the
 * same bound, and false likewise. */
bool sync_compare_kept(struct arena *a, const cJSON *sent, const cJSON *answer, compare_cb each,
                       void *ctx);
/* One word: "changed", "added", "dropped". */
const char *sync_compare_word(enum compare_op op);

/* The changes that the author of an object should see, as Warnings of a dry run: bounded in number,
 * without values of the host. */
void sync_compare_warn(struct arena *a, struct str kind, const cJSON *virtual_, const cJSON *host,
                       void (*warn)(void *warn_ctx, struct str text), void *warn_ctx);
