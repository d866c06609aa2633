/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The ConversionReview of a CRD's webhook, as bytes and trees: core/conversions.c sends it. Source:
 * apiextensions-apiserver pkg/apiserver/conversion. */
#pragma once

#include <sublet/crd.h>

/* spec.conversion.webhook of a CRD, in the arena of its version. */
struct crd_conversion {
    struct str url;             /* empty: the service */
    struct str ns, service, ca; /* ca: PEM */
    struct str path;            /* with its query */
    int64_t port;
    const char *review; /* the version of reviews; NULL: none that is known */
    struct str group;
    struct str *versions; /* of spec.versions, served or not, as apiVersions */
    size_t n_versions;
};

/* NULL: the strategy is None. */
struct crd_conversion *crd_conversion_new(struct arena *a, const cJSON *crd);
/* The schema of the stored version, if that is another one than v; or NULL. */
const struct crd_version *crd_stored(const struct crd_version *v);
/* The URL that is called, for messages. */
struct str crd_conversion_url(struct arena *a, const struct crd_conversion *x);
bool crd_conversion_has(const struct crd_conversion *x, struct str api_version);
void crd_conversion_print(const struct crd_conversion *x, struct str uid, struct str to,
                          cJSON *const *objects, size_t n, struct buf *out);

/* The answer. objects: what was sent, replaced by what came back: of version `to`, with the
 * metadata that was sent but for labels and annotations; neither pruned nor validated. -1: err is
 * the answer of the request that needed them. */
int crd_conversion_read(const struct crd_conversion *x, struct arena *a, struct str uid,
                        struct str to, int status, struct str body, cJSON **objects, size_t n,
                        struct err *err) MUST_CHECK;
/* `conversion webhook for GVK failed: why`; returns -1. */
int crd_conversion_fail(const cJSON *object, struct str why, struct err *err);
