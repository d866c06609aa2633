/* SPDX-License-Identifier: Apache-2.0 */
/* The host's objects and their history, for host.h: every change is an event that is kept, so that
 * any earlier state can be built again. Must never do what a real host would not. */
#include "host.h"
#include "../kubelet.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* What every host has, whatever it was put back to. */
static const struct {
    const char *plural, *json;
} FIXTURES[] = {
    {"nodes", "{\"metadata\":{\"name\":\"node-0\"}}"},
    {"nodes", "{\"metadata\":{\"name\":\"node-1\"}}"},
    {"nodes", "{\"metadata\":{\"name\":\"node-2\"}}"},
    {"storageclasses",
     "{\"metadata\":{\"name\":\"standard\",\"annotations\":"
     "{\"storageclass.kubernetes.io/is-default-class\":\"true\"}},\"provisioner\":\"x\"}"},
    {"pods", "{\"metadata\":{\"name\":\"stranger\"}}"},
    {"persistentvolumeclaims",
     "{\"metadata\":{\"name\":\"stranger\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
     "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}"},
};
enum { N_FIXTURES = COUNT(FIXTURES) };

struct host_model {
    struct moment *moment;
    uint64_t revision, forgotten, uids;
    struct host_object_model *objects; /* by (plural, name), so that a roll back gives one order */
    struct host_event *events;
    size_t n_events, capacity;
    void (*changed)(void *ctx);
    void (*left)(void *ctx, const char *plural, struct str virtual_uid);
    void *ctx;
};

/* --- reading --- */

cJSON *host_parse(struct arena *a, struct str bytes)
{
    cJSON *tree = NULL;

    return json_parse(a, bytes, &tree, NULL) ? NULL : tree;
}

bool host_is_ours(const cJSON *tree)
{
    return json_get(json_path(tree, "metadata.labels"), "sublet.dev/cluster") != NULL;
}

struct str host_virtual_uid(const cJSON *tree)
{
    return json_str(json_get(json_path(tree, "metadata.annotations"), "sublet.dev/uid"));
}

bool host_pod_is_finished(const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    return str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed");
}

int64_t host_pod_gpus(const cJSON *pod)
{
    int64_t sum = 0, n;

    json_each(container, json_path(pod, "spec.containers"))
    {
        const cJSON *limit = json_get(json_path(container, "resources.limits"), "nvidia.com/gpu");

        if (str_to_i64(json_str(limit), &n) || json_i64(limit, &n))
            sum += n;
    }
    return sum;
}

uint64_t host_model_revision(const struct host_model *h)
{
    return h->revision;
}

uint64_t host_model_forgotten(const struct host_model *h)
{
    return h->forgotten;
}

void host_model_forget(struct host_model *h)
{
    h->forgotten = h->revision;
}

const struct host_event *host_model_event(const struct host_model *h, size_t at)
{
    return at < h->n_events ? &h->events[at] : NULL;
}

const struct host_object_model *host_model_first(const struct host_model *h)
{
    return h->objects;
}

static struct host_object_model **find(const struct host_model *h, const char *plural,
                                       const char *name)
{
    struct host_object_model **at = (struct host_object_model **)(uintptr_t)&h->objects;

    while (*at) {
        int order = strcmp((*at)->plural, plural);

        if (order > 0 || (!order && strcmp((*at)->name, name) >= 0))
            break;
        at = &(*at)->next;
    }
    return at;
}

static bool is(const struct host_object_model *o, const char *plural, const char *name)
{
    return o && !strcmp(o->plural, plural) && !strcmp(o->name, name);
}

const struct host_object_model *host_model_find(const struct host_model *h, const char *plural,
                                                const char *name)
{
    struct host_object_model *o = *find(h, plural, name);

    return is(o, plural, name) ? o : NULL;
}

/* --- changing --- */

static void record(struct host_model *h, const char *type, const char *plural, const char *name,
                   struct str bytes, bool ours)
{
    GROW(h->events, h->n_events, h->capacity);
    h->events[h->n_events++] = (struct host_event){
        type, mem_strdup(str_c(plural)), mem_strdup(str_c(name)), mem_str(bytes), h->revision,
        ours};
    if (h->changed)
        h->changed(h->ctx);
}

static void put(struct host_model *h, const char *plural, const char *name, struct str bytes,
                uint64_t revision)
{
    struct host_object_model **at = find(h, plural, name), *o = *at;

    if (!is(o, plural, name)) {
        o = NEW(struct host_object_model);
        o->plural = mem_strdup(str_c(plural));
        o->name = mem_strdup(str_c(name));
        o->next = *at;
        *at = o;
    }
    mem_free(o->bytes.p);
    o->bytes = mem_str(bytes);
    o->revision = revision;
}

