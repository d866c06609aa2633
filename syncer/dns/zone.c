/* SPDX-License-Identifier: Apache-2.0 */
/* The index that answers are made from: by name (namespaces, Services, slices, pods) and by
 * address. Must never hold the address of a finished pod: the host may have given it to another
 * tenant. */
#include "zone.h"
#include "name.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define LABEL_SERVICE "kubernetes.io/service-name"

enum use_kind { USE_SERVICE, USE_ENDPOINT, USE_POD };

/* One object that has an address. */
struct use {
    SLIST_ENTRY(use) place;
    enum use_kind kind;
    const void *owner; /* struct zone_service, zone_slice or pod, by kind */
    const char *hostname;
};

struct place {
    struct map_entry entry;
    struct dns_ip ip;
    SLIST_HEAD(, use) uses;
};

struct pod {
    struct map_entry entry;
    char *key;  /* "ns/name" */
    char *self; /* "hostname.subdomain"; NULL: it has no subdomain */
    struct dns_ip *ips;
    size_t n_ips;
};

struct node {
    struct map_entry entry;
    char *key; /* "/name" */
    struct dns_ip *ips;
    size_t n_ips;
};

struct space {
    struct map_entry entry;
    char *key;
};

struct dns_zone {
    struct map maps[N_ZONE]; /* by "ns/name"; namespaces: by name */
    struct map places;       /* by address */
    uint32_t serial;
};

/* --- by address --- */

static struct str ip_key(const struct dns_ip *ip)
{
    return (struct str){(const char *)ip->b, sizeof(ip->b)};
}

static struct place *find_place(const struct dns_zone *z, const struct dns_ip *ip)
{
    struct map_entry *e = map_get(&z->places, ip_key(ip));

    return e ? CONTAINER(e, struct place, entry) : NULL;
}

static const struct use *first_use(const struct dns_zone *z, const struct dns_ip *ip)
{
    const struct place *p = find_place(z, ip);

    return p ? SLIST_FIRST(&p->uses) : NULL;
}

static void place_add(struct dns_zone *z, const struct dns_ip *ip, enum use_kind kind,
                      const void *owner, const char *hostname)
{
    struct place *p = find_place(z, ip);
    struct use *use = NEW(struct use);

    if (!p) {
        p = NEW(struct place);
        p->ip = *ip;
        map_put(&z->places, &p->entry, ip_key(&p->ip));
    }
    *use = (struct use){.kind = kind, .owner = owner, .hostname = hostname};
    SLIST_INSERT_HEAD(&p->uses, use, place);
}

/* Removes one use by this owner, which added one for each of its addresses. */
static void place_remove(struct dns_zone *z, const struct dns_ip *ip, const void *owner)
{
    struct place *p = find_place(z, ip);
    struct use *use;

    SLIST_FOREACH(use, &p->uses, place)
    {
        if (use->owner == owner)
            break;
    }
    assert(use);
    SLIST_REMOVE(&p->uses, use, use, place);
    mem_free(use);
    if (!SLIST_EMPTY(&p->uses))
        return;
    map_remove(&z->places, &p->entry);
    mem_free(p);
}

/* --- lists of objects --- */

static struct dns_ip *read_ips(const cJSON *list, const char *member, size_t *ret_n)
{
    struct dns_ip *ips = mem_alloc((json_count(list) + 1) * sizeof(*ips));
    size_t n = 0;

    json_each(item, list)
    {
        struct str text = json_str(member ? json_get(item, member) : item);

        n += dns_ip_parse(text, &ips[n]);
    }
    *ret_n = n;
    return ips;
}

