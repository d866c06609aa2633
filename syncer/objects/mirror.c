/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the host that the tenant is shown, read-only (`sync.fromHost`): a mirror per enabled
 * row, with a watch per source on the host and a controller of the copies (mirror_copy.c). Must
 * never delete what a row that the configuration no longer has did not create.
 *
 *   host watch --changed--> key --.
 *   tenant's edit ----------key --+--> sync_mirror_reconcile() --> create, update, delete
 *   first list, CRD added --keys -'
 */

#include "objects/mirror_impl.h"
#include "core/leader.h"

#include <string.h>

#include <sublet/config_bound.h>
#include <sublet/config_sync.h>
#include <sublet/log.h>
#include <sublet/notice.h>

#define ALL_KEYS "/"

/* --- names --- */

static struct str host_ns(const struct mirror_source *source)
{
    struct str ns = source->mapping->host_ns;

    return ns.n ? ns : source->mirror->syncer->tenant.host_namespace;
}

/* The key of the copy of this host object; its name in the reflector. */
static void add_copy(struct mirror_source *source, struct str name)
{
    const struct config_from_mapping *map = source->mapping;
    struct mirror *m = source->mirror;
    struct arena *a = arena_new(0);
    struct str ns = STR("");

    if (map)
        ns = map->ns;
    if (map && map->name.n)
        name = m->row->kind == FROM_ENDPOINT_SLICES ? sync_mirror_slice_seen(a, source, name)
                                                    : map->name;
    if (m->row->kind == FROM_CSI_STORAGE_CAPACITIES) {
        str_cut(&name, '/');
        ns = STR(CAPACITIES_NS);
    }
    if (m->controller)
        controller_add_name(m->controller, ns, name);
    arena_free(a);
}

/* --- all copies --- */

static bool all_synced(const struct mirror *m)
{
    for (size_t i = 0; i < m->n_sources; i++)
        if (!reflector_synced(m->sources[i].reflector))
            return false;
    return true;
}

static void on_original(void *ctx, const struct host_object *o)
{
    add_copy(ctx, o->name);
}

static bool on_record(void *ctx, struct str key, struct str value)
{
    struct mirror *m = ctx;
    struct str rest = str_from(key, strlen(MIRROR_PREFIX)), ns;

    (void)value;
    str_cut(&rest, '/');
    ns = str_cut(&rest, '/');
    controller_add_name(m->controller, ns, rest);
    return true;
}

static void rescan(struct mirror *m)
{
    struct arena *a;

    if (!m->controller)
        return;
    a = arena_new(0);
    for (size_t i = 0; i < m->n_sources; i++)
        reflector_each(m->sources[i].reflector, on_original, &m->sources[i]);
    store_record_each(m->syncer->store, RECORD_META, sync_mirror_record_prefix(a, m->row),
                      on_record, m);
    arena_free(a);
}

static const char *duty(struct arena *a, const struct mirror *m)
{
    return arena_printf(a, "show %.*s", STR_F(m->row->key)).p;
}

static void forget_slice(struct mirror_source *source, struct str host_name)
{
    struct arena *a;

    if (source->mirror->row->kind != FROM_ENDPOINT_SLICES || !source->mapping->name.n)
        return;
    a = arena_new(0);
    sync_mirror_slice_gone(source, sync_mirror_slice_seen(a, source, host_name));
    arena_free(a);
}

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct mirror_source *source = ctx;

    add_copy(source, now ? now->name : before->name);
    if (!now)
        forget_slice(source, before->name);
}

static void on_current(void *ctx, bool by_list)
{
    struct mirror_source *source = ctx;
    bool due = by_list || source->has_open_absence;
    struct arena *a = arena_new(0);

    if (by_list)
        sync_dialogue_note(source->mirror->syncer, duty(a, source->mirror), NULL, STR_NULL,
                           STR_NULL);
    source->has_open_absence = false;
    if (due)
        rescan(source->mirror);
    arena_free(a);
}

