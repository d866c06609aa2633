/* SPDX-License-Identifier: Apache-2.0 */
/* The cap on failed pods: a workload that fails and is recreated for ever must not fill the host.
 * The oldest failed pods beyond the cap are deleted on the host; the tenant keeps its own objects.
 * Must never count a pod that still runs. */
#include "host/map.h"
#include "pods/pods.h"

struct failed_pod {
    struct map_entry entry; /* "ns/name" */
    struct failed_pod *next, *prev;
    char *key;
    bool surplus;
};

struct failed_pods {
    struct syncer *syncer;
    struct map map;
    struct failed_pod *first, *last; /* those that are not surplus, oldest first */
    int64_t n;
};

struct failed_pods *sync_failed_new(struct syncer *s)
{
    struct failed_pods *f = NEW(struct failed_pods);

    f->syncer = s;
    sync_map_init(&f->map, rng_u64(vapi_rng(s->api)));
    return f;
}

static void unlink_pod(struct failed_pods *f, struct failed_pod *p)
{
    if (p->prev)
        p->prev->next = p->next;
    else
        f->first = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        f->last = p->prev;
    f->n--;
}

static void forget(struct failed_pods *f, struct failed_pod *p)
{
    if (!p->surplus)
        unlink_pod(f, p);
    sync_map_remove(&f->map, &p->entry);
    mem_free(p->key);
    mem_free(p);
}

static void free_one(void *ctx, struct map_entry *e)
{
    forget(ctx, CONTAINER(e, struct failed_pod, entry));
}

struct failed_pods *sync_failed_free(struct failed_pods *f)
{
    if (!f)
        return NULL;
    sync_map_each(&f->map, free_one, f);
    sync_map_fini(&f->map);
    mem_free(f);
    return NULL;
}

static void add(struct failed_pods *f, struct str key)
{
    struct failed_pod *p = NEW(struct failed_pod);

    p->key = mem_strdup(key);
    sync_map_put(&f->map, &p->entry, str_c(p->key));
    p->prev = f->last;
    if (f->last)
        f->last->next = p;
    else
        f->first = p;
    f->last = p;
    f->n++;
}

static void mark_surplus(struct failed_pods *f)
{
    struct failed_pod *p = f->first;
    struct str ns, name;

    unlink_pod(f, p);
    p->surplus = true;
    if (key_split(str_c(p->key), &ns, &name))
        syncer_add(f->syncer, SYNC_PODS, ns, name);
}

bool sync_failed_note(struct failed_pods *f, struct str key, bool failed)
{
    struct map_entry *e = sync_map_get(&f->map, key);
    struct failed_pod *p = e ? CONTAINER(e, struct failed_pod, entry) : NULL;

    if (!failed) {
        if (p)
            forget(f, p);
        return false;
    }
    if (!p) {
        add(f, key);
        while (f->n > f->syncer->config->max_failed_pods)
            mark_surplus(f);
        e = sync_map_get(&f->map, key);
        p = CONTAINER(e, struct failed_pod, entry);
    }
    return p->surplus;
}
