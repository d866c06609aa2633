/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and pods as the scheduler sees them: from events, and from its own decisions that are not
 * yet in events. Must always add up: the resources in use on a node are the sum over its pods. */
#include "cluster.h"

#include <assert.h>

#include <sublet/object.h>

#define SOME_CPU    100
#define SOME_MEMORY (INT64_C(200) << 20)

void cluster_init(struct cluster *c, struct vapi *api)
{
    *c = (struct cluster){.api = api};
}

/* --- quantities --- */

int64_t quantities_get(const struct quantities *list, struct str name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (str_eq(list->list[i].name, name))
            return list->list[i].value;
    }
    return 0;
}

static int64_t saturate(__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < 0 ? 0 : (int64_t)v;
}

static void count(struct node_entry *n, const struct pod_entry *p, int sign)
{
    /* Names live in pods' arenas: the node keeps copies of its own. */
    for (size_t i = 0; i < p->requests.n; i++) {
        struct named_quantity *at = NULL;

        for (size_t k = 0; k < n->used.n && !at; k++) {
            if (str_eq(n->used.list[k].name, p->requests.list[i].name))
                at = &n->used.list[k];
        }
        if (!at) {
            n->used.list = mem_realloc(n->used.list, (n->used.n + 1) * sizeof(*n->used.list));
            at = &n->used.list[n->used.n++];
            *at = (struct named_quantity){mem_str(p->requests.list[i].name), 0};
        }
        at->value = saturate((__int128)at->value + sign * (__int128)p->requests.list[i].value);
    }
    n->cpu_or_some += sign * p->cpu_or_some;
    n->memory_or_some += sign * p->memory_or_some;
}

/* --- a pod on its node --- */

struct node_entry *cluster_node(const struct cluster *c, struct str name)
{
    struct node_entry *n;

    HASH_FIND(hh, c->nodes, name.p, name.n, n);
    return n;
}

static void attach(struct cluster *c, struct pod_entry *p)
{
    struct node_entry *n = cluster_node(c, p->node);

    if (p->anti.n)
        c->n_with_anti++;
    if (!n)
        return; /* its node is not known yet: a node takes its pods in when it appears */
    LIST_INSERT_HEAD(&n->pods, p, place_on_node);
    n->n_pods++;
    count(n, p, 1);
}

static void detach(struct cluster *c, struct pod_entry *p)
{
    struct node_entry *n = cluster_node(c, p->node);
    struct pod_entry *at;

    assert(!p->hidden);
    if (p->anti.n)
        c->n_with_anti--;
    if (!n)
        return;
    LIST_FOREACH(at, &n->pods, place_on_node)
    {
        if (at == p)
            break;
    }
    if (!at)
        return;
    LIST_REMOVE(p, place_on_node);
    n->n_pods--;
    count(n, p, -1);
}

void cluster_hide(struct cluster *c, struct pod_entry *p, bool hidden)
{
    struct node_entry *n = cluster_node(c, p->node);

    assert(n && p->hidden != hidden);
    p->hidden = hidden;
    n->n_hidden += hidden ? 1 : (size_t)-1;
    count(n, p, hidden ? -1 : 1);
}

void cluster_set_place(struct cluster *c, struct pod_entry *p, enum pod_place place)
{
    c->n_active -= p->place == POD_ACTIVE;
    c->n_waiting -= p->place == POD_WAITING;
    p->place = place;
    c->n_active += place == POD_ACTIVE;
    c->n_waiting += place == POD_WAITING;
}

void cluster_nominate(struct cluster *c, struct pod_entry *p, struct str node)
{
    c->n_nominated -= p->nominated != NULL;
    p->nominated = mem_free(p->nominated);
    if (node.n)
        p->nominated = mem_strdup(node);
    c->n_nominated += p->nominated != NULL;
}

void cluster_assume(struct cluster *c, struct pod_entry *p, const struct node_entry *n)
{
    assert(p->place != POD_PLACED);
    cluster_set_place(c, p, POD_PLACED);
    p->node = arena_str(p->arena, n->name);
    p->assumed = true;
    attach(c, p);
}

void cluster_forget(struct cluster *c, struct pod_entry *p)
{
    assert(p->place == POD_PLACED && p->assumed);
    detach(c, p);
    p->assumed = false;
    p->node = STR_NULL;
    cluster_set_place(c, p, POD_ACTIVE);
}

