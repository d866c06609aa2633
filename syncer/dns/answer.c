/* SPDX-License-Identifier: Apache-2.0 */
/* Records from findings. Must never read the wire, and never query another server itself. */
#include "answer.h"
#include "find.h"

#include <stdlib.h>
#include <string.h>

enum { ALIASES_MAX = 8, HOST_TTL = 60, VERSION_TTL = 28800, WEIGHTS = 100 };
enum { SOA_REFRESH = 7200, SOA_RETRY = 1800, SOA_EXPIRE = 86400 };
#define SCHEMA_VERSION                                                                             \
    "\x05"                                                                                         \
    "1.1.0"

struct lookup {
    struct arena *arena;
    const struct dns_view *view;
    struct dns_query *at;
    const struct dns_ip *client;
    unsigned turn;
    struct dns_answer *ret;
};

/* --- records --- */

static ldns_rdf *rdata_u16(unsigned value)
{
    return ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, (uint16_t)value);
}

static ldns_rdf *rdata_u32(uint32_t value)
{
    return ldns_native2rdf_int32(LDNS_RDF_TYPE_INT32, value);
}

static ldns_rr_type type_of(const struct dns_ip *ip)
{
    return dns_ip_is_v4(ip) ? LDNS_RR_TYPE_A : LDNS_RR_TYPE_AAAA;
}

static void push_ip(ldns_rr_list *list, struct str owner, const struct dns_ip *ip, uint32_t ttl)
{
    struct str bytes = dns_ip_bytes(ip);
    ldns_rdf_type type = bytes.n == 4 ? LDNS_RDF_TYPE_A : LDNS_RDF_TYPE_AAAA;
    ldns_rdf *rdata[] = {ldns_rdf_new_frm_data(type, bytes.n, bytes.p)};

    ldns_rr_list_push_rr(list, dns_record_new(owner, type_of(ip), ttl, 1, rdata));
}

static void push_name(struct lookup *k, ldns_rr_type type, const struct dns_name *target,
                      uint32_t ttl)
{
    ldns_rdf *rdata[] = {dns_rdata_name(dns_name_bytes(target))};

    ldns_rr_list_push_rr(k->ret->answer,
                         dns_record_new(dns_query_owner(k->at), type, ttl, 1, rdata));
}

static void push_soa(struct lookup *k, ldns_rr_list *list, const struct dns_name *owner)
{
    const struct dns_view *v = k->view;
    struct dns_name server, mailbox;
    ldns_rdf *rdata[7];

    if (!dns_name_join(STR("ns.dns"), &v->policy->origin, &server) ||
        !dns_name_join(STR("hostmaster"), &v->policy->origin, &mailbox))
        server = mailbox = v->policy->origin; /* the origin is too long for a label before it */
    rdata[0] = dns_rdata_name(dns_name_bytes(&server));
    rdata[1] = dns_rdata_name(dns_name_bytes(&mailbox));
    rdata[2] = rdata_u32(dns_zone_serial(v->zone));
    rdata[3] = rdata_u32(SOA_REFRESH);
    rdata[4] = rdata_u32(SOA_RETRY);
    rdata[5] = rdata_u32(SOA_EXPIRE);
    rdata[6] = rdata_u32(DNS_TTL);
    ldns_rr_list_push_rr(
        list, dns_record_new(dns_name_bytes(owner), LDNS_RR_TYPE_SOA, DNS_TTL, 7, rdata));
}

/* NXDOMAIN, or no data: with the zone's SOA (RFC 2308). */
static void push_negative(struct lookup *k, ldns_pkt_rcode rcode, const struct dns_name *zone)
{
    k->ret->rcode = rcode;
    push_soa(k, k->ret->authority, zone);
}

/* --- addresses --- */

static int by_ip(const void *a, const void *b)
{
    const struct dns_item *x = a, *y = b;

    return memcmp(&x->ip, &y->ip, sizeof(x->ip));
}

static int by_target(const void *a, const void *b)
{
    const struct dns_item *x = a, *y = b;
    int names = strcmp(x->hostname ? x->hostname : "", y->hostname ? y->hostname : "");

    return names ? names : by_ip(a, b);
}

static int by_target_and_port(const void *a, const void *b)
{
    const struct dns_item *x = a, *y = b;
    int names = strcmp(x->hostname ? x->hostname : "", y->hostname ? y->hostname : "");

    return names ? names : x->port - y->port;
}

