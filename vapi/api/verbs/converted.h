/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/verbs)
 *
 * A write of a custom resource whose versions a webhook converts. */
#pragma once

#include "verbs.h"

/* The tree is the call's; NULL with err. Never before the function that started it returned. */
typedef void (*converted_done)(void *ctx, cJSON *tree, const struct err *err);

/* The base of a write in the version of the request. False: it needs no webhook. */
bool converted_base(struct call *c, const struct store_object *base, converted_done done,
                    void *ctx);
/* object, of c's kind, in version `to`, which is another than its own. */
void converted_tree(struct call *c, const cJSON *object, struct str to, converted_done done,
                    void *ctx);
/* A copy of a stored tree as a reader's decoder makes it: pruned, with defaults. */
cJSON *converted_again(struct call *c, const cJSON *stored);

/* object as managers of another version see it, a copy; NULL: not known. Then it is wished for, and
 * what needed it is done again once converted_wishes() was. */
cJSON *converted_find(struct call *c, const cJSON *object, struct str to);
bool converted_failed(struct call *c); /* one of them */
/* Converts what is wished for, then done(). False: there is none. err: of an apply. */
bool converted_wishes(struct call *c, void (*done)(void *ctx, const struct err *err), void *ctx);
