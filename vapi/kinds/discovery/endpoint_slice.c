/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointSlices. Must never look at the endpoints of an update that leaves them. Source:
 * pkg/apis/discovery/v1/defaults.go, pkg/apis/discovery/validation. */
#include "../rules/kind.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT("ports[].name", ""), SET_TEXT("ports[].protocol", "TCP"),
    DROPPED("endpoints[].deprecatedTopology"), /* v1 has it for older versions only */
};

/* Labels say whose the slice is: they count as a change. */
static void slice_prepare_update(struct arena *a, cJSON *slice, const cJSON *old)
{
    if (!kinds_same_at(slice, old, "metadata.labels"))
        json_set_i64(a, json_get(slice, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static WARNS(slice_warn_create)
{
    (void)a;
    if (kinds_text_is(object, "addressType", "FQDN"))
        warn(ctx, STR("spec.addressType: FQDN endpoints are deprecated"));
}

#define MAX_ENDPOINTS 1000
#define MAX_ADDRESSES 100
#define MAX_PORTS     20000
#define MAX_LABELS    16
#define MAX_HINTS     8

/* ---- EndpointSlice ---- */

static void check_domain(struct field_errors *e, const struct field_path *p, struct str shown)
{
    struct str name = str_has_suffix(shown, STR(".")) ? str_sub(shown, 0, shown.n - 1) : shown;
    const char *why;

    if (!check_given(e, p, shown))
        return;
    why = name_check_dns1123_subdomain(name);
    if (why) {
        field_invalid_str(e, p, name, why);
        return;
    }
    if (str_find(name, '.') == name.n) {
        field_invalid_str(e, p, name,
                          "should be a domain with at least two segments separated by "
                          "dots");
        return;
    }
    for (struct str rest = name; rest.p;) {
        struct str label = str_cut(&rest, '.');

        why = name_check_dns1123_label(label);
        if (why) {
            field_invalid_str(e, p, label, why);
            return;
        }
    }
}

static void check_address(const struct check *c)
{
    struct str text = json_str(c->value), type = json_str(json_get(c->object, "addressType"));
    bool wants_v6 = str_eqc(type, "IPv6");
    const char *why;

    if (str_eqc(type, "FQDN")) {
        check_domain(c->e, c->at, text);
        return;
    }
    if (!wants_v6 && !str_eqc(type, "IPv4"))
        return;
    why = wants_v6 ? check_canonical_ip_problem(c->e->arena, text) : check_ip_problem(text);
    if (why) {
        field_invalid_str(c->e, c->at, text, why);
        return;
    }
    if (kinds_is_ipv6(text) != wants_v6) /* reported at the list, as upstream does */
        field_invalid(c->e, c->at->parent, c->value,
                      wants_v6 ? "must be an IPv6 address" : "must be an IPv4 address");
    check_endpoint_ip(c->e, c->at, text);
}

#define HINTS(path, form) EACH_OF_AT_MOST(path, MAX_HINTS, ONCE("name"), NAME_ALWAYS("name", form))

static const struct rule ENDPOINT[] = {
    SOME("addresses", "must contain at least 1 address"),
    MAX_ITEMS("addresses", MAX_ADDRESSES),
    EACH("addresses", CALL(NULL, check_address)),
    NAME_IF_GIVEN("nodeName", DNS1123_SUBDOMAIN),
    MAX_ITEMS("deprecatedTopology", MAX_LABELS),
    LABELS("deprecatedTopology"),
    NAME_IF_GIVEN("hostname", DNS1123_LABEL),
    HINTS("hints.forZones", LABEL_VALUE),
    HINTS("hints.forNodes", DNS1123_SUBDOMAIN),
};

static const struct rule SLICE_RULES[] = {
    ENUM("addressType", ENUM_ADDRESS_TYPE),
    EACH_OF_AT_MOST("ports", MAX_PORTS, NAME_IF_SET("name", DNS1123_LABEL), ONCE("name"),
                    REQUIRED("protocol", ""), ENUM_IF_GIVEN("protocol", ENUM_PROTOCOL),
                    NAME_IF_GIVEN("appProtocol", QUALIFIED)),
    CHANGED("endpoints", EACH_OF_AT_MOST(NULL, MAX_ENDPOINTS, ALL(ENDPOINT))),
    FIXED("addressType"),
};

/* ---- cells ---- */

struct first_three {
    struct buf b;
    size_t count;
};

static void three_add(struct first_three *t, struct str text)
{
    if (t->count++ >= 3)
        return;
    buf_addc(&t->b, t->count > 1 ? "," : "");
    buf_add(&t->b, text);
}

static void three_cell(const struct row *r, struct first_three *t)
{
    if (t->count > 3)
        buf_printf(&t->b, " + %zu more...", t->count - 3);
    cell_or(r, buf_str(&t->b), "<unset>");
    buf_fini(&t->b);
}

CELL(cell_ports)
{
    struct first_three ports = {.b = BUF_INIT(0)};

    json_each(p, json_get(r->object, "ports"))
    {
        int64_t number;

        if (json_i64(json_get(p, "port"), &number))
            three_add(&ports, arena_printf(r->a, "%lld", (long long)number));
        else
            three_add(&ports, json_get(p, "name") ? json_str(json_get(p, "name")) : STR("*"));
    }
    three_cell(r, &ports);
}

CELL(cell_endpoints)
{
    struct first_three addresses = {.b = BUF_INIT(0)};

    json_each(endpoint, json_get(r->object, "endpoints"))
    {
        json_each(address, json_get(endpoint, "addresses"))
            three_add(&addresses, json_str(address));
    }
    three_cell(r, &addresses);
}

/* ---- the kind ---- */

const struct kind KIND_ENDPOINT_SLICE = {
    RESOURCE("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice"),
    .resource.flags = RES_NAMESPACED | RES_GENERATION | RES_NAME_ON_UPDATE,
    COLUMNS({"AddressType", "string", .cell = show_text, .path = "addressType"},
            {"Ports", "string", .cell = cell_ports},
            {"Endpoints", "string", .cell = cell_endpoints}, {"Age", "string", .cell = show_age}),
    .warnings_before_create = slice_warn_create,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .prepare_update = slice_prepare_update,
    .rules = RULES(SLICE_RULES),
};
