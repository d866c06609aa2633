/* SPDX-License-Identifier: Apache-2.0
 *
 * Stand-ins for what the table of resources names in other rooms. None may be called by a test of
 * kinds. */
#pragma once

#include <sublet/auth.h>
#include <sublet/call.h>
#include <sublet/crd.h>

#define STANDIN(name)                                                                              \
    void name(struct call *c)                                                                      \
    {                                                                                              \
        (void)c;                                                                                   \
        fail_msg(#name " was called");                                                             \
    }

STANDIN(sub_binding)
STANDIN(sub_eviction)
STANDIN(sub_finalize)
STANDIN(sub_ephemeral_containers)
STANDIN(sub_resize)
STANDIN(sub_approval)
STANDIN(sub_proxy)
STANDIN(auth_handle_token_request)
void call_error(struct call *c, const struct err *err)
{
    (void)c;
    fail_msg("%.*s", STR_F(err->message));
}
const struct kind KIND_CUSTOM_RESOURCE_DEFINITION = {.check_name = NULL};
