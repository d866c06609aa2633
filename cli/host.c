/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet host`: an embedded host with simulated machines, to try everything without a cluster. It
 * has few options and reads no environment: that belongs to the virtual clusters beside it. Must
 * report errors in its arguments and its nodes file before anything is opened. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include <sublet/file.h>

#define NODES_LIMIT (1u << 20)

static const char HELP[] =
    "usage: sublet host [OPTIONS]\n"
    "\n"
    "  --data-dir D        directory of the store and the kubeconfig (default sublet-host)\n"
    "  --listen ADDR:PORT  where the API is served (default 127.0.0.1:6443)\n"
    "  --nodes F           YAML file of the simulated machines (default: 2 with 8 A100 each, 2 "
    "with\n"
    "                      8 L4 each, 2 without GPUs)\n"
    "  --controllers W     native, or external: upstream's kube-controller-manager runs them\n"
    "  --scheduler W       native, or external: upstream's kube-scheduler binds pods\n"
    "  --name N            name of the cluster in the kubeconfig (default host)\n"
    "  --log-level L       error, warn, info or debug (default warn)\n";

/* What an embedded host is unless its flags say otherwise. */
static char *const DEFAULTS[] = {
    (char[]){"--name=host"},
    (char[]){"--data-dir=sublet-host"},
    (char[]){"--listen=127.0.0.1:6443"},
    (char[]){"--log-level=warn"},
};
#define N_DEFAULTS COUNT(DEFAULTS)
static const char *const TAKEN[] = {"--name", "--data-dir", "--listen", "--log-level",
                                    "--controllers"};
#define N_TAKEN COUNT(TAKEN)

enum own_flag { OWN_NODES, OWN_SCHEDULER, N_OWN };
static const char *const OWN[N_OWN] = {"--nodes", "--scheduler"};

/* Its index in a table, or n. */
static size_t flag_in(const char *const *table, size_t n, struct str flag)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(flag, table[i]))
            return i;
    }
    return n;
}

/* Splits our own flags off; what is left is for config_load(). */
static int sort_arguments(int argc, char **argv, char **ret_args, int *ret_n,
                          const char *ret_own[N_OWN], struct err *err)
{
    for (int i = 0; i < argc; i++) {
        struct str value = str_c(argv[i]), flag = str_cut(&value, '=');
        size_t own = flag_in(OWN, N_OWN, flag);

        if (own == N_OWN && flag_in(TAKEN, N_TAKEN, flag) == N_TAKEN)
            return err_set(err, &ERR_BAD_REQUEST, "host: unknown argument \"%s\"", argv[i]);
        if (!value.p && i + 1 == argc)
            return err_set(err, &ERR_BAD_REQUEST, "%.*s: needs a value", STR_F(flag));
        if (own < N_OWN)
            ret_own[own] = value.p ? value.p : argv[i + 1];
        else
            ret_args[(*ret_n)++] = argv[i];
        if (value.p)
            continue;
        i++;
        if (own == N_OWN)
            ret_args[(*ret_n)++] = argv[i];
    }
    return 0;
}

static int read_scheduler(const char *word, struct embedded_options *ret, struct err *err)
{
    ret->external_scheduler = word && !strcmp(word, "external");
    if (!word || ret->external_scheduler || !strcmp(word, "native"))
        return 0;
    return err_set(err, &ERR_BAD_REQUEST,
                   "--scheduler: unknown value \"%s\": want one of external|native", word);
}

static int load(struct arena *a, int argc, char **argv, struct config *config,
                struct embedded_options *ret_host, struct err *err)
{
    char **args = arena_alloc(a, ((size_t)argc + N_DEFAULTS) * sizeof(*args));
    char *const no_environment[] = {NULL};
    const char *own[N_OWN] = {NULL};
    int n = 0;

    for (size_t i = 0; i < N_DEFAULTS; i++)
        args[n++] = DEFAULTS[i];
    if (sort_arguments(argc, argv, args, &n, own, err) ||
        read_scheduler(own[OWN_SCHEDULER], ret_host, err) ||
        config_load(a, STR(""), n, args, no_environment, config, err))
        return -1;
    ret_host->external_controllers = !config->controllers_native;
    ret_host->nodes = STR("");
    if (own[OWN_NODES] && file_read(a, str_c(own[OWN_NODES]), NODES_LIMIT, &ret_host->nodes, err))
        return -1;
    return embedded_check_nodes(ret_host->nodes, err);
}

int cmd_host(int argc, char **argv)
{
    struct arena *a;
    struct config config;
    struct embedded_options host;
    struct err err;
    int code = 2;

    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(HELP, stdout);
            return 0;
        }
    }
    a = arena_new(0);
    err_init(&err, a);
    if (load(a, argc, argv, &config, &host, &err))
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        code = cli_run(a, &config, &host);
    arena_free(a);
    return code;
}
