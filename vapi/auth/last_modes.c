/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that is searched from its start: it is small, and only requests with Impersonate-*
 * headers read it. Must never let one user's mode displace another's while an older entry or a free
 * one is left. */
#include "last_modes.h"

size_t last_modes_get(const struct last_modes *m, uint64_t user)
{
    for (size_t i = 0; i < LAST_MODES_USERS; i++) {
        if (m->of[i].turn && m->of[i].user == user)
            return m->of[i].mode;
    }
    return 0;
}

void last_modes_put(struct last_modes *m, uint64_t user, size_t mode)
{
    size_t at = 0;

    for (size_t i = 0; i < LAST_MODES_USERS; i++) {
        if (m->of[i].turn && m->of[i].user == user) {
            at = i;
            break;
        }
        if (m->of[i].turn < m->of[at].turn)
            at = i;
    }
    m->of[at].user = user;
    m->of[at].mode = mode;
    m->of[at].turn = ++m->turn;
}
