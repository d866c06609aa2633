/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * The only writable global of the program: where log lines go. One line per event, to stderr:
 * RFC3339 time, level, message, then key=value pairs. Only edges log (end of a request or
 * reconcile, main); libraries return errors. */
#pragma once

#include <sublet/str.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
/* Control characters are escaped: a tenant cannot forge a line. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
