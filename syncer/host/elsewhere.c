/* SPDX-License-Identifier: Apache-2.0 */
/* What requests to a tenant's own servers have in common: the address that the caller admitted, TLS
 * by the name that the server must prove, and why there is no answer. Must never follow a redirect,
 * speak without TLS, or reach another address. */
#include "curl_impl.h"

#include <string.h>

void host_elsewhere_init(struct elsewhere *e, struct str name, struct str address, unsigned port)
{
    struct arena *a = arena_new(0);
    struct str at = address.n ? address : name;
    bool v6 = str_find(at, ':') < at.n;

    e->where =
        mem_strdup(arena_printf(a, "%s%.*s%s:%u", v6 ? "[" : "", STR_F(at), v6 ? "]" : "", port));
    e->connect_to =
        address.n
            ? curl_slist_append(NULL, arena_printf(a, "%.*s:%u:%s", STR_F(name), port, e->where).p)
            : NULL;
    arena_free(a);
}

void host_elsewhere_fini(struct elsewhere *e)
{
    curl_slist_free_all(e->connect_to);
    mem_free(e->where);
    *e = (struct elsewhere){NULL, NULL};
}

void host_elsewhere_set(CURL *easy, const struct elsewhere *e, struct str name, unsigned port,
                        struct str path, struct str ca)
{
    struct arena *a = arena_new(0);
    bool v6 = str_find(name, ':') < name.n;

    curl_easy_setopt(easy, CURLOPT_URL,
                     arena_printf(a, "https://%s%.*s%s:%u%.*s", v6 ? "[" : "", STR_F(name),
                                  v6 ? "]" : "", port, STR_F(path))
                         .p);
    arena_free(a);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, e->connect_to);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (!ca.n)
        return;
    host_curl_blob(easy, CURLOPT_CAINFO_BLOB, ca);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
}

void host_elsewhere_explain(const struct elsewhere *e, const struct wire_failure *f,
                            struct err *err)
{
    const struct err_kind *kind = &ERR_UNAVAILABLE;
    struct str where = str_c(e->where);

    if (f->trouble == HOST_DNS)
        err_set(err, kind, "dial tcp: lookup %.*s: no such host",
                STR_F(str_sub(where, 0, str_rfind(where, ':'))));
    else if (f->trouble == HOST_TIMEOUT)
        err_set(err, &ERR_TIMEOUT, "context deadline exceeded");
    else if (f->trouble == HOST_REFUSED)
        err_set(err, kind, "dial tcp %s: connect: connection refused", e->where);
    else if (f->trouble == HOST_TLS)
        err_set(err, kind, "tls: failed to verify certificate: %.*s", STR_F(f->detail));
    else
        err_set(err, kind, "%s: %.*s", f->text, STR_F(f->detail));
}
