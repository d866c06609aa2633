/* SPDX-License-Identifier: Apache-2.0
 * Checking a write against the latest state and the limits, and handing it to the open batch. */
#include "batch.h"
#include "db_load.h"
#include "impl.h"
#include "op.h"
#include "upkeep.h"

#include <assert.h>

/* Bytes of writes that may wait for the disk. */
#define MAX_WAITING ((size_t)64 << 20)

static int check_expected(const struct store_write *w, const struct store_object *latest,
                          struct err *err)
{
    if (w->op == STORE_CREATE)
        return latest ? err_set(err, &ERR_ALREADY_EXISTS, "the object already exists") : 0;
    if (!latest)
        return err_set(err, &ERR_NOT_FOUND, "the object does not exist");
    if (latest->revision != w->expected)
        return err_set(err, &ERR_CONFLICT, "the object has been modified: revision %lld, not %lld",
                       (long long)latest->revision, (long long)w->expected);
    return 0;
}

/* Creates stop at the limit. Updates that grow may go an eighth beyond: a full tenant must still be
 * able to write status and remove finalizers. Deletes and updates that shrink always pass. */
static int check_limits(const struct store *s, const struct store_write *w, size_t before,
                        size_t after, struct err *err)
{
    const struct store_options *o = &s->options;
    size_t bytes = s->latest_bytes - before + after;
    size_t most = o->max_bytes;

    if (w->op == STORE_DELETE)
        return 0;
    if (w->op == STORE_CREATE && o->max_objects && s->latest_objects >= o->max_objects)
        return err_set(err, &ERR_FORBIDDEN, "the cluster holds %zu objects, its limit is %zu",
                       s->latest_objects, o->max_objects);
    if (!most || after <= before)
        return 0;
    if (w->op == STORE_UPDATE)
        most += most / 8;
    if (bytes > most)
        return err_set(err, &ERR_FORBIDDEN,
                       "the cluster holds %zu bytes of objects, its limit is %zu", s->latest_bytes,
                       o->max_bytes);
    return 0;
}

static int check_waiting(const struct store *s, struct err *err)
{
    if (s->waiting_bytes <= MAX_WAITING)
        return 0;
    err_set(err, &ERR_TOO_MANY_REQUESTS, "too many writes wait for the disk");
    if (err)
        err->retry_after = 1;
    return -1;
}

void store_set_read_only(struct store *s, const char *reason)
{
    char *kept = reason ? mem_strdup(str_c(reason)) : NULL;

    assert(s->magic == STORE_MAGIC);
    mem_free(s->read_only);
    s->read_only = kept;
}

const char *store_read_only(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->read_only;
}

static int check_order(const struct store *s, struct err *err)
{
    if (!s->read_only)
        return 0;
    err_set(err, &ERR_UNAVAILABLE, "%s", s->read_only);
    if (err)
        err->retry_after = STORE_READ_ONLY_RETRY_S;
    return -1;
}

static const enum store_event_type EVENT_OF[] = {
    [STORE_CREATE] = STORE_ADDED,
    [STORE_UPDATE] = STORE_MODIFIED,
    [STORE_DELETE] = STORE_DELETED,
};

static void save_resource(struct store *s, struct table *t)
{
    if ((t->saved && !t->dropping) || t->saving)
        return;
    struct op *op = batch_add(s, OP_RESOURCE, 0);

    t->saving = true;
    op->resource.table = t;
    op->resource.name = t->name;
    op->resource.id = t->id;
}

static void add_version(struct store *s, struct table *t, const struct store_write *w)
{
    const struct store_object *o = store_object_new(&(struct db_version){
        .resource = w->resource,
        .skip = w->skip,
        .revision = s->next++,
        .ns = w->ns,
        .name = w->name,
        .uid = w->uid,
        .bytes = w->bytes,
        .labels = w->labels,
        .fields = w->fields,
    });
    struct object_entry *e = table_find_or_add(t, o);

    save_resource(s, t);
    struct op *op = batch_add(s, OP_VERSION, sizeof(*o) + store_object_size(o));
    op->type = EVENT_OF[w->op];
    op->version.entry = e;
    op->version.object = o;
    op->version.resource = t->name;
    op->version.at = store_now(s);
    table_entry_push(e, o, w->op == STORE_DELETE);
}

int store_write(struct store *s, const struct store_write *w, struct err *err)
{
    assert(s->magic == STORE_MAGIC && w->resource && w->name.n && w->skip <= w->bytes.n);
    struct table *t = table_get(s, w->resource);
    struct object_entry *e = damage_entry(s, t, w->ns, w->name);
    const struct store_object *latest = e ? table_entry_latest(e) : NULL;
    size_t before = latest ? store_object_size(latest) : 0;
    size_t after = w->ns.n + w->name.n + w->uid.n + w->bytes.n + w->labels.n + w->fields.n;

    if (s->closing)
        return err_set(err, &ERR_STORAGE, "the store is closed");
    if (check_order(s, err) || store_disk_check(s, w, before, after, err) ||
        check_expected(w, latest, err) || check_limits(s, w, before, after, err) ||
        check_waiting(s, err))
        return -1;

    add_version(s, t, w);
    s->latest_bytes = s->latest_bytes - before + (w->op == STORE_DELETE ? 0 : after);
    if (w->op == STORE_CREATE)
        s->latest_objects++;
    else if (w->op == STORE_DELETE)
        s->latest_objects--;
    return 0;
}

void store_advance(struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    if (!s->closing)
        batch_add(s, OP_REVISION, 0)->revision = s->next++;
}

int64_t store_next_revision(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->next;
}
