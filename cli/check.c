/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet check`: reports problems of a configuration; with `--host` of the host it names, with
 * `--data-dir` of the data. Must never change any of them, nor contact a host without the flag. */
#include "arguments.h"
#include "cli.h"
#include "control.h"

#include <stdio.h>
#include <string.h>

#include <sublet/host_check.h>
#include <sublet/host_quarantine.h>
#include <sublet/kinds.h>
#include <sublet/json.h>
#include <sublet/store_admin.h>

static const char HELP[] =
    "usage: sublet check [--config FILE | --values FILE] [--host] [flags of serve]\n"
    "       sublet check --data-dir DIR\n"
    "       sublet check --host --data-dir DIR [--repair]\n\n"
    "Reads the configuration as `sublet serve` would, or the `config:` part of the chart's "
    "values,\n"
    "and reports its errors. With --host it also tries the host cluster with the\n"
    "credentials of the configuration: connection, rights, namespace, quotas, pools and storage\n"
    "classes. It changes nothing there. Exit code 1 when something required is missing.\n\n"
    "With --data-dir alone it checks the stored data instead: the checksums of all rows, the\n"
    "structure of the file, and whether every object can be read. The data is only read; a\n"
    "process that serves it goes on meanwhile. Exit code 1 when anything is damaged or a start\n"
    "would fail, 2 when the data cannot be checked. Objects that the host keeps although no\n"
    "record here proves them are listed as well; they are no damage.\n\n"
    "With both it asks the process that serves DIR to compare the host's objects with its own: "
    "what\n"
    "is missing, drifted, extra, foreign, quarantined or damaged, and what mends it. --repair\n"
    "does what is safe: creates again, writes our fields back. Nothing that is not proven is\n"
    "changed or deleted.\n"
    "Exit code 1 when there are findings, 2 when the sides cannot be compared.\n";

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
    missing = sync_host_check(a, config, print_finding, NULL, &err);
    if (missing < 0)
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        printf("host: %d required missing\n", missing);
    return missing;
}

/* ---- the data ---- */

struct data {
    int damaged, quarantined;
};

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

static void print_quarantined(void *ctx, const struct host_quarantine *q)
{
    struct data *d = ctx;

    d->quarantined++;
    printf("kept     %.*s %.*s/%.*s: the host has %s as %.*s (uid %.*s), and no record here proves "
           "it\n",
           STR_F(q->kind), STR_F(q->ns), STR_F(q->name),
           q->tokens ? "the tokens of this pod" : "it", STR_F(q->host_name), STR_F(q->host_uid));
}

static void on_opened(void *ctx, struct store *s)
{
    host_quarantine_each(s, print_quarantined, ctx);
}

static int check_path(void *ctx, const char *path, struct err *err)
{
    struct store_options options = {.readable = kinds_stored_readable};
    struct store_check_calls calls = {print_damage, on_opened, ctx};
    struct data *d = ctx;

    d->damaged = store_check(path, &options, &calls, err);
    return d->damaged < 0 ? -1 : 0;
}

static int check_data(const char *dir)
{
    struct arena *a = arena_new(0);
    struct data d = {0};
    struct err err;
    int result;

    err_init(&err, a);
    result = cli_with_data(a, dir, check_path, &d, &err);
    if (result)
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    else
        printf("%s: %d damaged, %d kept on the host\n", dir, d.damaged, d.quarantined);
    arena_free(a);
    return result ? 2 : d.damaged ? 1 : 0;
}

/* ---- both sides ---- */

static void print_side(const cJSON *f)
{
    struct str ns = json_str(json_get(f, "namespace")), action = json_str(json_get(f, "action"));

    printf("%-11.*s %.*s ", STR_F(json_str(json_get(f, "state"))),
           STR_F(json_str(json_get(f, "resource"))));
    if (ns.n)
        printf("%.*s/%.*s ", STR_F(ns), STR_F(json_str(json_get(f, "name"))));
    printf("(%.*s on the host): %.*s\n            %.*s\n", STR_F(json_str(json_get(f, "host"))),
           STR_F(json_str(json_get(f, "why"))), STR_F(action));
}

static int compare_sides(const char *dir, bool repair)
{
    struct arena *a = arena_new(0);
    struct str text = STR("");
    cJSON *answer = NULL;
    int64_t found = 0;
    struct err err;
    int code = 2;

    err_init(&err, a);
    if (control_request(a, dir, "compare", repair ? STR("repair") : STR(""), &text, &err) ||
        json_parse(a, text, &answer, &err)) {
        fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    } else {
        json_each(finding, json_get(answer, "findings")) print_side(finding);
        found = json_i64_at(answer, "found", 0);
        printf("%s: %lld compared, %lld findings, %lld repairs requested\n", dir,
               (long long)json_i64_at(answer, "checked", 0), (long long)found,
               (long long)json_i64_at(answer, "repaired", 0));
        code = found > 0;
    }
    arena_free(a);
    return code;
}

int cmd_check(int argc, char **argv)
{
    const char *values = arguments_take(&argc, argv, "--values");
    bool host = arguments_take_switch(&argc, argv, "--host");
    bool repair = arguments_take_switch(&argc, argv, "--repair");
    struct arena *a;
    struct config config;
    int code;

    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        return 0;
    }
    if (argc == 2 && !strcmp(argv[0], "--data-dir") && !values)
        return host ? compare_sides(argv[1], repair) : check_data(argv[1]);
    if (repair) {
        fputs(HELP, stderr);
        return 2;
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
