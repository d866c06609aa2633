/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a pod, as its validation and defaults call each other. Internal to vapi/kinds/pod.
 */
#pragma once

#include "pod.h"

/* ---- defaults ---- */
/* spec.resources from what the containers say. */
void defaults_pod_resources(struct arena *a, cJSON *spec);
bool kinds_image_reference_ok(struct str image);
/* AppArmor profiles of annotations become fields. */
void kinds_pod_sync_app_armor(struct arena *a, cJSON *pod);

/* ---- volumes ---- */
/* What a pod spec is part of. */
struct pod_rules {
    bool is_pod;     /* else a template */
    struct str name; /* the pod's; empty in a template */
};
/* Names of the volumes that are right go to ret. */
void validate_volumes(struct field_errors *e, const struct field_path *p, const cJSON *volumes,
                      const struct pod_rules *rules, struct names *ret);
/* A row of a source that validate_legacy_volume() checks. */
#define LEGACY(name)                                                                               \
    {                                                                                              \
        .path = (name)                                                                             \
    }
void validate_host_path(struct field_errors *e, const struct field_path *p, const cJSON *source);
extern const struct rule RULES_NFS[2];
/* p is where the source is, name the volume's. */
void validate_legacy_volume(struct field_errors *e, const struct field_path *p, const char *plugin,
                            const cJSON *source, bool persistent, struct str name);
void check_access_modes(struct field_errors *e, const struct field_path *p, const cJSON *modes);
void validate_claim_template(struct field_errors *e, const struct field_path *p,
                             const cJSON *template_);

/* ---- what a container is given ---- */
extern const struct rule RULES_ENV[1], RULES_ENV_FROM[1]; /* of the lists */
/* Variables of files: their volumes are there, and empty at first. */
void validate_file_variables(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_field_ref(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                        bool of_volume);
void validate_resource_field_ref(struct field_errors *e, const struct field_path *p,
                                 const cJSON *ref, bool of_volume);

/* ---- containers ---- */
/* What checks of one container need to know of its pod. */
struct pod_check {
    struct field_errors *e;
    const cJSON *spec;
    struct names volumes, claims;
    bool host_users;
};
void validate_containers(struct pod_check *c, const struct field_path *p);
void validate_probes(struct pod_check *c, const struct field_path *p, const cJSON *container);
void validate_lifecycle(struct pod_check *c, const struct field_path *p, const cJSON *lifecycle);
void validate_container_security(struct field_errors *e, const struct field_path *p,
                                 const cJSON *context, bool host_users);
/* What a pod is given covers what its containers request. */
void validate_pod_amounts(struct field_errors *e, const struct field_path *p, const cJSON *spec);
/* Calls visit for every container of a spec, in upstream's order: init, main, ephemeral. */
typedef void (*pod_container_cb)(void *ctx, const struct field_path *p, const cJSON *container);
void kinds_pod_each_container(const struct field_path *p, const cJSON *spec, pod_container_cb visit,
                              void *ctx);

/* ---- pod specs ---- */
/* windows.c: options of Windows; host process containers; fields of the other system. */
extern const struct rule RULES_WINDOWS_OPTIONS[3];
void validate_host_process(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_os(struct field_errors *e, const struct field_path *p, const cJSON *spec);
void validate_pod_security(struct field_errors *e, const struct field_path *p, const cJSON *context,
                           const cJSON *spec);
void validate_affinity(struct field_errors *e, const struct field_path *p, const cJSON *affinity);
void validate_spread(struct field_errors *e, const struct field_path *p, const cJSON *constraints);
void validate_whole_pod(struct field_errors *e, const cJSON *pod); /* whoever writes it */

/* ---- warnings ---- */
/* Of a pod spec: files of one volume that hide one another. */
WARNS(warn_volume_paths);
/* Of a pod (p NULL) or of the template at p. */
void warn_pod_annotations(const struct warner *w, const struct field_path *p,
                          const cJSON *template);
