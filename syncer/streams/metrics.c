/* SPDX-License-Identifier: Apache-2.0 */
/* What the tenant's pods use, by the host's metrics API (metrics.k8s.io), with names and labels of
 * the virtual cluster. A node's usage is that of the tenant's own pods on it, unless the admin
 * decided otherwise (metrics.nodes: whole). Must never show a pod without proof that it is the
 * tenant's, a container or a resource that the virtual pod does not name, a node that the tenant is
 * not shown, or take an API that does not answer for pods that use nothing.
 *
 *   fetch -> GET pods of our namespace by label (nodes: whole -> GET nodes)
 *         -> host object and record prove whose each is -> done() */

#include "nodes/nodes.h"
#include "streams/streams.h"
#include "core/mapping.h"

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/json_build.h>
#include <sublet/quantity.h>

#define ROOT       "/apis/metrics.k8s.io/v1beta1"
#define TIMEOUT_MS 10000
#define WINDOW     "15s" /* of a node without measured pods */

struct measured {
    struct map_entry entry;
    const cJSON *tree;
};

struct fetch {
    struct syncer *syncer;
    struct arena *arena;
    struct vapi_measure what;
    vapi_measured_cb done;
    void *done_ctx;
    struct str path;
    LIST_ENTRY(fetch) place;    /* among those under way */
    SLIST_HEAD(, fetch) joined; /* these have the same path, and get the same answer */
    SLIST_ENTRY(fetch) beside;
    const struct map *host; /* struct measured by the name of the pod or node */
    cJSON *items;
};

static const cJSON *measured_of(const struct fetch *f, struct str name)
{
    struct map_entry *e = map_get(f->host, name);

    return e ? CONTAINER(e, struct measured, entry)->tree : NULL;
}

/* --- containers --- */

static cJSON *usage_of(struct arena *a, const cJSON *usage)
{
    static const char *const shown[] = {"cpu", "memory"};
    cJSON *ret = json_new_object(a);

    for (size_t i = 0; i < COUNT(shown); i++) {
        struct str text = json_str(json_get(usage, shown[i]));
        struct quantity q;

        if (text.n && quantity_parse(text, &q) && q.nano >= 0)
            json_set_str(a, ret, shown[i], text);
    }
    return ret;
}

static bool has_container(const cJSON *pod, struct str name)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        json_each(container, json_path(pod, lists[i]))
        {
            if (str_eq(json_str(json_get(container, "name")), name))
                return true;
        }
    }
    return false;
}

static cJSON *containers_of(struct arena *a, const cJSON *pod, const cJSON *measured)
{
    cJSON *ret = json_new_array(a);

    json_each(one, json_get(measured, "containers"))
    {
        struct str name = json_str(json_get(one, "name"));

        if (has_container(pod, name))
            json_append(ret, json_object(a, JSON("name", name),
                                         JSON("usage", usage_of(a, json_get(one, "usage")))));
    }
    return ret;
}

/* --- pods --- */

/* Measured before the host pod was created: of an earlier pod of the same name. */
static bool is_of_another(const cJSON *host, const cJSON *measured)
{
    struct str created = str_sub(json_str_at(host, "metadata.creationTimestamp"), 0, 19);
    struct str at = str_sub(json_str(json_get(measured, "timestamp")), 0, 19);

    return !at.n || str_cmp(at, created) < 0;
}

/* The usage of this virtual pod, or NULL: its host pod is on record and in the cache under these
 * uids, and the host measured it. */
static const cJSON *measured_pod(struct fetch *f, const struct store_object *o)
{
    struct syncer *s = f->syncer;
    struct mapping m = sync_mapping_get(s, f->arena, SYNC_PODS, o->ns, o->name);
    const struct host_object *host;
    cJSON *tree = NULL;
    const cJSON *measured;
    struct str ns, name, uid;
    char host_name[64];

    translate_name(&s->tenant, o->ns, o->name, host_name);
    measured = measured_of(f, str_c(host_name));
    host = measured ? reflector_get(s->watches[SYNC_PODS].reflector, str_c(host_name)) : NULL;
    if (!host || !m.exists || !str_eq(m.uid, o->uid) || !str_eq(m.host_uid, host->uid) ||
        json_parse(f->arena, host->bytes, &tree, NULL) ||
        !translate_owner(&s->tenant, tree, &ns, &name, &uid) || !str_eq(uid, o->uid) ||
        is_of_another(tree, measured))
        return NULL;
    return measured;
}

