/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Conversion of custom resources by a webhook of the tenant (spec.conversion of their CRD). Objects
 * are stored in one version; what reads or writes another one pauses until the webhook answered:
 *
 *   GET, LIST, WATCH  stored bytes -> the requested version, in the store's form
 *   write             base -> requested version -> ... -> stored version -> COMMIT -> answer
 *
 * Source: apiextensions-apiserver pkg/apiserver/conversion. Nothing waits on the loop; who needs no
 * other version never calls anything, so that a webhook that is away stops only those who do: reads
 * of objects that have the requested version, writes of the stored one and this process go on.
 *
 * Bounds: CONVERSION_MOST_CALLS at once, CONVERSION_MOST_CALLS_EACH for one kind, so that a webhook
 * that reads its own kind in a version that needs itself ends with its deadlines, and one that
 * hangs stops no other kind; CONVERSION_MOST_WAITING more wait.
 * Both have CONVERSION_MOST_BYTES of memory. A call has one object, or up to
 * CONVERSION_MOST_OBJECTS with together CONVERSION_MOST_BATCH bytes; its answer at most
 * CONVERSION_MOST_ANSWER; a list, converted, at most CONVERSION_MOST_LIST. */
#pragma once

#include <sublet/resource.h>

#define CONVERSION_MOST_CALLS      32
#define CONVERSION_MOST_CALLS_EACH 16
#define CONVERSION_MOST_WAITING    1024
#define CONVERSION_MOST_BYTES      (32u * 1024 * 1024)
#define CONVERSION_MOST_OBJECTS    128
#define CONVERSION_MOST_BATCH      (512u * 1024)
#define CONVERSION_MOST_ARENA      (96u * 1024 * 1024) /* what is sent, and the answer's tree */
#define CONVERSION_MOST_ANSWER     (4u * 1024 * 1024)
#define CONVERSION_MOST_LIST       (64u * 1024 * 1024)
#define CONVERSION_TIMEOUT_MS      30000

struct vapi;
struct conversion;

/* The apiVersion that a custom resource carries. */
struct str conversion_carried(const struct resource *r, const struct store_object *o);
/* Whether an object of this apiVersion needs the webhook to be seen as r. */
bool conversion_needed(const struct resource *r, struct str api_version);
bool conversion_needed_stored(const struct resource *r, const struct store_object *o);
/* The schema of a version of r's kind; NULL: it is not served, and nothing is known of it. */
const struct crd_version *conversion_schema(const struct vapi *api, const struct resource *r,
                                            struct str api_version);

/* err NULL: objects are in the requested version, pruned; valid until it
 * returns. */
typedef void (*conversion_done)(void *ctx, cJSON **objects, const struct err *err);
/* Converts n objects of r's kind, each in another version than `to`. a has them and becomes the
 * conversion's. done() is called once, never before this returned, unless it is cancelled. r is
 * valid until then. */
struct conversion *conversion_start(struct vapi *api, const struct resource *r, struct str to,
                                    struct arena *a, cJSON **objects, size_t n,
                                    conversion_done done, void *ctx);
void conversion_cancel(struct conversion *x); /* takes NULL */
/* One object, which is copied. */
struct conversion *conversion_start_one(struct vapi *api, const struct resource *r, struct str to,
                                        const cJSON *object, conversion_done done, void *ctx);

/* Stored objects as r shows them: those that need it are replaced, their references given back, by
 * views of store_view.h. Batch by batch, in order; done() as above. The array is the caller's. */
struct conversion_read;
typedef void (*conversion_read_done)(void *ctx, const struct err *err);
struct conversion_read *conversion_read(struct vapi *api, const struct resource *r,
                                        const struct store_object **objects, size_t n,
                                        conversion_read_done done, void *ctx);
void conversion_read_cancel(struct conversion_read *x); /* takes NULL */

/* The calls under way and waiting; one for each API. */
struct conversions *conversions_free(struct conversions *c); /* takes NULL */
