/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of names (Kubernetes DNS specification): labels, from the right, to an object. Must
 * never answer for a namespace that does not exist. */
#include "find.h"

#include <stdio.h>
#include <string.h>

/* Of a Service's items: "[hostname.]name.ns.svc" or "_port._protocol.name.ns.svc". */
struct selector {
    struct str endpoint, port, protocol;
};

static void add(struct dns_finding *f, const struct dns_ip *ip, unsigned port, const char *hostname)
{
    if (f->n < DNS_ITEMS_MAX)
        f->items[f->n++] = (struct dns_item){*ip, (uint16_t)port, hostname};
}

static bool port_fits(const struct zone_port *port, const struct selector *w)
{
    return (!w->port.p || str_eqc(w->port, port->name)) &&
           (!w->protocol.p || str_eqc(w->protocol, port->protocol));
}

/* One item per matching address and port; an address without any port is an item, too. */
static void add_ports(struct dns_finding *f, const struct selector *w, const struct dns_ip *ip,
                      const struct zone_port *ports, size_t n, const char *hostname)
{
    if (!n && !w->port.p && !w->protocol.p)
        add(f, ip, 0, hostname);
    for (size_t i = 0; i < n; i++)
        if (port_fits(&ports[i], w))
            add(f, ip, ports[i].number, hostname);
}

static void add_endpoints(struct dns_finding *f, const struct zone_service *s,
                          const struct selector *w)
{
    const struct zone_slice *slice;

    LIST_FOREACH(slice, &s->slices, place)
    {
        for (size_t i = 0; i < slice->n_endpoints; i++) {
            const struct zone_endpoint *e = &slice->endpoints[i];

            if (!w->endpoint.p || str_eqc(w->endpoint, e->hostname))
                add_ports(f, w, &e->ip, slice->ports, slice->n_ports, e->hostname);
        }
    }
}

static size_t most_items(const struct zone_service *s)
{
    const struct zone_slice *slice;
    size_t n = s->n_ips * (s->n_ports + 1);

    LIST_FOREACH(slice, &s->slices, place)
    {
        n += slice->n_endpoints * (slice->n_ports + 1);
    }
    return n < DNS_ITEMS_MAX ? n : DNS_ITEMS_MAX;
}

static void find_service(struct arena *a, const struct zone_service *s, const struct selector *w,
                         struct dns_finding *f)
{
    if (!s)
        return;
    if (s->external) {
        f->external = str_c(s->external);
        f->found = w->endpoint.p || w->port.p ? FOUND_NO_NAME : FOUND_EXTERNAL;
        return;
    }
    f->items = arena_alloc(a, (most_items(s) + 1) * sizeof(*f->items));
    if (s->headless || w->endpoint.p)
        add_endpoints(f, s, w);
    else
        for (size_t i = 0; i < s->n_ips; i++)
            add_ports(f, w, &s->ips[i], s->ports, s->n_ports, NULL);
    if (f->n)
        f->found = FOUND_ITEMS;
}

/* "10-0-0-1", or "fd00--1". */
static bool pod_address(struct str label, struct dns_ip *ret)
{
    char text[DNS_LABEL_MAX];
    size_t dashes = 0;

    for (size_t i = 0; i < label.n; i++)
        dashes += label.p[i] == '-';
    for (size_t i = 0; i < label.n; i++) {
        bool v4 = dashes == 3 && !str_contains(label, STR("--"));

        text[i] = label.p[i] != '-' ? label.p[i] : v4 ? '.' : ':';
    }
    return dns_ip_parse((struct str){text, label.n}, ret);
}

static void find_pod(struct arena *a, const struct dns_zone *zone, struct str ns, struct str label,
                     struct dns_finding *f)
{
    struct dns_ip ip;

    if (!pod_address(label, &ip) || !dns_zone_has_pod(zone, ns, &ip))
        return;
    f->items = ARENA_NEW(a, struct dns_item);
    f->items[0].ip = ip;
    f->n = 1;
    f->found = FOUND_ITEMS;
}

static struct str without_underscore(struct str label)
{
    return label.n && label.p[0] == '_' ? str_from(label, 1) : label;
}

