/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * From a request's bytes to a call that its handler can take: query parameters, the body as a tree
 * of the right kind and shape. */
#pragma once

#include "../../core/calls.h"
#include "../../core/target.h"

/* options.c */
int options_parse(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* DeleteOptions from a decoded body: it replaces what the query said. */
int options_from_body(struct call *c, const cJSON *body, struct err *err) MUST_CHECK;
/* Checks and parses the selectors of c->options (they were copied there by options_parse). */
int options_selectors(struct call *c, struct err *err) MUST_CHECK;

/* body.c */
/* c->patch by the content type: 415 for what this resource cannot be patched with. */
int body_patch_type(struct call *c, struct err *err) MUST_CHECK;
/* Reads c->request->body into c->body. */
int body_decode(struct call *c, struct err *err) MUST_CHECK;
/* A body decoded with another kind or version than the URL's is refused; absent ones are set. */
int body_check_kind(struct call *c, struct err *err) MUST_CHECK;
/* What a patch made: still of its kind, and of its shape. */
int body_check_patched(struct call *c, cJSON *patched, struct err *err) MUST_CHECK;
/* Types, nulls and canonical texts by the schema; unknown fields are noted in c->strict. */
int body_normalise(struct call *c, cJSON *object, struct err *err) MUST_CHECK;
/* c->body as a question or an order that is not stored as it is (a review, a Binding, an Eviction):
 * normalised and judged, in the namespace of the request, without what its type does not know. */
int body_take(struct call *c, struct err *err) MUST_CHECK;
/* 422 about what a patch made. */
int body_refuse_patched(struct call *c, const cJSON *patched, struct str why,
                        struct err *err) MUST_CHECK;
/* `Pod in version "v1" cannot be handled as a Pod: why` */
int body_refuse(struct call *c, const char *why, struct err *err) MUST_CHECK;
/* The kind and version of the URL, whatever the tree says. */
void body_set_kind(struct call *c, cJSON *tree);
/* Why a tree that is no object is no body. */
struct str body_not_object(const struct call *c, const cJSON *tree);
/* Turns c->strict into warnings, or into 400 (422 for patches) when validation is strict. */
int body_strict(struct call *c, const cJSON *patched, struct err *err) MUST_CHECK;

/* server.c */
void server_handler(struct vapi *api, struct net_handler *ret);
