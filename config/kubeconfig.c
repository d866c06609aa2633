/* SPDX-License-Identifier: Apache-2.0 */
/* `kubeconfig.additionalSecrets`: where else on the host the kubeconfig is written. Must never name
 * one Secret twice, nor the one that is always written: they would be overwritten in turns. */

#include <sublet/config_kubeconfig.h>

#include "impl.h"

#define MIN_TOKEN_S  600
#define MAX_TOKEN_S  86400
#define MOST_CONTEXT 253
#define MOST_PEM     (64 * 1024)

const char *config_context_check(struct str name)
{
    if (name.n > MOST_CONTEXT)
        return "must be no more than 253 characters";
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || (unsigned char)name.p[i] >= 0x7f)
            return "want printable ASCII characters without spaces";
    return NULL;
}

/* A string that is empty, or that check() has nothing against. */
static int read_checked(const struct place *at, const cJSON *value, struct str *ret,
                        const char *(*check)(struct str))
{
    const char *why;

    if (place_string(at, value, ret))
        return -1;
    why = ret->n ? check(*ret) : NULL;
    return why ? place_error(at, "\"%.*s\": %s", STR_F(*ret), why) : 0;
}

static int read_name(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->name, name_check_dns1123_subdomain);
}

static int read_namespace(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->ns, name_check_dns1123_label);
}

static int read_context(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->context, config_context_check);
}

static int read_server(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    if (place_string(at, value, &k->server))
        return -1;
    return !k->server.n || config_url_valid(k->server)
               ? 0
               : place_error(at, "\"%.*s\": want https://name or https://name:port",
                             STR_F(k->server));
}

static int read_insecure(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return place_bool(at, value, &k->insecure);
}

static int read_authority(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    if (place_string(at, value, &k->certificate_authority))
        return -1;
    if (k->certificate_authority.n > MOST_PEM ||
        !str_contains(k->certificate_authority, STR("-----BEGIN CERTIFICATE-----")))
        return place_error(at, "want certificates as PEM, of at most %d bytes", MOST_PEM);
    return 0;
}

static int read_account(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->account, name_check_dns1123_subdomain);
}

static int read_account_namespace(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->account_ns, name_check_dns1123_label);
}

static int read_cluster_role(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    return read_checked(at, value, &k->cluster_role, name_check_path_segment);
}

/* A token outlives the rights of its reader: hence at most a day, as in pods. */
static int read_lifetime(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    if (place_seconds(at, value, &k->token_s))
        return -1;
    return k->token_s >= MIN_TOKEN_S && k->token_s <= MAX_TOKEN_S
               ? 0
               : place_error(at, "want 10m to 24h");
}

static const struct place_key KUBECONFIG_ACCOUNT_KEYS[] = {
    {"name", read_account},
    {"namespace", read_account_namespace},
    {"clusterRole", read_cluster_role},
    {"tokenLifetime", read_lifetime},
    {0},
};

static int read_service_account(const struct place *at, const cJSON *value, void *into)
{
    struct config_kubeconfig *k = into;

    if (json_is_null(value))
        return 0;
    k->token_s = MAX_TOKEN_S;
    if (place_object(at, value, KUBECONFIG_ACCOUNT_KEYS, k))
        return -1;
    if (!k->account.n || !k->account_ns.n)
        return place_error(at, "want name and namespace of a ServiceAccount of the tenant");
    return 0;
}

static const struct place_key KUBECONFIG_SECRET_KEYS[] = {
    {"name", read_name},
    {"namespace", read_namespace},
    {"context", read_context},
    {"server", read_server},
    {"insecure", read_insecure},
    {"certificateAuthority", read_authority},
    {"serviceAccount", read_service_account},
    {0},
};

static struct str namespace_of(const struct config *config, const struct config_kubeconfig *k)
{
    return k->ns.n ? k->ns : config->host_namespace;
}

static int check_one(const struct place *at, const struct config *config,
                     const struct config_kubeconfig *all, size_t n)
{
    const struct config_kubeconfig *k = &all[n];
    struct str own = arena_printf(at->arena, "%.*s-kubeconfig", STR_F(config->name));

    if (!k->name.n)
        return place_error(at, "name is missing");
    if (k->insecure && k->certificate_authority.n)
        return place_error(at, "insecure verifies nothing: leave out certificateAuthority");
    if (str_eq(k->name, own) && str_eq(namespace_of(config, k), config->host_namespace))
        return place_error(at, "Secret %.*s is written without it", STR_F(own));
    for (size_t i = 0; i < n; i++)
        if (str_eq(all[i].name, k->name) &&
            str_eq(namespace_of(config, &all[i]), namespace_of(config, k)))
            return place_error(at, "Secret %.*s is named twice", STR_F(k->name));
    return 0;
}

int config_load_kubeconfigs(struct arena *a, const cJSON *tree, struct config *config,
                            struct err *err)
{
    struct place at = {a, STR("config: kubeconfig.additionalSecrets"), err};
    const cJSON *list = json_path(tree, "kubeconfig.additionalSecrets");
    struct config_kubeconfig *all;
    size_t n = 0;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return config_wrong_type(err, at.path, "a list", list);
    if (json_count(list) > CONFIG_MOST_KUBECONFIGS)
        return place_error(&at, "at most %d Secrets", CONFIG_MOST_KUBECONFIGS);
    all = arena_alloc(a, (json_count(list) + 1) * sizeof(*all));
    json_each(item, list)
    {
        struct place one = place_item(&at, n);

        if (place_object(&one, item, KUBECONFIG_SECRET_KEYS, &all[n]) ||
            check_one(&one, config, all, n))
            return -1;
        n++;
    }
    config->kubeconfigs = all;
    config->n_kubeconfigs = n;
    return 0;
}
