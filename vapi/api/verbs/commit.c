/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The last step of every write and deletion: quota, the syncer's hook, the revision inside the
 * bytes, the store. All of it happens without returning to the loop, so that the checked object is
 * the stored one. It must never pass anything to the store that the hooks did not see. */
#include "verbs.h"

#include "../../core/meta.h"
#include "../../core/quarantine.h"

#include <assert.h>
#include <string.h>

#include <sublet/admission.h>
#include <sublet/crd.h>
#include <sublet/object.h>

/* etcd's limit for one object; clients and backups expect no more */
#define MAX_OBJECT (1536u * 1024)

int commit_not_found(struct call *c, struct err *err)
{
    const struct store_object *unreadable = quarantine_of(c);

    if (unreadable)
        return quarantine_refuse(c, unreadable, err);
    return err_not_found(err, c->resource->group, c->resource->plural, c->name);
}

int commit_modified(struct call *c, struct err *err)
{
    return err_conflict(err, c->resource->group, c->resource->plural, c->name,
                        "the object has been modified; please apply your changes to the latest "
                        "version and try again");
}

const struct resource *commit_hub(struct call *c)
{
    const struct resource *requested = c->resource;
    const struct resource *kept = registry_by_storage(vapi_registry(c->api), requested->storage);

    if (!requested->crd && kept)
        c->resource = kept;
    return requested;
}

/* ---- the stored form ---- */

/* Built-ins were converted to their stored version before (commit_hub); the versions of a custom
 * resource differ in apiVersion, unless a webhook made the stored form. */
static cJSON *stored_tree(struct call *c, cJSON *object, int64_t revision)
{
    const struct resource *r = c->resource;

    if (call_entry(c)->stored_form) {
        object = json_copy(c->arena, call_entry(c)->stored_form);
        vapi_meta_set_revision(c->arena, object, revision);
        return object;
    }
    if (str_eq(r->api_version, r->storage_version))
        return object;
    assert(r->crd && !r->conversion);
    object = json_copy(c->arena, object);
    json_set_str(c->arena, object, "apiVersion", r->storage_version);
    crd_to_stored(r->crd, c->arena, object);
    return object;
}

/* Watchers receive a deleted object as it last was, not as the writer changed it when removing the
 * last finalizer. */
static cJSON *removed_tree(struct call *c, const cJSON *before, int64_t revision)
{
    cJSON *tree = json_copy(c->arena, before);

    vapi_meta_set_revision(c->arena, tree, revision);
    return tree;
}

/* ---- the store ---- */

/* Adds the object's name to an error of the store. */
static int explain(struct call *c, struct str name, struct err *err)
{
    const struct resource *r = c->resource;

    if (err->kind == &ERR_ALREADY_EXISTS)
        return err_already_exists(err, r->group, r->plural, name);
    if (err->kind == &ERR_CONFLICT)
        return commit_modified(c, err);
    if (err->kind == &ERR_NOT_FOUND)
        return commit_not_found(c, err);
    if (err->kind == &ERR_FORBIDDEN) {
        const char *why = arena_cstr(c->arena, err->message);

        return err_forbidden(err, r->group, r->plural, name, "%s", why);
    }
    return -1;
}

static int run_hooks(struct call *c, enum store_op op, const cJSON *object, const cJSON *before,
                     struct err *err)
{
    const struct vapi_hooks *h = vapi_get_hooks(c->api);

    if (!h->before_store)
        return 0;
    return h->before_store(h->ctx, c->arena, c->resource, op == STORE_DELETE ? NULL : object,
                           before, c->options.dry_run, err);
}

static int check_quota(struct call *c, enum store_op op, const cJSON *object, const cJSON *before,
                       struct err *err)
{
    struct admission_call a;

    if (op == STORE_DELETE)
        return 0;
    call_admission(c, op == STORE_CREATE ? ADMISSION_CREATE : ADMISSION_UPDATE, &a);
    return admission_quota(&a, object, before, err);
}

static int write_bytes(struct call *c, enum store_op op, const cJSON *tree,
                       const struct store_object *old, struct err *err)
{
    const struct resource *r = c->resource;
    const cJSON *metadata = json_get(tree, "metadata");
    const struct resource *kept = registry_by_storage(vapi_registry(c->api), r->storage);
    struct buf bytes = BUF_INIT(0);
    struct store_write w = {
        .op = op,
        .resource = r->storage,
        .skip = r->flags & RES_ITEM_TYPE_META ? 0 : r->skip,
        .expected = old ? old->revision : 0,
        .ns = resource_namespaced(r) ? json_str(json_get(metadata, "namespace")) : STR(""),
        .name = json_str(json_get(metadata, "name")),
        .uid = json_str(json_get(metadata, "uid")),
        .labels = index_labels(c->arena, tree),
        .fields = index_fields(c->arena, kept ? kept : r, tree),
        .ending = meta_is_terminating(metadata),
    };
    int failed = 0;

    json_print(&bytes, tree);
    w.bytes = buf_str(&bytes);
    if (bytes.n > MAX_OBJECT)
        failed = err_set(err, &ERR_TOO_LARGE,
                         "Request entity too large: the object has %zu bytes, limit is %u", bytes.n,
                         MAX_OBJECT);
    /* managedFields, patches and policies nest deeper than the body of any request. */
    else if (op != STORE_DELETE && json_deeper(tree, JSON_LIMITS.depth))
        failed = err_set(err, &ERR_TOO_LARGE,
                         "Request entity too large: the object nests deeper than %u levels",
                         JSON_LIMITS.depth);
    if (!failed && store_write(vapi_store(c->api), &w, err))
        failed = explain(c, w.name, err);
    buf_fini(&bytes);
    return failed;
}

int commit_object(struct call *c, enum store_op op, cJSON *object, const struct store_object *old,
                  const cJSON *before, const struct store_object **ret, struct err *err)
{
    struct store *store = vapi_store(c->api);
    const cJSON *metadata;
    int64_t revision;
    cJSON *tree;

    if (check_quota(c, op, object, before, err) || run_hooks(c, op, object, before, err))
        return -1;
    if (c->options.dry_run) {
        vapi_meta_canonical(c->arena, c->resource, object);
        return 0;
    }
    revision = store_next_revision(store);
    vapi_meta_set_revision(c->arena, object, revision);
    vapi_meta_canonical(c->arena, c->resource, object);
    tree =
        stored_tree(c, op == STORE_DELETE ? removed_tree(c, before, revision) : object, revision);
    if (tree != object)
        vapi_meta_canonical(c->arena, c->resource, tree);
    if (write_bytes(c, op, tree, old, err))
        return -1;
    if (!ret)
        return 0;
    metadata = json_get(tree, "metadata");
    *ret = store_object_ref(store_latest(
        store, c->resource->storage,
        resource_namespaced(c->resource) ? json_str(json_get(metadata, "namespace")) : STR(""),
        json_str(json_get(metadata, "name"))));
    return 0;
}
