/* SPDX-License-Identifier: Apache-2.0
 * See db_sum.h. A value is hashed as its type, its length (or the integer itself), and its bytes,
 * so that no two rows are hashed as the same bytes. */
#include "db_sum.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>
#include <sublet/mem.h>

struct sum {
    EVP_MD *algorithm;
    EVP_MD_CTX *context;
};

struct sum *db_sum_new(void)
{
    struct sum *s = NEW(struct sum);

    s->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    s->context = EVP_MD_CTX_new();
    assert(s->algorithm && s->context);
    return s;
}

struct sum *db_sum_free(struct sum *s)
{
    if (!s)
        return NULL;
    EVP_MD_CTX_free(s->context);
    EVP_MD_free(s->algorithm);
    mem_free(s);
    return NULL;
}

static void sum_begin(struct sum *s)
{
    int ok = EVP_DigestInit_ex2(s->context, s->algorithm, NULL);
    assert(ok);
    (void)ok;
}

static void add_head(struct sum *s, int type, uint64_t n)
{
    unsigned char head[9] = {(unsigned char)type};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)(n >> (56 - 8 * i));
    EVP_DigestUpdate(s->context, head, sizeof(head));
}

static void add_text(struct sum *s, int type, struct str value)
{
    add_head(s, type, value.n);
    if (value.n)
        EVP_DigestUpdate(s->context, value.p, value.n);
}

static void add_value(struct sum *s, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    double number;
    uint64_t bits;

    switch (type) {
    case SQLITE_INTEGER:
        add_head(s, type, (uint64_t)sqlite3_value_int64(value));
        break;
    case SQLITE_FLOAT: /* no column of ours: only damage makes one */
        number = sqlite3_value_double(value);
        memcpy(&bits, &number, sizeof(bits));
        add_head(s, type, bits);
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
        const void *p = sqlite3_value_blob(value);
        add_text(s, type, (struct str){p, (size_t)sqlite3_value_bytes(value)});
        break;
    }
    default:
        add_head(s, type, 0);
    }
}

static int64_t sum_end(struct sum *s)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    uint64_t n = 0;

    EVP_DigestFinal_ex(s->context, digest, NULL);
    for (int i = 0; i < 8; i++)
        n = n << 8 | digest[i];
    return (int64_t)n;
}

static void row_sum(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct sum *s = sqlite3_user_data(context);

    sum_begin(s);
    for (int i = 0; i < n; i++)
        add_value(s, values[i]);
    sqlite3_result_int64(context, sum_end(s));
}

struct row db_row_begin(struct sum *s, sqlite3_stmt *q, struct str table)
{
    sum_begin(s);
    add_text(s, SQLITE_TEXT, table);
    return (struct row){.sum = s, .q = q};
}

void db_row_integer(struct row *r, int64_t value)
{
    add_head(r->sum, SQLITE_INTEGER, (uint64_t)value);
    sqlite3_bind_int64(r->q, ++r->n, value);
}

void db_row_text(struct row *r, struct str value)
{
    add_text(r->sum, SQLITE_TEXT, value);
    sqlite3_bind_text64(r->q, ++r->n, value.p ? value.p : "", value.n, SQLITE_STATIC, SQLITE_UTF8);
}

void db_row_blob(struct row *r, struct str value)
{
    add_text(r->sum, SQLITE_BLOB, value);
    sqlite3_bind_blob64(r->q, ++r->n, value.p ? value.p : "", value.n, SQLITE_STATIC);
}

void db_row_end(struct row *r)
{
    sqlite3_bind_int64(r->q, r->n + 1, sum_end(r->sum));
}

/* A connection is used by one thread at a time: its values need no copies. */
bool db_row_is_good(struct sum *s, sqlite3_stmt *q, struct str table)
{
    int n = sqlite3_column_count(q) - 1;

    sum_begin(s);
    add_text(s, SQLITE_TEXT, table);
    for (int i = 0; i < n; i++)
        add_value(s, sqlite3_column_value(q, i));
    return sum_end(s) == sqlite3_column_int64(q, n) && sqlite3_column_type(q, n) == SQLITE_INTEGER;
}

int db_sum_register(struct sum *s, sqlite3 *sql)
{
    return sqlite3_create_function_v2(sql, "row_sum", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, s,
                                      row_sum, NULL, NULL, NULL);
}

int64_t db_sum_key(struct sum *s, struct str resource, struct str ns, struct str name)
{
    sum_begin(s);
    add_text(s, SQLITE_TEXT, STR("key"));
    add_text(s, SQLITE_TEXT, resource);
    add_text(s, SQLITE_TEXT, ns);
    add_text(s, SQLITE_TEXT, name);
    return sum_end(s);
}
