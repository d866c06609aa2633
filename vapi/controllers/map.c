/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys, and the maps from events to keys that most controllers need. They see every event of their
 * kind: must stay cheap, and build a tree only when the bytes contain something relevant. */
#include "util.h"

#include <assert.h>
#include <stdio.h>

struct str key_join(struct arena *a, struct str ns, struct str name)
{
    return arena_concat(a, 3, (struct str[]){ns, STR("/"), name});
}

bool key_split(struct str key, struct str *ret_ns, struct str *ret_name)
{
    size_t slash = str_find(key, '/');

    if (slash == key.n)
        return false;
    *ret_ns = str_sub(key, 0, slash);
    *ret_name = str_from(key, slash + 1);
    return true;
}

void controller_add_name(struct controller *c, struct str ns, struct str name)
{
    struct buf key = BUF_INIT(0);

    buf_add(&key, ns);
    buf_char(&key, '/');
    buf_add(&key, name);
    controller_add(c, buf_str(&key));
    buf_fini(&key);
}

void controller_map_self(struct controller *c, const struct store_event *e)
{
    controller_add_name(c, e->object->ns, e->object->name);
}

/* Most pods have owners of another kind: searches the bytes before building a tree. */
static bool may_be_owned_by(const struct store_object *o, struct str kind)
{
    char needle[80];
    int n = snprintf(needle, sizeof(needle), "\"kind\":\"%.*s\"", STR_F(kind));

    return str_contains(o->bytes, (struct str){needle, (size_t)n}) &&
           str_contains(o->bytes, STR("\"ownerReferences\""));
}

static struct str map_owner_of(struct controller *c, struct arena *a, const struct store_object *o,
                               struct str kind)
{
    const cJSON *owner = owner_controller(vapi_tree(a, o));

    if (!str_eq(json_str_at(owner, "kind"), kind))
        return STR_NULL;
    controller_add_name(c, o->ns, json_str_at(owner, "name"));
    return json_str_at(owner, "uid");
}

void controller_map_owner(struct controller *c, const struct store_event *e, struct str kind)
{
    struct arena *a = arena_new(0);
    struct str now = STR_NULL;

    if (may_be_owned_by(e->object, kind))
        now = map_owner_of(c, a, e->object, kind);
    /* Its previous owner lost it. */
    if (e->previous && (!now.n || !str_contains(e->previous->bytes, now)) &&
        may_be_owned_by(e->previous, kind))
        map_owner_of(c, a, e->previous, kind);
    arena_free(a);
}

/* ---- pods ---- */

struct owners {
    struct controller *controller;
    const struct store_object *orphan;
    bool plain_selector;
};

static bool on_owner(void *ctx, const struct store_object *o)
{
    struct owners *s = ctx;
    struct arena *a = arena_new(0);
    const cJSON *spec = json_path(vapi_tree(a, o), "spec.selector");
    struct selector selector = {.nothing = true};

    if (s->plain_selector)
        selector_from_map(a, spec, &selector);
    else if (selector_from_json(a, spec, &selector, NULL))
        selector.nothing = true;
    if (selector_match(&selector, s->orphan->labels))
        controller_add_name(s->controller, o->ns, o->name);
    arena_free(a);
    return true;
}

static bool is_orphan(const struct store_object *o)
{
    return !str_contains(o->bytes, STR("\"controller\":true"));
}

/* A change of an orphan matters to potential adopters only when its labels or owners changed. */
static bool orphan_changed(const struct store_event *e)
{
    return !e->previous || !is_orphan(e->previous) ||
           !str_eq(e->previous->labels, e->object->labels);
}

void controller_map_dependent(struct controller *c, const struct store_event *e, const char *group,
                              const char *plural, struct str kind)
{
    struct vapi *api = controller_api(c);
    struct owners s = {.controller = c, .orphan = e->object};
    const struct resource *owners;
    struct err err;

    controller_map_owner(c, e, kind);
    if (e->type == STORE_DELETED || !is_orphan(e->object) || !orphan_changed(e))
        return;
    s.plain_selector = str_eqc(kind, "ReplicationController");
    owners = registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));
    err_init(&err, NULL);
    if (store_scan(vapi_store(api), owners->storage, e->object->ns, STR_NULL, STR_NULL, 0, on_owner,
                   &s, &err))
        assert(false); /* the latest revision can always be read */
}
