/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the command and runs it. Must not know what commands do. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("sublet %s (Kubernetes %s)\n", SUBLET_VERSION, KUBERNETES_VERSION);
    return 0;
}

static int cmd_help(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} COMMANDS[] = {
    {"serve", cmd_serve, "run a virtual cluster"},
    {"host", cmd_host, "run an embedded host with simulated machines, to try things"},
    {"fleet", cmd_fleet, "keep the ledger of a host cluster's GPUs, beside its virtual clusters"},
    {"report", cmd_report, "print usage and cost per team out of that ledger"},
    {"ledger", cmd_ledger, "copy that ledger into another database"},
    {"kubeconfig", cmd_kubeconfig, "print the kubeconfig of a data directory's virtual cluster"},
    {"check", cmd_check, "report problems of a configuration, a host or stored data"},
    {"explain", cmd_explain, "show what the host gets of an object, and why"},
    {"certs", cmd_certs, "show certificates, renew them, replace the certificate authority"},
    {"backup", cmd_backup, "copy a virtual cluster into one file, while it serves or not"},
    {"restore", cmd_restore, "make an empty data directory of such a file"},
    {"version", cmd_version, "print the versions"},
    {"help", cmd_help, "print this, or the options of `serve`"},
};

static void usage(FILE *out)
{
    fputs("usage: sublet COMMAND [OPTIONS]\n\n", out);
    for (size_t i = 0; i < COUNT(COMMANDS); i++)
        fprintf(out, "  %-12s %s\n", COMMANDS[i].name, COMMANDS[i].help);
}

static int cmd_help(int argc, char **argv)
{
    if (argc > 0 && !strcmp(argv[0], "serve")) {
        struct buf text = BUF_INIT(0);

        config_help(&text, "serve");
        printf("%.*s", STR_F(buf_str(&text)));
        buf_fini(&text);
        return 0;
    }
    usage(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    if (!strcmp(name, "--version"))
        name = "version";
    for (size_t i = 0; i < COUNT(COMMANDS); i++) {
        if (!strcmp(name, COMMANDS[i].name))
            return COMMANDS[i].run(argc - 2, argv + 2);
    }
    fprintf(stderr, "sublet: unknown command \"%s\"\n", argv[1]);
    usage(stderr);
    return 2;
}
