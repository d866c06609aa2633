/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Which form an answer takes: Accept with its transformations, pretty printing, compression.
 * Answers are JSON or YAML where the client lists one of them: stored bytes are JSON, and who
 * prefers protobuf understands JSON by the answer's content type. Protobuf goes to those who list
 * nothing else. It must never choose a form the client did not list. Source: apiserver
 * pkg/endpoints/handlers/negotiation/negotiate.go. */
#include "api.h"

#include <strings.h>

#include <sublet/net.h>

#define MAX_CLAUSES 16

struct clause {
    struct str type; /* "application/json" */
    struct str as, group, version;
    int quality; /* 0..1000 */
    bool pretty, unusable;
};

static bool same(struct str s, const char *text)
{
    return s.n == str_c(text).n && strncasecmp(s.p, text, s.n) == 0;
}

/* "0.85" -> 850; what is no number counts as 1, as upstream's parser skips it. */
static int quality(struct str s)
{
    int value = 0, digit = 100;

    if (!s.n || (s.p[0] != '0' && s.p[0] != '1'))
        return 1000;
    value = (s.p[0] - '0') * 1000;
    if (s.n > 1 && s.p[1] != '.')
        return 1000;
    for (size_t i = 2; i < s.n && digit; i++, digit /= 10) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 1000;
        value += (s.p[i] - '0') * digit;
    }
    return value > 1000 ? 1000 : value;
}

static void read_parameter(struct clause *c, struct str text)
{
    struct str value = text, name = str_trim(str_cut(&value, '='));

    value = str_trim(value);
    if (same(name, "q"))
        c->quality = quality(value);
    else if (same(name, "as"))
        c->as = value;
    else if (same(name, "g"))
        c->group = value;
    else if (same(name, "v"))
        c->version = value;
    else if (same(name, "pretty"))
        c->pretty = str_eqc(value, "1");
    else if (same(name, "stream"))
        c->unusable |= value.n && !str_eqc(value, "watch");
    else if (same(name, "sv"))
        c->unusable |= value.n && !str_eqc(value, "v1");
}

static struct clause read_clause(struct str text)
{
    struct clause c = {.quality = 1000};

    c.type = str_trim(str_cut(&text, ';'));
    while (text.p)
        read_parameter(&c, str_trim(str_cut(&text, ';')));
    return c;
}

/* The clauses by falling quality; equal ones as listed. */
static size_t read_accept(struct str accept, struct clause *clauses)
{
    size_t n = 0;

    while (accept.p && n < MAX_CLAUSES) {
        struct clause c = read_clause(str_cut(&accept, ','));
        size_t i = n;

        if (!c.type.n)
            continue;
        for (; i > 0 && clauses[i - 1].quality < c.quality; i--)
            clauses[i] = clauses[i - 1];
        clauses[i] = c;
        n++;
    }
    return n;
}

/* ---- what a clause asks for ---- */

static bool type_usable(const struct clause *c, bool *ret_yaml)
{
    *ret_yaml = same(c->type, "application/yaml");
    return *ret_yaml || same(c->type, "application/json") || same(c->type, "*/*") ||
           same(c->type, "application/*");
}

static bool is_protobuf(const struct clause *c)
{
    return same(c->type, "application/vnd.kubernetes.protobuf");
}

bool respond_forms(const struct call *c)
{
    if (!c->resource || (c->resource->flags & RES_REVIEW))
        return false;
    return !c->sub || c->sub->kind == SUB_STATUS;
}

static bool form_usable(const struct call *call, const struct clause *c, enum output_form *ret)
{
    *ret = OUTPUT_OBJECT;
    if (!c->as.n)
        return !c->group.n && !c->version.n;
    if (!str_eqc(c->group, "meta.k8s.io") || !str_eqc(c->version, "v1") || !respond_forms(call))
        return false;
    if (str_eqc(c->as, "Table")) {
        *ret = OUTPUT_TABLE;
        return !is_protobuf(c);
    }
    *ret = OUTPUT_PARTIAL;
    return str_eqc(c->as, "PartialObjectMetadata") || str_eqc(c->as, "PartialObjectMetadataList");
}

/* Custom resources have no message but as their metadata. */
static bool has_message(const struct call *call, enum output_form form)
{
    return form == OUTPUT_PARTIAL || !call->resource || !call->resource->crd;
}

static bool choose(struct call *call, const struct clause *clauses, size_t n, bool protobuf)
{
    for (size_t i = 0; i < n; i++) {
        const struct clause *c = &clauses[i];
        enum output_form form;
        bool yaml = false;

        if (c->unusable || is_protobuf(c) != protobuf || (!protobuf && !type_usable(c, &yaml)) ||
            !form_usable(call, c, &form) || (protobuf && !has_message(call, form)))
            continue;
        call->yaml = yaml;
        call->protobuf = protobuf && call->resource;
        call->output = form;
        call->pretty = c->pretty && !protobuf;
        return true;
    }
    return false;
}

/* ---- the rest of the form ---- */

static bool human_client(struct str agent)
{
    return str_has_prefix(agent, STR("curl")) || str_has_prefix(agent, STR("Wget")) ||
           str_has_prefix(agent, STR("Mozilla/5.0"));
}

static bool wants_pretty(const struct call *c, const struct query *q)
{
    struct str value = query_get(q, "pretty");

    if (value.n)
        return same(value, "true") || same(value, "t") || str_eqc(value, "1");
    return human_client(net_header(c->request, "user-agent"));
}

static bool wants_gzip(const struct net_request *r)
{
    struct str list = net_header(r, "accept-encoding");

    while (list.p) {
        struct str one = str_cut(&list, ',');

        if (same(str_trim(str_cut(&one, ';')), "gzip"))
            return true;
    }
    return false;
}

static int not_acceptable(const struct call *c, struct err *err)
{
    return err_set(err, &ERR_NOT_ACCEPTABLE,
                   "only the following media types are accepted: application/json, "
                   "application/yaml%s",
                   c->resource && c->resource->crd ? "" : ", application/vnd.kubernetes.protobuf");
}

int respond_negotiate(struct call *c, const struct query *q, struct err *err)
{
    struct str accept = net_header(c->request, "accept");
    struct clause clauses[MAX_CLAUSES];
    bool found = true;
    size_t n;

    c->output = OUTPUT_OBJECT;
    if (accept.n) {
        n = read_accept(accept, clauses);
        found = choose(c, clauses, n, false) || choose(c, clauses, n, true);
    }
    if (wants_pretty(c, q))
        c->pretty = true;
    call_entry(c)->gzip = wants_gzip(c->request);
    return found ? 0 : not_acceptable(c, err);
}
