/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: one per event, levels, and that strings from outside cannot forge one. Must never
 * leave stderr redirected. */

#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include <sublet/log.h>

/* Logs one line and returns what arrived on stderr. */
static struct str logged(enum log_level level, const char *text)
{
    static char seen[20000];
    int ends[2], saved = dup(STDERR_FILENO);
    ssize_t n;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    log_line(level, "%s", text);
    dup2(saved, STDERR_FILENO);
    n = read(ends[0], seen, sizeof seen);
    close(ends[0]);
    close(ends[1]);
    close(saved);
    return (struct str){seen, n > 0 ? (size_t)n : 0};
}

/* What follows the time. */
static struct str after_time(struct str line)
{
    assert_true(line.n > 25);
    assert_int_equal(line.p[4], '-');
    assert_int_equal(line.p[10], 'T');
    assert_int_equal(line.p[19], '.');
    assert_memory_equal(line.p + 23, "Z ", 2);
    return str_from(line, 25);
}

static void writes_a_line(void **state)
{
    (void)state;
    assert_str(after_time(logged(LOG_INFO, "ready port=1")), "info ready port=1\n");
    assert_str(after_time(logged(LOG_WARN, "w")), "warn w\n");
    assert_str(after_time(logged(LOG_ERROR, "")), "error \n");
}

static void obeys_the_level(void **state)
{
    (void)state;
    assert_false(log_enabled(LOG_DEBUG));
    assert_int_equal(logged(LOG_DEBUG, "no").n, 0);
    log_set_level(LOG_DEBUG);
    assert_str(after_time(logged(LOG_DEBUG, "yes")), "debug yes\n");
    log_set_level(LOG_ERROR);
    assert_int_equal(logged(LOG_WARN, "no").n, 0);
    log_set_level(LOG_INFO);
}

static void cannot_be_forged(void **state)
{
    (void)state;
    assert_str(after_time(logged(LOG_INFO, "a\nb\r\x1b[2J\x7f")),
               "info a\\x0ab\\x0d\\x1b[2J\\x7f\n");
    assert_str(after_time(logged(LOG_INFO, "\xc2\x85\xe2\x80\xa8\xff\xc3\xa9")),
               "info \\xc2\\x85\\xe2\\x80\\xa8\\xff\xc3\xa9\n");
}

static void cuts_what_is_too_long(void **state)
{
    static char text[30000];
    struct str line;

    (void)state;
    memset(text, '\n', sizeof text - 1);
    line = logged(LOG_INFO, text);
    assert_true(line.n > 8000 && line.n <= 8192);
    assert_int_equal(str_find(line, '\n'), line.n - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_line),
        cmocka_unit_test(obeys_the_level),
        cmocka_unit_test(cannot_be_forged),
        cmocka_unit_test(cuts_what_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
