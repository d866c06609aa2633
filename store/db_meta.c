/* SPDX-License-Identifier: Apache-2.0
 * What the file says of itself: where its history begins, which revisions are used up, and whose
 * life it is. A copy begins a new life, and so does data that another life overtook. So does a file
 * whose account of itself is damaged, because its revisions cannot be trusted to be the newest
 * ones, and a revision must never be given twice. */
#include "db_impl.h"

#include <stdio.h>
#include <string.h>
#include <sublet/clock.h>

#define YEAR_2026_US (INT64_C(1767225600) * 1000000) /* 2026-01-01T00:00:00Z */
#define LEAP         INT64_C(1000000000)
#define MOST         ((INT64_C(1) << 53) - LEAP)
#define SPREAD       (INT64_C(1) << 32) /* microseconds: 72 minutes */
#define WIDE_SPREAD  (INT64_C(1) << 44)

enum number {
    FLOOR,
    REVISION,
    HEALS,
    COPY,
    RECORDS,
    UNTRACED, /* rows were lost of which nothing is known */
    EPOCH_HIGH,
    EPOCH_LOW,
    RESTORED,
    FROM_HIGH, /* 0, 0: there is none or it is unknown */
    FROM_LOW,
    FROM_REVISION,
    LOGGED,  /* the file has a log beside it; not there in a file that none was ever promised for */
    REPORTS, /* db_report, for the starts of a day */
    REPORTED_AT, /* Unix seconds */
    N_NUMBERS
};
_Static_assert(N_NUMBERS == DB_ACCOUNT, "one each");
static const char *const KEYS[N_NUMBERS] = {
    "floor",    "revision",      "heals",     "copy",     "records",
    "untraced", "epoch_high",    "epoch_low", "restored", "from_high",
    "from_low", "from_revision", "logged",    "reports",  "reported_at",
};
/* Without one of these the account is damaged; LOGGED may lack, but not be unreadable. */
#define REQUIRED ((1u << LOGGED) - 1)

struct meta {
    int64_t values[N_NUMBERS];
    unsigned there; /* a bit per number that could be read */
    bool unclear;   /* whether there is a log: LOGGED is there, and cannot be read */
};

struct epoch {
    int64_t high, low;
};

/* ---- writing ---- */

int db_meta_put(struct db *db, const char *key, int64_t value, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(db->sql,
                           "INSERT OR REPLACE INTO meta (key, value, sum)"
                           " VALUES (?1, ?2, row_sum('meta', ?1, ?2))",
                           -1, &q, NULL))
        return db_error(db, "settle", err);
    db_bind_text(q, 1, str_c(key));
    sqlite3_bind_int64(q, 2, value);
    sqlite3_step(q);
    return sqlite3_finalize(q) ? db_error(db, "settle", err) : 0;
}

static int put_numbers(struct db *db, const int64_t *values, struct err *err)
{
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (db_meta_put(db, KEYS[i], values[i], err))
            return -1;
    }
    return 0;
}

int db_meta_create(struct db *db, struct err *err)
{
    static const int64_t values[N_NUMBERS] = {[FLOOR] = 1, [LOGGED] = 1};

    return put_numbers(db, values, err);
}

/* ---- reading ---- */

static void take_row(struct meta *m, struct str key, int64_t value, bool good)
{
    unsigned i = 0;

    while (i < N_NUMBERS && !str_eqc(key, KEYS[i]))
        i++;
    if (!good) {
        m->unclear |= i == LOGGED || i == N_NUMBERS; /* its key may be what is damaged */
    } else if (i < N_NUMBERS) {
        m->values[i] = value;
        m->there |= 1u << i;
    }
}

