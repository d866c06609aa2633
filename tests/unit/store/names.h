/* SPDX-License-Identifier: Apache-2.0
 * Watches what this process does to the names of files, and ends it between two such operations. In
 * place of the functions of the C library: for SQLite as well. */
#pragma once

/* Begins to count. */
void names_watch(void);
/* Renames since then. */
int names_renamed(void);
/* Renames that were not synced with their directory before the next one, or before this call; and
 * those with the removal of a log before them that was not; and of a database put in place beside a
 * log that was cut off, and not synced since. */
int names_loose(void);
/* Renames onto a file of this name fail with this error. NULL: none does. */
void names_refuse(const char *file, int why);
/* After so many more operations on names, or syncs, the process ends instead. -1: never. */
void names_die_after(int operations);
/* The exit code then. */
#define NAMES_DIED 77
