/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a request in the version that a rule names. Versions of one kind differ in their
 * apiVersion only, are converted here, or by a webhook: the plug-in fails then, the write pauses,
 * and all plug-ins of the phase run once more. Must never write the object, nor wait itself.
 * Source: apiserver pkg/admission/conversion.go. */
#include "policy_view.h"

#include "../core/calls.h"

#include <assert.h>

#include <sublet/kinds.h>

bool policy_view_converts(const struct policy_request *q, const struct resource *as)
{
    const struct admission_call *c = q->call;

    return as->conversion && as != c->resource && !c->apart;
}

cJSON *policy_view_plain(const struct policy_request *q, const struct resource *as,
                         const cJSON *object)
{
    const struct admission_call *c = q->call;
    cJSON *tree;

    if (!object)
        return NULL;
    if (c->apart || as == c->resource)
        return (cJSON *)(uintptr_t)object; /* expressions never write */
    tree = json_copy(q->arena, object);
    if (!as->crd)
        kinds_convert(q->arena, as, tree);
    json_set_str(q->arena, tree, "apiVersion", as->api_version);
    return tree;
}

bool policy_view_converted(struct policy_request *q, struct str to, const cJSON *object,
                           cJSON **ret, struct str *ret_why)
{
    struct call *c = q->call->call;
    const struct err *failed;

    assert(c);
    *ret = (cJSON *)(uintptr_t)versions_find(&call_entry(c)->of_admission, c, object, to, &failed);
    if (*ret)
        return true;
    q->waits |= !failed;
    *ret_why = failed ? failed->message : STR("");
    return false;
}

bool policy_view_open(struct policy_request *q, const struct resource *as, const cJSON *object,
                      cJSON **ret, struct str *ret_why)
{
    if (object && policy_view_converts(q, as))
        return policy_view_converted(q, as->api_version, object, ret, ret_why);
    *ret = policy_view_plain(q, as, object);
    return true;
}

int policy_view_wait(struct err *err)
{
    err_clear(err);
    return err_set(err, &ERR_INTERNAL, "the conversion webhook of the object was not called");
}