static void take_out(struct host_object_model **at)
{
    struct host_object_model *o = *at;

    *at = o->next;
    mem_free(o->plural);
    mem_free(o->name);
    mem_free(o->bytes.p);
    mem_free(o);
}

static struct str stamp(struct host_model *h, struct arena *a, cJSON *tree)
{
    h->revision++;
    json_set_str(a, json_ensure_object(a, tree, "metadata"), "resourceVersion",
                 arena_printf(a, "%llu", (unsigned long long)h->revision));
    return json_text(a, tree);
}

void host_model_store(struct host_model *h, struct arena *a, const char *plural, cJSON *tree)
{
    const char *name = arena_cstr(a, json_str_at(tree, "metadata.name"));
    const char *type = host_model_find(h, plural, name) ? "MODIFIED" : "ADDED";
    struct str bytes = stamp(h, a, tree);

    put(h, plural, name, bytes, h->revision);
    record(h, type, plural, name, bytes, host_is_ours(tree));
}

void host_model_put_unseen(struct host_model *h, struct arena *a, const char *plural, cJSON *tree)
{
    put(h, plural, arena_cstr(a, json_str_at(tree, "metadata.name")), json_text(a, tree),
        h->revision);
}

void host_model_drop(struct host_model *h, const char *plural, const char *name, bool by_tenant)
{
    struct host_object_model **at = find(h, plural, name);
    struct arena *a = arena_new(0);
    cJSON *tree = host_parse(a, (*at)->bytes);
    struct str uid = host_virtual_uid(tree);
    struct str bytes = stamp(h, a, tree);
    bool ours = host_is_ours(tree);

    plural = arena_cstr(a, str_c(plural)); /* both may be the object's own */
    name = arena_cstr(a, str_c(name));
    take_out(at);
    if (ours && !by_tenant && h->left)
        h->left(h->ctx, plural, uid);
    record(h, "DELETED", plural, name, bytes, ours);
    arena_free(a);
}

void host_model_fill(struct host_model *h, struct arena *a, const char *plural, cJSON *tree)
{
    cJSON *metadata = json_ensure_object(a, tree, "metadata");
    cJSON *spec;
    unsigned n = (unsigned)++h->uids;

    json_set_str(a, metadata, "uid", arena_printf(a, "host-uid-%u", n));
    json_set_str(a, metadata, "creationTimestamp", STR("2026-02-01T00:00:00Z"));
    if (!strcmp(plural, "pods"))
        json_set_str(a, json_ensure_object(a, tree, "status"), "phase", STR("Pending"));
    if (!strcmp(plural, "persistentvolumeclaims")) {
        json_set_str(a, json_ensure_object(a, tree, "status"), "phase", STR("Pending"));
        spec = json_ensure_object(a, tree, "spec");
        if (!json_get(spec, "storageClassName"))
            json_set_str(a, spec, "storageClassName", STR("standard"));
    }
    if (strcmp(plural, "services") != 0)
        return;
    spec = json_ensure_object(a, tree, "spec");
    if (!json_get(spec, "clusterIP")) {
        struct str ip = arena_printf(a, "10.0.%u.%u", n / 250 % 250, n % 250 + 1);

        json_set_str(a, spec, "clusterIP", ip);
        json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    }
}

void host_model_create(struct host_model *h, struct arena *a, const char *plural, cJSON *tree)
{
    host_model_fill(h, a, plural, tree);
    host_model_store(h, a, plural, tree);
}

/* --- scheduler and kubelet --- */

static void advance(struct host_model *h, struct arena *a, const struct host_object_model *o)
{
    cJSON *pod = host_parse(a, o->bytes), *spec = json_ensure_object(a, pod, "spec");
    struct str node = scheduler_pinned_node(spec);

    if (json_path(pod, "metadata.deletionTimestamp")) {
        host_model_drop(h, "pods", o->name, true);
    } else if (!json_get(spec, "nodeName")) {
        json_set_str(a, spec, "nodeName",
                     node.n ? node : arena_printf(a, "node-%d", (int)(h->revision % 3)));
        host_model_store(h, a, "pods", pod);
    } else if (str_eqc(json_str_at(pod, "status.phase"), "Pending")) {
        kubelet_run_pod(a, pod, h->revision);
        host_model_store(h, a, "pods", pod);
    }
}