/* A missing right is reported by dialogue.c. */
static void on_refused(void *ctx, const struct err *err)
{
    struct mirror_source *source = ctx;
    struct arena *a;

    if (err->kind == &ERR_FORBIDDEN)
        return;
    a = arena_new(0);
    sync_dialogue_note(source->mirror->syncer, duty(a, source->mirror), "NotServed",
                       arena_printf(a, "the host cluster does not serve %.*s: none is shown",
                                    STR_F(source->mirror->row->key)),
                       err->message);
    arena_free(a);
}

static void on_failing(void *ctx, const struct err *err)
{
    struct mirror_source *source = ctx;
    struct syncer *s = source->mirror->syncer;
    struct arena *a;

    if (err && !host_is_up(s->host))
        return;
    a = arena_new(0);
    sync_dialogue_note(s, duty(a, source->mirror), err ? "WatchFailed" : NULL,
                       arena_printf(a,
                                    "%.*s of the host cluster cannot be watched: what is shown "
                                    "of them may be old",
                                    STR_F(source->mirror->row->key)),
                       err ? err->message : STR_NULL);
    arena_free(a);
}

static void on_went_back(void *ctx)
{
    struct mirror_source *source = ctx;

    reflector_restart(source->reflector);
}

static struct str source_path(struct arena *a, const struct mirror_source *source,
                              struct str version)
{
    const struct config_from *row = source->mirror->row;
    struct str root = row->group.n
                          ? arena_printf(a, "/apis/%.*s/%.*s", STR_F(row->group), STR_F(version))
                          : STR("/api/v1");

    if (!source->mapping)
        return arena_printf(a, "%.*s/%.*s", STR_F(root), STR_F(row->plural));
    return arena_printf(a, "%.*s/namespaces/%.*s/%.*s", STR_F(root), STR_F(host_ns(source)),
                        STR_F(row->plural));
}

/* Slices have names of their own; the label names their Service. */
static void select_slices(struct arena *a, const struct mirror_source *source,
                          struct reflector_options *o)
{
    struct str service = source->mapping->host_name;

    o->label_selector = arena_printf(a, LABEL_SERVICE_NAME "%s%.*s,!" LABEL_CLUSTER,
                                     service.n ? "=" : "", STR_F(service));
}

static void source_open(struct mirror_source *source, struct str version)
{
    struct mirror *m = source->mirror;
    struct arena *a = arena_new(0);
    struct str selector = selector_format(a, &m->row->selector);
    struct reflector_options o = {.host = m->syncer->host,
                                  .changed = on_changed,
                                  .current = on_current,
                                  .refused = on_refused,
                                  .failing = on_failing,
                                  .went_back = on_went_back,
                                  .ctx = source};

    o.by_namespace = m->row->kind == FROM_CSI_STORAGE_CAPACITIES;
    o.path = source_path(a, source, version);
    o.label_selector =
        arena_printf(a, "%.*s%s!" LABEL_CLUSTER, STR_F(selector), selector.n ? "," : "");
    if (m->row->kind == FROM_ENDPOINT_SLICES)
        select_slices(a, source, &o);
    else if (source->mapping && source->mapping->host_name.n)
        o.field_selector = arena_printf(a, "metadata.name=%.*s", STR_F(source->mapping->host_name));
    else if (m->row->kind == FROM_CONFIG_MAPS)
        o.field_selector = STR("metadata.name!=" CONFIG_GPU_DEMAND);
    source->reflector = reflector_open(&o);
    arena_free(a);
}

/* A custom resource without a configured version is read in the version the virtual cluster stores,
 * which is known once it has the CRD. */
static void mirror_open(struct mirror *m)
{
    const struct resource *r = sync_mirror_resource(m);
    struct str version = m->row->version.n ? m->row->version : r ? r->version : STR("");

    if (!r || syncer_is_closing(m->syncer))
        return;
    for (size_t i = 0; i < m->n_sources; i++)
        if (!m->sources[i].reflector)
            source_open(&m->sources[i], version);
}

