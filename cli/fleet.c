/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet fleet` and `sublet report`: the ledger of a host cluster's GPUs, kept and printed. Must
 * end with an error when the ledger cannot go on: whoever restarts it starts from what is on
 * record. */
#include "arguments.h"
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include <uv.h>

#include <sublet/file.h>
#include <sublet/fleet.h>
#include <sublet/fleet_ledger.h>
#include <sublet/fleet_report.h>
#include <sublet/log.h>

#define REPORT_MEMORY ((size_t)4 << 30)

static const char FLEET_HELP[] =
    "usage: sublet fleet --config F [OPTIONS]\n"
    "\n"
    "  Keeps the ledger of a host cluster: which pod held which GPUs of which pool, and when.\n"
    "\n"
    "  --config F           `pools:` as the tenants have them, `host:`, `store:`, `lease:`,\n"
    "                       `ledger:`, `grants:`\n"
    "  --data-dir D         directory of the ledger, or of what is beside it (default /data)\n"
    "  --namespace N        host namespace of its Lease\n"
    "  --host-kubeconfig F  credentials of the host; otherwise those of its pod\n"
    "  --listen A           address and port of /metrics (default: none)\n"
    "  --token-file F       bearer token of scrapes; needed but on a loopback address\n"
    "  --listen-cert F      certificate and key of that port, PEM (default: unencrypted)\n"
    "  --listen-key F\n"
    "  --page A             address and port of the page (default: none), for tokens of the\n"
    "                       host whose users may get the path /fleet/state\n"
    "  --page-cert F        its certificate and key, PEM; needed but on a loopback address\n"
    "  --page-key F\n"
    "  --page-audience A    what tokens must be for (default sublet-fleet; \"\": the host itself)\n"
    "  --log-level L        error, warn, info or debug\n";

static const char REPORT_HELP[] =
    "usage: sublet report --data-dir D|--postgres F [OPTIONS]\n"
    "       sublet report statement|verify|key --help\n"
    "\n"
    "  --data-dir D   directory of the ledger that `sublet fleet` keeps\n"
    "  --postgres F   file with the connection string of the database that has it\n"
    "  --from T       begin: 2026-11, 2026-11-26 or 2026-11-26T12:00:00Z (default: of the ledger)\n"
    "  --to T         end (default: until when the host was observed)\n"
    "  --by LIST      of tenant, namespace, owner, pod, pool, product, node, mode, label:KEY,\n"
    "                 reason, month\n"
    "                 (default tenant,pool)\n"
    "  --format W     table, csv, json, focus or html (default table)\n";

/* --- sublet fleet --- */

struct run {
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct fleet *fleet; /* NULL: closed, or closing */
    int code;
};

static void on_fleet_closed(void *ctx)
{
    struct run *r = ctx;

    for (size_t i = 0; i < COUNT(r->signals); i++)
        uv_close((uv_handle_t *)&r->signals[i], NULL);
}

static void end(struct run *r)
{
    struct fleet *f = r->fleet;

    r->fleet = NULL;
    if (f)
        fleet_close(f, on_fleet_closed, r);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    end(handle->data);
}

static void on_ready(void *ctx)
{
    (void)ctx;
    printf("sublet fleet: ready\n");
    fflush(stdout);
}

static void on_waiting(void *ctx, struct str holder)
{
    (void)ctx;
    log_info("fleet: another process has the Lease holder=\"%.*s\"", STR_F(holder));
}

static void on_failed(void *ctx, const struct err *err)
{
    struct run *r = ctx;

    fprintf(stderr, "sublet: fleet: %.*s\n", STR_F(err->message));
    r->code = 1;
    end(r);
}

struct listen {
    struct fleet_scrapes scrapes; /* address empty: no metrics */
    struct fleet_page page;       /* likewise */
};

static int ended(struct run *r)
{
    end(r);
    return -1;
}

static void say_port(const char *what, unsigned port)
{
    printf("sublet fleet: %s on port %u\n", what, port);
    fflush(stdout);
}

static int start(struct run *r, const struct fleet_options *options, const struct listen *listen,
                 struct err *err)
{
    unsigned port;

    if (fleet_new(options, &r->fleet, err)) {
        on_fleet_closed(r);
        return -1;
    }
    if (listen->scrapes.address.n) {
        if (fleet_listen(r->fleet, &listen->scrapes, &port, err))
            return ended(r);
        say_port("metrics", port);
    }
    if (listen->page.address.n) {
        if (fleet_show(r->fleet, &listen->page, &port, err))
            return ended(r);
        say_port("page", port);
    }
    return 0;
}

static int run_fleet(const struct config *config, const struct listen *listen, struct err *err)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    struct run r = {0};
    struct fleet_options options = {.loop = &r.loop,
                                    .clock = &CLOCK_SYSTEM,
                                    .rng = &RNG_SYSTEM,
                                    .config = config,
                                    .waiting = on_waiting,
                                    .ready = on_ready,
                                    .failed = on_failed,
                                    .ctx = &r};

    signal(SIGPIPE, SIG_IGN);
    umask(077);
    uv_loop_init(&r.loop);
    for (size_t i = 0; i < COUNT(r.signals); i++) {
        uv_signal_init(&r.loop, &r.signals[i]);
        r.signals[i].data = &r;
        uv_signal_start(&r.signals[i], on_signal, numbers[i]);
    }
    if (start(&r, &options, listen, err)) {
        fprintf(stderr, "sublet: fleet: %.*s\n", STR_F(err->message));
        r.code = 1;
    }
    uv_run(&r.loop, UV_RUN_DEFAULT);
    uv_loop_close(&r.loop);
    return r.code;
}

/* The value of a flag that may be missing, but not empty: an unset variable of a script must not
 * turn TLS off. */
static int take_file(int *argc, char **argv, const char *flag, struct str *ret, struct err *err)
{
    const char *value = arguments_take(argc, argv, flag);

    *ret = str_c(value);
    if (value && !*value)
        return err_set(err, &ERR_BAD_REQUEST, "%s is empty: it names a file", flag);
    return 0;
}

static int read_certificates(int *argc, char **argv, struct listen *ret, struct err *err)
{
    if (take_file(argc, argv, "--listen-cert", &ret->scrapes.certificate, err) ||
        take_file(argc, argv, "--listen-key", &ret->scrapes.key, err) ||
        take_file(argc, argv, "--page-cert", &ret->page.certificate, err) ||
        take_file(argc, argv, "--page-key", &ret->page.key, err))
        return -1;
    if (!ret->scrapes.certificate.n != !ret->scrapes.key.n)
        return err_set(err, &ERR_BAD_REQUEST, "--listen-cert and --listen-key belong together");
    if (!ret->page.certificate.n != !ret->page.key.n)
        return err_set(err, &ERR_BAD_REQUEST, "--page-cert and --page-key belong together");
    if (ret->scrapes.certificate.n && !ret->scrapes.address.n)
        return err_set(err, &ERR_BAD_REQUEST, "--listen-cert is given without --listen");
    if (ret->page.certificate.n && !ret->page.address.n)
        return err_set(err, &ERR_BAD_REQUEST, "--page-cert is given without --page");
    return 0;
}

static int read_listen(struct arena *a, int *argc, char **argv, struct listen *ret, struct err *err)
{
    const char *file = arguments_take(argc, argv, "--token-file");
    const char *audience = arguments_take(argc, argv, "--page-audience");

    *ret = (struct listen){.scrapes = {.address = str_c(arguments_take(argc, argv, "--listen"))},
                           .page = {.address = str_c(arguments_take(argc, argv, "--page")),
                                    .audience = str_c(audience ? audience : "sublet-fleet")}};
    if (read_certificates(argc, argv, ret, err))
        return -1;
    if (file && file_read(a, str_c(file), 4096, &ret->scrapes.token, err))
        return -1;
    ret->scrapes.token = str_trim(ret->scrapes.token);
    if (file && !ret->scrapes.token.n)
        return err_set(err, &ERR_BAD_REQUEST, "%s: no token is in it", file);
    return 0;
}

int cmd_fleet(int argc, char **argv)
{
    struct arena *a;
    struct config config;
    struct listen listen;
    struct err err;
    int code = 2;

    if (arguments_want_help(argc, argv)) {
        fputs(FLEET_HELP, stdout);
        return 0;
    }
    a = arena_new(0);
    err_init(&err, a);
    if (read_listen(a, &argc, argv, &listen, &err))
        fprintf(stderr, "sublet: fleet: %.*s\n", STR_F(err.message));
    else if (cli_config(a, argc, argv, &config))
        code = 2;
    else if (!config.host_namespace.n)
        fprintf(stderr, "sublet: fleet: host.namespace is needed: where its Lease is\n");
    else if (!config.n_pools && !config.grants)
        fprintf(stderr, "sublet: fleet: pools are needed: what the ledger is about\n");
    else
        code = run_fleet(&config, &listen, &err);
    arena_free(a);
    return code;
}

/* --- sublet report --- */

struct report {
    struct str location;
    int64_t from_us, until_us;
    unsigned columns;
    struct str label; /* of --by label:key */
    enum report_format format;
};

static int read_report(struct arena *a, int argc, char **argv, struct report *ret, struct err *err)
{
    const char *from = arguments_take(&argc, argv, "--from");
    const char *until = arguments_take(&argc, argv, "--to");
    const char *by = arguments_take(&argc, argv, "--by");
    const char *format = arguments_take(&argc, argv, "--format");
    int word = format ? str_word_index(REPORT_FORMATS, str_c(format)) : REPORT_TABLE;

    *ret = (struct report){.until_us = INT64_MAX};
    if (cli_ledger(a, &argc, argv, &ret->location, err))
        return -1;
    if (argc)
        return err_set(err, &ERR_BAD_REQUEST, "unknown argument \"%s\"", argv[0]);
    if (word < 0)
        return err_set(err, &ERR_BAD_REQUEST, "--format: unknown value \"%s\": want one of %s",
                       format, REPORT_FORMATS);
    ret->format = (enum report_format)word;
    if (report_columns(str_c(by ? by : "tenant,pool"), &ret->columns, &ret->label, err))
        return err_wrap(err, "--by");
    if (ret->format == REPORT_FOCUS)
        ret->columns |= REPORT_FOCUS_COLUMNS;
    if (from && report_time(a, str_c(from), &ret->from_us, err))
        return err_wrap(err, "--from");
    if (until && report_time(a, str_c(until), &ret->until_us, err))
        return err_wrap(err, "--to");
    return 0;
}

static void write_piece(void *ctx, struct str piece)
{
    (void)ctx;
    fwrite(piece.p, 1, piece.n, stdout);
}

static int print_report(struct arena *a, const struct report *r, struct err *err)
{
    const struct report_sink sink = {write_piece, NULL};
    const struct ledger_usage_request request = {.a = a,
                                                 .location = r->location,
                                                 .from_us = r->from_us,
                                                 .until_us = r->until_us,
                                                 .columns = r->columns,
                                                 .label = r->label};
    struct usage usage;

    if (ledger_usage(&request, &usage, err))
        return -1;
    report_write(&sink, &usage, r->columns, r->format);
    return fflush(stdout) || ferror(stdout)
               ? err_set(err, &ERR_STORAGE, "the report cannot be written")
               : 0;
}

int cmd_report(int argc, char **argv)
{
    struct arena *a;
    struct report report;
    struct err err;
    int code = 2;

    if (argc && cli_is_statement(argv[0]))
        return cli_statement(argc, argv);
    if (arguments_want_help(argc, argv)) {
        fputs(REPORT_HELP, stdout);
        return 0;
    }
    a = arena_new(REPORT_MEMORY);
    err_init(&err, a);
    if (!read_report(a, argc, argv, &report, &err))
        code = print_report(a, &report, &err) ? 1 : 0;
    if (code)
        fprintf(stderr, "sublet: report: %.*s\n", STR_F(err.message));
    arena_free(a);
    return code;
}
