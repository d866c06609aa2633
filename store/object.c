/* SPDX-License-Identifier: Apache-2.0
 * Versions of objects: one allocation each, immutable, reference counted by the loop thread alone.
 * The writer thread reads them while a batch holds a reference; it must never touch the count. */
#include "impl.h"

#include <assert.h>
#include <string.h>

static struct str place(char **at, struct str s)
{
    struct str copy = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

const struct store_object *object_new(const struct db_version *v)
{
    size_t n = v->ns.n + v->name.n + v->uid.n + v->bytes.n + v->labels.n + v->fields.n;
    struct store_object *o = mem_alloc(sizeof(*o) + n + 1);
    char *at = (char *)(o + 1);

    o->magic = OBJECT_MAGIC;
    o->refs = 1;
    o->resource = v->resource;
    o->skip = v->skip;
    o->revision = v->revision;
    o->ns = place(&at, v->ns);
    o->name = place(&at, v->name);
    o->uid = place(&at, v->uid);
    o->labels = place(&at, v->labels);
    o->fields = place(&at, v->fields);
    o->bytes = place(&at, v->bytes);
    return o;
}

size_t object_size(const struct store_object *o)
{
    return o->ns.n + o->name.n + o->uid.n + o->bytes.n + o->labels.n + o->fields.n;
}

/* Only the count of an object ever changes; const is for everybody else. */
static struct store_object *counted(const struct store_object *o)
{
    union {
        const struct store_object *seen;
        struct store_object *owned;
    } p = {o};

    assert(o->magic == OBJECT_MAGIC && o->refs);
    return p.owned;
}

const struct store_object *store_object_ref(const struct store_object *o)
{
    counted(o)->refs++;
    return o;
}

const struct store_object *store_object_unref(const struct store_object *o)
{
    if (!o)
        return NULL;
    struct store_object *mine = counted(o);
    if (--mine->refs)
        return NULL;
    mine->magic = 0;
    mem_free(mine);
    return NULL;
}
