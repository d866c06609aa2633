/* SPDX-License-Identifier: Apache-2.0 */
/* Another certificate authority: who trusts which of the two is served and let in, from the order
 * to the end of the previous one. */
#include "test.h"

#include <ftw.h>
#include <stdlib.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <uv.h>

#include <sublet/pki.h>
#include <sublet/store.h>

#include "../../../vapi/auth/pki_cert.h"

#define T0  1800000000LL
#define DAY (24 * 3600LL)

struct world {
    uv_loop_t loop;
    struct store *store;
    struct pki *pki;
    struct arena *arena;
    struct clock clock;
    int64_t now;
    char dir[64];
    struct err err;
};

static int64_t fake_wall(void *ctx)
{
    return ((struct world *)ctx)->now * 1000000;
}

static int64_t fake_mono(void *ctx)
{
    return ((struct world *)ctx)->now * 1000;
}

static void open_all(struct world *w)
{
    const struct str names[] = {STR("kubernetes.default.svc")};
    struct store_options so = {.path = w->dir};
    struct pki_options po = {
        .clock = &w->clock,
        .rng = &RNG_SYSTEM,
        .names = names,
        .n_names = 1,
        .issuer = STR("https://kubernetes.default.svc.cluster.local"),
        .cluster_uid = STR("3f0b9c1e-0000-4000-8000-000000000001"),
    };

    assert_int_equal(store_open(&w->loop, &so, &w->store, &w->err), 0);
    assert_int_equal(pki_open(w->store, &po, &w->pki, &w->err), 0);
}

