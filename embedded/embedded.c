/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded host as a whole: its hooks, its parts' life, and what all parts ask of an object.
 * Must never touch the store but to read: every write is a request of the in-process client.
 *
 *   new: hooks, taken addresses -> (API starts) -> start: seeds, parts -> close: parts, hooks, end
 */
#include "impl.h"

#include <assert.h>

/* --- hooks --- */

static bool wants_admit(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old)
{
    struct embedded *e = ctx;

    (void)old;
    return !e->closing && services_want(r, object);
}

static void admit(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run,
                  void (*done)(void *done_ctx, const struct err *err), void *done_ctx)
{
    struct embedded *e = ctx;

    (void)r;
    services_admit(e->services, a, object, old, dry_run, done, done_ctx);
}

static void admit_undo(void *ctx, const struct resource *r, const cJSON *object)
{
    struct embedded *e = ctx;

    if (services_want(r, object))
        services_undo(e->services, object);
}

static void connect_pod(void *ctx, struct proxy *p)
{
    struct embedded *e = ctx;

    assert(e->magic == EMBEDDED_MAGIC);
    logs_connect(e->logs, p);
}

static void register_hooks(struct embedded *e)
{
    struct vapi_hooks hooks = {
        .ctx = e,
        .admit = admit,
        .wants_admit = wants_admit,
        .admit_undo = admit_undo,
        .connect = connect_pod,
    };

    vapi_set_hooks(e->api, &hooks);
}

/* --- life --- */

int embedded_check_nodes(struct str text, struct err *err)
{
    struct arena *a = arena_new(0);
    cJSON *nodes;
    int failed = node_file_parse(a, text, &nodes, err);

    arena_free(a);
    return failed;
}

int embedded_new(struct vapi *api, const struct embedded_options *options, struct embedded **ret,
                 struct err *err)
{
    struct embedded *e;

    if (embedded_check_nodes(options->nodes, err))
        return -1;
    e = NEW(struct embedded);
    *e = (struct embedded){.magic = EMBEDDED_MAGIC, .api = api};
    e->nodes = mem_str(options->nodes);
    e->external_scheduler = options->external_scheduler;
    e->external_controllers = options->external_controllers;
    e->scheduler = scheduler_new(e);
    e->kubelet = kubelet_new(e);
    e->evictions = evictions_new();
    e->services = services_new(e);
    e->logs = logs_new(e);
    register_hooks(e);
    *ret = e;
    return 0;
}

/* What is left to upstream's programs is not done here. */
static bool part_wanted(const struct embedded *e, enum embedded_part part)
{
    if (part == PART_SCHEDULER)
        return !e->external_scheduler;
    return part != PART_EVICT || !e->external_controllers;
}

void embedded_start(struct embedded *e)
{
    static const struct controller_def *const defs[N_PARTS] = {
        &NODE_PART,  &EVICT_PART,  &SCHEDULER_PART, &KUBELET_PART,
        &CLAIM_PART, &VOLUME_PART, &SERVICE_PART,
    };

    assert(e->magic == EMBEDDED_MAGIC && !e->open);
    for (size_t i = 0; i < N_PARTS; i++) {
        if (part_wanted(e, (enum embedded_part)i))
            e->parts[e->n_parts++] = controller_start_with(e->api, defs[i], e);
    }
    e->open = e->n_parts;
    nodes_seed(e);
    volumes_seed(e);
    services_seed(e);
}

static void finish(struct embedded *e)
{
    void (*closed)(void *) = e->closed;
    void *ctx = e->closed_ctx;

    vapi_set_hooks(e->api, &(struct vapi_hooks){NULL});
    e->scheduler = scheduler_free(e->scheduler);
    e->kubelet = kubelet_free(e->kubelet);
    e->evictions = evictions_free(e->evictions);
    e->logs = logs_free(e->logs);
    mem_free(e->nodes.p);
    e->magic = 0;
    mem_free(e);
    closed(ctx);
}