/* Sorts, and drops items that compare equal to the one before. */
static size_t unique(struct dns_item *items, size_t n, int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(items, n, sizeof(*items), order);
    for (size_t i = 0; i < n; i++)
        if (!kept || order(&items[kept - 1], &items[i]))
            items[kept++] = items[i];
    return kept;
}

static void answer_addresses(struct lookup *k, struct dns_finding *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        if (type_of(&f->items[i].ip) == k->at->type)
            f->items[n++] = f->items[i];
    n = unique(f->items, n, by_ip);
    for (size_t i = 0; i < n; i++)
        push_ip(k->ret->answer, dns_query_owner(k->at), &f->items[(i + k->turn) % n].ip, DNS_TTL);
}

/* --- services with ports --- */

static bool target_of(struct lookup *k, const struct dns_finding *f, const char *hostname,
                      struct dns_name *ret)
{
    struct str text =
        hostname ? arena_printf(k->arena, "%s.%s", hostname, f->service) : str_c(f->service);

    return dns_name_join(text, &k->view->policy->origin, ret);
}

static void push_srv(struct lookup *k, const struct dns_name *target, unsigned weight,
                     unsigned port)
{
    ldns_rdf *rdata[] = {rdata_u16(0), rdata_u16(weight), rdata_u16(port),
                         dns_rdata_name(dns_name_bytes(target))};

    ldns_rr_list_push_rr(k->ret->answer, dns_record_new(dns_query_owner(k->at), LDNS_RR_TYPE_SRV,
                                                        DNS_TTL, 4, rdata));
}

/* Weights as in CoreDNS: 100, divided among all addresses and ports. */
static void answer_srv(struct lookup *k, struct dns_finding *f)
{
    unsigned weight = f->n < WEIGHTS ? WEIGHTS / (unsigned)f->n : 1;
    size_t n = unique(f->items, f->n, by_target), bytes = f->n * sizeof(*f->items);
    struct dns_item *all = f->items;
    struct dns_name target;

    f->items = memcpy(arena_alloc(k->arena, bytes + 1), all, bytes);
    for (size_t i = 0; i < n; i++)
        if (target_of(k, f, all[i].hostname, &target))
            push_ip(k->ret->additional, dns_name_bytes(&target), &all[i].ip, DNS_TTL);
    n = unique(f->items, f->n, by_target_and_port);
    for (size_t i = 0; i < n; i++)
        if (f->items[i].port && target_of(k, f, f->items[i].hostname, &target))
            push_srv(k, &target, weight, f->items[i].port);
    if (!ldns_rr_list_rr_count(k->ret->answer)) {
        ldns_rr_list_deep_free(k->ret->additional);
        k->ret->additional = ldns_rr_list_new();
    }
}

/* --- the tenant's domain --- */

static void answer_apex(struct lookup *k, const struct dns_name *origin)
{
    struct dns_name server;
    struct dns_finding f;

    if (k->at->type == LDNS_RR_TYPE_SOA)
        push_soa(k, k->ret->answer, origin);
    if (k->at->type != LDNS_RR_TYPE_NS || !dns_name_join(STR("ns.dns"), origin, &server))
        return;
    push_name(k, LDNS_RR_TYPE_NS, &server, DNS_TTL);
    dns_find(k->arena, k->view->zone, origin, &server, &f);
    for (size_t i = 0; i < f.n; i++)
        push_ip(k->ret->additional, dns_name_bytes(&server), &f.items[i].ip, DNS_TTL);
}

static void answer_version(struct lookup *k)
{
    ldns_rdf *rdata[] = {
        ldns_rdf_new_frm_data(LDNS_RDF_TYPE_STR, sizeof(SCHEMA_VERSION) - 1, SCHEMA_VERSION)};

    ldns_rr_list_push_rr(k->ret->answer, dns_record_new(dns_query_owner(k->at), LDNS_RR_TYPE_TXT,
                                                        VERSION_TTL, 1, rdata));
}

static bool is_for_address(const struct lookup *k)
{
    return k->at->type == LDNS_RR_TYPE_A || k->at->type == LDNS_RR_TYPE_AAAA;
}

static void answer_items(struct lookup *k, struct dns_finding *f)
{
    if (is_for_address(k))
        answer_addresses(k, f);
    else if (k->at->type == LDNS_RR_TYPE_SRV && f->service[0])
        answer_srv(k, f);
}

