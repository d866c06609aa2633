/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: where an answer is cut, what is taken of another server's, and for how long it is kept.
 */
#include "world.h"

#include "cache.h"
#include "clients.h"

#include <sys/socket.h>

/* --- printing --- */

enum { ENDPOINTS = 200, RECORD = 16, WHOLE = 12 + 27 + 4 + (ENDPOINTS + 2) * RECORD };

/* Each limit holds, and what fits is given: a client without TCP gets some addresses. */
static void test_an_answer_is_cut_where_its_limit_is(void **state)
{
    struct buf yaml = BUF_INIT(0);
    struct world w;

    (void)state;
    world_init(&w);
    buf_addc(&yaml, "{kind: EndpointSlice, metadata: {namespace: team, name: many, labels: "
                    "{kubernetes.io/service-name: db}}, ports: [{name: pg, port: 5432}], "
                    "endpoints: [");
    for (int i = 0; i < ENDPOINTS; i++)
        buf_printf(&yaml, "{addresses: [10.3.0.%d], hostname: db-0}, ", i + 1);
    buf_addc(&yaml, "]}");
    world_put(&w, arena_cstr(w.arena, buf_str(&yaml)));
    for (size_t limit = 64; limit < 4096; limit += 37) {
        struct str wire = world_wire(&w, "A db.team.svc.cluster.local", limit);

        bool cut = str_has_prefix(str_c(world_text(&w, wire)), STR("NOERROR aa tc"));

        assert_true(wire.n <= limit);
        assert_int_equal(cut, limit < WHOLE);
        assert_true(wire.n + RECORD > (cut ? limit : WHOLE - 1));
    }
    buf_fini(&yaml);
    world_fini(&w);
}

static void test_limits_of_clients(void **state)
{
    static const struct {
        bool edns;
        uint16_t offered;
        size_t limit;
    } rows[] = {{false, 0, 512}, {true, 100, 512}, {true, 1000, 1000}, {true, 4096, 1232}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct dns_query q = {.edns = rows[i].edns, .udp_size = rows[i].offered};

        assert_int_equal(dns_answer_limit(&q, false), rows[i].limit);
        assert_int_equal(dns_answer_limit(&q, true), 65535);
    }
}

/* --- answers of other servers --- */

struct reply {
    const char *question, *records[4]; /* "!" before one of authority */
    uint16_t id;
    const char *taken; /* NULL: it is no answer */
    uint32_t ttl;
};

static struct str reply_wire(struct world *w, const struct reply *r)
{
    struct dns_query q;
    struct dns_answer a;
    struct buf wire = BUF_INIT(0);
    struct str ret;

    world_query(r->question, &q);
    q.id = r->id;
    dns_answer_init(&a);
    for (size_t i = 0; i < 4 && r->records[i]; i++) {
        bool authority = r->records[i][0] == '!';
        ldns_rr *rr;

        assert_int_equal(ldns_rr_new_frm_str(&rr, r->records[i] + authority, 0, NULL, NULL),
                         LDNS_STATUS_OK);
        ldns_rr_list_push_rr(authority ? a.authority : a.answer, rr);
    }
    dns_answer_print(&q, &a, true, DNS_TCP_MAX, &wire);
    dns_answer_fini(&a);
    ret = arena_str(w->arena, buf_str(&wire));
    buf_fini(&wire);
    return ret;
}

static const struct reply REPLIES[] = {
    {"A a.example", {"a.example. 300 IN A 192.0.2.1"}, 7, "a.example. 300 IN A 192.0.2.1\n", 300},
    {"A A.Example", {"a.example. 300 IN A 192.0.2.1"}, 7, "a.example. 300 IN A 192.0.2.1\n", 300},
    {"A a.example", {"a.example. 300 IN A 192.0.2.1"}, 8, NULL, 0},
    {"AAAA a.example", {"a.example. 300 IN AAAA fd00::1"}, 7, NULL, 0},
    {"A b.example", {"b.example. 300 IN A 192.0.2.1"}, 7, NULL, 0},
    /* what was not requested is not passed on, and not kept */
    {"A a.example",
     {"a.example. 300 IN A 192.0.2.1", "bank.example. 300 IN A 192.0.2.66",
      "!example. 300 IN NS ns.evil.example."},
     7,
     "a.example. 300 IN A 192.0.2.1\n",
     300},
    {"A a.example",
     {"a.example. 300 IN CNAME b.example.", "b.example. 20 IN A 192.0.2.1"},
     7,
     "a.example. 300 IN CNAME b.example.\nb.example. 20 IN A 192.0.2.1\n",
     20},
    {"A a.example",
     {"a.example. 300 IN CNAME b.example.", "b.example. 300 IN CNAME a.example."},
     7,
     NULL,
     0}, /* see below: a circle ends */
    {"A a.example",
     {"!example. 900 IN SOA ns.example. h.example. 1 2 3 4 60"},
     7,
     "! example. 900 IN SOA ns.example. h.example. 1 2 3 4 60\n",
     60},
    {"A a.example", {NULL}, 7, "", 0},
};