static char *lower_copy(struct str text)
{
    char *ret = mem_strdup(text);

    for (char *c = ret; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return ret;
}

static struct zone_port *read_ports(const cJSON *list, size_t *ret_n)
{
    struct zone_port *ports = mem_alloc((json_count(list) + 1) * sizeof(*ports));
    size_t n = 0;

    json_each(port, list)
    {
        struct str protocol = json_str(json_get(port, "protocol"));

        ports[n].name = lower_copy(json_str(json_get(port, "name")));
        ports[n].protocol = lower_copy(protocol.n ? protocol : STR("tcp"));
        ports[n++].number = (uint16_t)json_i64_at(port, "port", 0);
    }
    *ret_n = n;
    return ports;
}

static void free_ports(struct zone_port *ports, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_free(ports[i].name);
        mem_free(ports[i].protocol);
    }
    mem_free(ports);
}

static char *key_of(struct str ns, struct str name)
{
    char *key = mem_alloc(ns.n + name.n + 2);

    memcpy(key, ns.p ? ns.p : "", ns.n);
    key[ns.n] = '/';
    memcpy(key + ns.n + 1, name.p, name.n);
    return key;
}

static struct map_entry *find(const struct dns_zone *z, enum zone_kind kind, struct str ns,
                              struct str name)
{
    char key[2 * 256]; /* names in Kubernetes are shorter */

    if (ns.n + name.n + 1 > sizeof(key))
        return NULL;
    memcpy(key, ns.p ? ns.p : "", ns.n);
    key[ns.n] = '/';
    memcpy(key + ns.n + 1, name.p ? name.p : "", name.n);
    return map_get(&z->maps[kind], (struct str){key, ns.n + 1 + name.n});
}

/* --- Services --- */

static struct zone_service *service_get(struct dns_zone *z, struct str ns, struct str name)
{
    struct map_entry *e = find(z, ZONE_SERVICES, ns, name);
    struct zone_service *s;

    if (e)
        return CONTAINER(e, struct zone_service, entry);
    s = NEW(struct zone_service);
    s->key = key_of(ns, name);
    map_put(&z->maps[ZONE_SERVICES], &s->entry, str_c(s->key));
    return s;
}

static void service_settle(struct dns_zone *z, struct zone_service *s)
{
    if (s->exists || !LIST_EMPTY(&s->slices))
        return;
    map_remove(&z->maps[ZONE_SERVICES], &s->entry);
    mem_free(s->key);
    mem_free(s);
}

static void remove_service(struct dns_zone *z, struct map_entry *e)
{
    struct zone_service *s = CONTAINER(e, struct zone_service, entry);

    for (size_t i = 0; i < s->n_ips; i++)
        place_remove(z, &s->ips[i], s);
    mem_free(s->ips);
    free_ports(s->ports, s->n_ports);
    mem_free(s->external);
    s->ips = NULL;
    s->ports = NULL;
    s->external = NULL;
    s->n_ips = s->n_ports = 0;
    s->exists = s->headless = false;
    service_settle(z, s);
}

static void add_service(struct dns_zone *z, struct str ns, struct str name, const cJSON *object)
{
    struct zone_service *s = service_get(z, ns, name);
    const cJSON *spec = json_get(object, "spec"), *ips = json_get(spec, "clusterIPs");
    struct dns_ip ip;

    s->exists = true;
    s->ports = read_ports(json_get(spec, "ports"), &s->n_ports);
    if (str_eqc(json_str(json_get(spec, "type")), "ExternalName")) {
        s->external = mem_strdup(json_str(json_get(spec, "externalName")));
        return;
    }
    s->headless = str_eqc(json_str(json_get(spec, "clusterIP")), "None");
    s->ips = read_ips(ips, NULL, &s->n_ips);
    if (!s->n_ips && dns_ip_parse(json_str(json_get(spec, "clusterIP")), &ip))
        s->ips[s->n_ips++] = ip;
    for (size_t i = 0; i < s->n_ips; i++)
        place_add(z, &s->ips[i], USE_SERVICE, s, NULL);
}

/* --- slices --- */

