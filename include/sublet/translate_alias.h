/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * Further host Services under names that the admin chose (sync.toHost.services.mappings). Pure
 * functions, as all of the room. */
#pragma once

#include <sublet/translate.h>

#define ANNOTATION_ALIAS "sublet.dev/alias" /* of such a Service: its name, as a mapping gave it */

/* The host Service of a mapping of sync.toHost.services: of the given name, with a cluster IP or
 * headless, reached inside the cluster alone. FORBIDDEN without a selector: it would lead nowhere;
 * *ret is the rest of it then, and NULL where anything else is refused. 0, *ret NULL: an
 * ExternalName. */
int translate_service_alias(struct arena *a, const struct translate_tenant *t, const cJSON *service,
                            struct str host_name, cJSON **ret, struct err *err) MUST_CHECK;
/* translate_owner() of such a Service. */
bool translate_alias_owner(const struct translate_tenant *t, const cJSON *host_service,
                           struct str *ret_ns, struct str *ret_name, struct str *ret_uid);
