/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ports of Services, which a virtual cluster takes from its host and the host has to
 * give itself. What is given is taken in memory at admission, before the Service is stored, and
 * given back when the store holds nothing of it any more; at start the stored Services say what is
 * taken. So no two Services ever hold one address, not across restarts either. Must never keep what
 * a refused request took.
 *
 *   admit: take -> stored -> event: what the version before had and this has not is given back
 *               '- refused -> undo: what the stored version has not is given back
 *
 * Source: k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go. */
#include "impl.h"

#include <assert.h>
#include <sys/queue.h>

#include <uv.h>

#include <sublet/log.h>

#define SERVICES_MAGIC 0x73766373u
#define SERVICE_CIDR   "10.96.0.0/16"
#define API_PORT       443

/* An answer that is due at the loop's next turn. */
struct answer {
    STAILQ_ENTRY(answer) place;
    struct err err;
    bool failed;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
};

struct services {
    unsigned magic;
    struct embedded *embedded;
    struct numbers *ips, *ports;
    uv_timer_t timer;
    STAILQ_HEAD(, answer) answers;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- what a Service holds --- */

static bool is_type(const cJSON *service, const char *type)
{
    struct str is = json_str_at(service, "spec.type");

    return str_eqc(is.n ? is : STR("ClusterIP"), type);
}

static bool wants_node_ports(const cJSON *service)
{
    if (is_type(service, "LoadBalancer"))
        return json_true(json_path(service, "spec.allocateLoadBalancerNodePorts"));
    return is_type(service, "NodePort");
}

static bool wants_health_port(const cJSON *service)
{
    return is_type(service, "LoadBalancer") &&
           str_eqc(json_str_at(service, "spec.externalTrafficPolicy"), "Local");
}

typedef void (*held_cb)(struct services *s, struct numbers *from, uint32_t number, struct str owner,
                        const cJSON *other);

static bool port_in(const cJSON *service, uint32_t number)
{
    json_each(p, json_path(service, "spec.ports"))
    {
        if (json_i64_at(p, "nodePort", 0) == number)
            return true;
    }
    return json_i64_at(service, "spec.healthCheckNodePort", 0) == number;
}

static bool ip_in(const cJSON *service, uint32_t number)
{
    uint32_t ip;

    return numbers_ip_parse(json_str_at(service, "spec.clusterIP"), &ip) && ip == number;
}

static void each_held(struct services *s, const cJSON *service, const cJSON *other, held_cb each)
{
    struct str owner = meta_uid(service);
    int64_t health = json_i64_at(service, "spec.healthCheckNodePort", 0);
    uint32_t ip;

    if (numbers_ip_parse(json_str_at(service, "spec.clusterIP"), &ip))
        each(s, s->ips, ip, owner, other);
    if (health > 0 && health <= UINT16_MAX)
        each(s, s->ports, (uint32_t)health, owner, other);
    json_each(p, json_path(service, "spec.ports"))
    {
        int64_t port = json_i64_at(p, "nodePort", 0);

        if (port > 0 && port <= UINT16_MAX)
            each(s, s->ports, (uint32_t)port, owner, other);
    }
}

static void take_held(struct services *s, struct numbers *from, uint32_t number, struct str owner,
                      const cJSON *other)
{
    (void)other;
    if (!numbers_take(from, number, owner))
        log_warn("embedded host: %s %u belongs to two Services, or to no range",
                 from == s->ips ? "address" : "port", number);
}

static void drop_unless_in(struct services *s, struct numbers *from, uint32_t number,
                           struct str owner, const cJSON *other)
{
    bool kept = other && (from == s->ips ? ip_in(other, number) : port_in(other, number));

    if (!kept)
        numbers_drop(from, number, owner);
}

/* --- life --- */

static bool on_stored(void *ctx, const struct store_object *o)
{
    struct arena *a = arena_new(0);

    each_held(ctx, vapi_tree(a, o), NULL, take_held);
    arena_free(a);
    return true;
}

static const struct resource *service_resource(const struct services *s)
{
    return embedded_resource(s->embedded->api, "", "services");
}

struct services *services_new(struct embedded *e)
{
    struct services *s = NEW(struct services);

