/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * The impersonation mode that served each user last. kube-apiserver tries that mode first and
 * reports its refusal. Bounded: the user who was served longest ago is forgotten. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LAST_MODES_USERS 128

struct last_modes {
    uint64_t turn;
    struct {
        uint64_t user; /* keyed hash of the name */
        uint64_t turn; /* when the mode was put; 0: unused */
        size_t mode;
    } of[LAST_MODES_USERS];
};

/* 0: none is known. */
size_t last_modes_get(const struct last_modes *m, uint64_t user);
/* mode: from 1 on. */
void last_modes_put(struct last_modes *m, uint64_t user, size_t mode);
