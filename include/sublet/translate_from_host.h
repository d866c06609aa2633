/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * Objects of the host that the tenant is shown, and what its own objects may name because of that.
 * Pure functions, as all of the room. */
#pragma once

#include <sublet/config_sync_from.h>

struct translate_tenant;

/* Does the virtual object of this name show one of the host (ns empty: of a cluster-scoped kind)?
 * The same answer while one object is translated; is NULL: none does. */
struct translate_shown {
    bool (*is)(void *ctx, enum config_from_kind kind, struct str ns, struct str name);
    void *ctx;
};

/* Of a virtual object that shows one of the host: "true" (classes of pools and of policy), or
 * FROM_HOST_SYNC (sync.fromHost). */
#define ANNOTATION_FROM_HOST "sublet.dev/from-host"
#define FROM_HOST_SYNC       "sync"
/* In place of messages that may name what is not the tenant's. */
#define FROM_HOST_MESSAGE "reported by the host cluster"

/* An object of the host as sync.fromHost shows it, by the allow-list of its kind, under this name:
 * without apiVersion and kind; a custom resource whole, with the patches of its row. NULL: it is
 * not shown. */
cJSON *translate_from_host(struct arena *a, const struct translate_tenant *t,
                           const struct config_from *row, const cJSON *host, struct str ns,
                           struct str name);
/* The same of an EndpointSlice, which belongs to this Service of the virtual cluster then. */
cJSON *translate_from_host_slice(struct arena *a, const struct translate_tenant *t,
                                 const struct config_from *row, const cJSON *host, struct str ns,
                                 struct str name, struct str service);
/* Its name there, where that of the host's Service is not to be seen. */
struct str translate_from_host_slice_name(struct arena *a, const struct translate_tenant *t,
                                          struct str service, struct str host_name);
/* Of an EndpointSlice: the name of its Service. */
#define LABEL_SERVICE_NAME "kubernetes.io/service-name"
/* Is the kind enabled, and this class shown? */
bool translate_shows(const struct translate_tenant *t, enum config_from_kind kind, struct str name);
/* Which object of the host the virtual one of this name shows, of a kind with mappings. False: it
 * shows none. */
bool translate_shows_host(const struct translate_tenant *t, enum config_from_kind kind,
                          struct str ns, struct str name, struct str *ret_host_ns,
                          struct str *ret_host_name);
/* Classes that a pod names, where sync.fromHost shows such: FORBIDDEN for one that is neither shown
 * nor of a pool. */
int translate_check_pod_classes(const struct translate_tenant *t, const cJSON *pod,
                                struct err *err) MUST_CHECK;
/* Is the storage class offered by policy.storageClasses, or as the host's default? */
bool translate_class_listed(const struct translate_tenant *t, struct str class);
