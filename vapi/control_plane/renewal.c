/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Renews certificates at two thirds of their lifetime, without a restart and without closing a
 * connection. One timer serves all of them, set to the next due one, so that an idle cluster does
 * nothing. Must never renew the CA: kubeconfigs and pods trust it directly; its remaining lifetime
 * is reported in the log and in the metrics instead, and the admin replaces it (authority.c). */

#include "control_plane.h"

#include <assert.h>

#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/net.h>

#define MOST_WAIT_S  (24 * 3600) /* the wall clock may be set meanwhile */
#define RETRY_S      60
#define CA_WARNING_S (180LL * 24 * 3600)

struct vapi_renewals {
    struct vapi *api;
    struct vapi_renewal items[VAPI_MOST_RENEWALS];
    size_t n;
    int64_t ca_end_logged; /* when its expiry was logged last */
};

static int64_t due(const struct vapi_renewal *r)
{
    int64_t from, end;

    r->life(r->ctx, &from, &end);
    return r->renew ? from + (end - from) / 3 * 2 + (end - from) % 3 * 2 / 3 : INT64_MAX;
}

/* ---- the serving certificate and the CA ---- */

void renewal_serving_tls(struct vapi *api, struct net_tls *ret)
{
    *ret = (struct net_tls){
        .certificate = pki_serving_pem(api->o.pki),
        .key = pki_serving_key_pem(api->o.pki),
        .client_ca = pki_ca_pem(api->o.pki),
    };
}

static void serving_life(void *ctx, int64_t *ret_from, int64_t *ret_end)
{
    pki_lifetime(((struct vapi *)ctx)->o.pki, PKI_SERVING, ret_from, ret_end);
}

static void ca_life(void *ctx, int64_t *ret_from, int64_t *ret_end)
{
    pki_lifetime(((struct vapi *)ctx)->o.pki, PKI_CA, ret_from, ret_end);
}

int renewal_serve(struct vapi *api, struct err *err)
{
    struct net_tls tls;

    renewal_serving_tls(api, &tls);
    return api->server ? net_set_tls(api->server, &tls, err) : 0;
}

/* Open connections keep their certificate; new handshakes use the renewed one. */
static int renew_serving(void *ctx, struct err *err)
{
    struct vapi *api = ctx;

    return pki_renew_serving(api->o.pki, err) || renewal_serve(api, err) ? -1 : 0;
}

static struct vapi_renewal serving_of(struct vapi *api)
{
    return (struct vapi_renewal){
        .name = "serving", .ctx = api, .life = serving_life, .renew = renew_serving};
}

static void previous_ca_life(void *ctx, int64_t *ret_from, int64_t *ret_end)
{
    pki_lifetime(((struct vapi *)ctx)->o.pki, PKI_PREVIOUS_CA, ret_from, ret_end);
}

static void log_ca(struct vapi_renewals *all, int64_t now)
{
    struct arena *a;
    int64_t from, end;

    ca_life(all->api, &from, &end);
    if (end - now > CA_WARNING_S || now - all->ca_end_logged < MOST_WAIT_S)
        return;
    all->ca_end_logged = now;
    a = arena_new(0);
    log_warn("the certificate authority of this cluster ends until=%.*s",
             STR_F(time_format_s(a, end)));
    arena_free(a);
}

/* ---- the timer ---- */

static void on_renewal(uv_timer_t *timer)
{
    struct vapi *api = timer->data;

    assert(api->magic == VAPI_MAGIC);
    renewal_check(api);
}

static void set_timer(struct vapi_renewals *all)
{
    int64_t now = clock_wall_s(all->api->o.clock), wait = MOST_WAIT_S;

    for (size_t i = 0; i < all->n; i++) {
        int64_t left = due(&all->items[i]) - now;

        /* A failed renewal stays due. */
        if (left < wait)
            wait = left > 0 ? left : RETRY_S;
    }
    uv_update_time(all->api->o.loop);
    uv_timer_start(&all->api->renewal, on_renewal, (uint64_t)wait * 1000, 0);
}

