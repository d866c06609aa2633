/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/ephemeralcontainers: adds containers for debugging to a running pod. Must never change any
 * other field. The rules are with those of pods, in vapi/kinds. */
#include "verbs.h"

#include <sublet/kinds.h>

void sub_ephemeral_containers(struct call *c)
{
    static const struct write_plan plan = {.prepare = prepare_pod_ephemeral,
                                           .validate = validate_pod_ephemeral};

    if (c->verb == CALL_GET)
        call_get(c);
    else
        write_start(c, &plan);
}
