/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews of authentication.k8s.io: non-persisted requests: they are answered, never stored. */
#include "../rules/kind.h"

/* ---- the kinds ---- */

const struct kind KIND_SELF_SUBJECT_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authentication.k8s.io", "v1", "SelfSubjectReview",
                "selfsubjectreviews", "selfsubjectreview"),
    .resource.flags = RES_REVIEW,
};

const struct kind KIND_TOKEN_REVIEW = {
    RESOURCE_OF(VERB_CREATE, "authentication.k8s.io", "v1", "TokenReview", "tokenreviews",
                "tokenreview"),
    .resource.flags = RES_REVIEW,
};
