/* SPDX-License-Identifier: Apache-2.0 */
/* A history from its script: what is drawn, step by step. */
#pragma once

#include "world.h"

struct disk *history_next_disk(struct world *w, struct disk *from);
struct plant;
struct script {
    uint64_t seed;
    unsigned steps;
    bool allowed[N_CLASSES];
    bool skip[512]; /* actions of these steps */
    bool show, show_disk;
    const struct plant *plant; /* a defect, or NULL */
};
void history_run(struct world *w, const struct script *s);
