/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of resource.k8s.io share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define MAX_REQUESTS 32
#define MAX_CONFIG   32

void check_device_key(struct field_errors *e, const struct field_path *p, struct str key);
void check_pool_name(struct field_errors *e, const struct field_path *p, struct str name);
/* Any JSON object. */
void check_raw_object(struct field_errors *e, const struct field_path *p, const cJSON *value);
extern const struct rule RULES_DEVICE_SELECTORS[1], RULES_DEVICE_CONFIG[2];
extern const struct rule RULES_BINDING_CONDITIONS[4]; /* of a device */

/* ---- requests of a claim ---- */
void defaults_device_claim(struct arena *a, cJSON *spec);
void check_claim_devices(struct field_errors *e, const struct field_path *p, const cJSON *devices);
/* "request" and "request/alternative" of a list of requests. */
struct names names_of_requests(struct arena *a, const cJSON *requests);
/* Rows whose context are these names: of a string; of what has a list "requests". */
void check_request_name(const struct check *c);
extern const struct rule RULES_REQUEST_REFS[2];
