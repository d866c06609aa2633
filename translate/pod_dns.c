/* SPDX-License-Identifier: Apache-2.0 */
/* How a pod resolves names. The host's kubelet would point it at the host's DNS, under whose search
 * path the tenant's Services have other names: what it makes of ClusterFirst is written out here,
 * with the tenant's server and domain, as policy None. Source: pkg/kubelet/network/dns of
 * Kubernetes 1.36. Must never go beyond what the host's validation takes. */

#include "shape.h"

enum { NAMESERVERS_MAX = 3, SEARCHES_MAX = 32, SEARCH_MAX = 253, SEARCHES_CHARS_MAX = 2048 };

static const struct field DNS_OPTION_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"value", FIELD_SCALAR},
    {0},
};

static const struct field DNS_FIELDS[] = {
    {"nameservers", FIELD_SCALARS},
    {"searches", FIELD_SCALARS},
    {"options", FIELD_LIST, .fields = DNS_OPTION_FIELDS},
    {0},
};

static void append_new(struct arena *a, cJSON *list, struct str text)
{
    if (text.n && !json_list_has(list, text))
        json_append(list, json_new_string(a, text));
}

static void cut_to(cJSON *list, size_t n)
{
    while (json_count(list) > n)
        json_detach(list, json_first(list)->prev); /* the last one */
}

/* --- what the kubelet merges --- */

static cJSON *nameservers(struct down *d, const cJSON *config)
{
    cJSON *ret = json_new_array(d->arena);

    append_new(d->arena, ret, d->tenant->dns_ip);
    json_each(one, json_get(config, "nameservers"))
    {
        append_new(d->arena, ret, json_str(one));
    }
    cut_to(ret, NAMESERVERS_MAX);
    return ret;
}

static size_t joined_length(const cJSON *list)
{
    size_t n = 0;

    json_each(one, list)
    {
        n += json_str(one).n + 1;
    }
    return n ? n - 1 : 0;
}

static cJSON *searches(struct down *d, const cJSON *config)
{
    struct arena *a = d->arena;
    struct str domain = d->tenant->config->cluster_domain;
    struct str_list host = d->tenant->config->dns_searches;
    cJSON *ret = json_new_array(a), *next;

    append_new(a, ret, arena_printf(a, "%.*s.svc.%.*s", STR_F(d->ns), STR_F(domain)));
    append_new(a, ret, arena_printf(a, "svc.%.*s", STR_F(domain)));
    append_new(a, ret, domain);
    for (size_t i = 0; i < host.n; i++)
        append_new(a, ret, host.items[i]);
    json_each(one, json_get(config, "searches"))
    {
        append_new(a, ret, json_str(one));
    }

    /* First at most 32, then only valid ones, then the limit of the line. */
    cut_to(ret, SEARCHES_MAX);
    for (cJSON *one = json_first(ret); one; one = next) {
        next = one->next;
        if (json_str(one).n > SEARCH_MAX)
            json_detach(ret, one);
    }
    while (joined_length(ret) > SEARCHES_CHARS_MAX)
        cut_to(ret, json_count(ret) - 1);
    return ret;
}

static cJSON *find_option(const cJSON *list, struct str name)
{
    json_each(one, list)
    {
        if (str_eq(json_str(json_get(one, "name")), name))
            return one;
    }
    return NULL;
}

/* Of two of one name the later one counts; the pod's own come after ours. */
static cJSON *options(struct down *d, const cJSON *config)
{
    cJSON *ret = json_new_array(d->arena);
    cJSON *ndots = json_append(ret, json_new_object(d->arena));

    add_str(d->arena, ndots, "name", STR("ndots"));
    add_str(d->arena, ndots, "value", STR("5"));
    json_each(option, json_get(config, "options"))
    {
        cJSON *copy, *before = find_option(ret, json_str(json_get(option, "name")));

        if (!json_is_object(option))
            continue;
        copy = shape_copy(d, DNS_OPTION_FIELDS, option);
        if (before)
            json_replace(ret, before, copy);
        else
            json_append(ret, copy);
    }
    return ret;
}

/* --- down --- */

static bool uses_cluster_dns(const struct down *d, const cJSON *spec)
{
    struct str policy = json_str(json_get(d->spec, "dnsPolicy"));

    if (!d->tenant->dns_ip.n)
        return false;
    if (str_eqc(policy, "ClusterFirstWithHostNet"))
        return true;
    return (!policy.n || str_eqc(policy, "ClusterFirst")) &&
           !json_true(json_get(spec, "hostNetwork"));
}

void translate_pod_dns_down(struct down *d, cJSON *spec)
{
    const cJSON *config = json_get(d->spec, "dnsConfig");
    struct str policy = json_str(json_get(d->spec, "dnsPolicy"));
    cJSON *ret;

    if (uses_cluster_dns(d, spec)) {
        add_str(d->arena, spec, "dnsPolicy", STR("None"));
        ret = object_add(d->arena, spec, STR("dnsConfig"), json_new_object(d->arena));
        object_add(d->arena, ret, STR("nameservers"), nameservers(d, config));
        object_add(d->arena, ret, STR("searches"), searches(d, config));
        object_add(d->arena, ret, STR("options"), options(d, config));
        return;
    }
    if (policy.n)
        add_str(d->arena, spec, "dnsPolicy", policy);
    if (json_is_object(config))
        object_add(d->arena, spec, STR("dnsConfig"), shape_copy(d, DNS_FIELDS, config));
}
