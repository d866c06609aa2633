/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The tenant's kube-dns Service and its EndpointSlice, as objects. */
#pragma once

#include <sublet/translate_from_host.h>

#define DNS_NAMESPACE "kube-system"
#define DNS_NAME      "kube-dns"

cJSON *sync_dns_service_want(struct arena *a, struct str ip);
/* Its endpoint is the Service's own address again: the host Service knows its real endpoints. */
cJSON *sync_dns_slice_want(struct arena *a, struct str ip);
/* A merge patch that undoes changes of the Service; NULL: there are none. */
cJSON *sync_dns_service_difference(struct arena *a, const cJSON *now, const cJSON *want);
