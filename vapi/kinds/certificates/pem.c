/* SPDX-License-Identifier: Apache-2.0 */
/* A list of certificates in PEM: its blocks and the frame of each certificate in DER. What is in
 * the frame is for who trusts it. Must never read past a length that was not checked. Source: Go's
 * encoding/pem Decode and crypto/x509 parseCertificate, for what is refused in which words. */
#include <string.h>

#include <sublet/encode.h>

#include "pem.h"

#define BEGIN "-----BEGIN "
#define END   "\n-----END "
#define DASH  "-----"

struct block {
    struct str type, der;
    bool headers;
};

/* ---- PEM ---- */

static size_t find(struct str text, struct str what)
{
    const char *at = text.n >= what.n ? memmem(text.p, text.n, what.p, what.n) : NULL;

    return at ? (size_t)(at - text.p) : text.n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* *rest without its first line, which is returned without blanks at its end. */
static struct str take_line(struct str *rest)
{
    size_t n = str_find(*rest, '\n');
    struct str line = str_sub(*rest, 0, n);

    *rest = str_from(*rest, n < rest->n ? n + 1 : n);
    while (line.n && is_blank(line.p[line.n - 1]))
        line.n--;
    return line;
}

static bool take_type(struct str *rest, struct str *ret)
{
    struct str line = take_line(rest);

    if (!str_has_suffix(line, STR(DASH)))
        return false;
    *ret = str_sub(line, 0, line.n - sizeof(DASH) + 1);
    return true;
}

/* Lines with a colon before the body. */
static bool take_headers(struct str *body)
{
    bool any = false;

    for (;;) {
        struct str rest = *body, line = take_line(&rest);

        if (str_find(line, ':') == line.n)
            return any;
        any = true;
        *body = rest;
    }
}

/* Whether after begins with the end of a block of that type, alone on its line. */
static bool ends_block(struct str after, struct str type)
{
    struct str line = take_line(&after);

    return str_has_prefix(line, type) && str_eqc(str_from(line, type.n), DASH);
}

/* The last BEGIN before an END; n when there is none at the start of a line. */
static size_t last_begin(struct str text)
{
    size_t at = text.n;

    for (size_t i = 0; i + sizeof(BEGIN) - 1 <= text.n; i++)
        if (str_has_prefix(str_from(text, i), STR(BEGIN)))
            at = i;
    return at < text.n && at > 0 && text.p[at - 1] != '\n' ? text.n : at;
}

/* One block that ends at `end`. */
static bool read_block(struct arena *a, struct str text, size_t end, struct block *ret)
{
    struct str before = str_sub(text, 0, end + 1); /* with the newline END begins with */
    struct str after = str_from(text, end + sizeof(END) - 1), body;
    size_t begin = last_begin(before), n = 0;
    char *packed;

    if (begin == before.n)
        return false;
    body = str_from(before, begin + sizeof(BEGIN) - 1);
    if (!take_type(&body, &ret->type))
        return false;
    ret->headers = take_headers(&body);
    if (!ends_block(after, ret->type))
        return false;
    packed = arena_alloc(a, body.n + 1);
    for (size_t i = 0; i < body.n; i++)
        if (!is_blank(body.p[i]))
            packed[n++] = body.p[i];
    return base64_decode(a, (struct str){packed, n}, &ret->der);
}

/* The next block that can be read; others are passed over. */
static bool next_block(struct arena *a, struct str *rest, struct block *ret)
{
    for (;;) {
        size_t end = find(*rest, STR(END));
        bool good;

        if (end == rest->n)
            return false;
        good = read_block(a, *rest, end, ret);
        *rest = str_from(*rest, end + sizeof(END) - 1);
        if (good)
            return true;
    }
}

/* ---- DER ---- */

#define SEQUENCE   0x30
#define INTEGER    0x02
#define BIT_STRING 0x03
#define VERSION    0xa0

/* The element of that tag *in begins with: its contents. */
static bool take(struct str *in, unsigned char tag, struct str *ret)
{
    const unsigned char *p = (const unsigned char *)in->p;
    size_t n, at = 2;

    if (in->n < 2 || p[0] != tag)
        return false;
    n = p[1];
    if (n & 0x80) {
        size_t bytes = n & 0x7f;

        if (!bytes || bytes > 4 || in->n < 2 + bytes || !p[2])
            return false;
        for (n = 0; at < 2 + bytes; at++)
            n = n << 8 | p[at];
        if (n < 0x80)
            return false;
    }
    if (n > in->n - at)
        return false;
    *ret = str_sub(str_from(*in, at), 0, n);
    *in = str_from(*in, at + n);
    return true;
}

/* What follows the algorithm in a certificate to be signed. */
static const char *body_problem(struct str tbs)
{
    static const char *const parts[] = {"x509: malformed issuer", "x509: malformed validity",
                                        "x509: malformed issuer", "x509: malformed spki"};
    struct str part;

    for (size_t i = 0; i < COUNT(parts); i++)
        if (!take(&tbs, SEQUENCE, &part))
            return parts[i];
    return NULL;
}

static const char *der_problem(struct str *der)
{
    struct str certificate, tbs, part, inner, outer;
    const char *why;

    if (!take(der, SEQUENCE, &certificate))
        return "x509: malformed certificate";
    if (!take(&certificate, SEQUENCE, &tbs))
        return "x509: malformed tbs certificate";
    if (tbs.n && (unsigned char)tbs.p[0] == VERSION && !take(&tbs, VERSION, &part))
        return "x509: malformed version";
    if (!take(&tbs, INTEGER, &part) || !part.n)
        return "x509: malformed serial number";
    if ((unsigned char)part.p[0] & 0x80)
        return "x509: negative serial number";
    if (!take(&tbs, SEQUENCE, &inner))
        return "x509: malformed signature algorithm identifier";
    if (!take(&certificate, SEQUENCE, &outer))
        return "x509: malformed algorithm identifier";
    if (!str_eq(inner, outer))
        return "x509: inner and outer signature algorithm identifiers don't match";
    why = body_problem(tbs);
    if (why)
        return why;
    return take(&certificate, BIT_STRING, &part) ? NULL : "x509: malformed signature";
}

const char *kinds_certificate_problem(struct arena *a, struct str text)
{
    struct block b;
    size_t blocks = 0;

    for (; next_block(a, &text, &b); blocks++) {
        const char *why = NULL;

        if (!str_eqc(b.type, "CERTIFICATE"))
            return arena_printf(a, "only CERTIFICATE PEM blocks are allowed, found %.*s",
                                STR_F(go_quote(a, b.type)))
                .p;
        if (b.headers)
            return "no PEM block headers are permitted";
        if (!b.der.n)
            return "found CERTIFICATE PEM block containing 0 certificates";
        while (b.der.n && !why)
            why = der_problem(&b.der);
        if (why)
            return why;
    }
    return blocks ? NULL : "must contain at least one CERTIFICATE PEM block";
}
