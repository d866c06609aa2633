/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes a tenant is shown: those of its pools, those without devices that any pod may use, and
 * those on which one of its host pods runs; the nodeName of a virtual pod does not count. The host
 * is authoritative: changes that the tenant makes to a mirrored node are reverted. Where nodes are
 * not readable on the host, those in use are shown by name only. Must never show a node of another
 * tenant's pool. */

#include "nodes/nodes.h"
#include "nodes/node_addresses.h"
#include "nodes/pool_nodes.h"
#include "nodes/unfenced.h"

#include <string.h>

#include <sublet/hash.h>
#include <sublet/notice.h>
#include <sublet/object.h>
#include <sublet/store_quarantine.h>
#include <sublet/translate_pool_node.h>

/* Changes of host nodes within this time cause one check of the pools. */
#define SETTLE_MS 500

/* A virtual node with ANNOTATION_HOST_UID is ours to change and delete; this is its value where the
 * host node is not readable. */
#define UNREADABLE "unreadable"
#define OF_POOL    "pool" /* ... and of one that stands for the nodes of a pool */

/* Of this process, in Go's words: the machines of one host are mostly alike. */
#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "name the architecture as Kubernetes does"
#endif

struct waiting {
    struct map_entry entry; /* node name */
    char *node;
    char **keys; /* of pods that wait to be bound */
    size_t n, cap;
};

/* Labels by which workloads choose machines that can run their images. */
static const struct {
    const char *label, *info, *otherwise;
} MACHINE[] = {
    {"kubernetes.io/os", "operatingSystem", "linux"},
    {"kubernetes.io/arch", "architecture", ARCHITECTURE},
};

struct used {
    struct map_entry entry; /* node name */
    char *node;
    size_t pods;                   /* host pods of ours there */
    char *machine[COUNT(MACHINE)]; /* as a node selector of one says; NULL: none does */
};

struct nodes {
    struct syncer *syncer;
    struct map waiting, used;
    bool check_due;              /* check_pools() is deferred */
    struct pool_nodes *per_pool; /* NULL: the host's nodes are shown */
    struct unfenced *unfenced;
    struct node_addresses *addresses; /* NULL: nodes have those of the host */
};

/* --- pods that wait for a node --- */

static void waiting_free(struct nodes *n, struct waiting *w)
{
    map_remove(&n->waiting, &w->entry);
    for (size_t i = 0; i < w->n; i++)
        mem_free(w->keys[i]);
    mem_free(w->keys);
    mem_free(w->node);
    mem_free(w);
}

static struct waiting *waiting_get(struct nodes *n, struct str node)
{
    struct map_entry *e = map_get(&n->waiting, node);
    struct waiting *w;

    if (e)
        return CONTAINER(e, struct waiting, entry);
    w = NEW(struct waiting);
    w->node = mem_strdup(node);
    map_put(&n->waiting, &w->entry, str_c(w->node));
    return w;
}

static void wait_for(struct waiting *w, struct str key)
{
    for (size_t i = 0; i < w->n; i++)
        if (str_eqc(key, w->keys[i]))
            return;
    GROW(w->keys, w->n, w->cap);
    w->keys[w->n++] = mem_strdup(key);
}

static const struct resource *nodes_resource(const struct syncer *s)
{
    return syncer_resource(s, "", "nodes");
}

bool sync_nodes_ensure(struct nodes *n, struct str node, struct str pod_key)
{
    struct syncer *s = n->syncer;

    if (store_get(s->store, nodes_resource(s)->storage, STR(""), node))
        return true;
    wait_for(waiting_get(n, node), pod_key);
    syncer_add(s, SYNC_NODES, STR(""), node);
    return false;
}

void sync_nodes_map_event(struct controller *c, const struct store_event *e)
{
    struct syncer *s = vapi_get_hooks(controller_api(c))->ctx;
    struct map_entry *found = map_get(&s->nodes->waiting, e->object->name);
    struct waiting *w;

    if (!found || e->type == STORE_DELETED)
        return;
    w = CONTAINER(found, struct waiting, entry);
    for (size_t i = 0; i < w->n; i++)
        controller_add(c, str_c(w->keys[i]));
    waiting_free(s->nodes, w);
}

