/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant: writes to a fixed set of names, one write at a time to each, and remembers what it
 * was answered. Every object carries a mark, a number that grows with each write. */
#include "tenant.h"
#include "judge.h"
#include "../../quoted.h"

#include <string.h>

#include <sublet/schema.h>

#define MARK        "'annotations':{'sim':'%lld'}"
#define DATA        "'data':{'k':'%lld'}"
#define STRING_DATA "'stringData':{'k':'%lld'}"
#define POD(more)                                                                                  \
    "{'metadata':{'name':'%s'," MARK "},'spec':{'containers':[{'name':'c','image':'i'" more "]}}"

static const struct {
    const char *resource, *prefix;
    int n;
    const char *json;
} KINDS[] = {
    {"pods", "g", 4, POD(",'resources':{'limits':{'nvidia.com/gpu':'1'}}}")},
    {"pods", "h", 2, POD(",'resources':{'limits':{'nvidia.com/gpu':'2'}}}")},
    {"pods", "p", 3,
     POD(",'envFrom':[{'configMapRef':{'name':'m0','optional':true}},"
         "{'secretRef':{'name':'x0','optional':true}}]}")},
    {"configmaps", "m", 2, "{'metadata':{'name':'%s'," MARK "}," DATA "}"},
    {"secrets", "x", 1, "{'metadata':{'name':'%s'," MARK "}," STRING_DATA "}"},
    {"services", "s", 3, "{'metadata':{'name':'%s'," MARK "},'spec':{'ports':[{'port':80}]}}"},
    {"persistentvolumeclaims", "v", 3,
     "{'metadata':{'name':'%s'," MARK "},'spec':{'accessModes':['ReadWriteOnce'],"
     "'resources':{'requests':{'storage':'1Gi'}}}}"},
    {"deployments.apps", "d", 2,
     "{'metadata':{'name':'%s'," MARK "},'spec':{'replicas':2,'selector':{'matchLabels':{'a':'b'}},"
     "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':"
     "[{'name':'c','image':'i'}]}}}}"},
};

void tenant_slots(struct model *m)
{
    for (size_t k = 0; k < COUNT(KINDS); k++) {
        for (int i = 0; i < KINDS[k].n; i++) {
            struct slot *s = &m->slots[m->n_slots++];

            *s = (struct slot){.resource = KINDS[k].resource, .json = KINDS[k].json};
            snprintf(s->name, sizeof(s->name), "%s%d", KINDS[k].prefix, i);
        }
    }
}

static const struct resource *resource_of(struct life *l, const char *name)
{
    struct str plural = str_c(name), group = STR("");
    size_t dot = str_find(plural, '.');

    if (dot < plural.n) {
        group = str_from(plural, dot + 1);
        plural = str_sub(plural, 0, dot);
    }
    return registry_find_group_resource(vapi_registry(l->api), group, plural);
}

unsigned tenant_storage(struct life *l, const char *resource)
{
    return resource_of(l, resource)->storage;
}

/* --- answers --- */

struct write {
    struct life *life;
    size_t slot;
    enum slot_write kind;
    int64_t n;
    bool refusing; /* the process did not lead when it was sent */
};

static struct slot *slot_of(struct life *l, size_t slot)
{
    return &l->world->models[l->index].slots[slot];
}

static void created(struct slot *s, struct arena *a, const struct write *write,
                    const struct store_object *o)
{
    cJSON *tree = vapi_tree(a, o);

    s->there = true;
    s->deleting = s->asked_deletion = false;
    s->n = write->n;
    snprintf(s->uid, sizeof(s->uid), "%.*s", STR_F(json_str_at(tree, "metadata.uid")));
}

static void refused(struct slot *s, const struct write *write, const struct err *err)
{
    if (err->kind->code >= 500)
        s->unsure = true;
    else if (write->kind == WRITE_DELETE && err->kind != &ERR_NOT_FOUND)
        s->asked_deletion = s->deleting;
}

static void on_written(void *ctx, const struct err *err, const struct store_object *o)
{
    struct write *write = ctx;
    struct life *l = write->life;
    struct slot *s = slot_of(l, write->slot);
    struct arena *a;

    if (l->dead) {
        mem_free(write);
        return;
    }
    a = arena_new(0);
    world_trace("answer to write %d of %s: %d", (int)write->kind, s->name,
                err ? err->kind->code : 200);
    s->writing = WRITE_NONE;
    judge_answer(l, s, write->refusing, err);
    if (!err && !(write->kind == WRITE_DELETE && s->deleting)) /* nothing changes the second time */
        s->answered_us = l->world->moment.now_us;
    if (err)
        refused(s, write, err);
    else if (write->kind == WRITE_CREATE)
        created(s, a, write, o);
    else if (write->kind == WRITE_PATCH)
        s->n = write->n;
    else
        s->deleting = true;
    arena_free(a);
    mem_free(write);
}

