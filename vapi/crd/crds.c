/* SPDX-License-Identifier: Apache-2.0 */
/* Serves what CRDs describe, live: checks that names are free, says so in conditions, registers
 * every served version, and takes all down again with the instances when a CRD is deleted. Must
 * never serve a resource whose names another one holds, nor let a CRD go while an instance is left.
 */
#include <sublet/controller.h>

#include <assert.h>
#include <string.h>

#include "version_new.h"

#include <sublet/hash.h>

#define CRDS_MAGIC 0x63726473u
#define FINALIZER  "customresourcecleanup.apiextensions.k8s.io"

struct served {
    UT_hash_handle hh;
    char *name;      /* of the CRD */
    uint64_t digest; /* of its spec */
    size_t n;
    struct crd_version **versions;
};

struct crds {
    unsigned magic;
    struct vapi *api;
    struct controller *controller;
    struct served *served;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- registering --- */

static struct served *served_find(struct crds *x, struct str name)
{
    struct served *s = NULL;

    HASH_FIND(hh, x->served, name.p, (unsigned)name.n, s);
    return s;
}

static void take_down(struct crds *x, struct served *s)
{
    for (size_t i = 0; i < s->n; i++)
        registry_remove(vapi_registry(x->api), s->versions[i]->resource, version_free,
                        s->versions[i]);
    HASH_DEL(x->served, s);
    mem_free(s->versions);
    mem_free(s->name);
    mem_free(s);
}

static uint64_t spec_digest(struct arena *a, const cJSON *crd)
{
    return str_hash(json_text(a, json_get(crd, "spec")), 0);
}

/* Puts the served versions up, or changes them; nothing happens when the spec is the same. */
static void put_up(struct crds *x, struct arena *a, const cJSON *crd)
{
    struct str name = json_str_at(crd, "metadata.name");
    struct served *s = served_find(x, name);
    uint64_t digest = spec_digest(a, crd);
    const cJSON *versions = json_path(crd, "spec.versions");

    if (s && s->digest == digest)
        return;
    if (s)
        take_down(x, s);
    s = NEW(struct served);
    s->name = mem_strdup(name);
    s->digest = digest;
    s->versions = mem_alloc((json_count(versions) + 1) * sizeof(struct crd_version *));
    json_each(version, versions)
    {
        if (!json_true(json_get(version, "served")))
            continue;
        s->versions[s->n] = version_new(crd, version);
        registry_add(vapi_registry(x->api), s->versions[s->n]->resource);
        s->n++;
    }
    HASH_ADD_KEYPTR(hh, x->served, s->name, (unsigned)name.n, s);
}

/* --- conditions --- */

static bool say(struct arena *a, cJSON *crd, const char *type, bool holds, const char *reason,
                struct str message, int64_t now)
{
    return condition_set(a, crd, type, holds ? "True" : "False", reason, message, now);
}

/* --- names --- */

struct clash {
    struct arena *arena;
    const cJSON *crd, *names;
    struct str group, plural;
    const char *reason;
    struct str message;
};

static bool is_short_name(const struct resource *r, struct str s)
{
    for (const char *const *n = r->short_names; n && *n; n++) {
        if (str_eqc(s, *n))
            return true;
    }
    return false;
}

static bool resource_has(const struct resource *r, struct str s)
{
    return s.n && (str_eq(r->plural, s) || str_eq(r->singular, s) || is_short_name(r, s));
}

static bool kind_has(const struct resource *r, struct str s)
{
    return s.n && (str_eq(r->kind, s) || str_eq(r->list_kind, s));
}

static void note_clash(struct clash *k, const char *reason, struct str name)
{
    if (k->reason)
        return;
    k->reason = reason;
    k->message = arena_printf(k->arena, "\"%.*s\" is already in use", STR_F(name));
}

static bool on_other(void *ctx, const struct resource *r)
{
    static const struct {
        const char *field, *reason;
    } resources[] = {{"plural", "PluralConflict"}, {"singular", "SingularConflict"}},
      kinds[] = {{"kind", "KindConflict"}, {"listKind", "ListKindConflict"}};
    struct clash *k = ctx;

    if (!str_eq(r->group, k->group) || str_eq(r->plural, k->plural))
        return true;
    for (size_t i = 0; i < 2; i++) {
        struct str name = json_str_at(k->names, resources[i].field);

        if (resource_has(r, name))
            note_clash(k, resources[i].reason, name);
    }
    json_each(name, json_get(k->names, "shortNames"))
    {
        if (resource_has(r, json_str(name)))
            note_clash(k, "ShortNamesConflict", json_str(name));
    }
    for (size_t i = 0; i < 2; i++) {
        struct str name = json_str_at(k->names, kinds[i].field);

        if (kind_has(r, name))
            note_clash(k, kinds[i].reason, name);
    }
    return true;
}

static struct clash find_clash(struct crds *x, struct arena *a, const cJSON *crd)
{
    struct clash k = {.arena = a,
                      .crd = crd,
                      .names = json_path(crd, "spec.names"),
                      .group = json_str_at(crd, "spec.group")};

