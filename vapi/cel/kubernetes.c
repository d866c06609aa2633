/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' own functions: quantities, addresses and the authorizer. Must never authorize by
 * itself: the activation decides. Source: k8s.io/apiserver pkg/cel/library (quantity.go, ip.go,
 * cidr.go, authz.go). */
#include "impl.h"

#include <arpa/inet.h>
#include <string.h>

#include <sublet/cidr.h>
#include <sublet/encode.h>
#include <sublet/quantity.h>
#include <sublet/selector.h>

#define COST_CHECK 350000

/* ---- quantities ---- */

static struct cel_value new_quantity(struct cel_run *r, struct quantity q)
{
    struct quantity *p = ARENA_NEW(r->arena, struct quantity);

    *p = q;
    return cel_boxed(CEL_QUANTITY, p);
}

static struct quantity quantity_in(struct cel_value v)
{
    return *(const struct quantity *)v.p;
}

static struct cel_value is_quantity(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct quantity q;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    return cel_bool(quantity_parse(a[0].s, &q));
}

static struct cel_value to_quantity(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct quantity q;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    if (!quantity_parse(a[0].s, &q))
        return cel_error(r, "quantities must match the regular expression "
                            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return new_quantity(r, q);
}

static struct cel_value quantity_sign(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct quantity q = quantity_in(a[0]);

    (void)r;
    (void)n;
    return cel_int((q.nano > 0) - (q.nano < 0));
}

static struct cel_value quantity_whole(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_bool(quantity_is_integer(quantity_in(a[0])));
}

static struct cel_value quantity_int(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    if (!quantity_is_integer(quantity_in(a[0])))
        return cel_error(r, "cannot convert value to integer");
    return cel_int(quantity_units(quantity_in(a[0])));
}

static struct cel_value quantity_double(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_double((double)quantity_in(a[0]).nano / 1e9);
}

static struct cel_value quantity_sum(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct quantity other = a[1].kind == CEL_QUANTITY
                                ? quantity_in(a[1])
                                : quantity_from_i64(a[1].i, QUANTITY_DECIMAL_SI);

    (void)n;
    return new_quantity(r, str_eqc(r->node->name, "add") ? quantity_add(quantity_in(a[0]), other)
                                                         : quantity_sub(quantity_in(a[0]), other));
}

static struct cel_value quantity_order(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int order = quantity_cmp(quantity_in(a[0]), quantity_in(a[1]));

    (void)n;
    if (str_eqc(r->node->name, "compareTo"))
        return cel_int(order);
    return cel_bool(str_eqc(r->node->name, "isLessThan") ? order < 0 : order > 0);
}

/* ---- addresses ---- */

/* Strict: netip.ParseAddr without zones and without IPv4 in IPv6. */
static bool read_ip(struct str text, unsigned char out[16], bool *v6)
{
    char copy[INET6_ADDRSTRLEN];

    if (text.n >= sizeof(copy) || memchr(text.p ? text.p : "", 0, text.n))
        return false;
    memcpy(copy, text.p ? text.p : "", text.n);
    copy[text.n] = '\0';
    *v6 = strchr(copy, ':');
    if (inet_pton(*v6 ? AF_INET6 : AF_INET, copy, out) != 1)
        return false;
    return !*v6 || !strchr(copy, '.');
}

static struct cel_value is_ip(struct cel_run *r, const struct cel_value *a, size_t n)
{
    unsigned char ip[16];
    bool v6;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    return cel_bool(read_ip(a[0].s, ip, &v6));
}

static struct cel_value to_ip(struct cel_run *r, const struct cel_value *a, size_t n)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char ip[16];
    bool v6;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    if (!read_ip(a[0].s, ip, &v6))
        return cel_error(r,
                         "IP Address \"%.*s\" parse error during conversion from string: "
                         "ParseAddr(\"%.*s\"): unable to parse IP",
                         STR_F(a[0].s), STR_F(a[0].s));
    inet_ntop(v6 ? AF_INET6 : AF_INET, ip, text, sizeof(text));
    return (struct cel_value){.kind = CEL_IP, .s = arena_str(r->arena, str_c(text))};
}

static struct cel_value ip_is_canonical(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value v = to_ip(r, a, n);

    return v.kind == CEL_ERROR ? v : cel_bool(str_eq(v.s, a[0].s));
}

static struct cel_value ip_family(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_int(str_find(a[0].s, ':') < a[0].s.n ? 6 : 4);
}

static struct cel_value ip_is(struct cel_run *r, const struct cel_value *a, size_t n)
{
    static const struct {
        const char *name, *v4, *v6;
    } ranges[] = {
        {"isUnspecified", "0.0.0.0/32", "::/128"},
        {"isLoopback", "127.0.0.0/8", "::1/128"},
        {"isLinkLocalMulticast", "224.0.0.0/24", "ff02::/16"},
        {"isLinkLocalUnicast", "169.254.0.0/16", "fe80::/10"},
    };
    struct cidr ip, range;

