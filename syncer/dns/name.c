/* SPDX-License-Identifier: Apache-2.0 */
/* Domain names: parsed from strings and from the wire, compared, split into labels, read as
 * addresses. Must never read beyond the bytes of a name. */
#include "name.h"

#include <string.h>

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
}

bool dns_name_of(struct str wire, struct dns_name *ret)
{
    const uint8_t *p = (const uint8_t *)wire.p;
    size_t at = 0;

    if (!wire.n || wire.n > DNS_NAME_MAX)
        return false;
    while (at < wire.n && p[at]) {
        if (p[at] > DNS_LABEL_MAX)
            return false;
        at += p[at] + 1u;
    }
    if (at + 1 != wire.n)
        return false;
    *ret = (struct dns_name){.n = (uint8_t)wire.n};
    for (size_t i = 0; i < wire.n; i++) /* length bytes are below 64, so lower() keeps them */
        ret->b[i] = lower(p[i]);
    return true;
}

static bool add_label(struct dns_name *name, struct str label)
{
    if (!label.n || label.n > DNS_LABEL_MAX || name->n + label.n + 2 > DNS_NAME_MAX)
        return false;
    name->b[name->n++] = (uint8_t)label.n;
    for (size_t i = 0; i < label.n; i++)
        name->b[name->n++] = lower((uint8_t)label.p[i]);
    return true;
}

bool dns_name_join(struct str prefix_text, const struct dns_name *zone, struct dns_name *ret)
{
    struct str rest = prefix_text;
    struct dns_name name = {0};

    while (rest.n)
        if (!add_label(&name, str_cut(&rest, '.')))
            return false;
    if (name.n + zone->n > DNS_NAME_MAX)
        return false;
    memcpy(name.b + name.n, zone->b, zone->n);
    name.n = (uint8_t)(name.n + zone->n);
    *ret = name;
    return true;
}

bool dns_name_parse(struct str text, struct dns_name *ret)
{
    static const struct dns_name root = {1, {0}};
    struct str all = text;

    if (all.n && all.p[all.n - 1] == '.')
        all.n--;
    if (!text.n || (all.n && all.p[all.n - 1] == '.'))
        return false;
    return dns_name_join(all, &root, ret);
}

struct str dns_name_bytes(const struct dns_name *name)
{
    return (struct str){(const char *)name->b, name->n};
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
    return str_eq(dns_name_bytes(a), dns_name_bytes(b));
}

bool dns_name_is_under(const struct dns_name *name, const struct dns_name *zone)
{
    size_t at = 0;

    while (name->n - at > zone->n && name->b[at])
        at += name->b[at] + 1u;
    return name->n - at == zone->n && !memcmp(name->b + at, zone->b, zone->n);
}

size_t dns_name_labels(const struct dns_name *name, struct str ret[DNS_LABELS_MAX])
{
    size_t n = 0;

    for (size_t at = 0; name->b[at]; at += name->b[at] + 1u)
        ret[n++] = (struct str){(const char *)name->b + at + 1, name->b[at]};
    return n;
}

/* --- reverse names --- */

static bool read_v4(const struct str *labels, struct dns_ip *ret)
{
    char text[16];
    size_t n = 0;

    for (size_t i = 4; i-- > 0;) {
        if (labels[i].n > 3 || (labels[i].n > 1 && labels[i].p[0] == '0'))
            return false;
        memcpy(text + n, labels[i].p, labels[i].n);
        n += labels[i].n;
        text[n++] = '.';
    }
    return dns_ip_parse((struct str){text, n - 1}, ret);
}

static bool read_v6(const struct str *labels, struct dns_ip *ret)
{
    static const char hex[] = "0123456789abcdef";

    *ret = (struct dns_ip){{0}};
    for (size_t i = 0; i < 32; i++) {
        const char *digit = labels[i].n == 1 ? memchr(hex, labels[i].p[0], 16) : NULL;

        if (!digit)
            return false;
        ret->b[15 - i / 2] |= (uint8_t)((digit - hex) << (i % 2 * 4));
    }
    return true;
}

bool dns_name_address(const struct dns_name *name, struct dns_ip *ret)
{
    struct str labels[DNS_LABELS_MAX];
    size_t n = dns_name_labels(name, labels);

    if (n < 2 || !str_eqc(labels[n - 1], "arpa"))
        return false;
    if (n == 6 && str_eqc(labels[4], "in-addr"))
        return read_v4(labels, ret);
    return n == 34 && str_eqc(labels[32], "ip6") && read_v6(labels, ret);
}

struct str dns_name_text(struct arena *a, const struct dns_name *name)
{
    struct str labels[DNS_LABELS_MAX];
    size_t n = dns_name_labels(name, labels), at = 0;
    char text[DNS_NAME_MAX + 1];

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < labels[i].n; k++) {
            char c = labels[i].p[k];
            bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';

            text[at++] = plain ? c : '?';
        }
        text[at++] = '.';
    }
    return arena_str(a, at ? (struct str){text, at} : STR("."));
}
