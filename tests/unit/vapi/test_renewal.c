/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates are renewed at two thirds of their life and not before, what could not be renewed is
 * tried again, and the authority stays. */

#include "controller_world.h"

#include <openssl/x509v3.h>

#include "../../../vapi/auth/pki_cert.h"
#include "../../../vapi/control_plane/control_plane.h"

#define YEAR (365LL * 24 * 3600)

static struct str text(struct str s)
{
    return arena_str(world_arena(W), s);
}

static void serving_certificate(void **state)
{
    struct pki *pki = vapi_pki(world_api(W));
    struct str before = text(pki_serving_pem(pki)), ca = text(pki_ca_pem(pki));
    int64_t from, end, renewed_from, renewed_end;

    (void)state;
    pki_lifetime(pki, PKI_SERVING, &from, &end);
    assert_int_equal(end - from, YEAR);
    world_pass(W, from + (end - from) / 3 * 2 - 1 - world_now(W));
    renewal_check(world_api(W));
    assert_true(str_eq(pki_serving_pem(pki), before));

    world_pass(W, 2);
    renewal_check(world_api(W));
    assert_false(str_eq(pki_serving_pem(pki), before));
    assert_true(str_eq(pki_ca_pem(pki), ca));
    pki_lifetime(pki, PKI_SERVING, &renewed_from, &renewed_end);
    assert_int_equal(renewed_from, world_now(W));
    assert_int_equal(renewed_end - renewed_from, YEAR);
}

/* Known only once the host answered, which may be after the start. */
static void the_published_address(void **state)
{
    static const struct vapi_address address = {{"10.9.0.1", 8}, {"10.1.2.3", 8}, 443, 8443, 6443};
    struct pki *pki = vapi_pki(world_api(W));
    struct str before = text(pki_serving_pem(pki)), with;
    X509 *cert;

    (void)state;
    vapi_publish_address(world_api(W), &address);
    with = text(pki_serving_pem(pki));
    assert_false(str_eq(with, before));
    cert = pki_cert_read(with);
    assert_int_equal(X509_check_ip_asc(cert, "10.9.0.1", 0), 1);
    X509_free(cert);
    vapi_publish_address(world_api(W), &address);
    assert_true(str_eq(pki_serving_pem(pki), with));
}

/* --- what others have --- */

struct thing {
    int64_t from, end;
    int asked;
    bool broken;
};

static void life(void *ctx, int64_t *ret_from, int64_t *ret_end)
{
    struct thing *t = ctx;

    *ret_from = t->from;
    *ret_end = t->end;
}

static int renew(void *ctx, struct err *err)
{
    struct thing *t = ctx;

    t->asked++;
    if (t->broken)
        return err_set(err, &ERR_INTERNAL, "no");
    t->from = world_now(W);
    t->end = t->from + 300;
    return 0;
}

static void others(void **state)
{
    struct thing *t = ARENA_NEW(world_arena(W), struct thing);
    struct vapi_renewal renewal = {"thing", t, life, renew};

    (void)state;
    *t = (struct thing){.from = world_now(W), .end = world_now(W) + 300, .broken = true};
    vapi_add_renewal(world_api(W), &renewal);
    world_pass(W, 199);
    renewal_check(world_api(W));
    assert_int_equal(t->asked, 0);
    world_pass(W, 1);
    renewal_check(world_api(W));
    renewal_check(world_api(W));
    assert_int_equal(t->asked, 2);
    t->broken = false;
    renewal_check(world_api(W));
    renewal_check(world_api(W));
    assert_int_equal(t->asked, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(serving_certificate),
        WORLD_TEST(the_published_address),
        WORLD_TEST(others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
