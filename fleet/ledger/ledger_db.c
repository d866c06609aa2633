/* SPDX-License-Identifier: Apache-2.0 */
/* Which database keeps a ledger, and what is the same in all of them. Must not know the tables. */
#include "ledger_db.h"

int ledger_db_open(struct str location, enum ledger_db_mode mode, struct ledger_db **ret,
                   struct err *err)
{
    *ret = NULL;
    return ledger_sqlite.open(location, mode, ret, err);
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

int ledger_check_format(int64_t format, struct err *err)
{
    return format >= 1 && format <= LEDGER_FORMAT
               ? 0
               : err_set(err, &ERR_STORAGE, "ledger: format %lld is not known to this version",
                         (long long)format);
}
