/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet host`: an embedded host with simulated machines, to try everything without a cluster. It
 * has few options and reads no environment: that belongs to the virtual clusters beside it. Must
 * tell what is wrong with its arguments and its nodes file before anything is opened. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include <sublet/embedded.h>

#define NODES_LIMIT (1u << 20)

static const char HELP[] =
    "usage: sublet host [OPTIONS]\n"
    "\n"
    "  --data-dir D        directory of the store and the kubeconfig (default sublet-host)\n"
    "  --listen ADDR:PORT  where the API is served (default 127.0.0.1:6443)\n"
    "  --nodes F           YAML file of the simulated machines (default: 2 with 8 A100 each, 2 "
    "with\n"
    "                      8 L4 each, 2 without GPUs)\n"
    "  --name N            name of the cluster in the kubeconfig (default host)\n"
    "  --log-level L       error, warn, info or debug (default warn)\n";

/* What an embedded host is unless it is told otherwise. */
static char *const DEFAULTS[] = {
    (char[]){"--name=host"},
    (char[]){"--data-dir=sublet-host"},
    (char[]){"--listen=127.0.0.1:6443"},
    (char[]){"--log-level=warn"},
};
#define N_DEFAULTS (sizeof(DEFAULTS) / sizeof(*DEFAULTS))
static const char *const TAKEN[] = {"--name", "--data-dir", "--listen", "--log-level"};

static bool is_taken(struct str flag)
{
    for (size_t i = 0; i < sizeof(TAKEN) / sizeof(*TAKEN); i++) {
        if (str_eqc(flag, TAKEN[i]))
            return true;
    }
    return false;
}

/* Splits --nodes off; what is left is for config_load(). */
static int sort_arguments(int argc, char **argv, char **ret_args, int *ret_n,
                          const char **ret_nodes, struct err *err)
{
    for (int i = 0; i < argc; i++) {
        struct str value = str_c(argv[i]), flag = str_cut(&value, '=');
        bool nodes = str_eqc(flag, "--nodes");

        if (!nodes && !is_taken(flag))
            return err_set(err, &ERR_BAD_REQUEST, "host: unknown argument \"%s\"", argv[i]);
        if (!value.p && i + 1 == argc)
            return err_set(err, &ERR_BAD_REQUEST, "%.*s: needs a value", STR_F(flag));
        if (nodes)
            *ret_nodes = value.p ? value.p : argv[i + 1];
        else
            ret_args[(*ret_n)++] = argv[i];
        if (value.p)
            continue;
        i++;
        if (!nodes)
            ret_args[(*ret_n)++] = argv[i];
    }
    return 0;
}

static int load(struct arena *a, int argc, char **argv, struct config *config,
                struct str *ret_nodes, struct err *err)
{
    char **args = arena_alloc(a, ((size_t)argc + N_DEFAULTS) * sizeof(*args));
    char *const no_environment[] = {NULL};
    const char *path = NULL;
    int n = 0;

    for (size_t i = 0; i < N_DEFAULTS; i++)
        args[n++] = DEFAULTS[i];
    if (sort_arguments(argc, argv, args, &n, &path, err) ||
        config_load(a, STR(""), n, args, no_environment, config, err))
        return -1;
    *ret_nodes = STR("");
    if (path && cli_read_file(a, path, NODES_LIMIT, ret_nodes, err))
        return -1;
    return embedded_check_nodes(*ret_nodes, err);
}

int cmd_host(int argc, char **argv)
{
    struct arena *a;
    struct config config;
    struct str nodes;
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
    if (load(a, argc, argv, &config, &nodes, &err))
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        code = cli_run(a, &config, &nodes);
    arena_free(a);
    return code;
}
