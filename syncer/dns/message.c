/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes to queries and answers, and back. ldns reads whole messages and writes single records;
 * the message around them is written here, so that an answer ends exactly at its limit. Must never
 * trust a length or a count of a message beyond what ldns has checked. */
#include "message.h"

#include <string.h>

enum { HEADER = 12, OPT_BYTES = 11, ALIASES_MAX = 16 };
enum { FLAG_QR = 0x8000, FLAG_AA = 0x400, FLAG_TC = 0x200, FLAG_RD = 0x100 };
enum { FLAG_RA = 0x80, FLAG_CD = 0x10, OPT_DO = 0x8000 };
#define TTL_MAX 86400u

/* --- queries --- */

static bool take_question(const ldns_pkt *p, struct dns_query *q)
{
    const ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_question(p), 0);
    const ldns_rdf *owner = rr ? ldns_rr_owner(rr) : NULL;
    struct str wire;

    if (!owner || ldns_pkt_qdcount(p) != 1)
        return false;
    wire = (struct str){(const char *)ldns_rdf_data(owner), ldns_rdf_size(owner)};
    if (!dns_name_of(wire, &q->name))
        return false;
    memcpy(q->spelled, wire.p, wire.n);
    q->type = ldns_rr_get_type(rr);
    q->class = ldns_rr_get_class(rr);
    q->has_question = true;
    return true;
}

struct str dns_query_owner(const struct dns_query *q)
{
    return (struct str){(const char *)q->spelled, q->name.n};
}

static ldns_pkt_rcode judge(const ldns_pkt *p, struct dns_query *q)
{
    if (ldns_pkt_get_opcode(p) != LDNS_PACKET_QUERY)
        return LDNS_RCODE_NOTIMPL;
    if (!take_question(p, q))
        return LDNS_RCODE_FORMERR;
    if (q->edns && ldns_pkt_edns_version(p) != 0)
        return DNS_RCODE_BADVERS;
    if (q->class != LDNS_RR_CLASS_IN)
        return LDNS_RCODE_REFUSED;
    /* Zone transfers and other meta types. */
    if (q->type == 0 || (q->type >= 128 && q->type < 255) || q->type == LDNS_RR_TYPE_OPT)
        return LDNS_RCODE_REFUSED;
    return LDNS_RCODE_NOERROR;
}

enum dns_verdict dns_query_parse(struct str bytes, struct dns_query *ret, ldns_pkt_rcode *ret_rcode)
{
    const uint8_t *b = (const uint8_t *)bytes.p;
    ldns_pkt *p = NULL;

    *ret = (struct dns_query){0};
    if (bytes.n < HEADER || bytes.n > DNS_QUERY_MAX || b[2] & 0x80)
        return DNS_VERDICT_DROP;
    ret->id = (uint16_t)(b[0] << 8 | b[1]);
    if (ldns_wire2pkt(&p, b, bytes.n) != LDNS_STATUS_OK) {
        *ret_rcode = LDNS_RCODE_FORMERR;
        return DNS_VERDICT_REFUSE;
    }
    ret->recursion_desired = ldns_pkt_rd(p);
    ret->checking_disabled = ldns_pkt_cd(p);
    ret->edns = ldns_pkt_edns(p);
    ret->dnssec_ok = ret->edns && ldns_pkt_edns_do(p);
    ret->udp_size = ldns_pkt_edns_udp_size(p);
    *ret_rcode = judge(p, ret);
    ldns_pkt_free(p);
    return *ret_rcode == LDNS_RCODE_NOERROR ? DNS_VERDICT_GOOD : DNS_VERDICT_REFUSE;
}

/* --- building answers --- */

void dns_answer_init(struct dns_answer *a)
{
    *a = (struct dns_answer){.rcode = LDNS_RCODE_NOERROR,
                             .answer = ldns_rr_list_new(),
                             .authority = ldns_rr_list_new(),
                             .additional = ldns_rr_list_new()};
}

static void free_lists(struct dns_answer *a)
{
    ldns_rr_list_deep_free(a->answer);
    ldns_rr_list_deep_free(a->authority);
    ldns_rr_list_deep_free(a->additional);
}

void dns_answer_fini(struct dns_answer *a)
{
    free_lists(a);
    *a = (struct dns_answer){0};
}

void dns_answer_take(struct dns_answer *to, struct dns_answer *from)
{
    free_lists(to);
    *to = *from;
    *from = (struct dns_answer){0};
}

ldns_rdf *dns_rdata_name(struct str wire)
{
    return ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, wire.n, wire.p);
}

