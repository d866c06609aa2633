/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * The clientConfig of a webhook: its validation, as the kinds that have one share it. Source:
 * apiserver pkg/util/webhook/validation.go. */
#pragma once

#include <sublet/field.h>

/* Exactly one of the two is there (the other NULL): url, an https URL of a host, without user,
 * query and fragment, or service, with name, namespace, port and path. */
void client_config_check_server(struct field_errors *e, const struct field_path *p,
                                const cJSON *url, const cJSON *service);
/* caBundle, in base64: empty, or with a certificate in it. */
void client_config_check_ca(struct field_errors *e, const struct field_path *p,
                            const cJSON *bundle);
bool client_config_has_ca(struct arena *a, const cJSON *bundle);
