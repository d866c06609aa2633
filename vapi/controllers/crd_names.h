/* SPDX-License-Identifier: Apache-2.0 */
/* The names a CRD gets. Internal to vapi/controllers. */
#pragma once

#include <sublet/vapi.h>

/* Names in use in a group: those of built-in kinds, and the accepted names of other CRDs. */
struct names_verdict {
    cJSON *accepted;    /* the correct status.acceptedNames */
    bool shadows;       /* the plural is a built-in kind's: this CRD is never served */
    const char *reason; /* of the condition NamesAccepted; NULL: all are accepted */
    struct str message;
};
/* Source: apiextensions-apiserver pkg/controller/status/naming_controller.go; built-in kinds, which
 * it does not know, keep their names as well. */
struct names_verdict names_judge(struct vapi *api, struct arena *a, const cJSON *crd);
/* The CRD with its accepted names, which after a conflict differ from the requested ones. A copy
 * only when they differ. */
const cJSON *names_serving(struct arena *a, const cJSON *crd);
