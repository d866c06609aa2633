/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads protobuf's wire format from bytes a client sent. Must never read past them, and never loop
 * without consuming. */

#include "proto_wire.h"

enum { VARINT_BYTES = 10, GROUP_DEPTH = 64 };

static int truncated(struct err *err)
{
    return err_set(err, &ERR_BAD_REQUEST, "unexpected EOF");
}

int wire_varint(struct str *rest, uint64_t *ret, struct err *err)
{
    uint64_t value = 0;

    for (size_t i = 0; i < VARINT_BYTES; i++) {
        uint64_t byte;

        if (i == rest->n)
            return truncated(err);
        byte = (unsigned char)rest->p[i];
        value |= (byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *rest = str_from(*rest, i + 1);
            *ret = value;
            return 0;
        }
    }
    return err_set(err, &ERR_BAD_REQUEST, "proto: integer overflow");
}

static int take_fixed(struct str *rest, size_t size, uint64_t *ret, struct err *err)
{
    uint64_t value = 0;

    if (rest->n < size)
        return truncated(err);
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)rest->p[i] << (8 * i);
    *rest = str_from(*rest, size);
    *ret = value;
    return 0;
}

static int take_bytes(struct str *rest, struct str *ret, struct err *err)
{
    uint64_t n = 0;

    if (wire_varint(rest, &n, err))
        return -1;
    if (n > rest->n)
        return truncated(err);
    *ret = str_sub(*rest, 0, (size_t)n);
    *rest = str_from(*rest, (size_t)n);
    return 0;
}

static int take_value(struct str *rest, struct wire_field *field, struct err *err)
{
    switch (field->type) {
    case WIRE_VARINT:
        return wire_varint(rest, &field->value, err);
    case WIRE_FIXED64:
        return take_fixed(rest, 8, &field->value, err);
    case WIRE_BYTES:
        return take_bytes(rest, &field->bytes, err);
    case WIRE_FIXED32:
        return take_fixed(rest, 4, &field->value, err);
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        return 0;
    }
    return err_set(err, &ERR_BAD_REQUEST, "proto: illegal wireType %d", (int)field->type);
}

static int take_tag(struct str *rest, struct wire_field *field, struct err *err)
{
    uint64_t tag = 0;

    if (wire_varint(rest, &tag, err))
        return -1;
    *field = (struct wire_field){.number = (uint32_t)(tag >> 3) & 0x1FFFFFFF,
                                 .type = (enum wire_type)(tag & 7)};
    if (field->number == 0 || tag >> 32)
        return err_set(err, &ERR_BAD_REQUEST, "proto: illegal tag %u (wire type %d)", field->number,
                       (int)field->type);
    return 0;
}

/* No built-in message contains a group: a group from a client is an unknown field. */
static int skip_group(struct str *rest, struct err *err)
{
    unsigned depth = 1;

    while (depth > 0) {
        struct wire_field field;

        if (take_tag(rest, &field, err) || take_value(rest, &field, err))
            return -1;
        if (field.type == WIRE_GROUP && ++depth > GROUP_DEPTH)
            return err_set(err, &ERR_BAD_REQUEST, "proto: groups nested too deeply");
        if (field.type == WIRE_GROUP_END)
            depth--;
    }
    return 0;
}

int wire_next(struct str *rest, struct wire_field *ret, struct err *err)
{
    if (rest->n == 0)
        return 0;
    if (take_tag(rest, ret, err))
        return -1;
    if (ret->type == WIRE_GROUP_END)
        return err_set(err, &ERR_BAD_REQUEST, "proto: wiretype end group for non-group");
    if (take_value(rest, ret, err))
        return -1;
    if (ret->type == WIRE_GROUP && skip_group(rest, err))
        return -1;
    return 1;
}
