/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet report statement`, `verify` and `key`: signed statements of closed periods. Must create a
 * private key that its owner alone can read, and never replace one. */
#include "arguments.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sublet/file.h>
#include <sublet/fleet_report.h>
#include <sublet/fleet_statement.h>

#define MEMORY     ((size_t)4 << 30)
#define KEY_LIMIT  ((size_t)64 << 10)
#define FILE_LIMIT ((size_t)64 << 20)

static const char HELP[] =
    "usage: sublet report statement --data-dir D|--postgres F --month 2026-11 [--tenant T]\n"
    "                               [--key F]\n"
    "       sublet report verify --public-key F FILE...\n"
    "       sublet report key --key F [--new]\n"
    "\n"
    "  statement: prints what a closed period cost, signed, once and for ever\n"
    "  --data-dir D    directory of the ledger that `sublet fleet` keeps\n"
    "  --postgres F    file with the connection string of the database that has it\n"
    "  --month M       of UTC; or\n"
    "  --from T --to T as in `sublet report`; a period begins where the last statement ends\n"
    "  --tenant T      the lines of one tenant, a chain of its own\n"
    "  --key F         private key; without it an issued statement is printed again\n"
    "\n"
    "  verify: checks signatures, sums and that each FILE follows the one before it;\n"
    "  exit code 2: they are right, and the first is not number 1\n"
    "  --public-key F  one or more, in PEM\n"
    "\n"
    "  key: prints the public key of a private one\n"
    "  --key F         Ed25519, in PEM\n"
    "  --new           creates it first, mode 0600; it must not exist\n";

static int print(struct str text, struct err *err)
{
    fwrite(text.p, 1, text.n, stdout);
    return fflush(stdout) || ferror(stdout)
               ? err_set(err, &ERR_STORAGE, "the output cannot be written")
               : 0;
}

static int unknown_argument(int argc, char **argv, struct err *err)
{
    return argc ? err_set(err, &ERR_BAD_REQUEST, "unknown argument \"%s\"", argv[0]) : 0;
}

/* --- key --- */

static int create_key(struct arena *a, const char *path, struct err *err)
{
    struct str pem;
    ssize_t written;
    int fd;

    if (statement_key_new(a, &pem, err))
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, &ERR_STORAGE, "cannot create %s: %s", path, strerrordesc_np(errno));
    written = write(fd, pem.p, pem.n);
    if (written == (ssize_t)pem.n && !fsync(fd)) {
        close(fd);
        return 0;
    }
    err_set(err, &ERR_STORAGE, "cannot write %s: %s", path, strerrordesc_np(errno));
    close(fd);
    unlink(path);
    return -1;
}

static int run_key(struct arena *a, int argc, char **argv, struct err *err)
{
    const char *path = arguments_take(&argc, argv, "--key");
    bool is_new = arguments_take_switch(&argc, argv, "--new");
    struct str private_pem, public_pem;

    if (unknown_argument(argc, argv, err))
        return -1;
    if (!path)
        return err_set(err, &ERR_BAD_REQUEST, "--key is needed: the file of the private key");
    if ((is_new && create_key(a, path, err)) ||
        file_read(a, str_c(path), KEY_LIMIT, &private_pem, err))
        return -1;
    if (statement_key_public(a, private_pem, &public_pem, err))
        return err_wrap(err, "%s", path);
    return print(public_pem, err);
}

/* --- statement --- */

static int read_period(struct arena *a, int *argc, char **argv, struct statement_request *ret,
                       struct err *err)
{
    const char *month = arguments_take(argc, argv, "--month");
    const char *from = arguments_take(argc, argv, "--from");
    const char *until = arguments_take(argc, argv, "--to");

    if (month ? from || until : !from || !until)
        return err_set(err, &ERR_BAD_REQUEST, "the period is --month, or --from and --to");
    if (month)
        return report_month(a, str_c(month), &ret->from_us, &ret->until_us, err)
                   ? err_wrap(err, "--month")
                   : 0;
    if (report_time(a, str_c(from), &ret->from_us, err))
        return err_wrap(err, "--from");
    return report_time(a, str_c(until), &ret->until_us, err) ? err_wrap(err, "--to") : 0;
}

static int run_statement(struct arena *a, int argc, char **argv, struct err *err)
{
    const char *tenant = arguments_take(&argc, argv, "--tenant");
    const char *key = arguments_take(&argc, argv, "--key");
    struct statement_request o = {.tenant = str_c(tenant), .now_us = clock_wall_us(&CLOCK_SYSTEM)};
    struct str text;
    bool differs;

    if (read_period(a, &argc, argv, &o, err) || cli_ledger(a, &argc, argv, &o.location, err) ||
        unknown_argument(argc, argv, err))
        return -1;
    if (tenant && !*tenant) /* its statement would hold the lines of all */
        return err_set(err, &ERR_BAD_REQUEST, "--tenant must not be empty");
    if (key && file_read(a, str_c(key), KEY_LIMIT, &o.private_pem, err))
        return -1;
    if (statement_issue(a, &o, &text, &differs, err))
        return -1;
    if (differs)
        fprintf(stderr, "sublet: report: the ledger has learnt of more in this period since; the "
                        "statement stands as it was issued\n");
    return print(text, err);
}

/* --- verify --- */

/* The bytes of a file live in an arena of their own, what is kept of it in a. */
static int verify_file(struct arena *a, const char *path, struct str public_pem,
                       struct statement *ret, struct err *err)
{
    struct arena *own = arena_new(MEMORY);
    struct str text;
    struct statement s;
    int result = file_read(own, str_c(path), FILE_LIMIT, &text, err);

    if (!result && statement_verify(own, text, public_pem, &s, err))
        result = err_wrap(err, "%s", path);
    if (!result)
        *ret = (struct statement){.name = str_c(path),
                                  .ledger = arena_str(a, s.ledger),
                                  .tenant = arena_str(a, s.tenant),
                                  .previous = arena_str(a, s.previous),
                                  .number = s.number,
                                  .from_us = s.from_us,
                                  .until_us = s.until_us,
                                  .sha256 = arena_str(a, s.sha256)};
    arena_free(own);
    return result;
}

/* Exit code: what is there is right, and the chain does not begin with its first statement. */
enum { WITHOUT_HEAD = 2 };

static int run_verify(struct arena *a, int argc, char **argv, struct err *err)
{
    const char *key = arguments_take(&argc, argv, "--public-key");
    struct statement s, before = {0};
    struct str public_pem;
    int ret = 0;

    if (!key || !argc)
        return err_set(err, &ERR_BAD_REQUEST, "--public-key and the files are needed");
    if (file_read(a, str_c(key), KEY_LIMIT, &public_pem, err))
        return -1;
    for (int i = 0; i < argc; i++) {
        if (verify_file(a, argv[i], public_pem, &s, err) ||
            (i && statement_follows(&before, &s, err)))
            return -1;
        printf("%s: statement %lld, %.*s to %.*s, is signed and adds up\n", argv[i],
               (long long)s.number, STR_F(time_format_s(a, s.from_us / 1000000)),
               STR_F(time_format_s(a, s.until_us / 1000000)));
        if (!i && s.number > 1) {
            printf("the chain before it, numbers 1 to %lld, is not among the files\n",
                   (long long)s.number - 1);
            ret = WITHOUT_HEAD;
        }
        before = s;
    }
    return ret;
}

static const struct {
    const char *name;
    int (*run)(struct arena *a, int argc, char **argv, struct err *err); /* exit code; -1: 1 */
} COMMANDS[] = {{"statement", run_statement}, {"verify", run_verify}, {"key", run_key}};

bool cli_is_statement(const char *word)
{
    for (size_t i = 0; i < COUNT(COMMANDS); i++)
        if (!strcmp(word, COMMANDS[i].name))
            return true;
    return false;
}

int cli_statement(int argc, char **argv)
{
    struct arena *a;
    struct err err;
    int result = 0;

    if (arguments_want_help(argc, argv)) {
        fputs(HELP, stdout);
        return 0;
    }
    a = arena_new(MEMORY);
    err_init(&err, a);
    for (size_t i = 0; i < COUNT(COMMANDS); i++)
        if (!strcmp(argv[0], COMMANDS[i].name))
            result = COMMANDS[i].run(a, argc - 1, argv + 1, &err);
    fflush(stdout);
    if (result < 0)
        fprintf(stderr, "sublet: report: %.*s\n", STR_F(err.message));
    arena_free(a);
    return result < 0 ? 1 : result;
}
