/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.managedFields: decoding, updating after a write, and encoding. A field is owned by every
 * manager that applied its present value, and by the last one that changed it otherwise. Must never
 * keep an entry that owns nothing. Source: apimachinery pkg/util/managedfields/internal,
 * structured-merge-diff merge/update.go. */
#include "managers.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/json_build.h>

#define MAX_UPDATERS 10
#define ANCIENT      "ancient-changes"

/* ---- reading ---- */

bool manager_is(const struct manager *x, const struct manager *y)
{
    return x->applied == y->applied && str_eq(x->name, y->name) &&
           str_eq(x->subresource, y->subresource) &&
           (x->applied || str_eq(x->api_version, y->api_version));
}

struct manager *managers_find(const struct managers *m, const struct manager *like)
{
    for (size_t i = 0; i < m->n; i++)
        if (manager_is(&m->at[i], like))
            return &m->at[i];
    return NULL;
}

struct manager *managers_put(struct arena *a, struct managers *m, const struct manager *entry)
{
    struct manager *found = managers_find(m, entry);

    if (!found && m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        struct manager *at = arena_alloc(a, cap * sizeof(*at));

        if (m->n)
            memcpy(at, m->at, m->n * sizeof(*at));
        m->at = at;
        m->cap = cap;
    }
    if (!found)
        found = &m->at[m->n++];
    *found = *entry;
    return found;
}

void managers_drop(struct managers *m, struct manager *entry)
{
    size_t after = m->n - (size_t)(entry - m->at) - 1;

    memmove(entry, entry + 1, after * sizeof(*entry));
    m->n--;
}

static const char *read_entry(struct arena *a, const cJSON *entry, size_t i, struct manager *ret)
{
    struct str operation = json_str_at(entry, "operation");
    struct str type = json_str_at(entry, "fieldsType");

    *ret = (struct manager){
        .name = json_str_at(entry, "manager"),
        .subresource = json_str_at(entry, "subresource"),
        .api_version = json_str_at(entry, "apiVersion"),
        .applied = str_eqc(operation, "Apply"),
        .time = json_get(entry, "time"),
    };
    if (!ret->applied && !str_eqc(operation, "Update"))
        return "operation must be `Apply` or `Update`";
    if (!ret->api_version.n)
        return "apiVersion must not be empty";
    if (!type.n)
        return arena_printf(a, "missing fieldsType in managed fields entry %zu", i).p;
    if (!str_eqc(type, "FieldsV1"))
        return arena_printf(a, "invalid fieldsType \"%.*s\" in managed fields entry %zu",
                            STR_F(type), i)
            .p;
    if (set_from_json(a, json_get(entry, "fieldsV1"), &ret->set))
        return "error decoding set";
    if (!json_is_string(ret->time))
        ret->time = NULL;
    return NULL;
}

int managers_read(struct arena *a, const cJSON *entries, struct managers *ret, struct str *ret_why)
{
    struct manager read;
    size_t i = 0;

    *ret = (struct managers){0};
    json_each(entry, entries)
    {
        const char *why = i < MANAGERS_MAX ? read_entry(a, entry, i, &read) : "too many entries";

        i++;
        if (why) {
            *ret_why = str_c(why);
            return -1;
        }
        managers_put(a, ret, &read);
    }
    return 0;
}

/* ---- writing ---- */

static int by_time(const struct manager *x, const struct manager *y)
{
    return str_cmp(json_str(x->time), json_str(y->time));
}

static int in_order(const void *left, const void *right)
{
    const struct manager *x = left, *y = right;
    int order = (int)y->applied - (int)x->applied;

    if (!order)
        order = by_time(x, y);
    if (!order)
        order = str_cmp(x->name, y->name);
    if (!order)
        order = str_cmp(x->api_version, y->api_version);
    return order ? order : str_cmp(x->subresource, y->subresource);
}

