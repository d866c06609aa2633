/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sublet/store.h>
struct store_identity {
    char epoch[33];
    bool restored;
    char from[33];
    int64_t from_revision;
};
void store_identity(const struct store *s, struct store_identity *ret);