/* --- writes --- */

static struct write *begin(struct life *l, size_t slot, enum slot_write kind)
{
    struct slot *s = slot_of(l, slot);
    struct write *write = NEW(struct write);

    s->writing = kind;
    s->last++;
    *write = (struct write){l, slot, kind, s->last, judge_refuses(l)};
    world_trace("write %d of %s %s, mark %lld, to life %u", (int)kind, s->resource, s->name,
                (long long)s->last, l->number);
    return write;
}

static void create(struct life *l, size_t slot)
{
    struct slot *s = slot_of(l, slot);
    struct write *write = begin(l, slot, WRITE_CREATE);
    struct arena *a = arena_new(0);
    struct str text;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    text = arena_printf(a, s->json, s->name, (long long)s->last, (long long)s->last);
#pragma GCC diagnostic pop
    vapi_create(l->api, resource_of(l, s->resource), STR("default"), quoted_json(a, text),
                on_written, write);
    arena_free(a);
}

static void patch(struct life *l, size_t slot)
{
    struct slot *s = slot_of(l, slot);
    struct write *write = begin(l, slot, WRITE_PATCH);
    struct arena *a = arena_new(0);
    long long n = (long long)s->last;
    struct str text;

    if (!strcmp(s->resource, "configmaps"))
        text = arena_printf(a, "{'metadata':{" MARK "}," DATA "}", n, n);
    else if (!strcmp(s->resource, "secrets"))
        text = arena_printf(a, "{'metadata':{" MARK "}," STRING_DATA "}", n, n);
    else
        text = arena_printf(a, "{'metadata':{" MARK "}}", n);

    vapi_patch(l->api, resource_of(l, s->resource), STR_NULL, STR("default"), str_c(s->name),
               quoted_json(a, text), on_written, write);
    arena_free(a);
}

static void delete(struct life *l, size_t slot, bool now)
{
    struct slot *s = slot_of(l, slot);
    struct write *write = begin(l, slot, WRITE_DELETE);
    struct vapi_delete options = {.grace_seconds = now ? 0 : -1};

    s->asked_deletion = true;
    judge_deletes(l, s);
    vapi_delete(l->api, resource_of(l, s->resource), STR("default"), str_c(s->name), &options,
                on_written, write);
}

void tenant_act(struct world *w, unsigned index)
{
    struct model *m = &w->models[index];
    struct life *l = w->lives[index];
    size_t slot = dice_below(&w->moment, DICE_ACTION, w->models[0].n_slots);
    unsigned of_ten = (unsigned)dice_below(&w->moment, DICE_ACTION, 10);
    struct slot *s = &m->slots[slot];

    if (!life_serves(l) || s->writing || s->unsure)
        return;
    if (!s->there)
        create(l, slot);
    else if (of_ten < 5)
        patch(l, slot);
    else if (of_ten < 8)
        delete (l, slot, of_ten == 7);
}

void tenant_lost_process(struct world *w, unsigned index)
{
    for (size_t i = 0; i < w->models[index].n_slots; i++) {
        struct slot *s = &w->models[index].slots[i];

        s->unsure |= s->writing != WRITE_NONE;
        s->writing = WRITE_NONE;
    }
}

/* --- backups --- */

struct backing_up {
    struct life *life;
    struct backup *backup;
};

/* No job of the store runs between the last step of the copy and this: what was answered, or can be
 * seen now, is in it, and nothing else. */
static void on_backed_up(void *ctx, const struct err *err)
{
    struct backing_up *b = ctx;

    if (!b->life->dead) {
        world_trace("backup: %d", err ? err->kind->code : 200);
        b->backup->done = !err;
        if (!err) {
            judge_slots(b->life, false);
            b->backup->model = b->life->world->models[0];
        }
    }
    mem_free(b);
}

void tenant_backup(struct world *w)
{
    struct life *l = w->lives[0];
    struct backup *backup = &w->backups[w->n_backups % MAX_BACKUPS];
    struct backing_up *b;

    struct backup *before = &w->backups[(w->n_backups + MAX_BACKUPS - 1) % MAX_BACKUPS];

    if (!life_serves(l) || (before->life == l && !before->done))
        return;
    b = NEW(struct backing_up);
    *backup = (struct backup){.disk = l->disk, .life = l};
    snprintf(backup->path, sizeof(backup->path), "%s/backup-%u", disk_path(l->disk),
             (unsigned)w->n_backups);
    w->n_backups++;
    *b = (struct backing_up){l, backup};
    store_backup(l->store, backup->path, on_backed_up, b);
}
