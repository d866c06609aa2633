/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Built-in admission, in upstream's order: NamespaceLifecycle, LimitRanger, ServiceAccount,
 * Priority, DefaultTolerationSeconds, DefaultStorageClass, and after validation
 * OwnerReferencesPermissionEnforcement, role escalation and ResourceQuota. Synchronous; reads the
 * store. */
#pragma once

#include <sublet/vapi.h>

struct call;
enum admission_operation {
    ADMISSION_CREATE,
    ADMISSION_UPDATE,
    ADMISSION_DELETE,
    ADMISSION_CONNECT
};

struct call_options;
struct admission_call {
    struct vapi *api;
    struct arena *arena;
    const struct user *user;
    const struct resource *resource;
    struct str subresource, ns, name;
    enum admission_operation operation;
    bool dry_run;
    const char *controller;             /* in-process: the account of its own; NULL: none */
    const struct call_options *options; /* as sent; NULL: none */
    void (*warn)(void *ctx, struct str text);
    void *warn_ctx;
    /* For the audit log; may be NULL. ctx is warn_ctx. */
    void (*annotate)(void *ctx, struct str key, struct str value);
    struct str path_name; /* from the request's path: empty for a POST */
    /* object and old are of the subresource's own kind, whatever the version of the resource: a
     * Scale, a Binding, the options of a connection. Only plug-ins about such objects run. */
    bool apart;
    /* Decodes an object that a policy mutated, as a body of resource `as`, and sets defaults; NULL:
     * no policy mutates. In *replaced, the object before the first mutation. */
    int (*decode)(struct call *call, const struct resource *as, cJSON *object, struct err *err);
    struct call *call;
    cJSON **replaced;
    bool again; /* policies with reinvocationPolicy IfNeeded only */
};
/* Changes object. old NULL for create; object NULL for delete. */
int admission_mutate(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err) MUST_CHECK;
int admission_validate(const struct admission_call *c, const cJSON *object, const cJSON *old,
                       struct err *err) MUST_CHECK;
/* NamespaceLifecycle alone, after a pause and of what is apart: nothing is created in a namespace
 * that does not exist or is terminating. */
int admission_lifecycle(const struct admission_call *c, cJSON *object, struct err *err) MUST_CHECK;
/* ResourceQuota, exactly: against `latest`, right before the write is passed to the store. */
int admission_quota(const struct admission_call *c, const cJSON *object, const cJSON *old,
                    struct err *err) MUST_CHECK;
/* Current usage of a quota (for the controller that maintains status.used): {resource:
 * quantity}. */
cJSON *admission_quota_used(struct vapi *api, struct arena *a, struct str ns, const cJSON *quota);
/* Usage of objects, cached by version; created when the first quota needs it, freed with the
 * API. */
struct admission_memo;
struct admission_memo *admission_memo_new(const struct rng *rng);
struct admission_memo *admission_memo_free(struct admission_memo *m); /* takes NULL */
struct admission_memo *vapi_admission_memo(struct vapi *api);
