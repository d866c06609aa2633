/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanger: defaults for containers without requests or limits, and bounds for all. Source of
 * the semantics and messages: plugin/pkg/admission/limitranger. */
#include "usage.h"
#include "plugins.h"

#include <sublet/object.h>

#include <stdlib.h>
#include <string.h>

#define ANNOTATION "kubernetes.io/limit-ranger"
#define MAX_NOTES  (256 * 1024) /* of all annotations of an object */

struct ranges {
    struct arena *arena;
    cJSON *list; /* of LimitRange trees */
};

static bool on_range(void *ctx, const struct store_object *o)
{
    struct ranges *r = ctx;

    json_append(r->list, vapi_tree(r->arena, o));
    return true;
}

static cJSON *ranges_of(const struct admission_call *c)
{
    struct ranges r = {.arena = c->arena, .list = json_new_array(c->arena)};

    plugin_each_stored(c, "", "limitranges", c->ns, on_range, &r);
    return r.list;
}

static bool is_resize(const struct admission_call *c, const cJSON *old)
{
    return old && plugin_admits(c, "", "pods") && str_eqc(c->subresource, "resize");
}

static bool is_type(const cJSON *limit, const char *type)
{
    return str_eqc(json_str_at(limit, "type"), type);
}

/* --- defaults --- */

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* An annotation lists the defaults that were set, names sorted. */
static void note(struct buf *notes, const char **names, size_t n, const char *what,
                 const char *whose, const cJSON *container)
{
    if (!n)
        return;
    qsort(names, n, sizeof(*names), by_name);
    buf_addc(notes, buf_str(notes).n ? "; " : "LimitRanger plugin set: ");
    for (size_t i = 0; i < n; i++)
        buf_printf(notes, "%s%s", i ? ", " : "", names[i]);
    buf_printf(notes, " %s for %s %.*s", what, whose, STR_F(json_str_at(container, "name")));
}

/* Returns how many were missing, and their names. */
static size_t fill(struct arena *a, cJSON *container, const char *which, const cJSON *defaults,
                   const char ***ret_names)
{
    const char **names = arena_alloc(a, (json_count(defaults) + 1) * sizeof(*names));
    size_t n = 0;

    json_each(item, defaults)
    {
        cJSON *resources = json_ensure_object(a, container, "resources");
        cJSON *map = json_ensure_object(a, resources, which);

        if (json_get(map, item->string))
            continue;
        json_set_str(a, map, item->string, json_str(item));
        names[n++] = item->string;
    }
    *ret_names = names;
    return n;
}

static void fill_container(struct arena *a, cJSON *container, const cJSON *limit, const char *whose,
                           struct buf *notes)
{
    const char **names;
    size_t n = fill(a, container, "requests", json_get(limit, "defaultRequest"), &names);

    note(notes, names, n, "request", whose, container);
    n = fill(a, container, "limits", json_get(limit, "default"), &names);
    note(notes, names, n, "limit", whose, container);
    /* A limit without a request is its own request, as pod defaulting would have made it. */
    json_each(item, json_get(limit, "default"))
    {
        cJSON *requests =
            json_ensure_object(a, json_ensure_object(a, container, "resources"), "requests");

        if (!json_get(requests, item->string))
            json_set_str(
                a, requests, item->string,
                json_str(json_get(json_path(container, "resources.limits"), item->string)));
    }
}

static void fill_pod(struct arena *a, cJSON *spec, const cJSON *range, struct buf *notes)
{
    static const char *const whose[] = {"container", "init container"};

    json_each(limit, json_path(range, "spec.limits"))
    {
        if (!is_type(limit, "Container"))
            continue;
        for (int init = 0; init < 2; init++) {
            each_container(container, spec, init)
                fill_container(a, container, limit, whose[init], notes);
        }
    }
}

int limit_ranger_default(const struct admission_call *c, cJSON *object, const cJSON *old,
                         struct err *err)
{
    cJSON *spec = json_get(object, "spec");
    struct arena *a = c->arena;

