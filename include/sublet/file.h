/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Whole small files: keys, certificates, configuration. */
#pragma once

#include <sublet/err.h>

/* All of a file of at most `limit` bytes, into the arena. BAD_REQUEST names the file and what the
 * system says of it. */
int file_read(struct arena *a, struct str path, size_t limit, struct str *ret,
              struct err *err) MUST_CHECK;
/* Writes `path`.new, flushes it to the disk and renames it: readers, also after a crash, see the
 * old file or the new one. Mode 0600. BAD_REQUEST as above, and the old file is unchanged. */
int file_replace(struct str path, struct str text, struct err *err) MUST_CHECK;
