/* SPDX-License-Identifier: Apache-2.0 */
/* Serves CRDs live: checks that their names are free, sets the conditions, registers every served
 * version, and unregisters all after deleting the instances when a CRD is deleted. Must never serve
 * a resource whose names another one holds, nor remove a CRD while an instance is left. */
#include <sublet/controller.h>

#include <assert.h>
#include <string.h>

#include "../crd/version_new.h"
#include "crd_names.h"

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/notice.h>
#include <sublet/object.h>
#include <sublet/store_quarantine.h>
#include <sublet/client_config.h>

#define CRDS_MAGIC 0x63726473u
#define FINALIZER  "customresourcecleanup.apiextensions.k8s.io"

struct served {
    UT_hash_handle hh;
    char *name;               /* of the CRD */
    unsigned char digest[32]; /* SHA-256 of its spec: an equal one means an equal spec */
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
        registry_remove(vapi_registry(x->api), s->versions[i]->resource, crd_version_free,
                        s->versions[i]);
    HASH_DEL(x->served, s);
    mem_free(s->versions);
    mem_free(s->name);
    mem_free(s);
}

/* One that has the schema objects are stored with. */
static const struct crd_version *sibling_of(const struct served *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->versions[i]->stored)
            return s->versions[i];
    }
    return NULL;
}

static int put_up_version(struct crds *x, struct served *s, const cJSON *crd, const cJSON *version,
                          struct err *err)
{
    struct crd_version *v = crd_version_new(crd, version, sibling_of(s));

    if (registry_add(vapi_registry(x->api), v->resource, err)) {
        mem_free(v->resource);
        crd_version_free(v);
        return -1;
    }
    s->versions[s->n++] = v;
    return 0;
}

/* Validation requires these fields before a CRD is stored; a damaged CRD without them cannot be
 * served. */
static bool is_complete(const cJSON *crd)
{
    const cJSON *spec = json_get(crd, "spec"), *names = json_get(spec, "names");

    return json_str_at(spec, "group").n && json_str_at(names, "plural").n &&
           json_str_at(names, "kind").n && json_count(json_get(spec, "versions"));
}

/* Registers the served versions, or updates them; does nothing when the spec is unchanged. All or
 * none: a CRD that cannot be registered is not served. */
static int put_up(struct crds *x, struct arena *a, const cJSON *stored, struct err *err)
{
    const cJSON *crd = names_serving(a, stored), *versions = json_path(crd, "spec.versions");
    struct str name = json_str_at(crd, "metadata.name");
    struct served *s = served_find(x, name);
    unsigned char digest[sizeof s->digest];

    sha256(json_text(a, json_get(crd, "spec")), digest);
    if (s && !memcmp(s->digest, digest, sizeof digest))
        return 0;
    if (s)
        take_down(x, s);
    s = NEW(struct served);
    s->name = mem_strdup(name);
    memcpy(s->digest, digest, sizeof digest);
    s->versions = mem_alloc((json_count(versions) + 1) * sizeof(struct crd_version *));
    json_each(version, versions)
    {
        if (!json_true(json_get(version, "served")) || !put_up_version(x, s, crd, version, err))
            continue;
        HASH_ADD_KEYPTR(hh, x->served, s->name, (unsigned)name.n, s);
        take_down(x, s);
        return -1;
    }
    HASH_ADD_KEYPTR(hh, x->served, s->name, (unsigned)name.n, s);
    return 0;
}

/* --- conditions --- */

