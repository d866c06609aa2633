/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of retry.h. Must never call one for another kind than its own: keys of different
 * kinds look the same. */
#include <sublet/retry.h>

#include "core.h"

void vapi_retry_watch(struct vapi *api, struct vapi_retry *retry)
{
    LIST_INSERT_HEAD(&api->retries, retry, others);
}

void vapi_retry_unwatch(struct vapi_retry *retry)
{
    LIST_REMOVE(retry, others);
}

void vapi_retry_owner(struct vapi *api, struct str kind, struct str ns, struct str name)
{
    struct vapi_retry *r;

    LIST_FOREACH(r, &api->retries, others)
    {
        if (str_eqc(kind, r->kind))
            r->again(r, ns, name);
    }
}
