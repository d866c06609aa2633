/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tenant's webhook is: its own Service, at the cluster IP that the host gave that Service,
 * or a URL that the admin lists (policy.webhookUrls), and nowhere else. A tenant chooses the name
 * and the port; what could make this process, which the host's network trusts more than a pod, call
 * another server is refused: another URL, what a listed name resolves to on this machine or its
 * link, an address the host did not give, a Service whose endpoints the tenant writes itself. Must
 * never send a review past these checks. */
#include "admission/admission.h"
#include "objects/objects.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <string.h>

#include <sublet/cidr.h>
#include <sublet/config_webhook.h>
#include <sublet/host_post.h>

#define WEBHOOKS_MAGIC 0x73776862u
#define NOT_LISTED                                                                                 \
    "%.*s is not among the URLs that webhooks of this virtual cluster may be at: use a service, "  \
    "or "                                                                                          \
    "have the admin list it (policy.webhookUrls)"

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

/* Of this machine: the pod's own address, too. */
static bool is_own(struct str address)
{
    unsigned char ip[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN];
    struct ifaddrs *all;
    bool found = false;

    if (str_has_prefix(address, STR("::ffff:")) && str_find(address, '.') < address.n)
        address = str_from(address, 7);
    if (address.n >= sizeof(text) || getifaddrs(&all))
        return true;
    memcpy(text, address.p, address.n);
    text[address.n] = '\0';
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

        if (family == AF_INET && inet_pton(family, text, ip) == 1)
            found = !memcmp(&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, ip, 4);
        else if (family == AF_INET6 && inet_pton(family, text, ip) == 1)
            found = !memcmp(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr, ip, 16);
    }
    freeifaddrs(all);
    return found;
}

/* Of what a name in the admin's list resolves to. Beyond the link: where clouds have metadata. */
bool sync_webhook_may_resolve_to(struct str address)
{
    static const char *const metadata[] = {"fd00:ec2::254", "100.100.100.200", "168.63.129.16",
                                           "192.0.0.192", "64:ff9b::/96"};
    struct cidr ip, range;

    if (!sync_webhook_may_call(address) || !cidr_parse(address, &ip) || is_own(address))
        return false;
    for (size_t i = 0; i < COUNT(metadata); i++)
        if (cidr_parse(str_c(metadata[i]), &range) && cidr_within(&ip, &range))
            return false;
    return true;
}

static bool has_port(const cJSON *service, int64_t port)
{
    json_each(item, json_path(service, "spec.ports")) if (json_i64_at(item, "port", 0) ==
                                                          port) return true;
    return false;
}

