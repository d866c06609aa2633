/* SPDX-License-Identifier: Apache-2.0
 * Whether a log is the one that belongs to the file. SQLite does not know: it applies a log to any
 * file it lies beside. So the log says which file it follows, in rows of meta that its first
 * transaction writes: `log`, a new random number, and `log_after`, what `log` was before.
 *
 * A transaction is marked when the log was folded as a whole since the last mark. The fold synced
 * the file, so the file alone says `log_after` then, durably, until a part of the log is folded
 * into it, and `log` from then on. Nothing else can be there, whatever is killed or loses power,
 * and whether SQLite began the log anew or went on with it. The numbers of the account only grow,
 * and so does the newest revision: those of the file alone are never greater. A log that does not
 * fit is of another time or of another store.
 *
 * Nor does a log fit beside which a file that can be read makes no database: pages that were
 * committed together do, and those of a smaller store end the file before its first page says.
 *
 * Where one of the two cannot be read for another reason nothing is known, and the log is taken. So
 * it is where the log has no mark (the transactions of a start, an earlier program), where it is an
 * earlier copy of the same log, behind which no version was folded, where it is the whole of the
 * log before, which the file has, and where a fold of the file was cut off and the log is the next
 * one. A file that is made as a copy, or in place of a damaged one, has a number of its own: no log
 * is its. */
#include "db_file.h"
#include "db_impl.h"

#include <stdio.h>

enum number { LOG, LOG_AFTER, GROWING, HEALS = GROWING, FLOOR, REVISION, N_NUMBERS };
_Static_assert(N_NUMBERS == DB_MARK_NUMBERS, "struct db_mark_account has them all");
static const char *const KEYS[N_NUMBERS] = {"log", "log_after", "heals", "floor", "revision"};

static int64_t new_mark(void)
{
    int64_t mark;

    sqlite3_randomness(sizeof(mark), &mark);
    return mark;
}

/* ---- writing ---- */

static int put(struct db *db, enum number n, int64_t value)
{
    sqlite3_stmt *q = db_statement(db, SQL_META_PUT);

    db_bind_text(q, 1, str_c(KEYS[n]));
    sqlite3_bind_int64(q, 2, value);
    sqlite3_step(q);
    return sqlite3_reset(q) ? -1 : 0;
}

int db_mark(struct db *db)
{
    if (!db->mark_due)
        return 0;
    db->next_mark = new_mark();
    return put(db, LOG, db->next_mark) || put(db, LOG_AFTER, db->mark) ? -1 : 0;
}

void db_marked(struct db *db)
{
    if (db->mark_due)
        db->mark = db->next_mark;
    db->mark_due = false;
}

int db_mark_own(sqlite3 *sql)
{
    char text[160];
    long long mark = new_mark();

    snprintf(text, sizeof(text),
             "INSERT OR REPLACE INTO meta (key, value, sum)"
             " VALUES ('log', %lld, row_sum('meta', 'log', %lld))",
             mark, mark);
    return sqlite3_exec(sql, text, NULL, NULL, NULL);
}

/* ---- reading ---- */

static bool has(const struct db_mark_account *a, enum number n)
{
    return a->there & 1u << n;
}

static int read_rows(struct db *db, struct db_mark_account *ret)
{
    sqlite3_stmt *q;
    int rc = sqlite3_prepare_v2(db->sql,
                                "SELECT key, value FROM meta WHERE sum = " META_SUM
                                " AND typeof(value) = 'integer'",
                                -1, &q, NULL);

    while (!rc && sqlite3_step(q) == SQLITE_ROW) {
        struct str key = db_column(q, 0);
        for (unsigned i = 0; i < N_NUMBERS; i++) {
            if (!str_eqc(key, KEYS[i]))
                continue;
            ret->values[i] = sqlite3_column_int64(q, 1);
            ret->there |= 1u << i;
        }
    }
    return rc || sqlite3_finalize(q) ? -1 : 0;
}

/* Of rows that are right. In a file that was half folded, a page can be one of another table. */
static int64_t read_newest(struct db *db, int64_t unknown)
{
    int64_t newest;

    return db_number(db,
                     "SELECT coalesce((SELECT revision FROM trail WHERE sum = " TRAIL_SUM
                     " ORDER BY revision DESC LIMIT 1), 0)",
                     &newest, NULL)
               ? unknown
               : newest;
}

void db_mark_read(struct db *db, bool alone, struct db_mark_account *ret)
{
    int64_t tables;

    *ret = (struct db_mark_account){0};
    if (!db_number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", &tables, NULL))
        ret->read = !tables || !read_rows(db, ret);
    if (ret->read && tables)
        ret->newest = read_newest(db, alone ? 0 : INT64_MAX);
}

bool db_mark_is_there(const struct db_mark_account *file)
{
    return has(file, LOG);
}

void db_mark_load(struct db *db)
{
    struct db_mark_account a = {0};

    db->mark = !read_rows(db, &a) && has(&a, LOG) ? a.values[LOG] : 0;
}

/* A revision that was committed is never above it again. */
static int64_t newest_of(const struct db_mark_account *a)
{
    int64_t newest = a->newest;

    for (unsigned i = GROWING; i < N_NUMBERS; i++) {
        if (has(a, i) && i != HEALS && a->values[i] > newest)
            newest = a->values[i];
    }
    return newest;
}

bool db_mark_fits(const struct db_mark_account *file, const struct db_mark_account *both)
{
    bool after = has(both, LOG_AFTER) && both->values[LOG_AFTER] == file->values[LOG];
    bool folded = has(both, LOG) && both->values[LOG] == file->values[LOG];

    for (unsigned i = GROWING; i < N_NUMBERS; i++) {
        if (has(file, i) && has(both, i) && file->values[i] > both->values[i])
            return false;
    }
    return (after || folded) && newest_of(file) <= newest_of(both);
}
