/* SPDX-License-Identifier: Apache-2.0 */
/* IPAddresses. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"

static void check_segment(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                          const char *key, bool required)
{
    struct str text = json_str(json_get(ref, key));

    if (text.n)
        check_rule(e, FIELD(p, key), NAME_PATH_SEGMENT, text);
    else if (required)
        field_required(e, FIELD(p, key), "");
}

static void validate_ip_address(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *ref = given(object, "spec.parentRef");
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "parentRef");
    struct str group = json_str(json_get(ref, "group"));

    if (old)
        check_immutable(e, p, ref, given(old, "spec.parentRef"));
    if (!ref) {
        field_required(e, p, "");
        return;
    }
    if (group.n)
        check_rule(e, FIELD(p, "group"), NAME_DNS1123_SUBDOMAIN, group);
    check_segment(e, p, ref, "resource", true);
    check_segment(e, p, ref, "name", true);
    check_segment(e, p, ref, "namespace", false);
}

/* One cell more than there are columns: upstream's row has the age too. */
static ROW_CELLS(cells_ip_address)
{
    struct row r = {a, object, now, cells};
    const cJSON *p = json_path(object, "spec.parentRef");
    struct str group = json_str(json_get(p, "group")), ns = json_str(json_get(p, "namespace"));
    struct str text = STR("<none>");

    if (p)
        text = arena_printf(a, "%.*s%s%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "resource"))),
                            group.n ? "." : "", STR_F(group), ns.n ? "/" : "", STR_F(ns),
                            STR_F(json_str(json_get(p, "name"))));
    cell_text(&r, text);
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"ParentRef", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_IP_ADDRESS = {
    .resource =
        {
            RESOURCE("networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ipaddress"),
            .short_names = NAMES("ip"),
            .verbs = VERBS_ALL,
            .flags = RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .check_name = ip_problem,
    .validate = validate_ip_address,
    .cells = cells_ip_address,
};
