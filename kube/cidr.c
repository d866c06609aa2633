/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses. Must never take an unreadable range for an empty or a full one. */
#include <sublet/cidr.h>

#include <arpa/inet.h>
#include <string.h>

static const unsigned char MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool parse_address(struct str text, struct cidr *ret)
{
    char plain[INET6_ADDRSTRLEN];

    if (!text.n || text.n >= sizeof(plain) || memchr(text.p, 0, text.n))
        return false;
    memcpy(plain, text.p, text.n);
    plain[text.n] = 0;
    ret->v6 = strchr(plain, ':') != NULL;
    return inet_pton(ret->v6 ? AF_INET6 : AF_INET, plain, ret->bytes) == 1;
}

bool cidr_parse(struct str text, struct cidr *ret)
{
    struct str length = text, address = str_cut(&length, '/');
    struct cidr c = {0};
    uint64_t bits;

    if (!parse_address(address, &c))
        return false;
    bits = c.v6 ? 128 : 32;
    if (length.p && (!str_to_u64(length, &bits) || bits > (c.v6 ? 128 : 32)))
        return false;
    c.bits = (unsigned)bits;
    if (c.v6 && c.bits >= 96 && !memcmp(c.bytes, MAPPED, sizeof(MAPPED))) {
        memmove(c.bytes, c.bytes + sizeof(MAPPED), 4);
        c.v6 = false;
        c.bits -= 96;
    }
    *ret = c;
    return true;
}

bool cidr_within(const struct cidr *inner, const struct cidr *outer)
{
    if (inner->v6 != outer->v6 || inner->bits < outer->bits)
        return false;
    for (unsigned bit = 0; bit < outer->bits; bit++)
        if ((inner->bytes[bit / 8] ^ outer->bytes[bit / 8]) & (0x80 >> (bit % 8)))
            return false;
    return true;
}

bool cidr_overlap(const struct cidr *one, const struct cidr *other)
{
    return cidr_within(one, other) || cidr_within(other, one);
}
