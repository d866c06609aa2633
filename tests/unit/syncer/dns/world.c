/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant of the tests: one Service of each sort, two pods, a StatefulSet's slice. */
#include "world.h"

#include <sublet/yaml.h>

static const char *const OBJECTS[] = {
    "{kind: Namespace, metadata: {name: team}}",
    "{kind: Namespace, metadata: {name: empty}}",
    "{kind: Service, metadata: {namespace: kube-system, name: kube-dns}, spec: {"
    " clusterIP: 10.96.0.53}}",
    "{kind: Service, metadata: {namespace: team, name: web}, spec: {type: ClusterIP,"
    " clusterIP: 10.96.0.5, clusterIPs: [10.96.0.5, 'fd00::5'],"
    " ports: [{name: http, port: 80, protocol: TCP}, {name: dns, port: 53, protocol: UDP}]}}",
    "{kind: Service, metadata: {namespace: team, name: db}, spec: {type: ClusterIP,"
    " clusterIP: None, clusterIPs: [None], ports: [{name: pg, port: 5432, protocol: TCP}]}}",
    "{kind: EndpointSlice, metadata: {namespace: team, name: db-1,"
    " labels: {kubernetes.io/service-name: db}}, addressType: IPv4,"
    " ports: [{name: pg, port: 5432, protocol: TCP}], endpoints: ["
    " {addresses: [10.1.0.1], hostname: db-0, conditions: {ready: true}},"
    " {addresses: [10.1.0.2], hostname: db-1, conditions: {ready: true}},"
    " {addresses: [10.1.0.3], hostname: db-2, conditions: {ready: false}}]}",
    "{kind: EndpointSlice, metadata: {namespace: team, name: db-2,"
    " labels: {kubernetes.io/service-name: db}}, addressType: IPv6,"
    " ports: [{name: pg, port: 5432, protocol: TCP}], endpoints: ["
    " {addresses: ['fd01::'], conditions: {}}]}",
    "{kind: Service, metadata: {namespace: team, name: none}, spec: {clusterIP: None}}",
    "{kind: Service, metadata: {namespace: team, name: docs}, spec: {type: ExternalName,"
    " externalName: docs.example.com}}",
    "{kind: Service, metadata: {namespace: team, name: inner}, spec: {type: ExternalName,"
    " externalName: web.team.svc.cluster.local.}}",
    "{kind: Service, metadata: {namespace: team, name: ring}, spec: {type: ExternalName,"
    " externalName: ring.team.svc.cluster.local}}",
    "{kind: Service, metadata: {namespace: team, name: number}, spec: {type: ExternalName,"
    " externalName: 192.0.2.1}}",
    "{kind: Pod, metadata: {namespace: team, name: a}, status: {phase: Running,"
    " podIP: 10.1.0.9, podIPs: [{ip: 10.1.0.9}, {ip: 'fd01::9'}]}}",
    "{kind: Pod, metadata: {namespace: team, name: over}, status: {phase: Succeeded,"
    " podIP: 10.1.0.8, podIPs: [{ip: 10.1.0.8}]}}",
};

static const char *const NODES[] = {
    "{kind: Node, metadata: {name: gpu-1}, status: {addresses: [{type: Hostname, address: gpu-1},"
    " {type: InternalIP, address: 10.8.0.1}, {type: InternalIP, address: 'fd08::1'},"
    " {type: ExternalIP, address: 192.0.2.7}]}}",
    "{kind: Node, metadata: {name: ip-10-8-0-2.zone.example}, status: {addresses: ["
    "{type: InternalIP, address: 10.8.0.2}]}}",
    "{kind: Node, metadata: {name: web.team.svc.cluster.local}, status: {addresses: ["
    "{type: InternalIP, address: 10.8.0.3}]}}",
};

void world_init(struct world *w)
{
    static const struct str hosts[] = {{"10.7.0.1 git.corp.example www.corp.example", 42},
                                       {"fd07::1 git.corp.example", 24},
                                       {"10.7.0.2 *.apps.corp.example *.x.apps.corp.example", 50},
                                       {"10.7.0.3 *.x.apps.corp.example", 30}};
    static const struct str aliases[] = {{"git.example web.team.svc.cluster.local", 38},
                                         {"git.corp.example other.example", 30},
                                         {"out.example www.example.com", 27},
                                         {"far.example kubernetes.default.svc.host.example", 47},
                                         {"round.example round.example", 27},
                                         {"*.old.example *.team.svc.cluster.local", 38},
                                         {"*.flat.old.example git.example", 30},
                                         {"web.flat.old.example docs.team.svc.cluster.local", 48}};
    static const struct str stubs[] = {{"corp.example 10.7.0.53 10.7.0.54:5353", 37}};
    struct err err;

    *w = (struct world){.arena = arena_new(0), .zone = dns_zone_new()};
    err_init(&err, w->arena);
    w->config = (struct config){.cluster_domain = STR("cluster.local"),
                                .dns_listen = STR("127.0.0.1:1053"),
                                .dns_hosts = {hosts, 4},
                                .dns_aliases = {aliases, COUNT(aliases)},
                                .kubelet_addresses = 2,
                                .dns_stubs = {stubs, 1}};
    dns_resolv_parse(w->arena,
                     STR("# of the pod\nsearch ns.svc.host.example svc.host.example host.example "
                         "lan.example.\nnameserver 10.96.0.10\noptions ndots:5\n"),
                     &w->resolv);
    if (dns_policy_load(w->arena, &w->config, &w->resolv, &w->policy, &err))
        fail_msg("%.*s", STR_F(err.message));
    w->view = (struct dns_view){.zone = w->zone, .policy = &w->policy};
    for (size_t i = 0; i < COUNT(OBJECTS); i++)
        world_put(w, OBJECTS[i]);
    for (size_t i = 0; i < COUNT(NODES); i++)
        world_put(w, NODES[i]);
}