ldns_rr *dns_record_new(struct str owner, ldns_rr_type type, uint32_t ttl, size_t n,
                        ldns_rdf *const *rdata)
{
    ldns_rr *rr = ldns_rr_new();

    ldns_rr_set_owner(rr, dns_rdata_name(owner));
    ldns_rr_set_type(rr, type);
    ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
    ldns_rr_set_ttl(rr, ttl);
    for (size_t i = 0; i < n; i++)
        ldns_rr_push_rdf(rr, rdata[i]);
    return rr;
}

/* --- printing --- */

struct printer {
    ldns_buffer *buffer;
    ldns_rbtree_t *names; /* offsets of names in the buffer, for compression */
    size_t limit;
};

static void free_name(ldns_rbnode_t *node, void *ctx)
{
    (void)ctx;
    ldns_rdf_deep_free((ldns_rdf *)(uintptr_t)node->key);
    LDNS_FREE(node);
}

static void printer_init(struct printer *p, size_t limit)
{
    p->buffer = ldns_buffer_new(DNS_UDP_PLAIN);
    p->names = ldns_rbtree_create(ldns_dname_compare_v);
    p->limit = limit;
    for (int i = 0; i < HEADER; i++)
        ldns_buffer_write_u8(p->buffer, 0);
}

/* Returns how many fit. After the first that does not, no compressed name may follow: offsets in
 * `names` may point beyond the message. */
static size_t print_records(struct printer *p, const ldns_rr_list *list, int section)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
        size_t before = ldns_buffer_position(p->buffer);

        if (ldns_rr2buffer_wire_compress(p->buffer, ldns_rr_list_rr(list, i), section, p->names) !=
                LDNS_STATUS_OK ||
            ldns_buffer_position(p->buffer) > p->limit) {
            ldns_buffer_set_position(p->buffer, before);
            return i;
        }
    }
    return ldns_rr_list_rr_count(list);
}

static void print_question(struct printer *p, const struct dns_query *q)
{
    ldns_rdf *name = dns_rdata_name(dns_query_owner(q));

    ldns_dname2buffer_wire_compress(p->buffer, name, p->names); /* answers refer to its offset */
    ldns_buffer_write_u16(p->buffer, (uint16_t)q->type);
    ldns_buffer_write_u16(p->buffer, (uint16_t)q->class);
    ldns_rdf_deep_free(name);
}

static void print_opt(struct printer *p, ldns_pkt_rcode rcode, bool dnssec_ok)
{
    ldns_buffer_write_u8(p->buffer, 0);
    ldns_buffer_write_u16(p->buffer, LDNS_RR_TYPE_OPT);
    ldns_buffer_write_u16(p->buffer, DNS_UDP_MAX);
    ldns_buffer_write_u8(p->buffer, (uint8_t)(rcode >> 4));
    ldns_buffer_write_u8(p->buffer, 0);
    ldns_buffer_write_u16(p->buffer, dnssec_ok ? OPT_DO : 0);
    ldns_buffer_write_u16(p->buffer, 0);
}

static void print_header(struct printer *p, uint16_t id, unsigned flags, const size_t counts[4])
{
    ldns_buffer_write_u16_at(p->buffer, 0, id);
    ldns_buffer_write_u16_at(p->buffer, 2, (uint16_t)flags);
    for (size_t i = 0; i < 4; i++)
        ldns_buffer_write_u16_at(p->buffer, 4 + 2 * i, (uint16_t)counts[i]);
}

/* Appends the message to out, and frees the printer's memory. */
static void printer_finish(struct printer *p, struct buf *out)
{
    buf_add(out, (struct str){(const char *)ldns_buffer_begin(p->buffer),
                              ldns_buffer_position(p->buffer)});
    ldns_traverse_postorder(p->names, free_name, NULL);
    ldns_rbtree_free(p->names);
    ldns_buffer_free(p->buffer);
}

static unsigned answer_flags(const struct dns_query *q, const struct dns_answer *a, bool recursive)
{
    unsigned flags = FLAG_QR | ((unsigned)a->rcode & 15);

    flags |= a->authoritative ? FLAG_AA : 0;
    flags |= q->recursion_desired ? FLAG_RD : 0;
    flags |= recursive ? FLAG_RA : 0;
    flags |= q->checking_disabled ? FLAG_CD : 0;
    return flags;
}