static void on_part_closed(void *ctx)
{
    struct embedded *e = ctx;

    assert(e->magic == EMBEDDED_MAGIC && e->open);
    if (--e->open == 0)
        finish(e);
}

void embedded_close(struct embedded *e, void (*closed)(void *ctx), void *ctx)
{
    size_t started = e->open;

    assert(e->magic == EMBEDDED_MAGIC && !e->closing);
    e->closing = true;
    e->closed = closed;
    e->closed_ctx = ctx;
    e->open = started + 1;
    for (size_t i = 0; i < started; i++)
        controller_close(e->parts[i], on_part_closed, e);
    services_close(e->services, on_part_closed, e);
}

int64_t embedded_next_due(const struct embedded *e)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < e->open; i++) {
        int64_t one = controller_next_due(e->parts[i]);

        due = one < due ? one : due;
    }
    return due;
}

void embedded_wake(struct embedded *e)
{
    for (size_t i = 0; i < e->open; i++)
        controller_wake(e->parts[i]);
}

/* --- what all parts ask --- */

const struct resource *embedded_resource(struct vapi *api, const char *group, const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));

    assert(r); /* built-in kinds only */
    return r;
}

cJSON *read_object(struct vapi *api, struct arena *a, const struct resource *r, struct str ns,
                   struct str name)
{
    const struct store_object *o = store_get(vapi_store(api), r->storage, ns, name);

    return o ? vapi_tree(a, o) : NULL;
}

bool object_deleting(const cJSON *object)
{
    return json_path(object, "metadata.deletionTimestamp") != NULL;
}

struct str annotation_of(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), key));
}

struct str object_ns(const cJSON *object)
{
    return json_str_at(object, "metadata.namespace");
}

struct str object_name(const cJSON *object)
{
    return json_str_at(object, "metadata.name");
}

struct str object_uid(const cJSON *object)
{
    return json_str_at(object, "metadata.uid");
}

int64_t time_of(const cJSON *object, const char *path)
{
    int64_t us;

    return time_parse(json_str_at(object, path), &us) ? us / 1000000 : 0;
}

bool node_is_down(const cJSON *node)
{
    return str_eqc(annotation_of(node, HINT_NODE), "down") ||
           str_eqc(json_str(json_get(json_path(node, "metadata.labels"), HINT_NODE)), "down");
}

static bool tolerates(const cJSON *toleration, const cJSON *taint)
{
    struct str key = json_str_at(toleration, "key"), effect = json_str_at(toleration, "effect");

    if (effect.n && !str_eq(effect, json_str_at(taint, "effect")))
        return false;
    if (key.n && !str_eq(key, json_str_at(taint, "key")))
        return false;
    if (str_eqc(json_str_at(toleration, "operator"), "Exists"))
        return true;
    return key.n && str_eq(json_str_at(toleration, "value"), json_str_at(taint, "value"));
}

const cJSON *toleration_of(const cJSON *pod, const cJSON *taint)
{
    json_each(t, json_path(pod, "spec.tolerations"))
    {
        if (tolerates(t, taint))
            return t;
    }
    return NULL;
}

static struct str stored_field(const struct store_object *o, struct str key)
{
    struct str value;

    return labels_get(o->fields, key, &value) ? value : STR_NULL;
}

struct str stored_node(const struct store_object *pod)
{
    return stored_field(pod, STR("spec.nodeName"));
}

struct str stored_phase(const struct store_object *pod)
{
    return stored_field(pod, STR("status.phase"));
}

struct on_node {
    struct controller *controller;
    struct str node;
};

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct on_node *s = ctx;

    if (str_eq(stored_node(o), s->node))
        controller_add_name(s->controller, o->ns, o->name);
    return true;
}

void add_pods_of_node(struct controller *c, struct str node)
{
    struct vapi *api = controller_api(c);
    struct on_node s = {c, node};
    int failed = store_scan(vapi_store(api), embedded_resource(api, "", "pods")->storage, STR_NULL,
                            STR_NULL, STR_NULL, 0, on_pod, &s, NULL);

    assert(!failed); /* the present can always be read */
}
