/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * metadata.managedFields of a write: the manager, the fields it may own (an endpoint that cannot
 * change a field cannot own it), and the versions of the entries. vapi/types/fields has the merge
 * itself. A write must never fail because its fields cannot be tracked: then they are not. Source:
 * apimachinery pkg/util/managedfields/internal/{fieldmanager,skipnonapplied}.go, apiserver
 * pkg/endpoints/handlers/{create,patch}.go. */
#include "converted.h"
#include "managed.h"

#include "../../core/meta.h"

#include <string.h>

#include <sublet/crd.h>
#include <sublet/net.h>

#define MAX_MANAGER 128

/* ---- manager ---- */

static struct str manager_of(const struct call *c)
{
    if (c->options.field_manager.n)
        return c->options.field_manager;
    if (c->request) {
        /* The part before the slash, without unprintable characters. */
        struct str agent = net_header(c->request, "user-agent");
        struct str head = str_sub(agent, 0, str_find(agent, '/'));
        bool utf8 = str_is_utf8(head);
        char *text = arena_alloc(c->arena, head.n + 1);
        size_t n = 0;

        for (size_t i = 0; i < head.n; i++) {
            unsigned char b = (unsigned char)head.p[i];

            if (b >= 0x20 && b != 0x7f && (utf8 || b < 0x80))
                text[n++] = head.p[i];
        }
        if (n > MAX_MANAGER) {
            n = MAX_MANAGER;
            while (n && ((unsigned char)text[n] & 0xC0) == 0x80)
                n--;
        }
        return (struct str){text, n};
    }
    if (!c->done)
        return STR_NULL;
    /* In-process writes have the names of upstream's programs, which users' tools know. */
    return c->api->state < API_SERVING ? STR("kube-apiserver") : STR("kube-controller-manager");
}

/* ---- fields an endpoint cannot change ---- */

/* The object's endpoint does not change the status, and the status endpoint no spec, unless the
 * kind says otherwise. */
static const char *const NO_STATUS[] = {"status", NULL};
static const char *const NO_SPEC[] = {"spec", NULL};
static const char *const STATUS_ONLY[] = {"metadata", "spec", NULL};

static const char *const *reset_of(const struct resource *r, const struct subresource *sub)
{
    if (sub && sub->reset)
        return sub->reset;
    if (!sub && r->built_in && r->built_in->reset)
        return r->built_in->reset;
    if (!(r->flags & RES_STATUS))
        return NULL;
    if (sub && sub->kind == SUB_STATUS)
        return r->crd || r->flags & RES_STATUS_KEEPS_META ? STATUS_ONLY : NO_SPEC;
    return sub ? NULL : NO_STATUS;
}

static struct field_set *filter(void *ctx, struct arena *a, struct field_set *x)
{
    const struct managed *m = ctx;
    const char *const *without = reset_of(m->requested, m->call->sub);

    return without ? set_without(a, x, set_of(a, without)) : x;
}

/* ---- versions ---- */

const struct resource *managed_in_version(const struct managed *m, struct str version)
{
    const struct resource *r = m->requested, *other;
    struct str group = str_sub(version, 0, str_find(version, '/'));

    if (str_eq(version, r->api_version))
        return r;
    if (group.n == version.n)
        group = STR("");
    other = registry_find(vapi_registry(m->call->api), group,
                          group.n ? str_from(version, group.n + 1) : version, r->plural);
    return other && other->storage == r->storage ? other : NULL;
}

static bool type_of(void *ctx, struct str version, struct field_type *ret)
{
    const struct managed *m = ctx;
    const struct resource *r = managed_in_version(m, version);

    if (m->scale) {
        *ret = (struct field_type){.schema = &SCHEMA_BUILTIN, .node = m->scale};
        return str_eqc(version, SCALE_VERSION);
    }
    if (!r)
        return false;
    resource_field_type(r, ret);
    return true;
}

static cJSON *convert(void *ctx, struct arena *a, const cJSON *object, struct str to)
{
    const struct managed *m = ctx;
    struct str from = json_str(json_get(object, "apiVersion"));
    const struct resource *source = managed_in_version(m, from),
                          *target = managed_in_version(m, to);
    cJSON *made;

    if (str_eq(from, to))
        return (cJSON *)(uintptr_t)object;
    if (target && target->conversion)
        return converted_find(m->call, object, to);
    if (!source || !target)
        return NULL;
    made = json_copy(a, object);
    if (target->crd) {
        json_set_str(a, made, "apiVersion", to);
        crd_prune(target->crd, a, made, NULL);
        crd_default(target->crd, a, made);
        return made;
    }
    kinds_convert_to_storage(a, source, made);
    kinds_convert(a, target, made);
    return made;
}

