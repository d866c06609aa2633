/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration for the commands. A file that is read is bounded. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sublet/file.h>
#include <sublet/yaml.h>

#define CONFIG_LIMIT  (4u << 20)
#define OWN_NAMESPACE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

extern char **environ;

static const char *config_path(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--config") && i + 1 < argc)
            return argv[i + 1];
        if (!strncmp(argv[i], "--config=", 9))
            return argv[i] + 9;
    }
    return NULL;
}

static bool lacks_namespace(const struct config *config)
{
    return !config->host_namespace.n && !config->host_kubeconfig.n &&
           getenv("KUBERNETES_SERVICE_HOST");
}

/* In a pod, without a configured namespace, the pod's own is used. A pod without an account's token
 * has none: commands that reach no host do without. */
static int load(struct arena *a, struct str text, int argc, char **argv, struct config *ret,
                struct err *err)
{
    struct str own;

    if (config_load(a, text, argc, argv, environ, ret, err))
        return -1;
    if (lacks_namespace(ret) && !file_read(a, STR(OWN_NAMESPACE), 256, &own, NULL))
        ret->host_namespace = str_trim(own);
    return 0;
}

int cli_need_namespace(const struct config *config)
{
    if (!lacks_namespace(config))
        return 0;
    fprintf(stderr, "sublet: host.namespace is not given, and " OWN_NAMESPACE " cannot be read\n");
    return -1;
}

static int say(const struct err *err)
{
    fprintf(stderr, "sublet: %.*s\n", STR_F(err->message));
    return -1;
}

int cli_config(struct arena *a, int argc, char **argv, struct config *ret)
{
    const char *path = config_path(argc, argv);
    struct str text = STR("");
    struct err err;

    err_init(&err, a);
    if ((path && file_read(a, str_c(path), CONFIG_LIMIT, &text, &err)) ||
        load(a, text, argc, argv, ret, &err))
        return say(&err);
    return 0;
}

int cli_values(struct arena *a, const char *path, int argc, char **argv, struct config *ret)
{
    struct str text;
    cJSON *values = NULL;
    struct err err;

    err_init(&err, a);
    if (file_read(a, str_c(path), CONFIG_LIMIT, &text, &err))
        return say(&err);
    if (yaml_parse(a, text, NULL, NULL, &values, &err)) {
        err_wrap(&err, "%s", path);
        return say(&err);
    }
    const cJSON *config = json_get(values, "config");
    if (load(a, config ? json_text(a, config) : STR(""), argc, argv, ret, &err))
        return say(&err);
    return 0;
}

int cmd_kubeconfig(int argc, char **argv)
{
    struct arena *a = arena_new(0);
    struct config config;
    struct str text;
    struct err err;
    int code = 1;

    err_init(&err, a);
    if (!cli_config(a, argc, argv, &config)) {
        const char *path = arena_printf(a, "%.*s/kubeconfig", STR_F(config.data_dir)).p;

        code = file_read(a, str_c(path), CONFIG_LIMIT, &text, &err) ? 1 : 0;
        if (code)
            fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
        else
            fwrite(text.p, 1, text.n, stdout);
    }
    arena_free(a);
    return code;
}