/* True: the name is an alias of *ret, which is to be resolved next. */
static bool answer_external(struct lookup *k, struct str target, struct dns_name *ret)
{
    struct dns_ip ip;

    if (dns_ip_parse(target, &ip) || !dns_name_parse(target, ret)) {
        push_negative(k, LDNS_RCODE_NXDOMAIN, &k->view->policy->origin);
        return false;
    }
    push_name(k, LDNS_RR_TYPE_CNAME, ret, DNS_TTL);
    return k->at->type != LDNS_RR_TYPE_CNAME;
}

static bool answer_own(struct lookup *k, struct dns_name *ret_alias)
{
    const struct dns_name *origin = &k->view->policy->origin;
    struct dns_finding f;
    size_t before = ldns_rr_list_rr_count(k->ret->answer);

    if (!is_for_address(k) ||
        !dns_find_self(k->arena, k->view->zone, origin, &k->at->name, k->client, &f))
        dns_find(k->arena, k->view->zone, origin, &k->at->name, &f);
    if (f.found == FOUND_EXTERNAL)
        return answer_external(k, f.external, ret_alias);
    if (f.found == FOUND_VERSION && k->at->type == LDNS_RR_TYPE_TXT)
        answer_version(k);
    else if (f.found == FOUND_ITEMS)
        answer_items(k, &f);
    else if (dns_name_eq(&k->at->name, origin))
        answer_apex(k, origin);
    if (f.found == FOUND_NO_NAME)
        push_negative(k, LDNS_RCODE_NXDOMAIN, origin);
    else if (ldns_rr_list_rr_count(k->ret->answer) == before)
        push_negative(k, LDNS_RCODE_NOERROR, origin);
    return false;
}

/* --- hosts and addresses --- */

/* Those of the query's type; else no data, with the SOA of zone. */
static void push_ips(struct lookup *k, const struct dns_ip *ips, size_t n, uint32_t ttl,
                     const struct dns_name *zone)
{
    size_t before = ldns_rr_list_rr_count(k->ret->answer);

    for (size_t i = 0; i < n; i++) {
        const struct dns_ip *ip = &ips[(i + k->turn) % n];

        if (type_of(ip) == k->at->type)
            push_ip(k->ret->answer, dns_query_owner(k->at), ip, ttl);
    }
    if (ldns_rr_list_rr_count(k->ret->answer) == before)
        push_negative(k, LDNS_RCODE_NOERROR, zone);
}

/* True: *target is to be resolved next. */
static bool answer_alias(struct lookup *k, const struct dns_name *target)
{
    if (!target->n) {
        push_negative(k, LDNS_RCODE_NXDOMAIN, &k->at->name);
        return false;
    }
    push_name(k, LDNS_RR_TYPE_CNAME, target, HOST_TTL);
    return k->at->type != LDNS_RR_TYPE_CNAME;
}

/* False: no Node has this name. */
static bool answer_node(struct lookup *k)
{
    struct str name = dns_name_text(k->arena, &k->at->name);
    size_t n_ips;
    const struct dns_ip *ips =
        dns_zone_node(k->view->zone, str_sub(name, 0, name.n - 1), &n_ips); /* no last dot */

    if (!ips)
        return false;
    push_ips(k, ips, n_ips, DNS_TTL, &k->at->name);
    return true;
}

struct owners {
    struct lookup *lookup;
    size_t n;
};

static bool on_owner(void *ctx, const struct zone_service *service, const char *hostname)
{
    struct owners *o = ctx;
    struct lookup *k = o->lookup;
    struct str name = str_c(service->key), ns = str_cut(&name, '/');
    struct dns_name target;
    struct str text = arena_printf(k->arena, "%s%s%.*s.%.*s.svc", hostname ? hostname : "",
                                   hostname ? "." : "", STR_F(name), STR_F(ns));

    o->n++;
    if (k->at->type == LDNS_RR_TYPE_PTR && dns_name_join(text, &k->view->policy->origin, &target))
        push_name(k, LDNS_RR_TYPE_PTR, &target, DNS_TTL);
    return hostname && o->n < DNS_ITEMS_MAX;
}

static size_t answer_reverse_hosts(struct lookup *k, const struct dns_ip *ip)
{
    const struct dns_policy *p = k->view->policy;
    size_t found = 0;

    for (size_t i = 0; i < p->n_hosts; i++)
        for (size_t n = 0; n < p->hosts[i].n; n++) {
            if (!dns_ip_eq(&p->hosts[i].ips[n], ip))
                continue;
            found++;
            if (k->at->type == LDNS_RR_TYPE_PTR)
                push_name(k, LDNS_RR_TYPE_PTR, &p->hosts[i].name, HOST_TTL);
        }
    return found;
}

