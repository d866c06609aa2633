/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * The rows by which configured kinds are translated, and the walk that applies them. */
#pragma once

#include <sublet/translate_kind.h>

#include "impl.h"

/* What a function of a row knows. */
struct kind_call {
    struct arena *arena;
    const struct translate_tenant *tenant;
    const cJSON *object; /* virtual */
    struct str ns, name;
    const char *path; /* of the value: "spec.rules[0].host" */
    struct err *err;
    const cJSON *parent;  /* what the value is a member or an item of */
    const char *what;     /* of the row */
    translate_ref_cb ref; /* NULL: not wanted */
    void *ref_ctx;
    struct err *left_out; /* set by what is left out; NULL: it is refused */
    int (*host)(const struct kind_call *c, const cJSON *value, cJSON **ret); /* of the rules */
};

enum kind_action {
    KIND_KEEP,      /* copied, with everything below it */
    KIND_REFERENCE, /* the name of an object of the same namespace; `what` is its kind */
    KIND_SELECTOR,  /* a LabelSelector */
    KIND_LABELS,    /* a map of labels to match */
    KIND_VALUE,     /* replaced by `value` */
    KIND_DROP,      /* stays with the tenant */
    KIND_REFUSE,    /* FORBIDDEN when it is there; `what` is the reason */
    KIND_CALL,      /* made by a function; NULL leaves it out */
    KIND_CHECK      /* looked at before what is below it is translated by other rows */
};

struct kind_rule {
    const char *path; /* "spec.tls[*].secretName", "spec.*.name"; NULL ends a table */
    enum kind_action action;
    const char *what; /* KIND_CALL: for the function */
    /* KIND_CALL, KIND_CHECK (ret is NULL there). -1: err is set. */
    int (*call)(const struct kind_call *c, const cJSON *value, cJSON **ret);
    const cJSON *value;
};

struct kind_rules {
    const char *api_version; /* of the host object */
    const char *kind;        /* NULL: that of the virtual object */
    const char *group, *plural;
    const struct kind_rule *down;
    const struct kind_rule *up; /* below status; NULL: nothing comes up */
    bool whole;                 /* what no row names goes down, and the whole status up */
    bool reads_namespaces, reads_gateways, is_fence;
    bool in_cluster;   /* has no namespace, on either side */
    const char *needs; /* a path; without a value there it stays with the tenant. NULL: none */
    bool with_pods;    /* goes down only while a pod on its way down, or there, has it */
    /* Which of its annotations go down; NULL: those of policy.annotations. -1: err is set. */
    int (*annotations)(const struct kind_call *c, const cJSON *annotations, cJSON **ret);
    const char *hidden; /* an annotation that never goes down, whatever the admin lists; or NULL */
    /* Judges a host name in an annotation; NULL: one of any list of host names goes down. */
    int (*host)(const struct kind_call *c, const cJSON *value, cJSON **ret);
    /* Does this object go down at all? NULL: each does. */
    bool (*goes_down)(const struct kind_call *c);
    bool (*is_made)(const cJSON *v); /* see translate_kind_is_made(); may be NULL */
    int patched; /* 1 + the enum sync_down whose configured patches apply; 0: none do */
    /* Adds to the host object what follows from the absence of a value; may be NULL. */
    void (*finish)(const struct kind_call *c, cJSON *host);
};

/* The host name of an object that a row refers to; reports Secrets and ConfigMaps to c->ref. */
cJSON *translate_kind_reference(const struct kind_call *c, const char *kind, struct str ns,
                                struct str name);
