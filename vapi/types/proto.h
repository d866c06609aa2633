/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the protobuf transcoder. */
#pragma once

#include "proto_wire.h"
#include <sublet/schema.h>

/* One body being decoded. */
struct proto {
    struct arena *arena;
    const struct schema *schema;
    struct err *err;
    size_t nodes; /* created so far; at most JSON_LIMITS.nodes */
};

/* Counts a node that will be created; -1 when the body has too many. */
int proto_count(struct proto *p) MUST_CHECK;
int proto_wrong_wire(struct proto *p, const struct wire_field *wire, const char *field) MUST_CHECK;
/* The value of a scalar kind (every kind but OBJECT, MAP, LIST and built-in ANY with a message). */
int proto_scalar(struct proto *p, const struct schema_node *node, const struct wire_field *wire,
                 const char *name, cJSON **ret) MUST_CHECK;
/* Bytes as a string: invalid UTF-8 becomes U+FFFD, as in Go's JSON encoder. */
struct str proto_text(struct proto *p, struct str bytes);
/* Decodes a message into object, without normalising it. */
int proto_tree(struct arena *a, const struct schema *s, uint32_t node, struct str bytes,
               cJSON *object, struct err *err) MUST_CHECK;
