/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet check`: what is wrong with a configuration and, when told to, with the host it names.
 * Must never need a host unless `--host` is given, and never change one. */
#include "arguments.h"
#include "cli.h"

#include <stdio.h>

#include <sublet/host_check.h>

static const char HELP[] =
    "usage: sublet check [--config FILE | --values FILE] [--host] [flags of serve]\n\n"
    "Reads the configuration as `sublet serve` would, or the `config:` part of the chart's "
    "values,\n"
    "and says what is wrong with it. With --host it also tries the host cluster with the\n"
    "credentials of the configuration: connection, rights, namespace, quotas, pools and storage\n"
    "classes. It changes nothing there. Exit code 1 when something required is missing.\n";

static void print_finding(void *ctx, enum host_finding level, struct str what, struct str text)
{
    static const char *const words[] = {[HOST_FINDING_OK] = "ok",
                                        [HOST_FINDING_WARNING] = "warning",
                                        [HOST_FINDING_MISSING] = "missing"};

    (void)ctx;
    printf("%-8s %-30.*s %.*s\n", words[level], STR_F(what), STR_F(text));
}

static int check_host(struct arena *a, const struct config *config)
{
    struct err err;
    int missing;

    err_init(&err, a);
    if (!config->host_namespace.n) {
        fprintf(stderr, "sublet: host.namespace is not given\n");
        return -1;
    }
    missing = host_check(a, config, print_finding, NULL, &err);
    if (missing < 0)
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        printf("host: %d required missing\n", missing);
    return missing;
}

int cmd_check(int argc, char **argv)
{
    const char *values = arguments_take(&argc, argv, "--values");
    bool host = arguments_take_switch(&argc, argv, "--host");
    struct arena *a;
    struct config config;
    int code;

    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        return 0;
    }
    a = arena_new(0);
    code = values ? cli_values(a, values, argc, argv, &config) : cli_config(a, argc, argv, &config);
    if (!code)
        printf("%.*s: %zu pools, %zu bindings\n", STR_F(config.name), config.n_pools,
               config.n_bindings);
    if (!code && host)
        code = check_host(a, &config);
    arena_free(a);
    return code ? 1 : 0;
}