void dns_answer_print(const struct dns_query *q, const struct dns_answer *a, bool recursive,
                      size_t limit, struct buf *out)
{
    unsigned flags = answer_flags(q, a, recursive);
    size_t counts[4] = {q->has_question}, opt = q->edns ? OPT_BYTES : 0;
    struct printer p;

    printer_init(&p, limit - opt);
    if (q->has_question)
        print_question(&p, q);
    counts[1] = print_records(&p, a->answer, LDNS_SECTION_ANSWER);
    if (counts[1] == ldns_rr_list_rr_count(a->answer))
        counts[2] = print_records(&p, a->authority, LDNS_SECTION_AUTHORITY);
    if (counts[1] + counts[2] <
        ldns_rr_list_rr_count(a->answer) + ldns_rr_list_rr_count(a->authority))
        flags |= FLAG_TC;
    else
        counts[3] = print_records(&p, a->additional, LDNS_SECTION_ADDITIONAL);
    if (q->edns) {
        print_opt(&p, a->rcode, q->dnssec_ok);
        counts[3]++;
    }
    print_header(&p, q->id, flags, counts);
    printer_finish(&p, out);
}

size_t dns_answer_limit(const struct dns_query *q, bool tcp)
{
    if (tcp)
        return DNS_TCP_MAX;
    if (!q->edns || q->udp_size < DNS_UDP_PLAIN)
        return DNS_UDP_PLAIN;
    return q->udp_size < DNS_UDP_MAX ? q->udp_size : DNS_UDP_MAX;
}

void dns_query_print(const struct dns_query *q, uint16_t id, struct buf *out)
{
    size_t counts[4] = {1, 0, 0, 1};
    struct printer p;

    printer_init(&p, DNS_UDP_PLAIN);
    print_question(&p, q);
    print_opt(&p, LDNS_RCODE_NOERROR, q->dnssec_ok);
    print_header(&p, id, FLAG_RD | (q->checking_disabled ? FLAG_CD : 0), counts);
    printer_finish(&p, out);
}

void dns_answer_freeze(const struct dns_query *q, const struct dns_answer *a, struct buf *out)
{
    struct dns_query plain = *q;

    plain.edns = false;
    dns_answer_print(&plain, a, true, DNS_TCP_MAX, out);
}

/* --- answers of other servers --- */

static bool is_for(const ldns_pkt *p, const struct dns_query *q, uint16_t id)
{
    struct dns_query echo = {0};

    return ldns_pkt_qr(p) && ldns_pkt_id(p) == id && ldns_pkt_get_opcode(p) == LDNS_PACKET_QUERY &&
           take_question(p, &echo) && dns_name_eq(&echo.name, &q->name) && echo.type == q->type &&
           echo.class == q->class;
}

static bool rdf_take(const ldns_rdf *rdf, struct dns_name *ret)
{
    return rdf &&
           dns_name_of((struct str){(const char *)ldns_rdf_data(rdf), ldns_rdf_size(rdf)}, ret);
}

static bool rdf_is(const ldns_rdf *rdf, const struct dns_name *name)
{
    struct dns_name other;

    return rdf_take(rdf, &other) && dns_name_eq(&other, name);
}

/* Copies the records of `at`. True: one of them is an alias of *ret. */
static bool take_link(ldns_rr_list *from, ldns_rr_list *to, const struct dns_name *at,
                      struct dns_name *ret)
{
    bool alias = false;

    for (size_t i = 0; i < ldns_rr_list_rr_count(from); i++) {
        ldns_rr *rr = ldns_rr_list_rr(from, i);

        if (ldns_rr_get_class(rr) != LDNS_RR_CLASS_IN || !rdf_is(ldns_rr_owner(rr), at))
            continue;
        if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_CNAME)
            alias = rdf_take(ldns_rr_rdf(rr, 0), ret);
        ldns_rr_list_push_rr(to, ldns_rr_clone(rr));
    }
    return alias;
}

/* Copies the records of the query's name, and of the names that its aliases lead to. */
static void take_chain(ldns_rr_list *from, ldns_rr_list *to, const struct dns_query *q)
{
    struct dns_name at = q->name, next;

    for (int i = 0; i < ALIASES_MAX && take_link(from, to, &at, &next); i++) {
        if (q->type == LDNS_RR_TYPE_CNAME || dns_name_eq(&at, &next))
            return;
        at = next;
    }
}

static void take_soa(const ldns_rr_list *from, ldns_rr_list *to)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(from); i++) {
        const ldns_rr *rr = ldns_rr_list_rr(from, i);

        if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_SOA && ldns_rr_rd_count(rr) == 7)
            ldns_rr_list_push_rr(to, ldns_rr_clone(rr));
    }
}