static void mirror_reconcile(struct reconcile *r)
{
    struct mirror *m = controller_state(reconcile_controller(r));
    const struct resource *resource = sync_mirror_resource(m);
    struct str ns, name;

    if (!resource || syncer_is_closing(m->syncer) || !key_split(reconcile_key(r), &ns, &name))
        return;
    if (!name.n) {
        mirror_open(m);
        rescan(m);
    } else if (all_synced(m)) {
        sync_mirror_reconcile(m, r, resource, ns, name);
    }
}

/* --- events of the virtual cluster --- */

/* Of any kind, where the mirror's own may be a custom resource. */
static void map_copy(struct controller *c, const struct store_event *e)
{
    const struct mirror *m = controller_state(c);
    const struct resource *r = sync_mirror_resource(m);

    if (r && e->object->resource == r->storage)
        controller_map_self(c, e);
}

static void map_all(struct controller *c, const struct store_event *e)
{
    (void)e;
    controller_add_after(c, STR(ALL_KEYS), MIRROR_CALM_MS);
}

static void map_node(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_MODIFIED)
        controller_map_self(c, e);
}

static void map_class(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_MODIFIED)
        map_all(c, e);
}

/* A headless Service that is shown from now on, or no longer. */
static void map_service(struct controller *c, const struct store_event *e)
{
    const struct config_from *row = ((const struct mirror *)controller_state(c))->row;

    for (size_t i = 0; e->type != STORE_MODIFIED && i < row->n_mappings; i++) {
        if (str_eq(row->mappings[i].ns, e->object->ns)) {
            map_all(c, e);
            return;
        }
    }
}

static bool is_crd(const struct config_from *row)
{
    return row->kind == FROM_CUSTOM_RESOURCES || row->kind == FROM_GATEWAY_CLASSES ||
           row->kind == FROM_GATEWAYS;
}

static void set_watched(struct mirror *m)
{
    struct controller_source *w = m->watched;

    *w++ = is_crd(m->row)
               ? (struct controller_source){"*", "*", map_copy}
               : (struct controller_source){m->row->group.p, m->row->plural.p, controller_map_self};
    if (is_crd(m->row))
        *w++ = (struct controller_source){"apiextensions.k8s.io", "customresourcedefinitions",
                                          map_all};
    if (m->row->kind == FROM_CSI_NODES || m->row->kind == FROM_CSI_STORAGE_CAPACITIES)
        *w++ = (struct controller_source){"", "nodes",
                                          m->row->kind == FROM_CSI_NODES ? map_node : map_class};
    if (m->row->kind == FROM_CSI_STORAGE_CAPACITIES)
        *w++ = (struct controller_source){"storage.k8s.io", "storageclasses", map_class};
    if (m->row->kind == FROM_ENDPOINT_SLICES)
        *w++ = (struct controller_source){"", "services", map_service};
}

/* --- rows that the configuration no longer has --- */

struct leftovers {
    struct mirrors *mirrors;
    struct arena *arena;
    cJSON *records; /* key -> uid */
};

static bool has_row(const struct mirrors *ms, struct arena *a, struct str key)
{
    for (size_t i = 0; i < ms->n; i++)
        if (str_has_prefix(key, sync_mirror_record_prefix(a, ms->items[i].row)))
            return true;
    return false;
}

static bool on_leftover(void *ctx, struct str key, struct str value)
{
    struct leftovers *l = ctx;

    if (!has_row(l->mirrors, l->arena, key))
        json_set_str(l->arena, l->records, arena_cstr(l->arena, key), value);
    return true;
}

static void on_removed(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        log_warn("syncer: cannot remove an object that is no longer shown: %.*s",
                 STR_F(err->message));
}