    (void)err;
    if (!(plugin_is_new_pod(c) || is_resize(c, old)) || !spec || object_is_terminating(old))
        return 0;
    json_each(range, ranges_of(c))
    {
        struct buf notes = BUF_INIT(MAX_NOTES);

        fill_pod(a, spec, range, &notes);
        if (buf_str(&notes).n && !notes.failed) /* of the last range that changed anything */
            json_set_str(
                a, json_ensure_object(a, json_ensure_object(a, object, "metadata"), "annotations"),
                ANNOTATION, arena_str(a, buf_str(&notes)));
        buf_fini(&notes);
    }
    return 0;
}

/* --- bounds --- */

struct bounds {
    struct arena *arena;
    const char *type; /* "Container", "Pod", "PersistentVolumeClaim" */
    struct usage requests, limits;
    struct buf *problems;
    size_t n;
};

/* Whether the same message was already reported: containers may share it. */
static bool reported(struct str all, struct str text)
{
    for (struct str rest = all; rest.n >= text.n;) {
        const char *at = memmem(rest.p, rest.n, text.p, text.n);

        if (!at)
            return false;
        rest = str_from(rest, (size_t)(at - rest.p));
        if ((at == all.p || at[-1] == ' ') && (rest.n == text.n || at[text.n] == ','))
            return true;
        rest = str_from(rest, 1);
    }
    return false;
}

static void problem(struct bounds *b, struct str text)
{
    if (b->problems->failed || reported(buf_str(b->problems), text))
        return;
    if (b->n++)
        buf_addc(b->problems, ", ");
    buf_add(b->problems, text);
}

static struct str shown(struct bounds *b, struct quantity q)
{
    return quantity_format(b->arena, q);
}

static void check_min(struct bounds *b, struct str name, struct quantity bound)
{
    const struct quantity *request = usage_get(&b->requests, name);
    const struct quantity *limit = usage_get(&b->limits, name);

    if (!request)
        problem(b, arena_printf(b->arena,
                                "minimum %.*s usage per %s is %.*s.  No request is specified",
                                STR_F(name), b->type, STR_F(shown(b, bound))));
    else if (quantity_cmp(*request, bound) < 0)
        problem(b, arena_printf(b->arena, "minimum %.*s usage per %s is %.*s, but request is %.*s",
                                STR_F(name), b->type, STR_F(shown(b, bound)),
                                STR_F(shown(b, *request))));
    else if (limit && quantity_cmp(*limit, bound) < 0)
        problem(b, arena_printf(b->arena, "minimum %.*s usage per %s is %.*s, but limit is %.*s",
                                STR_F(name), b->type, STR_F(shown(b, bound)),
                                STR_F(shown(b, *limit))));
}

static void check_max(struct bounds *b, struct str name, struct quantity bound)
{
    const struct quantity *request = usage_get(&b->requests, name);
    const struct quantity *limit = usage_get(&b->limits, name);
    bool claim = !strcmp(b->type, "PersistentVolumeClaim");

    if (!claim && !limit)
        problem(b,
                arena_printf(b->arena, "maximum %.*s usage per %s is %.*s.  No limit is specified",
                             STR_F(name), b->type, STR_F(shown(b, bound))));
    else if (limit && quantity_cmp(*limit, bound) > 0)
        problem(b, arena_printf(b->arena, "maximum %.*s usage per %s is %.*s, but limit is %.*s",
                                STR_F(name), b->type, STR_F(shown(b, bound)),
                                STR_F(shown(b, *limit))));
    else if (request && quantity_cmp(*request, bound) > 0)
        problem(b, arena_printf(b->arena, "maximum %.*s usage per %s is %.*s, but request is %.*s",
                                STR_F(name), b->type, STR_F(shown(b, bound)),
                                STR_F(shown(b, *request))));
}

