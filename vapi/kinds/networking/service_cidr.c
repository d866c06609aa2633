/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceCIDRs. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"

static void cidr_prepare_create(struct arena *a, cJSON *cidr)
{
    set_status(a, cidr, "{}");
}

static void check_cidrs(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *list = json_get(spec, "cidrs");
    size_t n = json_count(list), before = e->n, i = 0;

    if (!n)
        field_required(e, p, "at least one CIDR required");
    else if (n > 2)
        field_invalid(e, p, spec, "may only hold up to 2 values");
    if (!n || n > 2)
        return;
    json_each(cidr, list) check_canonical_cidr(e, FIELD_INDEX(p, i++), json_str(cidr));
    if (n == 2 && e->n == before &&
        is_ipv6(json_str(json_at(list, 0))) == is_ipv6(json_str(json_at(list, 1))))
        field_invalid(e, p, list,
                      "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                      "2001:db8::/64");
}

static void check_same_cidrs(struct field_errors *e, const struct field_path *p, const cJSON *list,
                             const cJSON *old, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_immutable(e, FIELD_INDEX(p, i), json_at(list, i), json_at(old, i));
}

static void validate_service_cidr(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *list = json_path(object, "spec.cidrs"), *before = json_path(old, "spec.cidrs");
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "cidrs");
    size_t now = json_count(list), was = json_count(before);

    if (!old) {
        check_cidrs(e, p, json_get(object, "spec"));
    } else if (now == was) {
        check_same_cidrs(e, p, list, before, now);
    } else if (was == 1 && now == 2) {
        check_same_cidrs(e, p, list, before, 1);
        check_cidrs(e, p, json_get(object, "spec"));
    } else {
        field_invalid(e, p, list, IMMUTABLE);
    }
}

static ROW_CELLS(cells_service_cidr)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, join(a, json_path(object, "spec.cidrs"), ","));
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"CIDRs", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_SERVICE_CIDR = {
    .resource =
        {
            RESOURCE("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "servicecidr"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("ServiceCIDR")),
        },
    .prepare_create = cidr_prepare_create,
    .validate = validate_service_cidr,
    .cells = cells_service_cidr,
};