static void close_all(struct world *w)
{
    w->pki = pki_free(w->pki);
    store_close(w->store, NULL, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

static int setup(void **state)
{
    struct world *w = NEW(struct world);

    uv_loop_init(&w->loop);
    w->arena = arena_new(0);
    err_init(&w->err, w->arena);
    w->now = T0;
    w->clock = (struct clock){fake_wall, fake_mono, w};
    snprintf(w->dir, sizeof(w->dir), "/tmp/test-pki-ca-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    open_all(w);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    struct world *w = *state;

    close_all(w);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    arena_free(w->arena);
    mem_free(w);
    return 0;
}

/* All certificates of a bundle. */
static STACK_OF(X509) * certificates(struct str pem)
{
    STACK_OF(X509) *ret = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *cert;

    while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        sk_X509_push(ret, cert);
    BIO_free(bio);
    return ret;
}

/* Does a client with these anchors accept what is presented: a leaf and what follows it? */
static bool accepts(struct world *w, struct str anchors, struct str presented, const char *purpose)
{
    STACK_OF(X509) *trusted = certificates(anchors), *chain = certificates(presented);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    bool ret;

    for (int i = 0; i < sk_X509_num(trusted); i++)
        X509_STORE_add_cert(store, sk_X509_value(trusted, i));
    X509_STORE_CTX_init(ctx, store, sk_X509_value(chain, 0), chain);
    X509_STORE_CTX_set_default(ctx, purpose);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
    X509_STORE_CTX_set_time(ctx, 0, (time_t)w->now);
    ret = X509_verify_cert(ctx) == 1;
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    sk_X509_pop_free(trusted, X509_free);
    sk_X509_pop_free(chain, X509_free);
    return ret;
}

static struct str client(struct world *w)
{
    struct str cert, key;

    assert_int_equal(
        pki_issue_client(w->pki, w->arena, STR("admin"), NULL, 0, 30 * DAY, &cert, &key, &w->err),
        0);
    return cert;
}

static void on_commit(void *ctx, const struct err *err)
{
    assert_null(err);
    *(bool *)ctx = true;
}

static void committed(struct world *w)
{
    bool done = false;

    store_on_commit(w->store, on_commit, &done);
    while (!done)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static struct str ca_now(struct world *w)
{
    return arena_str(w->arena, pki_ca_pem(w->pki));
}

static void rotate(struct world *w)
{
    assert_int_equal(pki_rotate_ca(w->pki, &w->err), 0);
    committed(w);
    assert_int_equal(pki_reload(w->pki, &w->err), 0);
}

static void retire(struct world *w)
{
    assert_int_equal(pki_retire_ca(w->pki, &w->err), 0);
    committed(w);
    assert_int_equal(pki_reload(w->pki, &w->err), 0);
}

static bool serves(struct world *w, struct str anchors)
{
    return accepts(w, anchors, pki_serving_pem(w->pki), "ssl_server");
}

static bool lets_in(struct world *w, struct str certificate)
{
    return accepts(w, pki_ca_pem(w->pki), certificate, "ssl_client");
}

static void test_nobody_is_cut_off_by_the_new_one(void **state)
{
    struct world *w = *state;
    struct str old_trust = ca_now(w), old_client = client(w), both, new_client, next;

    w->now += DAY;
    rotate(w);
    both = ca_now(w);
    new_client = client(w);
    next = arena_concat(w->arena, 1, (struct str[]){str_sub(both, 0, both.n - old_trust.n)});
    assert_true(str_has_suffix(both, old_trust));
    assert_true(serves(w, old_trust) && serves(w, both) && serves(w, next));
    assert_true(lets_in(w, old_client) && lets_in(w, new_client));
    assert_false(accepts(w, old_trust, new_client, "ssl_client"));

    close_all(w);
    open_all(w);
    assert_true(str_eq(pki_ca_pem(w->pki), both));
    assert_true(serves(w, old_trust) && serves(w, both) && serves(w, next));
    assert_true(lets_in(w, old_client) && lets_in(w, new_client));
}

static void test_the_previous_one_is_retired(void **state)
{
    struct world *w = *state;
    struct str old_trust = ca_now(w), old_client = client(w), both, new_client;

    rotate(w);
    both = ca_now(w);
    new_client = client(w);
    retire(w);
    for (int i = 0; i < 2; i++) {
        assert_true(str_has_prefix(both, pki_ca_pem(w->pki)));
        assert_int_equal(pki_cert_count(pki_ca_pem(w->pki)), 1);
        assert_true(serves(w, both) && serves(w, pki_ca_pem(w->pki)));
        assert_false(serves(w, old_trust));
        assert_true(lets_in(w, new_client));
        assert_false(lets_in(w, old_client));
        close_all(w);
        open_all(w);
    }
}

static void test_one_step_at_a_time(void **state)
{
    struct world *w = *state;

    assert_int_equal(pki_retire_ca(w->pki, &w->err), -1);
    assert_true(w->err.kind == &ERR_CONFLICT);
    err_clear(&w->err);
    rotate(w);
    assert_int_equal(pki_rotate_ca(w->pki, &w->err), -1);
    assert_true(w->err.kind == &ERR_CONFLICT);
    err_clear(&w->err);
    retire(w);
    rotate(w);
    assert_int_equal(pki_cert_count(pki_ca_pem(w->pki)), 2);
}

/* Until the store has it, and pki_reload() was called, all is as it was. */
static void test_an_order_has_no_effect_by_itself(void **state)
{
    struct world *w = *state;
    struct str before = ca_now(w), serving = arena_str(w->arena, pki_serving_pem(w->pki));

    assert_int_equal(pki_rotate_ca(w->pki, &w->err), 0);
    assert_true(str_eq(pki_ca_pem(w->pki), before));
    assert_true(str_eq(pki_serving_pem(w->pki), serving));
    assert_true(accepts(w, before, client(w), "ssl_client"));
}

/* Orders of two commands can meet before the store has committed the first. */
static void test_a_second_order_waits_for_the_first(void **state)
{
    struct world *w = *state;
    struct str old_trust = ca_now(w);

    assert_int_equal(pki_rotate_ca(w->pki, &w->err), 0);
    assert_int_equal(pki_rotate_ca(w->pki, &w->err), -1);
    assert_true(w->err.kind == &ERR_CONFLICT);
    err_clear(&w->err);
    committed(w);
    assert_int_equal(pki_rotate_ca(w->pki, &w->err), -1);
    assert_true(w->err.kind == &ERR_CONFLICT);
    err_clear(&w->err);
    assert_int_equal(pki_reload(w->pki, &w->err), 0);
    assert_true(serves(w, old_trust));
    retire(w);
    rotate(w);
}

static void test_a_previous_one_that_ended_is_not_trusted(void **state)
{
    struct world *w = *state;
    struct str old_trust = ca_now(w);
    int64_t from, end;

    w->now = T0 + 9 * 365 * DAY;
    rotate(w);
    pki_lifetime(w->pki, PKI_PREVIOUS_CA, &from, &end);
    assert_int_equal(end, T0 + 10 * 365 * DAY);
    assert_true(serves(w, old_trust));
    w->now = end + 1;
    close_all(w);
    open_all(w);
    pki_lifetime(w->pki, PKI_PREVIOUS_CA, &from, &end);
    assert_int_equal(end, 0);
    assert_int_equal(pki_cert_count(pki_ca_pem(w->pki)), 1);
    assert_true(serves(w, pki_ca_pem(w->pki)));
    rotate(w);
    assert_int_equal(pki_cert_count(pki_ca_pem(w->pki)), 2);
}

static struct str proxy_ca(struct world *w)
{
    struct str ret;

    assert_int_equal(pki_front_proxy_ca(w->pki, w->arena, &ret, &w->err), 0);
    return ret;
}

static struct str proxy_client(struct world *w)
{
    struct str cert, key;

    assert_int_equal(pki_front_proxy(w->pki, &cert, &key, &w->err), 0);
    assert_true(str_contains(key, STR("PRIVATE KEY")));
    return arena_str(w->arena, cert);
}

static void test_the_front_proxy_has_an_authority_of_its_own(void **state)
{
    struct world *w = *state;
    struct str ca = proxy_ca(w), cert = proxy_client(w);

    assert_true(accepts(w, ca, cert, "ssl_client"));
    assert_false(lets_in(w, cert));
    assert_false(accepts(w, ca, client(w), "ssl_client"));
    assert_true(str_eq(proxy_client(w), cert)); /* the same until it is renewed */
    committed(w);
    close_all(w);
    open_all(w);
    assert_true(str_eq(proxy_ca(w), ca));
    rotate(w);
    assert_true(str_eq(proxy_ca(w), ca));
    cert = proxy_client(w);
    w->now += 250 * DAY;
    assert_false(str_eq(proxy_client(w), cert));
    assert_true(accepts(w, ca, proxy_client(w), "ssl_client"));
    w->now += 9 * 365 * DAY;
    assert_false(str_eq(proxy_ca(w), ca)); /* before it ends */
    assert_true(accepts(w, proxy_ca(w), proxy_client(w), "ssl_client"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_is_cut_off_by_the_new_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_previous_one_is_retired, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_step_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_order_has_no_effect_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_second_order_waits_for_the_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_previous_one_that_ended_is_not_trusted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_front_proxy_has_an_authority_of_its_own, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
