/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * A create of a kind that is never stored: reviews, which vapi/auth answers, and bindings, the
 * deprecated form of POST to a pod's binding. */
#include "verbs.h"

#include "../request/request.h"
#include "../review/review.h"
#include "../../core/meta.h"

static int check_binding(struct call *c, struct err *err)
{
    c->name = json_str_at(c->body, "metadata.name");
    return sub_binding_check(c, err);
}

static void run_binding(struct call *c)
{
    c->resource = registry_find(vapi_registry(c->api), STR(""), STR("v1"), STR("pods"));
    c->sub = resource_sub(c->resource, STR("binding"));
    c->name = json_str_at(c->body, "metadata.name");
    sub_bind_pod(c);
}

void sub_review(struct call *c)
{
    static const struct reviewed_plan review = {.operation = ADMISSION_CREATE,
                                                .run = auth_handle_review};
    static const struct reviewed_plan binding = {
        .operation = ADMISSION_CREATE, .check = check_binding, .run = run_binding};
    struct err err;

    err_init(&err, c->arena);
    if (body_take(c, &err)) {
        call_error(c, &err);
        return;
    }
    if (!c->done) /* in-process callers mean the uid */
        vapi_meta_wipe(c->arena, c->body);
    if (c->resource->flags & RES_BINDING)
        c->name = json_str_at(c->body, "metadata.name");
    reviewed_start(c, c->resource->flags & RES_BINDING ? &binding : &review);
}
