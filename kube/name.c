/* SPDX-License-Identifier: Apache-2.0
 *
 * Syntax of names, label keys and label values (apimachinery pkg/util/validation and
 * pkg/api/validate/content): the same verdict and the same words as upstream, without a regular
 * expression engine. Must never accept what upstream refuses: names become paths, DNS names and
 * host object names. */
#include <sublet/selector.h>

#include <string.h>

/* What upstream prints for a regular expression that did not match. */
#define REGEX(words, examples, regex)                                                              \
    words " (e.g. " examples ", regex used for validation is '" regex "')"

#define RE_LABEL_1123 "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define RE_SUBDOMAIN  RE_LABEL_1123 "(\\." RE_LABEL_1123 ")*"
#define RE_LABEL_1035 "[a-z]([-a-z0-9]*[a-z0-9])?"
#define RE_KEY        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

#define MSG_LABEL_1123                                                                             \
    REGEX("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " \
          "and must start and end with an alphanumeric character",                                 \
          "'my-name',  or '123-abc'", RE_LABEL_1123)
#define MSG_SUBDOMAIN                                                                              \
    REGEX("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "    \
          "'-' or '.', and must start and end with an alphanumeric character",                     \
          "'example.com'", RE_SUBDOMAIN)
#define MSG_LABEL_1035                                                                             \
    REGEX("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "     \
          "with an alphabetic character, and end with an alphanumeric character",                  \
          "'my-name',  or 'abc-123'", RE_LABEL_1035)
#define MSG_KEY                                                                                    \
    REGEX("must consist of alphanumeric characters, '-', '_' or '.', and must start and end with " \
          "an alphanumeric character",                                                             \
          "'MyName',  or 'my.name',  or '123-abc'", RE_KEY)
#define MSG_VALUE                                                                                  \
    REGEX("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' " \
          "or '.', and must start and end with an alphanumeric character",                         \
          "'MyValue',  or 'my_value',  or '12345'", "(" RE_KEY ")?")

enum { LABEL_MAX = 63, SUBDOMAIN_MAX = 253 };

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool matches_label(struct str s)
{
    if (s.n == 0 || !is_lower_alnum(s.p[0]) || !is_lower_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    return true;
}

static bool matches_subdomain(struct str s)
{
    struct str rest = s;

    if (s.n == 0)
        return false;
    while (rest.p)
        if (!matches_label(str_cut(&rest, '.')))
            return false;
    return true;
}

static bool matches_key(struct str s)
{
    if (s.n == 0 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return true;
}

struct messages {
    const char **list;
    size_t n;
};

static void add(struct messages *m, bool wrong, const char *message)
{
    if (wrong)
        m->list[m->n++] = message;
}

static void check_label_1123(struct str s, struct messages *m)
{
    add(m, s.n > LABEL_MAX, "must be no more than 63 characters");
    if (matches_label(s))
        return;
    add(m, true, matches_subdomain(s) ? "must not contain dots" : MSG_LABEL_1123);
}

static void check_subdomain_1123(struct str s, struct messages *m)
{
    add(m, s.n > SUBDOMAIN_MAX, "must be no more than 253 characters");
    add(m, !matches_subdomain(s), MSG_SUBDOMAIN);
}

static void check_label_1035(struct str s, struct messages *m)
{
    add(m, s.n > LABEL_MAX, "must be no more than 63 characters");
    add(m, !matches_label(s) || (s.p[0] >= '0' && s.p[0] <= '9'), MSG_LABEL_1035);
}

static void check_path_segment(struct str s, struct messages *m)
{
    if (str_eqc(s, ".") || str_eqc(s, "..")) {
        add(m, true, s.n == 1 ? "may not be '.'" : "may not be '..'");
        return;
    }
    add(m, str_find(s, '/') < s.n, "may not contain '/'");
    add(m, str_find(s, '%') < s.n, "may not contain '%'");
}

static void check_key(struct str s, struct messages *m)
{
    size_t slash = str_find(s, '/');
    struct str name = s;

    if (slash != str_rfind(s, '/')) {
        add(m, true,
            "a valid label key " MSG_KEY
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        return;
    }
    if (slash < s.n) {
        struct str prefix = str_sub(s, 0, slash);

        add(m, prefix.n == 0, "prefix part must be non-empty");
        add(m, prefix.n > SUBDOMAIN_MAX, "prefix part must be no more than 253 bytes");
        add(m, prefix.n > 0 && !matches_subdomain(prefix), "prefix part " MSG_SUBDOMAIN);
        name = str_from(s, slash + 1);
    }
    add(m, name.n == 0, "name part must be non-empty");
    add(m, name.n > LABEL_MAX, "name part must be no more than 63 bytes");
    add(m, !matches_key(name), "name part " MSG_KEY);
}

static void check_label_value(struct str s, struct messages *m)
{
    add(m, s.n > LABEL_MAX, "must be no more than 63 bytes");
    add(m, s.n > 0 && !matches_key(s), MSG_VALUE);
}

static void (*const CHECKS[])(struct str s, struct messages *m) = {
    [NAME_DNS1123_LABEL] = check_label_1123,
    [NAME_DNS1123_SUBDOMAIN] = check_subdomain_1123,
    [NAME_DNS1035_LABEL] = check_label_1035,
    [NAME_PATH_SEGMENT] = check_path_segment,
    [NAME_QUALIFIED] = check_key,
    [NAME_LABEL_VALUE] = check_label_value,
};

size_t name_check(enum name_rule rule, struct str s, const char *ret[NAME_MESSAGES_MAX])
{
    struct messages m = {.list = ret};

    CHECKS[rule](s, &m);
    return m.n;
}

static const char *first(enum name_rule rule, struct str s)
{
    const char *messages[NAME_MESSAGES_MAX];

    return name_check(rule, s, messages) > 0 ? messages[0] : NULL;
}

const char *name_check_dns1123_label(struct str s)
{
    return first(NAME_DNS1123_LABEL, s);
}

const char *name_check_dns1123_subdomain(struct str s)
{
    return first(NAME_DNS1123_SUBDOMAIN, s);
}

const char *name_check_dns1035_label(struct str s)
{
    return first(NAME_DNS1035_LABEL, s);
}

const char *name_check_path_segment(struct str s)
{
    return first(NAME_PATH_SEGMENT, s);
}

bool name_has_domain(struct str s)
{
    return str_find(s, '/') < s.n;
}

const char *name_check_qualified(struct str s)
{
    return first(NAME_QUALIFIED, s);
}

const char *name_check_label_value(struct str s)
{
    return first(NAME_LABEL_VALUE, s);
}
