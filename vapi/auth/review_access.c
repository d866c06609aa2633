/* SPDX-License-Identifier: Apache-2.0 */
/* SubjectAccessReview and its variants. Source of rules and messages: k8s.io/kubernetes
 * pkg/apis/authorization/validation and pkg/registry/authorization. Must never answer an incomplete
 * request. */
#include <sublet/call.h>

#include <string.h>

#include "auth_impl.h"

struct review {
    struct call *call;
    const cJSON *spec, *resource, *path; /* of resourceAttributes, nonResourceAttributes */
    struct user user;
    struct attributes what;
    bool self, local;
};

/* ---- validation ---- */

static void check_names(struct field_errors *e, const struct field_path *at, enum name_rule rule,
                        struct str text)
{
    const char *why[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, text, why);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, at, text, why[i]);
}

static void check_requirement(struct field_errors *e, const struct field_path *at, const cJSON *r,
                              bool labels)
{
    struct str key = json_str_at(r, "key");
    size_t i = 0;
    struct str op;
    size_t n;

    if (!labels && !key.n)
        field_required(e, FIELD(at, "key"), "must be specified");

    /* "In", "NotIn" require values, "Exists", "DoesNotExist" require none; newer clients may know
     * others. */
    op = json_str_at(r, "operator");
    n = json_count(json_get(r, "values"));
    if ((str_eqc(op, "In") || str_eqc(op, "NotIn")) && !n)
        field_required(e, FIELD(at, "values"),
                       "must be specified when `operator` is 'In' or 'NotIn'");
    if ((str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist")) && n)
        field_forbidden(e, FIELD(at, "values"),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");

    if (!labels)
        return;
    check_names(e, FIELD(at, "key"), NAME_QUALIFIED, key);
    json_each(value, json_get(r, "values"))
    {
        check_names(e, FIELD_INDEX(FIELD(at, "values"), i), NAME_LABEL_VALUE, json_str(value));
        i++;
    }
}

static void check_selector(struct field_errors *e, const struct field_path *at,
                           const cJSON *selector, bool labels)
{
    struct str raw = json_str_at(selector, "rawSelector");
    const cJSON *list = json_get(selector, "requirements");
    size_t i = 0;

    if (!json_is_object(selector))
        return;
    if (raw.n && json_count(list))
        field_invalid_str(e, FIELD(at, "rawSelector"), raw,
                          "may not specified at the same time as requirements");
    if (!raw.n && !json_count(list))
        field_required(
            e, FIELD(at, "requirements"),
            arena_printf(e->arena,
                         "when %.*s is specified, requirements or rawSelector is required",
                         STR_F(field_path_text(e->arena, at)))
                .p);
    json_each(r, list)
    {
        check_requirement(e, FIELD_INDEX(FIELD(at, "requirements"), i), r, labels);
        i++;
    }
}

/* As upstream's internal type is printed. */
static cJSON *internal_path(struct arena *a, const cJSON *path)
{
    cJSON *o = json_new_object(a);

    json_set_str(a, o, "Path", json_str_at(path, "path"));
    json_set_str(a, o, "Verb", json_str_at(path, "verb"));
    return o;
}

/* Reviews have no name. The namespace of a local one is already the request's. */
static void check_metadata(struct field_errors *e, const struct review *q)
{
    json_each(member, json_get(q->call->body, "metadata"))
    {
        if (!strcmp(member->string, "namespace") || !strcmp(member->string, "managedFields") ||
            json_is_null(member))
            continue;
        field_invalid(e, FIELD(NULL, "metadata"), json_get(q->call->body, "metadata"),
                      q->local ? "must be empty except for namespace" : "must be empty");
        return;
    }
}

static void check_local(struct field_errors *e, const struct review *q, struct str ns)
{
    const struct field_path *spec = FIELD(NULL, "spec");
    struct str requested = json_str_at(q->resource, "namespace");

    if (q->resource && !str_eq(requested.p ? requested : STR(""), ns))
        field_invalid_str(e, FIELD(FIELD(spec, "resourceAttributes"), "namespace"), requested,
                          "must match metadata.namespace");
    if (q->path)
        field_invalid(e, FIELD(spec, "nonResourceAttributes"), internal_path(e->arena, q->path),
                      "disallowed on this kind of request");
}

static int check(const struct review *q, struct err *err)
{
    struct call *c = q->call;
    struct field_errors e;
    const struct field_path *spec, *at;
    struct arena *a;

    field_errors_init(&e, c->arena);

    spec = FIELD(NULL, "spec");
    at = FIELD(spec, "resourceAttributes");
    a = e.arena;
    if (q->resource && q->path)
        field_invalid(&e, FIELD(spec, "nonResourceAttributes"), internal_path(a, q->path),
                      "cannot be specified in combination with resourceAttributes");
    if (!q->resource && !q->path)
        field_invalid(
            &e, at, json_new_null(a),
            "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    if (!q->self && !q->user.name.n && !q->user.n_groups)
        field_invalid(&e, FIELD(spec, "user"), json_new_string(a, STR("")),
                      "at least one of user or group must be specified");
    check_selector(&e, FIELD(at, "fieldSelector"), json_get(q->resource, "fieldSelector"), false);
    check_selector(&e, FIELD(at, "labelSelector"), json_get(q->resource, "labelSelector"), true);

    check_metadata(&e, q);
    if (q->local)
        check_local(&e, q, c->ns);
    /* Upstream has no kind at this point. */
    return field_errors_to_err(&e, c->resource->group, STR(""), STR(""), err);
}

/* ---- attributes ---- */

static const cJSON *given(const cJSON *object, const char *key)
{
    const cJSON *node = json_get(object, key);

    return json_is_object(node) ? node : NULL;
}

static struct str text_at(const cJSON *object, const char *key)
{
    struct str text = json_str_at(object, key);

    return text.p ? text : STR("");
}

static void read_attributes(struct review *q)
{
    const cJSON *from = q->resource ? q->resource : q->path;

    q->what = (struct attributes){.verb = arena_cstr(q->call->arena, text_at(from, "verb"))};
    if (!q->resource) {
        q->what.path = text_at(from, "path");
        return;
    }
    q->what.group = text_at(from, "group");
    q->what.version = text_at(from, "version");
    q->what.resource = text_at(from, "resource");
    q->what.subresource = text_at(from, "subresource");
    q->what.name = text_at(from, "name");
    q->what.ns = text_at(from, "namespace");
}

/* ---- result ---- */

/* RBAC ignores selectors; invalid requirements are reported all the same. Counts the valid ones. */
static bool field_readable(const cJSON *r)
{
    struct str op = json_str_at(r, "operator");

    return (str_eqc(op, "In") || str_eqc(op, "NotIn")) && json_count(json_get(r, "values")) == 1;
}

static bool label_readable(const cJSON *r)
{
    struct str op = json_str_at(r, "operator");

    return str_eqc(op, "In") || str_eqc(op, "NotIn") || str_eqc(op, "Exists") ||
           str_eqc(op, "DoesNotExist");
}

static bool raw_readable(struct arena *a, struct str raw, bool labels)
{
    struct selector s;
    struct err err;

    err_init(&err, a);
    return (labels ? selector_parse(a, raw, &s, &err) : selector_parse_fields(a, raw, &s, &err)) ==
           0;
}

static void note_selector(const struct review *q, struct buf *out, const char *key, bool labels)
{
    const cJSON *selector = json_get(q->resource, key);
    struct str raw = json_str_at(selector, "rawSelector");
    size_t n = 0, readable = 0;

    if (raw.n) {
        n = 1;
        readable = raw_readable(q->call->arena, raw, labels);
    }
    json_each(r, json_get(selector, "requirements"))
    {
        n++;
        readable += labels ? label_readable(r) : field_readable(r);
    }
    if (readable == n)
        return;
    buf_printf(out, "%sspec.resourceAttributes.%s %signored due to parse error", out->n ? "; " : "",
               key, readable ? "partially " : "");
}

static void answer(const struct review *q)
{
    struct call *c = q->call;
    cJSON *status = json_set(c->arena, c->body, "status", json_new_object(c->arena));
    struct buf notes = BUF_INIT(1024);
    struct str reason;

    json_set_bool(c->arena, status, "allowed",
                  auth_authorize(vapi_auth(c->api), c->arena, &q->user, &q->what, &reason));
    if (reason.n)
        json_set_str(c->arena, status, "reason", reason);
    note_selector(q, &notes, "fieldSelector", false);
    note_selector(q, &notes, "labelSelector", true);
    if (notes.n)
        json_set_str(c->arena, status, "evaluationError", buf_str(&notes));
    buf_fini(&notes);
    call_tree(c, 201, c->body);
}

void review_access(struct call *c)
{
    struct review q = {.call = c, .spec = json_get(c->body, "spec")};
    struct err err;

    q.resource = given(q.spec, "resourceAttributes");
    q.path = given(q.spec, "nonResourceAttributes");
    q.self = str_eqc(c->resource->plural, "selfsubjectaccessreviews");
    q.local = str_eqc(c->resource->plural, "localsubjectaccessreviews");
    if (q.self) {
        q.user = c->user;
    } else {
        const cJSON *list = json_get(q.spec, "groups");
        struct str *groups = arena_alloc(q.call->arena, (json_count(list) + 1) * sizeof(*groups));
        size_t n = 0;

        json_each(group, list) groups[n++] = json_str(group);
        q.user = (struct user){.name = json_str_at(q.spec, "user"),
                               .uid = json_str_at(q.spec, "uid"),
                               .groups = groups,
                               .n_groups = n,
                               .extra = json_get(q.spec, "extra")};
    }

    err_init(&err, c->arena);
    if (check(&q, &err)) {
        call_error(c, &err);
        return;
    }
    read_attributes(&q);
    answer(&q);
}
