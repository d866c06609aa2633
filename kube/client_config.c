/* SPDX-License-Identifier: Apache-2.0
 * What a clientConfig of a webhook may name. Must never accept a URL whose parts it does not
 * know. */
#include <sublet/client_config.h>

#include <ctype.h>
#include <openssl/x509.h>

#include <sublet/encode.h>
#include <sublet/selector.h>

#define URL_FORM "; desired format: https://host[/path]"

static void check_service_path(struct field_errors *e, const struct field_path *p, struct str path)
{
    struct str rest;
    size_t i = 0;

    if (!path.n || str_eqc(path, "/"))
        return;
    if (str_eqc(path, "//")) {
        field_invalid_str(e, p, path, "segment[0] may not be empty");
        return;
    }
    if (path.p[0] != '/')
        field_invalid_str(e, p, path, "must start with a '/'");
    rest = str_from(path, 1);
    if (str_has_suffix(rest, STR("/")))
        rest = str_sub(rest, 0, rest.n - 1);
    do {
        struct str step = str_cut(&rest, '/');
        const char *why = step.n ? name_check_dns1123_subdomain(step) : NULL;

        if (!step.n)
            field_invalid_str(e, p, path,
                              arena_printf(e->arena, "segment[%zu] may not be empty", i).p);
        else if (why)
            field_invalid_str(e, p, path, arena_printf(e->arena, "segment[%zu]: %s", i, why).p);
        i++;
    } while (rest.p);
}

/* Upstream mixes name and namespace up: the one that is missing is reported under the other's name.
 */
static void check_service(struct field_errors *e, const struct field_path *p, const cJSON *service)
{
    int64_t port = json_i64_at(service, "port", 0);
    const cJSON *path = json_get(service, "path");

    if (!json_str(json_get(service, "namespace")).n)
        field_required(e, FIELD(p, "name"), "");
    if (!json_str(json_get(service, "name")).n)
        field_required(e, FIELD(p, "namespace"), "");
    if (port < 1 || port > 65535)
        field_invalid(e, FIELD(p, "port"), json_new_i64(e->arena, port),
                      "port is not valid: must be between 1 and 65535, inclusive");
    if (json_is_string(path))
        check_service_path(e, FIELD(p, "path"), json_str(path));
}

static struct str lower_case(struct arena *a, struct str s)
{
    char *copy = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    return (struct str){copy, s.n};
}

/* The scheme before the first colon, if there is one; rest is what follows. */
static struct str url_scheme(struct str url, struct str *rest)
{
    size_t colon = str_find(url, ':'), slash = str_find(url, '/');

    *rest = url;
    if (colon == url.n || slash < colon)
        return STR("");
    *rest = str_from(url, colon + 1);
    return str_sub(url, 0, colon);
}

/* What Go's parser finds of it, NULL: nothing. path ends before the query. */
static const char *url_problem(struct arena *a, struct str path)
{
    for (size_t i = 0; i < path.n; i++) {
        struct str left = str_sub(path, i, 3);

        if ((unsigned char)path.p[i] < 0x20 || path.p[i] == 0x7f)
            return "net/url: invalid control character in URL";
        if (path.p[i] != '%')
            continue;
        if (left.n < 3 || !isxdigit((unsigned char)left.p[1]) ||
            !isxdigit((unsigned char)left.p[2]))
            return arena_printf(a, "invalid URL escape %.*s", STR_F(go_quote(a, left))).p;
    }
    return NULL;
}

static bool check_url_parts(struct field_errors *e, const struct field_path *p, struct str plain)
{
    struct str query = plain;
    const char *why = url_problem(e->arena, str_cut(&query, '?'));

    if (why)
        field_required(e, p,
                       arena_printf(e->arena, "url must be a valid URL: parse %.*s: %s" URL_FORM,
                                    STR_F(go_quote(e->arena, plain)), why)
                           .p);
    return !why;
}

