/* SPDX-License-Identifier: Apache-2.0
 *
 * Users of other issuers: when keys are fetched and when not, who waits and how long, which keys
 * are taken. The issuer is a function, the clock the test's own. */

#include "test.h"

#include <uv.h>

#include <sublet/encode.h>

#include "../../../vapi/auth/oidc.h"
#include "../../../vapi/auth/pki_cert.h"

#define WALL  1800000000LL
#define KEYS  "https://a.example/keys"
#define FLOOR 10000
#define HOUR  (3600 * 1000)
#define MOST  256

#define AUDIENCE  "one"
#define ISSUER_AT "https://a.example"

struct world {
    struct arena *a;
    uv_loop_t loop;
    struct clock clock;
    int64_t now_ms;
    struct config_issuer config;
    struct oidc *oidc;
    EVP_PKEY *first, *second;
    bool second_published, down;
    atomic_int fetches; /* of the discovery document */
    int woken;
    struct err err;
};

static int64_t wall_us(void *ctx)
{
    return (WALL + ((struct world *)ctx)->now_ms / 1000) * 1000000;
}

static int64_t mono_ms(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static struct str coordinate(struct arena *a, EVP_PKEY *key, const char *which)
{
    unsigned char bytes[32] = {0};
    BIGNUM *number = NULL;

    assert_int_equal(EVP_PKEY_get_bn_param(key, which, &number), 1);
    BN_bn2binpad(number, bytes, 32);
    BN_free(number);
    return base64url_encode(a, (struct str){(char *)bytes, 32});
}

static struct str jwk(struct arena *a, EVP_PKEY *key, const char *id)
{
    return arena_printf(
        a, "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"}", id,
        coordinate(a, key, "qx").p, coordinate(a, key, "qy").p);
}

/* In a worker thread. */
static int get(void *ctx, struct arena *a, struct str url, struct str ca,
               const atomic_bool *cancelled, struct str *ret, struct err *err)
{
    struct world *w = ctx;

    (void)ca;
    (void)cancelled;
    if (w->down)
        return err_set(err, &ERR_INTERNAL, "nobody answers");
    if (str_eqc(url, KEYS)) {
        *ret = arena_printf(a, "{\"keys\":[%s%s%s]}", jwk(a, w->first, "1").p,
                            w->second_published ? "," : "",
                            w->second_published ? jwk(a, w->second, "2").p : "");
        return 0;
    }
    assert_str(url, ISSUER_AT "/.well-known/openid-configuration");
    w->fetches++;
    *ret = arena_printf(a, "{\"issuer\":\"%s\",\"jwks_uri\":\"%s\"}", ISSUER_AT, KEYS);
    return 0;
}

static int set_up(void **state)
{
    static const struct str audiences[] = {{AUDIENCE, 3}};
    struct world *w = NEW(struct world);
    struct oidc_options options = {.loop = &w->loop,
                                   .clock = &w->clock,
                                   .issuers = &w->config,
                                   .n_issuers = 1,
                                   .get = get,
                                   .ctx = w};

    w->a = arena_new(0);
    w->now_ms = 5;
    w->clock = (struct clock){wall_us, mono_ms, w};
    w->config = (struct config_issuer){
        .url = STR(ISSUER_AT), .audiences = {audiences, 1}, .username = {STR("sub"), STR("a:")}};
    err_init(&w->err, w->a);
    w->first = pki_key_new(&w->err);
    w->second = pki_key_new(&w->err);
    assert_non_null(w->first);
    uv_loop_init(&w->loop);
    w->oidc = oidc_new(&options);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    oidc_free(w->oidc);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    EVP_PKEY_free(w->first);
    EVP_PKEY_free(w->second);
    arena_free(w->a);
    mem_free(w);
    return 0;
}

/* Signed by key, for `seconds` from now. */
static struct jws token(struct world *w, EVP_PKEY *key, const char *id, int64_t seconds)
{
    struct str head = arena_printf(w->a, "{\"alg\":\"ES256\",\"kid\":\"%s\"}", id);
    struct str body =
        arena_printf(w->a, "{\"iss\":\"%s\",\"aud\":\"%s\",\"sub\":\"u\",\"exp\":%lld}", ISSUER_AT,
                     AUDIENCE, (long long)(WALL + w->now_ms / 1000 + seconds));
    struct str text =
        arena_printf(w->a, "%s.%s", base64url_encode(w->a, head).p, base64url_encode(w->a, body).p);
    unsigned char raw[64];
    struct jws jws;

