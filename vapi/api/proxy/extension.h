/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Requests that extension API servers answer (vapi/extension). Both return false, with c as it
 * was, when no APIService with a service is of that version. */
#pragma once

#include <sublet/call.h>

/* call_handlers.elsewhere */
bool proxy_extension(struct call *c, struct str group, struct str version);
/* A non-resource endpoint; see call_handlers: /apis/GROUP/VERSION. */
bool proxy_handle_extension(struct call *c, struct str path);
