/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * DNS messages, parsed and printed with ldns. Pure. A query has one name, type and class; records
 * in a client's message are ignored, except for EDNS. */
#pragma once

#include <stdbool.h> /* before ldns, which otherwise defines bool itself */

#include <ldns/ldns.h>

#include <sublet/buf.h>

#include "name.h"

enum {
    DNS_QUERY_MAX = 4096, /* bytes of a query; longer ones are dropped */
    DNS_UDP_PLAIN = 512,  /* of an answer over UDP without EDNS */
    DNS_UDP_MAX = 1232,   /* with it, whatever the client offers: never a fragment */
    DNS_TCP_MAX = 65535,
};

struct dns_query {
    uint16_t id;
    bool recursion_desired, checking_disabled;
    bool edns, dnssec_ok;
    uint16_t udp_size;
    struct dns_name name;          /* lower case */
    uint8_t spelled[DNS_NAME_MAX]; /* name as received, in its case; name.n bytes */
    ldns_rr_type type;
    ldns_rr_class class;
    bool has_question;
};
struct str dns_query_owner(const struct dns_query *q); /* the name as received: a view */
#define DNS_RCODE_BADVERS ((ldns_pkt_rcode)16)

enum dns_verdict { DNS_VERDICT_DROP, DNS_VERDICT_REFUSE, DNS_VERDICT_GOOD };
/* DROP: a response, or too short for a header. REFUSE: answer ret with *ret_rcode. */
enum dns_verdict dns_query_parse(struct str bytes, struct dns_query *ret,
                                 ldns_pkt_rcode *ret_rcode);

/* An answer. It owns its lists. */
struct dns_answer {
    ldns_pkt_rcode rcode;
    bool authoritative;
    ldns_rr_list *answer, *authority, *additional;
};
void dns_answer_init(struct dns_answer *a);
void dns_answer_fini(struct dns_answer *a);
void dns_answer_take(struct dns_answer *to, struct dns_answer *from); /* frees what `to` held */

/* One record with n fields of rdata, which it owns from here on. */
ldns_rr *dns_record_new(struct str owner, ldns_rr_type type, uint32_t ttl, size_t n,
                        ldns_rdf *const *rdata);
ldns_rdf *dns_rdata_name(struct str wire);

/* Prints at most limit bytes. Records that do not fit are left out, additional ones first; a
 * truncated answer has TC set, and as many of its records as fit. */
void dns_answer_print(const struct dns_query *q, const struct dns_answer *a, bool recursive,
                      size_t limit, struct buf *out);
size_t dns_answer_limit(const struct dns_query *q, bool tcp);

/* A query of our own: recursion desired, EDNS of DNS_UDP_MAX. */
void dns_query_print(const struct dns_query *q, uint16_t id, struct buf *out);
/* The answer of another server; false unless it matches the query and the id (RFC 5452, 9.1).
 * *ret_truncated: TC is set. Leaves out records that do not belong to the query: those that no
 * chain of aliases leads to, the authority section of a positive answer, additional ones. */
bool dns_answer_parse(struct str bytes, const struct dns_query *q, uint16_t id,
                      struct dns_answer *ret, bool *ret_truncated);
/* Does a record have a name under one of these, as owner or inside? */
bool dns_answer_names(const struct dns_answer *a, const struct dns_name *zones, size_t n);
/* How long it may be cached: the lowest TTL, of a negative answer by its SOA (RFC 2308); 0: not. */
uint32_t dns_answer_ttl(const struct dns_answer *a);
void dns_answer_age(struct dns_answer *a, uint32_t seconds); /* subtracts them from each TTL */
/* To and from the bytes that the cache keeps. */
void dns_answer_freeze(const struct dns_query *q, const struct dns_answer *a, struct buf *out);
bool dns_answer_thaw(struct str bytes, struct dns_answer *ret);
