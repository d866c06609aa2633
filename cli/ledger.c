/* SPDX-License-Identifier: Apache-2.0 */
/* Where a ledger is, on the command line: a directory, or a file that has the connection string of
 * a database. The string itself is no argument: every process of the machine can read those. And
 * `sublet ledger copy`, from one of them to another. */
#include "arguments.h"
#include "cli.h"

#include <stdio.h>
#include <sys/stat.h>

#include <sublet/fleet_copy.h>
#include <sublet/fleet_ledger.h>

static const char HELP[] =
    "usage: sublet ledger copy --from D|--from-postgres F --to D|--to-postgres F\n"
    "\n"
    "  Copies the ledger of `sublet fleet`, which must not run meanwhile, and compares the copy.\n"
    "\n"
    "  --from D, --to D                    directory of the ledger\n"
    "  --from-postgres F, --to-postgres F  file with the connection string of the database that\n"
    "                                      has it; what it goes to must be empty\n";

static int location(struct arena *a, int *argc, char **argv, const char *of_directory,
                    const char *of_file, struct str *ret, struct err *err)
{
    const char *directory = arguments_take(argc, argv, of_directory);
    const char *file = arguments_take(argc, argv, of_file);

    if (directory && file)
        return err_set(err, &ERR_BAD_REQUEST, "of %s and %s one is needed", of_directory, of_file);
    if (!directory && !file)
        return err_set(err, &ERR_BAD_REQUEST, "%s is needed, or %s", of_directory, of_file);
    if (file)
        *ret = arena_printf(a, LEDGER_REMOTE "%s", file);
    else
        *ret = ledger_is_remote(str_c(directory)) ? arena_printf(a, "./%s", directory)
                                                  : str_c(directory);
    return 0;
}

int cli_ledger(struct arena *a, int *argc, char **argv, struct str *ret, struct err *err)
{
    return location(a, argc, argv, "--data-dir", "--postgres", ret, err);
}

static int copy(struct arena *a, int argc, char **argv, struct err *err)
{
    struct ledger_table tables[LEDGER_TABLES];
    struct str from, to;

    if (location(a, &argc, argv, "--from", "--from-postgres", &from, err) ||
        location(a, &argc, argv, "--to", "--to-postgres", &to, err))
        return -1;
    if (argc != 1 || strcmp(argv[0], "copy") != 0)
        return err_set(err, &ERR_BAD_REQUEST, "unknown argument \"%s\": want copy",
                       argc ? argv[argc - 1] : "");
    if (ledger_copy(from, to, tables, err))
        return -1;
    for (size_t i = 0; i < LEDGER_TABLES; i++)
        printf("%-10s %zu rows, the same in both\n", tables[i].name, tables[i].rows);
    return 0;
}

int cmd_ledger(int argc, char **argv)
{
    struct arena *a;
    struct err err;
    int result;

    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        return 0;
    }
    umask(077);
    a = arena_new(0);
    err_init(&err, a);
    result = copy(a, argc, argv, &err);
    if (result)
        fprintf(stderr, "sublet: ledger: %.*s\n", STR_F(err.message));
    arena_free(a);
    return result ? 1 : 0;
}
