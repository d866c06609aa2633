/* SPDX-License-Identifier: Apache-2.0 */
/* Every pod event is matched against the selectors of Services (budgets, ...); parsing those each
 * time would dominate its cost. Must keep nothing of deleted objects. */
#include "selector_index.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/vapi.h>

#include <sublet/hash.h>

#define INDEX_MAGIC 0x73656c78u

struct entry {
    LIST_ENTRY(entry) place;
    struct arena *arena; /* owns the selectors and the name */
    struct str name;
    struct selector *selectors; /* any of them may match */
    size_t n;
};

struct space {
    UT_hash_handle hh;
    LIST_HEAD(, entry) entries;
    char *ns;
};

struct selector_index {
    unsigned magic;
    enum selector_place place;
    struct space *spaces;
};

struct selector_index *selector_index_new(enum selector_place place)
{
    struct selector_index *x = NEW(struct selector_index);

    x->magic = INDEX_MAGIC;
    x->place = place;
    return x;
}

void selector_index_stop(struct controller *c, void *state)
{
    (void)c;
    selector_index_free(state);
}

static struct space *space_find(const struct selector_index *x, struct str ns)
{
    struct space *s = NULL;

    assert(x->magic == INDEX_MAGIC);
    HASH_FIND(hh, x->spaces, ns.p, (unsigned)ns.n, s);
    return s;
}

static void entry_free(struct entry *e)
{
    arena_free(e->arena);
    mem_free(e);
}

static void entry_remove(struct entry *e)
{
    LIST_REMOVE(e, place);
    entry_free(e);
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
        while (!LIST_EMPTY(&s->entries))
            entry_remove(LIST_FIRST(&s->entries));
        space_free(x, s);
    }
    x->magic = 0;
    return mem_free(x);
}

static void forget(struct selector_index *x, struct str ns, struct str name)
{
    struct space *s = space_find(x, ns);
    struct entry *e;

    if (!s)
        return;
    LIST_FOREACH(e, &s->entries, place)
    {
        if (str_eq(e->name, name))
            break;
    }
    if (!e)
        return;
    entry_remove(e);
    if (LIST_EMPTY(&s->entries))
        space_free(x, s);
}

/* An object that selects nothing is not kept. */
static void entry_add(struct entry *e, enum selector_place place, const cJSON *spec)
{
    const cJSON *kept = spec ? json_copy(e->arena, spec) : NULL;
    struct selector *to = &e->selectors[e->n];

    if (place == SELECTOR_MAP)
        selector_from_map(e->arena, kept, to);
    else if (selector_from_json(e->arena, kept, to, NULL))
        to->nothing = true;
    e->n += !to->nothing;
}

static struct entry *entry_new(const struct selector_index *x, const struct store_object *o)
{
    struct entry *e = NEW(struct entry);
    struct arena *scratch = arena_new(0);
    const cJSON *tree = vapi_tree(scratch, o);
    const cJSON *list = json_path(tree, "aggregationRule.clusterRoleSelectors");

    e->arena = arena_new(0);
    e->name = arena_str(e->arena, o->name);
    e->selectors = arena_alloc(e->arena, (json_count(list) + 1) * sizeof(*e->selectors));
    if (x->place == SELECTOR_AGGREGATE)
        json_each(spec, list) entry_add(e, x->place, spec);
    else
        entry_add(e, x->place, json_path(tree, "spec.selector"));
    arena_free(scratch);
    return e;
}

static void keep(struct selector_index *x, const struct store_object *o)
{
    struct entry *e;
    struct space *s;

    /* Few of the many roles aggregate others: only for those a tree is built. */
    if (x->place == SELECTOR_AGGREGATE && !str_contains(o->bytes, STR("\"aggregationRule\":{")))
        return;
    e = entry_new(x, o);
    if (!e->n) {
        entry_free(e);
        return;
    }
    s = space_find(x, o->ns);
    if (!s) {
        s = NEW(struct space);
        s->ns = mem_strdup(o->ns);
        HASH_ADD_KEYPTR(hh, x->spaces, s->ns, (unsigned)o->ns.n, s);
    }
    LIST_INSERT_HEAD(&s->entries, e, place);
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
    const struct entry *e;

    if (!s)
        return;
    LIST_FOREACH(e, &s->entries, place)
    {
        bool matches = false;

        for (size_t i = 0; i < e->n && !matches; i++)
            matches = selector_match(&e->selectors[i], labels);
        if (matches)
            each(ctx, ns, e->name);
    }
}

void selector_index_event(const struct selector_index *x, const struct store_event *e,
                          selector_index_cb each, void *ctx)
{
    selector_index_match(x, e->object->ns, e->object->labels, each, ctx);
    if (e->previous && !str_eq(e->previous->labels, e->object->labels))
        selector_index_match(x, e->object->ns, e->previous->labels, each, ctx);
}
