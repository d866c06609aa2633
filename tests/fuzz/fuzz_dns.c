/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a client, and bytes of another resolver, against a small tenant. The first byte chooses.
 * A query is dropped, or answered by a message that ldns reads, that carries its id and fits its
 * limit; what another resolver says is only taken as an answer to the query, and never names the
 * host's domain when it is passed on. */

#include <assert.h>
#include <string.h>

#include "../../syncer/dns/answer.h"
#include "../../syncer/dns/cache.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *const OBJECTS[N_ZONE] = {
    "{\"metadata\":{\"name\":\"team\"}}",
    "{\"spec\":{\"clusterIP\":\"10.96.0.5\",\"ports\":[{\"name\":\"http\",\"port\":80}]}}",
    ("{\"metadata\":{\"labels\":{\"kubernetes.io/"
     "service-name\":\"web\"}},\"ports\":[{\"port\":80}],"
     "\"endpoints\":[{\"addresses\":[\"10.1.0.1\"],\"hostname\":\"a\"}]}"),
    ("{\"spec\":{\"hostname\":\"one\",\"subdomain\":\"sub\"},"
     "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.0.1\"}}"),
    ("{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.1.0.7\"}]}}"),
};

struct world {
    struct arena *arena;
    struct dns_policy policy;
    struct dns_view view;
    struct dns_ip client;
};

static void world_init(struct world *w)
{
    static const struct str servers[] = {{"10.96.0.10", 10}};
    static const struct str aliases[] = {{"a.example web.team.svc.cluster.local", 36},
                                         {"*.b.example *.c.b.example", 25}};
    struct config config = {.cluster_domain = STR("cluster.local"),
                            .dns_aliases = {aliases, 2},
                            .kubelet_addresses = 1,
                            .dns_listen = STR("0.0.0.0:53")};
    struct dns_resolv resolv = {.servers = {servers, 1}};
    struct dns_zone *zone = dns_zone_new();
    struct err err;

    w->arena = arena_new(0);
    err_init(&err, w->arena);
    if (dns_policy_load(w->arena, &config, &resolv, &w->policy, &err))
        abort();
    for (int kind = 0; kind < N_ZONE; kind++) {
        cJSON *object = NULL;

        if (json_parse(w->arena, str_c(OBJECTS[kind]), &object, &err))
            abort();
        dns_zone_set(zone, (enum zone_kind)kind,
                     kind == ZONE_NAMESPACES || kind == ZONE_NODES ? STR("") : STR("team"),
                     kind == ZONE_NAMESPACES ? STR("team") : STR("web"), object);
    }
    w->view = (struct dns_view){.zone = zone, .policy = &w->policy};
    if (!dns_ip_parse(STR("10.1.0.1"), &w->client))
        abort();
}

static void world_fini(struct world *w)
{
    dns_zone_free((struct dns_zone *)(uintptr_t)w->view.zone);
    arena_free(w->arena);
}

static void check_printed(const struct dns_query *q, const struct dns_answer *a, size_t limit)
{
    struct buf out = BUF_INIT(DNS_TCP_MAX);
    ldns_pkt *p = NULL;

    dns_answer_print(q, a, true, limit, &out);
    assert(out.n >= 12 && out.n <= limit);
    assert(ldns_wire2pkt(&p, (const uint8_t *)out.p, out.n) == LDNS_STATUS_OK);
    assert(ldns_pkt_qr(p) && ldns_pkt_id(p) == q->id);
    assert(ldns_pkt_qdcount(p) == q->has_question);
    ldns_pkt_free(p);
    buf_fini(&out);
}

static void ask(struct world *w, struct str bytes)
{
    const struct dns_upstream *upstream = NULL;
    struct dns_query q, at;
    struct dns_answer answer;
    ldns_pkt_rcode rcode = LDNS_RCODE_NOERROR;
    enum dns_verdict verdict = dns_query_parse(bytes, &q, &rcode);
    enum dns_outcome outcome;

    if (verdict == DNS_VERDICT_DROP)
        return;
    if (verdict == DNS_VERDICT_REFUSE) {
        assert(rcode != LDNS_RCODE_NOERROR);
        dns_answer_init(&answer);
        answer.rcode = rcode;
    } else {
        outcome = dns_answer_query(w->arena, &w->view, &q, &w->client, 1, &answer, &at, &upstream);
        assert(outcome == DNS_DONE || upstream->n);
    }
    check_printed(&q, &answer, dns_answer_limit(&q, false));
    check_printed(&q, &answer, DNS_TCP_MAX);
    dns_answer_fini(&answer);
}

static void take(struct world *w, struct str bytes)
{
    struct dns_query q = {
        .id = 7, .type = LDNS_RR_TYPE_A, .class = LDNS_RR_CLASS_IN, .has_question = true};
    struct dns_cache *cache = dns_cache_new(4096);
    struct dns_answer answer, whole, cached;
    bool cut;

    dns_name_parse(STR("a.example"), &q.name);
    memcpy(q.spelled, q.name.b, q.name.n);
    if (dns_answer_parse(bytes, &q, 7, &answer, &cut)) {
        dns_cache_put(cache, &q, &answer, 0);
        assert(dns_cache_bytes(cache) <= 4096);
        if (dns_cache_get(cache, &q, 1000, &cached))
            dns_answer_fini(&cached);
        dns_answer_init(&whole);
        dns_answer_append(&w->view, &q, &w->policy.forward, &whole, &answer);
        assert(!dns_answer_names(&whole, w->policy.hidden, w->policy.n_hidden) ||
               whole.rcode == LDNS_RCODE_NXDOMAIN);
        check_printed(&q, &whole, DNS_UDP_PLAIN);
        check_printed(&q, &whole, DNS_TCP_MAX);
        dns_answer_fini(&whole);
    }
    dns_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str bytes = {(const char *)data + 1, size - 1};
    struct world w;

    if (!size)
        return 0;
    world_init(&w);
    if (data[0] & 1)
        take(&w, bytes);
    else
        ask(&w, bytes);
    world_fini(&w);
    return 0;
}
