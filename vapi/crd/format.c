/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that upstream checks for custom resources (apiextensions-apiserver
 * pkg/apiserver/validation/formats.go, kube-openapi pkg/validation/strfmt); any other `format` is
 * not enforced. Must take time linear in the string. */
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

/* With or without dashes. version: its version digit, 0 for any. */
static bool holds_uuid_of(struct str s, char version)
{
    char digits[32];
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '-' && (n == 8 || n == 12 || n == 16 || n == 20) && s.p[i - 1] != '-')
            continue;
        if (n == 32 || !isxdigit((unsigned char)s.p[i]))
            return false;
        digits[n++] = s.p[i];
    }
    if (n != 32 || (version && digits[12] != version))
        return false;
    return !version || version == '3' || strchr("89abAB", digits[16]);
}

static bool holds_uuid(struct str s)
{
    return holds_uuid_of(s, 0);
}

static bool holds_uuid3(struct str s)
{
    return holds_uuid_of(s, '3');
}

static bool holds_uuid4(struct str s)
{
    return holds_uuid_of(s, '4');
}

static bool holds_uuid5(struct str s)
{
    return holds_uuid_of(s, '5');
}

/* As Go's url.ParseRequestURI: absolute, or a path from the root. */
static bool holds_uri(struct str s)
{
    struct str rest = s, scheme = str_cut(&rest, ':');

    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
        if (s.p[i] == '%' && (i + 2 >= s.n || !isxdigit((unsigned char)s.p[i + 1]) ||
                              !isxdigit((unsigned char)s.p[i + 2])))
            return false;
    }
    if (s.n && s.p[0] == '/')
        return true;
    if (!rest.p || !scheme.n || !isalpha((unsigned char)scheme.p[0]))
        return false;
    for (size_t i = 0; i < scheme.n; i++) {
        if (!isalnum((unsigned char)scheme.p[i]) && !strchr("+-.", scheme.p[i]))
            return false;
    }
    return true;
}

/* One address, with or without a display name. */
static bool holds_email(struct str s)
{
    size_t open = str_rfind(s, '<');

    s = str_trim(s);
    if (s.n && s.p[s.n - 1] == '>' && open < s.n)
        s = str_sub(s, open + 1, s.n - open - 2);
    size_t at = str_rfind(s, '@');
    return at > 0 && s.n && at < s.n - 1 && str_find(s, ' ') == s.n && s.p[0] != '.' &&
           s.p[at - 1] != '.' && s.p[at + 1] != '.' && s.p[s.n - 1] != '.';
}

/* 6, 8 or 20 octets, in pairs (: or -) or in fours (.). */
static bool holds_mac(struct str s)
{
    size_t group = s.n > 4 && s.p[4] == '.' ? 4 : 2, digits = 0;
    char separator = s.n > group ? s.p[group] : 0;

    if (!separator || !strchr(group == 4 ? "." : ":-", separator) || s.n % (group + 1) != group)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (i % (group + 1) == group ? s.p[i] != separator : !isxdigit((unsigned char)s.p[i]))
            return false;
        digits += i % (group + 1) != group;
    }
    return digits == 12 || digits == 16 || digits == 40;
}

static bool all_of(struct str s, int (*is)(int))
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

static bool holds_object_id(struct str s)
{
    return s.n == 24 && all_of(s, isxdigit);
}

/* The digits of s without dashes and blanks, at most 32; the last may be an X. */
static size_t digits_of(struct str s, char ret[32])
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '-' || s.p[i] == ' ')
            continue;
        if (n == 32 || !(isdigit((unsigned char)s.p[i]) || s.p[i] == 'X'))
            return 0;
        ret[n++] = s.p[i];
    }
    return n;
}

static bool holds_isbn10(struct str s)
{
    char d[32];
    int sum = 0;

    if (digits_of(s, d) != 10)
        return false;
    for (int i = 0; i < 10; i++) {
        if (d[i] == 'X' && i < 9)
            return false;
        sum += (10 - i) * (d[i] == 'X' ? 10 : d[i] - '0');
    }
    return sum % 11 == 0;
}

