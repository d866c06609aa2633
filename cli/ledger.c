/* SPDX-License-Identifier: Apache-2.0 */
/* Where a ledger is, on the command line: a directory, or a file that has the connection string of
 * a database. The string itself is no argument: every process of the machine can read those. */
#include "arguments.h"
#include "cli.h"

#include <sublet/fleet_ledger.h>

int cli_ledger(struct arena *a, int *argc, char **argv, struct str *ret, struct err *err)
{
    const char *directory = arguments_take(argc, argv, "--data-dir");
    const char *file = arguments_take(argc, argv, "--postgres");

    if (directory && file)
        return err_set(err, &ERR_BAD_REQUEST, "of --data-dir and --postgres one is needed");
    if (!directory && !file)
        return err_set(err, &ERR_BAD_REQUEST, "--data-dir is needed, or --postgres");
    if (file)
        *ret = arena_printf(a, LEDGER_REMOTE "%s", file);
    else
        *ret = ledger_is_remote(str_c(directory)) ? arena_printf(a, "./%s", directory)
                                                  : str_c(directory);
    return 0;
}