static bool set_condition(struct arena *a, cJSON *crd, const char *type, bool holds,
                          const char *reason, struct str message, int64_t now)
{
    return condition_set(a, crd, type, holds ? "True" : "False", reason, message, now);
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

static bool has_wrong_bundle(struct arena *a, const cJSON *crd)
{
    const cJSON *bundle = json_path(crd, "spec.conversion.webhook.clientConfig.caBundle");

    return json_str(bundle).n && !client_config_has_ca(a, bundle);
}

/* Returns whether the CRD may be served; *changed: its status must be written. */
static bool judge(struct crds *x, struct arena *a, cJSON *crd, int64_t now, bool *changed)
{
    cJSON *status = json_ensure_object(a, crd, "status");
    struct names_verdict v = names_judge(x->api, a, crd);
    bool established = condition_is_true(json_get(status, "conditions"), "Established");

    *changed = stored_versions(a, crd);
    if (!json_equal(json_get(status, "acceptedNames"), v.accepted)) {
        json_set(a, status, "acceptedNames", v.accepted);
        *changed = true;
    }
    if (v.reason)
        *changed |= set_condition(a, crd, "NamesAccepted", false, v.reason, v.message, now);
    else
        *changed |= set_condition(a, crd, "NamesAccepted", true, "NoConflicts",
                                  STR("no conflicts found"), now);
    /* An established CRD stays established, with its accepted names. */
    if (v.reason && established && !v.shadows)
        return true;
    if (v.reason) {
        *changed |= set_condition(a, crd, "Established", false, "NotAccepted",
                                  STR("not all names are accepted"), now);
        return false;
    }
    if (!established && has_wrong_bundle(a, crd)) {
        *changed |= set_condition(a, crd, "Established", false, "InvalidCABundle",
                                  STR("The conversion webhook CABundle is invalid"), now);
        return false;
    }
    *changed |= set_condition(a, crd, "Established", true, "InitialNamesAccepted",
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
    if (!object_may_be_terminating(o->bytes))
        reconcile_delete(p->run, p->resource, arena_str(a, o->ns), arena_str(a, o->name),
                         arena_str(a, o->uid), "Background");
    return true;
}

/* An unreadable instance is deleted without its finalizers. */
static bool on_unreadable(void *ctx, const struct store_object *o)
{
    struct purge *p = ctx;
    struct arena *a = reconcile_arena(p->run);

    p->left++;
    reconcile_delete(p->run, p->resource, arena_str(a, o->ns), arena_str(a, o->name),
                     arena_str(a, o->uid), NULL);
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
    if (p.resource && !resource_of_crd(p.resource))
        p.resource = NULL;
    if (p.resource && store_scan(vapi_store(x->api), p.resource->storage, STR_NULL, STR_NULL,
                                 STR_NULL, 0, on_instance, &p, &err))
        reconcile_fail(r, &err);
    if (p.resource)
        store_scan_quarantined(vapi_store(x->api), p.resource->storage, STR_NULL, on_unreadable,
                               &p);
    if (!p.left) {
        metadata_finalizer_drop(r, res, crd, FINALIZER);
        return;
    }
    if (set_condition(a, crd, "Terminating", true, "InstanceDeletionInProgress",
                      STR("CustomResource deletion is in progress"), reconcile_now_s(r)))
        reconcile_update_status(r, res, crd);
}

/* --- reconcile --- */

struct neighbours {
    struct controller *controller;
    struct str name, group;
};

static bool on_neighbour(void *ctx, const struct store_object *o)
{
    struct neighbours *n = ctx;
    struct str group = o->name;

    str_cut(&group, '.');
    if (str_eq(group, n->group) && !str_eq(o->name, n->name) &&
        str_contains(o->bytes, STR("is already in use")))
        controller_add_name(n->controller, STR(""), o->name);
    return true;
}

/* Names other CRDs of the group wait for may be free now. */
static void reconsider_group(struct reconcile *r, struct str name)
{
    struct neighbours n = {reconcile_controller(r), name, name};
    const struct resource *res =
        reconcile_resource(r, "apiextensions.k8s.io", "customresourcedefinitions");

    str_cut(&n.group, '.');
    store_scan_latest(vapi_store(reconcile_api(r)), res->storage, STR_NULL, on_neighbour, &n);
}

static struct str subject_of(struct arena *a, struct str name)
{
    return arena_printf(a, "customresourcedefinitions.apiextensions.k8s.io %.*s", STR_F(name));
}

static void report(struct crds *x, struct str name, const cJSON *crd)
{
    struct arena *a = arena_new(0);

    vapi_notice(x->api,
                &(struct vapi_notice){
                    .topic = NOTICE_STORED_OBJECT,
                    .subject = subject_of(a, name),
                    .reason = "DefinitionIncomplete",
                    .message = STR("the stored definition has no group, names or versions to be "
                                   "served under"),
                    .involved = crd,
                });
    arena_free(a);
}

static void crd_reconcile(struct reconcile *r)
{
    struct crds *x = controller_state(reconcile_controller(r));
    const struct resource *res =
        reconcile_resource(r, "apiextensions.k8s.io", "customresourcedefinitions");
    struct str ignored, name;
    struct err err;
    bool changed;

    if (!key_split(reconcile_key(r), &ignored, &name))
        return;
    cJSON *crd = reconcile_get(r, res, STR(""), name);
    struct served *s = served_find(x, name);
    if (!crd) {
        if (s)
            take_down(x, s);
        vapi_notice_over(x->api, NOTICE_STORED_OBJECT, subject_of(reconcile_arena(r), name));
        reconsider_group(r, name);
        return;
    }
    if (object_is_terminating(crd)) {
        if (finalizer_has(crd, FINALIZER))
            terminate(x, r, res, crd);
        return;
    }
    if (!is_complete(crd)) {
        if (s)
            take_down(x, s);
        report(x, name, crd);
        return;
    }
    vapi_notice_over(x->api, NOTICE_STORED_OBJECT, subject_of(reconcile_arena(r), name));
    bool fine = judge(x, reconcile_arena(r), crd, reconcile_now_s(r), &changed);
    err_init(&err, reconcile_arena(r));
    if (fine && put_up(x, reconcile_arena(r), crd, &err))
        changed |= set_condition(reconcile_arena(r), crd, "Established", false, "NotRegistered",
                                 err.message, reconcile_now_s(r));
    else if (!fine && s)
        take_down(x, s);
    if (!changed)
        return;
    reconcile_update_status(r, res, crd);
    reconsider_group(r, name);
}

/* Requeues a terminating CRD when an instance was deleted or created; after missed events, the CRD
 * itself. */
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
    if (crd && object_may_be_terminating(crd->bytes))
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
    .workers = 1, /* names are decided for one CRD at a time */
};

static bool on_stored(void *ctx, const struct store_object *o)
{
    struct crds *x = ctx;
    struct arena *a = arena_new(0);
    const cJSON *crd = vapi_tree(a, o);
    struct err err;

    /* A CRD that cannot be registered is not served; the controller sets its conditions. */
    err_init(&err, a);
    if (is_complete(crd) && condition_is_true(json_path(crd, "status.conditions"), "Established"))
        (void)!put_up(x, a, crd, &err);
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
    assert(!failed); /* the latest revision can always be read */
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
