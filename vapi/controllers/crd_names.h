/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a CRD gets. Internal to vapi/controllers. */
#pragma once

#include <sublet/vapi.h>

/* Names that are taken in a group: those of built-in kinds, and what other CRDs were given. */
struct names_verdict {
    cJSON *accepted;    /* status.acceptedNames as it should be */
    bool shadows;       /* the plural is a built-in kind's: this CRD is never served */
    const char *reason; /* of the condition NamesAccepted; NULL: all are accepted */
    struct str message;
};
/* Source: apiextensions-apiserver pkg/controller/status/naming_controller.go; built-in kinds, which
 * it does not know, keep their names as well. */
struct names_verdict names_judge(struct vapi *api, struct arena *a, const cJSON *crd);
/* The CRD with the names it is served under, which a conflict keeps from being the requested ones.
 * A copy only when they differ. */
const cJSON *names_serving(struct arena *a, const cJSON *crd);
