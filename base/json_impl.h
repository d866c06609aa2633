/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * What the JSON files share. Must never be included outside base. */
#pragma once

#include <sublet/json.h>

/* No tree of ours is deeper than a decoder allows; code that recurses stops here all the same. */
enum { JSON_DEPTH_MAX = 10000 };

/* Above this many members an object is compared or filled through a sorted or hashed index. */
enum { JSON_SMALL = 16 };

/* The literal Go's encoding/json writes for a finite number, NUL-terminated; returns its length. */
size_t json_format_double(double value, char out[32]);

/* Links item as the last child. */
static inline void json_link(cJSON *parent, cJSON *item)
{
    item->next = NULL;
    if (parent->child) {
        item->prev = parent->child->prev;
        item->prev->next = item;
        parent->child->prev = item;
    } else {
        item->prev = item;
        parent->child = item;
    }
}
