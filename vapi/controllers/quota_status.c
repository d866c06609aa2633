/* SPDX-License-Identifier: Apache-2.0 */
/* status.hard and status.used of ResourceQuotas. Admission enforces quotas exactly and without
 * reading the status; this only reports. Must not count more than twice a second however many
 * objects change, and costs next to nothing in a namespace without a quota. */
#include "util.h"

#include <assert.h>

#include <sublet/admission.h>

#define COALESCE_MS 500

struct counted {
    struct controller *controller;
};

static bool on_quota(void *ctx, const struct store_object *o)
{
    struct counted *s = ctx;
    struct arena *a = arena_new(0);

    controller_add_after(s->controller, key_join(a, o->ns, o->name), COALESCE_MS);
    arena_free(a);
    return true;
}

static const struct resource *resource_of(struct controller *c, const char *plural)
{
    return registry_find_group_resource(vapi_registry(controller_api(c)), STR(""), str_c(plural));
}

/* Most changes of an object do not change its usage. */
static bool may_count(struct controller *c, const struct store_event *e)
{
    static const char *const sized[] = {"pods", "services", "persistentvolumeclaims"};

    if (e->type != STORE_MODIFIED)
        return true;
    for (size_t i = 0; i < COUNT(sized); i++) {
        if (resource_of(c, sized[i])->storage == e->object->resource)
            return true;
    }
    return false;
}

static void map_any(struct controller *c, const struct store_event *e)
{
    const struct resource *quotas = resource_of(c, "resourcequotas");
    struct counted s = {.controller = c};
    struct err err;

    if (e->object->resource == quotas->storage) {
        controller_map_self(c, e);
        if (e->type == STORE_MODIFIED)
            return;
    }
    if (!e->object->ns.n || !store_count(vapi_store(controller_api(c)), quotas->storage) ||
        !may_count(c, e))
        return;
    err_init(&err, NULL);
    if (store_scan(vapi_store(controller_api(c)), quotas->storage, e->object->ns, STR_NULL,
                   STR_NULL, 0, on_quota, &s, &err))
        assert(false); /* the latest revision can always be read */
}

static void quota_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "", "resourcequotas");
    struct str ns, name;
    cJSON *quota;

    if (!key_split(reconcile_key(r), &ns, &name) || !(quota = reconcile_get(r, res, ns, name)) ||
        object_is_terminating(quota))
        return;
    const cJSON *as_read = json_copy(a, quota), *hard = json_path(quota, "spec.hard");
    cJSON *status = json_ensure_object(a, quota, "status");

    if (json_count(hard) || json_count(json_get(status, "hard")))
        json_set(a, status, "hard", hard ? json_copy(a, hard) : json_new_object(a));
    cJSON *used = admission_quota_used(reconcile_api(r), a, ns, quota);
    if (json_count(used) || json_count(json_get(status, "used")))
        json_set(a, status, "used", used);
    controller_status_commit(r, res, quota, as_read);
}

static const struct controller_source SOURCES[] = {
    {"*", "*", map_any},
    {NULL, NULL, NULL},
};

const struct controller_def QUOTA_STATUS_CONTROLLER = {
    .name = "resourcequota-controller",
    .sources = SOURCES,
    .reconcile = quota_reconcile,
};