static void remove_leftover(struct syncer *s, struct str key, struct str uid)
{
    struct str rest = str_from(key, strlen(MIRROR_PREFIX)), group = str_cut(&rest, '/');
    struct str plural = str_cut(&group, '.'), ns = str_cut(&rest, '/');
    const struct resource *r =
        registry_find_group_resource(vapi_registry(s->api), group.p ? group : STR(""), plural);
    struct vapi_delete options = {.grace_seconds = -1, .uid = uid};

    if (r && !str_eqc(uid, MIRROR_CREATING))
        vapi_delete(s->api, r, ns, rest, &options, on_removed, NULL);
    store_record_delete(s->store, RECORD_META, key);
}

static void remove_leftovers(struct mirrors *ms)
{
    struct arena *a = arena_new(0);
    struct leftovers l = {ms, a, json_new_object(a)};

    store_record_each(ms->syncer->store, RECORD_META, STR(MIRROR_PREFIX), on_leftover, &l);
    json_each(record, l.records) remove_leftover(ms->syncer, json_key(record), json_str(record));
    arena_free(a);
}

/* --- life --- */

static void mirror_init(struct mirror *m, struct syncer *s, const struct config_from *row)
{
    *m = (struct mirror){.syncer = s, .row = row};
    m->n_sources = row->n_mappings ? row->n_mappings : 1;
    m->sources = mem_alloc(m->n_sources * sizeof(*m->sources));
    for (size_t i = 0; i < m->n_sources; i++)
        m->sources[i] = (struct mirror_source){
            .mirror = m, .mapping = row->n_mappings ? &row->mappings[i] : NULL};
    m->def = (struct controller_def){
        .name = "sublet-from-host", .sources = m->watched, .reconcile = mirror_reconcile};
    set_watched(m);
}

static bool on_any(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    *(bool *)ctx = true;
    return false;
}

struct mirrors *sync_mirrors_new(struct syncer *s)
{
    bool any = s->config->n_from > 0;
    struct mirrors *ms;

    if (!any)
        store_record_each(s->store, RECORD_META, STR(MIRROR_PREFIX), on_any, &any);
    if (!any)
        return NULL;
    ms = NEW(struct mirrors);
    ms->syncer = s;
    ms->n = s->config->n_from;
    ms->items = mem_alloc((ms->n + 1) * sizeof(*ms->items));
    for (size_t i = 0; i < ms->n; i++)
        mirror_init(&ms->items[i], s, &s->config->from[i]);
    s->tenant.shown = (struct translate_shown){sync_mirror_shows, s};
    return ms;
}

struct mirrors *sync_mirrors_free(struct mirrors *ms)
{
    if (!ms)
        return NULL;
    for (size_t i = 0; i < ms->n; i++) {
        for (size_t k = 0; k < ms->items[i].n_sources; k++)
            sync_mirror_slices_forget(&ms->items[i].sources[k]);
        mem_free(ms->items[i].sources);
    }
    mem_free(ms->items);
    return mem_free(ms);
}

void sync_mirrors_start(struct mirrors *ms)
{
    if (!ms)
        return;
    remove_leftovers(ms);
    for (size_t i = 0; i < ms->n; i++) {
        struct mirror *m = &ms->items[i];

        m->controller = controller_start_with(ms->syncer->api, &m->def, m);
        mirror_open(m);
    }
}

void sync_mirrors_rescan(struct mirrors *ms)
{
    for (size_t i = 0; ms && i < ms->n; i++)
        rescan(&ms->items[i]);
}

void sync_mirrors_kick(struct mirrors *ms)
{
    for (size_t i = 0; ms && i < ms->n; i++)
        for (size_t k = 0; k < ms->items[i].n_sources; k++)
            reflector_kick(ms->items[i].sources[k].reflector);
}

void sync_mirrors_restart(struct mirrors *ms)
{
    for (size_t i = 0; ms && i < ms->n; i++)
        for (size_t k = 0; k < ms->items[i].n_sources; k++)
            reflector_restart(ms->items[i].sources[k].reflector);
}

