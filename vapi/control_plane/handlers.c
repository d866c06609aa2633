/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The functions that serve verbs, subresources and endpoints, and that answer. The control plane
 * registers the table, so that lower folders can run and answer a call: the in-process client,
 * authentication, the queue of a flow. */
#include "control_plane.h"

#include "../api/discovery/discovery.h"
#include "../api/observe/observe.h"
#include "../api/proxy/extension.h"
#include "../api/respond/respond.h"
#include "../api/verbs/verbs.h"
#include "../api/watch/watch.h"

static bool (*const ENDPOINTS[])(struct call *c, struct str path) = {
    health_handle,  metrics_handle,     metrics_handle_devices, discovery_handle,
    openapi_handle, auth_handle_openid, proxy_handle_extension, NULL,
};

const struct call_handlers API_HANDLERS = {
    .verbs =
        {
            [CALL_GET] = call_get,
            [CALL_LIST] = call_list,
            [CALL_WATCH] = call_watch,
            [CALL_CREATE] = call_create,
            [CALL_UPDATE] = call_update,
            [CALL_PATCH] = call_patch,
            [CALL_DELETE] = call_delete,
            [CALL_DELETECOLLECTION] = call_delete_collection,
        },
    .subresources =
        {
            [SUB_SCALE] = sub_scale,
            [SUB_APPROVAL] = sub_approval,
            [SUB_BINDING] = sub_binding,
            [SUB_EPHEMERAL_CONTAINERS] = sub_ephemeral_containers,
            [SUB_EVICTION] = sub_eviction,
            [SUB_FINALIZE] = sub_finalize,
            [SUB_PROXY] = sub_proxy,
            [SUB_RESIZE] = sub_resize,
            [SUB_TOKEN] = sub_token,
            [SUB_REPLACE] = sub_replace,
        },
    .measured = call_measured,
    .endpoints = ENDPOINTS,
    .elsewhere = proxy_extension,
    .instead = read_only_handler,
    .error = respond_error,
    .give_up = respond_give_up,
    .tree = respond_tree,
    .raw = respond_raw,
    .annotate = audit_annotate,
    .ended = observe_end,
};
