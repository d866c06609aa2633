/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Turns a request's bytes into a call for its handler: query parameters, and the body as a tree of
 * the right kind and schema. */
#pragma once

#include "../../core/calls.h"
#include "../../core/target.h"

/* options.c */
int options_parse(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* DeleteOptions from a decoded body: they replace those of the query. */
int options_from_body(struct call *c, const cJSON *body, struct err *err) MUST_CHECK;
/* Checks and parses the selectors of c->options (options_parse copied them there). */
int options_selectors(struct call *c, struct err *err) MUST_CHECK;

/* body.c */
/* c->patch by the content type: 415 for a patch type this resource does not support. */
int body_patch_type(struct call *c, struct err *err) MUST_CHECK;
/* Reads c->request->body into c->body. */
int body_decode(struct call *c, struct err *err) MUST_CHECK;
/* Refuses a body whose kind or version is not the URL's; sets absent ones. */
int body_check_kind(struct call *c, struct err *err) MUST_CHECK;
/* Checks the result of a patch: its kind, and its schema. */
int body_check_patched(struct call *c, cJSON *patched, struct err *err) MUST_CHECK;
/* Types, nulls and canonical forms by the schema; unknown fields are recorded in c->strict. */
int body_normalise(struct call *c, cJSON *object, struct err *err) MUST_CHECK;
/* c->body as a non-persisted request (a review, a Binding, an Eviction): normalised and validated,
 * in the namespace of the request, without unknown fields. */
int body_take(struct call *c, struct err *err) MUST_CHECK;
/* 422 about the result of a patch. */
int body_refuse_patched(struct call *c, const cJSON *patched, struct str why,
                        struct err *err) MUST_CHECK;
/* `Pod in version "v1" cannot be handled as a Pod: why` */
int body_refuse(struct call *c, const char *why, struct err *err) MUST_CHECK;
/* Sets the kind and version of the URL, replacing the tree's. */
void body_set_kind(struct call *c, cJSON *tree);
/* Why a body that is not an object is invalid. */
struct str body_not_object(const struct call *c, const cJSON *tree);
/* Turns c->strict into warnings, or into 400 (422 for patches) when validation is strict. */
int body_strict(struct call *c, const cJSON *patched, struct err *err) MUST_CHECK;

/* kubelet.c */
/* True: the request was sent to the address of a node, and c->request is of nodes/NAME/proxy now.
 */
bool request_kubelet_address(struct call *c);
/* By which subresource of nodes a kubelet authorizes a path; without its first slash. */
struct str request_kubelet_subresource(struct str path);
/* Does nodes/proxy permit it as well? */
bool request_kubelet_is_part(struct str path);

/* server.c */
void request_handler(struct vapi *api, struct net_handler *ret);