    (void)n;
    if (!cidr_parse(a[0].s, &ip))
        return cel_no_overload(r);
    for (size_t i = 0; i < COUNT(ranges); i++) {
        if (str_eqc(r->node->name, ranges[i].name) &&
            cidr_parse(str_c(ip.v6 ? ranges[i].v6 : ranges[i].v4), &range))
            return cel_bool(cidr_within(&ip, &range));
    }
    return cel_no_overload(r);
}

static bool is_within(const struct cidr *ip, const char *range)
{
    struct cidr whole;

    return cidr_parse(str_c(range), &whole) && whole.v6 == ip->v6 && cidr_within(ip, &whole);
}

static struct cel_value ip_is_global(struct cel_run *r, const struct cel_value *a, size_t n)
{
    static const char *const others[] = {"0.0.0.0/32",  "255.255.255.255/32", "127.0.0.0/8",
                                         "224.0.0.0/4", "169.254.0.0/16",     "::/128",
                                         "::1/128",     "ff00::/8",           "fe80::/10"};
    struct cidr ip;

    (void)n;
    if (!cidr_parse(a[0].s, &ip))
        return cel_no_overload(r);
    for (size_t i = 0; i < COUNT(others); i++) {
        if (is_within(&ip, others[i]))
            return cel_bool(false);
    }
    return cel_bool(true);
}

static bool read_cidr(struct str text, struct cidr *ret)
{
    size_t slash = str_find(text, '/');
    unsigned char ip[16];
    bool v6;

    return slash < text.n && read_ip(str_sub(text, 0, slash), ip, &v6) && cidr_parse(text, ret);
}

static struct cel_value is_cidr(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cidr c;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    return cel_bool(read_cidr(a[0].s, &c));
}

/* Why Go takes it for no prefix. */
static struct str prefix_problem(struct cel_run *r, struct str text)
{
    size_t slash = str_rfind(text, '/');
    struct str address = str_sub(text, 0, slash);
    unsigned char ip[16];
    uint64_t bits;
    bool v6;

    if (slash == text.n)
        return STR("no '/'");
    if (!read_ip(address, ip, &v6))
        return arena_printf(r->arena, "ParseAddr(%.*s): unable to parse IP",
                            STR_F(go_quote(r->arena, address)));
    text = str_from(text, slash + 1);
    return str_to_u64(text, &bits) ? STR("prefix length out of range")
                                   : arena_printf(r->arena, "bad bits after slash: %.*s",
                                                  STR_F(go_quote(r->arena, text)));
}

static struct cel_value to_cidr(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cidr c;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    if (!read_cidr(a[0].s, &c))
        return cel_error(r,
                         "network address parse error during conversion from string: network "
                         "address parse error during conversion from string: "
                         "netip.ParsePrefix(%.*s): %.*s",
                         STR_F(go_quote(r->arena, a[0].s)), STR_F(prefix_problem(r, a[0].s)));
    return (struct cel_value){.kind = CEL_CIDR, .s = a[0].s};
}

static struct cel_value cidr_contains(struct cel_run *r, const struct cel_value *a, size_t n)
{
    bool whole = str_eqc(r->node->name, "containsCIDR");
    struct cidr outer, inner;

    (void)n;
    cel_charge_text(r, a[0].s.n + a[1].s.n);
    if (!read_cidr(a[0].s, &outer) || !cidr_parse(a[1].s, &inner) ||
        (whole && !read_cidr(a[1].s, &inner)))
        return cel_no_overload(r);
    return cel_bool(cidr_within(&inner, &outer));
}

static struct cel_value cidr_length(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cidr c;

    (void)n;
    return read_cidr(a[0].s, &c) ? cel_int(c.bits) : cel_no_overload(r);
}

static struct cel_value cidr_ip(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value text = cel_string(str_sub(a[0].s, 0, str_find(a[0].s, '/')));

    return to_ip(r, &text, n);
}

static struct cel_value cidr_masked(struct cel_run *r, const struct cel_value *a, size_t n)
{
    char text[INET6_ADDRSTRLEN];
    struct cidr c;

    (void)n;
    if (!read_cidr(a[0].s, &c))
        return cel_no_overload(r);
    for (unsigned bit = c.bits; bit < (c.v6 ? 128u : 32u); bit++)
        c.bytes[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
    inet_ntop(c.v6 ? AF_INET6 : AF_INET, c.bytes, text, sizeof(text));
    return (struct cel_value){.kind = CEL_CIDR, .s = arena_printf(r->arena, "%s/%u", text, c.bits)};
}

/* ---- the authorizer: every step copies the check it narrows ---- */

static struct cel_check *narrowed(struct cel_run *r, const void *from)
{
    struct cel_check *c = ARENA_NEW(r->arena, struct cel_check);