static void bind_claim(struct host_model *h, struct arena *a, const struct host_object_model *o)
{
    cJSON *claim = host_parse(a, o->bytes), *status;

    if (!str_eqc(json_str_at(claim, "status.phase"), "Pending"))
        return;
    status = json_get(claim, "status");
    json_set_str(a, status, "phase", STR("Bound"));
    json_set(a, status, "accessModes", json_copy(a, json_path(claim, "spec.accessModes")));
    json_set(a, status, "capacity", json_copy(a, json_path(claim, "spec.resources.requests")));
    json_set_str(a, json_ensure_object(a, claim, "spec"), "volumeName",
                 arena_printf(a, "pvc-%.*s", STR_F(json_str_at(claim, "metadata.uid"))));
    host_model_store(h, a, "persistentvolumeclaims", claim);
}

void host_model_tick(struct host_model *h)
{
    struct arena *a = arena_new(0);
    struct host_object_model *next;

    for (struct host_object_model *o = h->objects; o; o = next) {
        next = o->next;
        if (!strcmp(o->plural, "pods") && dice_chance(h->moment, DICE_HOST, 500))
            advance(h, a, o);
        else if (!strcmp(o->plural, "persistentvolumeclaims"))
            bind_claim(h, a, o);
    }
    arena_free(a);
}

/* --- the host's admin --- */

static const struct host_object_model *choose(struct host_model *h, struct arena *a,
                                              const char *plural)
{
    const struct host_object_model *found = NULL;
    uint64_t n = 0;

    for (const struct host_object_model *o = h->objects; o; o = o->next) {
        if (!strcmp(o->plural, plural) && host_is_ours(host_parse(a, o->bytes)) &&
            dice_below(h->moment, DICE_HOST, ++n) == 0)
            found = o;
    }
    return found;
}

bool host_model_remove_any(struct host_model *h, const char *plural)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = choose(h, a, plural);

    if (o)
        host_model_drop(h, plural, arena_cstr(a, str_c(o->name)), false);
    arena_free(a);
    return o != NULL;
}

bool host_model_edit_any(struct host_model *h, const char *plural)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = choose(h, a, plural);
    cJSON *tree = o ? host_parse(a, o->bytes) : NULL;
    struct str note;

    if (tree) {
        note = arena_printf(a, "%d", (int)dice_below(h->moment, DICE_HOST, 1000));
        json_set_str(a, json_ensure_object(a, json_get(tree, "metadata"), "annotations"),
                     "admin.example/note", note);
        if (json_get(tree, "data") && dice_chance(h->moment, DICE_HOST, 500))
            json_set_str(a, json_get(tree, "data"), "k", note);
        host_model_store(h, a, plural, tree);
    }
    arena_free(a);
    return o != NULL;
}

bool host_model_finish_pod(struct host_model *h, const char *phase)
{
    struct arena *a = arena_new(0);
    const struct host_object_model *o = choose(h, a, "pods");
    cJSON *pod = o ? host_parse(a, o->bytes) : NULL;
    bool runs = str_eqc(json_str_at(pod, "status.phase"), "Running");

    if (runs) {
        json_set_str(a, json_get(pod, "status"), "phase", str_c(phase));
        host_model_store(h, a, "pods", pod);
    }
    arena_free(a);
    return runs;
}

static bool survives(const struct host_event *e, uint64_t revision)
{
    return e->revision <= (revision ? revision : 1 + N_FIXTURES);
}

void host_model_roll_back(struct host_model *h, uint64_t revision)
{
    size_t kept = 0;

    while (h->objects)
        take_out(&h->objects);
    for (size_t i = 0; i < h->n_events; i++) {
        struct host_event e = h->events[i];

        if (!survives(&e, revision)) {
            mem_free(e.plural);
            mem_free(e.name);
            mem_free(e.bytes.p);
            continue;
        }
        h->events[kept++] = e;
        if (!strcmp(e.type, "DELETED"))
            take_out(find(h, e.plural, e.name));
        else
            put(h, e.plural, e.name, e.bytes, e.revision);
    }
    h->n_events = kept;
    h->revision = revision ? revision : 1 + N_FIXTURES;
    h->forgotten = h->revision;
    if (h->changed)
        h->changed(h->ctx);
}

/* --- life --- */

void host_model_on_change(struct host_model *h, void (*changed)(void *ctx),
                          void (*left)(void *ctx, const char *plural, struct str virtual_uid),
                          void *ctx)
{
    h->changed = changed;
    h->left = left;
    h->ctx = ctx;
}

static void put_fixtures(struct host_model *h)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < N_FIXTURES; i++)
        host_model_create(h, a, FIXTURES[i].plural, host_parse(a, str_c(FIXTURES[i].json)));
    arena_free(a);
}

struct host_model *host_model_new(struct moment *m)
{
    struct host_model *h = NEW(struct host_model);

    h->moment = m;
    h->revision = 1;
    put_fixtures(h);
    return h;
}
