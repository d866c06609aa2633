/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods and pod templates for the kinds that are, hold or own them, and the volumes and claims they
 * share with storage. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

/* ---- defaults and preparation ---- */
void defaults_pod(struct arena *a, cJSON *pod);
void defaults_volume_source(struct arena *a, cJSON *source); /* what PVs and volumes share */
void defaults_claim_spec(struct arena *a, cJSON *spec);
void defaults_claim(struct arena *a, cJSON *claim);
void prepare_pod_create(struct arena *a, cJSON *pod);
struct str kinds_pod_qos(const cJSON *pod);

/* ---- pods ---- */
extern const struct rule RULES_POD[3], RULES_POD_STATUS[11];
void validate_node_selector(struct field_errors *e, const struct field_path *p,
                            const cJSON *selector);
extern const struct rule RULES_TOLERATIONS[1]; /* of a list of them */
/* What two tolerations that differ in their seconds only have in common. */
struct str kinds_toleration_key(struct arena *a, const cJSON *toleration);
void check_container_resource(struct field_errors *e, const struct field_path *p, struct str name);
/* limits, requests and claims; claims: names a pod has. */
void validate_requirements(struct field_errors *e, const struct field_path *p,
                           const cJSON *requirements, const struct names *claims, bool of_pod);

void validate_overhead(struct field_errors *e, const struct field_path *p, const cJSON *overhead);

/* ---- volumes and claims ---- */
void validate_persistent_spec(const struct check *c); /* at the spec */
void validate_inline_volume(struct field_errors *e, const struct field_path *p, const cJSON *spec);
bool check_claim_amount(struct field_errors *e, const struct field_path *p, const cJSON *amount);
/* any_group: a group of data sources that was stored may be what it likes. */
void validate_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                         bool any_group);
/* Labels and annotations, and nothing else. */
void validate_claim_metadata(struct field_errors *e, const struct field_path *at,
                             const cJSON *metadata);

/* ---- owner.c: kinds that own pods; paths begin at the object ---- */
/* Of a Deployment or ReplicaSet, at its spec: the selector and the template it matches. */
void validate_owner(const struct check *c);
/* kind: in messages about the selector; shown: in those about the template. */
void check_owner_template(struct field_errors *e, const cJSON *spec, const char *shown);
/* Its part about pods that do not end. */
void check_owner_endless(struct field_errors *e, const cJSON *spec, const char *shown);
void check_owner_match(struct field_errors *e, const cJSON *spec, const struct selector *selector);
/* False when the selector cannot be used. */
bool check_owner_selector(struct field_errors *e, const cJSON *spec, const char *kind,
                          struct selector *ret);
bool kinds_selector_is_empty(const cJSON *selector);

void cell_ready(const struct row *r, const struct column *c); /* "1/2" replicas */

/* ---- warnings ---- */
struct warner { /* where warnings go */
    struct arena *arena;
    void (*warn)(void *ctx, struct str text);
    void *ctx;
};
#define WARNER(name) const struct warner name = {a, warn, ctx}
void warn_at(const struct warner *w, const struct field_path *p, const char *text);
#define warn_printf(w, p, ...) warn_at(w, p, problem_printf((w)->arena, __VA_ARGS__))
/* Of the label of a node: its warning, or NULL. */
const char *warn_deprecated_label(struct str label);
void warn_node_terms(const struct warner *w, const struct field_path *p, const cJSON *selector);
void warn_volume_source(const struct warner *w, const struct field_path *p, const cJSON *source,
                        bool of_pod);
void warn_claim_spec(const struct warner *w, const struct field_path *p, const cJSON *spec);
/* p: where the pod is; NULL for one that is no template. */
void warn_pod_at(const struct warner *w, const struct field_path *p, const cJSON *pod);
/* Pods take their names from what makes them. */
void warn_owner_name(const struct warner *w, const cJSON *object);
WARNS(warn_pod);
WARNS(warn_pod_app_armor);
WARNS(warn_template_bare);
WARNS(warn_template);
WARNS(warn_new_owner);
WARNS(warn_workload);
