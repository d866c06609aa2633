/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of one virtual cluster. Why: an operator's mistake must stop the start and name
 * its place, instead of becoming an unintended default. Must never accept a key it does not know,
 * and must never read anything but its arguments (bytes of the file, flags, environment). */

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include <sublet/yaml.h>

#include <sublet/config_pool.h>

#include "impl.h"

/* ---- the file ---- */

struct duplicates {
    struct arena *arena;
    struct str first;
};

static void on_duplicate(void *ctx, struct str path)
{
    struct duplicates *d = ctx;

    if (!d->first.p)
        d->first = arena_str(d->arena, path);
}

static int parse_file(struct arena *a, struct str text, cJSON **ret, struct err *err)
{
    struct duplicates duplicates = {.arena = a};

    if (yaml_parse(a, text, on_duplicate, &duplicates, ret, err))
        return err_wrap(err, "config");
    if (duplicates.first.p)
        return err_set(err, &ERR_BAD_REQUEST, "config: %.*s", STR_F(duplicates.first));
    if (!*ret || json_is_null(*ret))
        *ret = json_new_object(a);
    if (!json_is_object(*ret))
        return config_wrong_type(err, STR("config"), "an object", *ret);
    return 0;
}

/* Keys that have readers of their own. */
static const char *const STRUCTURED[] = {"pools",
                                         "bindings",
                                         "authentication",
                                         "sync.toHost",
                                         "sync.fromHost",
                                         "init",
                                         "kubeconfig.additionalSecrets"};

/* Does path name an option, or lead to one (ret_inner)? */
static bool path_known(struct str path, bool *ret_inner)
{
    *ret_inner = false;
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        struct str known = str_c(CONFIG_OPTIONS[i].path);

        if (str_eq(known, path))
            return true;
        if (known.n > path.n && str_has_prefix(known, path) && known.p[path.n] == '.') {
            *ret_inner = true;
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(STRUCTURED); i++)
        if (str_eqc(path, STRUCTURED[i]))
            return true;
    return false;
}

/* The keys there are under path, for the error of a key that is not. */
static struct str known_below(struct arena *a, struct str path)
{
    struct str ret = STR(""), last = STR_NULL;

    for (size_t i = 0; i < COUNT(STRUCTURED); i++) {
        struct str known = str_c(STRUCTURED[i]), key = known;
        size_t dot = str_rfind(known, '.');
        struct str outer = dot < known.n ? str_sub(known, 0, dot) : STR("");

        if (dot < known.n)
            key = str_from(known, dot + 1);
        if (str_eq(outer, path))
            ret = arena_printf(a, "%.*s%s%.*s", STR_F(ret), ret.n ? ", " : "", STR_F(key));
    }
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        struct str known = str_c(CONFIG_OPTIONS[i].path), key;

        if (path.n && !(str_has_prefix(known, path) && known.n > path.n && known.p[path.n] == '.'))
            continue;
        known = path.n ? str_from(known, path.n + 1) : known;
        key = str_cut(&known, '.');
        if (str_eq(key, last))
            continue;
        last = key;
        ret = arena_printf(a, "%.*s%s%.*s", STR_F(ret), ret.n ? ", " : "", STR_F(key));
    }
    return ret;
}

/* Options nest at most three deep; what is deeper is a value or unknown. */
static int check_keys(struct arena *a, const cJSON *object, struct str path, struct err *err)
{
    json_each(member, object)
    {
        struct str at =
            path.n ? arena_printf(a, "%.*s.%s", STR_F(path), member->string) : json_key(member);
        bool inner;

        if (strchr(member->string, '.') || !path_known(at, &inner))
            return err_set(err, &ERR_BAD_REQUEST, "config: %.*s: unknown key: known here are %.*s",
                           STR_F(at), STR_F(known_below(a, path)));
        if (!inner || json_is_null(member))
            continue;
        if (!json_is_object(member))
            return config_wrong_type(err, arena_printf(a, "config: %.*s", STR_F(at)), "an object",
                                     member);
        if (check_keys(a, member, at, err))
            return -1;
    }
    return 0;
}

/* ---- variables and flags ---- */

