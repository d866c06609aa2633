/* SPDX-License-Identifier: Apache-2.0
 * Records: small rows beside the objects. The maps always show the latest state; every operation
 * carries what it takes to undo it, and a failed batch is undone from its end. A value that a later
 * operation replaced stays alive in that operation, so the writer thread may still be reading it.
 */
#include "batch.h"
#include "impl.h"
#include "op.h"

#include <sublet/store_quarantine.h>

#include <assert.h>

static int record_cmp(const struct record_entry *a, const struct record_entry *b)
{
    return str_cmp(a->key, b->key);
}

TREE_GENERATE(record_tree, record_entry, link, record_cmp)

static struct record_tree *records_of(struct store *s, unsigned kind)
{
    assert(s->magic == STORE_MAGIC && kind >= RECORD_META && kind <= RECORD_CONTROLLER);
    return &s->records[kind];
}

static struct record_entry *find(struct store *s, unsigned kind, struct str key)
{
    struct record_entry probe = {.key = key};

    return RB_FIND(record_tree, records_of(s, kind), &probe);
}

static void entry_drop(struct record_entry *e)
{
    str_drop(&e->key);
    str_drop(&e->value);
    mem_free(e);
}

static struct record_entry *entry_new(struct str key, struct str value)
{
    struct record_entry *e = NEW(struct record_entry);

    e->key = mem_str(key);
    e->value = mem_str(value);
    return e;
}

bool record_load(struct store *s, unsigned kind, struct str key, struct str value)
{
    struct record_entry *e = entry_new(key, value);

    if (!RB_INSERT(record_tree, records_of(s, kind), e))
        return true;
    entry_drop(e);
    return false;
}

static struct op *record_op(struct store *s, enum op_kind kind, enum store_record record,
                            struct record_entry *e, struct str undo)
{
    assert(!s->closing);
    struct op *op = batch_add(s, kind, e->key.n + e->value.n);

    op->type = record;
    op->record.entry = e;
    op->record.key = e->key;
    op->record.value = e->value;
    op->record.undo = undo;
    return op;
}

void store_record_put(struct store *s, enum store_record kind, struct str key, struct str value)
{
    struct record_entry *e = find(s, kind, key);
    struct str undo = STR_NULL;

    bool replaces = damage_record_over(s, kind, key);
    if (e && str_eq(e->value, value))
        return;
    if (e) {
        undo = e->value;
        e->value = mem_str(value);
    } else {
        e = entry_new(key, value);
        RB_INSERT(record_tree, records_of(s, kind), e);
    }
    record_op(s, OP_RECORD_PUT, kind, e, undo)->record.added = undo.p || replaces ? 0 : 1;
}

/* The entry leaves the map and belongs to the operation from now on. */
void store_record_delete(struct store *s, enum store_record kind, struct str key)
{
    struct record_entry *e = find(s, kind, key);

    if (!e)
        return;
    RB_REMOVE(record_tree, records_of(s, kind), e);
    record_op(s, OP_RECORD_DELETE, kind, e, STR_NULL)->record.added = -1;
}

void record_committed(struct op *op)
{
    if (op->kind == OP_RECORD_DELETE)
        entry_drop(op->record.entry);
    else
        str_drop(&op->record.undo);
}

void record_undo(struct store *s, struct op *op)
{
    struct record_entry *e = op->record.entry;
    struct record_tree *tree = records_of(s, op->type);

    if (op->kind == OP_RECORD_DELETE) {
        RB_INSERT(record_tree, tree, e);
    } else if (op->record.undo.p) {
        str_drop(&e->value);
        e->value = op->record.undo;
        op->record.undo = STR_NULL;
    } else {
        RB_REMOVE(record_tree, tree, e);
        entry_drop(e);
    }
}

bool store_record_get(struct store *s, enum store_record kind, struct str key,
                      struct str *ret_value)
{
    struct record_entry *e = find(s, kind, key);

    if (e)
        *ret_value = e->value;
    return e != NULL;
}

/* The second row is the last of the file's records, and no prefix of a caller's finds it. */
#define RECORD_COPY RECORD_CONTROLLER

static struct str copy_key(struct arena *a, enum store_record kind, struct str key)
{
    return arena_printf(a, "~%u/%.*s", (unsigned)kind, STR_F(key));
}

void store_record_put_twice(struct store *s, enum store_record kind, struct str key,
                            struct str value)
{
    struct arena *a = arena_new(0);

    value = arena_str(a, value);
    store_record_put(s, kind, key, value);
    store_record_put(s, RECORD_COPY, copy_key(a, kind, key), value);
    arena_free(a);
}

bool store_record_get_either(struct store *s, enum store_record kind, struct str key,
                             struct str *ret_value)
{
    struct arena *a = arena_new(0);
    bool found = store_record_get(s, kind, key, ret_value) ||
                 store_record_get(s, RECORD_COPY, copy_key(a, kind, key), ret_value);

    arena_free(a);
    return found;
}

void store_record_each(struct store *s, enum store_record kind, struct str prefix,
                       store_record_cb each, void *ctx)
{
    struct record_entry probe = {.key = prefix};
    struct record_entry *e = RB_NFIND(record_tree, records_of(s, kind), &probe);

    for (; e && str_has_prefix(e->key, prefix); e = RB_NEXT(record_tree, NULL, e)) {
        if (!each(ctx, e->key, e->value))
            return;
    }
}

void records_fini(struct store *s)
{
    for (unsigned kind = RECORD_META; kind <= RECORD_CONTROLLER; kind++) {
        struct record_entry *e, *next;
        RB_FOREACH_SAFE(e, record_tree, &s->records[kind], next)
        {
            RB_REMOVE(record_tree, &s->records[kind], e);
            entry_drop(e);
        }
    }
}
