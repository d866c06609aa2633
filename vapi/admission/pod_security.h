/* SPDX-License-Identifier: Apache-2.0 */
/* Pod Security Standards: the restrictions of each level, as of each version of Kubernetes.
 * Internal to vapi/admission. */
#pragma once

#include <sublet/json.h>

enum security_level { SECURITY_PRIVILEGED, SECURITY_BASELINE, SECURITY_RESTRICTED };

/* A level as of a version: "restricted:v1.24", "baseline:latest". */
struct security_policy {
    enum security_level level;
    bool latest;
    int64_t minor; /* 0 with latest */
};

/* Violations of a policy by a pod; with upstream's messages, in upstream's order. */
struct security_verdict {
    bool allowed;
    struct str reasons; /* "host namespaces, privileged" */
    struct str details; /* "host namespaces (hostPID=true), privileged (container ...)" */
};

/* metadata and spec may be NULL, which stands for empty ones. */
struct security_verdict pod_security_judge(struct arena *a, const struct security_policy *policy,
                                           const cJSON *metadata, const cJSON *spec);
