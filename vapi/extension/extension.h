/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Extension API servers of the tenant: APIServices with a service (an extension, here), requests to
 * them on behalf of users, and what they said last that they serve. Everything about an extension
 * is read from the store when it is needed: where none is, nothing is in memory. */
#pragma once

#include <sublet/forward.h>

#include "../core/calls.h"

#define EXTENSION_MOST           64  /* APIServices with a service that are used, by their name */
#define EXTENSION_MOST_CALLS     256 /* at once */
#define EXTENSION_MOST_CALLS_OF  64  /* of one Service */
#define EXTENSION_MOST_DISCOVERY (2u * 1024 * 1024) /* bytes of an APIResourceList */
#define EXTENSION_MOST_KEPT      (1024u * 1024)     /* ... in the form that is kept */
#define EXTENSION_MOST_KEPT_ALL  (2u * 1024 * 1024)

/* --- find.c; all in an arena --- */
struct extension {
    struct str name, uid; /* of the APIService */
    struct str group, version;
    struct str ns, service;
    int64_t port, group_priority, version_priority;
    struct str ca; /* PEM; empty: what the system trusts */
    bool insecure, available;
};
/* The extension that serves a version. False where there is none, or a built-in kind or a CRD
 * serves that version. */
bool extension_find(struct vapi *api, struct arena *a, struct str group, struct str version,
                    struct extension *ret);
/* Reads an APIService; false: it has no service, or is served here. */
bool extension_read(struct vapi *api, struct arena *a, const cJSON *service, struct extension *ret);
/* The first EXTENSION_MOST by name, then in the order of discovery: groups by priority, their
 * versions by preference. */
size_t extension_list(struct vapi *api, struct arena *a, struct extension **ret);
/* Is it among those? */
bool extension_is_used(struct vapi *api, struct str name);

/* --- call.c --- */
struct extension_call;
struct extension_request {
    const char *method;
    struct str path;                  /* encoded, with its query */
    const struct user *user;          /* sent as X-Remote-* headers */
    const struct net_header *headers; /* of the client; claims of identity are left out */
    size_t n_headers;
    struct str body;
    int64_t timeout_ms; /* to the end of the answer; 0: none */
};
/* Events as in forward.h. NULL: it is not sent, as err says: UNAVAILABLE, NOT_FOUND, FORBIDDEN: the
 * Service cannot be reached; TOO_MANY_REQUESTS; BAD_REQUEST: a header that cannot be sent. */
struct extension_call *extension_open(struct vapi *api, const struct extension *x,
                                      const struct extension_request *q,
                                      const struct forward_events *events, void *ctx,
                                      struct err *err);
void extension_pause(struct extension_call *e, bool pause);
void extension_close(struct extension_call *e);             /* takes NULL */
struct extensions *extensions_free(struct extensions *all); /* takes NULL; no call is under way */

/* --- identity.c: the headers of a request, in a --- */
int extension_headers(struct arena *a, const struct extension_request *q,
                      const struct net_header **ret, size_t *ret_n, struct err *err) MUST_CHECK;

/* --- resources.c --- */
/* An APIResourceList as the items of `resources` in apidiscovery.k8s.io/v2; NULL: it is none. */
cJSON *extension_resources(struct arena *a, struct str list);

/* --- document.c: the kept discovery documents, by APIService --- */
/* resources: NULL: the server does not answer: what it said before is kept, and stale. */
void extension_keep(struct vapi *api, const struct extension *x, const cJSON *resources);
void extension_forget(struct vapi *api, struct str name);
/* What x said last, as JSON text, empty: nothing. *ret_stale: it does not answer now. */
struct str extension_kept(struct vapi *api, const struct extension *x, bool *ret_stale);

/* Private to this folder. */
struct extension_document;
struct extensions {
    LIST_HEAD(, extension_call) calls;
    size_t n_calls;
    LIST_HEAD(, extension_document) documents;
    size_t kept; /* bytes of all */
};
struct extensions *extensions_of(struct vapi *api); /* made when there is none */
void extension_documents_free(struct extensions *all);
