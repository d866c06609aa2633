/* SPDX-License-Identifier: Apache-2.0 */
/* Every pod's change asks which Services (budgets, ...) select it; parsing their selectors each
 * time would cost more than all the rest. Must hold nothing of objects that are gone. */
#include "selector_index.h"

#include <assert.h>
#include <string.h>

#include <sublet/vapi.h>

#include <sublet/hash.h>

#define INDEX_MAGIC 0x73656c78u

struct entry {
    struct entry *next;
    struct arena *arena; /* owns the selector and the name */
    struct str name;
    struct selector selector;
};

struct space {
    UT_hash_handle hh;
    struct entry *first;
    char *ns;
};

struct selector_index {
    unsigned magic;
    bool plain;
    struct space *spaces;
};

struct selector_index *selector_index_new(bool plain)
{
    struct selector_index *x = NEW(struct selector_index);

    x->magic = INDEX_MAGIC;
    x->plain = plain;
    return x;
}

static struct space *space_find(const struct selector_index *x, struct str ns)
{
    struct space *s = NULL;

    assert(x->magic == INDEX_MAGIC);
    HASH_FIND(hh, x->spaces, ns.p, (unsigned)ns.n, s);
    return s;
}

static struct entry *entry_free(struct entry *e)
{
    arena_free(e->arena);
    return mem_free(e);
}

static void space_free(struct selector_index *x, struct space *s)
{
    HASH_DEL(x->spaces, s);
    mem_free(s->ns);
    mem_free(s);
}

struct selector_index *selector_index_free(struct selector_index *x)
{
    struct space *s, *after;

    assert(x->magic == INDEX_MAGIC);
    HASH_ITER(hh, x->spaces, s, after)
    {
        while (s->first) {
            struct entry *e = s->first;

            s->first = e->next;
            entry_free(e);
        }
        space_free(x, s);
    }
    x->magic = 0;
    return mem_free(x);
}

static void forget(struct selector_index *x, struct str ns, struct str name)
{
    struct space *s = space_find(x, ns);
    struct entry **e = s ? &s->first : NULL;

    if (!s)
        return;
    while (*e && !str_eq((*e)->name, name))
        e = &(*e)->next;
    if (!*e)
        return;
    struct entry *gone = *e;
    *e = gone->next;
    entry_free(gone);
    if (!s->first)
        space_free(x, s);
}

static struct entry *entry_new(const struct selector_index *x, const struct store_object *o)
{
    struct entry *e = NEW(struct entry);
    struct arena *scratch = arena_new(0);
    const cJSON *spec = json_path(vapi_tree(scratch, o), "spec.selector");
    cJSON *kept;

    e->arena = arena_new(0);
    e->name = arena_str(e->arena, o->name);
    kept = spec ? json_copy(e->arena, spec) : NULL;
    if (x->plain)
        selector_from_map(e->arena, kept, &e->selector);
    else if (selector_from_json(e->arena, kept, &e->selector, NULL))
        e->selector = (struct selector){.nothing = true};
    arena_free(scratch);
    return e;
}

static void keep(struct selector_index *x, const struct store_object *o)
{
    struct entry *e = entry_new(x, o);
    struct space *s;

    if (e->selector.nothing) {
        entry_free(e);
        return;
    }
    s = space_find(x, o->ns);
    if (!s) {
        s = NEW(struct space);
        s->ns = mem_strdup(o->ns);
        HASH_ADD_KEYPTR(hh, x->spaces, s->ns, (unsigned)o->ns.n, s);
    }
    e->next = s->first;
    s->first = e;
}

void selector_index_apply(struct selector_index *x, const struct store_event *e)
{
    forget(x, e->object->ns, e->object->name);
    if (e->type != STORE_DELETED)
        keep(x, e->object);
}

void selector_index_match(const struct selector_index *x, struct str ns, struct str labels,
                          selector_index_cb each, void *ctx)
{
    const struct space *s = space_find(x, ns);

    for (const struct entry *e = s ? s->first : NULL; e; e = e->next) {
        if (selector_match(&e->selector, labels))
            each(ctx, ns, e->name);
    }
}
