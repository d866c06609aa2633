/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints. Source: ValidateEndpoints in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "port.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT_Z("subsets[].ports[].protocol", "TCP")};

static void check_endpoint_list(struct field_errors *e, const struct field_path *p,
                                const cJSON *addresses)
{
    size_t i = 0;

    json_each(address, addresses)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str ip = json_str(json_get(address, "ip"));
        struct str host = json_str(json_get(address, "hostname"));
        const cJSON *node = given(address, "nodeName");

        check_ip(e, FIELD(at, "ip"), ip);
        if (host.n)
            check_rule(e, FIELD(at, "hostname"), NAME_DNS1123_LABEL, host);
        if (node)
            check_rule(e, FIELD(at, "nodeName"), NAME_DNS1123_SUBDOMAIN, json_str(node));
        check_endpoint_ip(e, FIELD(at, "ip"), ip);
    }
}

static void check_subset(struct field_errors *e, const struct field_path *p, const cJSON *subset)
{
    const cJSON *ready = json_get(subset, "addresses");
    const cJSON *others = json_get(subset, "notReadyAddresses"), *ports = json_get(subset, "ports");
    AT(list, p, "ports");
    size_t i = 0;

    if (!json_count(ready) && !json_count(others))
        field_required(e, p, "must specify `addresses` or `notReadyAddresses`");
    check_endpoint_list(e, FIELD(p, "addresses"), ready);
    check_endpoint_list(e, FIELD(p, "notReadyAddresses"), others);
    json_each(port, ports)
    {
        const struct field_path *at = FIELD_INDEX(list, i++);

        check_named_port(e, at, port, json_count(ports) > 1);
        check_port(e, FIELD(at, "port"), json_get(port, "port"));
        check_enum(e, FIELD(at, "protocol"), json_str(json_get(port, "protocol")), PROTOCOLS);
        check_app_protocol(e, at, port);
    }
}

static VALIDATES(validate_endpoints)
{
    const cJSON *subsets = json_get(object, "subsets");
    AT(p, NULL, "subsets");
    size_t i = 0;

    if (old && same_value(subsets, json_get(old, "subsets")))
        return; /* what was accepted once stays so */
    json_each(subset, subsets) check_subset(e, FIELD_INDEX(p, i++), subset);
}

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

static const struct column COLUMNS[] = {
    {"Endpoints", "string", .cell = cell_endpoints},
    {"Age", "string", .cell = show_age},
    {NULL},
};

const struct kind KIND_ENDPOINTS = {
    .resource =
        {
            RESOURCE("", "v1", "Endpoints", "endpoints", "endpoints"),
            .short_names = NAMES("ep"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .validate = validate_endpoints,
};
