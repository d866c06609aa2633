/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet certs`: what the running process has of certificates, and the admin's orders about them,
 * by the control socket. Must never touch a key itself. */
#include "arguments.h"
#include "cli.h"
#include "control.h"

#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "usage: sublet certs check|renew|rotate-ca|retire-ca [--config FILE] [--data-dir DIR]\n\n"
    "Of the running virtual cluster:\n"
    "  check      print its certificates and when they end\n"
    "  renew      issue the serving certificate and the admin's kubeconfig again, now\n"
    "  rotate-ca  make a new certificate authority. The previous one stays trusted, so that no\n"
    "             kubeconfig, pod or connection is cut off\n"
    "  retire-ca  end the trust in the previous authority: what it signed is refused\n";

/* The answer of the process to one of the words above: a JSON array, or an error. */
static int print_list(struct arena *a, struct str text, struct err *err)
{
    cJSON *list;

    if (json_parse(a, text, &list, err))
        return -1;
    printf("%-14s %-22s %s\n", "CERTIFICATE", "ISSUED", "ENDS");
    json_each(item, list)
    {
        printf("%-14.*s %-22.*s %.*s\n", STR_F(json_str(json_get(item, "name"))),
               STR_F(time_format_s(a, json_i64_at(item, "from", 0))),
               STR_F(time_format_s(a, json_i64_at(item, "until", 0))));
    }
    return 0;
}

static int run(struct arena *a, const char *word, int argc, char **argv)
{
    struct config config;
    struct str text;
    struct err err;

    if (cli_config(a, argc, argv, &config))
        return 2;
    err_init(&err, a);
    if (!control_request(a, arena_cstr(a, config.data_dir), "certs", str_c(word), &text, &err) &&
        !print_list(a, text, &err))
        return 0;
    fprintf(stderr, "sublet: %.*s\n", STR_F(err.message));
    return err.kind == &ERR_BAD_REQUEST ? 1 : 2;
}

int cmd_certs(int argc, char **argv)
{
    struct arena *a;
    int code;

    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        return 0;
    }
    if (!argc || str_word_index("check|renew|rotate-ca|retire-ca", str_c(argv[0])) < 0) {
        fputs(HELP, stderr);
        return 2;
    }
    a = arena_new(0);
    code = run(a, argv[0], argc - 1, argv + 1);
    arena_free(a);
    return code;
}
