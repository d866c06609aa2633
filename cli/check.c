/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet check`: what is wrong with a configuration, with the host it names when `--host` is
 * given, and with the data of `--data-dir`. Must never change any of them, nor need a host unasked.
 */
#include "arguments.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include <sublet/host_check.h>
#include <sublet/kinds.h>
#include <sublet/store_admin.h>

static const char HELP[] =
    "usage: sublet check [--config FILE | --values FILE] [--host] [flags of serve]\n"
    "       sublet check --data-dir DIR\n\n"
    "Reads the configuration as `sublet serve` would, or the `config:` part of the chart's "
    "values,\n"
    "and says what is wrong with it. With --host it also tries the host cluster with the\n"
    "credentials of the configuration: connection, rights, namespace, quotas, pools and storage\n"
    "classes. It changes nothing there. Exit code 1 when something required is missing.\n\n"
    "With --data-dir alone it checks the stored data instead: the checksums of all rows, the\n"
    "structure of the file, and whether every object can be read. The data is only read; a "
    "process\n"
    "that serves it goes on meanwhile. Exit code 1 when anything is damaged.\n";

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

/* ---- the data ---- */

static void print_damage(void *ctx, const struct store_finding *f)
{
    (void)ctx;
    printf("damaged  %s", f->what);
    if (f->resource.n)
        printf(" %.*s", STR_F(f->resource));
    if (f->name.n)
        printf(" %.*s%s%.*s", STR_F(f->ns), f->ns.n ? "/" : "", STR_F(f->name));
    printf(": %.*s\n", STR_F(f->why));
}

static int check_path(void *ctx, const char *path, struct err *err)
{
    struct store_options options = {.readable = kinds_stored_readable};

    *(int *)ctx = store_check(path, &options, print_damage, NULL, err);
    return *(int *)ctx < 0 ? -1 : 0;
}

static int check_data(const char *dir)
{
    struct arena *a = arena_new(0);
    struct err err;
    int found = -1;

    err_init(&err, a);
    if (cli_with_data(a, dir, check_path, &found, &err))
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        printf("%s: %d damaged\n", dir, found);
    arena_free(a);
    return found ? 1 : 0;
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
    if (argc == 2 && !strcmp(argv[0], "--data-dir") && !values && !host)
        return check_data(argv[1]);
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