/* Puts a value over what the tree has at the option's path. */
static void overlay(struct arena *a, cJSON *tree, const struct option *option, cJSON *node)
{
    struct str path = str_c(option->path);
    size_t dot = str_rfind(path, '.');

    if (dot == path.n) {
        json_set(a, tree, option->path, node);
        return;
    }
    tree = json_ensure_path(a, tree, arena_cstr(a, str_sub(path, 0, dot)));
    json_set(a, tree, option->path + dot + 1, node);
}

static int apply_text(struct config *config, cJSON *tree, const struct option *option,
                      struct str where, struct str text, struct err *err)
{
    cJSON *node;

    if (option_node(config->arena, option, where, text, &node, err))
        return -1;
    if (option_store(config->arena, option, where, node, config, err))
        return -1;
    overlay(config->arena, tree, option, node);
    return 0;
}

static int apply_environment(struct config *config, cJSON *tree, char *const *environ_,
                             struct err *err)
{
    for (size_t i = 0; environ_ && environ_[i]; i++) {
        struct str value = str_c(environ_[i]), name;

        if (!str_has_prefix(value, STR("SUBLET_")) || str_find(value, '=') == value.n)
            continue;
        name = str_cut(&value, '=');
        for (size_t k = 0; k < CONFIG_N_OPTIONS; k++) {
            if (str_eqc(name, CONFIG_OPTIONS[k].env) &&
                apply_text(config, tree, &CONFIG_OPTIONS[k], name, value, err))
                return -1;
        }
    }
    return 0;
}

static const struct option *find_flag(struct str flag)
{
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        if (CONFIG_OPTIONS[i].flag && str_eqc(flag, CONFIG_OPTIONS[i].flag))
            return &CONFIG_OPTIONS[i];
    }
    return NULL;
}

/* "--flag value" and "--flag=value". */
static int apply_arguments(struct config *config, cJSON *tree, int argc, char *const *argv,
                           struct err *err)
{
    for (int i = 0; i < argc; i++) {
        struct str value = str_c(argv[i]), flag = str_cut(&value, '=');
        const struct option *option = find_flag(flag);

        if (!str_has_prefix(flag, STR("--")))
            return err_set(err, &ERR_BAD_REQUEST, "unexpected argument \"%s\"", argv[i]);
        if (!option && !str_eqc(flag, "--config"))
            return err_set(err, &ERR_BAD_REQUEST, "unknown flag %.*s", STR_F(flag));
        if (!value.p) {
            if (i + 1 == argc)
                return err_set(err, &ERR_BAD_REQUEST, "%.*s: needs a value", STR_F(flag));
            value = str_c(argv[++i]);
        }
        if (option && apply_text(config, tree, option, flag, value, err))
            return -1;
    }
    return 0;
}

/* ---- what a value means beyond its type ---- */

static int bad_value(struct err *err, const char *path, struct str value, const char *why)
{
    return err_set(err, &ERR_BAD_REQUEST, "config: %s: \"%.*s\": %s", path, STR_F(value), why);
}

/* "host:port", "[v6]:port" or ":port". */
static bool address_valid(struct str address)
{
    size_t colon = str_rfind(address, ':');
    struct str host = str_sub(address, 0, colon);
    uint64_t port;

    if (colon == address.n || !str_to_u64(str_from(address, colon + 1), &port) || port > 65535)
        return false;
    if (host.n && host.p[0] == '[')
        return host.p[host.n - 1] == ']';
    return str_find(host, ':') == host.n;
}

/* "https://name", with a port and a path at most: nothing that would need quoting in a kubeconfig.
 */
bool config_url_valid(struct str url)
{
    static const char plain[] = "-._~:/[]";
    struct str scheme = STR("https://");

    if (!str_has_prefix(url, scheme) || url.n == scheme.n || url.p[scheme.n] == '/' ||
        url.p[scheme.n] == ':')
        return false;
    for (size_t i = scheme.n; i < url.n; i++) {
        unsigned char c = (unsigned char)url.p[i];

        if (!isalnum(c) && (!c || !strchr(plain, c)))
            return false;
    }
    return true;
}