    assert_int_equal(jws_sign_es256(key, text, raw, &w->err), 0);
    struct str signature = base64url_encode(w->a, (struct str){(char *)raw, 64});
    struct str jwt = arena_printf(w->a, "%s.%s", text.p, signature.p);
    assert_int_equal(jws_parse(w->a, jwt, &jws, &w->err), 0);
    return jws;
}

static void on_woken(void *ctx)
{
    ((struct world *)ctx)->woken++;
}

static struct auth_wait *wait_new(struct world *w)
{
    struct auth_wait *wait = ARENA_NEW(w->a, struct auth_wait);

    *wait = (struct auth_wait){.again = on_woken, .ctx = w};
    return wait;
}

/* "" when it is a user. */
static const char *verdict(struct world *w, const struct jws *jws)
{
    struct user u;

    err_init(&w->err, w->a);
    if (oidc_authenticate(w->oidc, w->a, jws, &u, &w->err))
        return arena_cstr(w->a, w->err.message);
    assert_str(u.name, "a:u");
    return "";
}

/* Waits when it has to. True when it waited. */
static bool ask(struct world *w, const struct jws *jws)
{
    int before = w->woken;
    bool waits = oidc_await(w->oidc, jws, wait_new(w));

    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->woken - before, waits);
    return waits;
}

static void fetched_when_needed(void **state)
{
    struct world *w = *state;
    struct jws good = token(w, w->first, "1", 60);

    assert_string_equal(verdict(w, &good), "oidc: authenticator not initialized");
    assert_int_equal(w->fetches, 0);
    assert_true(ask(w, &good));
    assert_string_equal(verdict(w, &good), "");
    assert_false(ask(w, &good));
    good = token(w, w->first, "1", 30);
    assert_false(ask(w, &good));
    assert_string_equal(verdict(w, &good), "");
    assert_int_equal(w->fetches, 1);
}

static void never_for_what_cannot_be_good(void **state)
{
    struct world *w = *state;
    struct jws late = token(w, w->first, "1", -1), other = token(w, w->first, "1", 60);

    assert_false(ask(w, &late));
    w->config.audiences.n = 0;
    assert_false(ask(w, &other));
    other.algorithm = NULL;
    w->config.audiences.n = 1;
    assert_false(ask(w, &other));
    assert_int_equal(w->fetches, 0);
    assert_false(oidc_is_issuer(NULL, &late));
}

static void a_floor_between_fetches(void **state)
{
    struct world *w = *state;
    struct jws first = token(w, w->first, "1", 3600), next = token(w, w->second, "2", 3600);

    assert_true(ask(w, &first));
    for (int i = 0; i < 5; i++) {
        assert_false(ask(w, &next));
        assert_string_not_equal(verdict(w, &next), "");
    }
    w->second_published = true;
    w->now_ms += FLOOR - 1;
    assert_false(ask(w, &next));
    w->now_ms++;
    assert_true(ask(w, &next));
    assert_string_equal(verdict(w, &next), "");
    assert_string_equal(verdict(w, &first), "");
    assert_int_equal(w->fetches, 2);
}

static void a_key_that_went_verifies_no_more(void **state)
{
    struct world *w = *state;
    struct jws old = token(w, w->second, "2", 36000), unknown = token(w, w->second, "3", 36000);

    w->second_published = true;
    assert_true(ask(w, &old));
    assert_string_equal(verdict(w, &old), "");
    w->second_published = false;
    w->now_ms += FLOOR;
    assert_true(ask(w, &unknown));
    assert_string_not_equal(verdict(w, &old), "");
}

static void an_issuer_that_is_away(void **state)
{
    struct world *w = *state;
    struct jws good = token(w, w->first, "1", 3600);

    w->down = true;
    assert_true(ask(w, &good));
    assert_string_equal(verdict(w, &good), "oidc: authenticator not initialized");
    w->down = false;
    assert_false(ask(w, &good));
    w->now_ms += FLOOR;
    assert_true(ask(w, &good));
    assert_string_equal(verdict(w, &good), "");
}

/* Cached keys are good until others are fetched, and no request waits for those. */
static void old_keys_are_refreshed(void **state)
{
    struct world *w = *state;
    struct jws good = token(w, w->first, "1", 100 * 3600);

    assert_true(ask(w, &good));
    w->now_ms += HOUR;
    assert_false(ask(w, &good));
    assert_int_equal(w->fetches, 2);
    assert_false(ask(w, &good));
    assert_int_equal(w->fetches, 2);
    w->down = true;
    w->now_ms += HOUR;
    assert_false(ask(w, &good));
    assert_string_equal(verdict(w, &good), "");
}

