/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/resize: CPU and memory of a pod and its containers. Must never change any other field. The
 * rules are with those of pods, in vapi/kinds. */
#include "verbs.h"

#include <sublet/kinds.h>

void sub_resize(struct call *c)
{
    static const struct write_plan plan = {.prepare = prepare_pod_resize,
                                           .validate = validate_pod_resize};

    if (c->verb == CALL_GET)
        call_get(c);
    else
        write_start(c, &plan);
}