/* --- which nodes are shown --- */

/* The host's scheduler placed the pod by its node selector, so the node has these labels. */
static void learn_machine(struct nodes *n, struct used *u, const cJSON *pod)
{
    const cJSON *selector = json_path(pod, "spec.nodeSelector");

    for (size_t i = 0; i < COUNT(MACHINE); i++) {
        struct str value = json_str(json_get(selector, MACHINE[i].label));

        if (!value.n || (u->machine[i] && str_eqc(value, u->machine[i])))
            continue;
        mem_free(u->machine[i]);
        u->machine[i] = mem_strdup(value);
        syncer_add(n->syncer, SYNC_NODES, STR(""), str_c(u->node));
    }
}

static void used_add(struct nodes *n, struct str node, const cJSON *pod)
{
    struct map_entry *e = map_get(&n->used, node);
    struct used *u = e ? CONTAINER(e, struct used, entry) : NEW(struct used);

    if (!e) {
        u->node = mem_strdup(node);
        map_put(&n->used, &u->entry, str_c(u->node));
        syncer_add(n->syncer, SYNC_NODES, STR(""), node);
    }
    u->pods++;
    learn_machine(n, u, pod);
}

static void used_free(struct nodes *n, struct used *u)
{
    map_remove(&n->used, &u->entry);
    for (size_t i = 0; i < COUNT(MACHINE); i++)
        mem_free(u->machine[i]);
    mem_free(u->node);
    mem_free(u);
}

static void used_drop(struct nodes *n, struct str node)
{
    struct map_entry *e = map_get(&n->used, node);
    struct used *u = e ? CONTAINER(e, struct used, entry) : NULL;

    if (!u || --u->pods)
        return;
    syncer_add(n->syncer, SYNC_NODES, STR(""), node);
    used_free(n, u);
}

void sync_nodes_pod_changed(struct nodes *n, const cJSON *now, const cJSON *before)
{
    struct str to = json_str_at(now, "spec.nodeName"), from = json_str_at(before, "spec.nodeName");

    if (n->per_pool)
        sync_pool_nodes_pod_changed(n->per_pool, now, before);
    if (str_eq(to, from) || n->per_pool)
        return;
    if (to.n)
        used_add(n, to, now);
    if (from.n)
        used_drop(n, from);
}

static bool is_used(struct syncer *s, struct str node)
{
    return map_get(&s->nodes->waiting, node) || map_get(&s->nodes->used, node);
}

struct mention {
    struct str node;
    bool found;
};

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct mention *m = ctx;
    struct str node;

    m->found = labels_get(o->fields, STR("spec.nodeName"), &node) && str_eq(node, m->node);
    return !m->found;
}

/* Is it the nodeName of a virtual pod, such as a finished one, or of one that is hidden? */
static bool is_mentioned(struct syncer *s, struct str node)
{
    struct mention m = {.node = node};
    const struct resource *pods = syncer_resource(s, "", "pods");

    return !store_is_whole(s->store, pods->storage, STR_NULL) ||
           store_scan(s->store, pods->storage, STR_NULL, STR_NULL, STR_NULL, 0, on_pod, &m, NULL) ||
           m.found;
}

static bool is_in_pool(const struct syncer *s, const cJSON *host)
{
    for (size_t i = 0; i < s->config->n_bindings; i++)
        if (pool_has_node(s->config->bindings[i].pool, host))
            return true;
    return false;
}

/* Do its labels, taints and devices admit pods without devices? */
static bool is_open(struct syncer *s, const cJSON *host)
{
    static const struct pool_choice none;
    struct arena *a = arena_new(0);
    bool open = pool_admits_node(a, s->config, &none, host);

    arena_free(a);
    return open;
}

static bool is_shown(struct syncer *s, const cJSON *host, struct str name)
{
    if (!host) /* not readable, or deleted before the pods on it */
        return is_used(s, name);
    return is_in_pool(s, host) || is_open(s, host) || is_used(s, name);
}

