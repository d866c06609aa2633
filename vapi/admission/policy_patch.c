/* SPDX-License-Identifier: Apache-2.0 */
/* One mutation of a MutatingAdmissionPolicy, applied to the object that the policy sees: a
 * configuration, merged as server-side apply does, or a JSON patch. The object itself is never
 * written. Source: k8s.io/apiserver policy/mutating/patch/{smd,json_patch}.go. */
#include "policies.h"

#include <sublet/fields.h>
#include <sublet/patch.h>

#define MOST_PATHS 4096

/* Everything below is made in q->arena. */
static bool fail(struct str *ret_error, struct policy_request *q, const char *how, struct str why)
{
    *ret_error = arena_printf(q->arena, "%s: %.*s", how, STR_F(why));
    return false;
}

static bool has_atomics(struct policy_request *q, struct field_type type, const cJSON *config,
                        struct str *ret_error)
{
    struct buf paths = BUF_INIT(MOST_PATHS);
    bool ret = typed_atomics(type, config, &paths);

    if (ret)
        fail(ret_error, q,
             "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
             "or structs",
             arena_str(q->arena, buf_str(&paths)));
    buf_fini(&paths);
    return ret;
}

/* Of the kinds that are apart, upstream knows the type of those in the group of the resource: of a
 * Binding, neither of a Scale nor of the options of a connection. */
static bool type_of(struct policy_request *q, const struct policy_view *v, struct field_type *ret,
                    struct str *ret_error)
{
    struct policy_body_kind k = policy_body_kind(v->resource, q->call->subresource);

    if (!q->call->apart || !q->call->subresource.n) {
        resource_field_type(v->resource, ret);
        return true;
    }
    *ret = (struct field_type){.schema = &SCHEMA_BUILTIN,
                               .node = schema_builtin_root(k.group, k.version, k.kind)};
    if (ret->node && q->call->operation != ADMISSION_CONNECT && str_eq(k.group, v->resource->group))
        return true;
    return fail(ret_error, q,
                "error applying patch: failed to convert patch object to typed object",
                arena_printf(q->arena, "no corresponding type for %.*s/%.*s, Kind=%.*s",
                             STR_F(k.group), STR_F(k.version), STR_F(k.kind)));
}

static bool apply(struct policy_request *q, const struct policy_view *v, cJSON *config, cJSON **ret,
                  struct str *ret_error)
{
    struct field_type type;
    struct err err;

    json_set_str(q->arena, config, "apiVersion", json_str(json_get(v->object, "apiVersion")));
    json_set_str(q->arena, config, "kind", json_str(json_get(v->object, "kind")));
    if (!type_of(q, v, &type, ret_error))
        return false;
    err_init(&err, q->arena);
    if (typed_validate(q->arena, type, config, &err))
        return fail(ret_error, q,
                    "error applying patch: failed to convert patch object to typed object",
                    err.message);
    if (has_atomics(q, type, config, ret_error))
        return false;
    if (typed_merge(q->arena, type, json_copy(q->arena, v->object), config, ret, &err))
        return fail(ret_error, q, "error applying patch: failed to merge patch", err.message);
    return true;
}

/* A test that fails leaves the object as it is. */
static bool patch(struct policy_request *q, const struct policy_view *v, const cJSON *operations,
                  cJSON **ret, struct str *ret_error)
{
    struct err err;
    bool tested;

    err_init(&err, q->arena);
    if (!patch_json_tested(q->arena, json_copy(q->arena, v->object), operations, ret, &tested,
                           &err))
        return true;
    *ret = NULL;
    return tested || fail(ret_error, q, "JSON Patch", err.message);
}

bool policy_patch(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                  const cJSON *params, size_t index, cJSON **ret, struct str *ret_error)
{
    const cJSON *mutation = json_at(json_get(p->spec, "mutations"), index);
    struct cel_value value;
    struct str why;
    cJSON *tree;

    *ret = NULL;
    if (!policy_mutation(q, p, v, params, index, &value, ret_error))
        return false;
    tree = cel_to_json(q->arena, value, &why);
    if (!tree) {
        *ret_error = why;
        return false;
    }
    return str_eqc(json_str(json_get(mutation, "patchType")), "JSONPatch")
               ? patch(q, v, tree, ret, ret_error)
               : apply(q, v, tree, ret, ret_error);
}
