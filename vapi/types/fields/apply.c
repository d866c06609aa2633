/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side apply: merges a configuration into a live object, removes the fields its manager no
 * longer applies, and reports conflicts with the owners of changed fields. Must never remove a
 * field another manager owns unless forced. Source: structured-merge-diff
 * merge/{update,conflict}.go, apimachinery pkg/util/managedfields/internal/conflict.go. */
#include "managers.h"

#include <stdlib.h>

struct apply {
    const struct field_write *write;
    struct arena *arena;
    struct err *err;
    struct managers *managers;
    struct field_type type; /* in the version of the request */
    struct manager self;
    struct field_set *last; /* fields self applied before, in last_version */
    struct str last_version;
    bool force;
};

/* ---- fields no longer applied ---- */

/* A copy of the tree in a version; NULL when there is no such version. */
static cJSON *in_version(const struct apply *p, const cJSON *object, struct str version,
                         struct field_type *ret)
{
    const struct field_versions *v = p->write->versions;
    const cJSON *made;

    if (!v->type_of(v->ctx, version, ret))
        return NULL;
    made = v->convert(v->ctx, p->arena, object, version);
    return made ? json_copy(p->arena, made) : NULL;
}

static struct field_set *named(const struct apply *p, struct field_type t, const cJSON *object)
{
    return typed_ensure_named(p->arena, t, typed_set(p->arena, t, object));
}

/* Restores fields of pruned that managers own at a version. Both trees come back in that
 * version. */
static void add_back_owned(const struct apply *p, cJSON **merged, cJSON **pruned,
                           struct str version)
{
    struct arena *a = p->arena;
    struct field_type t;
    cJSON *all = in_version(p, *merged, version, &t);
    cJSON *rest = all ? in_version(p, *pruned, version, &t) : NULL;
    struct field_set *owned = NULL, *kept;

    if (!rest)
        return;
    for (size_t i = 0; i < p->managers->n; i++)
        if (str_eq(p->managers->at[i].api_version, version))
            owned = set_union(a, owned, p->managers->at[i].set);
    kept = set_union(a, named(p, t, rest), typed_ensure_named(a, t, owned));
    *merged = all;
    *pruned = typed_remove(a, t, json_copy(a, all), set_difference(a, named(p, t, all), kept));
}

static void add_back_all_owned(const struct apply *p, cJSON *merged, cJSON **pruned)
{
    const struct managers *m = p->managers;

    add_back_owned(p, &merged, pruned, p->last_version);
    for (size_t i = 0; i < m->n; i++) {
        struct str version = m->at[i].api_version;
        bool seen = str_eq(version, p->last_version);

        for (size_t j = 0; j < i; j++)
            seen |= str_eq(version, m->at[j].api_version);
        if (!seen)
            add_back_owned(p, &merged, pruned, version);
    }
}

/* Removes fields that self applied last time, does not apply now, and no other manager owns. */
static cJSON *prune(const struct apply *p, cJSON *merged)
{
    struct arena *a = p->arena;
    struct field_set *last, *gone;
    cJSON *whole, *pruned, *made;
    struct field_type t, ignored;

    if (!p->last ||
        (str_eq(p->last_version, p->self.api_version) && !set_difference(a, p->last, p->self.set)))
        return merged;
    whole = in_version(p, merged, p->last_version, &t);
    if (!whole)
        return merged;
    last = typed_ensure_named(a, t, p->last);
    pruned = typed_remove(a, t, json_copy(a, whole), last);
    add_back_all_owned(p, whole, &pruned);
    pruned = in_version(p, pruned, p->last_version, &t);
    gone = set_difference(a, named(p, t, whole), named(p, t, pruned));
    pruned = typed_remove(a, t, json_copy(a, whole), set_intersection(a, gone, last));
    made = in_version(p, pruned, p->self.api_version, &ignored);
    return made ? made : merged;
}

/* ---- conflicts ---- */

struct conflict {
    struct manager *manager;
    struct str identity;
    struct field_set *set;
};
struct conflicts {
    struct conflict *at;
    size_t n;
};

static int by_identity(const void *left, const void *right)
{
    const struct conflict *x = left, *y = right;

    return str_cmp(x->identity, y->identity);
}

static int find_conflicts(const struct apply *p, struct changes *c, struct conflicts *ret)
{
    struct arena *a = p->arena;

    ret->at = arena_alloc(a, (p->managers->n + 1) * sizeof(*ret->at));
    ret->n = 0;
    for (size_t i = 0; i < p->managers->n; i++) {
        struct manager *m = &p->managers->at[i];
        const struct change *change;
        struct field_set *set;
        enum change_state state = changes_of(c, m->api_version, &change);

        if (state == CHANGE_FAILED)
            return -1;
        if (state == CHANGE_NO_VERSION)
            continue;
        set = set_intersection(a, m->set, set_union(a, change->diff.modified, change->diff.added));
        if (set)
            ret->at[ret->n++] = (struct conflict){m, manager_identity(a, m), set};
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), by_identity);
    return 0;
}

static struct str print_manager(struct arena *a, const struct manager *m)
{
    struct str name = json_text(a, json_new_string(a, m->name));

    if (m->subresource.n)
        name =
            arena_printf(a, "%.*s with subresource \"%.*s\"", STR_F(name), STR_F(m->subresource));
    return m->applied ? name
                      : arena_printf(a, "%.*s using %.*s", STR_F(name), STR_F(m->api_version));
}

