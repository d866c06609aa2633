/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.services`: which Services of the tenant have a second host Service under a name that
 * the admin chose. Must never give one name twice, nor one that this program or its chart uses for
 * something else. */

#include <string.h>

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_ALIASES = 64, HASH_CHARS = 16 };

static int services_patches(const struct place *at, const cJSON *value, void *into)
{
    return config_read_annotations(at, value, &((struct config_to_host *)into)->service_patches);
}

/* "web-abcdefghijklmnop", as translate_name() makes them. */
static bool looks_synced(struct str name)
{
    if (name.n <= HASH_CHARS || name.p[name.n - HASH_CHARS - 1] != '-')
        return false;
    for (size_t i = name.n - HASH_CHARS; i < name.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz234567", name.p[i]))
            return false;
    return true;
}

static int read_source(const struct place *at, struct str text, struct config_service_alias *ret)
{
    struct str name = text, ns = str_cut(&name, '/');
    const char *why = name.p ? name_check_dns1123_label(ns) : "want namespace/name";

    if (!why)
        why = name_check_dns1035_label(name);
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(text), why);
    ret->ns = arena_str(at->arena, ns);
    ret->name = arena_str(at->arena, name);
    return 0;
}

static int read_host_name(const struct place *at, const struct config_to_host *to, struct str name,
                          struct config_service_alias *ret)
{
    const char *why = name_check_dns1035_label(name);

    if (!why && looks_synced(name))
        why = "names of this form are those of synced objects";
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(name), why);
    for (size_t i = 0; i < to->n_aliases; i++)
        if (str_eq(to->aliases[i].host_name, name))
            return place_error(at, "\"%.*s\" is the name of another Service already", STR_F(name));
    ret->host_name = arena_str(at->arena, name);
    return 0;
}

static int services_by_name(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct config_service_alias *list;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_ALIASES)
        return place_error(at, "at most %d mappings are possible", MOST_ALIASES);
    list = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*list));
    to->aliases = list;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct config_service_alias *alias = &list[to->n_aliases];

        if (!json_is_string(member))
            return config_wrong_type(at->err, inner.path, "a string", member);
        if (read_source(&inner, json_key(member), alias) ||
            read_host_name(&inner, to, json_str(member), alias))
            return -1;
        to->n_aliases++;
    }
    return 0;
}

static const struct place_key SERVICE_MAPPING_KEYS[] = {
    {"byName", services_by_name},
    {0},
};

static int services_mappings(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, SERVICE_MAPPING_KEYS, into);
}

static const struct place_key SERVICE_KEYS[] = {
    {"mappings", services_mappings},
    {"patches", services_patches},
    {0},
};

int config_read_services(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, SERVICE_KEYS, into);
}

/* The Services that the chart makes: that of the API, and that of its DNS. */
int config_check_aliases(const struct place *at, const struct config *config)
{
    const struct config_to_host *to = config->to_host;
    struct place services = place_member(at, "services"),
                 inner = place_member(&services, "mappings");

    for (size_t i = 0; i < to->n_aliases; i++) {
        struct str name = to->aliases[i].host_name;

        if (str_eq(name, config->name) ||
            (str_has_prefix(name, config->name) && str_eqc(str_from(name, config->name.n), "-dns")))
            return place_error(&inner, "\"%.*s\" is the name of this virtual cluster's own Service",
                               STR_F(name));
    }
    return 0;
}

const struct config_service_alias *config_alias_of(const struct config_to_host *to,
                                                   struct str host_name)
{
    for (size_t i = 0; i < to->n_aliases; i++)
        if (str_eq(to->aliases[i].host_name, host_name))
            return &to->aliases[i];
    return NULL;
}
