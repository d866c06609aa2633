/* SPDX-License-Identifier: Apache-2.0
 * Versions of objects: one allocation each, immutable, reference counted by the loop thread alone.
 * The writer thread reads them while a batch holds a reference; it must never touch the count. */
#include "db_load.h"
#include "impl.h"

#include <assert.h>
#include <string.h>

#include <sublet/store_view.h>

static struct str place(char **at, struct str s)
{
    struct str copy = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

/* Where it stands in the bytes, which say who they are of: it needs no place of its own then. */
static const char *find(struct str bytes, struct str s)
{
    if (!s.n || !bytes.n)
        return s.n ? NULL : bytes.p;
    return memmem(bytes.p, bytes.n, s.p, s.n);
}

const struct store_object *store_object_new(const struct db_version *v)
{
    const struct str key[] = {v->ns, v->name, v->uid};
    const char *found[3];
    struct str placed[3];
    size_t n = v->bytes.n + v->labels.n + v->fields.n;

    for (int i = 0; i < 3; i++) {
        found[i] = find(v->bytes, key[i]);
        n += found[i] ? 0 : key[i].n;
    }
    struct store_object *o = mem_alloc(sizeof(*o) + n);
    char *at = (char *)(o + 1);

    o->magic = OBJECT_MAGIC;
    o->refs = 1;
    o->resource = v->resource;
    o->skip = v->skip & 0x7fffffffu;
    o->revision = v->revision;
    o->bytes = place(&at, v->bytes);
    o->labels = place(&at, v->labels);
    o->fields = place(&at, v->fields);
    for (int i = 0; i < 3; i++)
        placed[i] = found[i] ? (struct str){o->bytes.p + (found[i] - v->bytes.p), key[i].n}
                             : place(&at, key[i]);
    o->ns = placed[0];
    o->name = placed[1];
    o->uid = placed[2];
    return o;
}

const struct store_object *store_object_copy(const struct store_object *o)
{
    return store_object_new(&(struct db_version){.resource = o->resource,
                                                 .skip = o->skip,
                                                 .revision = o->revision,
                                                 .ns = o->ns,
                                                 .name = o->name,
                                                 .uid = o->uid,
                                                 .bytes = o->bytes,
                                                 .labels = o->labels,
                                                 .fields = o->fields});
}

/* Only the count of an object ever changes once others see it. */
static struct store_object *counted(const struct store_object *o)
{
    union {
        const struct store_object *seen;
        struct store_object *owned;
    } p = {o};

    assert(o->magic == OBJECT_MAGIC && o->refs);
    return p.owned;
}

const struct store_object *store_object_with(const struct store_object *o, struct str bytes,
                                             struct str labels, struct str fields)
{
    struct db_version v = {.resource = o->resource,
                           .revision = o->revision,
                           .ns = o->ns,
                           .name = o->name,
                           .uid = o->uid,
                           .bytes = bytes,
                           .labels = labels,
                           .fields = fields};
    const struct store_object *made = store_object_new(&v);

    counted(made)->converted = 1;
    return made;
}

size_t store_object_size(const struct store_object *o)
{
    return o->ns.n + o->name.n + o->uid.n + o->bytes.n + o->labels.n + o->fields.n;
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
