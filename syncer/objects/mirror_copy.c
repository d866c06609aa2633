/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of an object of the host in the virtual cluster: created, put right, removed. Must never
 * touch an object that the tenant created, even under the same name and marked alike, and never
 * delete a copy unless a complete list of the host lacks its original.
 *
 *   record RECORD_META "from-host/<resource>/<ns>/<name>": "-" while the copy is created, then its
 *   uid: the proof that it is ours */

#include "objects/mirror_impl.h"
#include "core/leader.h"
#include "core/lease.h"

#include <string.h>

#include <sublet/store_quarantine.h>

#define UNCONFIRMED_MS 5000

/* --- records --- */

const struct resource *sync_mirror_resource(const struct mirror *m)
{
    return registry_find_group_resource(vapi_registry(m->syncer->api), m->row->group,
                                        m->row->plural);
}

/* "from-host/ingressclasses.networking.k8s.io/" */
struct str sync_mirror_record_prefix(struct arena *a, const struct config_from *row)
{
    return arena_printf(a, MIRROR_PREFIX "%.*s%s%.*s/", STR_F(row->plural), row->group.n ? "." : "",
                        STR_F(row->group));
}

static struct str record_key(struct arena *a, const struct config_from *row, struct str ns,
                             struct str name)
{
    return arena_printf(a, "%.*s%.*s/%.*s", STR_F(sync_mirror_record_prefix(a, row)), STR_F(ns),
                        STR_F(name));
}

struct str sync_mirror_record_get(struct arena *a, const struct mirror *m, struct str ns,
                                  struct str name)
{
    struct str value;

    if (!store_record_get(m->syncer->store, RECORD_META, record_key(a, m->row, ns, name), &value))
        return STR("");
    return arena_str(a, value);
}

static void record_put(struct arena *a, const struct mirror *m, struct str ns, struct str name,
                       struct str value)
{
    store_record_put(m->syncer->store, RECORD_META, record_key(a, m->row, ns, name), value);
}

static void record_drop(struct arena *a, const struct mirror *m, struct str ns, struct str name)
{
    store_record_delete(m->syncer->store, RECORD_META, record_key(a, m->row, ns, name));
}

/* --- finding the original --- */

static bool goes_there(const struct mirror_source *source, struct str ns, struct str name,
                       bool exactly)
{
    const struct config_from_mapping *map = source->mapping;

    if (!map)
        return !exactly;
    if (!str_eq(map->ns, ns) || !map->name.n == exactly)
        return false;
    return !exactly || str_eq(map->name, name);
}

struct wanted_name {
    struct str name;
    const struct host_object *found;
};

static void on_capacity(void *ctx, const struct host_object *o)
{
    struct wanted_name *w = ctx;
    struct str name = o->name;

    str_cut(&name, '/');
    if (!w->found && str_eq(name, w->name))
        w->found = o;
}

static const struct host_object *in_source(const struct mirror_source *source, struct str name)
{
    struct wanted_name w = {.name = name};

    if (source->mirror->row->kind != FROM_CSI_STORAGE_CAPACITIES)
        return reflector_get(source->reflector, source->mapping && source->mapping->host_name.n
                                                    ? source->mapping->host_name
                                                    : name);
    reflector_each(source->reflector, on_capacity, &w);
    return w.found;
}

/* --- EndpointSlices: the configuration has one source for each Service that is shown --- */

struct slice_name {
    struct map_entry entry; /* by the name of the copy */
    char *name, *host_name;
};

struct str sync_mirror_slice_seen(struct arena *a, struct mirror_source *source,
                                  struct str host_name)
{
    struct str name = translate_from_host_slice_name(a, &source->mirror->syncer->tenant,
                                                     source->mapping->name, host_name);
    struct slice_name *n;

    if (map_get(&source->slices, name))
        return name;
    n = NEW(struct slice_name);
    n->name = mem_strdup(name);
    n->host_name = mem_strdup(host_name);
    map_put(&source->slices, &n->entry, str_c(n->name));
    return name;
}

static void forget_slice(void *ctx, struct map_entry *e)
{
    struct mirror_source *source = ctx;
    struct slice_name *n = CONTAINER(e, struct slice_name, entry);

    map_remove(&source->slices, e);
    mem_free(n->name);
    mem_free(n->host_name);
    mem_free(n);
}

void sync_mirror_slice_gone(struct mirror_source *source, struct str name)
{
    struct map_entry *e = map_get(&source->slices, name);

    if (e)
        forget_slice(source, e);
}

void sync_mirror_slices_forget(struct mirror_source *source)
{
    map_each(&source->slices, forget_slice, source);
}

static const struct host_object *original_slice(const struct mirror_source *source, struct str name)
{
    struct map_entry *e;

    if (source->mapping->name.n) {
        e = map_get(&source->slices, name);
        if (!e)
            return NULL;
        name = str_c(CONTAINER(e, struct slice_name, entry)->host_name);
    }
    return reflector_get(source->reflector, name);
}

