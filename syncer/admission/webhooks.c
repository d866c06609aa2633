/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tenant's webhook is: its own Service, at the cluster IP that the host gave that Service,
 * and nowhere else. A tenant chooses the name and the port; what could make this process, which the
 * host's network trusts more than a pod, call another server is refused: a URL, a name, an address
 * the host did not give, a Service whose endpoints the tenant writes itself. Must never send a
 * review past these checks. */
#include "admission/admission.h"
#include "objects/objects.h"

#include <assert.h>

#include <sublet/cidr.h>
#include <sublet/host_post.h>

#define WEBHOOKS_MAGIC 0x73776862u

struct sync_webhooks {
    unsigned magic;
    struct syncer *syncer;
    struct host_posts *posts; /* NULL until the first review */
};

/* A review that is not sent. */
struct unsent {
    struct err err;
    vapi_webhook_cb done;
    void *ctx;
};

struct sync_webhooks *sync_webhooks_new(struct syncer *s)
{
    struct sync_webhooks *w = NEW(struct sync_webhooks);

    *w = (struct sync_webhooks){.magic = WEBHOOKS_MAGIC, .syncer = s};
    return w;
}

/* ---- where ---- */

bool sync_webhook_may_call(struct str address)
{
    static const char *const never[] = {"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3",
                                        "::/128",    "::1/128",     "fe80::/10",      "ff00::/8"};
    struct cidr ip, range;

    if (str_find(address, '/') < address.n || !cidr_parse(address, &ip))
        return false;
    for (size_t i = 0; i < COUNT(never); i++)
        if (cidr_parse(str_c(never[i]), &range) && cidr_within(&ip, &range))
            return false;
    return true;
}

static bool has_port(const cJSON *service, int64_t port)
{
    json_each(item, json_path(service, "spec.ports")) if (json_i64_at(item, "port", 0) ==
                                                          port) return true;
    return false;
}

static int find_address(struct syncer *s, struct arena *a, const struct vapi_webhook *q,
                        struct str *ret, struct err *err)
{
    cJSON *service = syncer_virtual(s, a, SYNC_SERVICES, q->ns, q->service);
    const cJSON *address = json_path(service, "spec.clusterIP");
    struct mapping m = sync_mapping_get(s, a, SYNC_SERVICES, q->ns, q->service);

    if (!service)
        return err_set(err, &ERR_NOT_FOUND, "service \"%.*s\" not found", STR_F(q->service));
    if (sync_service_is_shown(s, service, q->ns, q->service) || !sync_service_wants_host(service) ||
        !json_count(json_path(service, "spec.selector")))
        return err_set(err, &ERR_FORBIDDEN,
                       "service \"%.*s\" does not select pods of this virtual cluster",
                       STR_F(q->service));
    if (sync_service_is_headless(service))
        return err_set(err, &ERR_FORBIDDEN, "cannot route to service with ClusterIP \"None\"");
    if (!has_port(service, q->port))
        return err_set(err, &ERR_NOT_FOUND, "no service port %lld found for service \"%.*s\"",
                       (long long)q->port, STR_F(q->service));
    if (!str_eq(m.uid, sync_uid(service)) || !translate_service_gave(m.given, address) ||
        !sync_webhook_may_call(json_str(address)))
        return err_set(err, &ERR_UNAVAILABLE, "service \"%.*s\" has no address of the host cluster",
                       STR_F(q->service));
    *ret = json_str(address);
    return 0;
}

/* ---- sending ---- */

static void on_unsent(void *ctx)
{
    struct unsent *u = ctx;

    u->done(u->ctx, 0, STR(""), &u->err);
    mem_free(u);
}

static void refuse(struct syncer *s, const struct err *err, vapi_webhook_cb done, void *ctx)
{
    struct unsent *u = NEW(struct unsent);

    *u = (struct unsent){.done = done, .ctx = ctx};
    err_init(&u->err, NULL);
    err_set(&u->err, err->kind, "%.*s", STR_F(err->message));
    syncer_defer(s, on_unsent, u);
}

void sync_webhooks_send(struct sync_webhooks *w, const struct vapi_webhook *q, vapi_webhook_cb done,
                        void *ctx)
{
    struct syncer *s = w->syncer;
    struct arena *a = arena_new(0);
    struct str address = STR_NULL;
    struct err err;

    assert(w->magic == WEBHOOKS_MAGIC);
    err_init(&err, a);
    if (syncer_is_closing(s))
        err_set(&err, &ERR_UNAVAILABLE, "the API server is shutting down");
    else if (!q->service.n)
        err_set(&err, &ERR_FORBIDDEN,
                "clientConfig.url is not called, only services of this virtual cluster are");
    if (err.kind || find_address(s, a, q, &address, &err)) {
        refuse(s, &err, done, ctx);
        arena_free(a);
        return;
    }
    if (!w->posts)
        w->posts = host_posts_new(vapi_loop(s->api), vapi_clock(s->api));
    host_posts_send(w->posts,
                    &(struct host_post){
                        .name = arena_printf(a, "%.*s.%.*s.svc", STR_F(q->service), STR_F(q->ns)),
                        .address = address,
                        .port = (unsigned)q->port,
                        .path = q->path,
                        .ca = q->ca,
                        .body = q->body,
                        .timeout_ms = q->timeout_ms,
                        .most = q->most},
                    done, ctx);
    arena_free(a);
}

/* ---- the end ---- */

bool sync_webhooks_close(struct sync_webhooks *w, void (*closed)(void *ctx), void *ctx)
{
    struct host_posts *posts = w->posts;

    w->posts = NULL;
    if (!posts)
        return false;
    host_posts_stop(posts);
    host_posts_close(posts, closed, ctx);
    return true;
}

struct sync_webhooks *sync_webhooks_free(struct sync_webhooks *w)
{
    assert(!w || !w->posts);
    mem_free(w);
    return NULL;
}
