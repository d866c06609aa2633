/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/discovery)
 *
 * Where answers come from besides the making of a document: finished documents, and the host's
 * descriptions of types. */
#pragma once

#include "discovery.h"

/* openapi_cache.c */
/* Finished documents, shared by the answers being sent. */
struct blob;
struct str openapi_blob_bytes(const struct blob *b);
struct blob *openapi_blob_ref(struct blob *b);
void openapi_blob_unref(void *blob); /* takes NULL; the shape of a slice's release() */

struct cache;
struct cache *openapi_cache_new(struct vapi *api);
/* NULL when it is not cached. Borrowed. */
struct blob *openapi_cache_get(struct cache *c, struct str key);
/* Takes the bytes. Borrowed: valid until control returns to the loop. */
struct blob *openapi_cache_put(struct cache *c, struct str key, struct str bytes);
void openapi_cache_close(struct cache *c, void (*closed)(void *ctx), void *ctx);

/* openapi_descriptions.c */
/* Descriptions from the host. Every callback runs exactly once, perhaps before the call returned: a
 * host that does not respond within a second or two counts as one without descriptions. */
struct descriptions;
struct descriptions *openapi_descriptions_new(struct vapi *api);
struct descriptions *openapi_descriptions_free(struct descriptions *t);
/* Fetches the list of the host's documents. */
void openapi_descriptions_want_index(struct descriptions *t, void (*done)(void *ctx), void *ctx);
/* The hash of the host's document for our root; empty when there is none. After the index. */
struct str openapi_descriptions_hash(const struct descriptions *t, struct str root);
/* components.schemas of the document, valid until done() returned; NULL when unavailable. */
typedef void (*descriptions_cb)(void *ctx, const cJSON *schemas);
void openapi_descriptions_want(struct descriptions *t, struct str root, descriptions_cb done,
                               void *ctx);
