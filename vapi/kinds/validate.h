/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the validations of many kinds are made of. Each adds what is wrong to e, in
 * upstream's words; those that return bool tell whether nothing was. Internal to vapi/kinds. */
#pragma once

#include "cells.h"
#include "names.h"

#define NEGATIVE  "must be greater than or equal to 0"
#define IMMUTABLE "field is immutable"
/* A path of one name under another, as a variable: AT(spec, NULL, "spec"). */
#define AT(variable, up, text) const struct field_path *variable = FIELD(up, text)

/* ---- texts ---- */
bool one_of(struct str s, const char *const *list); /* list: NULL-ended */
bool check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                struct str s);
/* The same of its lower case. */
bool check_rule_caseless(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                         struct str s);
bool check_given(struct field_errors *e, const struct field_path *p, struct str s); /* not empty */
/* One of the supported values; an empty one is required to be set. */
bool check_enum(struct field_errors *e, const struct field_path *p, struct str s,
                const char *const *supported);
/* The same, where an absent value is fine. */
bool check_enum_if(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *const *supported);
bool check_config_key(struct field_errors *e, const struct field_path *p, struct str key);
bool check_env_name(struct field_errors *e, const struct field_path *p, struct str name);
bool check_port_name(struct field_errors *e, const struct field_path *p, struct str name);
/* A DNS subdomain whose labels may have underscores. */
bool check_underscored_name(struct field_errors *e, const struct field_path *p, struct str name);
bool check_ip(struct field_errors *e, const struct field_path *p, struct str ip);
const char *ip_problem(struct str ip); /* what is wrong with an address, NULL: nothing */
const char *canonical_ip_problem(struct arena *a, struct str ip);
bool check_canonical_cidr(struct field_errors *e, const struct field_path *p, struct str cidr);
/* An address with the length of its network, in its one form. */
bool check_interface(struct field_errors *e, const struct field_path *p, struct str address);
/* Whether inner is a strict part of cidr. */
bool cidr_contains(struct str cidr, struct str inner);
/* "example.com/path", with a path of HTTP. */
bool check_domain_prefixed_path(struct field_errors *e, const struct field_path *p,
                                struct str text);
bool is_http_path(struct str path);
bool check_cidr(struct field_errors *e, const struct field_path *p, struct str cidr);
/* The same, but what was accepted before stays so: the texts of a list. */
bool check_legacy_ip(struct field_errors *e, const struct field_path *p, struct str ip,
                     const cJSON *accepted);
bool check_legacy_cidr(struct field_errors *e, const struct field_path *p, struct str cidr,
                       const cJSON *accepted);
/* Not unspecified, loopback or link-local. */
void check_endpoint_ip(struct field_errors *e, const struct field_path *p, struct str ip);
bool is_ip(struct arena *a, struct str text); /* also with leading zeros */
bool is_ipv6(struct str ip);                  /* of an address */
void check_annotations(struct field_errors *e, const struct field_path *p, const cJSON *map);
bool is_absolute(struct str path);
bool check_no_backsteps(struct field_errors *e, const struct field_path *p, struct str path);
void check_descending_path(struct field_errors *e, const struct field_path *p, struct str path);
void check_local_path(struct field_errors *e, const struct field_path *p, struct str path);
struct str lower_case(struct arena *a, struct str s);