static bool is_mirrored(const cJSON *node)
{
    return json_get(json_path(node, "metadata.annotations"), ANNOTATION_HOST_UID) != NULL;
}

/* --- node names in the tenant's pods --- */

bool sync_nodes_listed(const struct nodes *n)
{
    const struct reflector *watch = n->syncer->watches[SYNC_NODES].reflector;

    return reflector_synced(watch) || reflector_refused(watch);
}

bool sync_nodes_known(const struct nodes *n)
{
    return n->per_pool || sync_nodes_listed(n); /* per pool: those of the configuration */
}

/* The tenant registered it itself. */
static bool is_own(struct syncer *s, struct arena *a, struct str name)
{
    const struct store_object *o = store_get(s->store, nodes_resource(s)->storage, STR(""), name);

    return o && !is_mirrored(vapi_tree(a, o));
}

static enum translate_node meaning_in(struct syncer *s, struct arena *a, struct str name)
{
    const struct reflector *watch = s->watches[SYNC_NODES].reflector;
    const struct host_object *found = reflector_get(watch, name);
    const struct config_pool *pool;
    cJSON *host = NULL;

    if (is_own(s, a, name))
        return NODE_OWN;
    if (s->config->nodes_per_pool)
        return translate_pool_node_find(s->config, name, &pool) &&
                       (!pool || config_binding_of(s->config, pool->name))
                   ? NODE_POOL
                   : NODE_UNKNOWN;
    if (!sync_nodes_known(
            s->nodes)) /* as before the restart; checked again before the pod is created */
        return store_get(s->store, nodes_resource(s)->storage, STR(""), name) ? NODE_SHOWN
                                                                              : NODE_UNKNOWN;
    if (found && json_parse(a, found->bytes, &host, NULL))
        return NODE_UNKNOWN;
    return is_shown(s, host, name) ? NODE_SHOWN : NODE_UNKNOWN;
}

enum translate_node sync_nodes_meaning(void *nodes, struct str name)
{
    struct nodes *n = nodes;
    struct arena *a = arena_new(0);
    enum translate_node ret = meaning_in(n->syncer, a, name);

    arena_free(a);
    return ret;
}

struct str sync_nodes_up(void *nodes, struct str host_node)
{
    return sync_pool_node_up(((struct nodes *)nodes)->per_pool, host_node);
}

struct str sync_nodes_of_pod(const struct syncer *s, const cJSON *host_pod, bool otherwise)
{
    struct str node = json_str_at(host_pod, "spec.nodeName");

    return node.n && s->config->nodes_per_pool != otherwise ? translate_pool_node_of(host_pod)
                                                            : node;
}

void sync_nodes_count(struct syncer *s)
{
    s->tenant.nodes_shown = store_count(s->store, nodes_resource(s)->storage);
}

/* An invalid pod is admitted here: its create request reports why. */
bool sync_nodes_admit(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                      struct str node)
{
    const struct host_object *o = reflector_get(s->watches[SYNC_NODES].reflector, node);
    struct pool_choice choice;
    struct err err;
    cJSON *host = NULL;

    err_init(&err, a);
    if (is_own(s, a, node) ||
        pool_resolve(a, s->config, ns, pod, syncer_namespace_labels(s, a, ns), &choice, &err))
        return true;
    if (s->config->nodes_per_pool)
        return !translate_check_pool_node(&s->tenant, &choice, pod, node, &err);
    if (!o || json_parse(a, o->bytes, &host, NULL))
        return true;
    return pool_admits_node(a, s->config, &choice, host);
}

/* --- checks of the pools against their nodes --- */

struct gather {
    struct arena *arena;
    cJSON *nodes;
};

static void on_host_node(void *ctx, const struct host_object *o)
{
    struct gather *g = ctx;
    cJSON *node = NULL;

    if (!json_parse(g->arena, o->bytes, &node, NULL))
        json_append(g->nodes, node);
}

static void report_pool(struct syncer *s, const struct config_pool *pool,
                        const struct pool_problem *p)
{
    struct vapi_notice notice = {.topic = NOTICE_POOL_NODES,
                                 .subject = pool->name,
                                 .reason = p->reason,
                                 .message = p->message,
                                 .detail = p->detail};

    vapi_notice(s->api, &notice);
}