/* How many slices of the same Service go before this one by name? */
struct rank {
    const struct host_object *of;
    struct str label; /* as it is in compact JSON; empty: all slices of the source are its */
    size_t before;
};

static void on_rank(void *ctx, const struct host_object *o)
{
    struct rank *r = ctx;

    if (r->before < SLICES_MAX && str_cmp(o->name, r->of->name) < 0)
        r->before += !r->label.n || str_contains(o->bytes, r->label);
}

static bool is_beyond_bound(struct arena *a, const struct mirror_source *source,
                            const struct host_object *o, struct str service)
{
    struct rank r = {.of = o};

    if (reflector_count(source->reflector) <= SLICES_MAX)
        return false;
    if (!source->mapping->name.n)
        r.label = arena_printf(a, "\"" LABEL_SERVICE_NAME "\":\"%.*s\"", STR_F(service));
    reflector_each(source->reflector, on_rank, &r);
    return r.before >= SLICES_MAX;
}

/* It exists and cannot be read. */
static bool is_hidden_service(struct syncer *s, struct str ns, struct str name)
{
    unsigned storage = syncer_storage(s, SYNC_SERVICES);

    return name.n && !store_get(s->store, storage, ns, name) &&
           !store_is_absent(s->store, storage, ns, name);
}

/* Is this Service a copy of one without an address? */
static bool is_headless_copy(struct syncer *s, struct arena *a, struct str ns, struct str name)
{
    const cJSON *service = name.n ? syncer_virtual(s, a, SYNC_SERVICES, ns, name) : NULL;

    return service && sync_mirror_is_copy(s, "services", service) &&
           str_eqc(json_str_at(service, "spec.clusterIP"), "None");
}

/* NULL: it is not shown, or it cannot be known: its Service is hidden. */
static cJSON *want_slice(struct arena *a, const struct mirror_source *source, struct str name,
                         bool *ret_hidden)
{
    const struct config_from_mapping *map = source->mapping;
    const struct host_object *o = original_slice(source, name);
    struct syncer *s = source->mirror->syncer;
    struct str service;
    cJSON *host = NULL;

    if (!o || json_parse(a, o->bytes, &host, NULL))
        return NULL;
    service = map->name.n
                  ? map->name
                  : json_str(json_get(json_path(host, "metadata.labels"), LABEL_SERVICE_NAME));
    *ret_hidden |= is_hidden_service(s, map->ns, service);
    if (!is_headless_copy(s, a, map->ns, service) || is_beyond_bound(a, source, o, service))
        return NULL;
    return translate_from_host_slice(a, &s->tenant, source->mirror->row, host, map->ns, name,
                                     service);
}

static cJSON *want_slice_of_any(struct arena *a, const struct mirror *m, struct str ns,
                                struct str name, bool *ret_hidden)
{
    cJSON *ret = NULL;

    for (size_t i = 0; !ret && i < m->n_sources; i++)
        if (str_eq(m->sources[i].mapping->ns, ns))
            ret = want_slice(a, &m->sources[i], name, ret_hidden);
    return ret;
}

/* A mapping of this very name goes before one of its namespace. */
static const struct host_object *original(const struct mirror *m, struct str ns, struct str name)
{
    for (int exactly = 1; exactly >= 0; exactly--) {
        for (size_t i = 0; i < m->n_sources; i++) {
            const struct host_object *o = NULL;

            if (goes_there(&m->sources[i], ns, name, exactly))
                o = in_source(&m->sources[i], name);
            if (o)
                return o;
        }
    }
    return NULL;
}

/* A list before the Lease was confirmed may come from a host that was restored a moment ago. */
static bool absence_is_proven(const struct mirror *m)
{
    for (size_t i = 0; i < m->n_sources; i++) {
        struct mirror_source *source = &m->sources[i];
        int64_t listed_ms = reflector_listed_ms(source->reflector);

        source->has_open_absence = listed_ms == REFLECTOR_NOT_CURRENT;
        if (source->has_open_absence || !sync_lease_confirmed_since(m->syncer->lease, listed_ms))
            return false;
    }
    return true;
}

/* --- one copy --- */

struct copy {
    struct mirror *mirror;
    struct reconcile *run;
    struct arena *arena;
    const struct resource *resource;
    struct str ns, name;
    struct str record;
    cJSON *virtual_, *wanted;
    cJSON *status; /* wanted, where it has a subresource of its own; NULL: none */
    bool hidden;   /* what decides whether it is wanted cannot be read: it stays as it is */
};

static bool is_marked(const cJSON *object)
{
    return str_eqc(meta_annotation(object, ANNOTATION_FROM_HOST), FROM_HOST_SYNC);
}

