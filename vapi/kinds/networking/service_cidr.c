/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceCIDRs. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"

static void check_cidrs(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *list = json_get(spec, "cidrs");
    size_t n = json_count(list), before = e->n;

    if (!n)
        field_required(e, p, "at least one CIDR required");
    else if (n > 2)
        field_invalid(e, p, spec, "may only hold up to 2 values");
    if (!n || n > 2)
        return;
    field_each(cidr, at, p, list) check_canonical_cidr(e, at, json_str(cidr));
    if (n == 2 && e->n == before &&
        kinds_is_ipv6(json_str(json_at(list, 0))) == kinds_is_ipv6(json_str(json_at(list, 1))))
        field_invalid(e, p, list,
                      "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                      "2001:db8::/64");
}

/* One range may be added to one, of the other family. */
static void check_ranges(const struct check *c)
{
    size_t now = json_count(c->value), was = json_count(c->old);

    if (c->before && now != was && !(was == 1 && now == 2)) {
        field_invalid(c->e, c->at, c->value, IMMUTABLE);
        return;
    }
    for (size_t i = 0; i < was; i++)
        check_immutable(c->e, FIELD_INDEX(c->at, i), json_at(c->value, i), json_at(c->old, i));
    if (!c->before || now != was)
        check_cidrs(c->e, c->at, json_get(c->object, "spec"));
}

static const struct rule CIDR_RULES[] = {CALL("spec.cidrs", check_ranges)};

CELL(cell_cidrs)
{
    cell_text(r, kinds_join(r->a, json_path(r->object, "spec.cidrs"), ","));
}

/* ---- the kind ---- */

static const struct no_effect NO_EFFECT[] = {{NULL, "ServiceCIDR", "cluster IPs are the host's"},
                                             {NULL}};

const struct kind KIND_SERVICE_CIDR = {
    RESOURCE("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "servicecidr"),
    .resource.flags = RES_STATUS | RES_STATUS_KEEPS_META,
    COLUMNS({"CIDRs", "string", .cell = cell_cidrs}, {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("ServiceCIDR")),
    .new_status = "{}",
    .rules = RULES(CIDR_RULES),
    .no_effect = NO_EFFECT,
};
