/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointSlices. Must never look at the endpoints of an update that leaves them. Source:
 * pkg/apis/discovery/v1/defaults.go, pkg/apis/discovery/validation. */
#include "../rules/kind.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT("ports[].name", ""),
    SET_TEXT("ports[].protocol", "TCP"),
};

static void slice_defaults(struct arena *a, cJSON *slice)
{
    (void)a;
    drop_member(slice, "endpoints[].deprecatedTopology"); /* v1 has it for older versions only */
}

static bool same_labels(const cJSON *a, const cJSON *b)
{
    const cJSON *x = json_path(a, "metadata.labels"), *y = json_path(b, "metadata.labels");

    return x && y ? json_equal(x, y) : x == y;
}

/* Labels say whose the slice is: they count as a change. */
static void slice_prepare_update(struct arena *a, cJSON *slice, const cJSON *old)
{
    if (!same_labels(slice, old))
        json_set_i64(a, json_get(slice, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static void slice_warn_create(struct arena *a, const cJSON *slice, void (*warn)(void *, struct str),
                              void *ctx)
{
    (void)a;
    if (str_eqc(json_str(json_get(slice, "addressType")), "FQDN"))
        warn(ctx, STR("spec.addressType: FQDN endpoints are deprecated"));
}

#define MAX_ENDPOINTS 1000

#define MAX_ADDRESSES 100

#define MAX_PORTS 20000

#define MAX_LABELS 16

#define MAX_HINTS 8

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

static void check_address(struct field_errors *e, const struct field_path *list, size_t i,
                          const cJSON *address, struct str type)
{
    const struct field_path *p = FIELD_INDEX(list, i);
    struct str text = json_str(address);
    bool wants_v6 = str_eqc(type, "IPv6");
    const char *why;

    if (str_eqc(type, "FQDN")) {
        check_domain(e, p, text);
        return;
    }
    if (!wants_v6 && !str_eqc(type, "IPv4"))
        return;
    why = wants_v6 ? canonical_ip_problem(e->arena, text) : ip_problem(text);
    if (why) {
        field_invalid_str(e, p, text, why);
        return;
    }
    if (is_ipv6(text) != wants_v6)
        field_invalid(e, list, address,
                      wants_v6 ? "must be an IPv6 address" : "must be an IPv4 address");
    check_endpoint_ip(e, p, text);
}

static void check_hint_names(struct field_errors *e, const struct field_path *p, const cJSON *list,
                             enum name_rule rule)
{
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    if (json_count(list) > MAX_HINTS) {
        field_too_many(e, p, json_count(list), MAX_HINTS);
        return;
    }
    json_each(hint, list)
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "name");
        struct str name = json_str(json_get(hint, "name"));

        if (!names_add(&seen, name, hint))
            field_duplicate(e, at, json_get(hint, "name"));
        check_rule(e, at, rule, name);
    }
}

static void check_addresses(const struct check *c)
{
    size_t n = json_count(c->value), i = 0;

    if (!n)
        field_required(c->e, c->at, "must contain at least 1 address");
    else if (n > MAX_ADDRESSES)
        field_too_many(c->e, c->at, n, MAX_ADDRESSES);
    json_each(address, c->value)
        check_address(c->e, c->at, i++, address, json_str(json_get(c->object, "addressType")));
}

static void check_zones(const struct check *c)
{
    check_hint_names(c->e, c->at, c->value, NAME_LABEL_VALUE);
}

static void check_nodes(const struct check *c)
{
    check_hint_names(c->e, c->at, c->value, NAME_DNS1123_SUBDOMAIN);
}

static const struct rule PORT_NAME[] = {NAME_IF_SET("name", DNS1123_LABEL)};
static const struct rule PORT_PROTOCOL[] = {
    REQUIRED("protocol", ""),
    ENUM_IF_GIVEN("protocol", ENUM_PROTOCOL),
    NAME_IF_GIVEN("appProtocol", QUALIFIED),
};

static void check_ports(const struct check *c)
{
    struct names seen = {.arena = c->e->arena};

    if (!check_list_size(c->e, c->at, c->value, MAX_PORTS))
        return;
    field_each(port, at, c->at, c->value)
    {
        rules_check_value(c->e, at, port, NULL, PORT_NAME, COUNT(PORT_NAME));
        if (!names_add(&seen, json_str(json_get(port, "name")), port))
            field_duplicate(c->e, FIELD(at, "name"), json_get(port, "name"));
        rules_check_value(c->e, at, port, NULL, PORT_PROTOCOL, COUNT(PORT_PROTOCOL));
    }
}

static const struct rule SLICE_RULES[] = {
    ENUM("addressType", ENUM_ADDRESS_TYPE),
    CALL("ports", check_ports),
    CHANGED("endpoints",
            EACH_OF_AT_MOST(NULL, MAX_ENDPOINTS, CALL("addresses", check_addresses),
                            NAME_IF_GIVEN("nodeName", DNS1123_SUBDOMAIN),
                            MAX_ITEMS("deprecatedTopology", MAX_LABELS),
                            LABELS("deprecatedTopology"), NAME_IF_GIVEN("hostname", DNS1123_LABEL),
                            CALL("hints.forZones", check_zones),
                            CALL("hints.forNodes", check_nodes))),
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
    .defaults = slice_defaults,
    .prepare_update = slice_prepare_update,
    .rules = RULES(SLICE_RULES),
};
