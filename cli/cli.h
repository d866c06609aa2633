/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program. Each gets the arguments after its own name and returns an exit code.
 */
#pragma once

#include <sublet/config.h>
#include <sublet/embedded.h>

#define SUBLET_VERSION     "0.1.0"
#define KUBERNETES_VERSION "v1.36.3"

int cmd_serve(int argc, char **argv);
int cmd_host(int argc, char **argv);
int cmd_kubeconfig(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_certs(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_fleet(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_ledger(int argc, char **argv);

/* Takes --data-dir or --postgres: the location of a ledger. */
int cli_ledger(struct arena *a, int *argc, char **argv, struct str *ret,
               struct err *err) MUST_CHECK;

/* Of `sublet report WORD`: is it one of the commands about statements, and that command, with its
 * name first. */
bool cli_is_statement(const char *word);
int cli_statement(int argc, char **argv);

/* Where a store's data is read from: the directory when no process has it open, else a copy that
 * the process that owns it makes, and that is removed afterwards. */
int cli_with_data(struct arena *a, const char *directory,
                  int (*use)(void *ctx, const char *path, struct err *err), void *ctx,
                  struct err *err) MUST_CHECK;

/* Reads the file of --config, then variables and flags, which override it. Prints the error; -1
 * then. */
int cli_config(struct arena *a, int argc, char **argv, struct config *ret);
/* Prints an error, -1: in a pod, where the host is expected to be its own, no namespace is
 * known. */
int cli_need_namespace(const struct config *config);
/* The same for the `config:` part of the chart's values at path. */
int cli_values(struct arena *a, const char *path, int argc, char **argv, struct config *ret);
/* Runs one control plane until a signal ends it. host: of an embedded host; NULL: a virtual
 * cluster. Everything lives in a. Returns the exit code. */
int cli_run(struct arena *a, const struct config *config, const struct embedded_options *host);