static void remove_slice(struct dns_zone *z, struct map_entry *e)
{
    struct zone_slice *slice = CONTAINER(e, struct zone_slice, entry);
    struct zone_service *s = slice->service;

    for (size_t i = 0; i < slice->n_endpoints; i++) {
        place_remove(z, &slice->endpoints[i].ip, slice);
        mem_free(slice->endpoints[i].hostname);
    }
    LIST_REMOVE(slice, place);
    service_settle(z, s);
    map_remove(&z->maps[ZONE_SLICES], &slice->entry);
    free_ports(slice->ports, slice->n_ports);
    mem_free(slice->endpoints);
    mem_free(slice->key);
    mem_free(slice);
}

/* The name that CoreDNS gives an endpoint without a hostname. */
static char *default_hostname(const struct dns_ip *ip)
{
    struct arena *a = arena_new(0);
    char *ret = mem_strdup(dns_ip_text(a, ip));
    size_t n = strlen(ret);

    arena_free(a);
    for (char *c = ret; *c; c++)
        if (*c == '.' || *c == ':')
            *c = '-';
    if (!dns_ip_is_v4(ip) && ret[n - 1] == '-') {
        ret = mem_realloc(ret, n + 2);
        memcpy(ret + n, "0", 2);
    }
    return ret;
}

/* A missing condition means true (discovery.k8s.io/v1). */
static bool is_ready(const cJSON *endpoint)
{
    const cJSON *ready = json_path(endpoint, "conditions.ready");

    return !json_is_bool(ready) || json_true(ready);
}

static size_t count_addresses(const cJSON *endpoints)
{
    size_t n = 0;

    json_each(endpoint, endpoints)
    {
        n += json_count(json_get(endpoint, "addresses"));
    }
    return n;
}

static void add_endpoints(struct dns_zone *z, struct zone_slice *slice, const cJSON *endpoint)
{
    struct str hostname = json_str(json_get(endpoint, "hostname"));

    json_each(address, json_get(endpoint, "addresses"))
    {
        struct zone_endpoint *to = &slice->endpoints[slice->n_endpoints];

        if (!dns_ip_parse(json_str(address), &to->ip))
            continue;
        to->hostname = hostname.n ? lower_copy(hostname) : default_hostname(&to->ip);
        slice->n_endpoints++;
        place_add(z, &to->ip, USE_ENDPOINT, slice, to->hostname);
    }
}

static void add_slice(struct dns_zone *z, struct str ns, struct str name, const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata.labels");
    struct str service = json_str(json_get(labels, LABEL_SERVICE));
    const cJSON *endpoints = json_get(object, "endpoints");
    struct zone_slice *slice;

    if (!service.n || str_eqc(json_str_at(object, "addressType"), "FQDN"))
        return;
    slice = NEW(struct zone_slice);
    slice->key = key_of(ns, name);
    slice->service = service_get(z, ns, service);
    LIST_INSERT_HEAD(&slice->service->slices, slice, place);
    slice->ports = read_ports(json_get(object, "ports"), &slice->n_ports);
    slice->endpoints = mem_alloc((count_addresses(endpoints) + 1) * sizeof(*slice->endpoints));
    json_each(endpoint, endpoints)
    {
        if (is_ready(endpoint))
            add_endpoints(z, slice, endpoint);
    }
    map_put(&z->maps[ZONE_SLICES], &slice->entry, str_c(slice->key));
}

/* --- pods --- */

static void remove_pod(struct dns_zone *z, struct map_entry *e)
{
    struct pod *pod = CONTAINER(e, struct pod, entry);

    for (size_t i = 0; i < pod->n_ips; i++)
        place_remove(z, &pod->ips[i], pod);
    map_remove(&z->maps[ZONE_PODS], &pod->entry);
    mem_free(pod->ips);
    mem_free(pod->self);
    mem_free(pod->key);
    mem_free(pod);
}

/* As the kubelet makes it: a long name is cut to a label's length, and then ends with neither "-"
 * nor ".". */