void cluster_wake(struct cluster *c)
{
    struct pod_entry *p, *tmp;

    if (!c->n_waiting)
        return;
    HASH_ITER(hh, c->pods, p, tmp)
    {
        if (p->place == POD_WAITING)
            cluster_set_place(c, p, POD_ACTIVE);
    }
}

/* --- pods by events --- */

struct pod_entry *cluster_pod(const struct cluster *c, struct str key)
{
    struct pod_entry *p;

    HASH_FIND(hh, c->pods, key.p, key.n, p);
    return p;
}

/* What later decisions need of a placed pod; read from its tree once. */
static void read_pod(struct pod_entry *p, const struct store_object *o)
{
    struct arena *scratch = arena_new(0);
    const cJSON *pod = vapi_tree(scratch, o);

    arena_reset(p->arena);
    if (p->object != o) {
        store_object_unref(p->object);
        p->object = store_object_ref(o);
    }
    p->uid = o->uid;
    p->priority = json_i64_at(pod, "spec.priority", 0);
    p->created = object_time_s(pod, "metadata.creationTimestamp");
    p->generation = json_i64_at(pod, "metadata.generation", 0);
    p->deleting = object_is_terminating(pod);
    p->requests = quantities_of_pod(p->arena, pod);
    p->cpu_or_some = quantities_get(&p->requests, STR("cpu"));
    p->memory_or_some = quantities_get(&p->requests, STR("memory"));
    if (!p->cpu_or_some)
        p->cpu_or_some = SOME_CPU;
    if (!p->memory_or_some)
        p->memory_or_some = SOME_MEMORY;
    p->ports = embedded_pod_host_ports(p->arena, pod, &p->n_ports);
    p->anti = embedded_pod_terms_read(p->arena, pod, "podAntiAffinity", true);
    p->wants_company = json_path(pod, "spec.affinity.podAffinity") ||
                       json_count(json_path(pod, "spec.topologySpreadConstraints"));
    arena_free(scratch);
}

static void remove_pod(struct cluster *c, struct pod_entry *p)
{
    if (p->place == POD_PLACED)
        detach(c, p);
    cluster_set_place(c, p, POD_NEW);
    cluster_nominate(c, p, STR_NULL);
    HASH_DEL(c->pods, p);
    store_object_unref(p->object);
    arena_free(p->arena);
    mem_free(p->key.p);
    mem_free(p);
}

static struct pod_entry *new_pod(struct cluster *c, struct str key)
{
    struct pod_entry *p = NEW(struct pod_entry);

    p->key = mem_str(key);
    p->arena = arena_new(0);
    p->turn = c->turns++;
    HASH_ADD_KEYPTR(hh, c->pods, p->key.p, p->key.n, p);
    return p;
}

/* Should a pod without a node be tried again? A change of its status is no reason. */
static void take_pending(struct cluster *c, struct pod_entry *p, const struct store_object *o)
{
    const struct store_object *was = p->object ? store_object_ref(p->object) : NULL;
    int64_t generation = p->generation;
    bool deleting = p->deleting;

    read_pod(p, o);
    if (p->place == POD_NEW || p->generation != generation || p->deleting != deleting ||
        !str_eq(was->labels, o->labels))
        cluster_set_place(c, p, p->deleting ? POD_WAITING : POD_ACTIVE);
    store_object_unref(was);
}

/* A pod was placed: only pods with affinity or spread constraints may fit now. */
static void wake_company(struct cluster *c)
{
    struct pod_entry *p, *tmp;

    if (!c->n_waiting)
        return;
    HASH_ITER(hh, c->pods, p, tmp)
    {
        if (p->place == POD_WAITING && p->wants_company)
            cluster_set_place(c, p, POD_ACTIVE);
    }
}

/* A pod with a node; true when pending pods may be affected. */
static bool take_placed(struct cluster *c, struct pod_entry *p, const struct store_object *o,
                        struct str node)
{
    bool was_there = p->place == POD_PLACED, was_assumed = p->assumed;
    bool relabelled = was_there && !str_eq(p->object->labels, o->labels);

    if (was_there)
        detach(c, p);
    read_pod(p, o);
    p->node = arena_str(p->arena, node);
    p->assumed = false;
    cluster_set_place(c, p, POD_PLACED);
    cluster_nominate(c, p, STR_NULL);
    attach(c, p);
    if (was_assumed)
        wake_company(c);
    return !was_there || relabelled;
}

