/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The form of an answer: Accept with its transformations, pretty printing, compression. Answers are
 * JSON or YAML where the client lists one of them: stored bytes are JSON, and a client that prefers
 * protobuf recognizes JSON by the content type. Protobuf is for clients that list nothing else. It
 * must never choose a form the client did not list. Source: apiserver
 * pkg/endpoints/handlers/negotiation/negotiate.go. */
#include "respond.h"

#include <sublet/net.h>

#define MAX_CLAUSES 16

struct clause {
    struct str type; /* "application/json" */
    struct str as, group, version;
    int quality; /* 0..1000 */
    bool pretty, unusable;
};

/* "0.85" -> 850; an invalid number counts as 1, as upstream's parser skips it. */
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

static struct clause read_clause(struct str text)
{
    struct clause c = {.quality = 1000};

    c.type = str_trim(str_cut(&text, ';'));
    while (text.p) {
        struct str value = str_trim(str_cut(&text, ';')), name = str_trim(str_cut(&value, '='));

        value = str_trim(value);
        if (str_eq_nocase(name, STR("q")))
            c.quality = quality(value);
        else if (str_eq_nocase(name, STR("as")))
            c.as = value;
        else if (str_eq_nocase(name, STR("g")))
            c.group = value;
        else if (str_eq_nocase(name, STR("v")))
            c.version = value;
        else if (str_eq_nocase(name, STR("pretty")))
            c.pretty = str_eqc(value, "1");
        else if (str_eq_nocase(name, STR("stream")))
            c.unusable |= value.n && !str_eqc(value, "watch");
        else if (str_eq_nocase(name, STR("sv")))
            c.unusable |= value.n && !str_eqc(value, "v1");
    }
    return c;
}

/* The clauses by descending quality; equal ones as listed. */
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

size_t respond_accepted(struct str accept, struct str *types, size_t max)
{
    struct clause clauses[MAX_CLAUSES];
    size_t n = read_accept(accept.n ? accept : STR("*/*"), clauses);

    n = n < max ? n : max;
    for (size_t i = 0; i < n; i++)
        types[i] = clauses[i].type;
    return n;
}

/* ---- evaluation of a clause ---- */

static bool type_usable(const struct clause *c, bool *ret_yaml)
{
    *ret_yaml = str_eq_nocase(c->type, STR("application/yaml"));
    return *ret_yaml || str_eq_nocase(c->type, STR("application/json")) ||
           str_eq_nocase(c->type, STR("*/*")) || str_eq_nocase(c->type, STR("application/*"));
}

static bool is_protobuf(const struct clause *c)
{
    return str_eq_nocase(c->type, STR("application/vnd.kubernetes.protobuf"));
}

bool respond_forms(const struct call *c)
{
    if (!c->resource || (c->resource->flags & RES_REVIEW && !c->resource->crd))
        return false;
    return !c->sub || c->sub->kind == SUB_STATUS || c->sub->kind == SUB_SCALE;
}

static bool form_usable(const struct call *call, const struct clause *c, enum output_form *ret)
{
    *ret = OUTPUT_OBJECT;
    if (!c->as.n)
        return !c->group.n && !c->version.n;
    if (!str_eqc(c->group, "meta.k8s.io") || !respond_forms(call) ||
        !(str_eqc(c->version, "v1") || str_eqc(c->version, "v1beta1")))
        return false;
    if (str_eqc(c->as, "Table")) {
        *ret = OUTPUT_TABLE;
        return !is_protobuf(c);
    }
    *ret = OUTPUT_PARTIAL;
    return str_eqc(c->as, "PartialObjectMetadata") || str_eqc(c->as, "PartialObjectMetadataList");
}

/* Custom resources have no protobuf message except for their metadata. */
static bool has_message(const struct call *call, enum output_form form)
{
    return form == OUTPUT_PARTIAL || !call->resource || !call->resource->crd;
}

static bool choose(struct call *call, const struct clause *clauses, size_t n, bool protobuf,
                   const struct clause **ret)
{
    for (size_t i = 0; i < n; i++) {
        const struct clause *c = &clauses[i];
        enum output_form form;
        bool yaml = false;

        if (c->unusable || is_protobuf(c) != protobuf || (!protobuf && !type_usable(c, &yaml)) ||
            !form_usable(call, c, &form) || (protobuf && !has_message(call, form)))
            continue;
        call->yaml = yaml;
        call->protobuf = protobuf;
        call->output = form;
        call->form_beta = str_eqc(c->version, "v1beta1");
        *ret = c;
        call->pretty = c->pretty && !protobuf;
        return true;
    }
    return false;
}

/* ---- pretty printing and compression ---- */

static bool wants_pretty(const struct call *c, const struct query *q)
{
    struct str value = query_get(q, "pretty");
    struct str agent;

    if (value.n)
        return str_eq_nocase(value, STR("true")) || str_eq_nocase(value, STR("t")) ||
               str_eqc(value, "1");

    agent = net_header(c->request, "user-agent");
    return str_has_prefix(agent, STR("curl")) || str_has_prefix(agent, STR("Wget")) ||
           str_has_prefix(agent, STR("Mozilla/5.0"));
}

