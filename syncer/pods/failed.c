/* SPDX-License-Identifier: Apache-2.0 */
/* The cap on failed pods: a workload that fails and is recreated for ever must not fill the host.
 * The oldest failed pods beyond the cap are deleted on the host; the tenant keeps its own objects.
 * Must never count a pod that still runs. */
#include "pods/pods.h"
#include <sys/queue.h>

#include <sublet/hash.h>

struct failed_pod {
    struct map_entry entry; /* "ns/name" */
    TAILQ_ENTRY(failed_pod) place;
    char *key;
    bool surplus;
};
TAILQ_HEAD(failed_list, failed_pod);

struct failed_pods {
    struct syncer *syncer;
    struct map map;
    struct failed_list counted; /* those that are not surplus, oldest first */
    int64_t n;
};

static void uncount(struct failed_pods *f, struct failed_pod *p)
{
    TAILQ_REMOVE(&f->counted, p, place);
    f->n--;
}

static void forget(struct failed_pods *f, struct failed_pod *p)
{
    if (!p->surplus)
        uncount(f, p);
    map_remove(&f->map, &p->entry);
    mem_free(p->key);
    mem_free(p);
}

static struct failed_pod *add(struct failed_pods *f, struct str key)
{
    struct failed_pod *p = NEW(struct failed_pod);

    p->key = mem_strdup(key);
    map_put(&f->map, &p->entry, str_c(p->key));
    TAILQ_INSERT_TAIL(&f->counted, p, place);
    f->n++;
    return p;
}

static void mark_surplus(struct failed_pods *f)
{
    struct failed_pod *p = TAILQ_FIRST(&f->counted);
    struct str ns, name;

    uncount(f, p);
    p->surplus = true;
    if (key_split(str_c(p->key), &ns, &name))
        syncer_add(f->syncer, SYNC_PODS, ns, name);
}

bool sync_failed_note(struct failed_pods *f, struct str key, bool failed)
{
    struct map_entry *e = map_get(&f->map, key);
    struct failed_pod *p = e ? CONTAINER(e, struct failed_pod, entry) : NULL;

    if (!failed) {
        if (p)
            forget(f, p);
        return false;
    }
    if (!p) {
        p = add(f, key);
        while (f->n > f->syncer->config->max_failed_pods)
            mark_surplus(f);
    }
    return p->surplus;
}

/* --- life --- */

struct failed_pods *sync_failed_new(struct syncer *s)
{
    struct failed_pods *f = NEW(struct failed_pods);

    f->syncer = s;
    TAILQ_INIT(&f->counted);
    return f;
}

static void free_one(void *ctx, struct map_entry *e)
{
    forget(ctx, CONTAINER(e, struct failed_pod, entry));
}

struct failed_pods *sync_failed_free(struct failed_pods *f)
{
    if (!f)
        return NULL;
    map_each(&f->map, free_one, f);
    mem_free(f);
    return NULL;
}