/* ---- numbers ---- */
const char *range_text(struct arena *a, long long low, long long high);
bool check_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_positive(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_range(struct field_errors *e, const struct field_path *p, const cJSON *number,
                 long long low, long long high);
/* Of a Linux user or group, and a list of them. */
bool check_user_id(struct field_errors *e, const struct field_path *p, const cJSON *number);
void check_user_ids(struct field_errors *e, const struct field_path *p, const cJSON *list);
bool check_port(struct field_errors *e, const struct field_path *p, const cJSON *number);
bool check_port_or_name(struct field_errors *e, const struct field_path *p, const cJSON *port);
void check_file_mode(struct field_errors *e, const struct field_path *p, const cJSON *mode);
/* Members that must not be negative: {"replicas", ..., NULL}; absent ones are fine. */
void check_all_nonnegative(struct field_errors *e, const struct field_path *p, const cJSON *object,
                           const char *const *names);
/* "25%" or a number: nonnegative and, as a percentage, well-formed. */
bool check_int_or_percent(struct field_errors *e, const struct field_path *p, const cJSON *value);
bool check_not_over_100(struct field_errors *e, const struct field_path *p, const cJSON *value);
/* The number or percentage a value says, 0 when it says none. */
int64_t int_or_percent(const cJSON *value);

/* ---- quantities ---- */
bool is_extended_resource(struct str name);
bool is_native_resource(struct str name);
bool is_huge_pages(struct str name);
bool is_standard_resource(struct str name);
bool check_resource_name(struct field_errors *e, const struct field_path *p, struct str name);
void check_container_resource(struct field_errors *e, const struct field_path *p, struct str name);
void check_resource_value(struct field_errors *e, const struct field_path *p, struct str name,
                          const cJSON *value);

/* ---- objects ---- */
/* Where Go prints a nil pointer as null there is nothing either. */
const cJSON *given(const cJSON *object, const char *path);
bool same_value(const cJSON *a, const cJSON *b); /* nothing equals nothing */
bool check_immutable(struct field_errors *e, const struct field_path *p, const cJSON *value,
                     const cJSON *old);
void check_immutable_text(struct field_errors *e, const struct field_path *p, const cJSON *value,
                          const cJSON *old); /* where nothing is shown as "" */

/* metav1.Conditions. */
void validate_conditions(struct field_errors *e, const struct field_path *p,
                         const cJSON *conditions);

/* ---- volumes and claims ---- */
/* What a pod spec is part of. */
struct pod_rules {
    bool is_pod;     /* else a template */
    struct str name; /* the pod's; empty in a template */
};
/* Names of the volumes that are right go to ret. */
void validate_volumes(struct field_errors *e, const struct field_path *p, const cJSON *volumes,
                      const struct pod_rules *rules, struct names *ret);
void validate_host_path(struct field_errors *e, const struct field_path *p, const cJSON *source);
void validate_nfs(struct field_errors *e, const struct field_path *p, const cJSON *source);
/* validate_old_volumes.c; p is where the source is, name the volume's. */
void validate_old_volume(struct field_errors *e, const struct field_path *p, const char *plugin,
                         const cJSON *source, bool persistent, struct str name);
void validate_inline_volume(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void check_driver_name(struct field_errors *e, const struct field_path *p, struct str driver);
extern const char *const VOLUME_MODES[];
void check_access_modes(struct field_errors *e, const struct field_path *p, const cJSON *modes);
void check_class_name(struct field_errors *e, const struct field_path *p, const cJSON *name);
bool check_claim_amount(struct field_errors *e, const struct field_path *p, const cJSON *amount);
void validate_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec);
/* Labels and annotations, and nothing else. */
void validate_claim_metadata(struct field_errors *e, const struct field_path *at,
                             const cJSON *metadata);
void validate_claim_template(struct field_errors *e, const struct field_path *p,
                             const cJSON *template_);

/* ---- what a container is given ---- */
void validate_env(struct field_errors *e, const struct field_path *p, const cJSON *list);
/* Variables of files: their volumes are there, and empty at first. */
void validate_file_variables(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_env_from(struct field_errors *e, const struct field_path *p, const cJSON *list);
void validate_field_ref(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                        bool of_volume);
void validate_resource_field_ref(struct field_errors *e, const struct field_path *p,
                                 const cJSON *ref, bool of_volume);
/* limits, requests and claims; claims: names a pod has. */
void validate_requirements(struct field_errors *e, const struct field_path *p,
                           const cJSON *requirements, const struct names *claims, bool of_pod);

/* ---- containers and the rest of a pod ---- */
/* What checks of one container need to know of its pod. */
struct pod_check {
    struct field_errors *e;
    const cJSON *spec;
    struct names volumes, claims;
    bool host_users;
};
void validate_containers(struct pod_check *c, const struct field_path *p);
/* pod_resources.c: what a pod is given covers what its containers ask for. */
void validate_pod_amounts(struct field_errors *e, const struct field_path *p, const cJSON *spec);
/* Calls visit for every container of a spec, in upstream's order: init, main, ephemeral. */
typedef void (*pod_container_cb)(void *ctx, const struct field_path *p, const cJSON *container);
void pod_each_container(const struct field_path *p, const cJSON *spec, pod_container_cb visit,
                        void *ctx);
/* validate_windows.c: options of Windows; processes of the host; what the other system has. */
void validate_windows_options(struct field_errors *e, const struct field_path *p,
                              const cJSON *options);
void validate_host_process(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_os(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_probes(struct pod_check *c, const struct field_path *p, const cJSON *container);
void validate_lifecycle(struct pod_check *c, const struct field_path *p, const cJSON *lifecycle);
void validate_container_security(struct field_errors *e, const struct field_path *p,
                                 const cJSON *context, bool host_users);
void validate_pod_security(struct field_errors *e, const struct field_path *p, const cJSON *context,
                           const cJSON *spec);
void validate_affinity(struct field_errors *e, const struct field_path *p, const cJSON *affinity);
void validate_node_selector(struct field_errors *e, const struct field_path *p,
                            const cJSON *selector);
void validate_spread(struct field_errors *e, const struct field_path *p, const cJSON *constraints);
void validate_tolerations(struct field_errors *e, const struct field_path *p,
                          const cJSON *tolerations);
void validate_taint_effect(struct field_errors *e, const struct field_path *p, struct str effect);
void validate_pod_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                       const struct pod_rules *rules);
void validate_pod(struct field_errors *e, const cJSON *pod, const cJSON *old);
void validate_whole_pod(struct field_errors *e, const cJSON *pod); /* whoever writes it */
void validate_pod_update(struct field_errors *e, const cJSON *pod, const cJSON *old);
void validate_pod_status(struct field_errors *e, const cJSON *pod, const cJSON *old);
/* validate_job_status.c: a list like "0-2,5", of indexes below completions. */
int64_t check_indexes(struct field_errors *e, const struct field_path *p, const cJSON *list,
                      const char *name, int64_t completions);
bool job_condition_true(const cJSON *job, const char *type);
/* What is wrong with a cron schedule; NULL when nothing is. */
const char *cron_problem(struct arena *a, struct str schedule);

/* ---- admission: what webhooks and policies share ---- */
void validate_admission_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule);
void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list);
struct str trimmed(struct str s); /* without blanks around it */

/* ---- devices ---- */
/* False, and told, when a list has more items. */
bool check_list_size(struct field_errors *e, const struct field_path *p, const cJSON *list,
                     size_t most);
void check_device_key(struct field_errors *e, const struct field_path *p, struct str key);
void check_pool_name(struct field_errors *e, const struct field_path *p, struct str name);
void check_raw_object(struct field_errors *e, const struct field_path *p, const cJSON *value);
void check_binding_conditions(struct field_errors *e, const struct field_path *p,
                              const cJSON *device);

/* ---- kinds: object, and what it replaces or NULL ---- */
#define VALIDATES(name) void name(struct field_errors *e, const cJSON *object, const cJSON *old)
VALIDATES(validate_deployment);
VALIDATES(validate_deployment_status);
VALIDATES(validate_replica_set);
VALIDATES(validate_replicas_status);
VALIDATES(validate_replication_controller);
VALIDATES(validate_stateful_set);
VALIDATES(validate_stateful_set_status);
VALIDATES(validate_daemon_set);
VALIDATES(validate_daemon_set_status);
VALIDATES(validate_revision);
VALIDATES(validate_job);
VALIDATES(validate_job_status);
VALIDATES(validate_cron_job);
VALIDATES(validate_claim);
VALIDATES(validate_claim_status);
VALIDATES(validate_volume);
VALIDATES(validate_service);
VALIDATES(validate_service_addresses);
VALIDATES(validate_service_status);
VALIDATES(validate_endpoints);
VALIDATES(validate_ingress);
VALIDATES(validate_ingress_status);
VALIDATES(validate_ingress_class);
VALIDATES(validate_ip_address);
VALIDATES(validate_service_cidr);
VALIDATES(validate_endpoint_slice);
VALIDATES(validate_certificate_request);
VALIDATES(validate_certificate_request_status);
VALIDATES(validate_api_service);
VALIDATES(validate_api_service_status);
VALIDATES(validate_flow_schema);
VALIDATES(validate_priority_level);
VALIDATES(validate_flow_status);
VALIDATES(validate_device_class);
VALIDATES(validate_resource_claim);
VALIDATES(validate_resource_claim_status);
VALIDATES(validate_resource_claim_template);
VALIDATES(validate_resource_slice);
VALIDATES(validate_webhooks);
VALIDATES(validate_validating_policy);
VALIDATES(validate_validating_policy_status);
VALIDATES(validate_mutating_policy);
VALIDATES(validate_validating_binding);
VALIDATES(validate_mutating_binding);
VALIDATES(validate_autoscaler);
VALIDATES(validate_autoscaler_status);
#define WARNS(name)                                                                                \
    void name(struct arena *a, const cJSON *object, void (*warn)(void *, struct str), void *ctx)
/* warn_paths.c: of a pod spec, files of one volume that hide one another. */
WARNS(warn_volume_paths);
WARNS(warn_ingress);
WARNS(warn_pod);
WARNS(warn_pod_app_armor);
/* pod_annotations.c: of a pod (p NULL) or of the template at p. */
void warn_pod_annotations(struct arena *a, const struct field_path *p, const cJSON *template,
                          void (*warn)(void *ctx, struct str text), void *ctx);
WARNS(warn_template_bare);
WARNS(warn_template);
WARNS(warn_new_owner);
WARNS(warn_workload);
WARNS(warn_stateful_set);
WARNS(warn_cron_job);
WARNS(warn_service);
WARNS(warn_persistent_volume);
WARNS(warn_claim);
WARNS(warn_node);
WARNS(warn_csi_driver);
WARNS(warn_secret);
WARNS(warn_storage_class);
