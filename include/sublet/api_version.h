/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * The parts of an apiVersion, and the order of versions: v2 before v1 before v1beta1 before
 * v1alpha1; a version of another form follows them, by its bytes. Source: apimachinery
 * pkg/version CompareKubeAwareVersionStrings. */
#pragma once

#include <sublet/str.h>

/* Of an object's apiVersion. The group of "v1" is empty; "apps/v1" is split at its first slash. */
struct api_version {
    struct str group, version; /* both point into the text */
};
struct api_version api_version_read(struct str text);

/* < 0 where a is preferred to b, > 0 where b is. */
int api_version_compare(struct str a, struct str b);