static bool is_ip(struct arena *a, struct str text)
{
    unsigned char out[sizeof(struct in6_addr)];
    const char *p = arena_cstr(a, text);

    return strlen(p) == text.n &&
           (inet_pton(AF_INET, p, out) == 1 || inet_pton(AF_INET6, p, out) == 1);
}

static int check_allow(struct str_list list, const char *path, struct err *err)
{
    for (size_t i = 0; i < list.n; i++) {
        struct str key = list.items[i];
        bool prefix = key.n && key.p[key.n - 1] == '/';
        const char *why = prefix ? name_check_dns1123_subdomain(str_sub(key, 0, key.n - 1))
                                 : name_check_qualified(key);

        if (why)
            return bad_value(err, path, key, why);
        if (str_has_prefix(key, STR("sublet.dev/")))
            return bad_value(err, path, key, "keys of sublet.dev are never a tenant's");
        if (config_key_steers(key))
            return bad_value(err, path, key,
                             "queueing systems and GPU schedulers take orders by it: it is never a "
                             "tenant's, and scheduler of a pool sets it");
    }
    return 0;
}

/* Those that an API server, its controllers or its clients act on. */
static bool is_of_kubernetes(struct str key)
{
    static const char *const bare[] = {"pod-template-hash", "controller-revision-hash", "job-name",
                                       "controller-uid"};
    struct str domain = str_sub(key, 0, str_find(key, '/'));

    for (size_t i = 0; i < COUNT(bare); i++) {
        if (str_eqc(key, bare[i]))
            return true;
    }
    return domain.n < key.n &&
           (str_eqc(domain, "kubernetes.io") || str_has_suffix(domain, STR(".kubernetes.io")) ||
            str_eqc(domain, "k8s.io") || str_has_suffix(domain, STR(".k8s.io")));
}

#define KEYS_UP_MAX  64
#define KEYS_UP_TEXT "64"

static int check_up(struct str_list list, const char *path, struct err *err)
{
    if (list.n > KEYS_UP_MAX)
        return bad_value(err, path, list.items[KEYS_UP_MAX], "want at most " KEYS_UP_TEXT " keys");
    if (check_allow(list, path, err))
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        if (is_of_kubernetes(list.items[i]))
            return bad_value(err, path, list.items[i],
                             "components of Kubernetes act on it: it never comes up");
        if (config_key_installs(list.items[i]))
            return bad_value(err, path, list.items[i],
                             "a tool of the tenant would take the object for one that it has "
                             "installed: it never comes up");
    }
    return 0;
}

static int check_lists(const struct config *c, struct err *err)
{
    if (check_allow(c->labels_allow, "policy.labels.allow", err) ||
        check_allow(c->annotations_allow, "policy.annotations.allow", err) ||
        check_up(c->labels_up, "policy.labels.fromHost", err))
        return -1;
    return check_up(c->annotations_up, "policy.annotations.fromHost", err);
}

static int check_grants_labels(struct str_list list, struct err *err)
{
    const char *why;

    if (list.n > CONFIG_GRANTS_LABELS)
        return bad_value(err, "grants.labels", list.items[CONFIG_GRANTS_LABELS],
                         "want at most " CONFIG_GRANTS_LABELS_TEXT " keys");
    for (size_t i = 0; i < list.n; i++)
        if ((why = name_check_qualified(list.items[i])))
            return bad_value(err, "grants.labels", list.items[i], why);
    return 0;
}

static int check_cpu_nodes(struct str_list list, struct err *err)
{
    for (size_t i = 0; i < list.n; i++) {
        struct str value = list.items[i], key = str_cut(&value, '=');
        const char *why = name_check_qualified(key);

        why = why ? why : name_check_label_value(value);
        if (why || !value.n)
            return bad_value(err, "policy.cpuNodes", list.items[i], why ? why : "want key=value");
    }
    return 0;
}

