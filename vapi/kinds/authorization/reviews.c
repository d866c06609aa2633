/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews of authorization.k8s.io: non-persisted requests: they are answered, never stored. */
#include "../rules/kind.h"

/* ---- the kinds ---- */

const struct kind KIND_LOCAL_SUBJECT_ACCESS_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authorization.k8s.io", "v1", "LocalSubjectAccessReview",
                "localsubjectaccessreviews", "localsubjectaccessreview"),
    .resource.flags = RES_NAMESPACED | RES_REVIEW,
};

const struct kind KIND_SELF_SUBJECT_ACCESS_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authorization.k8s.io", "v1", "SelfSubjectAccessReview",
                "selfsubjectaccessreviews", "selfsubjectaccessreview"),
    .resource.flags = RES_REVIEW,
};

const struct kind KIND_SELF_SUBJECT_RULES_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authorization.k8s.io", "v1", "SelfSubjectRulesReview",
                "selfsubjectrulesreviews", "selfsubjectrulesreview"),
    .resource.flags = RES_REVIEW,
};

const struct kind KIND_SUBJECT_ACCESS_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authorization.k8s.io", "v1", "SubjectAccessReview",
                "subjectaccessreviews", "subjectaccessreview"),
    .resource.flags = RES_REVIEW,
};
