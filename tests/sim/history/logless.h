/* SPDX-License-Identifier: Apache-2.0 */
/* A log that is lost between two runs. */
#pragma once

#include <stdbool.h>

struct world;

/* Kills the process, and looks at what is left of its data without the log. */
void logless_do(struct world *w);
/* The same with a file that does not say that it has a log, which the judge must notice. False: no
 * process serves. */
bool logless_plant(struct world *w);
