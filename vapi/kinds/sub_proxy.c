/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints whose answer only a node can give. They answer 501 with a Status until the syncer
 * carries them to the host; a client must see an error it understands, never a hang. */
#include <sublet/call.h>

void sub_proxy(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    err_set(&err, &ERR_NOT_IMPLEMENTED, "%s of %.*s \"%.*s\" is not served by this version",
            c->sub->name, STR_F(c->resource->group_resource), STR_F(c->name));
    call_error(c, &err);
}
