/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The server's part of metadata: sets the fields it owns, keeps those an update cannot change, and
 * puts members in upstream's order. meta_validate.c has the checks. It must never take uid,
 * creationTimestamp, deletionTimestamp or generation from a client. Source: apiserver
 * pkg/registry/rest/{create,update,meta}.go. */
#include "meta.h"

#include "../types/tree.h"
#include "core.h"

#include <string.h>

#include <sublet/object.h>

#define GENERATED_SUFFIX 5
#define MAX_NAME         63
#define MAX_COMPARED     64

static const char *const ORDER[] = {
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
};
#define N_ORDER COUNT(ORDER)

static void move_first(cJSON *parent, const char *key)
{
    cJSON *node = json_get(parent, key);

    if (!node || parent->child == node)
        return;
    json_detach(parent, node);
    node->next = parent->child;
    node->prev = parent->child->prev;
    parent->child->prev = node;
    parent->child = node;
}

/* Built-in metadata is printed from a struct, its maps sorted by key. */
static void order_metadata(struct arena *a, cJSON *metadata)
{
    static const char *const maps[] = {"labels", "annotations"};

    for (size_t i = 0; i < COUNT(maps); i++) {
        cJSON *map = json_get(metadata, maps[i]);

        if (json_is_object(map))
            tree_sort_members(a, map);
    }
    for (size_t i = N_ORDER; i > 0; i--)
        move_first(metadata, ORDER[i - 1]);
}

void vapi_meta_canonical(struct arena *a, const struct resource *r, cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");

    if (r->crd) {
        tree_sort(a, object);
    } else {
        if (json_is_object(metadata))
            order_metadata(a, metadata);
        move_first(object, "metadata");
    }
    move_first(object, "apiVersion");
    move_first(object, "kind");
}

cJSON *vapi_meta_of(struct arena *a, cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");

    if (json_is_object(metadata))
        return metadata;
    return json_set(a, object, "metadata", json_new_object(a));
}

void vapi_meta_wipe(struct arena *a, cJSON *object)
{
    static const char *const system[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                         "deletionGracePeriodSeconds", "selfLink"};
    cJSON *metadata = vapi_meta_of(a, object);

    for (size_t i = 0; i < COUNT(system); i++)
        json_remove(metadata, system[i]);
}

void vapi_meta_fill(struct vapi *api, struct arena *a, cJSON *object)
{
    cJSON *metadata = vapi_meta_of(a, object);
    char uuid[37];

    rng_uuid(vapi_rng(api), uuid);
    json_set_str(a, metadata, "uid", str_c(uuid));
    json_set_str(a, metadata, "creationTimestamp", time_format_s(a, clock_wall_s(vapi_clock(api))));
}

int vapi_meta_wrong_namespace(struct err *err)
{
    return err_set(err, &ERR_BAD_REQUEST,
                   "the namespace of the provided object does not match the namespace sent on the "
                   "request");
}

int vapi_meta_check_namespace(const struct call *c, struct arena *a, cJSON *object, struct err *err)
{
    cJSON *metadata = vapi_meta_of(a, object);
    struct str got = json_str(json_get(metadata, "namespace"));

    if (!resource_namespaced(c->resource)) {
        /* As EnsureObjectNamespaceMatchesRequestNamespace: a cluster-scoped object loses its
         * namespace. */
        json_remove(metadata, "namespace");
        return 0;
    }
    if (got.n && !str_eq(got, c->ns))
        return vapi_meta_wrong_namespace(err);
    json_set_str(a, metadata, "namespace", c->ns);
    return 0;
}

void vapi_meta_generate_name(struct vapi *api, struct arena *a, cJSON *object)
{
    cJSON *metadata = vapi_meta_of(a, object);
    struct str base = json_str(json_get(metadata, "generateName"));
    char suffix[GENERATED_SUFFIX + 1];

    rng_suffix(vapi_rng(api), suffix, GENERATED_SUFFIX);
    base = str_sub(base, 0, MAX_NAME - GENERATED_SUFFIX);
    json_set_str(a, metadata, "name", arena_printf(a, "%.*s%s", STR_F(base), suffix));
}

static const char DUPLICATE_OWNERS[] =
    ".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in "
    "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
    "UID(s) observed: %.*s";

static bool seen_before(const cJSON *list, const cJSON *item)
{
    json_each(other, list)
    {
        if (other == item)
            return false;
        if (json_equal(other, item))
            return true;
    }
    return false;
}

void vapi_meta_dedup_owners(struct call *c, cJSON *object, bool after_admission)
{
    cJSON *owners = json_path(object, "metadata.ownerReferences");
    struct buf uids = BUF_INIT(1024);
    cJSON *next;

    for (cJSON *item = json_first(owners); item; item = next) {
        next = item->next;
        if (!seen_before(owners, item))
            continue;
        buf_addc(&uids, uids.n ? ", " : "");
        buf_add(&uids, json_str(json_get(item, "uid")));
        json_detach(owners, item);
    }
    if (uids.n) {
        struct str text = buf_str(&uids);

        call_warn(c, arena_printf(c->arena, DUPLICATE_OWNERS,
                                  after_admission ? " after mutating admission happens" : "",
                                  STR_F(text)));
    }
    buf_fini(&uids);
}

/* ---- updates ---- */

static void copy_member(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);

    if (value)
        json_set(a, to, key, json_copy(a, value));
    else
        json_remove(to, key);
}

void vapi_meta_carry_over(struct arena *a, cJSON *object, const cJSON *old)
{
    cJSON *metadata = vapi_meta_of(a, object);
    const cJSON *before = json_get(old, "metadata");

    json_remove(metadata, "selfLink");
    copy_member(a, metadata, before, "generation");
    copy_member(a, metadata, before, "creationTimestamp");
    if (!json_str(json_get(metadata, "uid")).n)
        copy_member(a, metadata, before, "uid");
    /* A timestamp that the old object lacks stays, and is refused as a change of an immutable
     * field. */
    if (meta_is_terminating(before))
        copy_member(a, metadata, before, "deletionTimestamp");
    if (json_get(before, "deletionGracePeriodSeconds") &&
        !json_get(metadata, "deletionGracePeriodSeconds"))
        copy_member(a, metadata, before, "deletionGracePeriodSeconds");
}

static bool beside_spec(const cJSON *member)
{
    static const char *const names[] = {"kind", "apiVersion", "metadata", "status"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(member->string, names[i]) == 0)
            return true;
    return false;
}

bool vapi_meta_spec_equal(const cJSON *a, const cJSON *b)
{
    size_t left = 0, right = 0;

    json_each(member, a)
    {
        if (beside_spec(member))
            continue;
        left++;
        if (!json_equal(member, json_get(b, member->string)))
            return false;
    }
    json_each(member, b) right += !beside_spec(member);
    return left == right;
}

bool vapi_meta_has_finalizers(const cJSON *object)
{
    return json_count(json_path(object, "metadata.finalizers")) != 0;
}

void vapi_meta_set_revision(struct arena *a, cJSON *object, int64_t revision)
{
    json_set_str(a, vapi_meta_of(a, object), "resourceVersion",
                 arena_printf(a, "%lld", (long long)revision));
}