static bool holds_isbn13(struct str s)
{
    char d[32];
    int sum = 0;

    if (digits_of(s, d) != 13)
        return false;
    for (int i = 0; i < 13; i++) {
        if (d[i] == 'X')
            return false;
        sum += (i % 2 ? 3 : 1) * (d[i] - '0');
    }
    return sum % 10 == 0;
}

static bool holds_isbn(struct str s)
{
    return holds_isbn10(s) || holds_isbn13(s);
}

/* Luhn's sum over the digits. */
static bool holds_credit_card(struct str s)
{
    char d[20];
    size_t n = 0;
    int sum = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]))
            continue;
        if (n == sizeof(d))
            return false;
        d[n++] = s.p[i];
    }
    for (size_t i = 0; i < n; i++) {
        int digit = (d[n - 1 - i] - '0') * (i % 2 ? 2 : 1);

        sum += digit > 9 ? digit - 9 : digit;
    }
    return n >= 13 && n <= 16 && strchr("123456", d[0]) && sum % 10 == 0;
}

static bool holds_ssn(struct str s)
{
    char d[32];

    return s.n >= 9 && s.n <= 11 && digits_of(s, d) == 9 && isdigit((unsigned char)s.p[0]) &&
           isdigit((unsigned char)s.p[s.n - 1]) && !memchr(d, 'X', 9) &&
           (s.n == 9 || s.p[3] == '-' || s.p[3] == ' ' || s.p[5] == '-' || s.p[5] == ' ');
}

static bool holds_hex_color(struct str s)
{
    if (s.n && s.p[0] == '#')
        s = str_from(s, 1);
    return (s.n == 3 || s.n == 6) && all_of(s, isxdigit);
}

static bool holds_rgb_color(struct str s)
{
    uint64_t part;

    if (!str_has_prefix(s, STR("rgb(")) || !str_has_suffix(s, STR(")")))
        return false;
    struct str rest = str_sub(s, 4, s.n - 5);
    for (size_t i = 0; i < 3; i++) {
        if (!rest.p || !str_to_u64(str_trim(str_cut(&rest, ',')), &part) || part > 255)
            return false;
    }
    return !rest.p;
}

static bool holds_short_name(struct str s)
{
    return !name_check_dns1123_label(s);
}

static bool holds_long_name(struct str s)
{
    return !name_check_dns1123_subdomain(s);
}

/* RFC 1034, like upstream's pattern: labels with a top-level domain of two letters or more, or a
 * single label. */
static bool holds_hostname(struct str s)
{
    struct str rest = s;
    size_t labels = 0;

    if (!s.n || s.n > 255)
        return false;
    while (rest.p) {
        struct str label = str_cut(&rest, '.');

        if (!label.n || label.n > 63 || label.p[0] == '-' || label.p[label.n - 1] == '-')
            return false;
        for (size_t i = 0; i < label.n; i++) {
            if (!isalnum((unsigned char)label.p[i]) && label.p[i] != '-' &&
                !((unsigned char)label.p[i] & 0x80))
                return false;
        }
        labels++;
        if (!rest.p && labels > 1 && (label.n < 2 || !all_of(label, isalpha)))
            return false;
    }
    return true;
}

/* Go's durations, and Scala's: "3 days", "1d". One valid part is enough. */
static bool holds_duration(struct str s)
{
    static const char *const units[] = {"ns", "us", "ms", "s",  "m",      "h",
                                        "d",  "w",  "wk", "hr", "\u00b5s"};
    static const char *const prefixes[] = {"nano", "micro", "milli", "sec",
                                           "min",  "hour",  "day",   "week"};
    int64_t ignored;

    if (duration_parse(s, &ignored))
        return true;
    for (size_t i = 0; i < s.n; i++) {
        size_t n = 0;
        char unit[8] = "";

        if (!isdigit((unsigned char)s.p[i]))
            continue;
        while (i + 1 < s.n && (isdigit((unsigned char)s.p[i + 1]) || s.p[i + 1] == ' '))
            i++;
        for (; i + 1 < s.n && (isalpha((unsigned char)s.p[i + 1]) || s.p[i + 1] & 0x80); i++) {
            if (n < sizeof(unit) - 1)
                unit[n++] = (char)tolower((unsigned char)s.p[i + 1]);
        }
        for (size_t k = 0; k < COUNT(units); k++) {
            if (!strcmp(unit, units[k]))
                return true;
        }
        for (size_t k = 0; k < COUNT(prefixes); k++) {
            if (!strncmp(unit, prefixes[k], strlen(prefixes[k])))
                return true;
        }
    }
    return false;
}