/* FORBIDDEN with the path of the value; returns -1. */
int translate_kind_refuse(const struct kind_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- of kinds that name storage: functions of rows, and what such functions are made of --- */
/* FORBIDDEN for a member whose key is not in listed (unlisted says so), or whose value is not
 * permitted there. */
int translate_kind_check_choice(const struct kind_call *c, const cJSON *value,
                                struct config_choices listed, const char *unlisted);
/* The same for a string that has to be in a list. */
int translate_kind_check_listed(const struct kind_call *c, const cJSON *value,
                                struct str_list listed, const char *unlisted);
/* The key of a label of nodes, by which storage names places: see translate_topology_key(). */
int translate_kind_topology_key(const struct kind_call *c, const cJSON *value,
                                struct str_list listed, cJSON **ret);
int translate_kind_no_annotations(const struct kind_call *c, const cJSON *annotations, cJSON **ret);

/* After a refusal of something that may be left out without permitting more: true, and the refusal
 * is noted, where the caller of the translation wants it so. */
bool translate_kind_leaves_out(const struct kind_call *c);

/* A value by rows of its own, whose paths begin at it: ".a.b", "[*].a". *ret NULL: nothing of it
 * goes down. */
int translate_kind_part(const struct kind_call *c, const struct kind_rule *rows, const cJSON *value,
                        cJSON **ret);

/* ---- kind_ingress.c, kind_notes.c ---- */

/* A host name of sync.toHost.ingresses.hosts. */
int translate_kind_host(const struct kind_call *c, const cJSON *value, cJSON **ret);
/* A class of sync.toHost.ingresses.classes. */
int translate_kind_ingress_class(const struct kind_call *c, struct str class);
/* kind_rules.annotations: those of policy.annotations, where what names an object is translated,
 * and what names a host is judged. */
int translate_kind_notes(const struct kind_call *c, const cJSON *annotations, cJSON **ret);
/* Why a listed annotation of a Service, from which controllers read those of its Ingress as well,
 * may not go down as the tenant wrote it; NULL: it may. */
const char *translate_kind_note_of_service(const struct translate_tenant *t, struct str key,
                                           struct str value);

/* Patches of the configuration as rows. kind_custom.c */
const struct kind_rule *translate_custom_rows(struct arena *a,
                                              const struct config_patches *patches);

/* The members of an object that rows are about: all but apiVersion, kind, metadata and status. */
cJSON *translate_kind_body(struct arena *a, const cJSON *object);
/* The host's status by the rows `up`; NULL: there is none. */
cJSON *translate_kind_status_rows(struct arena *a, const struct translate_tenant *t,
                                  const struct kind_rules *rules, const cJSON *host,
                                  const cJSON *v);

/* status.conditions of the host: the members that every condition has. */
cJSON *translate_kind_conditions(struct arena *a, const cJSON *conditions);

extern const struct kind_rules TRANSLATE_RULES_ENDPOINT_SLICE, TRANSLATE_RULES_NETWORK_POLICY,
    TRANSLATE_RULES_INGRESS, TRANSLATE_RULES_DISRUPTION_BUDGET, TRANSLATE_RULES_GATEWAY,
    TRANSLATE_RULES_HTTP_ROUTE, TRANSLATE_RULES_GRPC_ROUTE, TRANSLATE_RULES_TLS_ROUTE,
    TRANSLATE_RULES_BACKEND_TLS, TRANSLATE_RULES_RESOURCE_CLAIM, TRANSLATE_RULES_SERVICE_ACCOUNT,
    TRANSLATE_RULES_STORAGE_CLASS, TRANSLATE_RULES_VOLUME;

/* ---- kind_reference.c: references of the Gateway API, within the virtual cluster ---- */

#define GATEWAY_GROUP "gateway.networking.k8s.io"

/* KIND_CALL of the `name` of a reference; row.what: the kind where it names none. */
int gateway_reference_down(const struct kind_call *c, const cJSON *value, cJSON **ret);
/* KIND_CALL of the spec.parentRefs and the status.parents of a route. */
int gateway_parents_down(const struct kind_call *c, const cJSON *value, cJSON **ret);
int gateway_parents_up(const struct kind_call *c, const cJSON *value, cJSON **ret);
/* KIND_CALL of the status.ancestors of a policy: those of the tenant's Gateways and targets. */
int gateway_ancestors_up(const struct kind_call *c, const cJSON *value, cJSON **ret);

/* A whole object of the host into `to`, but for apiVersion, kind and metadata, with patches of
 * PATCH_VALUE and PATCH_DROP. False: one of them cannot be applied, and nothing may be shown. */
bool translate_kind_patched(struct arena *a, const struct translate_tenant *t,
                            const struct config_patches *patches, const cJSON *host, cJSON *to);
