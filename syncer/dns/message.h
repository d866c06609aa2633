/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Messages between bytes and meaning, by ldns. Pure. A question is one name, type and class; what
 * else a client's message carries is not looked at, but for EDNS. */
#pragma once

#include <stdbool.h> /* before ldns, which else makes a bool of its own */

#include <ldns/ldns.h>

#include <sublet/buf.h>

#include "name.h"

enum {
    DNS_QUERY_MAX = 4096, /* bytes of a query; longer ones are not read */
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
    uint8_t spelled[DNS_NAME_MAX]; /* the same as it was sent, name.n bytes */
    ldns_rr_type type;
    ldns_rr_class class;
    bool has_question;
};
struct str dns_query_owner(const struct dns_query *q); /* as it was sent: a view */
#define DNS_RCODE_BADVERS ((ldns_pkt_rcode)16)

enum dns_verdict { DNS_VERDICT_DROP, DNS_VERDICT_REFUSE, DNS_VERDICT_GOOD };
/* DROP: answers, and what has no header. REFUSE: *ret_rcode says why; ret can be answered. */
enum dns_verdict dns_query_parse(struct str bytes, struct dns_query *ret,
                                 ldns_pkt_rcode *ret_rcode);

/* An answer in the making. Lists are owned. */
struct dns_answer {
    ldns_pkt_rcode rcode;
    bool authoritative;
    ldns_rr_list *answer, *authority, *additional;
};
void dns_answer_init(struct dns_answer *a);
void dns_answer_fini(struct dns_answer *a);                           /* again what init makes */
void dns_answer_take(struct dns_answer *to, struct dns_answer *from); /* what `to` held is freed */

/* One record: rdata is as many as the type has; owned from here on. */
ldns_rr *dns_record_new(struct str owner, ldns_rr_type type, uint32_t ttl, size_t n,
                        ldns_rdf *const *rdata);
ldns_rdf *dns_rdata_name(struct str wire);

/* As bytes, at most limit. What does not fit is left out, additional records first; a cut answer
 * carries TC and as many of its records as fit. */
void dns_answer_print(const struct dns_query *q, const struct dns_answer *a, bool recursive,
                      size_t limit, struct buf *out);
size_t dns_answer_limit(const struct dns_query *q, bool tcp);

/* A query of our own: recursion desired, EDNS of DNS_UDP_MAX. */
void dns_question_print(const struct dns_query *q, uint16_t id, struct buf *out);
/* The answer of another server, if it is one to this question with this id (RFC 5452, 9.1);
 * *ret_truncated: it says there is more over TCP. What does not belong to the question is left out:
 * records that no chain of aliases leads to, authority of an answer, additional ones. */
bool dns_answer_parse(struct str bytes, const struct dns_query *q, uint16_t id,
                      struct dns_answer *ret, bool *ret_truncated);
/* Does a record have a name under one of these, as owner or inside? */
bool dns_answer_names(const struct dns_answer *a, const struct dns_name *zones, size_t n);
/* For how long it may be kept: the least TTL, of a negative answer by its SOA (RFC 2308); 0: not.
 */
uint32_t dns_answer_ttl(const struct dns_answer *a);
void dns_answer_age(struct dns_answer *a, uint32_t seconds); /* takes them off each TTL */
/* For the cache, which keeps bytes. */
void dns_answer_freeze(const struct dns_query *q, const struct dns_answer *a, struct buf *out);
bool dns_answer_thaw(struct str bytes, struct dns_answer *ret);
