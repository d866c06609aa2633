/* SPDX-License-Identifier: Apache-2.0 */
/* Which rights the host's RBAC denies this process, learned from the answers to its requests. Must
 * never take the refusal of an object (by a quota, a policy) for a missing right, nor grow without
 * bound. */
#include <stdio.h>
#include <string.h>

#include "host_impl.h"

static const char *verb_of(const char *method, bool named, struct str query)
{
    if (str_contains(query, STR("watch=1")))
        return "watch";
    if (!strcmp(method, "GET"))
        return named ? "get" : "list";
    if (!strcmp(method, "POST"))
        return "create";
    if (!strcmp(method, "PATCH"))
        return "patch";
    return !strcmp(method, "PUT") ? "update" : "delete";
}

/* /api/v1/namespaces/NS/plural[/name[/sub...]], /apis/GROUP/VERSION/plural ... */
bool host_rights_name(const char *method, struct str path, char out[96])
{
    struct str rest = path, full = str_cut(&rest, '?'), query = rest, root, plural, name, sub;

    str_cut(&full, '/');
    root = str_cut(&full, '/');
    if (!str_eqc(root, "api") && !str_eqc(root, "apis"))
        return false;
    if (str_eqc(root, "apis"))
        str_cut(&full, '/');
    str_cut(&full, '/');
    plural = str_cut(&full, '/');
    if (str_eqc(plural, "namespaces") && str_find(full, '/') < full.n) {
        str_cut(&full, '/');
        plural = str_cut(&full, '/');
    }
    name = str_cut(&full, '/');
    sub = str_cut(&full, '/');
    if (!plural.n)
        return false;
    snprintf(out, 96, "%s %.*s%s%.*s", verb_of(method, name.n > 0, query), STR_F(plural),
             sub.n ? "/" : "", STR_F(sub));
    return true;
}

/* Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage. */
bool host_rights_is_denial(const struct err *err)
{
    return err && err->kind == &ERR_FORBIDDEN && str_contains(err->message, STR(" cannot ")) &&
           str_contains(err->message, STR(" resource \""));
}

/* Source: k8s.io/apiserver pkg/admission/plugin/policy/validating/dispatcher.go, Dispatch. */
bool host_err_is_permanent(const struct err *err)
{
    return host_rights_is_denial(err) ||
           (err && err->kind == &ERR_FORBIDDEN &&
            str_contains(err->message, STR("ValidatingAdmissionPolicy")));
}

static size_t find(const struct rights *r, const char *right)
{
    size_t i = 0;

    while (i < r->n && strcmp(r->denied[i], right) != 0)
        i++;
    return i;
}

bool host_rights_deny(struct rights *r, const char *right)
{
    if (find(r, right) < r->n || r->n == RIGHTS_MAX)
        return false;
    r->denied[r->n++] = mem_strdup(str_c(right));
    return true;
}

bool host_rights_grant(struct rights *r, const char *right)
{
    size_t i = find(r, right);

    if (i == r->n)
        return false;
    mem_free(r->denied[i]);
    r->denied[i] = r->denied[--r->n];
    return true;
}

void host_rights_fini(struct rights *r)
{
    while (r->n)
        mem_free(r->denied[--r->n]);
}
