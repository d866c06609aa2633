/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * The order of API versions: v2 before v1 before v1beta1 before v1alpha1; a version of another form
 * follows them, by its bytes. Source: apimachinery pkg/version CompareKubeAwareVersionStrings. */
#pragma once

#include <sublet/str.h>

/* < 0 where a is preferred to b, > 0 where b is. */
int api_version_compare(struct str a, struct str b);