static bool is_ours(const struct copy *c)
{
    if (str_eqc(c->record, MIRROR_CREATING))
        return is_marked(c->virtual_);
    return c->record.n && str_eq(c->record, meta_uid(c->virtual_));
}

/* By its record alone: its kind may be enabled no longer. */
bool sync_mirror_is_copy(struct syncer *s, const char *resource, const cJSON *object)
{
    struct arena *a = arena_new(0);
    struct str key = arena_printf(a, MIRROR_PREFIX "%s/%.*s/%.*s", resource,
                                  STR_F(json_str_at(object, "metadata.namespace")),
                                  STR_F(json_str_at(object, "metadata.name")));
    struct str value;
    bool is =
        store_record_get(s->store, RECORD_META, key, &value) &&
        (str_eq(value, meta_uid(object)) || (str_eqc(value, MIRROR_CREATING) && is_marked(object)));

    arena_free(a);
    return is;
}

static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    struct copy *c = ctx;

    if (!err) {
        record_put(c->arena, c->mirror, c->ns, c->name, object->uid);
        return;
    }
    if (err->kind->code < 500) { /* refused: a marked object of this name is not ours by that */
        record_drop(c->arena, c->mirror, c->ns, c->name);
        reconcile_again_after(r, MIRROR_REFUSED_MS);
    }
    reconcile_take(r, err);
}

static bool namespace_exists(const struct copy *c)
{
    struct syncer *s = c->mirror->syncer;

    return store_get(s->store, syncer_resource(s, "", "namespaces")->storage, STR(""), c->ns);
}

static void create_namespace(struct copy *c)
{
    cJSON *object = json_new_object(c->arena);

    json_set_str(c->arena, json_ensure_object(c->arena, object, "metadata"), "name", c->ns);
    reconcile_create(c->run, syncer_resource(c->mirror->syncer, "", "namespaces"), STR(""), object);
    reconcile_again_after(c->run, MIRROR_CALM_MS);
}

static void create_copy(struct copy *c)
{
    if (c->ns.n && !namespace_exists(c)) {
        create_namespace(c);
        return;
    }
    record_put(c->arena, c->mirror, c->ns, c->name, STR(MIRROR_CREATING));
    reconcile_create(c->run, c->resource, c->ns, c->wanted);
    reconcile_then(c->run, on_created, c);
}

/* What the API adds to metadata stays; everything else is as wanted. */
static cJSON *put_right(struct copy *c)
{
    static const char *const kept[] = {"uid",
                                       "resourceVersion",
                                       "generation",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "managedFields"};
    const cJSON *now = json_get(c->virtual_, "metadata");
    cJSON *ret = json_copy(c->arena, c->wanted), *metadata = json_get(ret, "metadata");

    for (size_t i = 0; i < COUNT(kept); i++) {
        const cJSON *value = json_get(now, kept[i]);

        if (value)
            json_set(c->arena, metadata, kept[i], json_copy(c->arena, value));
    }
    return ret;
}

/* Does the copy have what is wanted, beside what the API's defaults add? */
static bool has_all(const cJSON *now, const cJSON *wanted)
{
    json_each(member, wanted)
    {
        const cJSON *value = json_get(now, member->string);

        if (!strcmp(member->string, "metadata"))
            continue;
        if (json_is_object(member) ? !value || !has_all(value, member)
                                   : !value || !json_equal(value, member))
            return false;
    }
    return true;
}

/* Maps are compared whole: a key that the tenant added to one is no default. */
static bool same_map(const cJSON *now, const cJSON *wanted, const char *path)
{
    const cJSON *a = json_path(now, path), *b = json_path(wanted, path);

    return !json_count(a) == !json_count(b) && (!json_count(a) || json_equal(a, b));
}

/* A field of a custom resource may have been shown before a patch dropped it. Defaults of its
 * definition are written for nothing: an update that changes nothing is no event. */
static bool has_no_more(const struct copy *c)
{
    json_each(member, c->virtual_)
    {
        if (strcmp(member->string, "metadata") != 0 &&
            (strcmp(member->string, "status") != 0 || !resource_sub(c->resource, STR("status"))) &&
            !json_equal(member, json_get(c->wanted, member->string)))
            return false;
    }
    return true;
}

static bool is_right(const struct copy *c)
{
    static const char *const maps[] = {"metadata.labels", "metadata.annotations", "data",
                                       "binaryData",      "parameters",           "overhead",
                                       "scheduling"};

    for (size_t i = 0; i < COUNT(maps); i++)
        if (!same_map(c->virtual_, c->wanted, maps[i]))
            return false;
    if (json_path(c->virtual_, "metadata.finalizers") ||
        json_path(c->virtual_, "metadata.ownerReferences"))
        return false;
    if (c->resource->crd && !has_no_more(c))
        return false;
    return has_all(c->virtual_, c->wanted);
}