bool cluster_pod_event(struct cluster *c, const struct store_event *e)
{
    const struct store_object *o = e->object;
    struct str phase = embedded_pod_phase(o), node = embedded_pod_node(o);
    struct arena *a = arena_new(0);
    struct str key = key_join(a, o->ns, o->name);
    struct pod_entry *p = cluster_pod(c, key);
    bool gone = e->type == STORE_DELETED || pod_phase_is_final(phase);
    bool helps = false;

    if (p && (gone || !str_eq(p->uid, o->uid))) {
        helps = p->place == POD_PLACED || p->nominated;
        remove_pod(c, p);
        p = NULL;
    }
    if (!gone && !p)
        p = new_pod(c, key);
    /* An event older than our decision must not undo it. */
    if (p && p->assumed && !node.n)
        p = NULL;
    if (p && node.n)
        helps |= take_placed(c, p, o, node);
    else if (p)
        take_pending(c, p, o);
    arena_free(a);
    return helps;
}

/* --- nodes by events --- */

static void read_node(struct node_entry *n, const struct store_object *o)
{
    arena_reset(n->arena);
    if (n->object != o) {
        store_object_unref(n->object);
        n->object = store_object_ref(o);
    }
    cJSON *tree = vapi_tree(n->arena, o);
    n->spec = json_ensure_object(n->arena, tree, "spec");
    n->allocatable = quantities_read(n->arena, json_path(tree, "status.allocatable"));
}

static void remove_node(struct cluster *c, struct node_entry *n)
{
    HASH_DEL(c->nodes, n);
    for (size_t i = 0; i < n->used.n; i++)
        mem_free(n->used.list[i].name.p);
    n->used.list = mem_free(n->used.list);
    n->used.n = 0;
    store_object_unref(n->object);
    arena_free(n->arena);
    mem_free(n->name.p);
    mem_free(n);
}

static struct node_entry *new_node(struct cluster *c, struct str name)
{
    struct node_entry *n = NEW(struct node_entry);
    struct pod_entry *p, *tmp;

    n->name = mem_str(name);
    n->arena = arena_new(0);
    HASH_ADD_KEYPTR(hh, c->nodes, n->name.p, n->name.n, n);
    HASH_ITER(hh, c->pods, p, tmp)
    {
        if (p->place != POD_PLACED || !str_eq(p->node, name))
            continue;
        c->n_with_anti -= p->anti.n > 0; /* attach() counts it again */
        attach(c, p);
    }
    return n;
}

/* Only changes that affect placement: heartbeats wake no pod. */
static bool node_matters(const struct node_entry *n, const struct store_object *o)
{
    struct arena *a = arena_new(0);
    const cJSON *was = vapi_tree(a, n->object), *is = vapi_tree(a, o);
    bool same =
        str_eq(n->object->labels, o->labels) &&
        json_equal(json_get(was, "spec"), json_get(is, "spec")) &&
        json_equal(json_path(was, "status.allocatable"), json_path(is, "status.allocatable"));

    arena_free(a);
    return !same;
}

bool cluster_node_event(struct cluster *c, const struct store_event *e)
{
    struct node_entry *n = cluster_node(c, e->object->name);
    bool is_new = !n;

    if (e->type == STORE_DELETED) {
        if (n)
            remove_node(c, n);
        return false;
    }
    if (is_new)
        n = new_node(c, e->object->name);
    bool matters = is_new || node_matters(n, e->object);
    read_node(n, e->object);
    return matters;
}

/* --- the end --- */

void cluster_prune(struct cluster *c)
{
    struct store *store = vapi_store(c->api);
    unsigned pods = embedded_resource(c->api, "", "pods")->storage;
    struct pod_entry *p, *tmp;

    if (HASH_COUNT(c->pods) <= store_count(store, pods))
        return;
    HASH_ITER(hh, c->pods, p, tmp)
    {
        if (!store_get(store, pods, p->object->ns, p->object->name))
            remove_pod(c, p);
    }
}

void cluster_fini(struct cluster *c)
{
    while (c->pods)
        remove_pod(c, c->pods);
    while (c->nodes)
        remove_node(c, c->nodes);
}
