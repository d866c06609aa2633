/* SPDX-License-Identifier: Apache-2.0 */
/* Named formats of strings: format.dns1123Label().validate(s) is none, or why s is not of it.
 * Source: k8s.io/apiserver pkg/cel/library/format.go. */
#include "impl.h"

#include <ctype.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/selector.h>

struct format {
    const char *name;
    bool prefix;                           /* a name that is completed: a dash may end it */
    const char *(*check)(struct str text); /* NULL: it is of the format */
};

static const char *check_byte(struct str s)
{
    struct arena *scratch = arena_new(0);
    struct str bytes;
    bool good = base64_decode(scratch, s, &bytes);

    arena_free(scratch);
    return good ? NULL : "invalid base64";
}

static const char *check_uuid(struct str s)
{
    static const unsigned groups[] = {8, 4, 4, 4, 12};
    size_t at = 0;
    bool good = true;

    for (size_t g = 0; g < COUNT(groups); g++) {
        if (g && at < s.n && s.p[at] == '-')
            at++;
        for (unsigned i = 0; i < groups[g] && good; i++, at++)
            good = at < s.n && isxdigit((unsigned char)s.p[at]);
    }
    return good && at == s.n ? NULL : "does not match the UUID format";
}

static const char *check_date(struct str s)
{
    char text[32];
    int64_t ignored;

    if (s.n != 10)
        return "invalid date";
    memcpy(text, s.p, 10);
    memcpy(text + 10, "T00:00:00Z", 11);
    return time_parse(str_c(text), &ignored) ? NULL : "invalid date";
}

static const char *check_datetime(struct str s)
{
    int64_t ignored;

    return time_parse(s, &ignored) ? NULL : "invalid datetime";
}

static const struct format FORMATS[] = {
    {"dns1123Label", false, name_check_dns1123_label},
    {"dns1123Subdomain", false, name_check_dns1123_subdomain},
    {"dns1035Label", false, name_check_dns1035_label},
    {"qualifiedName", false, name_check_qualified},
    {"dns1123LabelPrefix", true, name_check_dns1123_label},
    {"dns1123SubdomainPrefix", true, name_check_dns1123_subdomain},
    {"dns1035LabelPrefix", true, name_check_dns1035_label},
    {"labelValue", false, name_check_label_value},
    {"uri", false, NULL},
    {"uuid", false, check_uuid},
    {"byte", false, check_byte},
    {"date", false, check_date},
    {"datetime", false, check_datetime},
};

static struct cel_value format_of(struct str name)
{
    for (size_t i = 0; i < COUNT(FORMATS); i++) {
        if (str_eqc(name, FORMATS[i].name))
            return cel_boxed(CEL_FORMAT, &FORMATS[i]);
    }
    return cel_null();
}

static struct cel_value constant(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)a;
    (void)n;
    return format_of(str_from(r->node->name, sizeof("format.") - 1));
}

static struct cel_value named(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value v = format_of(a[0].s);

    (void)n;
    return v.kind == CEL_FORMAT ? cel_some(r, v) : cel_none();
}

static struct str check_format(struct cel_run *r, const struct format *f, struct str s)
{
    if (!f->check)
        return cel_url_problem(r->arena, s);
    if (f->prefix && s.n > 1 && s.p[s.n - 1] == '-') {
        char *copy = arena_cstr(r->arena, s);

        /* Upstream's maskTrailingDash() replaces what is before the dash as well. */
        copy[s.n - 2] = 'a';
        s = (struct str){copy, s.n - 1};
    }
    return str_c(f->check(s));
}

static struct cel_value validate(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value *item = cel_room(r, 4 * a[1].s.n + sizeof(*item));
    struct str problem;

    (void)n;
    cel_charge_text(r, a[1].s.n);
    if (!item || r->over)
        return cel_no_overload(r);
    problem = check_format(r, a[0].p, a[1].s);
    if (!problem.n)
        return cel_none();
    *item = cel_string(problem);
    return cel_some(r, cel_new_list(r, item, 1));
}

static const struct cel_function ROWS[] = {
    {"format.named", false, "s", "OF", named},
    {"format.dns1123Label", false, "", "F", constant},
    {"format.dns1123Subdomain", false, "", "F", constant},
    {"format.dns1035Label", false, "", "F", constant},
    {"format.qualifiedName", false, "", "F", constant},
    {"format.dns1123LabelPrefix", false, "", "F", constant},
    {"format.dns1123SubdomainPrefix", false, "", "F", constant},
    {"format.dns1035LabelPrefix", false, "", "F", constant},
    {"format.labelValue", false, "", "F", constant},
    {"format.uri", false, "", "F", constant},
    {"format.uuid", false, "", "F", constant},
    {"format.byte", false, "", "F", constant},
    {"format.date", false, "", "F", constant},
    {"format.datetime", false, "", "F", constant},
    {"validate", true, "Fs", "OLs", validate},
};
const struct cel_functions CEL_FORMATS = {ROWS, COUNT(ROWS)};
