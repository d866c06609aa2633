/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf's leaves: scalars, and the small messages that are scalars in JSON (Quantity,
 * IntOrString, Time, RawExtension, ...). Source: the generated.proto files of apimachinery. Must
 * never emit a string that is not UTF-8 or a number JSON does not have. */

#include "proto.h"
#include "scalar.h"

#include <math.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>

/* Years 0 to 9999: RFC 3339 has no form for others. */
#define TIME_MIN_S  INT64_C(-62167219200)
#define TIME_MAX_S  INT64_C(253402300799)
#define TIME_ZERO_S INT64_C(-62135596800)

/* Length of the well-formed character at s, 0 when there is none. */
static size_t character(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;

    return n <= s.n && str_is_utf8(str_sub(s, 0, n)) ? n : 0;
}

struct str proto_text(struct proto *p, struct str bytes)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    if (str_is_utf8(bytes))
        return bytes;
    while (bytes.n > 0) {
        size_t n = character(bytes);

        buf_add(&b, n ? str_sub(bytes, 0, n) : STR("\xef\xbf\xbd"));
        bytes = str_from(bytes, n ? n : 1);
    }
    text = arena_str(p->arena, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* Messages of at most three fields: numbers for fields 1 and 2, bytes for all. */
struct small_message {
    uint64_t number[4];
    struct str bytes[4];
};

static int read_small(struct proto *p, struct str rest, struct small_message *m)
{
    struct wire_field field;
    int more;

    *m = (struct small_message){0};
    while ((more = wire_next(&rest, &field, p->err)) > 0) {
        if (field.number > 3)
            continue;
        if (field.type == WIRE_BYTES)
            m->bytes[field.number] = field.bytes;
        else if (field.type == WIRE_VARINT)
            m->number[field.number] = field.value;
    }
    return more;
}

static int time_value(struct proto *p, struct str bytes, bool micro, cJSON **ret)
{
    struct small_message m;
    int64_t seconds;

    if (read_small(p, bytes, &m))
        return -1;
    seconds = (int64_t)m.number[1];
    if (bytes.n == 0) /* Go's zero time; the epoch is written out */
        seconds = TIME_ZERO_S;
    if (seconds < TIME_MIN_S || seconds > TIME_MAX_S || m.number[2] > 999999999)
        return err_set(p->err, &ERR_BAD_REQUEST, "proto: time is out of range");
    *ret = json_new_string(
        p->arena, micro ? time_format_us(p->arena, seconds * 1000000 + (int64_t)m.number[2] / 1000)
                        : time_format_s(p->arena, seconds));
    return 0;
}

static int int_or_string_value(struct proto *p, struct str bytes, cJSON **ret)
{
    struct small_message m;

    if (read_small(p, bytes, &m))
        return -1;
    if (m.number[1] > 1)
        return err_set(p->err, &ERR_BAD_REQUEST, "impossible IntOrString.Type");
    *ret = m.number[1] ? json_new_string(p->arena, proto_text(p, m.bytes[3]))
                       : json_new_i64(p->arena, (int32_t)m.number[2]);
    return 0;
}

/* JSON inside a message: RawExtension, JSON, FieldsV1. Empty is null. */
static int raw_value(struct proto *p, struct str bytes, cJSON **ret)
{
    struct json_limits limits = JSON_LIMITS;
    struct small_message m;

    if (read_small(p, bytes, &m))
        return -1;
    if (m.bytes[1].n == 0) {
        *ret = json_new_null(p->arena);
        return 0;
    }
    limits.nodes = p->nodes < limits.nodes ? limits.nodes - p->nodes : 1;
    if (json_parse_strict(p->arena, m.bytes[1], &limits, NULL, NULL, ret, p->err))
        return err_wrap(p->err, "proto: a raw value is not JSON");
    p->nodes += m.bytes[1].n / 2; /* no JSON document has more values */
    return 0;
}

static int message_value(struct proto *p, uint8_t kind, struct str bytes, cJSON **ret)
{
    struct small_message m;

    switch (kind) {
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
        return time_value(p, bytes, kind == SCHEMA_MICRO_TIME, ret);
    case SCHEMA_INT_OR_STRING:
        return int_or_string_value(p, bytes, ret);
    case SCHEMA_ANY:
    case SCHEMA_FIELDS_V1:
    case SCHEMA_UNSTRUCTURED:
        return raw_value(p, bytes, ret);
    default:
        break;
    }
    if (read_small(p, bytes, &m))
        return -1;
    if (kind == SCHEMA_DURATION)
        *ret = json_new_string(p->arena, duration_text(p->arena, (int64_t)m.number[1]));
    else /* QUANTITY: an empty string is 0 */
        *ret = json_new_string(p->arena, m.bytes[1].p ? proto_text(p, m.bytes[1]) : STR("0"));
    return 0;
}

static int double_value(struct proto *p, uint64_t bits, cJSON **ret)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        return err_set(p->err, &ERR_BAD_REQUEST, "json: unsupported value: %s",
                       isnan(value) ? "NaN"
                       : value > 0  ? "+Inf"
                                    : "-Inf");
    *ret = json_new_double(p->arena, value);
    return 0;
}

/* Generated decoders keep the low bits of a number that is too large for its field. */
static cJSON *number_value(struct proto *p, uint8_t kind, uint64_t value)
{
    switch (kind) {
    case SCHEMA_BOOL:
        return json_new_bool(p->arena, value != 0);
    case SCHEMA_INT32:
        return json_new_i64(p->arena, (int32_t)value);
    case SCHEMA_UINT32:
        return json_new_i64(p->arena, (uint32_t)value);
    case SCHEMA_UINT8:
        return json_new_i64(p->arena, (uint8_t)value);
    default:
        return json_new_i64(p->arena, (int64_t)value);
    }
}

static enum wire_type expected_wire(uint8_t kind)
{
    if ((kind >= SCHEMA_BOOL && kind <= SCHEMA_UINT64) || kind == SCHEMA_UINT8)
        return WIRE_VARINT;
    return kind == SCHEMA_DOUBLE ? WIRE_FIXED64 : WIRE_BYTES;
}

int proto_scalar(struct proto *p, const struct schema_node *node, const struct wire_field *wire,
                 const char *name, cJSON **ret)
{
    if (wire->type != expected_wire(node->kind))
        return proto_wrong_wire(p, wire, name);
    if (proto_count(p))
        return -1;
    switch (node->kind) {
    case SCHEMA_STRING:
        *ret = json_new_string(p->arena, proto_text(p, wire->bytes));
        return 0;
    case SCHEMA_BYTES:
        *ret = json_new_string(p->arena, base64_encode(p->arena, wire->bytes));
        return 0;
    case SCHEMA_DOUBLE:
        return double_value(p, wire->value, ret);
    default:
        break;
    }
    if (wire->type == WIRE_BYTES)
        return message_value(p, node->kind, wire->bytes, ret);
    *ret = number_value(p, node->kind, wire->value);
    return 0;
}
