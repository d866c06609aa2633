/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/audit)
 *
 * The file of an audit log and its backups. Used by the log's thread alone; may block. */
#pragma once

#include <sublet/audit.h>

struct audit_file;
int audit_file_open(const struct audit_log_options *options, struct audit_file **ret,
                    struct err *err) MUST_CHECK;
/* Writes whole lines. Returns how many of them could not be written. */
size_t audit_file_write(struct audit_file *f, struct str text);
void audit_file_close(struct audit_file *f);