static int renew_one(const struct vapi_renewal *r, struct err *err)
{
    struct arena *a = arena_new(0);
    int64_t from, end;
    int failed = r->renew(r->ctx, err);

    if (failed) {
        log_error("certificate not renewed certificate=%s error=\"%.*s\"", r->name,
                  STR_F(err->message));
    } else {
        r->life(r->ctx, &from, &end);
        log_info("certificate renewed certificate=%s until=%.*s", r->name,
                 STR_F(time_format_s(a, end)));
    }
    arena_free(a);
    return failed;
}

static void try_one(const struct vapi_renewal *r)
{
    struct arena *a = arena_new(0);
    struct err err;

    err_init(&err, a);
    if (renew_one(r, &err))
        err_clear(&err);
    arena_free(a);
}

int renewal_all(struct vapi *api, struct err *err)
{
    struct vapi_renewals *all = api->renewals;
    int failed = 0;

    for (size_t i = 0; i < all->n && !failed; i++)
        failed = all->items[i].renew ? renew_one(&all->items[i], err) : 0;
    set_timer(all);
    return failed;
}

cJSON *renewal_list(struct vapi *api, struct arena *a)
{
    struct vapi_renewals *all = api->renewals;
    cJSON *ret = json_new_array(a);

    for (size_t i = 0; i < all->n; i++) {
        int64_t from, end;

        all->items[i].life(all->items[i].ctx, &from, &end);
        if (end)
            json_append(ret, json_object(a, JSON("name", all->items[i].name),
                                         JSON_I64("from", from), JSON_I64("until", end)));
    }
    return ret;
}

void renewal_check(struct vapi *api)
{
    struct vapi_renewals *all = api->renewals;
    int64_t now = clock_wall_s(api->o.clock);

    for (size_t i = 0; i < all->n; i++)
        if (due(&all->items[i]) <= now)
            try_one(&all->items[i]);
    log_ca(all, now);
    set_timer(all);
}

void renewal_serve_at(struct vapi *api, const struct str *ips, size_t n)
{
    struct vapi_renewal serving = serving_of(api);

    if (pki_set_addresses(api->o.pki, ips, n))
        try_one(&serving);
}

/* ---- metrics ---- */

static void write_metrics(void *ctx, struct buf *out)
{
    struct vapi_renewals *all = ctx;

    metrics_family(out, METRIC_CERTIFICATE_EXPIRY);
    for (size_t i = 0; i < all->n; i++) {
        struct buf labels = BUF_INIT(256);
        int64_t from, end;

        all->items[i].life(all->items[i].ctx, &from, &end);
        if (!end)
            continue; /* there is none */
        metrics_label(&labels, "certificate", str_c(all->items[i].name));
        metrics_sample(out, METRIC_CERTIFICATE_EXPIRY, buf_str(&labels), (double)end);
        buf_fini(&labels);
    }
}

/* ---- lifecycle ---- */

void vapi_add_renewal(struct vapi *api, const struct vapi_renewal *r)
{
    struct vapi_renewals *all = api->renewals;

    assert(all && all->n < VAPI_MOST_RENEWALS);
    all->items[all->n++] = *r;
    set_timer(all);
}

void renewal_start(struct vapi *api)
{
    const struct vapi_renewal own[] = {
        {.name = "ca", .ctx = api, .life = ca_life},
        {.name = "previous-ca", .ctx = api, .life = previous_ca_life},
        serving_of(api),
    };

    api->renewals = NEW(struct vapi_renewals);
    api->renewals->api = api;
    api->renewals->ca_end_logged = INT64_MIN / 2;
    for (size_t i = 0; i < COUNT(own); i++)
        api->renewals->items[api->renewals->n++] = own[i];
    vapi_add_metrics(api, write_metrics, api->renewals);
    renewal_check(api);
}
