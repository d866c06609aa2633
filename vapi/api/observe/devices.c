/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics/dcgm: series of the tenant's own GPUs, of which the registrar of the hook `devices`
 * knows. Authorized as any non-resource path. Must answer 503 with the reason where nothing is
 * known, never an empty page. */
#include "observe.h"

#include <sublet/vapi_hooks.h>

static void on_devices(void *ctx, struct str body, const struct err *err)
{
    struct call *c = ctx;

    if (err)
        call_error(c, err);
    else
        call_raw(c, 200, STR("text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
                 arena_str(c->arena, body));
}

bool metrics_handle_devices(struct call *c, struct str path)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(c->api);

    if (!str_eqc(path, "/metrics/dcgm") || !hooks->devices)
        return false;
    hooks->devices(hooks->ctx, on_devices, c);
    return true;
}