static bool wants_gzip(const struct net_request *r)
{
    struct str list = net_header(r, "accept-encoding");

    while (list.p) {
        struct str one = str_cut(&list, ',');

        if (str_eq_nocase(str_trim(str_cut(&one, ';')), STR("gzip")))
            return true;
    }
    return false;
}

/* ---- refusals ---- */

#define JSON_YAML     "application/json, application/yaml"
#define PROTOBUF      ", application/vnd.kubernetes.protobuf"
#define STREAMS       STREAMS_PLAIN PROTOBUF ";stream=watch"
#define STREAMS_PLAIN "application/json;stream=watch"

static int not_acceptable(const struct call *c, struct err *err)
{
    bool crd = c->resource && c->resource->crd;

    if (c->resource && c->verb == CALL_WATCH)
        return err_set(err, &ERR_NOT_ACCEPTABLE, "only the following media types are accepted: %s",
                       crd ? STREAMS_PLAIN : STREAMS);
    return err_set(err, &ERR_NOT_ACCEPTABLE, "only the following media types are accepted: %s%s",
                   JSON_YAML, crd ? "" : PROTOBUF);
}

int respond_unroutable(struct err *err, const char *available)
{
    err->router = true;
    return err_set(err, &ERR_NOT_ACCEPTABLE, "406: Not Acceptable\n\nAvailable representations: %s",
                   available);
}

bool respond_routable(const struct call *c, const char *const *types)
{
    struct str accept = net_header(c->request, "accept");

    if (!accept.n)
        return true;
    while (accept.p) {
        struct str one = str_cut(&accept, ','), type = str_trim(str_cut(&one, ';'));

        if (str_eqc(type, "*/*"))
            return true;
        for (size_t i = 0; types[i]; i++)
            if (str_eqc(type, types[i]))
                return true;
    }
    return false;
}

/* Built-in resources have a route each, with the media types it produces; compared as whole
 * strings. */
static int check_route(const struct call *c, struct err *err)
{
    static const char *const types[] = {"application/json", "application/yaml",
                                        "application/vnd.kubernetes.protobuf", NULL};

    if (!c->resource || c->resource->crd || respond_routable(c, types))
        return 0;
    if (c->verb == CALL_LIST || c->verb == CALL_WATCH)
        return respond_unroutable(err, JSON_YAML PROTOBUF ", " STREAMS);
    return respond_unroutable(err, JSON_YAML PROTOBUF);
}

/* The name of a kind's Go type, which upstream shows: in its group's package. */
static struct str go_type(const struct call *c, struct str kind)
{
    struct str rest = c->resource->group, package = str_cut(&rest, '.');

    if (c->resource->crd)
        return str_eq(kind, c->resource->kind) ? STR("unstructured.Unstructured")
                                               : STR("unstructured.UnstructuredList");
    if (!package.n || str_eqc(package, "events"))
        package = STR("core");
    return arena_concat(c->arena, 3, (struct str[]){package, STR("."), kind});
}

static int choose_form(struct call *c, struct err *err)
{
    struct str accept = net_header(c->request, "accept");
    const struct clause *chosen = NULL;
    struct clause clauses[MAX_CLAUSES];
    size_t n;
    bool list, as_list;

    if (!accept.n)
        return 0;
    if (check_route(c, err))
        return -1;
    n = read_accept(accept, clauses);
    if (!choose(c, clauses, n, false, &chosen) && !choose(c, clauses, n, true, &chosen)) {
        for (size_t i = 0; i < n;
             i++) /* a Status has a message, also where its resource has none */
            c->protobuf |= is_protobuf(&clauses[i]) && !clauses[i].unusable && !clauses[i].as.n;
        return not_acceptable(c, err);
    }
    /* There is no stream of YAML documents; other types in Accept are ignored. */
    if (c->resource && c->verb == CALL_WATCH && c->yaml)
        return not_acceptable(c, err);

    /* A list cannot be requested as one object, nor one object as a list. */
    list = c->verb == CALL_LIST || c->verb == CALL_DELETECOLLECTION;
    as_list = str_eqc(chosen->as, "PartialObjectMetadataList");
    if (c->output != OUTPUT_PARTIAL || c->verb == CALL_WATCH || list == as_list)
        return 0;
    return err_set(err, &ERR_NOT_ACCEPTABLE,
                   "you requested %.*s, but the requested object is %sa list (*%.*s)",
                   STR_F(chosen->as), list ? "" : "not ",
                   STR_F(go_type(c, list ? c->resource->list_kind : c->resource->kind)));
}

int respond_negotiate(struct call *c, const struct query *q, struct err *err)
{
    int failed;

    c->output = OUTPUT_OBJECT;
    failed = choose_form(c, err);
    if (wants_pretty(c, q))
        c->pretty = true;
    call_entry(c)->gzip = wants_gzip(c->request);
    return failed;
}
