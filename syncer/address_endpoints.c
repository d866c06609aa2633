/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints and EndpointSlice of `default/kubernetes`: a real server publishes where it is reached,
 * and there are clients that read it. They say what the Service says: pods reach this process by
 * that address alone, and what stands behind it is the host's affair. Must never be mirrored, which
 * the label tells. */
#include "engine.h"

#include <sublet/log.h>

#define NAMESPACE STR("default")
#define NAME      STR("kubernetes")

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    const char *kind = ctx;

    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS)
        log_warn("syncer: cannot write %s default/kubernetes: %.*s", kind, STR_F(err->message));
}

static cJSON *ports(struct arena *a, const struct syncer *s)
{
    cJSON *list = json_new_array(a), *port = json_append(list, json_new_object(a));

    json_set_str(a, port, "name", STR("https"));
    json_set_i64(a, port, "port", s->tenant.api_port);
    json_set_str(a, port, "protocol", STR("TCP"));
    return list;
}

static cJSON *labelled(struct arena *a, const char *label, struct str value)
{
    cJSON *object = json_new_object(a), *metadata = json_ensure_object(a, object, "metadata");

    json_set_str(a, metadata, "name", NAME);
    json_set_str(a, metadata, "namespace", NAMESPACE);
    json_set_str(a, json_ensure_object(a, metadata, "labels"), label, value);
    return object;
}

static cJSON *endpoints(struct syncer *s, struct arena *a)
{
    cJSON *object = labelled(a, "endpointslice.kubernetes.io/skip-mirror", STR("true"));
    cJSON *subsets = json_set(a, object, "subsets", json_new_array(a));
    cJSON *subset = json_append(subsets, json_new_object(a));
    cJSON *addresses = json_set(a, subset, "addresses", json_new_array(a));

    json_set_str(a, json_append(addresses, json_new_object(a)), "ip", s->tenant.api_ip);
    json_set(a, subset, "ports", ports(a, s));
    return object;
}

static struct str address_type(struct str ip)
{
    return str_find(ip, ':') < ip.n ? STR("IPv6") : STR("IPv4");
}

static cJSON *endpoint_slice(struct syncer *s, struct arena *a)
{
    cJSON *object = labelled(a, "kubernetes.io/service-name", NAME);
    cJSON *list = json_set(a, object, "endpoints", json_new_array(a));
    cJSON *endpoint = json_append(list, json_new_object(a));
    cJSON *addresses = json_set(a, endpoint, "addresses", json_new_array(a));

    json_set_str(a, object, "addressType", address_type(s->tenant.api_ip));
    json_append(addresses, json_new_string(a, s->tenant.api_ip));
    json_set(a, json_ensure_object(a, endpoint, "conditions"), "ready", json_new_bool(a, true));
    json_set(a, object, "ports", ports(a, s));
    return object;
}

static const struct published {
    const char *group, *plural, *kind;
    cJSON *(*make)(struct syncer *s, struct arena *a);
    const char *own[3]; /* what is compared, and written when it differs */
} PUBLISHED[] = {
    {"", "endpoints", "Endpoints", endpoints, {"subsets"}},
    {"discovery.k8s.io", "endpointslices", "EndpointSlice", endpoint_slice, {"endpoints", "ports"}},
};

static void update(struct syncer *s, struct arena *a, const struct published *p, const cJSON *now,
                   const cJSON *want)
{
    cJSON *patch = json_new_object(a);

    for (size_t i = 0; i < 3 && p->own[i]; i++) {
        const cJSON *value = json_get(want, p->own[i]);

        if (!json_equal(json_get(now, p->own[i]), value))
            json_set(a, patch, p->own[i], json_copy(a, value));
    }
    if (json_first(patch))
        vapi_patch(s->api, syncer_resource(s, p->group, p->plural), STR_NULL, NAMESPACE, NAME,
                   patch, on_written, (void *)(uintptr_t)p->kind);
}

static void publish(struct syncer *s, struct arena *a, const struct published *p)
{
    const struct resource *r = syncer_resource(s, p->group, p->plural);
    const struct store_object *o = store_latest(s->store, r->storage, NAMESPACE, NAME);
    struct vapi_delete options = {.grace_seconds = -1};
    void *kind = (void *)(uintptr_t)p->kind;
    const cJSON *now = o ? vapi_tree(a, o) : NULL;

    if (!s->tenant.api_ip.n) {
        if (o)
            vapi_delete(s->api, r, NAMESPACE, NAME, &options, on_written, kind);
    } else if (!o) {
        vapi_create(s->api, r, NAMESPACE, p->make(s, a), on_written, kind);
    } else {
        update(s, a, p, now, p->make(s, a));
    }
}

void address_publish(struct syncer *s)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < sizeof PUBLISHED / sizeof *PUBLISHED; i++)
        publish(s, a, &PUBLISHED[i]);
    arena_free(a);
}