static void test_what_is_taken_of_other_servers(void **state)
{
    struct world w;
    struct dns_query q;

    (void)state;
    world_init(&w);
    world_query("A a.example", &q);
    for (size_t i = 0; i < COUNT(REPLIES); i++) {
        const struct reply *r = &REPLIES[i];
        struct dns_answer a;
        struct buf wire = BUF_INIT(0);
        bool cut, taken = dns_answer_parse(reply_wire(&w, r), &q, 7, &a, &cut);

        if (r->records[1] && str_contains(str_c(r->records[1]), STR("CNAME a.example."))) {
            assert_true(taken);
            dns_answer_fini(&a);
            continue;
        }
        if (taken != (r->taken != NULL))
            fail_msg("row %zu", i);
        if (!taken)
            continue;
        assert_int_equal(dns_answer_ttl(&a), r->ttl);
        dns_answer_print(&q, &a, true, DNS_TCP_MAX, &wire);
        assert_string_equal(strchr(world_text(&w, buf_str(&wire)), '\n') + 1, r->taken);
        buf_fini(&wire);
        dns_answer_fini(&a);
    }
    world_fini(&w);
}

/* --- the cache --- */

static void put(struct world *w, struct dns_cache *c, const char *name, int64_t now_ms)
{
    struct reply r = {.id = 7};
    struct dns_query q;
    struct dns_answer a;
    bool cut;

    r.question = arena_printf(w->arena, "A %s", name).p;
    r.records[0] = arena_printf(w->arena, "%s. 10 IN A 192.0.2.1", name).p;
    world_query(r.question, &q);
    assert_true(dns_answer_parse(reply_wire(w, &r), &q, 7, &a, &cut));
    dns_cache_put(c, &q, &a, now_ms);
    dns_answer_fini(&a);
}

/* The TTL that is left; 0: it is not there. */
static uint32_t left(struct world *w, struct dns_cache *c, const char *name, int64_t now_ms)
{
    struct dns_query q;
    struct dns_answer a;
    uint32_t ttl;

    world_query(arena_printf(w->arena, "A %s", name).p, &q);
    if (!dns_cache_get(c, &q, now_ms, &a))
        return 0;
    ttl = ldns_rr_ttl(ldns_rr_list_rr(a.answer, 0));
    dns_answer_fini(&a);
    return ttl;
}

static void test_the_cache_keeps_time_and_bounds(void **state)
{
    struct dns_cache *c = dns_cache_new(4096);
    struct world w;

    (void)state;
    world_init(&w);
    put(&w, c, "a.example", 0);
    assert_int_equal(left(&w, c, "a.example", 4999), 6);
    assert_int_equal(left(&w, c, "a.example", 10000), 0);
    assert_int_equal(dns_cache_count(c), 0);
    put(&w, c, "first.example", 0);
    for (int i = 0; i < 100; i++) {
        put(&w, c, arena_printf(w.arena, "n%d.example", i).p, 0);
        assert_true(dns_cache_bytes(c) <= 4096);
        assert_int_equal(left(&w, c, "first.example", 1000), 9); /* used, so it stays */
    }
    assert_true(dns_cache_count(c) > 5 && !left(&w, c, "n0.example", 0));
    assert_true(left(&w, c, "n99.example", 0));
    dns_cache_free(c);
    world_fini(&w);
}

/* --- clients --- */

static void test_rates(void **state)
{
    struct dns_rates *r = dns_rates_new(10, 1);
    struct dns_ip ip;
    int taken = 0;

    (void)state;
    dns_ip_parse(STR("10.0.0.1"), &ip);
    for (int i = 0; i < 100; i++)
        taken += dns_rates_take(r, &ip, 5000);
    assert_int_equal(taken, 20);
    assert_true(dns_rates_take(r, &ip, 5100) && !dns_rates_take(r, &ip, 5100));
    dns_rates_free(r);
}

static void count_one(void *ctx, struct str bytes, const void *peer)
{
    (void)peer;
    assert_str(bytes, "question");
    ++*(int *)ctx;
}