static int check_values(struct config *config, struct err *err)
{
    const char *why = name_check_dns1123_label(config->name);

    if (why)
        return bad_value(err, "name", config->name, why);
    why = config->host_namespace.n ? name_check_dns1123_label(config->host_namespace) : NULL;
    if (why)
        return bad_value(err, "host.namespace", config->host_namespace, why);
    why = config->service_namespace.n ? name_check_dns1123_label(config->service_namespace) : NULL;
    if (why)
        return bad_value(err, "host.serviceNamespace", config->service_namespace, why);
    why = config->pod_service_account.n ? name_check_dns1123_subdomain(config->pod_service_account)
                                        : NULL;
    if (why)
        return bad_value(err, "host.podServiceAccount", config->pod_service_account, why);
    if (!address_valid(config->listen_address))
        return bad_value(err, "listen.address", config->listen_address, "want address:port");
    if (!config->data_dir.n)
        return bad_value(err, "store.path", config->data_dir, "must not be empty");
    why = name_check_dns1123_subdomain(config->cluster_domain);
    if (why)
        return bad_value(err, "network.clusterDomain", config->cluster_domain, why);
    if (config->api_address.n && !is_ip(config->arena, config->api_address))
        return bad_value(err, "network.apiAddress", config->api_address, "want an IP address");
    if (config->kubeconfig_server.n && !config_url_valid(config->kubeconfig_server))
        return bad_value(err, "kubeconfig.server", config->kubeconfig_server,
                         "want https://name or https://name:port");
    why = config_context_check(config->kubeconfig_context);
    if (why)
        return bad_value(err, "kubeconfig.context", config->kubeconfig_context, why);
    if (check_cpu_nodes(config->cpu_nodes, err))
        return -1;
    if (check_grants_labels(config->grants_labels, err))
        return -1;
    return check_lists(config, err);
}

/* Of what has meaning only beside something else. */
static int check_nodes(const struct config *config, struct err *err)
{
    if (config->kubelet_addresses && !config->kubelets)
        return err_set(err, &ERR_BAD_REQUEST,
                       "config: sync.kubeletAddresses: needs sync.kubelets: own");
    if (!config->nodes_per_pool)
        return 0;
    if (config->kubelets)
        return bad_value(err, "sync.kubelets", STR("own"),
                         "sync.nodes perPool shows no node that has a kubelet");
    if (config->metrics_whole_nodes)
        return bad_value(err, "metrics.nodes", STR("whole"),
                         "sync.nodes perPool shows no node of the host");
    for (size_t i = 0; i < config->n_pools; i++)
        if (str_eqc(config->pools[i].name, POOL_NODE_NONE))
            return bad_value(err, "pools.name", config->pools[i].name,
                             "with sync.nodes perPool it is the node of pods without devices");
    return 0;
}

/* ---- loading ---- */

static int apply_defaults(struct config *config, struct err *err)
{
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        const struct option *option = &CONFIG_OPTIONS[i];
        cJSON *node;

        if (!option->otherwise[0])
            continue;
        if (option_node(config->arena, option, str_c(option->path), str_c(option->otherwise), &node,
                        err) ||
            option_store(config->arena, option, str_c(option->path), node, config, err))
            return -1;
    }
    return 0;
}

static int apply_file(struct config *config, const cJSON *tree, struct err *err)
{
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        const struct option *option = &CONFIG_OPTIONS[i];
        struct str where = arena_printf(config->arena, "config: %s", option->path);

        if (option_store(config->arena, option, where, json_path(tree, option->path), config, err))
            return -1;
    }
    return 0;
}

int config_load(struct arena *a, struct str file_text, int argc, char *const *argv,
                char *const *environ_, struct config *ret, struct err *err)
{
    struct config config = {.arena = a};
    cJSON *tree;

    if (parse_file(a, file_text, &tree, err) || check_keys(a, tree, STR_NULL, err))
        return -1;
    if (apply_defaults(&config, err) || apply_file(&config, tree, err))
        return -1;
    if (apply_environment(&config, tree, environ_, err) ||
        apply_arguments(&config, tree, argc, argv, err))
        return -1;
    if (check_values(&config, err) || config_check_telemetry(&config, err) ||
        config_check_webhook_urls(&config, err) || config_load_pools(a, tree, &config, err) ||
        config_load_authentication(a, tree, &config, err) ||
        config_load_init(a, tree, &config, err) || config_load_kubeconfigs(a, tree, &config, err) ||
        config_load_to_host(a, tree, &config, err) ||
        config_load_sync_from(a, tree, &config, err) || check_nodes(&config, err))
        return -1;
    config.tree = tree;
    *ret = config;
    return 0;
}
