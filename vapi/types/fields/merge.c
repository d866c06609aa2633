/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges a configuration into a live value: the configuration's values win, live values it does not
 * mention stay, and lists that are sets or maps are merged item by item, in the configuration's
 * order where both have an item. Consumes both trees. Source: structured-merge-diff
 * typed/merge.go. */
#include "fields.h"

#include "../index.h"

struct walk {
    struct arena *arena;
    struct err *err;
};

static int merge(struct walk *w, struct field_type t, cJSON *live, cJSON *config, cJSON **ret);

/* ---- objects ---- */

static int merge_map(struct walk *w, const struct atom *t, cJSON *live, cJSON *config)
{
    struct members m;
    cJSON *next, *made;

    members_open(&m, w->arena, live, json_count(config));
    for (cJSON *member = json_first(config); member; member = next) {
        const char *key = member->string;
        cJSON *mine = members_get(&m, key);
        bool declared;

        next = member->next;
        if (!mine) {
            json_detach(config, member);
            members_set(&m, key, member);
            continue;
        }
        if (merge(w, type_member(t, key, &declared), mine, member, &made))
            return -1;
        if (made == mine)
            continue;
        json_detach(config, made);
        members_set(&m, key, made);
    }
    return 0;
}

/* ---- lists that are sets or maps ---- */

/* The two sides and the position in each. shared: the next item of config that live has as well. */
struct zip {
    struct walk *walk;
    struct field_type type;
    struct items live, config;
    uint32_t i, j, shared;
    bool *taken; /* of config's items */
    cJSON *out;
};

static void put(struct zip *z, cJSON *item)
{
    item->next = item->prev = NULL;
    json_append(z->out, item);
}

static bool same(const struct zip *z, uint32_t i, uint32_t j)
{
    return element_cmp(&z->live.at[i].element, &z->config.at[j].element) == 0;
}

static void find_shared(struct zip *z, uint32_t from)
{
    for (z->shared = from; z->shared < z->config.n; z->shared++)
        if (items_find(&z->live, &z->config.at[z->shared].element) >= 0)
            return;
}

/* Item j of config, merged with the live item; if several live items share its identity, with
 * none. */
static int take_config(struct zip *z, uint32_t j)
{
    int64_t i = items_find(&z->live, &z->config.at[j].element);
    cJSON *made = z->config.at[j].value;

    z->taken[j] = true;
    if (i >= 0 && z->live.at[i].count == 1 &&
        merge(z->walk, z->type, z->live.at[i].value, z->config.at[j].value, &made))
        return -1;
    put(z, made);
    return 0;
}

/* The step to take for the next live item. */
enum step { STEP_BOTH, STEP_SKIP, STEP_LIVE, STEP_CONFIG };

static enum step next_step(struct zip *z)
{
    int64_t j;

    if (z->i == z->live.n)
        return STEP_CONFIG;
    j = items_find(&z->config, &z->live.at[z->i].element);
    if (z->j < z->config.n) {
        if (same(z, z->i, z->j))
            return STEP_BOTH;
        if (j >= 0 && z->shared < z->config.n && !same(z, z->i, z->shared))
            return STEP_SKIP;
    }
    if (j < 0)
        return STEP_LIVE;
    if (z->taken[j])
        z->i++;
    return STEP_CONFIG;
}

static int zip_items(struct zip *z)
{
    while (z->i < z->live.n || z->j < z->config.n) {
        switch (next_step(z)) {
        case STEP_BOTH:
            if (take_config(z, z->j))
                return -1;
            z->i++;
            z->j++;
            find_shared(z, z->shared + 1);
            break;
        case STEP_SKIP:
            z->i++;
            break;
        case STEP_LIVE:
            put(z, z->live.at[z->i++].value);
            break;
        case STEP_CONFIG:
            if (z->j == z->config.n)
                break;
            if (take_config(z, z->j))
                return -1;
            if (z->j == z->shared)
                find_shared(z, z->shared + 1);
            z->j++;
            break;
        }
    }
    return 0;
}

static int merge_list(struct walk *w, const struct atom *t, cJSON *live, const cJSON *config)
{
    struct zip z = {.walk = w, .type = type_item(t)};
    struct str why;

    if (items_of(w->arena, t, live, &z.live, &why) ||
        items_of(w->arena, t, config, &z.config, &why))
        return err_set(w->err, &ERR_BAD_REQUEST, "%.*s", STR_F(why));
    z.taken = arena_alloc(w->arena, z.config.n + 1);
    z.out = json_new_array(w->arena);
    find_shared(&z, 0);
    if (zip_items(&z))
        return -1;
    live->child = z.out->child;
    return 0;
}

/* ---- any value ---- */

static bool empty(const cJSON *value, bool list)
{
    return !(list ? json_is_array(value) : json_is_object(value)) || !json_first(value);
}

static int merge(struct walk *w, struct field_type t, cJSON *live, cJSON *config, cJSON **ret)
{
    struct atom atom;
    unsigned bit;
    bool list;

    atom_of(t.form == TYPE_NONE ? (struct field_type){.form = TYPE_DEDUCED} : t, &atom);
    bit = atom_choose(atom_deduce(&atom, config));
    list = bit == ATOM_LIST;
    *ret = config;
    if ((bit != ATOM_MAP && bit != ATOM_LIST) || (list ? atom.atomic_list : atom.atomic_map) ||
        empty(live, list))
        return 0;
    *ret = live;
    if (empty(config, list))
        return 0;
    return list ? merge_list(w, &atom, live, config) : merge_map(w, &atom, live, config);
}

int typed_merge(struct arena *a, struct field_type t, cJSON *live, cJSON *config, cJSON **ret,
                struct err *err)
{
    struct walk w = {a, err};

    return merge(&w, t, live, config, ret);
}
