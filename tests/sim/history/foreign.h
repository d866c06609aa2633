/* SPDX-License-Identifier: Apache-2.0 */
/* A log of another time or of another store beside the file. */
#pragma once

#include <stdbool.h>

struct world;

/* Kills the process, and looks at what its file is beside another log, and another file beside its
 * log. */
void foreign_do(struct world *w);
/* The same with a file that does not say which log it belongs to, which the judge must notice.
 * False: not yet. */
bool foreign_plant_store(struct world *w);
