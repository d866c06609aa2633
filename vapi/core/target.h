/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The target of a request, from its path and query alone: nothing is looked up yet. */
#pragma once

#include <sublet/auth.h>
#include <sublet/net.h>

/* target.c */
struct target {
    bool is_resource;   /* an API path with a resource in it */
    bool by_path_watch; /* the deprecated /watch/ prefix */
    enum net_method method;
    const char *verb; /* as RBAC names it; of a non-resource request the lower-case method */
    struct str group, version, resource, sub, ns, name;
    struct str path_name; /* name as in the path; a field selector may set another one */
    struct str path;      /* decoded */
    struct str rest;      /* after the subresource, without the slash */
    bool of_kubelet;      /* sent to the address of the node, not to the API */
};
/* The request as authorizers, audit policies and FlowSchemas see it. */
struct attributes request_attributes(const struct target *t);
/* False when the path cannot be decoded. */
bool request_target(struct arena *a, const struct net_request *r, struct target *ret);

/* query.c */
struct query_item {
    struct str name, value;
};
struct query {
    const struct query_item *items;
    size_t n;
};
/* %XX and + decoded; a pair that cannot be decoded is left out, as Go's URL.Query() does. */
void query_parse(struct arena *a, struct str text, struct query *ret); /* drops excess pairs */
int query_parse_all(struct arena *a, struct str text, struct query *ret,
                    struct err *err) MUST_CHECK;               /* refuses excess pairs */
struct str query_get(const struct query *q, const char *name); /* first; STR_NULL when absent */
bool query_truth(struct str value); /* the parameter codec's reading of a boolean */
