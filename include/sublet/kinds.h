/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/kinds/rules
 *
 * The built-in kinds: their resources, and what sets each apart: defaults, preparation, validation,
 * cells of tables, conversion between versions. */
#pragma once

#include <sublet/kind.h>

/* In discovery order; ended by NULL. */
extern const struct kind *const KINDS[];
extern const struct kind *const METRICS_KINDS[]; /* metrics.k8s.io: served where it is enabled */

/* What the kind of a resource does in a write; nothing for a custom resource. `old` NULL: a create.
 */
void kinds_defaults(const struct resource *r, struct arena *a, cJSON *object);
void kinds_prepare_create(const struct resource *r, struct arena *a, cJSON *object);
void kinds_validate(const struct resource *r, struct field_errors *e, const cJSON *object,
                    const cJSON *old);
void kinds_validate_status(const struct resource *r, struct field_errors *e, const cJSON *object,
                           const cJSON *old);
/* The columns of a Scale, which no resource of its own serves. */
extern const struct resource KINDS_SCALE, KINDS_SCALE_OF_CUSTOM;
/* All cells of a row of a Table. */
void kinds_cells(const struct resource *r, const struct row *row);

/* Rewrites a tree of the storage version as r's version (autoscaling/v1, events.k8s.io/v1), and
 * back. */
void kinds_convert(struct arena *a, const struct resource *r, cJSON *object);
void kinds_convert_to_storage(struct arena *a, const struct resource *r, cJSON *object);
/* Why upstream's conversion could not read a body of r's kind, in its words; NULL: it could. */
const char *kinds_unreadable(struct arena *a, const struct resource *r, const cJSON *body);

/* For store_options.readable: whether bytes that were on disk are an object of their resource. */
bool kinds_stored_readable(struct str resource, const struct store_object *o);
const char *kinds_stored_problem(struct str resource, const struct store_object *o); /* or NULL */

/* A warning for every write of object, except of its status, while the kind has no effect yet. */
void kinds_warn_no_effect(struct arena *a, const struct resource *r, const cJSON *object,
                          void (*warn)(void *ctx, struct str text), void *ctx);

/* Shared pieces of validation. */
void validate_labels(struct field_errors *e, const struct field_path *p, const cJSON *labels);
void validate_label_selector(struct field_errors *e, const struct field_path *p,
                             const cJSON *selector);
void validate_pod_template(struct field_errors *e, const struct field_path *p,
                           const cJSON *template_);
void defaults_pod_template(struct arena *a, cJSON *template_);
/* pods/ephemeralcontainers: the same as of pods/resize. */
cJSON *prepare_pod_ephemeral(struct arena *a, cJSON *pod, const cJSON *old);
void validate_pod_ephemeral(struct field_errors *e, const cJSON *pod, const cJSON *old);
/* pods/resize: reduces a pod to what may change there, and validates it. */
cJSON *prepare_pod_resize(struct arena *a, cJSON *pod, const cJSON *old);
void validate_pod_resize(struct field_errors *e, const cJSON *pod, const cJSON *old);