static bool has_type(const ldns_rr_list *list, ldns_rr_type type)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++)
        if (ldns_rr_get_type(ldns_rr_list_rr(list, i)) == type || type == LDNS_RR_TYPE_ANY)
            return true;
    return false;
}

bool dns_answer_parse(struct str bytes, const struct dns_query *q, uint16_t id,
                      struct dns_answer *ret, bool *ret_truncated)
{
    ldns_pkt *p = NULL;

    if (ldns_wire2pkt(&p, (const uint8_t *)bytes.p, bytes.n) != LDNS_STATUS_OK)
        return false;
    if (!is_for(p, q, id)) {
        ldns_pkt_free(p);
        return false;
    }
    dns_answer_init(ret);
    ret->rcode = ldns_pkt_get_rcode(p);
    *ret_truncated = ldns_pkt_tc(p);
    take_chain(ldns_pkt_answer(p), ret->answer, q);
    if (!has_type(ret->answer, q->type))
        take_soa(ldns_pkt_authority(p), ret->authority);
    ldns_pkt_free(p);
    return true;
}

static bool is_under(const ldns_rdf *rdf, const struct dns_name *zones, size_t n)
{
    struct dns_name name;

    if (ldns_rdf_get_type(rdf) != LDNS_RDF_TYPE_DNAME || !rdf_take(rdf, &name))
        return false;
    for (size_t i = 0; i < n; i++)
        if (dns_name_is_under(&name, &zones[i]))
            return true;
    return false;
}

static bool list_names(const ldns_rr_list *list, const struct dns_name *zones, size_t n)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
        const ldns_rr *rr = ldns_rr_list_rr(list, i);

        if (is_under(ldns_rr_owner(rr), zones, n))
            return true;
        for (size_t k = 0; k < ldns_rr_rd_count(rr); k++)
            if (is_under(ldns_rr_rdf(rr, k), zones, n))
                return true;
    }
    return false;
}

bool dns_answer_names(const struct dns_answer *a, const struct dns_name *zones, size_t n)
{
    return list_names(a->answer, zones, n) || list_names(a->authority, zones, n) ||
           list_names(a->additional, zones, n);
}

/* --- TTLs --- */

static uint32_t least_ttl(const ldns_rr_list *list, uint32_t most)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
        const ldns_rr *rr = ldns_rr_list_rr(list, i);

        if (ldns_rr_ttl(rr) < most)
            most = ldns_rr_ttl(rr);
        if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_SOA && ldns_rr_rd_count(rr) == 7 &&
            ldns_rdf2native_int32(ldns_rr_rdf(rr, 6)) < most)
            most = ldns_rdf2native_int32(ldns_rr_rdf(rr, 6));
    }
    return most;
}

uint32_t dns_answer_ttl(const struct dns_answer *a)
{
    bool good = a->rcode == LDNS_RCODE_NOERROR || a->rcode == LDNS_RCODE_NXDOMAIN;
    size_t records = ldns_rr_list_rr_count(a->answer) + ldns_rr_list_rr_count(a->authority);
    uint32_t ttl;

    if (!good || !records)
        return 0;
    ttl = least_ttl(a->authority, least_ttl(a->answer, TTL_MAX));
    return ttl > INT32_MAX ? 0 : ttl;
}

static void age_list(ldns_rr_list *list, uint32_t seconds)
{
    for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
        ldns_rr *rr = ldns_rr_list_rr(list, i);
        uint32_t ttl = ldns_rr_ttl(rr);

        ldns_rr_set_ttl(rr, ttl > seconds ? ttl - seconds : 0);
    }
}

void dns_answer_age(struct dns_answer *a, uint32_t seconds)
{
    age_list(a->answer, seconds);
    age_list(a->authority, seconds);
    age_list(a->additional, seconds);
}

bool dns_answer_thaw(struct str bytes, struct dns_answer *ret)
{
    ldns_pkt *p = NULL;

    if (ldns_wire2pkt(&p, (const uint8_t *)bytes.p, bytes.n) != LDNS_STATUS_OK)
        return false;
    dns_answer_init(ret);
    ret->rcode = ldns_pkt_get_rcode(p);
    ldns_rr_list_cat(ret->answer, ldns_pkt_answer(p));
    ldns_rr_list_cat(ret->authority, ldns_pkt_authority(p));
    ldns_rr_list_set_rr_count(ldns_pkt_answer(p), 0); /* they have moved */
    ldns_rr_list_set_rr_count(ldns_pkt_authority(p), 0);
    ldns_pkt_free(p);
    return true;
}