cJSON *managers_write(struct arena *a, struct managers *m)
{
    cJSON *entries;

    if (!m->n)
        return NULL;
    entries = json_new_array(a);
    qsort(m->at, m->n, sizeof(*m->at), in_order);
    for (size_t i = 0; i < m->n; i++) {
        const struct manager *one = &m->at[i];
        cJSON *time = one->time ? json_new_string(a, json_str(one->time)) : NULL;

        json_append(entries, json_object(a, JSON_NONEMPTY("manager", one->name),
                                         JSON("operation", one->applied ? "Apply" : "Update"),
                                         JSON("apiVersion", one->api_version), JSON("time", time),
                                         JSON("fieldsType", "FieldsV1"),
                                         JSON("fieldsV1", set_to_json(a, one->set)),
                                         JSON_NONEMPTY("subresource", one->subresource)));
    }
    return entries;
}

/* ---- the changes of a write, in each version ---- */

static struct field_set *filtered(const struct field_write *w, struct field_set *x)
{
    const struct field_versions *v = w->versions;

    return x && v->filter ? v->filter(v->ctx, w->arena, x) : x;
}

void changes_filter(const struct field_write *w, struct field_diff *d)
{
    d->removed = filtered(w, d->removed);
    d->modified = filtered(w, d->modified);
    d->added = filtered(w, d->added);
}

static enum change_state changes_convert(struct changes *c, struct change *ret)
{
    const struct field_versions *v = c->write->versions;
    struct arena *a = c->write->arena;
    struct field_type type;
    cJSON *old, *now;

    if (!v->type_of(v->ctx, ret->version, &type))
        return CHANGE_NO_VERSION;
    old = v->convert(v->ctx, a, c->old, ret->version);
    now = v->convert(v->ctx, a, c->now, ret->version);
    if (!old || !now)
        return CHANGE_NO_VERSION;
    if (typed_compare(a, type, old, now, &ret->diff, c->err))
        return CHANGE_FAILED;
    changes_filter(c->write, &ret->diff);
    return CHANGE_KNOWN;
}

enum change_state changes_of(struct changes *c, struct str version, const struct change **ret)
{
    struct change *made;

    for (size_t i = 0; i < c->n; i++) {
        if (!str_eq(c->at[i].version, version))
            continue;
        *ret = &c->at[i];
        return c->at[i].state;
    }
    if (c->n == MAX_VERSIONS)
        return CHANGE_NO_VERSION;
    made = &c->at[c->n++];
    made->version = version;
    made->state = changes_convert(c, made);
    *ret = made;
    return made->state;
}

/* Drops entries of versions that no longer exist; rewrites the others for the current schema. */
void managers_reconcile(const struct field_write *w, struct managers *m)
{
    const struct field_versions *v = w->versions;

    for (size_t i = m->n; i-- > 0;) {
        struct field_type type;

        if (v->type_of(v->ctx, m->at[i].api_version, &type))
            m->at[i].set = typed_reconcile(w->arena, type, m->at[i].set);
        else
            managers_drop(m, &m->at[i]);
    }
}

/* ---- update ---- */

/* Fields the server maintains; no manager owns them. */
static const char *const KEPT[] = {"apiVersion", "kind", "metadata", NULL};
static const char *const KEPT_METADATA[] = {
    "name",        "namespace",  "creationTimestamp", "selfLink",        "uid",
    "clusterName", "generation", "managedFields",     "resourceVersion", NULL,
};

static bool is_kept(const struct element *e, const char *const *names)
{
    if (e->kind != ELEMENT_FIELD)
        return false;
    for (; *names; names++)
        if (str_eqc(e->name, *names))
            return true;
    return false;
}

static struct field_set *strip(struct arena *a, struct field_set *x, const char *const *names)
{
    struct field_set *made = NULL;

    for (uint32_t i = 0; x && i < x->n; i++) {
        const struct field_item *item = &x->items[i];
        bool metadata = names == KEPT && item->element.kind == ELEMENT_FIELD &&
                        str_eqc(item->element.name, "metadata");

        set_add(a, &made, &item->element, item->member && !is_kept(&item->element, names),
                metadata ? strip(a, item->below, KEPT_METADATA) : item->below);
    }
    return made;
}

struct field_set *managers_strip(struct arena *a, struct field_set *x)
{
    return strip(a, x, KEPT);
}

