/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf's wire format, one field at a time. Knows no messages. Source: protobuf.dev, "Encoding".
 */
#pragma once

#include <sublet/err.h>

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;   /* WIRE_VARINT, WIRE_FIXED* */
    struct str bytes; /* WIRE_BYTES; a view into the message */
};

/* Takes the next field from *rest: 1, or 0 at the end, or -1 (BAD_REQUEST). Groups are skipped
 * entirely. */
int wire_next(struct str *rest, struct wire_field *ret, struct err *err) MUST_CHECK;
/* Takes one varint from *rest. */
int wire_varint(struct str *rest, uint64_t *ret, struct err *err) MUST_CHECK;
