/* SPDX-License-Identifier: Apache-2.0 */
/* Reads credentials for the host: from a kubeconfig file, or a pod's service account volume.
 * Source: k8s.io/client-go tools/clientcmd/api/v1 and rest.InClusterConfig. Must never guess: what
 * it does not support (exec plugins, impersonation) is an error that names the field. */
#include "kubeconfig.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/file.h>
#include <sublet/yaml.h>

#define FILE_LIMIT (4u << 20)
#define ACCOUNT    "/var/run/secrets/kubernetes.io/serviceaccount/"

/* --- a file --- */

struct place {
    struct arena *arena;
    struct str directory;
    struct err *err;
};

static struct str resolve(const struct place *p, struct str path)
{
    if (path.n && path.p[0] == '/')
        return path;
    return arena_printf(p->arena, "%.*s/%.*s", STR_F(p->directory), STR_F(path));
}

/* Inline data wins over a file, as in client-go. */
static int read_pem(const struct place *p, const cJSON *from, const char *inline_key,
                    const char *file_key, struct str *ret)
{
    struct str data = json_str(json_get(from, inline_key));
    struct str file = json_str(json_get(from, file_key));

    if (data.n) {
        if (!base64_decode(p->arena, data, ret))
            return err_set(p->err, &ERR_BAD_REQUEST, "kubeconfig: %s: not base64", inline_key);
        return 0;
    }
    if (!file.n)
        return 0;
    return file_read(p->arena, resolve(p, file), FILE_LIMIT, ret, p->err);
}

static const cJSON *named(const cJSON *root, const char *list, const char *kind, struct str name)
{
    json_each(entry, json_get(root, list))
    {
        if (str_eq(json_str(json_get(entry, "name")), name))
            return json_get(entry, kind);
    }
    return NULL;
}

static int read_cluster(const struct place *p, const cJSON *cluster, struct kubeconfig *k)
{
    struct arena *a = p->arena;
    struct str server = json_str(json_get(cluster, "server"));

    while (server.n && server.p[server.n - 1] == '/')
        server.n--;
    if (!str_has_prefix(server, STR("https://")) && !str_has_prefix(server, STR("http://")))
        return err_set(p->err, &ERR_BAD_REQUEST,
                       "kubeconfig: server: want a URL with http or https, got \"%.*s\"",
                       STR_F(server));
    k->server = arena_str(a, server);
    k->tls_server_name = arena_str(a, json_str(json_get(cluster, "tls-server-name")));
    k->proxy_url = arena_str(a, json_str(json_get(cluster, "proxy-url")));
    k->insecure = json_true(json_get(cluster, "insecure-skip-tls-verify"));
    return read_pem(p, cluster, "certificate-authority-data", "certificate-authority", &k->ca);
}

static int refuse_unknown(const struct place *p, const cJSON *user)
{
    static const char *const unsupported[] = {"exec", "auth-provider", "as", "as-groups", "as-uid"};

    for (size_t i = 0; i < COUNT(unsupported); i++) {
        const cJSON *node = json_get(user, unsupported[i]);

        if (node && !json_is_null(node))
            return err_set(p->err, &ERR_BAD_REQUEST,
                           "kubeconfig: user.%s is not supported: use a token, a token file or a "
                           "client certificate",
                           unsupported[i]);
    }
    return 0;
}

static int read_user(const struct place *p, const cJSON *user, struct kubeconfig *k)
{
    struct arena *a = p->arena;
    struct str file = json_str(json_get(user, "tokenFile"));

    if (refuse_unknown(p, user))
        return -1;
    k->token = arena_str(a, json_str(json_get(user, "token")));
    k->token_file = file.n ? arena_str(a, resolve(p, file)) : STR("");
    k->username = arena_str(a, json_str(json_get(user, "username")));
    k->password = arena_str(a, json_str(json_get(user, "password")));
    if (read_pem(p, user, "client-certificate-data", "client-certificate", &k->certificate) ||
        read_pem(p, user, "client-key-data", "client-key", &k->key))
        return -1;
    if (!k->certificate.n != !k->key.n)
        return err_set(p->err, &ERR_BAD_REQUEST,
                       "kubeconfig: a client certificate and its key come together");
    return 0;
}

int host_kubeconfig_parse(struct arena *a, struct str yaml, struct str directory,
                          struct kubeconfig *ret, struct err *err)
{
    struct place p = {a, directory, err};
    struct kubeconfig k = {0};
    cJSON *root;

    if (yaml_parse(a, yaml, NULL, NULL, &root, err))
        return err_wrap(err, "kubeconfig");
    struct str current = json_str(json_get(root, "current-context"));
    const cJSON *context = named(root, "contexts", "context", current);
    if (!context)
        return err_set(err, &ERR_BAD_REQUEST, "kubeconfig: context \"%.*s\" does not exist",
                       STR_F(current));

    struct str cluster_name = json_str(json_get(context, "cluster"));
    const cJSON *cluster = named(root, "clusters", "cluster", cluster_name);
    if (!cluster)
        return err_set(err, &ERR_BAD_REQUEST, "kubeconfig: cluster \"%.*s\" does not exist",
                       STR_F(cluster_name));

    const cJSON *user = named(root, "users", "user", json_str(json_get(context, "user")));
    if (read_cluster(&p, cluster, &k) || read_user(&p, user, &k))
        return -1;
    *ret = k;
    return 0;
}

/* --- a pod --- */

int host_kubeconfig_in_cluster(struct arena *a, struct str host, struct str port,
                               struct str account, struct kubeconfig *ret, struct err *err)
{
    bool v6 = str_find(host, ':') != host.n;
    struct kubeconfig k = {.server = arena_printf(a, "https://%s%.*s%s:%.*s", v6 ? "[" : "",
                                                  STR_F(host), v6 ? "]" : "", STR_F(port)),
                           .token_file = arena_printf(a, "%.*stoken", STR_F(account)),
                           .ca_file = arena_printf(a, "%.*sca.crt", STR_F(account))};

    if (!host.n || !port.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "no host.kubeconfig, and not in a pod: KUBERNETES_SERVICE_HOST is not set");
    if (file_read(a, k.ca_file, FILE_LIMIT, &k.ca, err) ||
        file_read(a, k.token_file, FILE_LIMIT, &k.token, err))
        return err_wrap(err, "the pod's service account");
    *ret = k;
    return 0;
}

int host_kubeconfig_load(struct arena *a, struct str path, struct kubeconfig *ret, struct err *err)
{
    struct str text, directory;

    if (!path.n)
        return host_kubeconfig_in_cluster(a, str_c(getenv("KUBERNETES_SERVICE_HOST")),
                                          str_c(getenv("KUBERNETES_SERVICE_PORT")), STR(ACCOUNT),
                                          ret, err);
    if (file_read(a, path, FILE_LIMIT, &text, err))
        return -1;
    size_t slash = str_rfind(path, '/');
    directory = slash < path.n ? str_sub(path, 0, slash) : STR(".");
    return host_kubeconfig_parse(a, text, directory, ret, err);
}
