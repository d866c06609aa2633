/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Errors as metav1.Status and back (the answer of a host or a webhook). It must never lose the
 * reason: clients decide by it. Source: apimachinery pkg/apis/meta/v1 types.go, pkg/api/errors. */
#include "core.h"

static bool add_text(struct arena *a, cJSON *o, const char *key, struct str s)
{
    if (s.n)
        json_set_str(a, o, key, s);
    return s.n != 0;
}

static cJSON *causes_tree(struct arena *a, const struct err *err)
{
    cJSON *list = json_new_array(a);

    for (const struct err_cause *cause = err->causes; cause; cause = cause->next) {
        cJSON *o = json_append(list, json_new_object(a));

        add_text(a, o, "reason", cause->type);
        add_text(a, o, "message", cause->message);
        add_text(a, o, "field", cause->field);
    }
    return list;
}

/* Generic answers of the server (405, 403, a path without a resource, a patch that fails, refusals
 * of upstream's router) have empty details. */
static bool wants_details(const struct err *err)
{
    return err->kind == &ERR_METHOD_NOT_ALLOWED || err->kind == &ERR_NOT_FOUND ||
           err->kind == &ERR_INVALID || err->kind == &ERR_FORBIDDEN || err->router;
}

cJSON *status_tree(struct arena *a, const struct err *err)
{
    cJSON *s = json_new_object(a);
    cJSON *metadata = json_new_object(a);
    cJSON *details = json_new_object(a);
    bool any = wants_details(err);

    json_set_str(a, s, "kind", STR("Status"));
    json_set_str(a, s, "apiVersion", STR("v1"));
    add_text(a, metadata, "continue", err->cont);
    json_set(a, s, "metadata", metadata);
    json_set_str(a, s, "status", STR("Failure"));
    add_text(a, s, "message", err->message);
    add_text(a, s, "reason", str_c(err->kind->reason));

    any |= add_text(a, details, "name", err->name);
    any |= add_text(a, details, "group", err->group);
    any |= add_text(a, details, "kind", err->resource);
    any |= add_text(a, details, "uid", err->uid);
    if (err->causes) {
        json_set(a, details, "causes", causes_tree(a, err));
        any = true;
    }
    if (err->retry_after > 0) {
        json_set_i64(a, details, "retryAfterSeconds", err->retry_after);
        any = true;
    }
    if (any)
        json_set(a, s, "details", details);
    json_set_i64(a, s, "code", err->kind->code);
    return s;
}

static const struct err_kind *const KINDS[] = {
#define ERR_KIND(name, reason, code) &ERR_##name,
#include <sublet/tbl/errors.h>
#undef ERR_KIND
};
#define N_KINDS COUNT(KINDS)

/* By reason, then by code; an unknown one is an internal error. */
static const struct err_kind *kind_of(struct str reason, int64_t code)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (reason.n && str_eqc(reason, KINDS[i]->reason))
            return KINDS[i];
    for (size_t i = 0; i < N_KINDS; i++)
        if (KINDS[i]->code == code)
            return KINDS[i];
    return &ERR_INTERNAL;
}

int status_parse(struct arena *a, const cJSON *status, struct err *err)
{
    const cJSON *details = json_get(status, "details");
    int64_t code = json_i64_at(status, "code", 0);
    struct str message = json_str_at(status, "message");

    err_set(err, kind_of(json_str_at(status, "reason"), code), "%.*s", STR_F(message));
    if (!err)
        return -1;
    err->name = arena_str(a, json_str_at(details, "name"));
    err->group = arena_str(a, json_str_at(details, "group"));
    err->resource = arena_str(a, json_str_at(details, "kind"));
    err->uid = arena_str(a, json_str_at(details, "uid"));
    err->retry_after = json_i64_at(details, "retryAfterSeconds", 0);
    err->cont = arena_str(a, json_str_at(status, "metadata.continue"));
    json_each(cause, json_get(details, "causes"))
        err_cause(err, json_str_at(cause, "reason"), json_str_at(cause, "field"),
                  json_str_at(cause, "message"));
    return -1;
}

/* Our reader reports the position of an error; upstream's messages do not. */
struct str status_body_text(struct str message)
{
    for (size_t i = 0; i < message.n; i++)
        if (str_has_prefix(str_from(message, i), STR(" (offset ")))
            return str_sub(message, 0, i);
    return message;
}
