/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * Trees to protobuf, over the built-in type table. schema.h has the decoder. */
#pragma once

#include <sublet/json.h>

/* A tree with apiVersion and kind as an envelope (`k8s\0`, runtime.Unknown), in the arena. False
 * when the kind has no message. */
bool proto_encode(struct arena *a, const cJSON *object, struct str *ret) MUST_CHECK;
/* The same for a list whose items come one by one, so that only one of them is held. Each item is
 * encoded twice: once to compute the total length, then to be sent. */
struct proto_list {
    uint32_t root, item; /* nodes of the type table */
    unsigned number;     /* of the field the items are in */
};
/* frame: the list (or Table) with `items` (or `rows`) empty. False when the kind has no message. */
bool proto_list_open(const cJSON *frame, const char *items, struct proto_list *ret) MUST_CHECK;
/* One item in its form inside the list. */
struct str proto_list_item(struct arena *a, const struct proto_list *l, const cJSON *item);
/* The bytes before and after the items, which are n bytes together. */
void proto_list_ends(struct arena *a, const struct proto_list *l, const cJSON *frame, size_t n,
                     struct str *ret_head, struct str *ret_tail);
/* One frame of a watch: its length, and the WatchEvent around the object's envelope. */
bool proto_encode_event(struct arena *a, struct str type, const cJSON *object,
                        struct str *ret) MUST_CHECK;