static void check_ratio(struct bounds *b, struct str name, struct quantity bound)
{
    const struct quantity *request = usage_get(&b->requests, name);
    const struct quantity *limit = usage_get(&b->limits, name);
    bool can = request && limit && request->nano > 0;
    const char *lacks = !request || !request->nano ? "request" : "limit";

    /* limit / request > bound, without dividing; all are below 2^93 nano. */
    if (can && (long double)limit->nano <=
                   (long double)request->nano * ((long double)bound.nano / 1000000000.0L))
        return;
    if (can)
        problem(b, arena_printf(
                       b->arena,
                       "%.*s max limit to request ratio per %s is %.*s, but provided ratio is %f",
                       STR_F(name), b->type, STR_F(shown(b, bound)),
                       (double)limit->nano / (double)request->nano));
    else
        problem(b, arena_printf(
                       b->arena,
                       "%.*s max limit to request ratio per %s is %.*s, but no %s is specified "
                       "or %s is 0",
                       STR_F(name), b->type, STR_F(shown(b, bound)), lacks, lacks));
}

static void check_limit(struct bounds *b, const cJSON *limit)
{
    static const struct {
        const char *key;
        void (*check)(struct bounds *b, struct str name, struct quantity bound);
    } checks[] = {{"min", check_min}, {"max", check_max}, {"maxLimitRequestRatio", check_ratio}};

    for (size_t i = 0; i < COUNT(checks); i++) {
        json_each(item, json_get(limit, checks[i].key))
        {
            struct quantity bound;

            if (quantity_parse(json_str(item), &bound))
                checks[i].check(b, str_c(item->string), bound);
        }
    }
}

static void add_all(struct usage *m, const cJSON *map)
{
    struct quantity q;

    json_each(item, map)
    {
        if (quantity_parse(json_str(item), &q))
            usage_add(m, str_c(item->string), q);
    }
}

static void check_pod(const struct admission_call *c, const cJSON *pod, const cJSON *limit,
                      struct bounds *b)
{
    const cJSON *spec = json_get(pod, "spec");

    if (is_type(limit, "Pod")) {
        b->type = "Pod";
        b->requests = b->limits = (struct usage){.arena = c->arena};
        usage_of_pod(&b->requests, spec, "requests");
        usage_of_pod(&b->limits, spec, "limits");
        check_limit(b, limit);
        return;
    }
    if (!is_type(limit, "Container"))
        return;
    for (int init = 0; init < 2; init++) {
        each_container(container, spec, init)
        {
            b->type = "Container";
            b->requests = b->limits = (struct usage){.arena = c->arena};
            add_all(&b->requests, json_path(container, "resources.requests"));
            add_all(&b->limits, json_path(container, "resources.limits"));
            check_limit(b, limit);
        }
    }
}

static void check_claim(const struct admission_call *c, const cJSON *claim, const cJSON *limit,
                        struct bounds *b)
{
    if (!is_type(limit, "PersistentVolumeClaim"))
        return;
    b->type = "PersistentVolumeClaim";
    b->requests = b->limits = (struct usage){.arena = c->arena};
    add_all(&b->requests, json_path(claim, "spec.resources.requests"));
    check_limit(b, limit);
}

int limit_ranger_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    bool claim = plugin_admits(c, "", "persistentvolumeclaims") && !c->subresource.n && object;
    struct buf problems = BUF_INIT(16 * 1024);
    struct bounds b = {.arena = c->arena, .problems = &problems};

    if ((!claim && !is_resize(c, old) && !plugin_is_new_pod(c)) || object_is_terminating(old))
        return 0;
    json_each(range, ranges_of(c))
    {
        json_each(limit, json_path(range, "spec.limits"))
        {
            if (claim)
                check_claim(c, object, limit, &b);
            else
                check_pod(c, object, limit, &b);
        }
    }
    int result = 0;
    if (b.n)
        result = err_forbidden(err, STR(""), c->resource->plural,
                               plugin_shown_name(json_str_at(object, "metadata.name")),
                               b.n > 1 ? "[%.*s]" : "%.*s", STR_F(buf_str(&problems)));
    buf_fini(&problems);
    return result;
}
