/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete protobuf body: the magic `k8s\0` and a runtime.Unknown that names the kind and holds
 * its message. Source: apimachinery pkg/runtime/generated.proto and serializer/protobuf. Must never
 * decode a message as a type other than the one the envelope names. */

#include "normalise.h"
#include "proto.h"
#include "tree.h"

#include <sublet/api_version.h>

struct envelope {
    struct str api_version, kind, raw, encoding;
};

static int read_type_meta(struct str bytes, struct envelope *e, struct err *err)
{
    struct wire_field field;
    int more;

    while ((more = wire_next(&bytes, &field, err)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1)
            e->api_version = field.bytes;
        else if (field.number == 2)
            e->kind = field.bytes;
    }
    return more;
}

static int read_envelope(struct str bytes, struct envelope *e, struct err *err)
{
    struct wire_field field;
    int more;

    while ((more = wire_next(&bytes, &field, err)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1 && read_type_meta(field.bytes, e, err))
            return -1;
        if (field.number == 2)
            e->raw = field.bytes;
        else if (field.number == 3)
            e->encoding = field.bytes;
    }
    return more;
}

/* Both appear in the tree and in error messages. */
static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    }
    return s.n > 0 && s.n <= 253;
}

static int find_type(const struct envelope *e, uint32_t *ret, struct err *err)
{
    struct api_version v = api_version_read(e->api_version);

    if (!is_plain(e->kind))
        return err_set(err, &ERR_BAD_REQUEST, "Object 'Kind' is missing in the protobuf envelope");
    if (!is_plain(e->api_version))
        return err_set(err, &ERR_BAD_REQUEST,
                       "Object 'apiVersion' is missing in the protobuf envelope");
    *ret = schema_builtin_root(v.group, v.version, e->kind);
    if (*ret)
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "no kind \"%.*s\" is registered for version \"%.*s\"",
                   STR_F(e->kind), STR_F(e->api_version));
}

static int check_magic(struct str body, struct err *err)
{
    if (body.n == 0)
        return err_set(err, &ERR_BAD_REQUEST, "empty data");
    if (!str_has_prefix(body, PROTO_MAGIC))
        return err_set(err, &ERR_BAD_REQUEST,
                       "provided data does not appear to be a protobuf message, "
                       "expected prefix [107 56 115 0]");
    if (body.n == PROTO_MAGIC.n)
        return err_set(err, &ERR_BAD_REQUEST, "empty body");
    return 0;
}

int proto_decode(struct arena *a, struct str body, cJSON **ret, struct err *err)
{
    struct envelope e = {.raw = STR("")};
    cJSON *object = json_new_object(a);
    uint32_t node;

    if (check_magic(body, err) || read_envelope(str_from(body, PROTO_MAGIC.n), &e, err))
        return -1;
    if (e.encoding.n > 0)
        return err_set(err, &ERR_BAD_REQUEST, "protobuf content encoding is not supported");
    if (find_type(&e, &node, err))
        return -1;

    json_add(object, "apiVersion", json_new_string(a, e.api_version));
    json_add(object, "kind", json_new_string(a, e.kind));
    if (proto_tree(a, &SCHEMA_BUILTIN, node, e.raw, object, err) ||
        normalise_decoded(a, &SCHEMA_BUILTIN, node, object, err))
        return err_wrap(err, "%.*s in version \"%.*s\" cannot be handled as a %.*s", STR_F(e.kind),
                        STR_F(api_version_read(e.api_version).version), STR_F(e.kind));
    *ret = object;
    return 0;
}