    *s = (struct services){.magic = SERVICES_MAGIC, .embedded = e};
    STAILQ_INIT(&s->answers);
    s->ips = numbers_new(API_SERVICE, SERVICE_NET + (1u << SERVICE_BITS) - 2);
    s->ports = numbers_new(NODE_PORT_LOW, NODE_PORT_HIGH);
    uv_timer_init(vapi_loop(e->api), &s->timer);
    s->timer.data = s;
    store_scan_latest(vapi_store(e->api), service_resource(s)->storage, STR_NULL, on_stored, s);
    return s;
}

static void answer_all(struct services *s)
{
    struct answer *w;

    while ((w = STAILQ_FIRST(&s->answers))) {
        STAILQ_REMOVE_HEAD(&s->answers, place);
        w->done(w->ctx, w->failed ? &w->err : NULL);
        arena_free(w->err.arena);
        mem_free(w);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct services *s = timer->data;

    assert(s->magic == SERVICES_MAGIC);
    answer_all(s);
}

static void on_closed(uv_handle_t *handle)
{
    struct services *s = handle->data;
    void (*closed)(void *) = s->closed;
    void *ctx = s->closed_ctx;

    assert(s->magic == SERVICES_MAGIC);
    numbers_free(s->ips);
    numbers_free(s->ports);
    s->magic = 0;
    mem_free(s);
    closed(ctx);
}

void services_close(struct services *s, void (*closed)(void *ctx), void *ctx)
{
    assert(s->magic == SERVICES_MAGIC);
    s->closed = closed;
    s->closed_ctx = ctx;
    answer_all(s);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

/* --- giving --- */

/* One admission. */
struct allocation {
    struct services *services;
    struct arena *arena;
    cJSON *service;
    bool dry_run;
    struct field_errors errors;
};

/* The API's own address is reserved. */
static bool is_api_service(const cJSON *service)
{
    return str_eqc(meta_ns(service), "default") && str_eqc(meta_name(service), "kubernetes");
}

static bool take(struct allocation *w, struct numbers *from, uint32_t number)
{
    struct str owner = meta_uid(w->service);
    bool had = numbers_owned_by(from, number, owner);

    if (!numbers_take(from, number, owner))
        return false;
    if (w->dry_run && !had)
        numbers_drop(from, number, owner);
    return true;
}

static bool find_free(struct allocation *w, struct numbers *from, uint32_t *ret)
{
    struct services *s = w->services;
    bool reserve = from == s->ips && !is_api_service(w->service) &&
                   numbers_take(from, API_SERVICE, STR("the API"));
    bool found = numbers_find(from, (uint32_t)rng_u64(vapi_rng(s->embedded->api)), ret);

    if (reserve)
        numbers_drop(from, API_SERVICE, STR("the API"));
    return found;
}

#define SPEC FIELD(NULL, "spec")

static void refuse_ip(struct allocation *w, struct str ip, const char *why)
{
    cJSON *ips = json_new_array(w->arena);

    json_append(ips, json_new_string(w->arena, ip));
    field_invalid(&w->errors, FIELD(SPEC, "clusterIPs"), ips,
                  arena_printf(w->arena, "failed to allocate IP %.*s: %s", STR_F(ip), why).p);
}

static void give_ip(struct allocation *w)
{
    cJSON *spec = json_get(w->service, "spec"), *list;
    struct str ip;
    uint32_t number;

    if (!find_free(w, w->services->ips, &number) || !take(w, w->services->ips, number)) {
        field_invalid(&w->errors, FIELD(SPEC, "clusterIPs"), json_new_array(w->arena),
                      "failed to allocate a serviceIP: range is full");
        return;
    }
    ip = numbers_ip_format(w->arena, number);
    json_set_str(w->arena, spec, "clusterIP", ip);
    list = json_set(w->arena, spec, "clusterIPs", json_new_array(w->arena));
    json_append(list, json_new_string(w->arena, ip));
}

static void set_ip(struct allocation *w)
{
    struct str ip = json_str_at(w->service, "spec.clusterIP");

    if (is_type(w->service, "ExternalName") || str_eqc(ip, "None"))
        return;
    if (ip.n) {
        struct services *s = w->services;
        uint32_t number;

        if (!numbers_ip_parse(ip, &number) || !numbers_in(s->ips, number))
            refuse_ip(w, ip, "the provided network does not match the current range");
        else if ((number == API_SERVICE && !is_api_service(w->service)) || !take(w, s->ips, number))
            refuse_ip(w, ip, "provided IP is already allocated");
    } else {
        give_ip(w);
    }
}

/* IPv4 only; a headless Service without selector means every family. */
static void set_families(struct allocation *w)
{
    cJSON *spec = json_get(w->service, "spec"), *families = json_get(spec, "ipFamilies");
    bool headless =
        str_eqc(json_str_at(spec, "clusterIP"), "None") && !json_count(json_get(spec, "selector"));
    struct str policy = json_str_at(spec, "ipFamilyPolicy");
    size_t i = 0;

    if (is_type(w->service, "ExternalName"))
        return;
    json_each(f, families)
    {
        if (!headless && !str_eqc(json_str(f), "IPv4"))
            field_invalid(&w->errors, FIELD_INDEX(FIELD(SPEC, "ipFamilies"), i), f,
                          "not configured on this cluster");
        i++;
    }
    if (!headless && str_eqc(policy, "RequireDualStack"))
        field_invalid_str(&w->errors, FIELD(SPEC, "ipFamilyPolicy"), policy,
                          "this cluster is not configured for dual-stack services");
    if (!policy.n)
        json_set_str(w->arena, spec, "ipFamilyPolicy",
                     str_c(headless ? "RequireDualStack" : "SingleStack"));
    if (json_count(families))
        return;
    families = json_set(w->arena, spec, "ipFamilies", json_new_array(w->arena));
    json_append(families, json_new_string(w->arena, STR("IPv4")));
    if (headless)
        json_append(families, json_new_string(w->arena, STR("IPv6")));
}

/* --- ports of machines --- */

static void refuse_port(struct allocation *w, const struct field_path *at, int64_t port)
{
    bool in = port > 0 && port <= UINT16_MAX && numbers_in(w->services->ports, (uint32_t)port);

    field_invalid(&w->errors, at, json_new_i64(w->arena, port),
                  in ? "provided port is already allocated"
                     : "provided port is not in the valid range. The range of valid ports is "
                       "30000-32767");
}

static void set_port(struct allocation *w, cJSON *holder, const char *key,
                     const struct field_path *at)
{
    struct numbers *ports = w->services->ports;
    int64_t port = json_i64_at(holder, key, 0);
    uint32_t number;

    if (port) {
        if (port < 0 || port > UINT16_MAX || !take(w, ports, (uint32_t)port))
            refuse_port(w, at, port);
        return;
    }
    if (!find_free(w, ports, &number) || !take(w, ports, number))
        field_invalid(&w->errors, at, json_new_i64(w->arena, 0),
                      "failed to allocate a nodePort: range is full");
    else
        json_set_i64(w->arena, holder, key, number);
}

/* Two protocols of one number share a port: TCP and UDP of DNS. */
static bool shared_earlier(const cJSON *service, const cJSON *port)
{
    int64_t number = json_i64_at(port, "nodePort", 0);

    json_each(p, json_path(service, "spec.ports"))
    {
        if (p == port)
            return false;
        if (number && json_i64_at(p, "nodePort", 0) == number)
            return true;
    }
    return false;
}

static void set_ports(struct allocation *w)
{
    size_t i = 0;

    if (wants_node_ports(w->service)) {
        json_each(p, json_path(w->service, "spec.ports"))
        {
            const struct field_path *at = FIELD_INDEX(FIELD(SPEC, "ports"), i++);

            if (!shared_earlier(w->service, p))
                set_port(w, p, "nodePort", FIELD(at, "nodePort"));
        }
    }
    if (wants_health_port(w->service))
        set_port(w, json_get(w->service, "spec"), "healthCheckNodePort",
                 FIELD(SPEC, "healthCheckNodePort"));
}

/* --- the hook --- */

bool services_want(const struct resource *r, const cJSON *object)
{
    return object && !r->group.n && str_eqc(r->plural, "services");
}

void services_undo(struct services *s, const cJSON *object)
{
    struct arena *a = arena_new(0);
    const struct store_object *o;

    assert(s->magic == SERVICES_MAGIC);
    /* The current version of the same Service: stored, or about to be. */
    o = store_latest(vapi_store(s->embedded->api), service_resource(s)->storage, meta_ns(object),
                     meta_name(object));
    each_held(s, object, o && str_eq(o->uid, meta_uid(object)) ? vapi_tree(a, o) : NULL,
              drop_unless_in);
    arena_free(a);
}

void services_admit(struct services *s, struct arena *a, cJSON *object, const cJSON *old,
                    bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct allocation w = {s, a, object, dry_run, {0}};
    struct answer *answer = NEW(struct answer);

    (void)old;
    assert(s->magic == SERVICES_MAGIC);
    *answer = (struct answer){.done = done, .ctx = ctx};
    err_init(&answer->err, arena_new(0));
    field_errors_init(&w.errors, a);
    set_families(&w);
    set_ip(&w);
    set_ports(&w);
    answer->failed = field_errors_to_err(&w.errors, STR(""), STR("Service"), meta_name(object),
                                         &answer->err) != 0;
    if (answer->failed && !dry_run)
        services_undo(s, object);
    STAILQ_INSERT_TAIL(&s->answers, answer, place);
    uv_timer_start(&s->timer, on_timer, 0, 0);
}

/* --- what events give back --- */

static void map_service(struct controller *c, const struct store_event *e)
{
    struct embedded *host = controller_state(c);
    struct services *s = host->services;
    struct arena *a = arena_new(0);

    if (e->type == STORE_DELETED)
        each_held(s, vapi_tree(a, e->object), NULL, drop_unless_in);
    else if (e->previous)
        each_held(s, vapi_tree(a, e->previous), vapi_tree(a, e->object), drop_unless_in);
    arena_free(a);
}

static void no_work(struct reconcile *r)
{
    (void)r;
}

static const struct controller_source SERVICE_SOURCES[] = {
    {"", "services", map_service},
    {NULL, NULL, NULL},
};

const struct controller_def SERVICE_PART = {
    .name = "service-allocator",
    .sources = SERVICE_SOURCES,
    .reconcile = no_work,
};

/* --- default/kubernetes --- */

void services_seed(struct embedded *e)
{
    unsigned port = vapi_port(e->api) ? vapi_port(e->api) : API_PORT;
    struct arena *a = arena_new(0);
    struct vapi_address address = {.cluster_ip = numbers_ip_format(a, API_SERVICE),
                                   .endpoint_ip = numbers_ip_format(a, CONTROL_PLANE),
                                   .port = API_PORT,
                                   .target_port = port,
                                   .endpoint_port = port};

    vapi_publish_address(e->api, &address);
    arena_free(a);
}
