/* SPDX-License-Identifier: Apache-2.0 */
/* Image references as upstream's parser (distribution/reference) reads them. It only decides which
 * pull policy an image gets by default; it must never refuse an object. */
#include "parts.h"

#include <ctype.h>

static bool all_of(struct str s, int (*is)(int))
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is((unsigned char)s.p[i]))
            return false;
    }
    return s.n > 0;
}

/* Length of a separator at the start of s: `.`, `_`, `__` or dashes. */
static size_t separator(struct str s)
{
    size_t n = 0;

    if (s.p[0] == '.')
        return 1;
    if (s.p[0] == '_')
        return s.n > 1 && s.p[1] == '_' ? 2 : 1;
    while (n < s.n && s.p[n] == '-')
        n++;
    return n;
}

static bool is_component(struct str s)
{
    while (s.n) {
        size_t n = 0;

        while (n < s.n && (islower((unsigned char)s.p[n]) || isdigit((unsigned char)s.p[n])))
            n++;
        if (!n)
            return false;
        s = str_from(s, n);
        if (!s.n)
            return true;
        s = str_from(s, separator(s));
    }
    return false;
}

static bool is_path(struct str path)
{
    do {
        if (!is_component(str_cut(&path, '/')))
            return false;
    } while (path.p);
    return true;
}

static bool is_domain(struct str domain)
{
    size_t colon = str_rfind(domain, ':');
    struct str host = str_sub(domain, 0, colon);

    if (domain.n && domain.p[0] == '[') {
        size_t end = str_find(domain, ']');

        return end < domain.n &&
               (end + 1 == domain.n ||
                (domain.p[end + 1] == ':' && all_of(str_from(domain, end + 2), isdigit)));
    }
    if (colon < domain.n && !all_of(str_from(domain, colon + 1), isdigit))
        return false;
    do {
        struct str label = str_cut(&host, '.');

        if (!kinds_is_made_of(label, "-") || label.p[0] == '-' || label.p[label.n - 1] == '-')
            return false;
    } while (host.p);
    return true;
}

static bool is_tag(struct str tag)
{
    return tag.n <= 128 && kinds_is_made_of(tag, "_.-") && tag.p[0] != '.' && tag.p[0] != '-';
}

static bool is_digest(struct str digest)
{
    static const struct {
        const char *algorithm;
        size_t hex;
    } known[] = {{"sha256", 64}, {"sha384", 96}, {"sha512", 128}};
    struct str algorithm = str_cut(&digest, ':');

    for (size_t i = 0; i < COUNT(known); i++) {
        if (!str_eqc(algorithm, known[i].algorithm))
            continue;
        for (size_t j = 0; j < digest.n; j++) {
            if (!isdigit((unsigned char)digest.p[j]) && (digest.p[j] < 'a' || digest.p[j] > 'f'))
                return false;
        }
        return digest.n == known[i].hex;
    }
    return false;
}

/* The part before the first slash is a registry when it looks like a host. */
static bool names_domain(struct str first)
{
    if (str_find(first, '.') < first.n || str_find(first, ':') < first.n ||
        str_eqc(first, "localhost"))
        return true;
    for (size_t i = 0; i < first.n; i++) {
        if (isupper((unsigned char)first.p[i]))
            return true;
    }
    return false;
}

bool kinds_image_reference_ok(struct str image)
{
    struct str rest = image, name = str_cut(&rest, '@');
    size_t slash = str_find(name, '/'), last, colon;

    if (rest.p && !is_digest(rest))
        return false;
    if (slash < name.n && names_domain(str_sub(name, 0, slash))) {
        if (!is_domain(str_sub(name, 0, slash)))
            return false;
        name = str_from(name, slash + 1);
    }
    last = str_rfind(name, '/');
    colon = str_rfind(name, ':');
    if (colon < name.n && (last == name.n || colon > last)) {
        if (!is_tag(str_from(name, colon + 1)))
            return false;
        name = str_sub(name, 0, colon);
    }
    if (name.n == 64 && name.n == image.n && all_of(name, isxdigit))
        return false; /* an image id, not a name */
    return name.n <= 255 && is_path(name);
}
