/* SPDX-License-Identifier: Apache-2.0 */
/* Links of proxied pages, in pieces of every length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "streams/relink.h"

#define FROM "/api/v1/namespaces/team-a/pods/web-x/proxy"
#define TO   "/api/v1/namespaces/default/pods/web/proxy"

static void check(const char *page, const char *want)
{
    for (size_t piece = 1; piece <= strlen(page) + 1; piece++) {
        struct relink r = {.from = STR(FROM), .to = STR(TO), .held = BUF_INIT(0)};
        struct buf out = BUF_INIT(0);

        for (struct str left = str_c(page); left.n;
             left = str_from(left, piece < left.n ? piece : left.n)) {
            sync_relink_add(&r, str_sub(left, 0, piece < left.n ? piece : left.n), &out);
            assert_true(r.held.n < strlen(FROM));
        }
        sync_relink_end(&r, &out);
        assert_int_equal(out.n, strlen(want));
        if (out.n)
            assert_memory_equal(out.p, want, out.n);
        buf_fini(&out);
    }
}

static void test_links(void **state)
{
    (void)state;
    check("", "");
    check("<p>no link</p>", "<p>no link</p>");
    check("<a href=\"" FROM "/next\">x</a>", "<a href=\"" TO "/next\">x</a>");
    check(FROM, TO);
    check(FROM FROM "/", TO TO "/");
    check("/api/v1/namespaces/team-a/pods/web-x/prox", "/api/v1/namespaces/team-a/pods/web-x/prox");
    check("/api/v1/namespaces/" FROM, "/api/v1/namespaces/" TO);
    check("//api/v1" FROM "/api", "//api/v1" TO "/api");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
