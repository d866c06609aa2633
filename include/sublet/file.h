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
