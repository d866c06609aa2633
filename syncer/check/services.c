/* SPDX-License-Identifier: Apache-2.0 */
/* Services with a further name on the host, and those whose addresses nodes have as kubelets. */
#include "check.h"

#include <sublet/config_sync.h>
#include <sublet/translate_alias.h>

/* --- further names of Services --- */

cJSON *host_check_named_aliases(struct host_check *c)
{
    const struct config_to_host *down = c->config->to_host;
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < down->n_aliases; i++)
        json_set_str(c->arena, ret, arena_cstr(c->arena, down->aliases[i].host_name),
                     arena_printf(c->arena, "%.*s/%.*s", STR_F(down->aliases[i].ns),
                                  STR_F(down->aliases[i].name)));
    return ret;
}

/* Which virtual cluster's it is shows only with its store. */
static bool is_alias(const cJSON *service)
{
    const cJSON *notes = json_path(service, "metadata.annotations");

    return json_get(json_path(service, "metadata.labels"), LABEL_CLUSTER) &&
           str_eq(json_str(json_get(notes, ANNOTATION_ALIAS)),
                  json_str_at(service, "metadata.name"));
}

static void judge_alias(struct host_check *c, const cJSON *list, struct str name, struct str source)
{
    const char *what = arena_printf(c->arena, "service %.*s", STR_F(name)).p;
    const cJSON *found = host_check_item(list, name);

    if (found && !is_alias(found))
        host_check_report(
            c, HOST_FINDING_WARNING, what,
            arena_printf(c->arena,
                         "exists, and is not a virtual cluster's: it is left alone, and %.*s "
                         "has no such name",
                         STR_F(source)));
    else
        host_check_report(
            c, HOST_FINDING_OK, what,
            arena_printf(c->arena, "%s for %.*s", found ? "exists" : "is free", STR_F(source)));
}

void host_check_aliases(struct host_check *c, const cJSON *list)
{
    json_each(source, host_check_named_aliases(c))
        judge_alias(c, list, json_key(source), json_str(source));
}

/* --- addresses of kubelets --- */

cJSON *host_check_named_kubelets(struct host_check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (int64_t i = 0; i < c->config->kubelet_addresses; i++)
        json_set_str(
            c->arena, ret,
            arena_printf(c->arena, "%.*s-kubelet-%lld", STR_F(c->config->name), (long long)i).p,
            STR(""));
    return ret;
}

/* Why no node can have it; NULL: one can. */
static const char *wrong_kubelet(const cJSON *service)
{
    struct str ip = json_str_at(service, "spec.clusterIP");

    if (!service)
        return "does not exist: the chart makes it, and a node has no address without it";
    if (!ip.n || str_eqc(ip, "None"))
        return "has no cluster IP: a node has no address by it";
    json_each(port, json_path(service, "spec.ports"))
    {
        if (json_i64_at(port, "port", 0) == 10250)
            return NULL;
    }
    return "has no port 10250, where clients expect a kubelet";
}

void host_check_kubelets(struct host_check *c, const cJSON *list)
{
    size_t good = 0;

    json_each(name, host_check_named_kubelets(c))
    {
        const char *why = wrong_kubelet(host_check_item(list, json_key(name)));

        good += !why;
        if (why)
            host_check_report(c, HOST_FINDING_WARNING,
                              arena_printf(c->arena, "service %s", name->string).p, str_c(why));
    }
    host_check_report(c, good ? HOST_FINDING_OK : HOST_FINDING_WARNING, "kubelet services",
                      arena_printf(c->arena, "%zu of %lld can be the address of a node", good,
                                   (long long)c->config->kubelet_addresses));
}