    k.plural = json_str_at(k.names, "plural");
    registry_each(vapi_registry(x->api), on_other, &k);
    return k;
}

/* --- status --- */

static bool stored_versions(struct arena *a, cJSON *crd)
{
    cJSON *status = json_ensure_object(a, crd, "status"),
          *list = json_get(status, "storedVersions");
    struct str storage = STR("");

    json_each(version, json_path(crd, "spec.versions"))
    {
        if (json_true(json_get(version, "storage")))
            storage = json_str_at(version, "name");
    }
    if (!json_is_array(list))
        list = json_set(a, status, "storedVersions", json_new_array(a));
    if (json_list_has(list, storage))
        return false;
    json_append(list, json_new_string(a, storage));
    return true;
}

/* Returns whether the CRD may be served; *changed: its status has to be written. */
static bool judge(struct crds *x, struct arena *a, cJSON *crd, int64_t now, bool *changed)
{
    struct clash k = find_clash(x, a, crd);
    cJSON *status = json_ensure_object(a, crd, "status");

    *changed = stored_versions(a, crd);
    if (k.reason) {
        *changed |= say(a, crd, "NamesAccepted", false, k.reason, k.message, now);
        *changed |= say(a, crd, "Established", false, "NotAccepted",
                        STR("not all names are accepted"), now);
        return false;
    }
    if (!json_equal(json_get(status, "acceptedNames"), json_path(crd, "spec.names"))) {
        json_set(a, status, "acceptedNames", json_copy(a, json_path(crd, "spec.names")));
        *changed = true;
    }
    *changed |= say(a, crd, "NamesAccepted", true, "NoConflicts", STR("no conflicts found"), now);
    *changed |= say(a, crd, "Established", true, "InitialNamesAccepted",
                    STR("the initial names have been accepted"), now);
    return true;
}

/* --- deletion --- */

struct purge {
    struct reconcile *run;
    const struct resource *resource;
    size_t left;
};

static bool on_instance(void *ctx, const struct store_object *o)
{
    struct purge *p = ctx;
    struct arena *a = reconcile_arena(p->run);

    p->left++;
    if (!str_contains(o->bytes, STR("\"deletionTimestamp\"")))
        reconcile_delete(p->run, p->resource, arena_str(a, o->ns), arena_str(a, o->name),
                         arena_str(a, o->uid), "Background");
    return true;
}

static void terminate(struct crds *x, struct reconcile *r, const struct resource *res, cJSON *crd)
{
    struct arena *a = reconcile_arena(r);
    struct purge p = {.run = r};
    struct err err;

    p.resource = registry_find_group_resource(vapi_registry(x->api), json_str_at(crd, "spec.group"),
                                              json_str_at(json_path(crd, "spec.names"), "plural"));
    err_init(&err, a);
    if (p.resource && p.resource->crd &&
        store_scan(vapi_store(x->api), p.resource->storage, STR_NULL, STR_NULL, STR_NULL, 0,
                   on_instance, &p, &err))
        reconcile_fail(r, &err);
    if (!p.left) {
        finalizer_drop(r, res, crd, FINALIZER);
        return;
    }
    if (say(a, crd, "Terminating", true, "InstanceDeletionInProgress",
            STR("CustomResource deletion is in progress"), reconcile_now_s(r)))
        reconcile_update_status(r, res, crd);
}

/* --- the loop --- */

static void crd_reconcile(struct reconcile *r)
{
    struct crds *x = controller_state(reconcile_controller(r));
    const struct resource *res =
        reconcile_resource(r, "apiextensions.k8s.io", "customresourcedefinitions");
    struct str ignored, name;
    bool changed;

    if (!key_split(reconcile_key(r), &ignored, &name))
        return;
    cJSON *crd = reconcile_get(r, res, STR(""), name);
    struct served *s = served_find(x, name);
    if (!crd) {
        if (s)
            take_down(x, s);
        return;
    }
    if (json_path(crd, "metadata.deletionTimestamp")) {
        if (finalizer_has(crd, FINALIZER))
            terminate(x, r, res, crd);
        return;
    }
    bool fine = judge(x, reconcile_arena(r), crd, reconcile_now_s(r), &changed);
    if (fine)
        put_up(x, reconcile_arena(r), crd);
    else if (s)
        take_down(x, s);
    if (changed)
        reconcile_update_status(r, res, crd);
}

/* An instance left, or one was made while its definition was on its way out; or, when events were
 * missed, the definition itself. */
static void map_any(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *r = registry_by_storage(vapi_registry(api), e->object->resource), *crds;
    struct str name = e->object->name;
    const struct store_object *crd;

    if (!r || e->type == STORE_MODIFIED)
        return;
    crds = registry_find_group_resource(vapi_registry(api), STR("apiextensions.k8s.io"),
                                        STR("customresourcedefinitions"));
    if (r->crd)
        name = r->group_resource;
    else if (r != crds)
        return;
    crd = store_get(vapi_store(api), crds->storage, STR(""), name);
    if (crd && str_contains(crd->bytes, STR("\"deletionTimestamp\"")))
        controller_add_name(c, STR(""), name);
}

static const struct controller_source SOURCES[] = {
    {"apiextensions.k8s.io", "customresourcedefinitions", controller_map_self},
    {"*", "*", map_any},
    {NULL, NULL, NULL}};
static const struct controller_def DEF = {
    .name = "crd-controller",
    .sources = SOURCES,
    .reconcile = crd_reconcile,
    .workers = 1, /* names are judged one CRD at a time */
};

static bool on_stored(void *ctx, const struct store_object *o)
{
    struct crds *x = ctx;
    struct arena *a = arena_new(0);
    const cJSON *crd = vapi_tree(a, o);

    if (condition_is_true(json_path(crd, "status.conditions"), "Established"))
        put_up(x, a, crd);
    arena_free(a);
    return true;
}

struct crds *crds_start(struct vapi *api)
{
    struct crds *x = NEW(struct crds);
    const struct resource *res = registry_find_group_resource(
        vapi_registry(api), STR("apiextensions.k8s.io"), STR("customresourcedefinitions"));
    struct err err;

    *x = (struct crds){.magic = CRDS_MAGIC, .api = api};
    err_init(&err, NULL);
    int failed = store_scan(vapi_store(api), res->storage, STR_NULL, STR_NULL, STR_NULL, 0,
                            on_stored, x, &err);
    assert(!failed); /* the present can always be read */
    x->controller = controller_start_with(api, &DEF, x);
    return x;
}

static void on_closed(void *ctx)
{
    struct crds *x = ctx;
    struct served *s, *next;

    assert(x->magic == CRDS_MAGIC);
    HASH_ITER(hh, x->served, s, next)
    {
        take_down(x, s);
    }
    void (*closed)(void *) = x->closed;
    void *closed_ctx = x->closed_ctx;
    x->magic = 0;
    mem_free(x);
    closed(closed_ctx);
}

void crds_close(struct crds *x, void (*closed)(void *ctx), void *ctx)
{
    x->closed = closed;
    x->closed_ctx = ctx;
    controller_close(x->controller, on_closed, x);
}
