/* SPDX-License-Identifier: Apache-2.0 */
/* IPAddresses. Source: pkg/apis/networking/validation. */
#include "../rules/kind.h"

static const struct rule ADDRESS_RULES[] = {
    FIXED("spec.parentRef"),
    REQUIRED("spec.parentRef", ""),
    WITHIN("spec.parentRef", NAME_IF_SET("group", DNS1123_SUBDOMAIN),
           NAME("resource", PATH_SEGMENT), NAME("name", PATH_SEGMENT),
           NAME_IF_SET("namespace", PATH_SEGMENT)),
};

/* One cell more than there are columns: upstream's row has the age too. */
CELL(cell_parent)
{
    const cJSON *p = json_path(r->object, "spec.parentRef");
    struct str group = json_str(json_get(p, "group")), ns = json_str(json_get(p, "namespace"));

    if (p)
        cell_printf(r, "%.*s%s%.*s%s%.*s/%.*s", STR_F(json_str(json_get(p, "resource"))),
                    group.n ? "." : "", STR_F(group), ns.n ? "/" : "", STR_F(ns),
                    STR_F(json_str(json_get(p, "name"))));
    else
        cell_text(r, STR("<none>"));
    show_age(r, c);
}

/* ---- the kind ---- */

const struct kind KIND_IP_ADDRESS = {
    RESOURCE("networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ipaddress"),
    .resource.short_names = NAMES("ip"),
    .resource.flags = RES_NAME_ON_UPDATE,
    COLUMNS({"ParentRef", "string", .cell = cell_parent}),
    .check_name = check_ip_problem,
    .rules = RULES(ADDRESS_RULES),
};
