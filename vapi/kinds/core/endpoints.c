/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints. Source: ValidateEndpoints in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "port.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT_Z("subsets[].ports[].protocol", "TCP")};

static const struct rule ADDRESS[] = {
    TEST_STR("ip", check_ip),
    NAME_IF_SET("hostname", DNS1123_LABEL),
    NAME_IF_GIVEN("nodeName", DNS1123_SUBDOMAIN),
    CHECK_STR("ip", check_endpoint_ip),
};

static const struct rule SUBSET[] = {
    SOME_OF(NULL, "must specify `addresses` or `notReadyAddresses`", "addresses",
            "notReadyAddresses"),
    EACH("addresses", ALL(ADDRESS)),
    EACH("notReadyAddresses", ALL(ADDRESS)),
    EACH("ports", CALL("name", check_named_port), PORT("port"), ENUM("protocol", ENUM_PROTOCOL),
         NAME_IF_GIVEN("appProtocol", QUALIFIED)),
};
static const struct rule SUBSETS[] = {EACH(NULL, ALL(SUBSET))};
static const struct rule ENDPOINTS_RULES[] = {CHANGED("subsets", ALL(SUBSETS))};

/* ---- cells ---- */

struct shown {
    struct buf b;
    size_t n, count;
    bool more;
};

static void show_address(struct shown *s, struct str ip, const cJSON *port)
{
    if (s->n == 3) {
        s->more = true;
        return;
    }
    buf_addc(&s->b, s->n++ ? "," : "");
    bool v6 = port && str_find(ip, ':') < ip.n;
    buf_addc(&s->b, v6 ? "[" : "");
    buf_add(&s->b, ip);
    buf_addc(&s->b, v6 ? "]" : "");
    if (port) {
        buf_char(&s->b, ':');
        buf_i64(&s->b, json_i64_at(port, "port", 0));
    }
}

static void show_subset(struct shown *s, const cJSON *subset)
{
    const cJSON *addresses = json_get(subset, "addresses"), *ports = json_get(subset, "ports");
    const cJSON *port = json_first(ports);

    do { /* a headless service has no ports */
        s->count += json_count(addresses);
        json_each(address, addresses) show_address(s, json_str(json_get(address, "ip")), port);
        port = port ? port->next : NULL;
    } while (port);
}

CELL(cell_endpoints)
{
    const cJSON *subsets = json_get(r->object, "subsets");
    struct shown s = {.b = BUF_INIT(0)};

    json_each(subset, subsets) show_subset(&s, subset);
    if (s.more)
        buf_printf(&s.b, " + %zu more...", s.count - 3);
    cell_text(r, json_count(subsets) ? buf_str(&s.b) : STR("<none>"));
    buf_fini(&s.b);
}

/* ---- the kind ---- */

const struct kind KIND_ENDPOINTS = {
    RESOURCE("", "v1", "Endpoints", "endpoints", "endpoints"),
    .resource.short_names = NAMES("ep"),
    .resource.flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_NAME_ON_UPDATE,
    COLUMNS({"Endpoints", "string", .cell = cell_endpoints}, {"Age", "string", .cell = show_age}),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .rules = RULES(ENDPOINTS_RULES),
};
