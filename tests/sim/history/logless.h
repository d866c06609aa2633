/* SPDX-License-Identifier: Apache-2.0 */
/* A log that is lost between two runs. */
#pragma once

struct world;

/* Kills the process, and looks at what is left of its data without the log. */
void logless_do(struct world *w);