static char *self_of(struct str name, const cJSON *spec)
{
    struct str hostname = json_str(json_get(spec, "hostname"));
    struct str subdomain = json_str(json_get(spec, "subdomain"));
    struct arena *a;
    char *ret;

    if (!subdomain.n || json_str(json_get(spec, "hostnameOverride")).n)
        return NULL;
    if (!hostname.n)
        hostname = name;
    if (hostname.n > DNS_LABEL_MAX)
        hostname.n = DNS_LABEL_MAX;
    while (hostname.n && (hostname.p[hostname.n - 1] == '-' || hostname.p[hostname.n - 1] == '.'))
        hostname.n--;
    a = arena_new(0);
    ret = lower_copy(arena_printf(a, "%.*s.%.*s", STR_F(hostname), STR_F(subdomain)));
    arena_free(a);
    return ret;
}

static void add_pod(struct dns_zone *z, struct str ns, struct str name, const cJSON *object)
{
    const cJSON *status = json_get(object, "status");
    struct str phase = json_str(json_get(status, "phase"));
    struct pod *pod;

    if (!json_str(json_get(status, "podIP")).n || str_eqc(phase, "Succeeded") ||
        str_eqc(phase, "Failed"))
        return;
    pod = NEW(struct pod);
    pod->key = key_of(ns, name);
    pod->self = self_of(name, json_get(object, "spec"));
    pod->ips = read_ips(json_get(status, "podIPs"), "ip", &pod->n_ips);
    if (!pod->n_ips)
        pod->n_ips = dns_ip_parse(json_str(json_get(status, "podIP")), &pod->ips[0]);
    for (size_t i = 0; i < pod->n_ips; i++)
        place_add(z, &pod->ips[i], USE_POD, pod, NULL);
    map_put(&z->maps[ZONE_PODS], &pod->entry, str_c(pod->key));
}

/* --- nodes --- */

static void remove_node(struct dns_zone *z, struct map_entry *e)
{
    struct node *node = CONTAINER(e, struct node, entry);

    map_remove(&z->maps[ZONE_NODES], &node->entry);
    mem_free(node->ips);
    mem_free(node->key);
    mem_free(node);
}

/* Not in the index by address: several nodes may share one, and a node is no client. */
static void add_node(struct dns_zone *z, struct str ns, struct str name, const cJSON *object)
{
    const cJSON *addresses = json_path(object, "status.addresses");
    struct node *node = NEW(struct node);

    node->key = key_of(ns, name);
    node->ips = mem_alloc((json_count(addresses) + 1) * sizeof(*node->ips));
    json_each(one, addresses)
    {
        if (str_eqc(json_str(json_get(one, "type")), "InternalIP"))
            node->n_ips +=
                dns_ip_parse(json_str(json_get(one, "address")), &node->ips[node->n_ips]);
    }
    map_put(&z->maps[ZONE_NODES], &node->entry, str_c(node->key));
}

/* --- namespaces --- */

static void remove_space(struct dns_zone *z, struct map_entry *e)
{
    struct space *s = CONTAINER(e, struct space, entry);

    map_remove(&z->maps[ZONE_NAMESPACES], &s->entry);
    mem_free(s->key);
    mem_free(s);
}

static void add_space(struct dns_zone *z, struct str ns, struct str name, const cJSON *object)
{
    struct space *s = NEW(struct space);

    (void)object;
    s->key = key_of(ns, name);
    map_put(&z->maps[ZONE_NAMESPACES], &s->entry, str_c(s->key));
}

/* --- all of them --- */

static const struct {
    void (*add)(struct dns_zone *z, struct str ns, struct str name, const cJSON *object);
    void (*remove)(struct dns_zone *z, struct map_entry *e);
} KINDS[N_ZONE] = {
    [ZONE_NAMESPACES] = {add_space, remove_space}, [ZONE_SERVICES] = {add_service, remove_service},
    [ZONE_SLICES] = {add_slice, remove_slice},     [ZONE_PODS] = {add_pod, remove_pod},
    [ZONE_NODES] = {add_node, remove_node},
};

struct dns_zone *dns_zone_new(void)
{
    struct dns_zone *z = NEW(struct dns_zone);