int managers_take(struct changes *c, struct managers *m)
{
    struct arena *a = c->write->arena;

    for (size_t i = m->n; i-- > 0;) {
        struct manager *x = &m->at[i];
        const struct change *change;
        enum change_state state = changes_of(c, x->api_version, &change);

        if (state == CHANGE_FAILED)
            return -1;
        if (state == CHANGE_KNOWN) {
            x->set = set_difference(a, x->set, change->diff.modified);
            x->set = set_difference(a, x->set, change->diff.added);
            x->set = set_difference(a, x->set, change->diff.removed);
        }
        if (state == CHANGE_NO_VERSION || !x->set)
            managers_drop(m, x);
    }
    return 0;
}

struct str manager_identity(struct arena *a, const struct manager *m)
{
    cJSON *version = m->applied ? NULL : json_new_string(a, m->api_version);

    return json_text(a, json_object(a, JSON("manager", m->name),
                                    JSON("operation", m->applied ? "Apply" : "Update"),
                                    JSON("apiVersion", version),
                                    JSON_NONEMPTY("subresource", m->subresource)));
}

/* ---- at most ten updaters ---- */

struct updater {
    struct manager manager;
    struct str identity;
};

static int oldest_first(const void *left, const void *right)
{
    const struct updater *x = left, *y = right;
    int order = by_time(&x->manager, &y->manager);

    return order ? order : str_cmp(x->identity, y->identity);
}

/* Moves the second and later updaters of a version into its bucket, and the first one with them. */
static size_t sink(struct arena *a, struct managers *m, const struct updater *sorted, size_t i)
{
    const struct manager *x = &sorted[i].manager;
    struct manager bucket = {.name = STR(ANCIENT), .api_version = x->api_version};
    struct manager *found = managers_find(m, &bucket), *first;
    size_t j = 0;

    while (!str_eq(sorted[j].manager.api_version, x->api_version))
        j++;
    if (j == i)
        return 0;
    if (!found) {
        first = managers_find(m, &sorted[j].manager);
        bucket.set = first ? first->set : NULL;
        if (first)
            managers_drop(m, first);
    } else {
        bucket.set = found->set;
    }
    bucket.set = set_union(a, x->set, bucket.set);
    bucket.time = x->time;
    managers_drop(m, managers_find(m, x));
    managers_put(a, m, &bucket);
    return 1;
}

static void cap_updaters(struct arena *a, struct managers *m)
{
    struct updater *sorted = arena_alloc(a, (m->n + 1) * sizeof(*sorted));
    size_t n = 0, left;

    for (size_t i = 0; i < m->n; i++) {
        if (!m->at[i].applied)
            sorted[n++] = (struct updater){m->at[i], manager_identity(a, &m->at[i])};
    }
    if (n <= MAX_UPDATERS)
        return;
    qsort(sorted, n, sizeof(*sorted), oldest_first);
    left = n;
    for (size_t i = 0; i < n && left > MAX_UPDATERS; i++)
        left -= sink(a, m, sorted, i);
}

static void take_part(const struct field_write *w, struct managers *m, struct field_set *mine)
{
    struct manager self = {.name = w->manager.n ? w->manager : STR("unknown"),
                           .subresource = w->subresource,
                           .api_version = w->version};
    const struct manager *before = managers_find(m, &self);

    if (!mine)
        return;
    self.set = before ? set_union(w->arena, mine, before->set) : mine;
    self.time = json_new_string(w->arena, w->now);
    managers_put(w->arena, m, &self);
}

int managers_update(const struct field_write *w, struct managers *m, const cJSON *old,
                    const cJSON *now, struct err *err)
{
    struct changes c = {.write = w, .old = old, .now = now, .err = err};
    const struct change *own;

    managers_reconcile(w, m);
    if (changes_of(&c, w->version, &own) != CHANGE_KNOWN || managers_take(&c, m))
        return -1;
    take_part(w, m,
              managers_strip(
                  w->arena, filtered(w, set_union(w->arena, own->diff.modified, own->diff.added))));
    cap_updaters(w->arena, m);
    return 0;
}
