/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, ranges and endpoints: parsed from strings, read from sockets. */
#include "ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { V4_AT = 12, TEXT_MAX = 64 };

static const uint8_t V4_PREFIX[V4_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void from_v4(const void *bytes, struct dns_ip *ret)
{
    memcpy(ret->b, V4_PREFIX, V4_AT);
    memcpy(ret->b + V4_AT, bytes, 4);
}

bool dns_ip_parse(struct str text, struct dns_ip *ret)
{
    char c[TEXT_MAX];
    uint8_t bytes[16];

    if (text.n >= sizeof(c) || str_find(text, '\0') < text.n)
        return false;
    memcpy(c, text.p ? text.p : "", text.n);
    c[text.n] = '\0';
    if (inet_pton(AF_INET, c, bytes) == 1) {
        from_v4(bytes, ret);
        return true;
    }
    if (inet_pton(AF_INET6, c, bytes) != 1)
        return false;
    memcpy(ret->b, bytes, sizeof(bytes));
    return true;
}

void dns_ip_of(const struct sockaddr *from, struct dns_ip *ret)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof(v4));
        from_v4(&v4.sin_addr, ret);
    } else {
        memcpy(&v6, from, sizeof(v6));
        memcpy(ret->b, &v6.sin6_addr, sizeof(ret->b));
    }
}

bool dns_ip_is_v4(const struct dns_ip *ip)
{
    return !memcmp(ip->b, V4_PREFIX, V4_AT);
}

bool dns_ip_eq(const struct dns_ip *a, const struct dns_ip *b)
{
    return !memcmp(a->b, b->b, sizeof(a->b));
}

struct str dns_ip_bytes(const struct dns_ip *ip)
{
    size_t at = dns_ip_is_v4(ip) ? V4_AT : 0;

    return (struct str){(const char *)ip->b + at, sizeof(ip->b) - at};
}

struct str dns_ip_text(struct arena *a, const struct dns_ip *ip)
{
    char text[INET6_ADDRSTRLEN];
    struct str bytes = dns_ip_bytes(ip);

    inet_ntop(bytes.n == 4 ? AF_INET : AF_INET6, bytes.p, text, sizeof(text));
    return arena_str(a, str_c(text));
}

/* --- ranges --- */

bool dns_range_parse(struct str text, struct dns_range *ret)
{
    struct str rest = text, ip = str_cut(&rest, '/');
    uint64_t bits = 0;
    unsigned most;

    if (!dns_ip_parse(ip, &ret->ip))
        return false;
    most = dns_ip_is_v4(&ret->ip) ? 32 : 128;
    if (rest.p && (!str_to_u64(rest, &bits) || bits > most))
        return false;
    ret->bits = rest.p ? 128 - most + (unsigned)bits : 128;
    return true;
}

bool dns_range_has(const struct dns_range *range, const struct dns_ip *ip)
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    if (memcmp(range->ip.b, ip->b, whole))
        return false;
    return !rest || !((range->ip.b[whole] ^ ip->b[whole]) & mask);
}

/* IPv4 ranges lie below ::ffff:0:0/96. */
#define V4_RANGE(a, b, bits)                                                                       \
    {                                                                                              \
        {{[10] = 0xff, 0xff, a, b}}, 96 + (bits)                                                   \
    }
#define V6_RANGE(a, b, bits)                                                                       \
    {                                                                                              \
        {{a, b}}, bits                                                                             \
    }

bool dns_ip_is_private(const struct dns_ip *ip)
{
    static const struct dns_range ranges[] = {
        V4_RANGE(0, 0, 8),      V4_RANGE(10, 0, 8),      V4_RANGE(100, 64, 10),
        V4_RANGE(127, 0, 8),    V4_RANGE(169, 254, 16),  V4_RANGE(172, 16, 12),
        V4_RANGE(192, 168, 16), V6_RANGE(0, 0, 127), /* :: and ::1 */
        V6_RANGE(0xfc, 0, 7),   V6_RANGE(0xfe, 0x80, 10)};

    for (size_t i = 0; i < COUNT(ranges); i++)
        if (dns_range_has(&ranges[i], ip))
            return true;
    return false;
}

/* --- endpoints --- */

bool dns_endpoint_parse(struct str text, struct dns_endpoint *ret)
{
    struct str host = text, port = STR("53");
    uint64_t number;

    if (text.n && text.p[0] == '[') {
        size_t end = str_find(text, ']');

        host = str_sub(text, 1, end - 1);
        if (end + 1 < text.n) {
            if (text.p[end + 1] != ':')
                return false;
            port = str_from(text, end + 2);
        } else if (end == text.n) {
            return false;
        }
    } else if (str_find(text, ':') < text.n && str_find(text, ':') == str_rfind(text, ':')) {
        host = str_sub(text, 0, str_find(text, ':'));
        port = str_from(text, host.n + 1);
    }
    if (!dns_ip_parse(host, &ret->ip) || !str_to_u64(port, &number) || number > 65535)
        return false;
    ret->port = (unsigned)number;
    return true;
}

void dns_endpoint_sockaddr(const struct dns_endpoint *e, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)e->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)e->port)};

    memset(ret, 0, sizeof(*ret));
    if (dns_ip_is_v4(&e->ip)) {
        memcpy(&v4.sin_addr, e->ip.b + V4_AT, 4);
        memcpy(ret, &v4, sizeof(v4));
    } else {
        memcpy(&v6.sin6_addr, e->ip.b, sizeof(e->ip.b));
        memcpy(ret, &v6, sizeof(v6));
    }
}