/* A status with a subresource of its own is written there, after everything else is right. */
static void take_status(struct copy *c)
{
    const cJSON *status = json_get(c->wanted, "status");

    if (!status || !resource_sub(c->resource, STR("status")))
        return;
    c->status = json_copy(c->arena, status);
    json_remove(c->wanted, "status");
}

static void update_status(struct copy *c)
{
    const cJSON *now = json_get(c->virtual_, "status");
    cJSON *status = c->status;
    bool exact = c->resource->crd && resource_sub(c->resource, STR("status"));

    if (exact ? !json_count(now) == !json_count(status) &&
                    (!json_count(now) || json_equal(now, status))
              : !status || has_all(now, status))
        return;
    if (status)
        json_set(c->arena, c->virtual_, "status", status);
    else
        json_remove(c->virtual_, "status");
    reconcile_update_status(c->run, c->resource, c->virtual_);
}

/* A field that cannot be changed: the copy is deleted, and the next run creates it. An update that
 * changed nothing brings no other run. */
static void on_updated(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    struct copy *c = ctx;
    struct str before = json_str_at(c->virtual_, "metadata.resourceVersion");

    if (!err) {
        if (object && str_eq(arena_printf(c->arena, "%lld", (long long)object->revision), before))
            update_status(c);
        return;
    }
    if (err->kind == &ERR_INVALID)
        reconcile_delete(r, c->resource, c->ns, c->name, meta_uid(c->virtual_), NULL);
    else
        reconcile_take(r, err);
}

static void update_copy(struct copy *c)
{
    take_status(c);
    if (str_eqc(c->record, MIRROR_CREATING))
        record_put(c->arena, c->mirror, c->ns, c->name, meta_uid(c->virtual_));
    if (is_right(c)) {
        update_status(c);
        return;
    }
    reconcile_update(c->run, c->resource, put_right(c));
    reconcile_then(c->run, on_updated, c);
}

static void remove_copy(struct copy *c)
{
    if (!c->virtual_ || !is_ours(c)) {
        if (c->record.n)
            record_drop(c->arena, c->mirror, c->ns, c->name);
        return;
    }
    if (!absence_is_proven(c->mirror)) {
        reconcile_again_after(c->run, UNCONFIRMED_MS);
        return;
    }
    reconcile_delete(c->run, c->resource, c->ns, c->name, meta_uid(c->virtual_), NULL);
}

/* Classes of pools and of policy.storageClasses are shown as well, by other files. */
static void leave_alone(struct copy *c)
{
    if (c->record.n)
        record_drop(c->arena, c->mirror, c->ns, c->name);
    if (str_eqc(meta_annotation(c->virtual_, ANNOTATION_FROM_HOST), "true"))
        return;
    reconcile_event(c->run, c->virtual_, "Warning", "NotShown",
                    "the host cluster offers a %.*s of this name, which is not shown because this "
                    "one is the virtual cluster's own",
                    STR_F(c->resource->kind));
}

static cJSON *want(struct copy *c)
{
    const struct mirror *m = c->mirror;
    const struct host_object *o;
    cJSON *host = NULL;

    if (m->row->kind == FROM_ENDPOINT_SLICES)
        return want_slice_of_any(c->arena, m, c->ns, c->name, &c->hidden);
    o = original(m, c->ns, c->name);
    if (!o || json_parse(c->arena, o->bytes, &host, NULL))
        return NULL;
    return translate_from_host(c->arena, &m->syncer->tenant, m->row, host, c->ns, c->name);
}

static void on_key(struct copy *c)
{
    struct syncer *s = c->mirror->syncer;

    if (store_quarantined(s->store, c->resource->storage, c->ns, c->name))
        return;
    c->record = sync_mirror_record_get(c->arena, c->mirror, c->ns, c->name);
    c->virtual_ = reconcile_get(c->run, c->resource, c->ns, c->name);
    c->wanted = want(c);
    if (c->wanted) {
        json_set_str(c->arena, c->wanted, "apiVersion", c->resource->api_version);
        json_set_str(c->arena, c->wanted, "kind", c->resource->kind);
    }
    if (!c->wanted && c->hidden)
        return;
    if (!c->wanted)
        remove_copy(c);
    else if (!c->virtual_)
        create_copy(c);
    else if (is_ours(c))
        update_copy(c);
    else
        leave_alone(c);
}

void sync_mirror_reconcile(struct mirror *m, struct reconcile *r, const struct resource *resource,
                           struct str ns, struct str name)
{
    struct copy *c = ARENA_NEW(reconcile_arena(r), struct copy);

    *c = (struct copy){.mirror = m, .run = r, .arena = reconcile_arena(r), .resource = resource};
    c->ns = ns;
    c->name = name;
    on_key(c);
}
