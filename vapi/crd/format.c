/* SPDX-License-Identifier: Apache-2.0 */
/* The string formats that upstream checks for custom resources; every other `format` is a remark.
 */
#include "version.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/selector.h>

static bool holds_ip(struct str s, int family)
{
    char text[64];
    unsigned char address[16];

    if (s.n >= sizeof(text))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return strlen(text) == s.n && inet_pton(family, text, address) == 1;
}

static bool holds_cidr(struct str s)
{
    struct str rest = s, address = str_cut(&rest, '/');
    uint64_t bits;

    if (!rest.p || !str_to_u64(rest, &bits) || (rest.n > 1 && rest.p[0] == '0'))
        return false;
    return (holds_ip(address, AF_INET) && bits <= 32) ||
           (holds_ip(address, AF_INET6) && bits <= 128);
}

static bool holds_date(struct str s)
{
    char text[32];
    int64_t us;

    if (s.n != 10)
        return false;
    memcpy(text, s.p, 10);
    memcpy(text + 10, "T00:00:00Z", 10);
    return time_parse((struct str){text, 20}, &us);
}

static bool holds_uuid(struct str s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s.p[i] != '-' : !isxdigit((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

static bool holds_uri(struct str s)
{
    struct str rest = s, scheme = str_cut(&rest, ':');

    if (!rest.p || !scheme.n || !isalpha((unsigned char)scheme.p[0]))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == '<' || s.p[i] == '>' || s.p[i] == '"')
            return false;
    }
    return true;
}

static bool holds_email(struct str s)
{
    size_t at = str_rfind(s, '@');

    return at > 0 && at < s.n - 1 && at != s.n && str_find(s, ' ') == s.n;
}

static bool holds_mac(struct str s)
{
    if (s.n != 17)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (i % 3 == 2 ? s.p[i] != ':' && s.p[i] != '-' : !isxdigit((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

static bool holds_byte(struct str s)
{
    struct arena *a = arena_new(0);
    struct str bytes;
    bool good = base64_decode(a, s, &bytes);

    arena_free(a);
    return good;
}

bool format_holds(enum rule_format format, struct str s)
{
    int64_t ignored;

    switch (format) {
    case FORMAT_BYTE:
        return holds_byte(s);
    case FORMAT_DATE:
        return holds_date(s);
    case FORMAT_DATE_TIME:
        return time_parse(s, &ignored);
    case FORMAT_DURATION:
        return duration_parse(s, &ignored);
    case FORMAT_IPV4:
        return holds_ip(s, AF_INET);
    case FORMAT_IPV6:
        return holds_ip(s, AF_INET6);
    case FORMAT_CIDR:
        return holds_cidr(s);
    case FORMAT_URI:
        return holds_uri(s);
    case FORMAT_EMAIL:
        return holds_email(s);
    case FORMAT_UUID:
        return holds_uuid(s);
    case FORMAT_HOSTNAME:
        return !name_check_dns1123_subdomain(s);
    case FORMAT_MAC:
        return holds_mac(s);
    default:
        return true;
    }
}
