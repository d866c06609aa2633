/* SPDX-License-Identifier: Apache-2.0 */
/* Empties a namespace that is being deleted, pods first, and lets it go when nothing is left:
 * removes the `kubernetes` finalizer through /finalize. Must never let a namespace go while an
 * object is in it, and tells in its conditions what it is waiting for. */
#include "util.h"

#define RETRY_MS 1000

struct content {
    struct reconcile *run;
    struct str ns;
    bool pods_only;
    size_t left, finalized;       /* objects there; of them waiting for finalizers */
    struct buf kinds, finalizers; /* for messages */
};

struct sweep {
    struct content *content;
    const struct resource *resource;
    size_t n, with_finalizers;
};

static bool on_object(void *ctx, const struct store_object *o)
{
    struct sweep *s = ctx;
    struct reconcile *r = s->content->run;

    s->n++;
    if (str_contains(o->bytes, STR("\"deletionTimestamp\""))) {
        if (str_contains(o->bytes, STR("\"finalizers\"")))
            s->with_finalizers++;
        return true;
    }
    reconcile_delete(r, s->resource, o->ns, arena_str(reconcile_arena(r), o->name),
                     arena_str(reconcile_arena(r), o->uid), "Background");
    return true;
}

static void note(struct buf *b, const struct resource *res, size_t n)
{
    buf_printf(b, "%s%.*s has %zu resource instances", b->n ? ", " : "", STR_F(res->group_resource),
               n);
}

static bool on_resource(void *ctx, const struct resource *res)
{
    struct content *c = ctx;
    struct sweep s = {.content = c, .resource = res};
    bool pods = !res->group.n && str_eqc(res->plural, "pods");
    struct err err;

    if (!resource_namespaced(res) || res->flags & RES_REVIEW ||
        !str_eq(res->storage_version, res->api_version) || c->pods_only != pods)
        return true;
    err_init(&err, reconcile_arena(c->run));
    if (store_scan(vapi_store(reconcile_api(c->run)), res->storage, c->ns, STR_NULL, STR_NULL, 0,
                   on_object, &s, &err))
        reconcile_fail(c->run, &err);
    c->left += s.n;
    c->finalized += s.with_finalizers;
    if (s.n)
        note(&c->kinds, res, s.n);
    if (s.with_finalizers)
        note(&c->finalizers, res, s.with_finalizers);
    return true;
}

static void set_conditions(struct reconcile *r, cJSON *ns, struct content *c)
{
    static const char *const fine[][3] = {
        {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
         "All resources successfully discovered"},
        {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
         "All legacy kube types successfully parsed"},
        {"NamespaceDeletionContentFailure", "ContentDeleted",
         "All content successfully deleted, may be waiting on finalization"},
    };
    struct arena *a = reconcile_arena(r);
    int64_t now = reconcile_now_s(r);
    bool changed = false;

    for (size_t i = 0; i < 3; i++)
        changed |= condition_set(a, ns, fine[i][0], "False", fine[i][1], str_c(fine[i][2]), now);
    struct str kinds =
        c->left ? arena_printf(a, "Some resources are remaining: %.*s", STR_F(buf_str(&c->kinds)))
                : STR("All content successfully removed");
    changed |= condition_set(a, ns, "NamespaceContentRemaining", c->left ? "True" : "False",
                             c->left ? "SomeResourcesRemain" : "ContentRemoved", kinds, now);
    struct str waits =
        c->finalized
            ? arena_printf(a, "Some content in the namespace has finalizers remaining: %.*s",
                           STR_F(buf_str(&c->finalizers)))
            : STR("All content-preserving finalizers finished");
    changed |=
        condition_set(a, ns, "NamespaceFinalizersRemaining", c->finalized ? "True" : "False",
                      c->finalized ? "SomeFinalizersRemain" : "ContentHasNoFinalizers", waits, now);
    const struct resource *res = reconcile_resource(r, "", "namespaces");
    if (changed && c->left)
        reconcile_update_status(r, res, ns);
}

static void finalize(struct reconcile *r, cJSON *ns)
{
    cJSON *list = json_path(ns, "spec.finalizers");

    json_each(item, list)
    {
        if (str_eqc(json_str(item), "kubernetes")) {
            json_detach(list, item);
            break;
        }
    }
    reconcile_update_at(r, reconcile_resource(r, "", "namespaces"), "finalize", ns);
}

static void namespace_reconcile(struct reconcile *r)
{
    struct str ignored, name;
    const struct resource *res = reconcile_resource(r, "", "namespaces");

    if (!key_split(reconcile_key(r), &ignored, &name))
        return;
    cJSON *ns = reconcile_get(r, res, STR(""), name);
    if (!ns || !is_going(ns) || !list_has(json_path(ns, "spec.finalizers"), "kubernetes"))
        return;
    struct content c = {.run = r, .ns = name, .pods_only = true};
    c.kinds = c.finalizers = BUF_INIT(4096);
    struct registry *g = vapi_registry(reconcile_api(r));
    /* Pods go first: what they use must not be taken from under them. */
    registry_each(g, on_resource, &c);
    c.pods_only = false;
    if (!c.left)
        registry_each(g, on_resource, &c);
    set_conditions(r, ns, &c);
    if (c.left)
        reconcile_again_after(r, RETRY_MS);
    else
        finalize(r, ns);
    buf_fini(&c.kinds);
    buf_fini(&c.finalizers);
}

static void map_namespace(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED && str_contains(e->object->bytes, STR("\"deletionTimestamp\"")))
        controller_map_self(c, e);
}

static const struct controller_source SOURCES[] = {{"", "namespaces", map_namespace},
                                                   {NULL, NULL, NULL}};

const struct controller_def NAMESPACE_CONTROLLER = {
    .name = "namespace-controller",
    .sources = SOURCES,
    .reconcile = namespace_reconcile,
};
