/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * What the host says, in words the tenant may read. Pure functions, as the rest of the room. */
#pragma once

#include <sublet/err.h>

struct translate_tenant;

/* A message of the host about an object of the tenant's: host names and the host namespace are
 * written back; uids, accounts and addresses of the host are left out, and nodes are counted as the
 * tenant sees them. */
struct str translate_text_up(struct arena *a, const struct translate_tenant *t, struct str text,
                             struct str host_name, struct str ns, struct str name);
/* Names alone, in what is not the host's to say: a header of a program behind a proxy. */
struct str translate_names_up(struct arena *a, const struct translate_tenant *t, struct str text,
                              struct str host_name, struct str ns, struct str name);
/* Is it that we may not ask, and nothing about what we asked for? */
bool translate_refusal_is_of_rights(const struct err *refusal);
/* What the host's API answers to a request of ours, as the tenant may read it. That we lack a right
 * there, or that a webhook of the admin's is away, is a fixed sentence; the words of quotas,
 * policies and validation come through. */
struct str translate_refusal_up(struct arena *a, const struct translate_tenant *t,
                                const struct err *refusal, struct str host_name, struct str ns,
                                struct str name);