    z->serial = 1;
    return z;
}

void dns_zone_set(struct dns_zone *z, enum zone_kind kind, struct str ns, struct str name,
                  const cJSON *object)
{
    struct map_entry *e = find(z, kind, ns, name);

    z->serial++;
    if (e)
        KINDS[kind].remove(z, e);
    if (object)
        KINDS[kind].add(z, ns, name, object);
}

struct clearing {
    struct dns_zone *zone;
    enum zone_kind kind;
};

static void clear_one(void *ctx, struct map_entry *e)
{
    struct clearing *c = ctx;

    KINDS[c->kind].remove(c->zone, e);
}

void dns_zone_clear(struct dns_zone *z, enum zone_kind kind)
{
    struct clearing c = {z, kind};

    map_each(&z->maps[kind], clear_one, &c);
    z->serial++;
}

/* Slices first: a Service is kept while a slice refers to it. */
struct dns_zone *dns_zone_free(struct dns_zone *z)
{
    if (!z)
        return NULL;
    for (int kind = N_ZONE; kind-- > 0;)
        dns_zone_clear(z, (enum zone_kind)kind);
    mem_free(z);
    return NULL;
}

uint32_t dns_zone_serial(const struct dns_zone *z)
{
    return z->serial;
}

/* --- look-ups --- */

bool dns_zone_has_namespace(const struct dns_zone *z, struct str ns)
{
    return find(z, ZONE_NAMESPACES, STR(""), ns) != NULL;
}

const struct zone_service *dns_zone_service(const struct dns_zone *z, struct str ns,
                                            struct str name)
{
    struct map_entry *e = find(z, ZONE_SERVICES, ns, name);
    const struct zone_service *s = e ? CONTAINER(e, struct zone_service, entry) : NULL;

    return s && s->exists ? s : NULL;
}

bool dns_zone_has_pod(const struct dns_zone *z, struct str ns, const struct dns_ip *ip)
{
    const struct use *use = first_use(z, ip);

    for (; use; use = SLIST_NEXT(use, place)) {
        struct str key;

        if (use->kind != USE_POD)
            continue;
        key = str_c(((const struct pod *)use->owner)->key);
        if (!ns.p || str_eq(str_cut(&key, '/'), ns))
            return true;
    }
    return false;
}

const struct dns_ip *dns_zone_self(const struct dns_zone *z, const struct dns_ip *client,
                                   struct str ns, struct str self, size_t *ret_n)
{
    const struct use *use = first_use(z, client);

    for (; use; use = SLIST_NEXT(use, place)) {
        const struct pod *pod = use->owner;
        struct str key;

        if (use->kind != USE_POD || !pod->self || !str_eqc(self, pod->self))
            continue;
        key = str_c(pod->key);
        if (!str_eq(str_cut(&key, '/'), ns))
            continue;
        *ret_n = pod->n_ips;
        return pod->ips;
    }
    return NULL;
}

const struct dns_ip *dns_zone_node(const struct dns_zone *z, struct str name, size_t *ret_n)
{
    struct map_entry *e = find(z, ZONE_NODES, STR(""), name);
    const struct node *node = e ? CONTAINER(e, struct node, entry) : NULL;

    *ret_n = node ? node->n_ips : 0;
    return node ? node->ips : NULL;
}

void dns_zone_owners(const struct dns_zone *z, const struct dns_ip *ip, zone_owner_cb each,
                     void *ctx)
{
    const struct use *first = first_use(z, ip);

    for (const struct use *use = first; use; use = SLIST_NEXT(use, place)) {
        if (use->kind == USE_SERVICE && !each(ctx, use->owner, NULL))
            return;
    }
    for (const struct use *use = first; use; use = SLIST_NEXT(use, place)) {
        const struct zone_slice *slice = use->owner;

        if (use->kind == USE_ENDPOINT && slice->service->exists &&
            !each(ctx, slice->service, use->hostname))
            return;
    }
}