static void check_pools(void *ctx)
{
    struct nodes *n = ctx;
    struct syncer *s = n->syncer;
    struct reflector *watch = s->watches[SYNC_NODES].reflector;
    struct pool_problem problem;
    struct gather g;

    n->check_due = false;
    if (syncer_is_closing(s) || !reflector_synced(watch))
        return;
    sync_unfenced_report(n->unfenced);
    g = (struct gather){.arena = arena_new(0)};
    g.nodes = json_new_array(g.arena);
    reflector_each(watch, on_host_node, &g);
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        const struct config_pool *pool = s->config->bindings[i].pool;

        if (pool_check_nodes(g.arena, pool, g.nodes, &problem))
            vapi_notice_over(s->api, NOTICE_POOL_NODES, pool->name);
        else
            report_pool(s, pool, &problem);
    }
    arena_free(g.arena);
}

void sync_nodes_host_changed(struct nodes *n, const struct host_object *now,
                             const struct host_object *before)
{
    sync_unfenced_changed(n->unfenced, now, before);
    sync_nodes_recheck(n);
}

bool sync_nodes_unfenced(const struct nodes *n, struct str_list *ret)
{
    return sync_unfenced_list(n->unfenced, ret);
}

void sync_nodes_recheck(struct nodes *n)
{
    if (n->per_pool)
        sync_pool_nodes_changed(n->per_pool);
    if (n->check_due)
        return;
    n->check_due = true;
    syncer_defer_for(n->syncer, check_pools, n, SETTLE_MS);
}

/* --- the virtual node --- */

static void add_machine(const struct syncer *s, struct arena *a, struct str name, cJSON *node)
{
    struct map_entry *e = map_get(&s->nodes->used, name);
    const struct used *u = e ? CONTAINER(e, struct used, entry) : NULL;
    cJSON *labels = json_ensure_path(a, node, "metadata.labels");
    cJSON *info = json_ensure_path(a, node, "status.nodeInfo");

    for (size_t i = 0; i < COUNT(MACHINE); i++) {
        const char *known = u ? u->machine[i] : NULL;
        struct str value = str_c(known ? known : MACHINE[i].otherwise);

        json_set_str(a, labels, MACHINE[i].label, value);
        json_set_str(a, info, MACHINE[i].info, value);
    }
}

/* Of a node that is not readable: pods of ours run there, so it is ready. Its versions, addresses
 * and sizes are unknown. */
static cJSON *placeholder(const struct syncer *s, struct arena *a, struct str name)
{
    cJSON *node = json_new_object(a), *metadata, *conditions, *ready;

    json_set_str(a, node, "apiVersion", STR("v1"));
    json_set_str(a, node, "kind", STR("Node"));
    metadata = json_ensure_object(a, node, "metadata");
    json_set_str(a, metadata, "name", name);
    json_set_str(a, metadata, "uid", STR(UNREADABLE));
    json_set_str(a, json_ensure_object(a, metadata, "labels"), "kubernetes.io/hostname", name);
    json_ensure_object(a, node, "spec");
    conditions =
        json_set(a, json_ensure_object(a, node, "status"), "conditions", json_new_array(a));
    ready = json_append(conditions, json_new_object(a));
    json_set_str(a, ready, "type", STR("Ready"));
    json_set_str(a, ready, "status", STR("True"));
    json_set_str(a, ready, "reason", STR("PodsRun"));
    add_machine(s, a, name, node);
    return node;
}

static cJSON *wanted(struct sync_run *run)
{
    struct arena *a = run->arena;
    const cJSON *host = run->host ? run->host : placeholder(run->syncer, a, run->name);
    cJSON *node = translate_node_up(a, &run->syncer->tenant, host);

    if (node)
        json_set_str(a, json_ensure_path(a, node, "metadata.annotations"), ANNOTATION_HOST_UID,
                     sync_uid(host));
    if (node && run->syncer->nodes->addresses)
        translate_node_address(a, node,
                               sync_node_address_of(run->syncer->nodes->addresses, run->name));
    return node;
}

