/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The object that a client requests: its body, merged, applied or as it is, with defaults. It must
 * never store anything. */
#include "verbs.h"

#include "../request/request.h"

#include <sublet/crd.h>
#include <sublet/kinds.h>
#include <sublet/patch.h>

/* The object's name must be the URL's. */
int write_check_name(const struct call *c, const cJSON *object, struct err *err)
{
    struct str name = json_str_at(object, "metadata.name");

    if (str_eq(name, c->name))
        return 0;
    if (!name.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "the name of the object (%.*s based on URL) was undeterminable: name must "
                       "be provided",
                       STR_F(c->name));
    return err_set(err, &ERR_BAD_REQUEST,
                   "the name of the object (%.*s) does not match the name on the URL (%.*s)",
                   STR_F(name), STR_F(c->name));
}

static int apply_patch(struct call *c, cJSON *object, cJSON **ret, struct err *err)
{
    struct str group, version, kind;
    uint32_t node;

    switch (c->patch) {
    case PATCH_TYPE_JSON:
        return patch_json(c->arena, object, c->body, ret, err);
    case PATCH_TYPE_MERGE:
        return patch_merge(c->arena, object, c->body, ret, err);
    case PATCH_TYPE_STRATEGIC:
        call_body_expected(c, &group, &version, &kind);
        if (str_eq(kind, c->resource->kind))
            return patch_strategic(c->arena, c->resource->schema, c->resource->node, object,
                                   c->body, ret, err);
        node = schema_builtin_root(group, version, kind);
        return patch_strategic(c->arena, &SCHEMA_BUILTIN, node, object, c->body, ret, err);
    case PATCH_TYPE_APPLY:
    default:
        return managed_apply(c, object, ret, err);
    }
}

int write_apply_body(struct call *c, cJSON *object, cJSON **ret, struct err *err)
{
    const char *why;
    cJSON *made;

    if (c->verb != CALL_PATCH) {
        /* Only a create with a generated name, or for other versions, is ever repeated. */
        bool once = c->verb == CALL_CREATE && !c->resource->conversion &&
                    !json_str_at(c->body, "metadata.generateName").n;

        why = kinds_unreadable(c->arena, c->resource, c->body);
        if (why)
            return body_refuse(c, why, err);
        *ret = once ? c->body : json_copy(c->arena, c->body);
        return 0;
    }
    if (apply_patch(c, object, &made, err))
        return -1;
    if (!json_is_object(made))
        return body_refuse_patched(c, made, body_not_object(c, made), err);
    why = kinds_unreadable(c->arena, c->resource, made);
    if (why)
        return body_refuse_patched(c, made, str_c(why), err);
    if (c->patch == PATCH_TYPE_STRATEGIC) /* it names only the fields of this kind */
        body_set_kind(c, made);
    *ret = made;
    return c->patch == PATCH_TYPE_APPLY ? 0 : body_check_patched(c, made, err);
}

int write_set_defaults(struct call *c, cJSON *object, struct err *err)
{
    const struct resource *r = c->resource;
    bool applied = c->verb == CALL_PATCH && c->patch == PATCH_TYPE_APPLY;

    if (r->crd)
        return crd_default_written(r->crd, c->arena, object, applied)
                   ? 0
                   : err_set(err, &ERR_TOO_LARGE,
                             "Request entity too large: the object with its defaults");
    kinds_defaults(r, c->arena, object);
    schema_default(c->arena, r->schema, r->node, object);
    return 0;
}
