/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * What the admin orders about certificates: to list them, to renew the leaves, and to replace the
 * certificate authority in two steps, between which credentials of both are accepted. Nothing has
 * an effect before the store has committed it. Must never end the trust in an authority by itself.
 *
 *   order --> records --committed--> reload, serve, publish (controllers, kubeconfig) --> answer
 *                '----failed-------> answer, and all is as it was */
#include "control_plane.h"

#include <sublet/controller.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/store_disk.h>
#include <sublet/store_admin.h>

struct order {
    struct vapi *api;
    const char *what;
    vapi_certificates_cb done;
    void *ctx;
};

static void answer(struct vapi *api, vapi_certificates_cb done, void *ctx, const struct err *err)
{
    struct arena *a = arena_new(0);

    done(ctx, err ? NULL : renewal_list(api, a), err);
    arena_free(a);
}

static int take_effect(struct order *o, struct err *err)
{
    struct vapi *api = o->api;

    if (pki_reload(api->o.pki, err) || renewal_serve(api, err))
        return -1;
    log_info("certificate authority %s", o->what);
    if (api->controllers)
        controllers_rescan(api->controllers);
    return renewal_all(api, err);
}

static void on_committed(void *ctx, const struct err *failure)
{
    struct order *o = ctx;
    struct arena *a = arena_new(0);
    struct err err;

    err_init(&err, a);
    if (failure)
        answer(o->api, o->done, o->ctx, failure);
    else
        answer(o->api, o->done, o->ctx, take_effect(o, &err) ? &err : NULL);
    arena_free(a);
    mem_free(o);
}

static int write_records(struct vapi *api, enum vapi_certificates_order what, struct err *err)
{
    if (store_read_only(api->o.store) || store_disk_is_shut(api->o.store))
        return err_set(err, &ERR_UNAVAILABLE, "this process writes nothing now (see /readyz)");
    return what == VAPI_ROTATE_CA ? pki_rotate_ca(api->o.pki, err) : pki_retire_ca(api->o.pki, err);
}

void vapi_certificates(struct vapi *api, enum vapi_certificates_order what,
                       vapi_certificates_cb done, void *ctx)
{
    struct arena *a = arena_new(0);
    int failed = 0;
    struct err err;
    struct order *o;

    err_init(&err, a);
    if (what == VAPI_RENEW_LEAVES)
        failed = renewal_all(api, &err);
    else if (what != VAPI_LIST_CERTIFICATES)
        failed = write_records(api, what, &err);
    if (failed || what == VAPI_RENEW_LEAVES || what == VAPI_LIST_CERTIFICATES) {
        answer(api, done, ctx, failed ? &err : NULL);
    } else {
        o = NEW(struct order);
        *o = (struct order){api, what == VAPI_ROTATE_CA ? "replaced" : "retired", done, ctx};
        store_on_commit(api->o.store, on_committed, o);
    }
    arena_free(a);
}