size_t sync_mirrors_close(struct mirrors *ms, void (*closed)(void *ctx), void *ctx)
{
    size_t n = 0;

    for (size_t i = 0; ms && i < ms->n; i++) {
        struct mirror *m = &ms->items[i];

        for (size_t k = 0; k < m->n_sources; k++)
            m->sources[k].reflector = reflector_close(m->sources[k].reflector);
        if (m->controller)
            controller_close(m->controller, closed, ctx);
        n += m->controller != NULL;
        m->controller = NULL;
    }
    return n;
}

/* --- what is shown --- */

static const struct mirror *mirror_of(const struct mirrors *ms, enum config_from_kind kind)
{
    for (size_t i = 0; ms && i < ms->n; i++)
        if (ms->items[i].row->kind == kind)
            return &ms->items[i];
    return NULL;
}

/* A Gateway counts while it is created: routes to it are translated then. */
bool sync_mirror_shows(void *ctx, enum config_from_kind kind, struct str ns, struct str name)
{
    struct syncer *s = ctx;
    const struct mirror *m = mirror_of(s->mirrors, kind);
    const struct resource *r = m ? sync_mirror_resource(m) : NULL;
    const struct store_object *o = r ? store_latest(s->store, r->storage, ns, name) : NULL;
    struct arena *a;
    bool shown;

    if (!o)
        return false;
    a = arena_new(0);
    if (kind == FROM_GATEWAYS)
        shown = sync_mirror_is_copy(s, MIRROR_GATEWAYS, vapi_tree(a, o));
    else
        shown = str_eq(sync_mirror_record_get(a, m, STR(""), name), o->uid);
    arena_free(a);
    return shown;
}

static const struct class_user {
    const char *group, *plural, *field, *annotation;
    enum config_from_kind kind;
} CLASS_USERS[] = {
    {"networking.k8s.io", "ingresses", "spec.ingressClassName", "kubernetes.io/ingress.class",
     FROM_INGRESS_CLASSES},
    {"gateway.networking.k8s.io", "gateways", "spec.gatewayClassName", NULL, FROM_GATEWAY_CLASSES},
};

static int check_class(struct syncer *s, const struct class_user *user, const cJSON *object,
                       const char *field, struct str name, struct err *err)
{
    const struct mirror *m = mirror_of(s->mirrors, user->kind);
    const struct resource *r = m ? sync_mirror_resource(m) : NULL;

    /* The tenant's own class is for a controller of its own, and sync.toHost has a list. */
    if (!name.n || !r || store_latest(s->store, r->storage, STR(""), name) ||
        (user->kind == FROM_INGRESS_CLASSES &&
         str_list_has(s->config->to_host->ingress_classes, name)) ||
        (user->kind == FROM_GATEWAY_CLASSES &&
         str_list_has(s->config->to_host->gateway_classes, name)))
        return 0;
    return err_forbidden(err, str_c(user->group), str_c(user->plural), meta_name(object),
                         "%s: \"%.*s\" is not offered to this virtual cluster", field, STR_F(name));
}

int sync_mirror_check(struct syncer *s, const struct resource *r, const cJSON *object,
                      const cJSON *old, struct err *err)
{
    for (size_t i = 0; s->mirrors && i < COUNT(CLASS_USERS); i++) {
        const struct class_user *user = &CLASS_USERS[i];
        struct str name = json_str_at(object, user->field), legacy = STR("");

        if (!str_eqc(r->group, user->group) || !str_eqc(r->plural, user->plural))
            continue;
        if (user->kind == FROM_GATEWAY_CLASSES && sync_mirror_is_copy(s, MIRROR_GATEWAYS, object))
            return 0; /* of a class that the tenant need not be offered */
        if (user->annotation)
            legacy = meta_annotation(object, user->annotation);
        if (!str_eq(name, json_str_at(old, user->field)) &&
            check_class(s, user, object, user->field, name, err))
            return -1;
        if (legacy.n && !str_eq(legacy, meta_annotation(old, user->annotation)))
            return check_class(s, user, object, "metadata.annotations", legacy, err);
    }
    return 0;
}
