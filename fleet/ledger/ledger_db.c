/* SPDX-License-Identifier: Apache-2.0 */
/* Which database keeps a ledger, and what is the same in all of them: what `meta` says of it. Must
 * not know the other tables. */
#include "ledger_db.h"

#include <sublet/fleet_ledger.h>

int ledger_db_open(struct str location, enum ledger_db_mode mode, struct ledger_db **ret,
                   struct err *err)
{
    const struct ledger_db_ops *ops =
        ledger_is_remote(location) ? &ledger_postgres : &ledger_sqlite;

    *ret = NULL;
    return ops->open(location, mode, ret, err);
}

struct ledger_db *ledger_db_close(struct ledger_db *db)
{
    if (db)
        db->ops->close(db);
    return NULL;
}

int ledger_meta(struct ledger_db *db, const char *key, int64_t *ret, struct err *err)
{
    struct ledger_query *q = NULL;
    enum ledger_step step;

    *ret = 0;
    if (db->ops->prepare(db, "SELECT value FROM meta WHERE key = ?1", &q, err))
        return -1;
    ledger_bind_str(q, 1, str_c(key));
    step = ledger_step(q, err);
    if (step == LEDGER_ROW)
        *ret = ledger_int(q, 0);
    ledger_query_free(q);
    return step == LEDGER_FAILED ? -1 : 0;
}

int ledger_put_meta(struct ledger_db *db, const char *key, int64_t value, struct err *err)
{
    struct ledger_query *q = NULL;
    enum ledger_step step;

    if (db->ops->prepare(db, LEDGER_PUT_META, &q, err))
        return -1;
    ledger_bind_str(q, 1, str_c(key));
    ledger_bind_int(q, 2, value);
    step = ledger_step(q, err);
    ledger_query_free(q);
    return step == LEDGER_FAILED ? -1 : 0;
}

int ledger_check_format(int64_t format, struct err *err)
{
    return format >= 1 && format <= LEDGER_FORMAT
               ? 0
               : err_set(err, &ERR_STORAGE, "ledger: format %lld is not known to this version",
                         (long long)format);
}

static int bring_up_to_date(struct ledger_db *db, struct err *err)
{
    int64_t format;

    if (ledger_meta(db, "format", &format, err) || ledger_check_format(format, err))
        return -1;
    if (format == LEDGER_FORMAT)
        return 0;
    return db->ops->upgrade(db, format, err) || ledger_put_meta(db, "format", LEDGER_FORMAT, err) ||
                   db->ops->commit(db, err)
               ? -1
               : 0;
}

/* In one transaction: a ledger without a format is a database without tables. */
static int create(struct ledger_db *db, int64_t now_us, uint64_t identity, struct err *err)
{
    return db->ops->upgrade(db, 0, err) || ledger_put_meta(db, "format", LEDGER_FORMAT, err) ||
                   ledger_put_meta(db, "identity", (int64_t)identity, err) ||
                   ledger_put_meta(db, "begin", now_us, err) ||
                   ledger_put_meta(db, "seen", now_us, err) || db->ops->commit(db, err)
               ? -1
               : 0;
}

int ledger_set_up(struct ledger_db *db, int64_t now_us, uint64_t identity,
                  struct ledger_origin *ret, struct err *err)
{
    bool empty;

    if (db->ops->is_empty(db, &empty, err))
        return -1;
    if (empty ? create(db, now_us, identity, err) : bring_up_to_date(db, err))
        return -1;
    return ledger_meta(db, "identity", &ret->identity, err) ||
                   ledger_meta(db, "begin", &ret->begin_us, err) ||
                   ledger_meta(db, "seen", &ret->seen_us, err)
               ? -1
               : 0;
}
