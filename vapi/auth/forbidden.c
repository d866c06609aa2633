/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The message of a 403, in upstream's form. It must never contain more than the request held:
 * neither what exists, nor which users are permitted. Source: k8s.io/apiserver
 * pkg/endpoints/handlers/responsewriters/errors.go. */
#include <sublet/auth.h>
#include <sublet/encode.h>
#include <sublet/err.h>

static struct str where(struct arena *a, struct str ns)
{
    return ns.n ? arena_printf(a, "in the namespace %.*s", STR_F(go_quote(a, ns)))
                : STR("at the cluster scope");
}

int auth_forbidden(struct err *err, struct arena *a, const struct user *u,
                   const struct attributes *what, struct str reason)
{
    struct str name = go_quote(a, u->name), resource = what->resource;
    struct str because = reason.n ? arena_concat(a, 2, (struct str[]){STR(": "), reason}) : STR("");

    if (!what->resource.p)
        return err_set(err, &ERR_FORBIDDEN, "forbidden: User %.*s cannot %s path %.*s%.*s",
                       STR_F(name), what->verb, STR_F(go_quote(a, what->path)), STR_F(because));
    if (what->subresource.n)
        resource = arena_concat(a, 3, (struct str[]){resource, STR("/"), what->subresource});
    return err_forbidden(err, what->group, what->resource, what->name,
                         "User %.*s cannot %s resource %.*s in API group %.*s %.*s%.*s",
                         STR_F(name), what->verb, STR_F(go_quote(a, resource)),
                         STR_F(go_quote(a, what->group)), STR_F(where(a, what->ns)),
                         STR_F(because));
}
