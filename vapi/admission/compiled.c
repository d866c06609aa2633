/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of compiled objects. A write without any looks up a count. Must never free an object
 * that a request in a pause still reads, keep more than the budget, or read again and again what
 * does not fit. */
#include "compiled.h"

#include <sublet/notice.h>
#include <sublet/store.h>

#define GROUP "admissionregistration.k8s.io"

const struct compiled_budget COMPILED_BUDGET = {.most = (size_t)64 << 20, .most_objects = 4096};

/* ---- one object ---- */

struct compiled *compiled_ref(struct compiled *c)
{
    c->references++;
    return c;
}

/* What remains are its flags. */
static void leave_out(struct compiled *c)
{
    if (!c->arena)
        return;
    if (c->kind->release)
        c->kind->release(c);
    c->arena = arena_free(c->arena);
}

void compiled_unref(struct compiled *c)
{
    if (--c->references)
        return;
    if (c->arena)
        c->budget->used -= c->size;
    leave_out(c);
    mem_free(c->name.p);
    mem_free(c);
}

static struct compiled *unread(const struct compiled_list *l, const struct store_object *o)
{
    struct compiled *c = mem_alloc(l->kind->size);

    *c = (struct compiled){.kind = l->kind,
                           .budget = l->budget,
                           .name = mem_str(o->name),
                           .revision = o->revision,
                           .references = 1};
    return c;
}

static struct compiled *read_one(const struct compiled_list *l, const struct store_object *o)
{
    struct compiled *c = unread(l, o);
    struct compiled_budget *b = l->budget;

    c->arena = arena_new(0);
    l->kind->read(c, vapi_tree(c->arena, o));
    c->size = arena_used(c->arena);
    if (c->size <= b->most && b->used <= b->most - c->size)
        b->used += c->size;
    else
        leave_out(c);
    return c;
}

/* ---- a list ---- */

void compiled_list_init(struct compiled_list *l, struct vapi *api, const struct compiled_kind *kind,
                        struct compiled_budget *budget)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(api), STR(GROUP), str_c(kind->plural));

    *l = (struct compiled_list){.kind = kind, .budget = budget, .storage = r ? r->storage : 0};
}

void compiled_list_fini(struct compiled_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        compiled_unref(l->items[i]);
    mem_free(l->items);
    l->items = NULL;
    l->n = l->cap = 0;
}

static void scan(struct store *s, unsigned storage, store_scan_cb each, void *ctx)
{
    /* An error needs a revision: this is the state of now. */
    if (store_scan(s, storage, STR_NULL, STR_NULL, STR_NULL, 0, each, ctx, NULL))
        return;
}

static bool on_revision(void *ctx, const struct store_object *o)
{
    int64_t *newest = ctx;

    *newest = o->revision > *newest ? o->revision : *newest;
    return true;
}

struct reading {
    struct compiled_list *list, fresh;
    size_t at; /* in the previous list */
};

/* The previous version of o leaves its list; NULL: there is none. */
static struct compiled *take_previous(struct reading *r, struct str name)
{
    struct compiled_list *l = r->list;
    struct compiled *c;

    for (; r->at < l->n && str_cmp(l->items[r->at]->name, name) < 0; r->at++)
        compiled_unref(l->items[r->at]);
    if (r->at == l->n || !str_eq(l->items[r->at]->name, name))
        return NULL;
    c = l->items[r->at++];
    return c;
}

static bool fits(const struct compiled *c)
{
    const struct compiled_budget *b = c->budget;

    return c->size && c->size <= b->most && b->used <= b->most - c->size;
}

static bool on_stored(void *ctx, const struct store_object *o)
{
    struct reading *r = ctx;
    struct compiled_list *l = &r->fresh;
    struct compiled *c = take_previous(r, o->name);
    bool over = l->n == l->budget->most_objects;

    if (c && (over || c->revision != o->revision || (!c->arena && (!c->size || fits(c))))) {
        compiled_unref(c);
        c = NULL;
    }
    if (!c)
        c = over ? unread(l, o) : read_one(l, o);
    GROW(l->items, l->n, l->cap);
    l->items[l->n++] = c;
    if (!c->arena && c->size && (!l->missing || c->size < l->missing))
        l->missing = c->size;
    return !over;
}

static bool has_room(const struct compiled_list *l)
{
    const struct compiled_budget *b = l->budget;

    return l->missing && l->missing <= b->most && b->used <= b->most - l->missing;
}

static void warn(struct vapi *api, struct compiled_list *l)
{
    bool left_out = l->missing || l->n > l->budget->most_objects;
    struct vapi_notice n = {.topic = NOTICE_MEMORY,
                            .reason = "AdmissionTooLarge",
                            .subject = str_c(l->kind->plural),
                            .message = STR("some objects are left out: all together are too large, "
                                           "or too many")};

    if (left_out && !l->noticed)
        vapi_notice(api, &n);
    else if (!left_out && l->noticed)
        vapi_notice_over(api, NOTICE_MEMORY, n.subject);
    l->noticed = left_out;
}

void compiled_refresh(struct vapi *api, struct compiled_list *l)
{
    struct store *s = vapi_store(api);
    struct reading r = {.list = l, .fresh = *l};
    size_t stored = l->storage ? store_count(s, l->storage) : 0;
    int64_t newest = 0;

    if (!stored && !l->n)
        return;
    scan(s, l->storage, on_revision, &newest);
    if (stored == l->stored && newest == l->newest && !has_room(l))
        return;
    r.fresh.items = NULL;
    r.fresh.n = r.fresh.cap = r.fresh.missing = 0;
    r.fresh.stored = stored;
    r.fresh.newest = newest;
    scan(s, l->storage, on_stored, &r);
    for (; r.at < l->n; r.at++)
        compiled_unref(l->items[r.at]);
    mem_free(l->items);
    *l = r.fresh;
    warn(api, l);
}
