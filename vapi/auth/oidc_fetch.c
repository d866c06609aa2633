/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches the documents of an issuer, by libcurl in a worker thread (OpenID Connect Discovery 1.0,
 * 4). Must never follow anything but https, read an unbounded answer, or touch data of the loop's
 * thread. */
#include <assert.h>
#include <string.h>

#include <curl/curl.h>

#include "oidc.h"

#define MAX_DOCUMENT  (1u << 20)
#define TIMEOUT_MS    15000L
#define MAX_REDIRECTS 5L

static const struct json_limits LIMITS = {.depth = 32, .nodes = 16384};

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct buf *b = ctx;

    buf_add(b, (struct str){bytes, size * n});
    return b->failed ? 0 : size * n;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const atomic_bool *cancelled = ctx;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return atomic_load(cancelled);
}

static void set_options(CURL *easy, struct arena *a, struct str url, struct str ca_pem,
                        const atomic_bool *cancelled, struct buf *body)
{
    struct curl_blob ca = {(void *)(uintptr_t)ca_pem.p, ca_pem.n, CURL_BLOB_COPY};

    curl_easy_setopt(easy, CURLOPT_URL, arena_cstr(a, url));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, MAX_REDIRECTS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "sublet");
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, cancelled);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    if (ca_pem.n) {
        curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

int oidc_http_get(void *ctx, struct arena *a, struct str url, struct str ca_pem,
                  const atomic_bool *cancelled, struct str *ret, struct err *err)
{
    struct buf body = BUF_INIT(MAX_DOCUMENT);
    char why[CURL_ERROR_SIZE] = "";
    CURL *easy = curl_easy_init();
    long status = 0;
    CURLcode code;

    (void)ctx;
    assert(easy);
    set_options(easy, a, url, ca_pem, cancelled, &body);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
    code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);

    if (code == CURLE_OK && status == 200) {
        *ret = arena_str(a, buf_str(&body));
        buf_fini(&body);
        return 0;
    }
    if (code == CURLE_OK)
        err_set(err, &ERR_INTERNAL, "%.*s: HTTP status %ld", STR_F(url), status);
    else
        err_set(err, &ERR_INTERNAL, "%.*s: %s", STR_F(url),
                body.failed ? "the answer is too large"
                : why[0]    ? why
                            : curl_easy_strerror(code));
    buf_fini(&body);
    return -1;
}

static struct str discovery_url(const struct config_issuer *issuer, struct arena *a)
{
    struct str base = issuer->url;

    if (issuer->discovery_url.n)
        return issuer->discovery_url;
    if (str_has_suffix(base, STR("/")))
        base.n--;
    return arena_concat(a, 2, (struct str[]){base, STR("/.well-known/openid-configuration")});
}

static int read_discovery(const struct config_issuer *issuer, struct arena *a, struct str text,
                          struct str *ret, struct err *err)
{
    struct str name, keys;
    cJSON *tree;

    if (json_parse_strict(a, text, &LIMITS, NULL, NULL, &tree, err))
        return err_wrap(err, "oidc: failed to decode provider discovery object");
    name = json_str(json_get(tree, "issuer"));
    keys = json_str(json_get(tree, "jwks_uri"));
    if (!str_eq(name, issuer->url))
        return err_set(err, &ERR_INTERNAL,
                       "oidc: issuer did not match the issuer returned by provider, expected "
                       "\"%.*s\" got \"%.*s\"",
                       STR_F(issuer->url), STR_F(name));
    if (!str_has_prefix(keys, STR("https://")) || str_find(keys, '\0') != keys.n)
        return err_set(err, &ERR_INTERNAL, "oidc: jwks_uri \"%.*s\" is not an https URL",
                       STR_F(keys));
    *ret = keys;
    return 0;
}

int oidc_fetch_keys(const struct config_issuer *issuer, oidc_get_cb get, void *ctx,
                    const atomic_bool *cancelled, struct key_set **ret, struct err *err)
{
    struct arena *a = arena_new(0);
    struct str text, url;
    int failed = get(ctx, a, discovery_url(issuer, a), issuer->certificate_authority, cancelled,
                     &text, err) ||
                 read_discovery(issuer, a, text, &url, err) ||
                 get(ctx, a, url, issuer->certificate_authority, cancelled, &text, err) ||
                 key_set_parse(text, ret, err);

    arena_free(a);
    return failed ? -1 : 0;
}