struct report {
    struct arena *arena;
    struct err *err;
    struct str manager, path;
    struct buf text;
    size_t n;
};

static void on_conflict(void *ctx, struct str path, const struct element *const *steps, size_t n)
{
    struct report *r = ctx;

    (void)steps;
    (void)n;
    r->n++;
    r->path = path;
    buf_printf(&r->text, "\n- %.*s", STR_F(path));
    err_cause(r->err, STR("FieldManagerConflict"), path,
              arena_printf(r->arena, "conflict with %.*s", STR_F(r->manager)));
}

static int refuse(struct arena *a, const struct conflicts *c, struct err *err)
{
    struct report r = {.arena = a, .err = err, .text = BUF_INIT(1024 * 1024)};
    struct str text;

    err_clear(err);
    for (size_t i = 0; i < c->n; i++) {
        r.manager = print_manager(a, c->at[i].manager);
        buf_printf(&r.text, "%sconflicts with %.*s:", i ? "\n" : "", STR_F(r.manager));
        set_each(a, c->at[i].set, on_conflict, &r);
    }
    text = arena_str(a, buf_str(&r.text));
    buf_fini(&r.text);
    if (r.n == 1)
        return err_set(err, &ERR_CONFLICT, "Apply failed with 1 conflict: conflict with %.*s: %.*s",
                       STR_F(r.manager), STR_F(r.path));
    return err_set(err, &ERR_CONFLICT, "Apply failed with %zu conflicts: %.*s", r.n, STR_F(text));
}

/* ---- migration from client-side apply ---- */

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define MIGRATES     "kubectl"

/* Fields that kubectl applied client-side and that still have that value: its own server-side apply
 * may take them over. NULL also when the annotation is invalid. Source: lastappliedmanager.go. */
static struct field_set *last_applied(const struct apply *p, const cJSON *live)
{
    struct arena *a = p->arena;
    const cJSON *annotations = json_path(live, "metadata.annotations");
    struct str text = json_str(json_get(annotations, LAST_APPLIED));
    struct field_diff diff;
    struct field_set *set;
    struct err err;
    cJSON *config;

    err_init(&err, a);
    if (!text.n || json_parse(a, text, &config, &err) || !json_is_object(config) ||
        !str_eq(json_str_at(config, "apiVersion"), p->write->version) ||
        typed_validate(a, p->type, live, &err) || typed_validate(a, p->type, config, &err) ||
        typed_compare(a, p->type, config, live, &diff, &err))
        return NULL;
    set = typed_set(a, p->type, config);
    set = set_difference(a, set, diff.modified);
    set = set_difference(a, set, diff.added);
    return set_difference(a, set, diff.removed);
}

static int judge(const struct apply *p, struct conflicts *c, const cJSON *live)
{
    struct field_set *allowed = NULL;
    size_t n = 0;

    if (p->force || !c->n)
        return 0;
    if (str_eqc(p->write->manager, MIGRATES))
        allowed = last_applied(p, live);
    for (size_t i = 0; i < c->n; i++) {
        c->at[i].set = set_difference(p->arena, c->at[i].set, allowed);
        if (c->at[i].set)
            c->at[n++] = c->at[i];
    }
    c->n = n;
    return n ? refuse(p->arena, c, p->err) : 0;
}

/* ---- apply ---- */

/* Separates the manager's own entry: fields it owned do not conflict with those it applies. */
static void set_self_apart(struct apply *p, const cJSON *config)
{
    struct managers *m = p->managers;
    struct manager *before = managers_find(m, &p->self);
    const struct field_versions *v = p->write->versions;

    p->self.set = typed_set(p->arena, p->type, config);
    if (p->self.set && v->filter)
        p->self.set = v->filter(v->ctx, p->arena, p->self.set);
    if (!before)
        return;
    p->last = before->set;
    p->last_version = before->api_version;
    p->self.time = before->time;
}

int managers_apply(const struct field_write *w, struct managers *m, const cJSON *live,
                   const cJSON *config, bool force, cJSON **ret, struct err *err)
{
    struct apply p = {.write = w, .arena = w->arena, .err = err, .managers = m, .force = force};
    const struct field_versions *v = w->versions;
    struct arena *a = w->arena;
    cJSON *made;
    struct changes c;
    struct manager *mine;
    struct conflicts conflicts;

    p.self = (struct manager){.name = w->manager,
                              .subresource = w->subresource,
                              .api_version = w->version,
                              .applied = true};
    if (!v->type_of(v->ctx, w->version, &p.type))
        return err_set(err, &ERR_UNKNOWN, "no corresponding type for %.*s", STR_F(w->version));
    managers_reconcile(w, m);
    if (typed_merge(a, p.type, json_copy(a, live), json_copy(a, config), &made, err))
        return err_wrap(err, "failed to merge config");
    set_self_apart(&p, config);
    managers_put(a, m, &p.self);
    made = prune(&p, made);

    c = (struct changes){.write = p.write, .old = live, .now = made, .err = p.err};
    mine = managers_find(p.managers, &p.self);
    managers_drop(p.managers, mine);
    if (find_conflicts(&p, &c, &conflicts) || judge(&p, &conflicts, live))
        return -1;
    if (managers_take(&c, p.managers))
        return -1;

    *ret = json_equal(live, made) ? NULL : made;
    p.self.set = managers_strip(a, p.self.set);
    if (*ret)
        p.self.time = json_new_string(a, w->now);
    if (p.self.set)
        managers_put(a, m, &p.self);
    return 0;
}
