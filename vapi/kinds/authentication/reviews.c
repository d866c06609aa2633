/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews of authentication.k8s.io: non-persisted requests: they are answered, never stored. */
#include "../rules/kind.h"

/* ---- the kinds ---- */

const struct kind KIND_SELF_SUBJECT_REVIEW = {
    .resource =
        {
            RESOURCE("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews",
                     "selfsubjectreview"),
            .verbs = VERB_CREATE,
            .flags = RES_REVIEW,
        },
};

const struct kind KIND_TOKEN_REVIEW = {
    .resource =
        {
            RESOURCE("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "tokenreview"),
            .verbs = VERB_CREATE,
            .flags = RES_REVIEW,
        },
};