static cJSON *metadata_of(struct arena *a, const cJSON *object, const cJSON *measured)
{
    const cJSON *labels = json_path(object, "metadata.labels");

    return json_object(a, JSON("name", json_str_at(object, "metadata.name")),
                       JSON_NONEMPTY("namespace", json_str_at(object, "metadata.namespace")),
                       JSON("creationTimestamp", json_str(json_get(measured, "timestamp"))),
                       JSON("labels", json_count(labels) ? json_copy(a, labels) : NULL));
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct fetch *f = ctx;
    const cJSON *measured;
    cJSON *pod;

    if (f->what.name.n && !f->what.nodes && !str_eq(f->what.name, o->name))
        return true;
    measured = measured_pod(f, o);
    if (!measured)
        return true;
    pod = vapi_tree(f->arena, o);
    json_append(f->items,
                json_object(f->arena, JSON("metadata", metadata_of(f->arena, pod, measured)),
                            JSON("timestamp", json_str(json_get(measured, "timestamp"))),
                            JSON("window", json_str(json_get(measured, "window"))),
                            JSON("containers", containers_of(f->arena, pod, measured)),
                            JSON_NONEMPTY("node", json_str_at(pod, "spec.nodeName"))));
    return true;
}

static void collect_pods(struct fetch *f)
{
    struct syncer *s = f->syncer;
    struct str ns = f->what.nodes || !f->what.ns.n ? STR_NULL : f->what.ns;

    f->items = json_new_array(f->arena);
    store_scan_latest(s->store, syncer_storage(s, SYNC_PODS), ns, on_pod, f);
}

/* --- nodes --- */

static void add_usage(struct quantity *sum, const cJSON *usage, const char *key)
{
    struct quantity q;

    if (quantity_parse(json_str(json_get(usage, key)), &q))
        sum->nano += q.nano;
}

/* In the units of metrics-server. */
static cJSON *sum_usage(struct arena *a, struct quantity cpu, struct quantity memory)
{
    const __int128 kilo = (__int128)1024 * 1000000000;

    return json_object(
        a, JSON("cpu", arena_printf(a, "%lldn", (long long)cpu.nano)),
        JSON("memory", arena_printf(a, "%lldKi", (long long)((memory.nano + kilo - 1) / kilo))));
}

static cJSON *own_usage(struct fetch *f, const cJSON *node)
{
    struct quantity cpu = {0}, memory = {0};
    struct str name = json_str_at(node, "metadata.name"), window = STR(WINDOW);
    struct str at = time_format_s(f->arena, syncer_now_s(f->syncer));

    json_each(pod, f->items)
    {
        if (!str_eq(json_str(json_get(pod, "node")), name))
            continue;
        at = json_str(json_get(pod, "timestamp"));
        window = json_str(json_get(pod, "window"));
        json_each(container, json_get(pod, "containers"))
        {
            add_usage(&cpu, json_get(container, "usage"), "cpu");
            add_usage(&memory, json_get(container, "usage"), "memory");
        }
    }
    return json_object(f->arena, JSON("timestamp", at), JSON("window", window),
                       JSON("usage", sum_usage(f->arena, cpu, memory)));
}

static cJSON *whole_usage(struct fetch *f, const cJSON *node)
{
    const cJSON *measured = measured_of(f, json_str_at(node, "metadata.name"));

    if (!measured)
        return NULL;
    return json_object(f->arena, JSON("timestamp", json_str(json_get(measured, "timestamp"))),
                       JSON("window", json_str(json_get(measured, "window"))),
                       JSON("usage", usage_of(f->arena, json_get(measured, "usage"))));
}

struct node_list {
    struct fetch *fetch;
    cJSON *nodes;
};

/* The host's, or one that stands for some of them; not the tenant's own. */
static bool is_measured(const struct syncer *s, struct str node)
{
    enum translate_node meaning = sync_nodes_meaning(s->nodes, node);

    return meaning == NODE_SHOWN || meaning == NODE_POOL;
}

static bool on_node(void *ctx, const struct store_object *o)
{
    struct node_list *l = ctx;
    struct fetch *f = l->fetch;
    bool whole = f->syncer->config->metrics_whole_nodes;
    cJSON *node, *usage;

    if ((f->what.name.n && !str_eq(f->what.name, o->name)) || !is_measured(f->syncer, o->name))
        return true;
    node = vapi_tree(f->arena, o);
    usage = whole ? whole_usage(f, node) : own_usage(f, node);
    if (!usage)
        return true;
    json_set(f->arena, usage, "metadata", metadata_of(f->arena, node, usage));
    json_append(l->nodes, usage);
    return true;
}

