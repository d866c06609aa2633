/* SPDX-License-Identifier: Apache-2.0 */
/* Pod Security Standards: what a pod may be at a level, as each version of Kubernetes had it.
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

/* What a pod does that the policy forbids; in upstream's words and order. */
struct security_verdict {
    bool allowed;
    struct str reasons; /* "host namespaces, privileged" */
    struct str details; /* "host namespaces (hostPID=true), privileged (container ...)" */
};

/* metadata and spec may be NULL, which stands for empty ones. */
struct security_verdict pod_security_judge(struct arena *a, const struct security_policy *policy,
                                           const cJSON *metadata, const cJSON *spec);
