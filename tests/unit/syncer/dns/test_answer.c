/* SPDX-License-Identifier: Apache-2.0 */
/* A table of queries and answers: the specification's record by record, CoreDNS' choices where it
 * leaves one, and what never leaves the process. */
#include "world.h"

#define L ".team.svc.cluster.local."
#define SOA                                                                                        \
    "! cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 18 7200 1800 "      \
    "86400 5\n"
#define GONE "NXDOMAIN aa\n" SOA
#define VOID "NOERROR aa\n" SOA
#define HIDDEN(name)                                                                               \
    "NXDOMAIN\n! " name " 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 18 7200 1800 "  \
    "86400 5\n"

static const struct row {
    const char *question, *answer;
} ROWS[] = {
    /* 2.2 schema version */
    {"TXT dns-version.cluster.local",
     "NOERROR aa\ndns-version.cluster.local. 28800 IN TXT \"1.1.0\"\n"},
    {"A dns-version.cluster.local", VOID},
    /* 2.3 a Service with an address */
    {"A web.team.svc.cluster.local", "NOERROR aa\nweb" L " 5 IN A 10.96.0.5\n"},
    {"AAAA web.team.svc.cluster.local", "NOERROR aa\nweb" L " 5 IN AAAA fd00::5\n"},
    {"MX web.team.svc.cluster.local", VOID},
    {"ANY web.team.svc.cluster.local", VOID},
    {"SRV _http._tcp.web.team.svc.cluster.local",
     "NOERROR aa\n_http._tcp.web" L " 5 IN SRV 0 50 80 web" L "\n"
     "+ web" L " 5 IN A 10.96.0.5\n+ web" L " 5 IN AAAA fd00::5\n"},
    {"SRV web.team.svc.cluster.local",
     "NOERROR aa\nweb" L " 5 IN SRV 0 25 53 web" L "\nweb" L " 5 IN SRV 0 25 80 web" L "\n"
     "+ web" L " 5 IN A 10.96.0.5\n+ web" L " 5 IN AAAA fd00::5\n"},
    {"A _http._tcp.web.team.svc.cluster.local",
     "NOERROR aa\n_http._tcp.web" L " 5 IN A 10.96.0.5\n"},
    {"SRV _http._udp.web.team.svc.cluster.local", GONE},
    {"SRV _no._tcp.web.team.svc.cluster.local", GONE},
    {"PTR 5.0.96.10.in-addr.arpa", "NOERROR aa\n5.0.96.10.in-addr.arpa. 5 IN PTR web" L "\n"},
    {"PTR 5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa",
     "NOERROR aa\n5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. 5 IN "
     "PTR "
     "web" L "\n"},
    /* 2.4 a headless one: ready endpoints alone */
    {"A db.team.svc.cluster.local",
     "NOERROR aa\ndb" L " 5 IN A 10.1.0.1\ndb" L " 5 IN A 10.1.0.2\n"},
    {"AAAA db.team.svc.cluster.local", "NOERROR aa\ndb" L " 5 IN AAAA fd01::\n"},
    {"A db-0.db.team.svc.cluster.local", "NOERROR aa\ndb-0.db" L " 5 IN A 10.1.0.1\n"},
    {"AAAA db-0.db.team.svc.cluster.local", VOID},
    {"A db-2.db.team.svc.cluster.local", GONE},
    {"AAAA fd01--0.db.team.svc.cluster.local", "NOERROR aa\nfd01--0.db" L " 5 IN AAAA fd01::\n"},
    {"SRV _pg._tcp.db.team.svc.cluster.local",
     "NOERROR aa\n_pg._tcp.db" L " 5 IN SRV 0 33 5432 db-0.db" L "\n"
     "_pg._tcp.db" L " 5 IN SRV 0 33 5432 db-1.db" L "\n"
     "_pg._tcp.db" L " 5 IN SRV 0 33 5432 fd01--0.db" L "\n"
     "+ db-0.db" L " 5 IN A 10.1.0.1\n+ db-1.db" L " 5 IN A 10.1.0.2\n"
     "+ fd01--0.db" L " 5 IN AAAA fd01::\n"},
    {"PTR 1.0.1.10.in-addr.arpa", "NOERROR aa\n1.0.1.10.in-addr.arpa. 5 IN PTR db-0.db" L "\n"},
    {"A 1.0.1.10.in-addr.arpa",
     "NOERROR aa\n! 1.0.1.10.in-addr.arpa. 5 IN SOA ns.dns.cluster.local. "
     "hostmaster.cluster.local. 18 7200 1800 86400 5\n"},
    {"A none.team.svc.cluster.local", GONE},
    /* 2.5 an external name: its target is resolved, too */
    {"CNAME docs.team.svc.cluster.local", "NOERROR aa\ndocs" L " 5 IN CNAME docs.example.com.\n"},
    {"A docs.team.svc.cluster.local", "forward docs.example.com. to 10.96.0.10"},
    {"A inner.team.svc.cluster.local",
     "NOERROR aa\ninner" L " 5 IN CNAME web" L "\nweb" L " 5 IN A 10.96.0.5\n"},
    {"A x.docs.team.svc.cluster.local", GONE},
    {"A number.team.svc.cluster.local", GONE},
    /* pods: of this namespace, and alive */
    {"A 10-1-0-9.team.pod.cluster.local",
     "NOERROR aa\n10-1-0-9.team.pod.cluster.local. 5 IN A 10.1.0.9\n"},
    {"AAAA fd01--9.team.pod.cluster.local",
     "NOERROR aa\nfd01--9.team.pod.cluster.local. 5 IN AAAA fd01::9\n"},
    {"SRV 10-1-0-9.team.pod.cluster.local", VOID},
    {"A 10-1-0-9.empty.pod.cluster.local", GONE},
    {"A 10-1-0-8.team.pod.cluster.local", GONE},
    {"A x.team.pod.cluster.local", GONE},
    {"A 10-1-0-9.x.team.pod.cluster.local", GONE},
    /* names on the way to names */
    {"A cluster.local", VOID},
    {"A svc.cluster.local", VOID},
    {"A pod.cluster.local", VOID},
    {"A team.svc.cluster.local", VOID},
    {"A dns.cluster.local", VOID},
    {"A nobody.svc.cluster.local", GONE},
    {"A web.nobody.svc.cluster.local", GONE},
    {"A web.team.cluster.local", GONE},
    {"A a.b.c.web.team.svc.cluster.local", GONE},
    {"SOA cluster.local", "NOERROR aa\ncluster.local. 5 IN SOA ns.dns.cluster.local. "
                          "hostmaster.cluster.local. 18 7200 1800 86400 5\n"},
    {"NS cluster.local", "NOERROR aa\ncluster.local. 5 IN NS ns.dns.cluster.local.\n"
                         "+ ns.dns.cluster.local. 5 IN A 10.96.0.53\n"},
    {"A ns.dns.cluster.local", "NOERROR aa\nns.dns.cluster.local. 5 IN A 10.96.0.53\n"},
    {"AAAA ns.dns.cluster.local", VOID},
    /* hosts: before everything else, also under a domain with resolvers of its own */
    {"A git.corp.example", "NOERROR aa\ngit.corp.example. 60 IN A 10.7.0.1\n"},
    {"AAAA git.corp.example", "NOERROR aa\ngit.corp.example. 60 IN AAAA fd07::1\n"},
    {"PTR 1.0.7.10.in-addr.arpa", "NOERROR aa\n1.0.7.10.in-addr.arpa. 60 IN PTR git.corp.example.\n"
                                  "1.0.7.10.in-addr.arpa. 60 IN PTR www.corp.example.\n"},
    /* patterns of hosts: all names below, the longest wins; they are no names of an address */
    {"A a.apps.corp.example", "NOERROR aa\na.apps.corp.example. 60 IN A 10.7.0.2\n"},
    {"A b.a.apps.corp.example", "NOERROR aa\nb.a.apps.corp.example. 60 IN A 10.7.0.2\n"},
    {"A a.x.apps.corp.example", "NOERROR aa\na.x.apps.corp.example. 60 IN A 10.7.0.2\n"
                                "a.x.apps.corp.example. 60 IN A 10.7.0.3\n"},
    {"A apps.corp.example", "forward apps.corp.example. to 10.7.0.53"},
    {"A xapps.corp.example", "forward xapps.corp.example. to 10.7.0.53"},
    {"PTR 3.0.7.10.in-addr.arpa", HIDDEN("3.0.7.10.in-addr.arpa.")},
    {"A corp.example", "forward corp.example. to 10.7.0.53"},
    {"A other.corp.example", "forward other.corp.example. to 10.7.0.53"},
    {"A xcorp.example", "forward xcorp.example. to 10.96.0.10"},
    {"A www.example.com", "forward www.example.com. to 10.96.0.10"},
    {"ANY www.example.com", "NOTIMPL\n"},
    /* aliases: after hosts, before everything else; a target is resolved as a query of its own */
    {"A git.example", "NOERROR aa\ngit.example. 60 IN CNAME web" L "\nweb" L " 5 IN A 10.96.0.5\n"},
    {"CNAME git.example", "NOERROR aa\ngit.example. 60 IN CNAME web" L "\n"},
    {"A out.example", "forward www.example.com. to 10.96.0.10"},
    {"A far.example", "NXDOMAIN\nfar.example. 60 IN CNAME kubernetes.default.svc.host.example.\n"
                      "! kubernetes.default.svc.host.example. 5 IN SOA ns.dns.cluster.local. "
                      "hostmaster.cluster.local. 18 7200 1800 86400 5\n"},
    {"A web.old.example",
     "NOERROR aa\nweb.old.example. 60 IN CNAME web" L "\nweb" L " 5 IN A 10.96.0.5\n"},
    {"A db-0.db.old.example",
     "NOERROR aa\ndb-0.db.old.example. 60 IN CNAME db-0.db" L "\ndb-0.db" L " 5 IN A 10.1.0.1\n"},
    {"A old.example", "forward old.example. to 10.96.0.10"},
    {"CNAME a.flat.old.example", "NOERROR aa\na.flat.old.example. 60 IN CNAME git.example.\n"},
    {"A web.flat.old.example", "forward docs.example.com. to 10.96.0.10"},
    {"A xgit.example", "forward xgit.example. to 10.96.0.10"},
    /* names of Nodes: their internal addresses, but never before a name of the cluster domain */
    {"A gpu-1", "NOERROR aa\ngpu-1. 5 IN A 10.8.0.1\n"},
    {"AAAA gpu-1", "NOERROR aa\ngpu-1. 5 IN AAAA fd08::1\n"},
    {"AAAA ip-10-8-0-2.zone.example",
     "NOERROR aa\n! ip-10-8-0-2.zone.example. 5 IN SOA ns.dns.cluster.local. "
     "hostmaster.cluster.local. 18 7200 1800 86400 5\n"},
    {"A gpu-1.zone.example", "forward gpu-1.zone.example. to 10.96.0.10"},
    {"A gpu-2", "forward gpu-2. to 10.96.0.10"},
    /* what is the host's does not exist */
    {"A kubernetes.default.svc.host.example", HIDDEN("kubernetes.default.svc.host.example.")},
    {"A host.example", HIDDEN("host.example.")},
    {"A lan.example", "forward lan.example. to 10.96.0.10"},
    {"PTR 1.0.96.10.in-addr.arpa", HIDDEN("1.0.96.10.in-addr.arpa.")},
    {"PTR 8.0.1.10.in-addr.arpa", HIDDEN("8.0.1.10.in-addr.arpa.")},
    {"PTR 8.8.8.8.in-addr.arpa", "forward 8.8.8.8.in-addr.arpa. to 10.96.0.10"},
};

