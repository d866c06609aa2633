/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * Kinds that the configuration adds to what goes down, by tables of rows: a path, and what becomes
 * of the value there. What no row names does not go down, except where the admin configured a
 * custom resource, which goes down whole. Pure functions, as all of the room. */
#pragma once

#include <sublet/config_sync.h>
#include <sublet/translate.h>

struct kind_rules; /* kind_impl.h */

/* What the translation of one object reads of others in the virtual cluster. Members may be NULL:
 * nothing is there. Results are in the arena. */
struct translate_related {
    void *ctx;
    /* Has the tenant a Service of this name that goes down without a selector? */
    bool (*bare_service)(void *ctx, struct str ns, struct str name);
    /* ns empty: of a cluster-scoped kind. */
    const cJSON *(*object)(void *ctx, struct arena *a, const char *group, const char *plural,
                           struct str ns, struct str name);
    /* ns STR_NULL: of all namespaces. */
    const cJSON *(*list)(void *ctx, struct arena *a, const char *group, const char *plural,
                         struct str ns);
    /* A reference that the tenant's own objects do not permit: it leads nowhere on the host. */
    void (*denied)(void *ctx, struct str why);
};

const struct kind_rules *translate_kind_rules(enum sync_down kind);
/* The same rules for host objects of this version; `version` must outlive them. */
const struct kind_rules *translate_kind_rules_at(struct arena *a, const struct kind_rules *rules,
                                                 const char *version);
/* In the arena; config must outlive it. */
const struct kind_rules *translate_custom_rules(struct arena *a,
                                                const struct config_custom *custom);
/* Does the translation depend on the tenant's Namespaces (t->namespaces)? */
bool translate_kind_reads_namespaces(const struct kind_rules *rules);
/* Does it depend on the Gateways, ReferenceGrants and Namespaces of t->related? */
bool translate_kind_reads_gateways(const struct kind_rules *rules);
/* Does it go down only while a pod has it? */
bool translate_kind_goes_with_pods(const struct kind_rules *rules);
/* Must its host object stay when it may no longer go down as it is, because its absence would
 * permit more? */
bool translate_kind_is_fence(const struct kind_rules *rules);

/* Is it made by a controller of the virtual cluster from another object, so that no client reads a
 * refusal of its write? It is judged when it goes down. */
bool translate_kind_is_made(const struct kind_rules *rules, const cJSON *v);

/* The host object; *ret NULL: it stays with the tenant. FORBIDDEN, with the field, for what may not
 * go down. */
int translate_kind(struct arena *a, const struct translate_tenant *t,
                   const struct kind_rules *rules, const cJSON *v, cJSON **ret,
                   struct err *err) MUST_CHECK;
/* The same of an object that is stored already: what a fence may no longer permit is left out, and
 * what remains permits less. *left_out is FORBIDDEN, with the field, when something was. */
int translate_kind_narrowed(struct arena *a, const struct translate_tenant *t,
                            const struct kind_rules *rules, const cJSON *v, cJSON **ret,
                            struct err *left_out, struct err *err) MUST_CHECK;
/* The objects that must be on the host for it: "name" in its namespace, else "namespace/name". */
void translate_kind_refs(struct arena *a, const struct translate_tenant *t,
                         const struct kind_rules *rules, const cJSON *v, translate_ref_cb each,
                         void *ctx);
/* What turns the host object into the wanted one, as a merge patch without metadata.uid; NULL when
 * nothing does. What the host added stays, unless the wanted object itself has changed since it was
 * written last (its digest, in an annotation, differs); what is beside spec and named by no row,
 * such as the Secrets of a ServiceAccount, stays in any case. */
cJSON *translate_kind_update(struct arena *a, const struct kind_rules *rules, const cJSON *host_now,
                             const cJSON *host_wanted);
/* Was the host object last written as it is wanted? What others changed since then is not looked
 * at. */
bool translate_kind_is_written(const cJSON *host_now, const cJSON *host_wanted);
/* status.reservedFor of a host claim by the names of virtual pods: find() knows a pod of the host
 * by name and uid. NULL: none. */
typedef bool (*translate_reserved_cb)(void *ctx, struct str host_name, struct str host_uid,
                                      struct str *ret_name, struct str *ret_uid);
cJSON *translate_reserved_up(struct arena *a, const cJSON *list, translate_reserved_cb find,
                             void *ctx);
/* The virtual status that follows from the host's; NULL when it would not change, or does not come
 * from the host. */
cJSON *translate_kind_status_up(struct arena *a, const struct translate_tenant *t,
                                const struct kind_rules *rules, const cJSON *host, const cJSON *v);
