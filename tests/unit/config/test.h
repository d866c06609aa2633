/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of config begins with: cmocka, checks, one arena and a configuration. The
 * tests of translate build on it. Must never hold state between tests. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <sublet/config_pool.h>

#define assert_str(s, text)      check_str((s), (text), __FILE__, __LINE__)
#define assert_has(s, part)      check_has((s), (part), __FILE__, __LINE__)
#define assert_error(call, text) check_error(&f->err, (call), (text), __FILE__, __LINE__)
#define assert_ok(call)          check_ok(&f->err, (call), __FILE__, __LINE__)

static inline void check_str(struct str got, const char *want, const char *file, int line)
{
    if (str_eqc(got, want))
        return;
    print_error("got  \"%.*s\"\nwant \"%s\"\n", STR_F(got), want);
    _fail(file, line);
}

static inline void check_has(struct str got, const char *part, const char *file, int line)
{
    if (str_contains(got, str_c(part)))
        return;
    print_error("got  \"%.*s\"\nwant something with \"%s\"\n", STR_F(got), part);
    _fail(file, line);
}

static inline void check_ok(const struct err *err, int rc, const char *file, int line)
{
    if (rc == 0)
        return;
    print_error("error: %.*s\n", STR_F(err->message));
    _fail(file, line);
}

/* The call must have failed with exactly this message; forgets the error. */
static inline void check_error(struct err *err, int rc, const char *text, const char *file,
                               int line)
{
    struct str message = err->message;

    if (rc == 0) {
        print_error("no error, wanted \"%s\"\n", text);
        _fail(file, line);
    }
    check_str(message, text, file, line);
    err_clear(err);
}

struct config_fixture {
    struct arena *a;
    struct config config;
    struct err err;
};

static inline int load_config(struct config_fixture *f, const char *yaml)
{
    return config_load(f->a, str_c(yaml), 0, NULL, NULL, &f->config, &f->err);
}

/* The defaults. */
static inline int config_setup(void **state)
{
    struct config_fixture *f = NEW(struct config_fixture);

    f->a = arena_new(0);
    err_init(&f->err, f->a);
    assert_ok(load_config(f, ""));
    *state = f;
    return 0;
}

static inline int config_teardown(void **state)
{
    struct config_fixture *f = *state;

    f->a = arena_free(f->a);
    mem_free(f);
    return 0;
}