/* labels: the n labels before "ns.svc", from the left. */
static void find_in_services(struct arena *a, const struct dns_zone *zone, struct str ns,
                             const struct str *labels, size_t n, struct dns_finding *f)
{
    struct selector w = {{NULL, 0}, {NULL, 0}, {NULL, 0}};

    if (n == 2) {
        w.endpoint = labels[0];
    } else if (n == 3) {
        w.port = without_underscore(labels[0]);
        w.protocol = without_underscore(labels[1]);
    } else if (n > 3) {
        return;
    }
    snprintf(f->service, sizeof(f->service), "%.*s.%.*s.svc", STR_F(labels[n - 1]), STR_F(ns));
    find_service(a, dns_zone_service(zone, ns, labels[n - 1]), &w, f);
}

static void find_server(struct arena *a, const struct dns_zone *zone, struct dns_finding *f)
{
    const struct zone_service *s =
        dns_zone_service(zone, STR(DNS_SERVICE_NAMESPACE), STR(DNS_SERVICE_NAME));

    f->found = FOUND_NO_DATA;
    if (!s || s->external || !s->n_ips)
        return;
    f->items = arena_alloc(a, s->n_ips * sizeof(*f->items));
    for (size_t i = 0; i < s->n_ips; i++)
        add(f, &s->ips[i], 0, NULL);
    f->found = FOUND_ITEMS;
}

/* Names that are not below "svc" or "pod". */
static void find_special(struct arena *a, const struct dns_zone *zone, const struct str *labels,
                         size_t n, struct dns_finding *f)
{
    if (n == 1 && str_eqc(labels[0], "dns-version"))
        f->found = FOUND_VERSION;
    else if (n == 1 && str_eqc(labels[0], "dns"))
        f->found = FOUND_NO_DATA;
    else if (n == 2 && str_eqc(labels[0], "ns") && str_eqc(labels[1], "dns"))
        find_server(a, zone, f);
}

void dns_find(struct arena *a, const struct dns_zone *zone, const struct dns_name *origin,
              const struct dns_name *name, struct dns_finding *ret)
{
    struct str labels[DNS_LABELS_MAX], below[DNS_LABELS_MAX];
    size_t n = dns_name_labels(name, labels) - dns_name_labels(origin, below);
    bool pod = n && str_eqc(labels[n - 1], "pod");

    *ret = (struct dns_finding){.found = FOUND_NO_NAME};
    if (!n) {
        ret->found = FOUND_NO_DATA;
    } else if (!pod && !str_eqc(labels[n - 1], "svc")) {
        find_special(a, zone, labels, n, ret);
    } else if (n == 1) {
        ret->found = FOUND_NO_DATA;
    } else if (dns_zone_has_namespace(zone, labels[n - 2])) {
        if (n == 2)
            ret->found = FOUND_NO_DATA;
        else if (!pod)
            find_in_services(a, zone, labels[n - 2], labels, n - 2, ret);
        else if (n == 3)
            find_pod(a, zone, labels[n - 2], labels[0], ret);
    }
}

bool dns_find_self(struct arena *a, const struct dns_zone *zone, const struct dns_name *origin,
                   const struct dns_name *name, const struct dns_ip *client,
                   struct dns_finding *ret)
{
    struct str labels[DNS_LABELS_MAX], below[DNS_LABELS_MAX], self;
    size_t n = dns_name_labels(name, labels) - dns_name_labels(origin, below), n_ips;
    const struct dns_ip *ips;

    if (n < 4 || !str_eqc(labels[n - 1], "svc"))
        return false;
    self = labels[0];
    for (size_t i = 1; i < n - 2; i++)
        self = arena_printf(a, "%.*s.%.*s", STR_F(self), STR_F(labels[i]));
    ips = dns_zone_self(zone, client, labels[n - 2], self, &n_ips);
    if (!ips)
        return false;
    *ret = (struct dns_finding){.found = FOUND_ITEMS};
    ret->items = arena_alloc(a, (n_ips + 1) * sizeof(*ret->items));
    for (size_t i = 0; i < n_ips; i++)
        add(ret, &ips[i], 0, NULL);
    return true;
}