void world_fini(struct world *w)
{
    dns_zone_free(w->zone);
    arena_free(w->arena);
}

static enum zone_kind kind_of(struct str kind)
{
    static const char *const names[N_ZONE] = {"Namespace", "Service", "EndpointSlice", "Pod",
                                              "Node"};

    for (int i = 0; i < N_ZONE; i++)
        if (str_eqc(kind, names[i]))
            return (enum zone_kind)i;
    fail_msg("kind %.*s", STR_F(kind));
    return N_ZONE;
}

void world_put(struct world *w, const char *yaml)
{
    struct err err;
    cJSON *object;

    err_init(&err, w->arena);
    if (yaml_parse(w->arena, str_c(yaml), NULL, NULL, &object, &err))
        fail_msg("%.*s: %s", STR_F(err.message), yaml);
    dns_zone_set(w->zone, kind_of(json_str_at(object, "kind")),
                 json_str_at(object, "metadata.namespace"), json_str_at(object, "metadata.name"),
                 object);
}

void world_remove(struct world *w, enum zone_kind kind, const char *ns, const char *name)
{
    dns_zone_set(w->zone, kind, str_c(ns), str_c(name), NULL);
}

void world_query(const char *question, struct dns_query *ret)
{
    struct str rest = str_c(question), type = str_cut(&rest, ' ');
    char word[16];

    snprintf(word, sizeof(word), "%.*s", STR_F(type));
    *ret = (struct dns_query){.id = 7,
                              .recursion_desired = true,
                              .type = ldns_get_rr_type_by_name(word),
                              .class = LDNS_RR_CLASS_IN,
                              .has_question = true};
    assert_true(dns_name_parse(rest, &ret->name));
    memcpy(ret->spelled, ret->name.b, ret->name.n);
}

static void add_records(struct buf *b, const ldns_rr_list *list, const char *mark)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
        char *line = ldns_rr2str(ldns_rr_list_rr(list, i));

        for (char *c = line; *c; c++)
            *c = *c == '\t' ? ' ' : *c;
        buf_printf(b, "%s%s", mark, line);
        free(line); /* of ldns */
    }
}

const char *world_text(struct world *w, struct str wire)
{
    struct buf b = BUF_INIT(0);
    ldns_pkt *p = NULL;
    char *rcode;
    const char *ret;

    assert_int_equal(ldns_wire2pkt(&p, (const uint8_t *)wire.p, wire.n), LDNS_STATUS_OK);
    rcode = ldns_pkt_rcode2str(ldns_pkt_get_rcode(p));
    buf_printf(&b, "%s%s%s\n", rcode, ldns_pkt_aa(p) ? " aa" : "", ldns_pkt_tc(p) ? " tc" : "");
    free(rcode); /* of ldns */
    add_records(&b, ldns_pkt_answer(p), "");
    add_records(&b, ldns_pkt_authority(p), "! ");
    add_records(&b, ldns_pkt_additional(p), "+ ");
    ldns_pkt_free(p);
    ret = arena_cstr(w->arena, buf_str(&b));
    buf_fini(&b);
    return ret;
}

struct str world_wire(struct world *w, const char *question, size_t limit)
{
    const struct dns_upstream *upstream;
    struct dns_query q, at;
    struct dns_answer answer;
    struct buf wire = BUF_INIT(0);
    struct str ret;

    world_query(question, &q);
    assert_int_equal(
        dns_answer_query(w->arena, &w->view, &q, &w->client, 0, &answer, &at, &upstream), DNS_DONE);
    dns_answer_print(&q, &answer, true, limit, &wire);
    dns_answer_fini(&answer);
    ret = arena_str(w->arena, buf_str(&wire));
    buf_fini(&wire);
    return ret;
}

const char *world_ask(struct world *w, const char *question)
{
    const struct dns_upstream *upstream;
    struct dns_query q, at;
    struct dns_answer answer;
    struct buf wire = BUF_INIT(0);
    const char *ret;

    world_query(question, &q);
    if (dns_answer_query(w->arena, &w->view, &q, &w->client, 0, &answer, &at, &upstream) ==
        DNS_FORWARD) {
        ret =
            arena_printf(w->arena, "forward %.*s to %.*s", STR_F(dns_name_text(w->arena, &at.name)),
                         STR_F(dns_ip_text(w->arena, &upstream->servers[0].ip)))
                .p;
    } else {
        dns_answer_print(&q, &answer, true, DNS_TCP_MAX, &wire);
        ret = world_text(w, buf_str(&wire));
    }
    dns_answer_fini(&answer);
    buf_fini(&wire);
    return ret;
}