static void waiting_is_bounded(void **state)
{
    struct world *w = *state;
    struct jws good = token(w, w->first, "1", 60);
    struct auth_wait *gone;

    for (int i = 0; i < MOST - 1; i++)
        assert_true(oidc_await(w->oidc, &good, wait_new(w)));
    gone = wait_new(w);
    assert_true(oidc_await(w->oidc, &good, gone));
    assert_false(oidc_await(w->oidc, &good, wait_new(w)));
    auth_wait_end(gone);
    auth_wait_end(gone);
    assert_true(oidc_await(w->oidc, &good, wait_new(w)));
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->woken, MOST);
    assert_int_equal(w->fetches, 1);
}

static void freed_while_fetching(void **state)
{
    struct world *w = *state;
    struct jws good = token(w, w->first, "1", 60);
    struct auth_wait *wait = wait_new(w);

    assert_true(oidc_await(w->oidc, &good, wait));
    auth_wait_end(wait);
    w->oidc = oidc_free(w->oidc);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(w->woken, 0);
}

/* --- key sets --- */

static size_t keys_in(struct world *w, const char *keys)
{
    struct key_set *set;
    struct str text = arena_printf(w->a, "{\"keys\":[%s]}", keys);
    size_t n;

    assert_int_equal(key_set_parse(text, &set, &w->err), 0);
    n = key_set_size(set);
    key_set_free(set);
    return n;
}

static void keys_that_are_left_out(void **state)
{
    static const char *const CASES[] = {
        "{\"kty\":\"oct\",\"k\":\"AAAA\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
        "{\"kty\":\"RSA\"}",
        "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-512\",\"x\":\"AA\",\"y\":\"AA\"}",
        "null, 7, \"x\", []",
    };
    struct world *w = *state;
    struct str good = jwk(w->a, w->first, "1"), bent = arena_str(w->a, good);
    struct buf many = BUF_INIT(0);
    struct key_set *set;

    for (size_t i = 0; i < COUNT(CASES); i++)
        assert_int_equal(keys_in(w, CASES[i]), 0);
    assert_int_equal(keys_in(w, good.p), 1);

    /* Not a point of the curve. */
    char *y = strstr(arena_cstr(w->a, bent), "\"y\":\"") + 5;
    *y = *y == 'A' ? 'B' : 'A';
    assert_int_equal(keys_in(w, y - (strstr(good.p, "\"y\":\"") + 5 - good.p)), 0);

    for (int i = 0; i < 70; i++)
        buf_printf(&many, "%s%s", i ? "," : "", good.p);
    assert_int_equal(keys_in(w, arena_cstr(w->a, buf_str(&many))), 64);
    buf_fini(&many);

    assert_int_equal(key_set_parse(STR("[]"), &set, &w->err), -1);
    assert_int_equal(key_set_parse(STR("{\"keys\":{}}"), &set, &w->err), -1);
    assert_int_equal(key_set_parse(STR("nothing"), &set, &w->err), -1);
}

static void modulus(struct world *w, size_t bytes, const char *e, size_t want)
{
    char *text = arena_alloc(w->a, bytes);
    struct str key;

    memset(text, 0xff, bytes);
    key = arena_printf(w->a, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}",
                       base64url_encode(w->a, (struct str){text, bytes}).p, e);
    assert_int_equal(keys_in(w, key.p), want);
}

static void sizes_of_rsa_keys(void **state)
{
    struct world *w = *state;

    modulus(w, 256, "AQAB", 1);
    modulus(w, 127, "AQAB", 0);
    modulus(w, 1024, "AQAB", 1);
    modulus(w, 1025, "AQAB", 0);
    modulus(w, 256, "AQ", 0);         /* 1 */
    modulus(w, 256, "Ag", 0);         /* even */
    modulus(w, 256, "_____w", 0);     /* 2^32 - 1 */
    modulus(w, 256, "AQABAQABAQ", 0); /* longer */
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(fetched_when_needed),     CASE(never_for_what_cannot_be_good),
        CASE(a_floor_between_fetches), CASE(a_key_that_went_verifies_no_more),
        CASE(an_issuer_that_is_away),  CASE(old_keys_are_refreshed),
        CASE(waiting_is_bounded),      CASE(freed_while_fetching),
        CASE(keys_that_are_left_out),  CASE(sizes_of_rsa_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
