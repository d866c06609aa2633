/* SPDX-License-Identifier: Apache-2.0 */
/* Empties a terminating namespace, pods first, and removes the `kubernetes` finalizer through
 * /finalize when it is empty. Must never finalize a namespace while an object is in it, and reports
 * in its conditions what it waits for. It waits for events, not for time: every object deleted from
 * a terminating namespace requeues its key.
 *
 *   delete pods -> any left? wait -> delete other objects -> count -> conditions
 *                                                             '-> empty: what extension API servers
 *                                                                 have of it -> empty: finalize
 *
 * Source: pkg/controller/namespace/deletion of Kubernetes 1.36. */
#include "namespace_extension.h"
#include "util.h"

#include <sublet/store_quarantine.h>

#include <stdlib.h>

#define DELETES_A_RUN 2000
#define MESSAGE_MAX   8192

/* The remaining objects of one resource, or with one finalizer. */
struct tally {
    struct str name;
    size_t n;
};

struct content {
    struct reconcile *run;
    cJSON *ns;
    bool removing, pods;
    size_t n, budget;
    struct tally *kinds, *finalizers;
    size_t n_kinds, n_finalizers;
    const cJSON *as_read;
    struct namespace_elsewhere elsewhere; /* of extension API servers, once nothing is left here */
};

struct sweep {
    struct content *content;
    const struct resource *resource;
    size_t n;
};

/* --- counting --- */

static struct tally *tally_get(struct arena *a, struct tally **list, size_t *n, struct str name)
{
    for (size_t i = 0; i < *n; i++) {
        if (str_eq((*list)[i].name, name))
            return &(*list)[i];
    }
    if ((*n & (*n + 1)) == 0) { /* full at 1, 3, 7, ... */
        struct tally *more = arena_alloc(a, (2 * *n + 2) * sizeof(*more));

        for (size_t i = 0; i < *n; i++)
            more[i] = (*list)[i];
        *list = more;
    }
    (*list)[*n] = (struct tally){arena_str(a, name), 0};
    return &(*list)[(*n)++];
}

static void count_finalizers(struct content *c, const struct store_object *o)
{
    struct arena *a = reconcile_arena(c->run), *scratch;

    if (!str_contains(o->bytes, STR("\"finalizers\"")))
        return;
    scratch = arena_new(0);
    json_each(item, json_path(vapi_tree(scratch, o), "metadata.finalizers"))
        tally_get(a, &c->finalizers, &c->n_finalizers, json_str(item))
            ->n++;
    arena_free(scratch);
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct sweep *s = ctx;
    struct content *c = s->content;
    struct arena *a = reconcile_arena(c->run);

    s->n++;
    if (!c->removing) {
        count_finalizers(c, o);
        return true;
    }
    if (object_may_be_terminating(o->bytes))
        return true;
    reconcile_delete(c->run, s->resource, arena_str(a, o->ns), arena_str(a, o->name),
                     arena_str(a, o->uid), "Background");
    return --c->budget > 0;
}

/* Its finalizers are unreadable; a delete removes it. */
static bool on_unreadable(void *ctx, const struct store_object *o)
{
    struct sweep *s = ctx;
    struct content *c = s->content;
    struct arena *a = reconcile_arena(c->run);

    s->n++;
    if (!c->removing)
        return true;
    reconcile_delete(c->run, s->resource, arena_str(a, o->ns), arena_str(a, o->name),
                     arena_str(a, o->uid), NULL);
    return --c->budget > 0;
}

static bool on_resource(void *ctx, const struct resource *res)
{
    struct content *c = ctx;
    struct sweep s = {.content = c, .resource = res};
    bool pods = !res->group.n && str_eqc(res->plural, "pods");
    struct err err;

    if (!resource_namespaced(res) || res->flags & RES_REVIEW || (c->pods && !pods) ||
        !str_eq(res->storage_version, res->api_version))
        return true;
    err_init(&err, reconcile_arena(c->run));
    if (store_scan(vapi_store(reconcile_api(c->run)), res->storage, meta_name(c->ns), STR_NULL,
                   STR_NULL, 0, on_object, &s, &err))
        reconcile_fail(c->run, &err);
    if (c->budget > 0)
        store_scan_quarantined(vapi_store(reconcile_api(c->run)), res->storage, meta_name(c->ns),
                               on_unreadable, &s);
    c->n += s.n;
    if (s.n && !c->removing)
        tally_get(reconcile_arena(c->run), &c->kinds, &c->n_kinds,
                  arena_printf(reconcile_arena(c->run), "%.*s.%.*s", STR_F(res->plural),
                               STR_F(res->group)))
            ->n += s.n;
    return c->budget > 0;
}

/* Removes, or counts, all pods or all objects. */
static void sweep(struct content *c, bool removing, bool pods)
{
    c->removing = removing;
    c->pods = pods;
    c->n = c->n_kinds = c->n_finalizers = 0;
    c->kinds = c->finalizers = NULL;
    c->budget = DELETES_A_RUN;
    registry_each(vapi_registry(reconcile_api(c->run)), on_resource, c);
}

/* --- conditions --- */

static int by_name(const void *pa, const void *pb)
{
    return str_cmp(((const struct tally *)pa)->name, ((const struct tally *)pb)->name);
}

static struct str summary_of(struct arena *a, const char *head, const char *verb,
                             struct tally *list, size_t n)
{
    struct buf text = BUF_INIT(MESSAGE_MAX);
    struct str copy;

    if (n)
        qsort(list, n, sizeof(*list), by_name);
    buf_addc(&text, head);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s%.*s %s %zu resource instances", i ? ", " : "", STR_F(list[i].name),
                   verb, list[i].n);
    copy = arena_str(a, buf_str(&text));
    buf_fini(&text);
    return copy;
}