static bool holds_date_time(struct str s)
{
    int64_t ignored;

    return time_parse(s, &ignored);
}

static bool holds_ipv4(struct str s)
{
    char text[16];
    struct str rest = s;
    size_t n = 0;

    /* Numbers with leading zeroes are decimal, as in upstream's own parser. */
    while (rest.p && n < sizeof(text)) {
        struct str part = str_cut(&rest, '.');
        uint64_t value;

        if (part.n > 3 || !str_to_u64(part, &value) || value > 255)
            return false;
        n++;
    }
    return n == 4;
}

static bool holds_ipv6(struct str s)
{
    return holds_ip(s, AF_INET6);
}

static bool holds_byte(struct str s)
{
    struct arena *a = arena_new(0);
    struct str bytes;
    bool good = base64_decode(a, s, &bytes);

    arena_free(a);
    return good;
}

static bool holds_anything(struct str s)
{
    (void)s;
    return true;
}

/* Format names as upstream compares them: without dashes. */
static const struct {
    const char *name;
    bool (*holds)(struct str s);
} TEXT_FORMATS[] = {
    {"bsonobjectid", holds_object_id},
    {"byte", holds_byte},
    {"cidr", holds_cidr},
    {"creditcard", holds_credit_card},
    {"date", holds_date},
    {"datetime", holds_date_time},
    {"duration", holds_duration},
    {"email", holds_email},
    {"hexcolor", holds_hex_color},
    {"hostname", holds_hostname},
    {"ipv4", holds_ipv4},
    {"ipv6", holds_ipv6},
    {"isbn", holds_isbn},
    {"isbn10", holds_isbn10},
    {"isbn13", holds_isbn13},
    {"k8slongname", holds_long_name},
    {"k8sshortname", holds_short_name},
    {"mac", holds_mac},
    {"password", holds_anything},
    {"rgbcolor", holds_rgb_color},
    {"ssn", holds_ssn},
    {"uri", holds_uri},
    {"uuid", holds_uuid},
    {"uuid3", holds_uuid3},
    {"uuid4", holds_uuid4},
    {"uuid5", holds_uuid5},
};

static uint8_t find_text(struct str name)
{
    char plain[16];
    size_t n = 0;

    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '-')
            continue;
        if (n == sizeof(plain))
            return FORMAT_NONE;
        plain[n++] = name.p[i];
    }
    for (uint8_t i = 0; i < COUNT(TEXT_FORMATS); i++) {
        if (str_eqc((struct str){plain, n}, TEXT_FORMATS[i].name))
            return (uint8_t)(FORMAT_FIRST_TEXT + i);
    }
    return FORMAT_NONE;
}

uint8_t crd_format_find(struct str type, struct str name)
{
    if (!name.n)
        return FORMAT_NONE;
    if (!type.n || str_eqc(type, "string"))
        return find_text(name);
    if (str_eqc(type, "integer"))
        return str_eqc(name, "int32")   ? FORMAT_INT32
               : str_eqc(name, "int64") ? FORMAT_INT64
                                        : FORMAT_NONE;
    if (str_eqc(type, "number"))
        return str_eqc(name, "float")    ? FORMAT_FLOAT
               : str_eqc(name, "double") ? FORMAT_DOUBLE
                                         : FORMAT_NONE;
    return FORMAT_NONE;
}

bool crd_format_holds(uint8_t format, struct str s)
{
    return format < FORMAT_FIRST_TEXT || TEXT_FORMATS[format - FORMAT_FIRST_TEXT].holds(s);
}
