/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The tenant's Service in front of its DNS, and what stands behind it, as objects. */
#pragma once

#include <sublet/json.h>

#define DNS_NAMESPACE        "kube-system"
#define DNS_NAME             "kube-dns"
#define ANNOTATION_FROM_HOST "sublet.dev/from-host"

cJSON *dns_service_want(struct arena *a, struct str ip);
/* What stands behind the address is the host's affair: the endpoint is the address again. */
cJSON *dns_slice_want(struct arena *a, struct str ip);
/* A merge patch of what was changed in the Service; NULL: nothing. */
cJSON *dns_service_difference(struct arena *a, const cJSON *now, const cJSON *want);