static void collect_nodes(struct fetch *f)
{
    struct node_list l = {f, json_new_array(f->arena)};
    struct syncer *s = f->syncer;

    store_scan_latest(s->store, syncer_storage(s, SYNC_NODES), STR(""), on_node, &l);
    f->items = l.nodes;
}

/* --- the host --- */

static void finish(struct fetch *f, const struct err *err)
{
    f->done(f->done_ctx, f->items, err);
    arena_free(f->arena);
}

/* Whatever keeps the host from measuring, to a tenant the API is not available. */
static void fail(struct fetch *f)
{
    struct err err;

    err_init(&err, f->arena);
    if (err_set(&err, &ERR_UNAVAILABLE, "the server is currently unable to handle the request"))
        finish(f, &err);
}

static void collect(struct fetch *f)
{
    if (!f->what.nodes || !f->syncer->config->metrics_whole_nodes)
        collect_pods(f);
    if (f->what.nodes)
        collect_nodes(f);
    json_each(item, f->items) json_remove(item, "node");
}

static bool read_items(struct map *m, struct arena *a, const struct host_answer *answer)
{
    cJSON *list = NULL;

    if (json_parse(a, answer->body, &list, NULL) || !json_is_array(json_get(list, "items")))
        return false;
    json_each(tree, json_get(list, "items"))
    {
        struct str name = json_str_at(tree, "metadata.name");
        struct measured *item;

        if (!name.n || map_get(m, name))
            continue;
        item = ARENA_NEW(a, struct measured);
        item->tree = tree;
        map_put(m, &item->entry, name);
    }
    return true;
}

static void take(struct fetch *f, const struct map *host)
{
    f->host = host;
    if (!host) {
        fail(f);
        return;
    }
    collect(f);
    finish(f, NULL);
}

/* Off the list first: a caller may fetch again from inside done(). */
static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct fetch *f = ctx, *joined;
    struct arena *a = arena_new(0);
    struct map items = {0}, *host = NULL;

    if (!err && !syncer_is_closing(f->syncer) && read_items(&items, a, answer))
        host = &items;
    LIST_REMOVE(f, place);
    joined = SLIST_FIRST(&f->joined);
    take(f, host);
    while ((f = joined)) {
        joined = SLIST_NEXT(f, beside);
        take(f, host);
    }
    map_clear(&items);
    arena_free(a);
}

/* Of one pod or one node all are read as well: a 404 would not say whether the API is missing. */
static struct str path_of(struct fetch *f)
{
    struct syncer *s = f->syncer;
    struct arena *a = f->arena;
    bool one = f->what.ns.n && !f->what.nodes;
    struct str selector =
        arena_printf(a, LABEL_CLUSTER "=%.*s%s%.*s", STR_F(s->tenant.cluster_uid),
                     one ? "," LABEL_NAMESPACE "=" : "", STR_F(one ? f->what.ns : STR("")));

    if (f->what.nodes && s->config->metrics_whole_nodes)
        return STR(ROOT "/nodes");
    return arena_printf(a, ROOT "/namespaces/%.*s/pods?labelSelector=%.*s",
                        STR_F(s->tenant.host_namespace), STR_F(url_encode(a, selector)));
}

void sync_metrics_fetch(struct syncer *s, const struct vapi_measure *what, vapi_measured_cb done,
                        void *ctx)
{
    struct arena *a = arena_new(0);
    struct fetch *f = ARENA_NEW(a, struct fetch);
    struct host_request q = {.method = "GET", .timeout_ms = TIMEOUT_MS};
    struct fetch *same;

    *f = (struct fetch){.syncer = s, .arena = a, .done = done, .done_ctx = ctx};
    f->what = (struct vapi_measure){what->nodes, arena_str(a, what->ns), arena_str(a, what->name)};
    f->path = path_of(f);
    LIST_FOREACH(same, &s->fetches, place)
    {
        if (str_eq(same->path, f->path))
            break;
    }
    if (same) {
        SLIST_INSERT_HEAD(&same->joined, f, beside);
        return;
    }
    LIST_INSERT_HEAD(&s->fetches, f, place);
    q.path = f->path;
    host_send(s->host, &q, on_answer, f);
}
