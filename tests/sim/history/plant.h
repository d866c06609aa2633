/* SPDX-License-Identifier: Apache-2.0 */
/* Defects that are planted on purpose, one in a history: what a broken product, or a broken model
 * of it, would do. They prove that each judge can fail. */
#pragma once

#include <stddef.h>

#include "world.h"

struct plant {
    const char *name;
    /* Does it, as soon as the history permits; false: not yet. */
    bool (*put)(struct world *w);
    const char *breaks; /* part of what the judge says then */
    bool second;        /* needs a second process */
    bool late;          /* is put after the last step */
};
extern const struct plant PLANTS[];
extern const size_t N_PLANTS;

/* Between the world's turn and the judges. */
void plant_step(struct world *w, const struct plant *p, bool late);
