/* SPDX-License-Identifier: Apache-2.0 */
/* One run over a Service: its pods, and their Endpoints and EndpointSlices. Internal to
 * vapi/controllers. */
#pragma once

#include "util.h"

struct service_run {
    struct reconcile *run;
    struct arena *arena;
    const struct resource *res;
    cJSON *service;
    cJSON **pods; /* selected, with an address, not finished */
    size_t n_pods;
    bool publish_unready, headless; /* headless: without a cluster IP */
};

/* The number of a service's port in a pod; 0 when the pod has no such port. */
int64_t endpoints_port_in(const cJSON *pod, const cJSON *service_port);
/* [{name, port, protocol, appProtocol}] with the numbers of a pod. */
cJSON *endpoints_ports_of(struct service_run *s, const cJSON *pod, bool with_empty_names);
bool endpoints_service_names_host(const struct service_run *s, const cJSON *pod);
cJSON *endpoints_pod_reference(struct arena *a, const cJSON *pod);
/* The service's labels without those the controller sets; headless services get theirs. */
cJSON *endpoints_service_labels(struct service_run *s);

void endpoints_write(struct service_run *s);       /* endpoints_object.c */
void endpoint_slices_write(struct service_run *s); /* endpointslice.c */
extern const struct str ENDPOINT_SLICE_MANAGER;
