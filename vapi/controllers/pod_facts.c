/* SPDX-License-Identifier: Apache-2.0 */
/* An owner of hundreds of pods is reconciled after each of their changes: without this cache, every
 * run would parse all of them. Must never answer from another version of a pod. */
#include "pod_facts.h"

#include <assert.h>
#include <string.h>

#define TABLE_MAGIC 0x706f6466u
#define SLOTS       1024u

struct pod_facts_table {
    unsigned magic;
    struct arena *scratch;
    struct pod_facts *slots; /* allocated with the first pod: a cluster without pods needs none */
};

struct pod_facts_table *pod_facts_new(void)
{
    struct pod_facts_table *t = NEW(struct pod_facts_table);

    t->magic = TABLE_MAGIC;
    t->scratch = arena_new(0);
    return t;
}

void *pod_facts_start(struct controller *c)
{
    (void)c;
    return pod_facts_new();
}

void pod_facts_stop(struct controller *c, void *state)
{
    struct pod_facts_table *t = state;

    (void)c;
    assert(t->magic == TABLE_MAGIC);
    t->magic = 0;
    arena_free(t->scratch);
    mem_free(t->slots);
    mem_free(t);
}

const struct pod_facts *pod_facts_of(struct pod_facts_table *t, const struct store_object *pod)
{
    struct pod_facts *f;
    const cJSON *tree, *owner;
    struct str uid;

    assert(t->magic == TABLE_MAGIC);
    if (!t->slots)
        t->slots = mem_alloc(SLOTS * sizeof(*t->slots));
    f = &t->slots[(uint64_t)pod->revision % SLOTS];
    if (f->revision == pod->revision)
        return f;
    *f = (struct pod_facts){.revision = pod->revision};
    tree = vapi_tree(t->scratch, pod);
    owner = owner_controller(tree);
    uid = json_str_at(owner, "uid");
    f->owned = owner != NULL;
    if (uid.n && uid.n < sizeof(f->owner))
        memcpy(f->owner, uid.p, uid.n);
    f->terminating = object_is_terminating(tree);
    f->finished = pod_is_finished(tree);
    f->ready = pod_is_ready(tree);
    f->ready_since_s = object_time_s(condition_of(tree, "Ready"), "lastTransitionTime");
    arena_reset(t->scratch);
    return f;
}
