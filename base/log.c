/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines. Why: the one place that writes to stderr, so that a line is one write and one event.
 * Must never let a tenant's string start a new line or drive a terminal, and never block on memory.
 */

#include <sublet/log.h>

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "utf8.h"

enum { LINE_MAX_BYTES = 8192 };

static _Atomic int threshold = LOG_INFO;

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

/* True for what moves a cursor or ends a line somewhere: C0, DEL, C1, U+2028 and U+2029. */
static bool is_control(const unsigned char *p, size_t n)
{
    if (n == 1)
        return *p < 0x20 || *p == 0x7F;
    if (n == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    return n == 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] & 0xFE) == 0xA8;
}

/* Copies a string to out (room bytes) with each byte of a control or of broken UTF-8 as \xNN. Cuts
 * at the end of the room, never inside a sequence. */
static size_t sanitize(char *out, size_t space, const char *text, size_t text_n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *p = (const unsigned char *)text, *end = p + text_n;
    size_t used = 0;

    while (p < end) {
        size_t n = utf8_step(p, end), step = n ? n : 1;
        bool raw = n && !is_control(p, n);

        if (used + (raw ? step : step * 4) > space)
            break;
        for (; step; step--, p++) {
            if (raw) {
                out[used++] = (char)*p;
                continue;
            }
            out[used++] = '\\';
            out[used++] = 'x';
            out[used++] = hex[*p >> 4];
            out[used++] = hex[*p & 15];
        }
    }
    return used;
}

static size_t put_head(char *out, size_t space, enum log_level level)
{
    struct timespec now;
    struct tm tm;
    size_t n;
    int more;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    n = strftime(out, space, "%Y-%m-%dT%H:%M:%S", &tm);
    more = snprintf(out + n, space - n, ".%03ldZ %s ", now.tv_nsec / 1000000, level_names[level]);
    return n + (more > 0 ? (size_t)more : 0);
}

static void write_all(const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(STDERR_FILENO, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* stderr is closed: nothing is left to report to */
        p += done;
        n -= (size_t)done;
    }
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
    int saved = errno, n;
    va_list args;
    size_t used;

    if (!log_enabled(level))
        return;
    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    if ((size_t)n >= sizeof text)
        n = sizeof text - 1;

    used = put_head(line, sizeof line, level);
    used += sanitize(line + used, sizeof line - used - 1, text, (size_t)n);
    line[used++] = '\n';
    write_all(line, used);
    errno = saved;
}
