/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * What of metadata is whose: keys that came up from the host, and keys that went down. */
#pragma once

#include "impl.h"

/* Has the virtual object a record of what came from the host? */
bool translate_host_keys_any(const cJSON *v);
/* The object without the record, and without what came from the host. hashed: but with labels that
 * go down under a hash, so that the tenant's selectors find them there as well. */
const cJSON *translate_host_keys_without(struct arena *a, const struct translate_tenant *t,
                                         const cJSON *v, bool hashed);

/* ---- message.c ---- */

/* A value that a program of the host wrote into the host object of ns/name, with the tenant's names
 * of it and of its namespace. STR_NULL: it names a host node that the tenant is shown under another
 * name, an account of the host, or an object of another namespace or tenant. */
struct str translate_value_up(struct arena *a, const struct translate_tenant *t, struct str value,
                              struct str host_name, struct str ns, struct str name);

/* ---- map_patch.c ---- */

/* The keys that an earlier translation of ours wrote into this host object. */
struct map_owned;
struct map_owned *translate_map_owned(struct arena *a, const cJSON *host);
/* what: 'l', a label; 'a', an annotation. */
bool translate_map_is_owned(const struct map_owned *owned, char what, struct str key);
