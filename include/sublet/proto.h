/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Trees to protobuf, over the built-in type table. The way in is in schema.h. */
#pragma once

#include <sublet/json.h>

/* A tree with apiVersion and kind as an envelope (`k8s\0`, runtime.Unknown), in the arena. False
 * when the kind has no message. */
bool proto_encode(struct arena *a, const cJSON *object, struct str *ret) MUST_CHECK;
/* One frame of a watch: its length, and the WatchEvent around the object's envelope. */
bool proto_encode_event(struct arena *a, struct str type, const cJSON *object,
                        struct str *ret) MUST_CHECK;