static int read_meta(struct db *db, struct meta *ret, struct err *err)
{
    sqlite3_stmt *q;

    *ret = (struct meta){0};
    if (sqlite3_prepare_v2(db->sql,
                           "SELECT key, value, sum = " META_SUM
                           " AND typeof(value) = 'integer' FROM meta",
                           -1, &q, NULL))
        return db_error(db, "open", err);
    while (sqlite3_step(q) == SQLITE_ROW)
        take_row(ret, db_column(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int(q, 2));
    ret->unclear &= !(ret->there & 1u << LOGGED);
    return sqlite3_finalize(q) ? db_error(db, "open", err) : 0;
}

static bool promises_log(const struct meta *m)
{
    return m->values[LOGGED] || m->unclear;
}

static void print_epoch(const struct meta *m, enum number high, char ret[STORE_EPOCH_LEN + 1])
{
    if (m->values[high])
        snprintf(ret, STORE_EPOCH_LEN + 1, "%016llx%016llx", (unsigned long long)m->values[high],
                 (unsigned long long)m->values[high + 1]);
}

/* ---- lives ---- */

static uint64_t ms_of(const struct store_predecessor *p)
{
    unsigned long long ms;

    return sscanf(p->epoch, "%12llx", &ms) == 1 ? ms : 0;
}

/* 48 bits of milliseconds, later than those of the lives before, and 80 random ones. */
static void make_epoch(const struct db *db, struct meta *m)
{
    const uint64_t most = (UINT64_C(1) << 48) - 1, after = ms_of(&db->options.after);
    uint64_t own = (uint64_t)m->values[EPOCH_HIGH] >> 16, least = (own > after ? own : after) + 1;
    int64_t now = db->options.wall_us() / 1000;
    uint64_t ms = now > 0 && (uint64_t)now > least ? (uint64_t)now : least;
    uint64_t high = rng_u64(db->options.rng) & 0xffff;

    m->values[EPOCH_HIGH] = (int64_t)((ms > most ? most : ms) << 16 | high);
    m->values[EPOCH_LOW] = (int64_t)rng_u64(db->options.rng);
}

static const char NEWEST[] =
    "SELECT max((SELECT coalesce(max(revision), 1) FROM version WHERE sum = " VERSION_SUM "),"
    " (SELECT coalesce(max(revision), 1) FROM trail WHERE sum = " TRAIL_SUM "))";

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A later life of one copy begins higher once SPREAD has passed. Before, chance keeps their
 * revisions apart, not in order: a watch from a revision of the other life is expired either way.
 * So does chance alone where the clock does not show what passed (it stands at the same moment
 * after each boot, or was set back). A clock from before the copied life is certainly wrong. */
static int64_t first_revision(const struct db *db, const struct meta *m, int64_t newest)
{
    int64_t now = db->options.wall_us(), wall = now - YEAR_2026_US;
    bool plausible = now / 1000 >= m->values[EPOCH_HIGH] >> 16 && wall > 0 && wall < MOST;
    int64_t base = plausible && wall > newest ? wall : newest + LEAP;
    uint64_t chance = rng_u64(db->options.rng);

    return base + (int64_t)(chance % (uint64_t)(plausible ? SPREAD : WIDE_SPREAD));
}

/* History goes with the floor: loading removes what is of no other use. */
static int begin_life(struct db *db, struct meta *m, struct err *err)
{
    int64_t newest, *values = m->values;

    if (db_number(db, NEWEST, &newest, err))
        return -1;
    newest = larger(newest, larger(values[FLOOR], values[REVISION]));
    if (!(m->there & 1u << RECORDS) &&
        db_number(db, "SELECT count(*) FROM record", &values[RECORDS], err))
        return -1;
    values[FLOOR] = first_revision(db, m, larger(newest, db->options.after.revision));
    values[REVISION] = values[FLOOR];
    values[COPY] = 0;
    values[RESTORED] = 1;
    values[FROM_HIGH] = values[EPOCH_HIGH];
    values[FROM_LOW] = values[EPOCH_LOW];
    values[FROM_REVISION] = newest;
    make_epoch(db, m);
    return 0;
}

static bool is_overtaken(const struct db *db, const struct meta *m)
{
    char epoch[STORE_EPOCH_LEN + 1] = "";

    print_epoch(m, EPOCH_HIGH, epoch);
    return db->options.after.epoch[0] && strcmp(epoch, db->options.after.epoch) <= 0;
}

static int save(struct db *db, const struct meta *m, struct err *err)
{
    if (db_sql(db, "BEGIN IMMEDIATE", err))
        return -1;
    return db_commit_sql(db, put_numbers(db, m->values, err), err);
}

int db_meta_copy(struct db *from, struct db *to, int64_t records, struct err *err)
{
    int64_t values[N_NUMBERS];

    memcpy(values, from->account, sizeof(values));
    values[RECORDS] = records;
    return put_numbers(to, values, err);
}

/* Format 1 has no checksums; migrating adds them. */
static int put_report_1(struct db *db, unsigned reports, int64_t at, struct err *err)
{
    char text[128];

    snprintf(text, sizeof(text),
             "INSERT OR REPLACE INTO meta VALUES ('reports', %u), ('reported_at', %lld)", reports,
             (long long)at);
    return db_sql(db, text, err);
}

static int64_t now_s(const struct db *db)
{
    return db->options.wall_us() / 1000000;
}

int db_meta_report(struct db *from, struct db *to, enum db_report report, struct err *err)
{
    struct meta m = {0};

    if (from->format == 1)
        return put_report_1(to, report, now_s(from), err);
    if (read_meta(to, &m, err) || db_meta_put(to, KEYS[REPORTS], m.values[REPORTS] | report, err))
        return -1;
    return db_meta_put(to, KEYS[REPORTED_AT], now_s(from), err);
}

int db_meta_promise_log(struct db *db)
{
    return db->promise_due ? db_meta_put(db, KEYS[LOGGED], 1, NULL) : 0;
}

int db_meta_forget_log(struct db *db, struct err *err)
{
    return db_meta_put(db, KEYS[LOGGED], 0, err);
}

bool db_meta_promises_log(struct db *db)
{
    struct meta m;

    return read_meta(db, &m, NULL) || (promises_log(&m) && !m.values[COPY]);
}

/* The file itself says whose life it is and that it has a log: before the log has answered writes,
 * so that one that is lost then is missed. Where that fails all goes on, and the first transaction
 * does it, folded before its answer; if that fold fails, of a promise alone, a later one. */
static int settle_in_file(struct db *db, bool saved)
{
    enum store_disk met = db->met;
    int result = -1;

    if (!saved && db_meta_put(db, KEYS[LOGGED], 1, NULL))
        db->stale = true;
    else
        result = db_fold_all(db, "settle", NULL);
    db->met = met;
    return result;
}

static bool is_lost(const struct db *db)
{
    return (db->state.log_lost || db->state.log_missing) && !db->read_only;
}

static unsigned found(const struct db_state *s)
{
    return (s->salvaged ? DB_REPORT_SALVAGED : 0u) | (s->log_lost ? DB_REPORT_LOG : 0u) |
           (s->log_missing ? DB_REPORT_LOG_MISSING : 0u) |
           (s->meta_damaged ? DB_REPORT_ACCOUNT : 0u);
}

/* Of this start and of earlier ones; true: the rows change. A time far ahead is of a clock that was
 * wrong. */
static bool settle_reports(struct db *db, struct meta *m)
{
    int64_t *values = m->values, now = now_s(db);
    int64_t before = values[REPORTS], before_at = values[REPORTED_AT];

    db->state.found = found(&db->state);
    values[REPORTS] = db->state.found | (now - before_at >= DB_REPORT_S ? 0 : before);
    if (!values[REPORTS])
        values[REPORTED_AT] = 0;
    else if (db->state.found || before_at - now >= DB_REPORT_S)
        values[REPORTED_AT] = now;
    return values[REPORTS] != before || values[REPORTED_AT] != before_at;
}

/* Of reports alone: where that fails the next start does it. */
static bool save_reports(struct db *db, const struct meta *m)
{
    enum store_disk met = db->met;
    bool saved = !db->read_only && !save(db, m, NULL);

    db->stale |= !saved;
    db->met = met;
    return saved;
}

int db_meta_settle(struct db *db, struct err *err)
{
    struct db_state *state = &db->state;
    struct meta m;

    if (read_meta(db, &m, err))
        return -1;
    bool promised = promises_log(&m), saved = true;
    m.values[LOGGED] = 1;
    state->meta_damaged = (m.there & REQUIRED) != REQUIRED || m.unclear;
    bool begins = state->meta_damaged || is_lost(db) || m.values[COPY] || is_overtaken(db, &m);
    bool first = !begins && !m.values[EPOCH_HIGH]; /* or one from before epochs */
    bool reports = settle_reports(db, &m);
    if (begins && begin_life(db, &m, err))
        return -1;
    if (first)
        make_epoch(db, &m);
    if (begins || first) {
        if (save(db, &m, err))
            return -1;
    } else {
        saved = reports && save_reports(db, &m);
    }

    bool due = (begins || !promised) && !db->read_only && settle_in_file(db, saved);
    db->promise_due = due && !promised;
    db->young = !m.values[RECORDS] || (due && begins);
    db_mark_load(db);
    memcpy(db->account, m.values, sizeof(db->account));
    state->floor = m.values[FLOOR];
    state->revision = m.values[REVISION];
    state->records = m.values[RECORDS];
    state->untraced = m.values[UNTRACED] != 0;
    state->reports = (unsigned)m.values[REPORTS];
    state->reported_at = m.values[REPORTED_AT];
    state->identity.restored = m.values[RESTORED] != 0;
    state->identity.from_revision = m.values[FROM_REVISION];
    print_epoch(&m, EPOCH_HIGH, state->identity.epoch);
    print_epoch(&m, FROM_HIGH, state->identity.from);
    return 0;
}
