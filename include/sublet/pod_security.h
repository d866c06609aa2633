/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * Pod Security Standards: what a pod may be at a level, as each version of Kubernetes judges it.
 * One table serves a tenant's own admission and the administrator's fence around all tenants.
 * Source: k8s.io/pod-security-admission policy. */
#pragma once

#include <sublet/json.h>

enum pod_security_level { POD_SECURITY_PRIVILEGED, POD_SECURITY_BASELINE, POD_SECURITY_RESTRICTED };

/* A level as of a version: "restricted:v1.24", "baseline:latest". */
struct pod_security_policy {
    enum pod_security_level level;
    bool latest;
    int64_t minor; /* 0 with latest */
};

/* What a pod does that the policy forbids; in upstream's words and order. */
struct pod_security_verdict {
    bool allowed;
    struct str reasons; /* "host namespaces, privileged" */
    struct str details; /* "host namespaces (hostPID=true), privileged (container ...)" */
};

/* metadata and spec may be NULL, which stands for empty ones. */
struct pod_security_verdict pod_security_judge(struct arena *a,
                                               const struct pod_security_policy *policy,
                                               const cJSON *metadata, const cJSON *spec);

/* The fence: the newest version, stricter than upstream. It has no exemptions (for Windows and for
 * pods with user namespaces), refuses Localhost profiles, which are files of the node, and refuses
 * mount propagation. It does not judge types of volumes: translate has a table of them. False when
 * the pod violates the level; *ret_violations is at most 16 KiB. */
bool pod_security_fence(struct arena *a, enum pod_security_level level, const cJSON *spec,
                        struct str *ret_violations);