void managed_open(struct managed *m, struct call *c, const struct resource *requested)
{
    bool scale = c->sub && c->sub->kind == SUB_SCALE;

    *m = (struct managed){.call = c, .requested = requested};
    if (scale)
        m->scale = schema_builtin_root(STR("autoscaling"), STR("v1"), STR("Scale"));
    m->versions =
        (struct field_versions){.ctx = m, .convert = convert, .type_of = type_of, .filter = filter};
    m->write = (struct field_write){
        .arena = c->arena,
        .versions = &m->versions,
        .version = scale ? STR(SCALE_VERSION) : requested->api_version,
        .manager = manager_of(c),
        .subresource = c->sub ? str_c(c->sub->name) : STR_NULL,
        .now = time_format_s(c->arena, clock_wall_s(vapi_clock(c->api))),
    };
}

/* ---- updates ---- */

cJSON *managed_empty(const struct managed *m)
{
    const struct resource *r = m->requested;
    struct arena *a = m->call->arena;
    cJSON *object = json_new_object(a);
    uint32_t node = m->scale ? m->scale : r->crd ? 0 : r->node;
    struct err err;

    json_set_str(a, object, "kind", m->scale ? STR("Scale") : r->kind);
    json_set_str(a, object, "apiVersion", m->write.version);
    err_init(&err, a);
    if (node && schema_normalise(a, &SCHEMA_BUILTIN, node, object, NULL, &err))
        return json_new_object(a); /* an empty object has no type errors */
    return object;
}

/* `[{}]` requests a reset; body_normalise() turned an empty list into it. */
static bool is_reset(const cJSON *entries)
{
    return json_count(entries) == 1 && json_is_object(json_first(entries)) &&
           !json_first(json_first(entries));
}

/* The entries a write starts from: those it sent, otherwise the stored ones. */
static void starting_entries(const struct managed *m, const cJSON *sent, const cJSON *stored,
                             struct managers *ret)
{
    struct arena *a = m->call->arena;
    struct str why;

    if (!m->call->sub) {
        if (is_reset(sent)) {
            *ret = (struct managers){0};
            return;
        }
        if (!managers_read(a, sent, ret, &why) && ret->n)
            return;
    }
    if (managers_read(a, stored, ret, &why))
        *ret = (struct managers){0};
}

void managed_track(struct managed *m, const cJSON *stored, const cJSON *old, const cJSON *now,
                   cJSON *into)
{
    struct arena *a = m->call->arena;
    cJSON *metadata = json_get(into, "metadata"), *sent = json_get(metadata, "managedFields");
    struct managers managers;
    struct err err;

    err_init(&err, a);
    if (sent)
        json_detach(metadata, sent);
    starting_entries(m, sent, json_path(stored, "metadata.managedFields"), &managers);
    /* Untracked fields stay untracked until the first apply. */
    if (stored && !managers.n)
        return;
    if (managers_update(&m->write, &managers, old, now, &err) == 0) {
        cJSON *entries = managers_write(a, &managers);

        if (entries)
            json_set(a, vapi_meta_of(a, into), "managedFields", entries);
    }
}

void managed_update(struct call *c, const struct resource *requested, const cJSON *old,
                    cJSON *object)
{
    struct managed m;
    const cJSON *before, *now;

    if (!json_is_object(object))
        return;
    managed_open(&m, c, requested);
    now = convert(&m, c->arena, object, requested->api_version);
    before = old ? convert(&m, c->arena, old, requested->api_version) : managed_empty(&m);
    if (now && before)
        managed_track(&m, old, before, now, object);
    if (converted_failed(c))
        json_remove(json_get(object, "metadata"), "managedFields");
}

/* ---- times ---- */

static bool same_but_time(const cJSON *x, const cJSON *y)
{
    size_t n = 0;

    json_each(member, x)
    {
        bool time = strcmp(member->string, "time") == 0;

        n += !time;
        if (!time && !json_equal(member, json_get(y, member->string)))
            return false;
    }
    return n == json_count(y) - (json_get(y, "time") != NULL);
}

static bool entries_same_but_times(const cJSON *x, const cJSON *y)
{
    const cJSON *other = json_first(y);

    if (json_count(x) != json_count(y))
        return false;
    json_each(entry, x)
    {
        if (!same_but_time(entry, other))
            return false;
        other = other->next;
    }
    return true;
}

/* Source: apiserver pkg/endpoints/handlers/fieldmanager/equality.go. */
void managed_keep_times(struct arena *a, cJSON *object, const cJSON *old)
{
    cJSON *metadata = json_get(object, "metadata"), *entries = json_get(metadata, "managedFields");
    const cJSON *before = json_path(old, "metadata.managedFields");

    if (!entries || !before || json_equal(entries, before) ||
        !entries_same_but_times(entries, before))
        return;
    json_set(a, metadata, "managedFields", json_copy(a, before));
    if (!json_equal(object, old))
        json_set(a, metadata, "managedFields", entries);
}