static void set(struct content *c, const char *type, bool bad, const char *reason,
                struct str message)
{
    condition_set(reconcile_arena(c->run), c->ns, type, bad ? "True" : "False", reason, message,
                  reconcile_now_s(c->run));
}

/* --- steps --- */

static void finalize(struct content *c)
{
    cJSON *list = json_path(c->ns, "spec.finalizers");

    json_each(item, list)
    {
        if (str_eqc(json_str(item), "kubernetes")) {
            json_detach(list, item);
            break;
        }
    }
    reconcile_update_at(c->run, reconcile_resource(c->run, "", "namespaces"), "finalize", c->ns);
}

static void report_failures(struct content *c)
{
    struct arena *a = reconcile_arena(c->run);
    const struct err *err = reconcile_error(c->run);
    struct str undiscovered = c->elsewhere.undiscovered;
    struct str failure = err ? err->message : c->elsewhere.failure;

    set(c, "NamespaceDeletionDiscoveryFailure", undiscovered.n > 0,
        undiscovered.n ? "DiscoveryFailed" : "ResourcesDiscovered",
        undiscovered.n ? undiscovered : STR("All resources successfully discovered"));
    set(c, "NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
        STR("All legacy kube types successfully parsed"));
    if (failure.n)
        set(c, "NamespaceDeletionContentFailure", true, "ContentDeletionFailed",
            arena_printf(a, "Failed to delete all resource types, 1 remaining: %.*s",
                         STR_F(failure)));
    else
        set(c, "NamespaceDeletionContentFailure", false, "ContentDeleted",
            STR("All content successfully deleted, may be waiting on finalization"));
}

static void report(struct content *c)
{
    struct arena *a = reconcile_arena(c->run);

    report_failures(c);
    set(c, "NamespaceContentRemaining", c->n_kinds > 0,
        c->n_kinds ? "SomeResourcesRemain" : "ContentRemoved",
        c->n_kinds ? summary_of(a, "Some resources are remaining: ", "has", c->kinds, c->n_kinds)
                   : STR("All content successfully removed"));
    set(c, "NamespaceFinalizersRemaining", c->n_finalizers > 0,
        c->n_finalizers ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
        c->n_finalizers
            ? summary_of(a, "Some content in the namespace has finalizers remaining: ", "in",
                         c->finalizers, c->n_finalizers)
            : STR("All content-preserving finalizers finished"));
    controller_status_commit(c->run, reconcile_resource(c->run, "", "namespaces"), c->ns,
                             c->as_read);
}

/* What is elsewhere sends no events: it is looked at again after a while. */
static void on_elsewhere(struct reconcile *r, void *ctx)
{
    struct content *c = ctx;
    const struct namespace_elsewhere *e = &c->elsewhere;

    if (!e->n_remaining && !e->undiscovered.n && !e->failure.n) {
        finalize(c);
        return;
    }
    for (size_t i = 0; i < e->n_remaining; i++)
        tally_get(reconcile_arena(r), &c->kinds, &c->n_kinds, e->remaining[i].resource)->n +=
            e->remaining[i].n;
    report(c);
    reconcile_again_after(r, NAMESPACE_ELSEWHERE_MS);
}

static void judge(struct reconcile *r, void *ctx)
{
    struct content *c = ctx;

    c->as_read = json_copy(reconcile_arena(r), c->ns);
    sweep(c, false, false);
    if (c->n || reconcile_error(r))
        report(c);
    else
        namespace_sweep_elsewhere(r, meta_name(c->ns), &c->elsewhere, on_elsewhere, c);
}

/* Objects that pods use must not be deleted before the pods. */
static void on_pods_deleted(struct reconcile *r, void *ctx)
{
    struct content *c = ctx;

    sweep(c, false, true);
    if (c->n) {
        judge(r, c);
        return;
    }
    sweep(c, true, false);
    reconcile_next(r, judge, c);
}

static void namespace_reconcile(struct reconcile *r)
{
    struct content *c = ARENA_NEW(reconcile_arena(r), struct content);
    struct str ignored, name;

    if (!key_split(reconcile_key(r), &ignored, &name))
        return;
    *c = (struct content){.run = r};
    c->ns = reconcile_get(r, reconcile_resource(r, "", "namespaces"), STR(""), name);
    if (!c->ns || !object_is_terminating(c->ns) ||
        !json_list_has(json_path(c->ns, "spec.finalizers"), STR("kubernetes")))
        return;
    sweep(c, true, true);
    reconcile_next(r, on_pods_deleted, c);
}

/* --- events --- */

static bool is_terminating(const struct store_object *ns)
{
    return ns && object_may_be_terminating(ns->bytes);
}

static void map_namespace(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED && is_terminating(e->object))
        controller_map_self(c, e);
}

/* Objects created in or deleted from a terminating namespace. */
static void map_content(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *spaces;

    if (!e->object->ns.n)
        return;
    spaces = registry_find_group_resource(vapi_registry(api), STR(""), STR("namespaces"));
    if (!is_terminating(store_get(vapi_store(api), spaces->storage, STR(""), e->object->ns)))
        return;
    controller_add_name(c, STR(""), e->object->ns);
}

static const struct controller_source SOURCES[] = {
    {"", "namespaces", map_namespace}, {"*", "*", map_content}, {NULL, NULL, NULL}};

const struct controller_def NAMESPACE_CONTROLLER = {
    .name = "namespace-controller",
    .sources = SOURCES,
    .reconcile = namespace_reconcile,
};