/* False: the address is neither the tenant's nor of a hosts entry. */
static bool answer_reverse(struct lookup *k, const struct dns_ip *ip)
{
    struct owners o = {k, answer_reverse_hosts(k, ip)};

    if (!o.n)
        dns_zone_owners(k->view->zone, ip, on_owner, &o);
    if (o.n && !ldns_rr_list_rr_count(k->ret->answer))
        push_negative(k, LDNS_RCODE_NOERROR, &k->at->name);
    return o.n > 0;
}

/* --- steps of a resolution --- */

static bool is_stub(const struct lookup *k, const struct dns_upstream *upstream)
{
    return upstream != &k->view->policy->forward;
}

enum step { STEP_DONE, STEP_ALIAS, STEP_FORWARD };

static enum step leave(struct lookup *k, enum dns_way way)
{
    k->ret->authoritative = false;
    if (way == DNS_WAY_HIDDEN)
        push_negative(k, LDNS_RCODE_NXDOMAIN, &k->at->name);
    else if (way == DNS_WAY_NONE)
        k->ret->rcode = LDNS_RCODE_REFUSED;
    else if (k->at->type == LDNS_RR_TYPE_ANY)
        k->ret->rcode = LDNS_RCODE_NOTIMPL; /* RFC 8482 */
    else
        return STEP_FORWARD;
    return STEP_DONE;
}

static enum step take_step(struct lookup *k, struct dns_name *ret_alias,
                           const struct dns_upstream **ret_upstream)
{
    const struct dns_host *host = dns_policy_host(k->view->policy, &k->at->name);
    enum dns_way way = dns_policy_way(k->view->policy, &k->at->name, ret_upstream);
    struct dns_ip ip;
    bool reverse = dns_name_address(&k->at->name, &ip);

    if (host) {
        push_ips(k, host->ips, host->n, HOST_TTL, &host->name);
        return STEP_DONE;
    }
    if (dns_policy_alias(k->view->policy, &k->at->name, ret_alias))
        return answer_alias(k, ret_alias) ? STEP_ALIAS : STEP_DONE;
    if (reverse && answer_reverse(k, &ip))
        return STEP_DONE;
    if (way == DNS_WAY_OWN)
        return answer_own(k, ret_alias) ? STEP_ALIAS : STEP_DONE;
    if (k->view->policy->nodes && answer_node(k))
        return STEP_DONE;
    /* The host's resolver would answer with names of its own Services and pods. */
    if (reverse && dns_ip_is_private(&ip) && !is_stub(k, *ret_upstream))
        way = DNS_WAY_HIDDEN;
    return leave(k, way);
}

enum dns_outcome dns_answer_query(struct arena *a, const struct dns_view *view,
                                  const struct dns_query *q, const struct dns_ip *client,
                                  unsigned turn, struct dns_answer *ret, struct dns_query *at,
                                  const struct dns_upstream **ret_upstream)
{
    struct lookup k = {a, view, at, client, turn, ret};
    struct dns_name alias;

    dns_answer_init(ret);
    ret->authoritative = true;
    *at = *q;
    for (int i = 0; i < ALIASES_MAX; i++) {
        enum step step = take_step(&k, &alias, ret_upstream);

        if (step != STEP_ALIAS)
            return step == STEP_FORWARD ? DNS_FORWARD : DNS_DONE;
        at->name = alias;
        memcpy(at->spelled, alias.b, alias.n);
    }
    ret->rcode = LDNS_RCODE_SERVFAIL; /* aliases in a circle */
    return DNS_DONE;
}

void dns_answer_append(const struct dns_view *view, const struct dns_query *at,
                       const struct dns_upstream *upstream, struct dns_answer *to,
                       struct dns_answer *from)
{
    const struct dns_policy *p = view->policy;
    struct lookup k = {.view = view, .ret = to};

    if (upstream == &p->forward && dns_answer_names(from, p->hidden, p->n_hidden)) {
        push_negative(&k, LDNS_RCODE_NXDOMAIN, &at->name);
    } else {
        to->rcode = from->rcode;
        ldns_rr_list_cat(to->answer, from->answer);
        ldns_rr_list_cat(to->authority, from->authority);
        ldns_rr_list_set_rr_count(from->answer, 0);
        ldns_rr_list_set_rr_count(from->authority, 0);
    }
    dns_answer_fini(from);
}