int sync_service_address(struct syncer *s, struct arena *a, struct str ns, struct str name,
                         int64_t port, struct str *ret, struct err *err)
{
    cJSON *service = syncer_virtual(s, a, SYNC_SERVICES, ns, name);
    const cJSON *address = json_path(service, "spec.clusterIP");
    struct mapping m = sync_mapping_get(s, a, SYNC_SERVICES, ns, name);

    if (!service)
        return err_set(err, &ERR_NOT_FOUND, "service \"%.*s\" not found", STR_F(name));
    if (sync_service_is_shown(s, service, ns, name) || !sync_service_wants_host(service) ||
        !json_count(json_path(service, "spec.selector")))
        return err_set(err, &ERR_FORBIDDEN,
                       "service \"%.*s\" does not select pods of this virtual cluster",
                       STR_F(name));
    if (sync_service_is_headless(service))
        return err_set(err, &ERR_FORBIDDEN, "cannot route to service with ClusterIP \"None\"");
    if (!has_port(service, port))
        return err_set(err, &ERR_NOT_FOUND, "no service port %lld found for service \"%.*s\"",
                       (long long)port, STR_F(name));
    if (!str_eq(m.uid, sync_uid(service)) || !translate_service_gave(m.given, address) ||
        !sync_webhook_may_call(json_str(address)))
        return err_set(err, &ERR_UNAVAILABLE, "service \"%.*s\" has no address of the host cluster",
                       STR_F(name));
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

/* Fills where it goes: a Service of the tenant's, or a URL. */
static int find_server(struct syncer *s, struct arena *a, const struct vapi_webhook *q,
                       struct host_post *ret, struct err *err)
{
    struct config_webhook_url url;
    struct str query = q->url, plain = str_cut(&query, '?');
    struct cidr literal;

    if (q->service.n) {
        ret->name = arena_printf(a, "%.*s.%.*s.svc", STR_F(q->service), STR_F(q->ns));
        ret->port = (unsigned)q->port;
        ret->path = q->path;
        return sync_service_address(s, a, q->ns, q->service, q->port, &ret->address, err);
    }
    if (!config_webhook_url_allowed(s->config, plain, &url))
        return err_set(err, &ERR_FORBIDDEN, NOT_LISTED, STR_F(plain));
    ret->name = url.host;
    ret->port = url.port;
    ret->path = str_from(q->url, plain.n - url.path.n);
    if (!str_has_prefix(ret->path, STR("/")))
        ret->path = arena_printf(a, "/%.*s", STR_F(ret->path));
    /* An address in the admin's list is one that the admin means. */
    if (!cidr_parse(url.host, &literal))
        ret->may_connect = sync_webhook_may_resolve_to;
    return 0;
}

void sync_webhooks_send(struct sync_webhooks *w, const struct vapi_webhook *q, vapi_webhook_cb done,
                        void *ctx)
{
    struct syncer *s = w->syncer;
    struct arena *a = arena_new(0);
    struct host_post post = {
        .ca = q->ca, .body = q->body, .timeout_ms = q->timeout_ms, .most = q->most};
    struct err err;

    assert(w->magic == WEBHOOKS_MAGIC);
    err_init(&err, a);
    if (syncer_is_closing(s))
        err_set(&err, &ERR_UNAVAILABLE, "the API server is shutting down");
    if (err.kind || find_server(s, a, q, &post, &err)) {
        refuse(s, &err, done, ctx);
        arena_free(a);
        return;
    }
    if (!w->posts)
        w->posts = host_posts_new(vapi_loop(s->api), vapi_clock(s->api));
    host_posts_send(w->posts, &post, done, ctx);
    arena_free(a);
}

/* ---- what is written ---- */

static bool has_url(const cJSON *webhooks, struct str url)
{
    json_each(hook, webhooks)
    {
        if (str_eq(json_str_at(hook, "clientConfig.url"), url))
            return true;
    }
    return false;
}

struct written {
    struct syncer *syncer;
    struct arena *arena;
    const struct resource *r;
    const cJSON *object, *old;
};

static int check_url(const struct written *w, struct str path, struct str url, struct err *err)
{
    struct config_webhook_url parsed;

    if (!url.n || config_webhook_url_allowed(w->syncer->config, url, &parsed))
        return 0;
    return err_forbidden(
        err, w->r->group, w->r->plural, json_str_at(w->object, "metadata.name"), "%.*s",
        STR_F(arena_printf(w->arena, "%.*s.url: " NOT_LISTED, STR_F(path), STR_F(url))));
}

static int check_webhooks(const struct written *w, struct err *err)
{
    size_t i = 0;

    json_each(hook, json_get(w->object, "webhooks"))
    {
        struct str url = json_str_at(hook, "clientConfig.url");

        if (!has_url(json_get(w->old, "webhooks"), url) &&
            check_url(w, arena_printf(w->arena, "webhooks[%zu].clientConfig", i), url, err))
            return -1;
        i++;
    }
    return 0;
}

static int check_conversion(const struct written *w, struct err *err)
{
    static const char at[] = "spec.conversion.webhook.clientConfig";
    const struct str url = json_str_at(json_path(w->object, at), "url");

    return str_eq(url, json_str_at(json_path(w->old, at), "url"))
               ? 0
               : check_url(w, str_c(at), url, err);
}

int sync_webhooks_check(struct syncer *s, struct arena *a, const struct resource *r,
                        const cJSON *object, const cJSON *old, struct err *err)
{
    const struct written w = {s, a, r, object, old};

    if (str_eqc(r->group, "admissionregistration.k8s.io"))
        return check_webhooks(&w, err);
    return str_eqc(r->group, "apiextensions.k8s.io") ? check_conversion(&w, err) : 0;
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