/* Heartbeats alone are not written: they would dominate the tenant's disk writes. */
static cJSON *without_heartbeats(struct arena *a, const cJSON *status)
{
    cJSON *copy = status ? json_copy(a, status) : json_new_object(a);

    json_each(condition, json_get(copy, "conditions")) json_remove(condition, "lastHeartbeatTime");
    return copy;
}

/* A condition is reported when it is written; clients print a time of year 1 where there is none.
 * One that the host does not date has changed now, or when its status did. */
static void set_times(struct sync_run *run, cJSON *status)
{
    struct arena *a = run->arena;
    struct str now = time_format_s(a, reconcile_now_s(run->reconcile));
    const cJSON *before = json_path(run->virtual_, "status.conditions");

    json_each(condition, json_get(status, "conditions"))
    {
        const cJSON *was =
            condition_get(before, arena_cstr(a, json_str(json_get(condition, "type"))));
        struct str since = json_str(json_get(was, "lastTransitionTime"));

        json_set_str(a, condition, "lastHeartbeatTime", now);
        if (json_get(condition, "lastTransitionTime"))
            continue;
        if (!since.n || !json_equal(json_get(was, "status"), json_get(condition, "status")))
            since = now;
        json_set_str(a, condition, "lastTransitionTime", since);
    }
}

/* --- writing --- */

/* An empty object is none where there is none: of some the API stores nothing. */
static cJSON *take(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);

    if (value && (json_count(value) || json_get(to, key)))
        return json_set(a, to, key, json_copy(a, value));
    json_remove(to, key);
    return NULL;
}

/* Keeps the annotations of other writers: upstream's manager would set its own again for ever. */
static void take_annotations(struct arena *a, cJSON *to, const cJSON *from)
{
    cJSON *notes = json_ensure_path(a, to, "metadata.annotations");

    json_each(note, json_path(from, "metadata.annotations"))
    {
        json_set(a, notes, note->string, json_copy(a, note));
    }
}

static void update(struct sync_run *run, cJSON *node)
{
    struct arena *a = run->arena;
    cJSON *copy = json_copy(a, run->virtual_);
    const struct resource *r = nodes_resource(run->syncer);

    take(a, json_get(copy, "metadata"), json_get(node, "metadata"), "labels");
    take_annotations(a, copy, node);
    take(a, copy, node, "spec");
    if (!json_equal(copy, run->virtual_)) {
        reconcile_update(run->reconcile, r, copy);
        return;
    }
    if (json_equal(without_heartbeats(a, json_get(node, "status")),
                   without_heartbeats(a, json_get(copy, "status"))))
        return;
    take(a, copy, node, "status");
    reconcile_update_status(run->reconcile, r, copy);
}

/* node NULL: it is not shown (any more). */
static void write(struct sync_run *run, cJSON *node)
{
    const struct resource *r = nodes_resource(run->syncer);

    if (run->virtual_ && !is_mirrored(run->virtual_))
        return; /* the tenant's own node of that name */
    if (node)
        set_times(run, json_get(node, "status"));
    if (node && run->virtual_)
        update(run, node);
    else if (node)
        reconcile_create(run->reconcile, r, STR(""), node);
    else if (run->virtual_ && !is_mentioned(run->syncer, run->name))
        /* Kept as last seen while pods name it: pod garbage collection would delete them. */
        reconcile_delete(run->reconcile, r, STR(""), run->name, run->uid, NULL);
}

static void reconcile_pool_node(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    const struct reflector *quotas = s->watches[SYNC_QUOTAS].reflector;
    cJSON *node;

    if (!reflector_synced(quotas) && !reflector_refused(quotas))
        return; /* it is known soon, and adds the keys again */
    node = sync_pool_node(s->nodes->per_pool, run->arena, run->name);
    if (node)
        json_set_str(run->arena, json_ensure_path(run->arena, node, "metadata.annotations"),
                     ANNOTATION_HOST_UID, STR(OF_POOL));
    write(run, node);
}

static bool is_placeholder(const cJSON *node)
{
    return str_eqc(json_str(json_get(json_path(node, "metadata.annotations"), ANNOTATION_HOST_UID)),
                   UNREADABLE);
}

