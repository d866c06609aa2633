/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of Table rows, and the rows of every kind. Internal to vapi/kinds. */
#pragma once

#include "impl.h"

struct row {
    struct arena *a;
    const cJSON *object;
    int64_t now;
    cJSON *cells;
};

/* Texts live in the row's arena; an empty one is printed as it is. */
void cell_text(const struct row *r, struct str text);
void cell_or(const struct row *r, struct str text, const char *otherwise);
void cell_number(const struct row *r, int64_t number);
void cell_number_at(const struct row *r, const char *path); /* absent: 0 */
void cell_text_at(const struct row *r, const char *path);   /* absent: "" */
void cell_text_or(const struct row *r, const char *path, const char *otherwise);
void cell_bool(const struct row *r, bool value);
void cell_count(const struct row *r, const char *path); /* of an array or object */
void cell_age(const struct row *r);                     /* since metadata.creationTimestamp */
void cell_first(const struct row *r, struct str text);  /* in place of the name */
/* "5m" since then, "<unknown>" when there is no time. */
struct str since(const struct row *r, struct str time);
/* Names and images of containers. */
void cell_containers(const struct row *r, const cJSON *containers);
/* "a=b,c=d" of a map, "<none>" of an empty one. */
void cell_map(const struct row *r, const cJSON *labels);
/* A LabelSelector; empty and none give `otherwise`. */
void cell_selector(const struct row *r, const cJSON *selector, const char *otherwise);
struct str label_selector_text(struct arena *a, const cJSON *selector);
/* Joins the strings of a list. */
struct str join(struct arena *a, const cJSON *list, const char *separator);

#define ROW_CELLS(name) void name(struct arena *a, const cJSON *object, int64_t now, cJSON *cells)
ROW_CELLS(cells_age); /* Age only */
ROW_CELLS(cells_pod);
ROW_CELLS(cells_pod_template);
ROW_CELLS(cells_config_map);
ROW_CELLS(cells_secret);
ROW_CELLS(cells_service);
ROW_CELLS(cells_endpoints);
ROW_CELLS(cells_event);
ROW_CELLS(cells_namespace);
ROW_CELLS(cells_node);
ROW_CELLS(cells_claim);
ROW_CELLS(cells_volume);
ROW_CELLS(cells_quota);
ROW_CELLS(cells_replicas);   /* ReplicaSet */
ROW_CELLS(cells_controller); /* ReplicationController */
ROW_CELLS(cells_deployment);
ROW_CELLS(cells_stateful_set);
ROW_CELLS(cells_daemon_set);
ROW_CELLS(cells_revision);
ROW_CELLS(cells_job);
ROW_CELLS(cells_cron_job);
ROW_CELLS(cells_autoscaler);
ROW_CELLS(cells_budget);
ROW_CELLS(cells_ingress);
ROW_CELLS(cells_ingress_class);
ROW_CELLS(cells_network_policy);
ROW_CELLS(cells_ip_address);
ROW_CELLS(cells_service_cidr);
ROW_CELLS(cells_endpoint_slice);
ROW_CELLS(cells_binding);
ROW_CELLS(cells_storage_class);
ROW_CELLS(cells_csi_driver);
ROW_CELLS(cells_csi_node);
ROW_CELLS(cells_attachment);
ROW_CELLS(cells_attributes_class);
ROW_CELLS(cells_webhooks);
ROW_CELLS(cells_validating_policy);
ROW_CELLS(cells_mutating_policy);
ROW_CELLS(cells_policy_binding);
ROW_CELLS(cells_priority_class);
ROW_CELLS(cells_lease);
ROW_CELLS(cells_runtime_class);
ROW_CELLS(cells_resource_claim);
ROW_CELLS(cells_resource_slice);
ROW_CELLS(cells_flow_schema);
ROW_CELLS(cells_priority_level);
ROW_CELLS(cells_certificate_request);
ROW_CELLS(cells_api_service);
