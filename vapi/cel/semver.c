/* SPDX-License-Identifier: Apache-2.0 */
/* Semantic versions. Source: k8s.io/apiserver pkg/cel/library/semverlib.go, and its parser
 * blang/semver v4, in whose words the errors are. */
#include "impl.h"

#include <ctype.h>
#include <string.h>

#include <sublet/encode.h>

struct semver {
    uint64_t number[3]; /* major, minor, patch */
    struct str pre;     /* behind '-', parts between dots; p == NULL: none. Builds do not order. */
};

/* ---- reading ---- */

static bool is_numeric(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

static struct str quoting(struct cel_run *r, const char *words, struct str s)
{
    return arena_printf(r->arena, "%s %.*s", words, STR_F(go_quote(r->arena, s)));
}

/* Each returns the problem, or an empty string. */
static struct str read_number(struct cel_run *r, struct str s, uint64_t *ret)
{
    if (str_to_u64(s, ret))
        return STR_NULL;
    return arena_printf(r->arena, "strconv.ParseUint: parsing %.*s: %s",
                        STR_F(go_quote(r->arena, s)),
                        s.n ? "value out of range" : "invalid syntax");
}

static struct str read_element(struct cel_run *r, struct str s, unsigned which, uint64_t *ret)
{
    static const char *const names[] = {"major", "minor", "patch"}, *const titles[] = {
                                                                        "Major", "Minor", "Patch"};

    if (!is_numeric(s))
        return arena_printf(r->arena, "Invalid character(s) found in %s number %.*s", names[which],
                            STR_F(go_quote(r->arena, s)));
    if (s.n > 1 && s.p[0] == '0')
        return arena_printf(r->arena, "%s number must not contain leading zeroes %.*s",
                            titles[which], STR_F(go_quote(r->arena, s)));
    return read_number(r, s, ret);
}

static struct str check_pre(struct cel_run *r, struct str rest)
{
    uint64_t ignored;

    while (rest.p) {
        struct str part = str_cut(&rest, '.'), problem = STR_NULL;

        if (!part.n)
            return STR("Prerelease is empty");
        if (!is_numeric(part) && !is_word(part))
            return quoting(r, "Invalid character(s) found in prerelease", part);
        if (is_numeric(part) && part.n > 1 && part.p[0] == '0')
            return quoting(r, "Numeric PreRelease version must not contain leading zeroes", part);
        if (is_numeric(part))
            problem = read_number(r, part, &ignored);
        if (problem.n)
            return problem;
    }
    return STR_NULL;
}

static struct str check_build(struct cel_run *r, struct str rest)
{
    while (rest.p) {
        struct str part = str_cut(&rest, '.');

        if (!part.n)
            return STR("Build meta data is empty");
        if (!is_word(part))
            return quoting(r, "Invalid character(s) found in build meta data", part);
    }
    return STR_NULL;
}

static struct str read_semver(struct cel_run *r, struct str s, struct semver *v)
{
    struct str build = s, parts[3], problem = STR_NULL;

    *v = (struct semver){.pre = STR_NULL};
    if (!s.n)
        return STR("Version string empty");
    parts[0] = str_cut(&build, '.');
    parts[1] = str_cut(&build, '.');
    if (!parts[1].p || !build.p)
        return STR("No Major.Minor.Patch elements found");
    v->pre = str_cut(&build, '+');
    parts[2] = str_cut(&v->pre, '-');
    for (unsigned i = 0; i < 3 && !problem.n; i++)
        problem = read_element(r, parts[i], i, &v->number[i]);
    if (!problem.n)
        problem = check_pre(r, v->pre);
    return problem.n ? problem : check_build(r, build);
}

/* Without a leading "v", with zeroes for what is missing and without those that are too many. */
static struct str normalised(struct cel_run *r, struct str s, struct str *ret)
{
    struct str rest = str_has_prefix(s, STR("v")) ? str_from(s, 1) : s, parts[3];
    struct str last = rest;
    size_t n = 0;

    while (n < 3 && rest.p) {
        struct str p = n < 2 ? str_cut(&rest, '.') : rest;

        last = p;
        while (p.n > 1 && p.p[0] == '0' && isdigit((unsigned char)p.p[1]))
            p = str_from(p, 1);
        parts[n++] = p;
    }
    if (n < 3 && (str_find(last, '+') < last.n || str_find(last, '-') < last.n))
        return STR("short version cannot contain PreRelease/Build meta data");
    while (n < 3)
        parts[n++] = STR("0");
    *ret =
        arena_printf(r->arena, "%.*s.%.*s.%.*s", STR_F(parts[0]), STR_F(parts[1]), STR_F(parts[2]));
    return STR_NULL;
}

static struct str read_any(struct cel_run *r, const struct cel_value *a, size_t n, struct semver *v)
{
    struct str s = a[0].s, problem = STR_NULL;

    cel_charge_text(r, s.n);
    if (r->over || !cel_room(r, 1) || arena_left(r->arena) < 16 * s.n + 1024)
        return STR("out of memory");
    if (n == 2 && a[1].b)
        problem = normalised(r, s, &s);
    return problem.n ? problem : read_semver(r, s, v);
}

/* ---- order ---- */

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_part(struct str a, struct str b)
{
    uint64_t x = 0, y = 0;
    bool numbers[] = {is_numeric(a), is_numeric(b)};

    if (numbers[0] != numbers[1])
        return numbers[0] ? -1 : 1;
    if (numbers[0] && str_to_u64(a, &x) && str_to_u64(b, &y))
        return order_u64(x, y);
    return str_cmp(a, b);
}

int cel_semver_order(struct cel_value a, struct cel_value b)
{
    const struct semver *x = a.p, *y = b.p;
    struct str rest_x = x->pre, rest_y = y->pre;
    int order = 0;

    for (unsigned i = 0; i < 3 && !order; i++)
        order = order_u64(x->number[i], y->number[i]);
    if (order || !x->pre.p || !y->pre.p)
        return order ? order : (x->pre.p ? -1 : y->pre.p ? 1 : 0);
    while (rest_x.p && rest_y.p && !order)
        order = order_part(str_cut(&rest_x, '.'), str_cut(&rest_y, '.'));
    return order ? order : (rest_x.p != NULL) - (rest_y.p != NULL);
}

/* ---- functions ---- */

static struct cel_value is_semver(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct semver ignored;

    return cel_bool(!read_any(r, a, n, &ignored).n);
}

static struct cel_value to_semver(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct semver *v = ARENA_NEW(r->arena, struct semver);
    struct str problem = read_any(r, a, n, v);

    return problem.n ? cel_error(r, "%.*s", STR_F(problem)) : cel_boxed(CEL_SEMVER, v);
}

static struct cel_value element(struct cel_run *r, const struct cel_value *a, size_t n)
{
    const struct semver *v = a[0].p;

    (void)n;
    return cel_int((int64_t)v->number[str_word_index("major|minor|patch", r->node->name)]);
}

static struct cel_value order(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int found = cel_semver_order(a[0], a[1]);

    (void)n;
    if (str_eqc(r->node->name, "compareTo"))
        return cel_int(found);
    return cel_bool(str_eqc(r->node->name, "isLessThan") ? found < 0 : found > 0);
}

static const struct cel_function ROWS[] = {
    {"isSemver", false, "s", "b", is_semver},  {"isSemver", false, "sb", "b", is_semver},
    {"semver", false, "s", "S", to_semver},    {"semver", false, "sb", "S", to_semver},
    {"major", true, "S", "i", element},        {"minor", true, "S", "i", element},
    {"patch", true, "S", "i", element},        {"isLessThan", true, "SS", "b", order},
    {"isGreaterThan", true, "SS", "b", order}, {"compareTo", true, "SS", "i", order},
};
const struct cel_functions CEL_SEMVERS = {ROWS, COUNT(ROWS)};