    if (from)
        *c = *(const struct cel_check *)from;
    return c;
}

static struct cel_value authorizer_path(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_check *c = narrowed(r, a[0].p);

    (void)n;
    if (!str_trim(a[1].s).n)
        return cel_error(r, "path must not be empty");
    c->path = a[1].s;
    return cel_boxed(CEL_PATH_CHECK, c);
}

static struct cel_value authorizer_group(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_check *c = narrowed(r, a[0].p);

    (void)n;
    c->group = a[1].s;
    return cel_boxed(CEL_GROUP_CHECK, c);
}

static struct cel_value authorizer_account(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_check *c = narrowed(r, a[0].p);

    (void)n;
    if (name_check_dns1123_subdomain(a[2].s))
        return cel_error(r, "Invalid service account name");
    if (name_check_dns1123_label(a[1].s))
        return cel_error(r, "Invalid service account namespace");
    c->service_account_ns = a[1].s;
    c->service_account = a[2].s;
    return cel_boxed(CEL_AUTHORIZER, c);
}

static struct cel_value group_resource(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_check *c = narrowed(r, a[0].p);

    (void)n;
    if (!str_trim(a[1].s).n)
        return cel_error(r, "resource must not be empty");
    c->resource = a[1].s;
    return cel_boxed(CEL_RESOURCE_CHECK, c);
}

static struct cel_value resource_narrow(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_check *c = narrowed(r, a[0].p);
    struct str *members[] = {&c->subresource, &c->ns, &c->name, &c->field_selector,
                             &c->label_selector};
    int i = str_word_index("subresource|namespace|name|fieldSelector|labelSelector", r->node->name);

    (void)n;
    *members[i] = a[1].s;
    return cel_boxed(CEL_RESOURCE_CHECK, c);
}

struct decision {
    bool allowed;
    struct str reason;
};

static struct cel_value check(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct decision *d = ARENA_NEW(r->arena, struct decision);
    struct cel_check *c = narrowed(r, a[0].p);

    (void)n;
    cel_charge(r, COST_CHECK);
    c->verb = a[1].s;
    if (!r->over && r->activation->authorize)
        d->allowed = r->activation->authorize(r->activation->ctx, c, &d->reason);
    return cel_boxed(CEL_DECISION, d);
}

static struct cel_value decision_member(struct cel_run *r, const struct cel_value *a, size_t n)
{
    const struct decision *d = a[0].p;

    (void)n;
    switch (str_word_index("allowed|reason|errored|error", r->node->name)) {
    case 0:
        return cel_bool(d->allowed);
    case 1:
        return cel_string(d->reason);
    case 2:
        return cel_bool(false);
    default:
        return cel_string(STR(""));
    }
}

static const struct cel_function ROWS[] = {
    {"isQuantity", false, "s", "b", is_quantity},
    {"quantity", false, "s", "q", to_quantity},
    {"sign", false, "q", "i", quantity_sign},
    {"isInteger", true, "q", "b", quantity_whole},
    {"asInteger", true, "q", "i", quantity_int},
    {"asApproximateFloat", true, "q", "d", quantity_double},
    {"add", true, "qq", "q", quantity_sum},
    {"add", true, "qi", "q", quantity_sum},
    {"sub", true, "qq", "q", quantity_sum},
    {"sub", true, "qi", "q", quantity_sum},
    {"isLessThan", true, "qq", "b", quantity_order},
    {"isGreaterThan", true, "qq", "b", quantity_order},
    {"compareTo", true, "qq", "i", quantity_order},
    {"isIP", false, "s", "b", is_ip},
    {"ip", false, "s", "I", to_ip},
    {"ip.isCanonical", false, "s", "b", ip_is_canonical},
    {"family", true, "I", "i", ip_family},
    {"isUnspecified", true, "I", "b", ip_is},
    {"isLoopback", true, "I", "b", ip_is},
    {"isLinkLocalMulticast", true, "I", "b", ip_is},
    {"isLinkLocalUnicast", true, "I", "b", ip_is},
    {"isGlobalUnicast", true, "I", "b", ip_is_global},
    {"isCIDR", false, "s", "b", is_cidr},
    {"cidr", false, "s", "C", to_cidr},
    {"containsIP", true, "Cs", "b", cidr_contains},
    {"containsIP", true, "CI", "b", cidr_contains},
    {"containsCIDR", true, "Cs", "b", cidr_contains},
    {"containsCIDR", true, "CC", "b", cidr_contains},
    {"masked", true, "C", "C", cidr_masked},
    {"prefixLength", true, "C", "i", cidr_length},
    {"ip", true, "C", "I", cidr_ip},
    {"path", true, "Zs", "P", authorizer_path},
    {"group", true, "Zs", "G", authorizer_group},
    {"serviceAccount", true, "Zss", "Z", authorizer_account},
    {"resource", true, "Gs", "R", group_resource},
    {"subresource", true, "Rs", "R", resource_narrow},
    {"namespace", true, "Rs", "R", resource_narrow},
    {"name", true, "Rs", "R", resource_narrow},
    {"fieldSelector", true, "Rs", "R", resource_narrow},
    {"labelSelector", true, "Rs", "R", resource_narrow},
    {"check", true, "Ps", "X", check},
    {"check", true, "Rs", "X", check},
    {"allowed", true, "X", "b", decision_member},
    {"reason", true, "X", "s", decision_member},
    {"errored", true, "X", "b", decision_member},
    {"error", true, "X", "s", decision_member},
};
const struct cel_functions CEL_KUBERNETES = {ROWS, COUNT(ROWS)};