static void test_answers(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const char *got = world_ask(&w, ROWS[i].question);

        if (strcmp(got, ROWS[i].answer))
            fail_msg("%s\ngot  %s\nwant %s", ROWS[i].question, got, ROWS[i].answer);
    }
    world_fini(&w);
}

static void test_aliases_end(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    assert_true(
        str_has_prefix(str_c(world_ask(&w, "A ring.team.svc.cluster.local")), STR("SERVFAIL")));
    assert_true(str_has_prefix(str_c(world_ask(&w, "A round.example")), STR("SERVFAIL")));
    world_fini(&w);
}

/* Every address is first once. */
/* What a pod finds in its /etc/hosts on Kubernetes: hostname.subdomain, without a Service. */
static void test_a_pod_knows_itself(void **state)
{
    static const struct {
        const char *client, *question, *answer; /* NULL: there is no such name */
    } cases[] = {
        {"10.1.0.20", "A one.sub.team.svc.cluster.local",
         "NOERROR aa\none.sub.team.svc.cluster.local. 5 IN A 10.1.0.20\n"},
        {"fd01::20", "A one.sub.team.svc.cluster.local",
         "NOERROR aa\none.sub.team.svc.cluster.local. 5 IN A 10.1.0.20\n"},
        {"10.1.0.20", "AAAA one.sub.team.svc.cluster.local",
         "NOERROR aa\none.sub.team.svc.cluster.local. 5 IN AAAA fd01::20\n"},
        {"10.1.0.20", "SRV one.sub.team.svc.cluster.local", NULL},
        {"10.1.0.20", "A one.sub.empty.svc.cluster.local", NULL},
        {"10.1.0.20", "A sub.team.svc.cluster.local", NULL},
        {"10.1.0.20", "A x.one.sub.team.svc.cluster.local", NULL},
        {"10.1.0.21", "A one.sub.team.svc.cluster.local", NULL},
        /* its own address goes before the endpoint of that name */
        {"10.1.0.21", "A db-0.db.team.svc.cluster.local",
         "NOERROR aa\ndb-0.db.team.svc.cluster.local. 5 IN A 10.1.0.21\n"},
        {"10.1.0.20", "A db-0.db.team.svc.cluster.local",
         "NOERROR aa\ndb-0.db.team.svc.cluster.local. 5 IN A 10.1.0.1\n"},
        /* a name of 64 characters, the last two of a label "-" */
        {"10.1.0.22",
         "A "
         "a23456789-123456789-123456789-123456789-123456789-123456789-1.sub.team.svc.cluster.local",
         "NOERROR aa\na23456789-123456789-123456789-123456789-123456789-123456789-1.sub.team.svc."
         "cluster.local. 5 IN A 10.1.0.22\n"},
        {"10.1.0.23", "A v1.x.sub.team.svc.cluster.local",
         "NOERROR aa\nv1.x.sub.team.svc.cluster.local. 5 IN A 10.1.0.23\n"},
        {"10.1.0.24", "A over.sub.team.svc.cluster.local", NULL},
        {"10.1.0.25", "A own.sub.team.svc.cluster.local", NULL},
    };
    static const char *const pods[] = {
        "{kind: Pod, metadata: {namespace: team, name: p}, spec: {hostname: One, subdomain: sub},"
        " status: {podIP: 10.1.0.20, podIPs: [{ip: 10.1.0.20}, {ip: 'fd01::20'}]}}",
        "{kind: Pod, metadata: {namespace: team, name: db-0}, spec: {subdomain: db},"
        " status: {podIP: 10.1.0.21}}",
        "{kind: Pod, metadata: {namespace: team, name:"
        " a23456789-123456789-123456789-123456789-123456789-123456789-1--x},"
        " spec: {subdomain: sub}, status: {podIP: 10.1.0.22}}",
        "{kind: Pod, metadata: {namespace: team, name: v1.x}, spec: {subdomain: sub},"
        " status: {podIP: 10.1.0.23}}",
        "{kind: Pod, metadata: {namespace: team, name: over2}, spec: {hostname: over,"
        " subdomain: sub}, status: {podIP: 10.1.0.24, phase: Failed}}",
        "{kind: Pod, metadata: {namespace: team, name: own}, spec: {subdomain: sub,"
        " hostnameOverride: other}, status: {podIP: 10.1.0.25}}",
    };
    struct world w;
    const char *answer;

    (void)state;
    world_init(&w);
    for (size_t i = 0; i < COUNT(pods); i++)
        world_put(&w, pods[i]);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(dns_ip_parse(str_c(cases[i].client), &w.client));
        answer = world_ask(&w, cases[i].question);
        if (cases[i].answer)
            assert_string_equal(answer, cases[i].answer);
        else
            assert_true(str_has_prefix(str_c(answer), STR("NXDOMAIN ")));
    }
    world_fini(&w);
}

static void test_turns(void **state)
{
    struct world w;
    struct dns_query q, at;
    struct dns_answer answer;
    const struct dns_upstream *upstream;
    char *first[2];

    (void)state;
    world_init(&w);
    world_query("A db.team.svc.cluster.local", &q);
    for (unsigned turn = 0; turn < 2; turn++) {
        dns_answer_query(w.arena, &w.view, &q, &w.client, turn, &answer, &at, &upstream);
        first[turn] = ldns_rdf2str(ldns_rr_rdf(ldns_rr_list_rr(answer.answer, 0), 0));
        dns_answer_fini(&answer);
    }
    assert_string_equal(first[0], "10.1.0.1");
    assert_string_equal(first[1], "10.1.0.2");
    free(first[0]); /* of ldns */
    free(first[1]);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_aliases_end),
        cmocka_unit_test(test_a_pod_knows_itself),
        cmocka_unit_test(test_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