static void test_strangers_are_held_for_a_while(void **state)
{
    struct dns_held *h = dns_held_new();
    struct sockaddr_storage peer = {0};
    struct world w;
    struct dns_ip ip;
    int64_t next;
    int handed = 0, added = 0;

    (void)state;
    world_init(&w);
    for (int i = 0; i < 100; i++) {
        assert_true(dns_ip_parse(arena_printf(w.arena, "10.9.0.%d", i / 8), &ip));
        added += dns_held_add(h, &ip, STR("question"), &peer, i);
    }
    assert_int_equal(added, 13 * DNS_HELD_EACH);
    for (int i = 0; i < 100; i++) {
        assert_true(dns_ip_parse(arena_printf(w.arena, "10.9.1.%d", i), &ip));
        added += dns_held_add(h, &ip, STR("question"), &peer, 100);
    }
    assert_int_equal(added, DNS_HELD_MAX);
    assert_int_equal(dns_held_release(h, &w.view, 100, count_one, &handed, &next), 0);
    assert_int_equal(next, DNS_HELD_MS);
    world_put(&w, "{kind: Pod, metadata: {namespace: team, name: c}, status: {phase: Running, "
                  "podIP: 10.9.0.1}}");
    dns_held_release(h, &w.view, 101, count_one, &handed, &next);
    assert_int_equal(handed, DNS_HELD_EACH);
    assert_int_equal(dns_held_release(h, &w.view, 9999, count_one, &handed, &next),
                     DNS_HELD_MAX - DNS_HELD_EACH);
    assert_int_equal(next, 0);
    dns_held_free(h);
    world_fini(&w);
}

/* --- options --- */

static void test_options_that_make_no_sense(void **state)
{
    static const struct {
        struct str text;
        size_t member;
        const char *says;
    } rows[] = {
        {{"10.0.0.256", 10}, offsetof(struct config, dns_forwarders), "network.dns.forwarders[0]"},
        {{"10.0.0.1:0", 10}, offsetof(struct config, dns_forwarders), "network.dns.forwarders[0]"},
        {{"corp.example", 12}, offsetof(struct config, dns_stubs), "network.dns.stubDomains[0]"},
        {{"a..b 10.0.0.1", 13}, offsetof(struct config, dns_stubs), "network.dns.stubDomains[0]"},
        {{"10.0.0.1", 8}, offsetof(struct config, dns_hosts), "network.dns.hosts[0]"},
        {{"name 10.0.0.1", 13}, offsetof(struct config, dns_hosts), "network.dns.hosts[0]"},
        {{"10.0.0.1 *", 10}, offsetof(struct config, dns_hosts), "network.dns.hosts[0]"},
        {{"10.0.0.1 *.", 11}, offsetof(struct config, dns_hosts), "network.dns.hosts[0]"},
        {{"10.0.0.1 *..a", 13}, offsetof(struct config, dns_hosts), "network.dns.hosts[0]"},
        {{"a.example", 9}, offsetof(struct config, dns_aliases), "network.dns.aliases[0]"},
        {{"a.b c.d e.f", 11}, offsetof(struct config, dns_aliases), "network.dns.aliases[0]"},
        {{"a.b *.c.d", 9}, offsetof(struct config, dns_aliases), "network.dns.aliases[0]"},
        {{"* c.d", 5}, offsetof(struct config, dns_aliases), "network.dns.aliases[0]"},
        {{"*.a.b *.", 8}, offsetof(struct config, dns_aliases), "network.dns.aliases[0]"},
        {{"*.a.b c.d", 9}, offsetof(struct config, dns_aliases), NULL},
        {{"10.0.0.0/33", 11}, offsetof(struct config, dns_clients), "network.dns.clients[0]"},
        {{".", 1}, offsetof(struct config, dns_hidden), NULL},
    };
    struct world w;

    (void)state;
    world_init(&w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config config = {.cluster_domain = STR("cluster.local"),
                                .dns_listen = STR("[::]:1053")};
        struct str_list list = {&rows[i].text, 1};
        struct dns_policy policy;
        struct err err;

        err_init(&err, w.arena);
        memcpy((char *)&config + rows[i].member, &list, sizeof(list));
        assert_int_equal(dns_policy_load(w.arena, &config, &w.resolv, &policy, &err),
                         rows[i].says ? -1 : 0);
        if (rows[i].says && !str_contains(err.message, str_c(rows[i].says)))
            fail_msg("%.*s", STR_F(err.message));
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_cut_where_its_limit_is),
        cmocka_unit_test(test_limits_of_clients),
        cmocka_unit_test(test_what_is_taken_of_other_servers),
        cmocka_unit_test(test_the_cache_keeps_time_and_bounds),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_strangers_are_held_for_a_while),
        cmocka_unit_test(test_options_that_make_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
