/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the checks: visiting a pod's containers, and naming the violating ones: lists of names
 * and values, in upstream's form. Must never decide what is a violation: checks do. */
#include "pod_security_helpers.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists of strings ---- */

void security_strings_add(struct strings *t, struct str s)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 8;
        struct str *grown = arena_alloc(t->arena, cap * sizeof(*grown));

        if (t->n)
            memcpy(grown, t->items, t->n * sizeof(*grown));
        t->items = grown;
        t->cap = cap;
    }
    t->items[t->n++] = s;
}

/* Makes the list a set: sorted, without duplicates. */
void security_strings_unite(struct strings *t)
{
    size_t kept = 0;

    if (t->n)
        qsort(t->items, t->n, sizeof(*t->items), str_order);
    for (size_t i = 0; i < t->n; i++)
        if (!kept || !str_eq(t->items[kept - 1], t->items[i]))
            t->items[kept++] = t->items[i];
    t->n = kept;
}

struct str security_join(const struct strings *t, const char *separator)
{
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < t->n; i++) {
        buf_addc(&b, i ? separator : "");
        buf_add(&b, t->items[i]);
    }
    struct str s = arena_str(t->arena, buf_str(&b));
    buf_fini(&b);
    return s;
}

/* "a", "b": in quotes, nothing escaped. */
struct str security_join_quoted(const struct strings *t)
{
    struct str inner = security_join(t, "\", \"");

    return t->n ? arena_printf(t->arena, "\"%.*s\"", STR_F(inner)) : STR("");
}

const char *security_plural(size_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

/* container "a"; containers "a", "b" */
struct str security_named(const char *one, const char *many, const struct strings *t)
{
    return arena_printf(t->arena, "%s %.*s", security_plural(t->n, one, many),
                        STR_F(security_join_quoted(t)));
}

/* ---- visiting containers ---- */

struct found security_found(const struct check *k)
{
    return (struct found){
        .arena = k->arena, .containers = {.arena = k->arena}, .values = {.arena = k->arena}};
}

void security_visit(const struct check *k, struct found *f, visit_cb bad)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        json_each(container, json_get(k->spec, lists[i]))
        {
            if (bad(f, container))
                security_strings_add(&f->containers, json_str_at(container, "name"));
        }
    }
}

const cJSON *security_context(const cJSON *pod_or_container, const char *path)
{
    return json_path(json_get(pod_or_container, "securityContext"), path);
}

struct str security_bad_containers(const struct found *f)
{
    return security_named("container", "containers", &f->containers);
}

bool security_any(const struct found *f)
{
    return f->pod || f->containers.n;
}

/* pod and containers "a", "b" */
struct str security_setters(const struct found *f)
{
    if (!f->containers.n)
        return f->pod ? STR("pod") : STR("");
    struct str containers = security_bad_containers(f);
    return f->pod ? arena_printf(f->arena, "pod and %.*s", STR_F(containers)) : containers;
}

bool security_refuse(struct check *k, const char *reason, struct str detail)
{
    k->reason = reason;
    k->detail = detail;
    return false;
}

bool security_is_false(const cJSON *node)
{
    return json_is_bool(node) && !json_true(node);
}

bool security_is_windows(const struct check *k)
{
    return str_eqc(json_str_at(k->spec, "os.name"), "windows");
}

/* The pod has a user namespace: its root has no privileges on the node. */
bool security_own_users(const struct check *k)
{
    return security_is_false(json_get(k->spec, "hostUsers"));
}

bool security_listed(struct str s, const char *const *list)
{
    for (; *list; list++)
        if (str_eqc(s, *list))
            return true;
    return false;
}

/* Adds the items of list that are not in allowed to the values; true when there were any. */
bool security_others(struct found *f, const cJSON *list, const char *const *allowed)
{
    bool bad = false;

    json_each(item, list)
    {
        if (security_listed(json_str(item), allowed))
            continue;
        security_strings_add(&f->values, json_str(item));
        bad = true;
    }
    return bad;
}