static void reconcile_node(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    struct sync_run run;
    bool shown;

    if (!sync_run_init(&run, r, SYNC_NODES) || !s->address_known)
        return;
    struct reflector *watch = syncer_watch(s, SYNC_NODES);
    if (!reflector_synced(watch) && !reflector_refused(watch))
        return;
    if (s->config->nodes_per_pool) {
        reconcile_pool_node(&run);
        return;
    }
    if (!run.host && run.virtual_ && !is_placeholder(run.virtual_) && is_shown(s, NULL, run.name))
        return; /* kept as last seen */
    shown = is_shown(s, run.host, run.name) && (!run.virtual_ || is_mirrored(run.virtual_));
    if (!shown && (!run.virtual_ || !is_mirrored(run.virtual_)))
        sync_node_address_drop(s->nodes->addresses, run.name);
    write(&run, shown ? wanted(&run) : NULL);
}

/* --- events of the virtual cluster --- */

/* The last pod that names a node may have been deleted, or name another one now. */
static void map_pod(struct controller *c, const struct store_event *e)
{
    const struct store_object *was = e->type == STORE_DELETED ? e->object : e->previous;
    struct str node, now = STR("");
    struct arena *a;

    if (!was || !labels_get(was->fields, STR("spec.nodeName"), &node) || !node.n)
        return;
    if (e->type != STORE_DELETED && labels_get(e->object->fields, STR("spec.nodeName"), &now) &&
        str_eq(node, now))
        return;
    a = arena_new(0);
    controller_add(c, key_join(a, STR(""), node));
    arena_free(a);
}

static const struct controller_source SOURCES[] = {
    {"", "nodes", controller_map_self}, {"", "pods", map_pod}, {0}};

const struct controller_def SYNC_NODE_CONTROLLER = {
    .name = "sublet-nodes", .sources = SOURCES, .reconcile = reconcile_node};

struct node_addresses *sync_nodes_addresses(const struct nodes *n)
{
    return n->addresses;
}

/* --- the tenant's changes of a mirrored node --- */

struct notice {
    void (*done)(void *ctx, const struct err *err);
    void *done_ctx;
};

bool sync_node_wants_notice(const cJSON *object, const cJSON *old)
{
    return object && old && is_mirrored(old) &&
           (!json_equal(json_path(object, "metadata.labels"), json_path(old, "metadata.labels")) ||
            !json_equal(json_get(object, "spec"), json_get(old, "spec")));
}

static void on_notice(void *ctx)
{
    struct notice *n = ctx;

    vapi_admit_warn(n->done_ctx,
                    STR("labels, taints and the rest of a node are the host cluster's: what is "
                        "changed here is set back"));
    n->done(n->done_ctx, NULL);
}

void sync_node_notice(struct syncer *s, struct arena *a,
                      void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct notice *n = ARENA_NEW(a, struct notice);

    *n = (struct notice){.done = done, .done_ctx = ctx};
    syncer_defer(s, on_notice, n);
}

/* --- life --- */

struct nodes *sync_nodes_new(struct syncer *s)
{
    struct nodes *n = NEW(struct nodes);

    n->syncer = s;
    if (s->config->nodes_per_pool)
        n->per_pool = sync_pool_nodes_new(s);
    n->unfenced = sync_unfenced_new(s);
    n->addresses = sync_node_addresses_new(s);
    return n;
}

static void free_one(void *ctx, struct map_entry *e)
{
    waiting_free(ctx, CONTAINER(e, struct waiting, entry));
}

static void free_used(void *ctx, struct map_entry *e)
{
    used_free(ctx, CONTAINER(e, struct used, entry));
}

struct nodes *sync_nodes_free(struct nodes *n)
{
    if (!n)
        return NULL;
    map_each(&n->waiting, free_one, n);
    map_each(&n->used, free_used, n);
    sync_pool_nodes_free(n->per_pool);
    sync_unfenced_free(n->unfenced);
    sync_node_addresses_free(n->addresses);
    mem_free(n);
    return NULL;
}