static void check_url(struct field_errors *e, const struct field_path *p, struct str url)
{
    struct str rest, fragment = url, plain = str_cut(&fragment, '#'), query = plain;
    struct str scheme = url_scheme(str_cut(&query, '?'), &rest), host = STR(""), user = STR_NULL;
    size_t at;

    if (!check_url_parts(e, p, plain))
        return;
    if (str_has_prefix(rest, STR("//"))) {
        rest = str_from(rest, 2);
        host = str_cut(&rest, '/');
    }
    at = str_find(host, '@');
    if (at < host.n) {
        user = str_sub(host, 0, at);
        host = str_from(host, at + 1);
    }
    if (!str_eqc(lower_case(e->arena, scheme), "https"))
        field_invalid_str(e, p, lower_case(e->arena, scheme),
                          "'https' is the only allowed URL scheme" URL_FORM);
    if (!host.n)
        field_invalid_str(e, p, host, "host must be specified" URL_FORM);
    if (user.p)
        field_invalid_str(e, p, user, "user information is not permitted in the URL");
    if (fragment.n)
        field_invalid_str(e, p, fragment, "fragments are not permitted in the URL");
    if (query.n)
        field_invalid_str(e, p, query, "query parameters are not permitted in the URL");
}

/* ---- caBundle ---- */

#define PEM_BEGIN "-----BEGIN "

/* Cuts the first block off *rest; *ret_type and *ret_bytes are its. */
static bool next_block(struct arena *a, struct str *rest, struct str *ret_type,
                       struct str *ret_bytes)
{
    while (rest->n) {
        struct str line = str_trim(str_cut(rest, '\n')), end, body;
        size_t at;

        if (!str_has_prefix(line, STR(PEM_BEGIN)) || !str_has_suffix(line, STR("-----")))
            continue;
        *ret_type = str_sub(line, sizeof(PEM_BEGIN) - 1, line.n - sizeof(PEM_BEGIN) + 1 - 5);
        end = arena_printf(a, "-----END %.*s-----", STR_F(*ret_type));
        for (at = 0; at < rest->n && !str_has_prefix(str_from(*rest, at), end); at++)
            continue;
        if (at == rest->n)
            continue;
        body = str_sub(*rest, 0, at);
        *rest = str_from(*rest, at + end.n);
        if (base64_decode(a, str_trim(body), ret_bytes))
            return true;
    }
    return false;
}

static bool is_certificate(struct str der)
{
    const unsigned char *at = (const unsigned char *)der.p;
    X509 *x = d2i_X509(NULL, &at, (long)der.n);
    bool whole = x && at == (const unsigned char *)der.p + der.n;

    X509_free(x);
    return whole;
}

/* NULL: at least one certificate. Source: client-go transport.rootCertPool(). */
static const char *bundle_problem(struct arena *a, struct str pem)
{
    struct str rest = pem, type, der;
    bool any = false, broken = false;

    while (next_block(a, &rest, &type, &der)) {
        any = true;
        if (!str_eqc(type, "CERTIFICATE"))
            continue;
        if (is_certificate(der))
            return NULL;
        broken = true;
    }
    if (!any)
        return "unable to load root certificates: unable to parse bytes as PEM block";
    return broken ? "unable to load root certificates: failed to parse certificate: x509: "
                    "malformed certificate"
                  : "unable to load root certificates: no valid certificate authority data seen";
}

bool client_config_has_ca(struct arena *a, const cJSON *bundle)
{
    struct str pem;

    return base64_decode(a, json_str(bundle), &pem) && !bundle_problem(a, pem);
}

void client_config_check_ca(struct field_errors *e, const struct field_path *p, const cJSON *bundle)
{
    struct str pem;
    const char *why;

    if (!json_str(bundle).n || !base64_decode(e->arena, json_str(bundle), &pem) || !pem.n)
        return;
    why = bundle_problem(e->arena, pem);
    if (why)
        field_invalid(e, p, bundle, why);
}

void client_config_check_server(struct field_errors *e, const struct field_path *p,
                                const cJSON *url, const cJSON *service)
{
    if (!url == !service)
        field_required(e, p, "exactly one of url or service is required");
    else if (url)
        check_url(e, FIELD(p, "url"), json_str(url));
    else
        check_service(e, FIELD(p, "service"), service);
}
