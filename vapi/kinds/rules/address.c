/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of IP addresses and ranges, in upstream's words. Must never resolve a name. Source:
 * apimachinery pkg/util/validation/ip.go, ValidateEndpointIP in pkg/apis/core/validation. */
#include "check.h"

#include <arpa/inet.h>
#include <string.h>

/* Upstream reads octets with leading zeros first and refuses them then. */
static bool has_leading_zero(struct str ip)
{
    unsigned parts = 0;

    do {
        struct str part = str_cut(&ip, '.');
        uint64_t value;

        if (!part.n || part.n > 12 || !str_to_u64(part, &value) || value > 255)
            return false;
        parts++;
    } while (ip.p);
    return parts == 4;
}

static bool parse_ip(struct str ip, int *family, unsigned char out[16])
{
    char text[64];

    if (!ip.n || ip.n >= sizeof(text) || memchr(ip.p, 0, ip.n))
        return false;
    memcpy(text, ip.p, ip.n);
    text[ip.n] = 0;
    *family = strchr(text, ':') ? AF_INET6 : AF_INET;
    return inet_pton(*family, text, out) == 1;
}

static bool is_mapped(const unsigned char ip[16])
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

const char *check_ip_problem(struct str ip)
{
    unsigned char bytes[16];
    int family;

    if (!parse_ip(ip, &family, bytes))
        return has_leading_zero(ip) ? "must not have leading 0s"
                                    : "must be a valid IP address, (e.g. 10.9.8.7 or "
                                      "2001:db8::ffff)";
    if (family == AF_INET6 && is_mapped(bytes))
        return "must not be an IPv4-mapped IPv6 address";
    return NULL;
}

bool check_ip(struct field_errors *e, const struct field_path *p, struct str ip)
{
    const char *why = check_ip_problem(ip);

    if (why)
        field_invalid_str(e, p, ip, why);
    return !why;
}

/* As check_ip_problem(), but in the one way an address is printed. */
const char *check_canonical_ip_problem(struct arena *a, struct str ip)
{
    const char *why = check_ip_problem(ip);
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN];
    int family;

    if (why || !parse_ip(ip, &family, bytes) || !inet_ntop(family, bytes, text, sizeof(text)) ||
        str_eqc(ip, text))
        return why;
    return problem_printf(a, "must be in canonical form (\"%s\")", text);
}

static bool bits_beyond(const unsigned char *ip, unsigned length, unsigned total)
{
    for (unsigned bit = length; bit < total; bit++) {
        if (ip[bit / 8] & (0x80 >> (bit % 8)))
            return true;
    }
    return false;
}

/* An address and the length of its network. */
static bool parse_network(struct str cidr, int *family, unsigned char bytes[16], uint64_t *length)
{
    struct str rest = cidr, ip = str_cut(&rest, '/');

    return rest.n && rest.n <= 3 && str_to_u64(rest, length) && parse_ip(ip, family, bytes) &&
           *length <= (*family == AF_INET6 ? 128 : 32);
}

bool check_cidr(struct field_errors *e, const struct field_path *p, struct str cidr)
{
    struct str rest = str_from(cidr, str_find(cidr, '/') + 1);
    unsigned char bytes[16];
    int family = 0;
    uint64_t length = 0;
    const char *why = NULL;

    if (!parse_network(cidr, &family, bytes, &length))
        why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    else if (rest.n > 1 && rest.p[0] == '0')
        why = "must not have leading 0s in IP or prefix length";
    else if (family == AF_INET6 && is_mapped(bytes))
        why = "must not have an IPv4-mapped IPv6 address";
    else if (bits_beyond(bytes, (unsigned)length, family == AF_INET6 ? 128 : 32))
        why = "must not have bits set beyond the prefix length";
    if (why)
        field_invalid_str(e, p, cidr, why);
    return !why;
}

bool check_canonical_cidr(struct field_errors *e, const struct field_path *p, struct str cidr)
{
    struct str length = cidr, ip = str_cut(&length, '/');
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN];
    int family;

    if (!check_cidr(e, p, cidr))
        return false;
    if (!parse_ip(ip, &family, bytes) || !inet_ntop(family, bytes, text, sizeof(text)) ||
        str_eqc(ip, text))
        return true;
    field_invalid_str_printf(e, p, cidr, "must be in canonical form (\"%s/%.*s\")", text,
                             STR_F(length));
    return false;
}

bool check_interface(struct field_errors *e, const struct field_path *p, struct str address)
{
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN];
    const char *canonical;
    int family = 0;
    uint64_t length = 0;

    if (!parse_network(address, &family, bytes, &length)) {
        field_invalid_str(e, p, address,
                          "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or "
                          "2001:db8::1/64)");
        return false;
    }
    if (!inet_ntop(family, bytes, text, sizeof(text)))
        return true;
    canonical = arena_printf(e->arena, "%s/%llu", text, (unsigned long long)length).p;
    if (str_eqc(address, canonical))
        return true;
    field_invalid_str_printf(e, p, address, "must be in canonical form (\"%s\")", canonical);
    return false;
}

bool check_cidr_contains(struct str cidr, struct str inner)
{
    struct str outer_length = cidr, outer_ip = str_cut(&outer_length, '/');
    struct str inner_length = inner, inner_ip = str_cut(&inner_length, '/');
    unsigned char a[16], b[16];
    int family, other;
    uint64_t n, m;

    if (!parse_ip(outer_ip, &family, a) || !parse_ip(inner_ip, &other, b) || family != other ||
        !str_to_u64(outer_length, &n) || !str_to_u64(inner_length, &m) || n >= m ||
        n > (family == AF_INET6 ? 128 : 32))
        return false;
    for (unsigned bit = 0; bit < n; bit++) {
        if ((a[bit / 8] ^ b[bit / 8]) & (0x80 >> (bit % 8)))
            return false;
    }
    return true;
}

bool kinds_is_ipv6(struct str ip)
{
    return str_find(ip, ':') < ip.n;
}

bool check_legacy_ip(struct field_errors *e, const struct field_path *p, struct str ip,
                     const cJSON *accepted)
{
    return json_list_has(accepted, ip) || check_ip(e, p, ip);
}

bool check_legacy_cidr(struct field_errors *e, const struct field_path *p, struct str cidr,
                       const cJSON *accepted)
{
    return json_list_has(accepted, cidr) || check_cidr(e, p, cidr);
}

/* ---- what endpoints may have ---- */

struct address {
    bool ok, v4;
    unsigned char bytes[16]; /* the first 4 of IPv4, which may be mapped */
};

static struct address address_of(struct arena *a, struct str ip)
{
    struct address ret = {.ok = false};
    struct buf plain = BUF_INIT(64);
    struct str rest = ip;
    int family;

    if (has_leading_zero(ip)) { /* read as upstream: decimal */
        do {
            struct str part = str_cut(&rest, '.');

            while (part.n > 1 && part.p[0] == '0')
                part = str_from(part, 1);
            buf_add(&plain, part);
            buf_addc(&plain, rest.p ? "." : "");
        } while (rest.p);
        ip = arena_str(a, buf_str(&plain));
    }
    buf_fini(&plain);
    ret.ok = parse_ip(ip, &family, ret.bytes);
    ret.v4 = ret.ok && (family == AF_INET || is_mapped(ret.bytes));
    if (ret.ok && family != AF_INET && ret.v4)
        memmove(ret.bytes, ret.bytes + 12, 4);
    return ret;
}

static bool all_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static bool is_loopback(const struct address *ip)
{
    return ip->v4 ? ip->bytes[0] == 127 : all_zero(ip->bytes, 15) && ip->bytes[15] == 1;
}

static bool is_link_local(const struct address *ip)
{
    return ip->v4 ? ip->bytes[0] == 169 && ip->bytes[1] == 254
                  : ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

static bool is_link_multicast(const struct address *ip)
{
    return ip->v4 ? ip->bytes[0] == 224 && !ip->bytes[1] && !ip->bytes[2]
                  : ip->bytes[0] == 0xff && (ip->bytes[1] & 0x0f) == 0x02;
}

void check_endpoint_ip(struct field_errors *e, const struct field_path *p, struct str text)
{
    struct address ip = address_of(e->arena, text);

    if (!ip.ok) {
        field_invalid_str(e, p, text, "must be a valid IP address");
        return;
    }
    if (all_zero(ip.bytes, ip.v4 ? 4 : 16))
        field_invalid_str_printf(e, p, text, "may not be unspecified (%.*s)", STR_F(text));
    if (is_loopback(&ip))
        field_invalid_str(e, p, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    if (is_link_local(&ip))
        field_invalid_str(e, p, text,
                          "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    if (is_link_multicast(&ip))
        field_invalid_str(e, p, text,
                          "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

bool kinds_is_ip(struct arena *a, struct str text)
{
    return address_of(a, text).ok;
}
